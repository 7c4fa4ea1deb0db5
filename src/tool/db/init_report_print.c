#include <stdio.h>

#include "base/buf.h"
#include "tool/db/init_report.h"

#define JOURNALS_SHOWN 40
#define NAME_CELLS_MAX 40 /* longer names shift their numbers */

/* --- text from outside --- */

static bool between(struct str c, const char *first, const char *last) /* of three bytes each */
{
    return memcmp(c.p, first, 3) >= 0 && memcmp(c.p, last, 3) <= 0;
}

static bool is_control(struct str c)
{
    unsigned char first = (unsigned char)c.p[0];
    if (c.n == 1)
        return first < 0x20 || first == 0x7F;
    if (c.n == 2) /* U+0080 to U+009F: some terminals take them for escapes */
        return first == 0xC2 && (unsigned char)c.p[1] < 0xA0;
    /* U+2028 to U+202E and U+2066 to U+2069 break the line or turn its direction. */
    return c.n == 3 && (between(c, "\xE2\x80\xA8", "\xE2\x80\xAE") ||
                        between(c, "\xE2\x81\xA6", "\xE2\x81\xA9"));
}

/* On one line, without characters that control a terminal. */
static void add_shown(struct buf *b, struct str s)
{
    while (s.n) {
        size_t n = str_utf8_step(s);
        struct str c = str_from(s.p, n ? n : 1);
        if (n == 0)
            buf_add_lit(b, "\xEF\xBF\xBD");
        else if (is_control(c))
            buf_add_char(b, '?');
        else
            buf_add_str(b, c);
        s = str_from(s.p + c.n, s.n - c.n);
    }
}

/* Cells that s takes on a terminal, wide characters counted as two: those beyond U+1100, nearly. */
static int cells_of(struct str s)
{
    int cells = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        cells += (c & 0xC0) != 0x80;
        cells += c >= 0xE3;
    }
    return cells;
}

/* --- totals --- */

static void put_papers(const struct init_report *r)
{
    struct init_counts c = init_report_sum(r);
    printf("papers      %lld read: %lld stored, %lld updated, %lld unchanged, %lld duplicate, "
           "%lld rejected\n",
           (long long)c.read, (long long)c.stored, (long long)c.updated, (long long)c.unchanged,
           (long long)c.duplicate, (long long)c.rejected);
    if (c.made_up || c.bare)
        printf("            of those accepted %lld without a DOI, %lld without an abstract\n",
               (long long)c.made_up, (long long)c.bare);
}

static void put_left(const struct init_totals *s)
{
    if (s->papers_withdrawn)
        printf("withdrawn   %lld papers that are not in the folder any more\n",
               (long long)s->papers_withdrawn);
    if (s->prune_skipped)
        printf("withdrawn   none: a file could not be read, or changed meanwhile (see below)\n");
    if (s->papers_kept)
        printf("kept        %lld papers that files with damaged entries lack: mend those files\n",
               (long long)s->papers_kept);
    if (s->papers_left)
        printf("left        %lld papers are not in the files any more that they came from; they "
               "stay. db init --prune\n"
               "            withdraws those that no other file has\n",
               (long long)s->papers_left);
    if (s->files_unknown > s->files_kept)
        printf("            %lld files have not been compared yet: papers that left them are not "
               "counted; --prune compares them\n",
               (long long)(s->files_unknown - s->files_kept));
}

static void put_totals(const struct init_report *r)
{
    const struct init_totals *s = &r->totals;
    printf("load        %lld\n", (long long)s->load);
    put_papers(r);
    put_left(s);
    printf("files       %lld read, %lld unchanged, %lld failed\n", (long long)s->files_read,
           (long long)s->files_unchanged, (long long)s->files_failed);
    printf("blocks      %lld changed\n", (long long)s->blocks_changed);
    printf("journals    %lld listed, %lld changed\n", (long long)s->journals_found,
           (long long)s->journals_changed);
    printf("tags        %lld, %lld changed; %lld with journals, %lld changed\n", (long long)s->tags,
           (long long)s->tags_changed, (long long)s->pairs, (long long)s->pairs_changed);
    printf("keys        %lld found, %lld new\n", (long long)s->keys_found, (long long)s->keys_new);
    if (s->dictionary)
        printf("dictionary  %lld is new\n", (long long)s->dictionary);
    printf("time        %.1f s\n", s->seconds);
}

/* --- journals --- */

#define COLUMNS 6 /* the first of init_count_names */

static void add_name(struct buf *b, struct str name, int width)
{
    add_shown(b, name);
    for (int i = cells_of(name); i < width; i++)
        buf_add_char(b, ' ');
}

static int name_width(struct init_journal *const *v, size_t n)
{
    int width = (int)strlen("journal");
    for (size_t i = 0; i < n; i++) {
        int cells = cells_of(v[i]->name);
        if (cells > width && cells <= NAME_CELLS_MAX)
            width = cells;
    }
    return width;
}

static void put_table(struct init_journal *const *v, size_t n)
{
    int width = name_width(v, n), widths[COLUMNS];
    for (size_t k = 0; k < COLUMNS; k++) {
        widths[k] = (int)strlen(init_count_names[k]);
        for (size_t i = 0; i < n; i++) {
            int digits = snprintf(NULL, 0, "%lld", (long long)*init_count(&v[i]->counts, k));
            if (digits > widths[k])
                widths[k] = digits;
        }
    }
    struct buf b;
    buf_init(&b);
    add_name(&b, STR("journal"), width);
    for (size_t k = 0; k < COLUMNS; k++)
        buf_printf(&b, "  %*s", widths[k], init_count_names[k]);
    buf_add_char(&b, '\n');
    for (size_t i = 0; i < n; i++) {
        add_name(&b, v[i]->name, width);
        for (size_t k = 0; k < COLUMNS; k++)
            buf_printf(&b, "  %*lld", widths[k], (long long)*init_count(&v[i]->counts, k));
        buf_add_char(&b, '\n');
    }
    printf("\n%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
}

static void put_journals(struct arena *a, const struct init_report *r, bool all)
{
    size_t n;
    struct init_journal **v = init_report_journals(a, r, &n);
    size_t shown = all || n < JOURNALS_SHOWN ? n : JOURNALS_SHOWN;
    if (n == 0)
        return;
    put_table(v, shown);
    if (shown < n)
        printf("… and %zu more, see --report\n", n - shown);
}

/* --- problems --- */

static void put_reasons(const struct init_reason *const *v, size_t n, bool lost, const char *title)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        int64_t count = lost ? v[i]->lost : v[i]->noted;
        if (count && !any)
            printf("\n%s\n", title);
        if (count)
            printf("%10lld  %s\n", (long long)count, v[i]->text);
        any |= count > 0;
    }
}

static void put_problem(const struct init_problem *p)
{
    struct buf b;
    buf_init(&b);
    add_shown(&b, p->path);
    if (p->line)
        buf_printf(&b, ":%lld", (long long)p->line);
    buf_printf(&b, ": %s", p->reason);
    if (p->about.n) {
        buf_add_lit(&b, " (");
        add_shown(&b, p->about);
        buf_add_char(&b, ')');
    }
    printf("%.*s\n", STR_ARG(buf_str(&b)));
    buf_release(&b);
}

/* Prints at most `most`; returns how many it printed. */
static size_t put_problems_that(const struct init_report *r, bool lost, size_t most)
{
    size_t shown = 0;
    for (size_t i = 0; i < r->problem_count && shown < most; i++)
        if (r->problems[i].lost == lost) {
            put_problem(&r->problems[i]);
            shown++;
        }
    return shown;
}

static void put_problems(const struct init_report *r)
{
    if (r->problem_count == 0)
        return;
    printf("\n");
    size_t shown = put_problems_that(r, true, INIT_PROBLEMS_SHOWN);
    shown += put_problems_that(r, false, INIT_PROBLEMS_SHOWN - shown);
    int64_t more = (int64_t)(r->problem_count - shown) + r->left_out;
    if (more)
        printf("… and %lld more, see --report\n", (long long)more);
}

void init_report_print(const struct init_report *r, bool all_journals)
{
    struct arena a;
    arena_init(&a);
    size_t n;
    const struct init_reason **reasons = init_report_reasons(&a, r, &n);
    put_totals(r);
    put_journals(&a, r, all_journals);
    put_reasons(reasons, n, true, "left out");
    put_reasons(reasons, n, false, "notes");
    put_problems(r);
    arena_release(&a);
}
