#include "app/download/export.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/sha256.h"
#include "corpus/csv.h"
#include "corpus/paper.h"
#include "corpus/ris.h"

#define SIMULATED "made up by the simulated AI of millrace, not by a language model"

struct exporter {
    enum export_format format;
    struct buf *out;
    struct bibtex *reader;
    struct arena scratch; /* for one row */
    struct arena kept;    /* values of strings */
    struct map *strings;  /* name of an @string in lower case: digest of its last value */
};

static const struct {
    const char *name, *media;
} formats[] = {
    [EXPORT_CSV] = {"csv", "text/csv; charset=utf-8"},
    [EXPORT_BIB] = {"bib", "application/x-bibtex; charset=utf-8"},
    [EXPORT_RIS] = {"ris", "application/x-research-info-systems; charset=utf-8"},
};

const char *export_name(enum export_format f)
{
    return formats[f].name;
}

const char *export_media(enum export_format f)
{
    return formats[f].media;
}

bool export_parse(struct str name, enum export_format *out)
{
    for (int f = EXPORT_CSV; f <= EXPORT_RIS; f++)
        if (str_eq(name, str_of(formats[f].name))) {
            *out = (enum export_format)f;
            return true;
        }
    return false;
}

/* --- CSV --- */

static void add_header(struct exporter *e)
{
    static const char *const columns[] = {"doi",     "title",  "authors",  "journal",  "year",
                                          "verdict", "reason", "abstract", "simulated"};
    struct csv_writer w = {e->out, 0};
    buf_add_lit(e->out, "\xef\xbb\xbf");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        csv_add(&w, str_of(columns[i]));
    csv_end_row(&w);
}

static struct str verdict(const struct result *r)
{
    switch (r->outcome) {
    case OUTCOME_HIT:
        return STR("relevant");
    case OUTCOME_MISS:
        return STR("not relevant");
    default:
        return r->not_judged ? STR("not judged") : r->withdrawn ? STR("withdrawn") : STR("failed");
    }
}

/* Of a paper without a verdict: "". */
static struct str simulated(const struct result *r)
{
    return r->outcome == OUTCOME_FAILED ? STR("") : r->simulated ? STR("yes") : STR("no");
}

/* What the AI said, on one line. */
static struct str one_line(struct arena *a, struct str s)
{
    char *p = str_z(a, s);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            p[i] = ' ';
    return str_trim(str_from(p, s.n));
}

static void add_csv(struct exporter *e, const struct result_row *row, struct str bibtex)
{
    struct csv_writer w = {e->out, 0};
    struct paper_fields f = {.title = STR_NULL};
    if (bibtex.p && paper_read_bibtex(&e->scratch, e->reader, bibtex, &f))
        f = (struct paper_fields){.title = STR_NULL};
    csv_add(&w, row->doi);
    csv_add(&w, csv_fit(&e->scratch, f.title));
    csv_add(&w, csv_fit(&e->scratch, f.authors));
    csv_add(&w, f.printed_in.n ? f.printed_in : row->journal);
    csv_add_int(&w, row->year);
    csv_add(&w, verdict(&row->result));
    csv_add(&w, csv_fit(&e->scratch, one_line(&e->scratch, row->result.reason)));
    csv_add(&w, csv_fit(&e->scratch, f.abstract));
    csv_add(&w, simulated(&row->result));
    csv_end_row(&w);
}

/* --- BibTeX --- */

/* BibTeX readers expand a name to its last value, so the expanded values are compared. */
static void add_string(struct exporter *e, const struct bibtex_macro *m)
{
    struct str name = str_lower(&e->scratch, m->name);
    uint8_t digest[SHA256_BYTES];
    sha256(m->value, digest);
    uint8_t *known = map_get(e->strings, name);
    if (known && memcmp(known, digest, sizeof digest) == 0)
        return;
    if (!known)
        map_set(e->strings, name, known = arena_alloc(&e->kept, sizeof digest));
    memcpy(known, digest, sizeof digest);
    buf_add_str(e->out, m->raw);
    buf_add_char(e->out, '\n');
}

/* Text between entries is a comment, unless there is an @ in it. */
static void add_gone(struct exporter *e, struct str doi)
{
    bool safe = !memchr(doi.p, '@', doi.n);
    buf_add_lit(e->out, "% not in the corpus any more: ");
    buf_add_str(e->out, safe ? doi : STR("a paper"));
    buf_add_lit(e->out, "\n\n");
}

static void add_bib(struct exporter *e, const struct result_row *row, struct str bibtex)
{
    struct bibtex_entry entry;
    size_t used;
    bibtex_reset(e->reader);
    if (!bibtex.p || bibtex_next(e->reader, bibtex, true, &entry, &used) != BIBTEX_ENTRY) {
        add_gone(e, row->doi);
        return;
    }
    if (row->result.simulated)
        buf_add_lit(e->out, "% the verdict on the next entry is simulated: " SIMULATED "\n");
    for (size_t i = 0; i < entry.macro_count; i++)
        add_string(e, entry.macros[i]);
    buf_add_str(e->out, entry.raw);
    buf_add_lit(e->out, "\n\n");
}

/* --- RIS --- */

static void add_ris(struct exporter *e, const struct result_row *row, struct str bibtex)
{
    struct ris_paper p = {.doi = row->doi, .year = row->year, .journal = row->journal};
    if (row->result.simulated)
        p.note = STR("The verdict is simulated: " SIMULATED);
    if (ris_write(&e->scratch, e->reader, bibtex, &p, e->out))
        check(ris_write(&e->scratch, e->reader, STR_NULL, &p, e->out) == 0);
}

/* --- any of them --- */

struct exporter *export_new(enum export_format f, struct buf *out)
{
    struct exporter *e = check_memory(calloc(1, sizeof *e));
    e->format = f;
    e->out = out;
    e->reader = bibtex_new(NULL, NULL);
    e->strings = map_new();
    arena_init(&e->scratch);
    arena_init(&e->kept);
    if (f == EXPORT_CSV)
        add_header(e);
    return e;
}

void export_free(struct exporter *e)
{
    if (!e)
        return;
    bibtex_free(e->reader);
    map_free(e->strings);
    arena_release(&e->kept);
    arena_release(&e->scratch);
    free(e);
}

void export_add(struct exporter *e, const struct result_row *row, struct str bibtex)
{
    static void (*const add[])(struct exporter *, const struct result_row *, struct str) = {
        [EXPORT_CSV] = add_csv, [EXPORT_BIB] = add_bib, [EXPORT_RIS] = add_ris};
    struct arena_mark mark = arena_mark(&e->scratch);
    add[e->format](e, row, bibtex);
    arena_reset(&e->scratch, mark);
}
