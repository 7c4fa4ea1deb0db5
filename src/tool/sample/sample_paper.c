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

static void add_z(struct buf *b, const char *z)
{
    buf_add(b, z, strlen(z));
}

static void open_value(struct buf *b, const struct style *s, const char *name)
{
    add_z(b, name);
    add_z(b, s->open);
}

static void close_value(struct buf *b, const struct style *s)
{
    add_z(b, s->close);
    buf_add_lit(b, ",\n");
}

static void add_number(struct buf *b, const struct style *s, const char *name, int64_t v)
{
    add_z(b, name);
    if (!s->bare_numbers)
        add_z(b, s->open);
    buf_add_int(b, v);
    if (!s->bare_numbers)
        add_z(b, s->close);
    buf_add_lit(b, ",\n");
}

/* --- fields --- */

static void add_serial(struct buf *b, int64_t serial)
{
    char digits[7];
    for (size_t i = sizeof digits; i-- > 0; serial /= 10)
        digits[i] = (char)('0' + serial % 10);
    buf_add(b, digits, sizeof digits);
}

static void add_authors(struct buf *b, const struct style *s, const struct sample_theme *t)
{
    struct sample_random *r = t->random;
    unsigned n = 1 + sample_random_below(r, 4) + sample_random_below(r, 4);
    open_value(b, s, s->author);
    for (unsigned i = 0; i < n; i++) {
        if (i)
            buf_add_lit(b, " and ");
        add_z(b, sample_pick(r, t->chinese ? sample_family_names_zh : sample_family_names));
        buf_add_lit(b, ", ");
        add_z(b, sample_pick(r, t->chinese ? sample_given_names_zh : sample_given_names));
        if (!t->chinese && sample_random_below(r, 3) == 0) {
            char initial[] = {' ', (char)('A' + sample_random_below(r, 26)), '.'};
            buf_add(b, initial, sizeof initial);
        }
    }
    close_value(b, s);
}

static void add_issue(struct buf *b, const struct style *s, struct sample_random *r, int volume,
                      int64_t serial)
{
    unsigned month = sample_random_below(r, 12);
    int64_t page = 1 + serial * 11 % 9000;
    add_number(b, s, s->volume, volume);
    add_number(b, s, s->number, month + 1);
    open_value(b, s, s->pages);
    buf_add_int(b, page);
    buf_add_lit(b, "--");
    buf_add_int(b, page + 4 + sample_random_below(r, 18));
    close_value(b, s);
    add_z(b, s->month);
    add_z(b, months[month]);
    buf_add_lit(b, ",\n");
}

/* 10.5555 is the prefix reserved for tests: these DOIs do not resolve. */
static void add_doi(struct buf *b, const struct style *s, const char *code, int year,
                    int64_t serial)
{
    open_value(b, s, s->doi);
    buf_add_lit(b, "10.5555/");
    add_z(b, code);
    buf_add_char(b, '.');
    buf_add_int(b, year);
    buf_add_char(b, '.');
    add_serial(b, serial);
    close_value(b, s);
}

void sample_paper(struct buf *b, struct sample_random *r, const struct sample_journal *j, int year,
                  int64_t serial)
{
    /* By the code, so that a journal has the same style in all years. */
    const struct style *s = &styles[(unsigned char)j->code[0] % 3];
    struct sample_theme t = sample_theme(r, j);
    add_z(b, s->entry);
    add_z(b, j->code);
    buf_add_int(b, year);
    buf_add_char(b, '-');
    add_serial(b, serial);
    buf_add_lit(b, ",\n");
    add_authors(b, s, &t);
    add_z(b, s->title);
    add_z(b, s->title_open);
    sample_title(b, &t);
    add_z(b, s->title_close);
    open_value(b, s, s->journal);
    add_z(b, j->full_name);
    close_value(b, s);
    add_number(b, s, s->year, year);
    add_issue(b, s, r, year - j->first_year + 1, serial);
    if (sample_random_below(r, SAMPLE_NO_DOI_ONE_IN) != 0)
        add_doi(b, s, j->code, year, serial);
    open_value(b, s, s->abstract);
    sample_abstract(b, &t);
    add_z(b, s->close);
    buf_add_lit(b, "\n}\n\n");
}
