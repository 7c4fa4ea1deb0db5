/* Every entry that makes a paper comes back from both of its forms, and says the same in them.
 * Any bytes may be given to the two readers. */
#include "base/err.h"
#include "base/json.h"
#include "corpus/paper.h"
#include "corpus/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(struct arena *a, const struct paper *p)
{
    struct buf json;
    struct paper back;
    buf_init(&json);
    paper_write_json(&json, p);
    check(paper_read_json(a, p->doi, buf_str(&json), &back) == 0 && back.year == p->year);
    if (str_utf8_valid(p->bib) && str_utf8_valid(p->strings)) {
        check(str_eq(back.bib, p->bib) && str_eq(back.strings, p->strings));
        check(paper_digest(&back) == paper_digest(p));
    }
    buf_release(&json);
}

static void check_bibtex(struct arena *a, struct bibtex *b, const struct paper *p, struct str title)
{
    struct str text = paper_bibtex(a, p), strings, bib;
    struct paper_fields f;
    check(paper_split_bibtex(a, b, text, &strings, &bib) == 0);
    check(str_eq(strings, p->strings) && str_eq(bib, p->bib));
    check(paper_read_bibtex(a, b, text, &f) == 0 && str_eq(f.title, text_plain(a, title)));
    struct str shown, abstract;
    check(paper_read_shown(a, b, text, &shown, &abstract) == 0);
    check(str_eq(shown, f.title) && str_eq(abstract, f.abstract));
}

static void read_any(struct arena *a, struct bibtex *b, struct str raw)
{
    struct paper p;
    struct paper_fields f;
    int err = paper_read_json(a, STR("10.1000/x"), raw, &p);
    check(err == ERR_PROTO || (err == 0 && p.bib.p && p.strings.p));
    err = paper_read_bibtex(a, b, raw, &f);
    check(err == ERR_PROTO || (err == 0 && f.type.p && f.key.p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct bibtex *file = bibtex_new(NULL, NULL), *b = bibtex_new(NULL, NULL);
    struct str raw = str_from(size ? (const char *)data : "", size), rest = raw;
    struct bibtex_entry e;
    size_t used;
    read_any(&a, b, raw);
    while (bibtex_next(file, rest, true, &e, &used) == BIBTEX_ENTRY) {
        struct paper p;
        const char *why = NULL;
        int err = paper_of_entry(&a, file, &e, STR("J"), STR("f.bib"), &p, &why);
        check(err == 0 || (err == ERR_INVALID && why));
        if (err == 0) {
            check_json(&a, &p);
            check_bibtex(&a, b, &p, e.title);
        }
        rest = str_from(rest.p + used, rest.n - used);
    }
    bibtex_free(file);
    bibtex_free(b);
    arena_release(&a);
    return 0;
}
