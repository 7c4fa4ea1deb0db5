#include "tool/sample/sample_paper.h"

/* The files of a journal come from one exporter, and exporters format differently. */
struct style {
    const char *entry;        /* what an entry begins with */
    const char *open, *close; /* around a value */
    const char *title_open, *title_close;
    const char *title, *author, *journal, *year, *volume, *number, *pages, *month, *doi, *abstract;
    bool bare_numbers;
};

static const struct style styles[] = {
    {"@article{", "{", "}", "{", "},\n", "  title     = ", "  author    = ", "  journal   = ",
     "  year      = ", "  volume    = ", "  number    = ", "  pages     = ", "  month     = ",
     "  doi       = ", "  abstract  = ", false},
    {"@Article{", "{", "}", "{{", "}},\n", "Title = ", "Author = ", "Journal = ", "Year = ",
     "Volume = ", "Number = ", "Pages = ", "Month = ", "DOI = ", "Abstract = ", false},
    {"@ARTICLE{", "\"", "\"", "\"", "\",\n",
     "    title=", "    author=", "    journal=", "    year=", "    volume=", "    number=",
     "    pages=", "    month=", "    doi=", "    abstract=", true},
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};

static void add_number(struct buf *b, const struct style *s, const char *name, int64_t v)
{
    const char *open = s->bare_numbers ? "" : s->open, *close = s->bare_numbers ? "" : s->close;
    buf_printf(b, "%s%s%lld%s,\n", name, open, (long long)v, close);
}

static void add_authors(struct buf *b, const struct style *s, const struct sample_theme *t)
{
    struct sample_random *r = t->random;
    unsigned n = 1 + sample_random_below(r, 4) + sample_random_below(r, 4);
    buf_printf(b, "%s%s", s->author, s->open);
    for (unsigned i = 0; i < n; i++) {
        const char *family =
            sample_pick(r, t->chinese ? sample_family_names_zh : sample_family_names);
        const char *given = sample_pick(r, t->chinese ? sample_given_names_zh : sample_given_names);
        buf_printf(b, "%s%s, %s", i ? " and " : "", family, given);
        if (!t->chinese && sample_random_below(r, 3) == 0)
            buf_printf(b, " %c.", 'A' + (int)sample_random_below(r, 26));
    }
    buf_printf(b, "%s,\n", s->close);
}

static void add_issue(struct buf *b, const struct style *s, struct sample_random *r, int volume,
                      int64_t serial)
{
    unsigned month = sample_random_below(r, 12);
    int64_t page = 1 + serial * 11 % 9000;
    add_number(b, s, s->volume, volume);
    add_number(b, s, s->number, month + 1);
    buf_printf(b, "%s%s%lld--%lld%s,\n", s->pages, s->open, (long long)page,
               (long long)page + 4 + sample_random_below(r, 18), s->close);
    buf_printf(b, "%s%s,\n", s->month, months[month]);
}

void sample_paper(struct buf *b, struct sample_random *r, const struct sample_journal *j, int year,
                  int64_t serial)
{
    /* By the code, so that a journal has the same style in all years. */
    const struct style *s = &styles[(unsigned char)j->code[0] % 3];
    struct sample_theme t = sample_theme(r, j);
    buf_printf(b, "%s%s%d-%07lld,\n", s->entry, j->code, year, (long long)serial);
    add_authors(b, s, &t);
    buf_printf(b, "%s%s", s->title, s->title_open);
    sample_title(b, &t);
    buf_printf(b, "%s%s%s%s%s,\n", s->title_close, s->journal, s->open, j->full_name, s->close);
    add_number(b, s, s->year, year);
    add_issue(b, s, r, year - j->first_year + 1, serial);
    /* 10.5555 is the prefix reserved for tests: these DOIs do not resolve. */
    if (sample_random_below(r, SAMPLE_NO_DOI_ONE_IN) != 0)
        buf_printf(b, "%s%s10.5555/%s.%d.%07lld%s,\n", s->doi, s->open, j->code, year,
                   (long long)serial, s->close);
    buf_printf(b, "%s%s", s->abstract, s->open);
    sample_abstract(b, &t);
    buf_printf(b, "%s\n}\n\n", s->close);
}
