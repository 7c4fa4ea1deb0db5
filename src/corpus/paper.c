#include "corpus/paper.h"

#include <endian.h>

#include "base/ascii.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "corpus/doi.h"
#include "corpus/pack.h"
#include "corpus/text.h"

/* --- from an entry --- */

/* The first run of exactly four digits: of "c2024", "{2024}" or "2024a", but not of "20240501". */
static struct str four_digits(struct str s)
{
    for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
        for (n = 0; i + n < s.n && ascii_is_digit(s.p[i + n]);)
            n++;
        if (n == 4)
            return str_from(s.p + i, n);
    }
    return STR_NULL;
}

static struct str join_strings(struct arena *a, const struct bibtex_entry *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->macro_count; i++)
        n += e->macros[i]->raw.n + 1;
    if (n == 0)
        return STR("");
    char *all = arena_alloc(a, n), *p = all;
    for (size_t i = 0; i < e->macro_count; i++) {
        struct str raw = e->macros[i]->raw;
        p = mempcpy(p, raw.p, raw.n);
        *p++ = '\n';
    }
    check(p == all + n);
    return str_from(all, n);
}

/* From a doi.org address in s to its end; p == NULL when there is none. Other addresses have DOIs
 * in them too, but of what they cite or list. */
static struct str doi_address(struct str s)
{
    static const char host[] = "doi.org/";
    size_t host_n = sizeof(host) - 1;
    for (size_t i = 0; i + host_n <= s.n; i++) {
        bool begins = i == 0 || s.p[i - 1] == '/' || s.p[i - 1] == '.' || s.p[i - 1] == ' ';
        if (begins && str_ieq(str_from(s.p + i, host_n), str_from(host, host_n)))
            return str_skip(s, i);
    }
    return STR_NULL;
}

static struct str find_doi(struct arena *a, struct bibtex *b, const struct bibtex_entry *e,
                           struct str journal, struct str year)
{
    struct str doi;
    if (doi_normal(a, e->doi, &doi) ||
        doi_normal(a, doi_address(bibtex_field(b, STR("url"))), &doi))
        return doi;
    struct doi_source source = {
        .journal = journal,
        .year = year,
        .title = e->title,
        .volume = bibtex_field(b, STR("volume")),
        .number = bibtex_field(b, STR("number")),
        .pages = bibtex_field(b, STR("pages")),
        .entry = e->raw,
    };
    return doi_made_up(a, &source);
}

static int refuse(const char **why, const char *reason)
{
    *why = reason;
    return ERR_INVALID;
}

int paper_of_entry(struct arena *a, struct bibtex *b, const struct bibtex_entry *e,
                   struct str journal, struct str file, struct paper *out, const char **why)
{
    if (journal.n > PAPER_NAME_BYTES_MAX)
        return refuse(why, "name of the journal too long");
    if (file.n > PAPER_NAME_BYTES_MAX)
        return refuse(why, "name of the file too long");
    struct str digits = four_digits(e->year);
    int64_t year;
    if (!str_to_i64(digits, &year))
        return refuse(why, "no year");
    if (year < PAPER_YEAR_MIN || year > PAPER_YEAR_MAX)
        return refuse(why, "year out of range");
    struct str strings = join_strings(a, e);
    if (strings.n + e->raw.n > PACK_ENTRY_BYTES_MAX)
        return refuse(why, "too long with its @strings");
    *out = (struct paper){
        .doi = find_doi(a, b, e, journal, digits),
        .journal = journal,
        .year = year,
        .file = file,
        .bib = e->raw,
        .strings = strings,
    };
    return 0;
}

/* --- as MySQL holds it --- */

void paper_write_json(struct buf *out, const struct paper *p)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    jw_put_str(&w, "journal", p->journal);
    jw_put_int(&w, "year", p->year);
    jw_put_str(&w, "file", p->file);
    jw_put_str(&w, "bib", p->bib);
    if (p->strings.n)
        jw_put_str(&w, "strings", p->strings);
    jw_end_object(&w);
}

int paper_read_json(struct arena *a, struct str doi, struct str json, struct paper *out)
{
    const struct json *root;
    if (json_parse(a, json, &root, NULL))
        return ERR_PROTO;
    const struct json *strings = json_get(root, "strings");
    struct paper p = {
        .doi = doi,
        .journal = json_str(json_get(root, "journal")),
        .file = json_str(json_get(root, "file")),
        .bib = json_str(json_get(root, "bib")),
        .strings = strings ? json_str(strings) : STR(""),
    };
    if (!json_int(json_get(root, "year"), &p.year) || p.year < PAPER_YEAR_MIN ||
        p.year > PAPER_YEAR_MAX)
        return ERR_PROTO;
    if (!p.journal.p || !p.file.p || !p.bib.p || !p.strings.p)
        return ERR_PROTO;
    *out = p;
    return 0;
}

int64_t paper_digest(const struct paper *p)
{
    static const uint8_t key[16] = "millrace paper 1";
    const struct str parts[] = {p->doi, p->journal, p->strings, p->bib};
    enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
    uint64_t words[2 * PARTS + 1]; /* a length and a hash of each, so that parts cannot merge */
    for (size_t i = 0; i < PARTS; i++) {
        words[2 * i] = htole64(parts[i].n);
        words[2 * i + 1] = htole64(siphash(key, parts[i]));
    }
    words[2 * PARTS] = htole64((uint64_t)p->year);
    return (int64_t)(siphash(key, str_from((const char *)words, sizeof(words))) & INT64_MAX);
}

/* --- as Redis holds it --- */

struct str paper_bibtex(struct arena *a, const struct paper *p)
{
    return p->strings.n ? STR_JOIN(a, p->strings, p->bib) : p->bib;
}

static struct str copy(struct arena *a, struct str s)
{
    return s.p ? str_dup(a, s) : s;
}

/* Values belong to the reader or its text, and text_plain may return them as they are. */
static struct str plain(struct arena *a, struct str value)
{
    struct str text = text_plain(a, value);
    bool lent = (uintptr_t)text.p - (uintptr_t)value.p <= value.n;
    return lent ? copy(a, text) : text;
}

int paper_read_bibtex(struct arena *a, struct bibtex *b, struct str bibtex,
                      struct paper_fields *out)
{
    struct bibtex_entry e;
    if (!bibtex_only(b, bibtex, &e))
        return ERR_PROTO;
    *out = (struct paper_fields){
        .title = plain(a, e.title),
        .abstract = plain(a, e.abstract),
        .authors = plain(a, e.authors),
        .printed_in = plain(a, e.journal.n ? e.journal : e.booktitle),
        .type = copy(a, e.type),
        .key = copy(a, e.key),
    };
    return 0;
}

int paper_read_shown(struct arena *a, struct bibtex *b, struct str bibtex, struct str *title,
                     struct str *abstract)
{
    struct bibtex_entry e;
    /* Mostly it is the entry alone, without @strings, checked when it was stored. */
    if (!bibtex_take(b, bibtex) && !bibtex_only(b, bibtex, &e))
        return ERR_PROTO;
    *title = text_plain(a, bibtex_field(b, STR("title")));
    *abstract = text_plain(a, bibtex_field(b, STR("abstract")));
    return 0;
}

int paper_split_bibtex(struct arena *a, struct bibtex *b, struct str bibtex, struct str *strings,
                       struct str *bib)
{
    (void)a; /* nothing has to be copied */
    struct bibtex_entry e;
    if (!bibtex_only(b, bibtex, &e))
        return ERR_PROTO;
    check(e.raw.p >= bibtex.p && e.raw.p + e.raw.n <= bibtex.p + bibtex.n);
    *strings = str_from(bibtex.p, (size_t)(e.raw.p - bibtex.p));
    *bib = e.raw;
    return 0;
}
