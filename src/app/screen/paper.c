#include "app/screen/screen.h"
#include "engine/papers/entry.h"

int screen_paper(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct results r = {n->redis, n->sql, n->ledger, n->blocks, n->cache};
    struct run_id id = {c->session.uid, http_param(c->x, "id")};
    struct result_row row;
    int err = results_find(t, &r, id, api_text(c, "doi"), &row, &c->degraded);
    if (err)
        return err;
    struct block_pick want = {.journal = row.journal, .year = row.year, .doi = row.doi};
    err = screen_pick(t, c, &want, 1);
    if (err)
        return err;
    struct paper_fields f = entry_fields(t, want.bibtex);
    screen_put_result(w, &row, f.title);
    jw_put_str(w, "authors", f.authors);
    jw_put_str(w, "printed_in", f.printed_in);
    jw_put_str(w, "abstract", f.abstract);
    jw_put_str(w, "bibtex", want.bibtex);
    return 0;
}

#define LONG .most = INT32_MAX

const struct api_field screen_paper_query[] = {
    {"doi", API_TEXT, .least = 1, .most = 255, .about = "of the paper, as the results have it"},
    API_END,
};
const struct api_field screen_paper_reply[] = {
    {"doi", API_TEXT, .most = 255, .about = "names the paper"},
    {"title", API_TEXT, .optional = true, LONG,
     .about = "null, as the four below: the paper has none, has left the corpus, or cannot be read "
              "now"},
    {"journal", API_TEXT, .most = 255, .about = "it was found in"},
    {"year", API_INT, .least = INT32_MIN, .most = INT32_MAX, .about = "of the paper"},
    {"relevant", API_BOOL, .optional = true, .about = "what the AI said; null: it gave no verdict"},
    {"reason", API_TEXT, .optional = true, LONG, .about = "why it said so"},
    {"error", API_TEXT, .optional = true, LONG, .about = "why there is no verdict"},
    SCREEN_RESULT_MARKS,
    {"authors", API_TEXT, .optional = true, LONG, .about = "as they sign"},
    {"printed_in", API_TEXT, .optional = true, LONG, .about = "journal or book, as the entry says"},
    {"abstract", API_TEXT, .optional = true, LONG, .about = "as plain text"},
    {"bibtex", API_TEXT, .optional = true, LONG, .about = "the entry, with the @strings it needs"},
    API_END,
};
