#include "engine/papers/entry.h"

#include "corpus/doi.h"
#include "wire/sql.h"

struct paper_fields entry_fields(struct task *t, struct str bibtex)
{
    struct paper_fields f = {.title = STR_NULL};
    struct bibtex *b = bibtex_new(NULL, NULL);
    if (bibtex.p && paper_read_bibtex(task_arena(t), b, bibtex, &f))
        f = (struct paper_fields){.title = STR_NULL};
    bibtex_free(b);
    return f;
}

int entry_find(struct task *t, struct sql_pool *sql, struct str doi, struct entry *out)
{
    struct str key = str_lower(task_arena(t), doi); /* a made-up one is no DOI */
    struct sql_rows r;
    struct paper p;
    (void)doi_normal(task_arena(t), doi, &key);
    int err = sql_call(t, sql, &r, "SELECT DOI, Bib FROM paperinfo WHERE DOI = ?", sql_text(key));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no such paper");
    err = paper_read_json(task_arena(t), sql_row(&r, 0)[0].s, sql_row(&r, 0)[1].s, &p);
    if (err)
        return task_fail(t, err, "the row of paper %.*s cannot be read", (int)key.n, key.p);
    *out = (struct entry){.doi = p.doi, .journal = p.journal, .year = p.year};
    out->bibtex = paper_bibtex(task_arena(t), &p);
    out->fields = entry_fields(t, out->bibtex);
    return 0;
}
