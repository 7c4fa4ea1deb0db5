#include "engine/runs/results.h"

#include "app/screen/screen.h"
#include "corpus/paper.h"

#define LIMIT_DEFAULT 50

int screen_pick(struct task *t, struct api_call *c, struct block_pick *wants, size_t count)
{
    int err = blocks_pick(t, c->node->blocks, wants, count);
    if (err != ERR_UNAVAILABLE && err != ERR_BUSY)
        return err;
    c->degraded = true;
    return 0;
}

/* The papers of a page, for their titles. */
static int pick_papers(struct task *t, struct api_call *c, const struct results_page *page,
                       struct block_pick **out)
{
    struct block_pick *wants = ARENA_ARRAY(task_arena(t), struct block_pick, page->count);
    for (size_t i = 0; i < page->count; i++)
        wants[i] = (struct block_pick){
            .journal = page->rows[i].journal, .year = page->rows[i].year, .doi = page->rows[i].doi};
    *out = wants;
    return screen_pick(t, c, wants, page->count);
}

/* p == NULL: the paper is not in the corpus any more, or has no title. */
static struct str title_of(struct task *t, struct bibtex *b, struct str bibtex)
{
    struct paper_fields f;
    if (!bibtex.p || paper_read_bibtex(task_arena(t), b, bibtex, &f))
        return STR_NULL;
    return f.title;
}

void screen_put_result(struct json_writer *w, const struct result_row *row, struct str title)
{
    bool failed = row->result.outcome == OUTCOME_FAILED;
    jw_put_str(w, "doi", row->doi);
    jw_put_str(w, "title", title);
    jw_put_str(w, "journal", row->journal);
    jw_put_int(w, "year", row->year);
    jw_key(w, STR("relevant"));
    if (failed)
        jw_null(w);
    else
        jw_bool(w, row->result.outcome == OUTCOME_HIT);
    jw_put_str(w, "reason", failed ? STR_NULL : row->result.reason);
    jw_put_str(w, "error", failed ? row->result.reason : STR_NULL);
    jw_put_bool(w, "not_judged", row->result.not_judged);
    jw_put_bool(w, "withdrawn", row->result.withdrawn);
    jw_put_bool(w, "simulated", row->result.simulated);
}

static void put_page(struct task *t, struct json_writer *w, const struct results_page *page,
                     const struct block_pick *papers)
{
    struct bibtex *b = bibtex_new(NULL, NULL);
    jw_put_array(w, "results");
    for (size_t i = 0; i < page->count; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        jw_object(w);
        screen_put_result(w, &page->rows[i], title_of(t, b, papers[i].bibtex));
        jw_end_object(w);
        arena_reset(task_arena(t), mark);
    }
    jw_end_array(w);
    jw_put_str(w, "next", page->next);
    jw_put_bool(w, "restarted", page->restarted);
    bibtex_free(b);
}

/* `relevant` is the older parameter; `verdict` replaces it. */
static int read_kind(struct task *t, struct api_call *c, enum results_kind *out)
{
    static const struct {
        const char *name;
        enum results_kind kind;
    } verdicts[] = {
        {"relevant", RESULTS_HIT}, {"irrelevant", RESULTS_MISS}, {"failed", RESULTS_FAILED}};
    struct str verdict = api_text(c, "verdict");
    bool relevant = false;
    api_bool(c, "relevant", &relevant);
    *out = relevant ? RESULTS_HIT : RESULTS_ALL;
    for (size_t i = 0; verdict.p && i < sizeof verdicts / sizeof *verdicts; i++)
        if (str_eq(verdict, str_of(verdicts[i].name)))
            *out = verdicts[i].kind;
    if (relevant && *out != RESULTS_HIT)
        return api_refuse(t, c, "verdict", "contradicts relevant=1");
    return 0;
}

int screen_results(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct results r = {n->redis, n->sql, n->ledger, n->blocks, n->cache};
    struct run_id id = {c->session.uid, http_param(c->x, "id")};
    struct results_page page;
    struct block_pick *papers;
    int64_t limit = LIMIT_DEFAULT;
    enum results_kind kind;
    api_int(c, "limit", &limit);
    int err = read_kind(t, c, &kind);
    if (err)
        return err;
    err = results_list(t, &r, id, kind, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "cursor", "%s", task_error(t));
    if (err)
        return err;
    c->degraded = page.degraded;
    err = pick_papers(t, c, &page, &papers);
    if (err)
        return err;
    put_page(t, w, &page, papers);
    return 0;
}

const struct api_field screen_results_query[] = {
    {"verdict", API_TEXT, .optional = true, .choices = "relevant|irrelevant|failed",
     .about =
         "only papers of this verdict; failed: papers without one, those not judged, and those "
         "withdrawn"},
    {"relevant", API_BOOL, .optional = true, .about = "1: the same as verdict=relevant"},
    {"limit", API_INT, .optional = true, .least = 1, .most = RESULTS_LIMIT_MAX,
     .about = "results on a page; 50 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 64,
     .about = "next of the page before, asked for with the same `verdict`"},
    API_END,
};
static const struct api_field result_fields[] = {
    {"doi", API_TEXT, .most = 255, .about = "names the paper"},
    {"title", API_TEXT, .optional = true, .most = INT32_MAX,
     .about = "null: the paper has none, has left the corpus, or cannot be read now"},
    {"journal", API_TEXT, .most = 255, .about = "it was found in"},
    {"year", API_INT, .least = INT32_MIN, .most = INT32_MAX, .about = "of the paper"},
    {"relevant", API_BOOL, .optional = true, .about = "what the AI said; null: it gave no verdict"},
    {"reason", API_TEXT, .optional = true, .most = INT32_MAX, .about = "why it said so"},
    {"error", API_TEXT, .optional = true, .most = INT32_MAX, .about = "why there is no verdict"},
    SCREEN_RESULT_MARKS,
    API_END,
};
const struct api_field screen_results_reply[] = {
    {"results", API_OBJECTS, .fields = result_fields,
     .about =
         "in order of arrival; once the run is archived: relevant ones first, failed ones last, "
         "within these by journal, year and DOI"},
    {"next", API_TEXT, .optional = true, .most = 64,
     .about = "cursor of the next page; null: nothing more is there now. A page of irrelevant or "
              "failed ones may be short, or empty, and have a next one"},
    {"restarted", API_BOOL,
     .about = "the run was archived since the cursor was given: this is the first page of the new "
              "order"},
    API_END,
};
