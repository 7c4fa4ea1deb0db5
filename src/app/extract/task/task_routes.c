#include "app/extract/task/task_routes.h"

#include "app/extract/extract.h"
#include "app/extract/task/results.h"
#include "app/extract/template_store.h"
#include "engine/api/limit.h"
#include "engine/api/run.h"
#include "engine/people/hooks.h"
#include "engine/people/own_id.h"

#define PERCENT 100

/* --- what is asked for --- */

/* Documents or papers of a run: one of both. */
static int read_wish(struct task *t, struct api_call *c, struct extract_wish *out)
{
    struct extract_wish w = {.uid = c->session.uid,
                             .template_id = api_text(c, "template_id"),
                             .language = api_text(c, "language"),
                             .query_id = api_text(c, "query_id")};
    w.document_count = api_texts(t, c, "document_ids", &w.document_ids);
    w.doi_count = api_texts(t, c, "dois", &w.dois);
    if (!w.query_id.p && w.document_count == 0)
        return api_refuse(t, c, "document_ids", "or query_id is needed");
    if (w.query_id.p && w.document_count)
        return api_refuse(t, c, "query_id", "or document_ids, not both");
    if (!w.query_id.p && w.doi_count)
        return api_refuse(t, c, "dois", "are papers of a run: query_id is needed");
    *out = w;
    return 0;
}

int extraction_estimate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_wish wish;
    struct extract_offer offer;
    int err = read_wish(t, c, &wish);
    if (!err)
        err = extract_estimate(t, c->node->extract, &wish, &offer);
    if (err)
        return err;
    jw_put_int(w, "documents", offer.documents);
    jw_put_str(w, "cost", amount_decimal(task_arena(t), offer.cents));
    jw_put_bool(w, "simulated", c->node->simulated);
    return api_put_free(t, c, w, offer.cents);
}

/* --- submitting --- */

/* Counted before it is promised, and given back if that fails; a repeat is not counted. Of a run
 * the number of papers is known only when they are looked up, so that is estimated first. */
static int submit_new(struct task *t, struct api_call *c, const struct extract_wish *wish,
                      struct extract_submitted *out)
{
    struct limit_taken taken;
    struct extract_offer offer = {.documents = (int64_t)wish->document_count};
    int err = wish->document_count ? 0 : extract_estimate(t, c->node->extract, wish, &offer);
    if (!err)
        err = api_limit_take(t, c, LIMIT_EXTRACTION, offer.documents, &taken);
    if (err)
        return err;
    err = extract_submit(t, c->node->extract, wish, out);
    if ((err && err != ERR_UNCERTAIN) || out->repeated)
        limit_return(t, c->node->limits, &taken);
    return err;
}

static int read_more(struct task *t, struct api_call *c, struct extract_wish *w)
{
    w->name = api_text(c, "name");
    w->project_id = api_text(c, "project_id");
    w->webhook = api_text(c, "webhook");
    const char *problem = w->webhook.p ? hook_url_problem(task_arena(t), w->webhook) : NULL;
    return problem ? api_refuse(t, c, "webhook", "%s", problem)
                   : api_request_id(t, c, &w->request_id);
}

int extraction_submit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_wish wish;
    struct extract_submitted done = {.id = STR_NULL};
    int err = read_wish(t, c, &wish);
    if (!err)
        err = read_more(t, c, &wish);
    if (!err)
        err = extract_repeated(t, c->node->extract, &wish, &done);
    if (!err && !done.id.p)
        err = submit_new(t, c, &wish, &done);
    if (err)
        return err;
    jw_put_str(w, "taskId", done.id);
    jw_put_int(w, "total", done.total);
    if (done.webhook_secret.p)
        jw_put_str(w, "webhook_secret", done.webhook_secret);
    return 0;
}

/* --- showing --- */

#define AT(member) API_AT(struct extract_task, member)
#define COUNT(name, member, text)                                                                  \
    {                                                                                              \
        name, API_INT, AT(member), .most = EXTRACT_DOCUMENTS_MAX, .about = text                    \
    }
static const struct api_field progress_fields[] = {
    {"total", API_INT, .most = EXTRACT_DOCUMENTS_MAX, .about = "documents"},
    {"success", API_INT, .most = EXTRACT_DOCUMENTS_MAX, .about = "of them that are completed"},
    {"failed", API_INT, .most = EXTRACT_DOCUMENTS_MAX, .about = "that ended in an error"},
    {"percent", API_INT, .most = PERCENT, .about = "of them that have ended"},
    API_END,
};
#define STATUS_FIELDS                                                                              \
    {"status", API_TEXT, .choices = "processing|completed|cancelled",                              \
     .about = "completed: every document is completed, or ended in an error"},                     \
        {"progress", API_OBJECT, .about = "counted from the documents",                            \
         .fields = progress_fields},                                                               \
        {"message", API_TEXT, .optional = true, .most = 1000,                                      \
         .about = "what it waits for; null: for nothing"},                                         \
        {"reason_code", API_TEXT, .optional = true, .choices = EXTRACT_REASONS,                    \
         .about = "the same by a word"},                                                           \
    {                                                                                              \
        "cost", API_MONEY, .about = "of the documents that are completed"                          \
    }
const struct api_field extraction_status_reply[] = {STATUS_FIELDS, API_END};
const struct api_field extraction_fields[] = {
    {"task_id", API_TEXT, AT(id), .most = OWN_ID_CHARS, .about = "of the task"},
    {"name", API_TEXT, AT(name), .most = EXTRACT_NAME_CHARS,
     .about = "that it was given, or empty"},
    {"project_id", API_TEXT, AT(project_id), .optional = true, .most = 64,
     .about = "that it belongs to"},
    {"template_id", API_TEXT, AT(template_id), .most = TEMPLATE_ID_CHARS, .about = "its template"},
    {"template_name", API_TEXT, AT(template_name), .most = 255, .about = "likewise"},
    {"template_version", API_INT, AT(template_version), .about = "that it began with"},
    {"query_id", API_TEXT, AT(query_id), .optional = true, .most = 64,
     .about = "the run whose papers these are; null: documents"},
    {"created_at", API_TIME, AT(created_ms), .about = "when it was submitted"},
    {"completed_at", API_TIME, AT(completed_ms), .optional = true, .about = "when it was closed"},
    {"simulated", API_BOOL, AT(simulated),
     .about = "values of it are of the simulated AI, and mean nothing; each row tells"},
    STATUS_FIELDS,
    API_END,
};

void extraction_put_status(struct json_writer *w, const struct extract_task *x)
{
    const struct extract_counts *n = &x->counts;
    int64_t ended = x->total - n->pending - n->extracting;
    struct arena a;
    arena_init(&a);
    jw_put_str(w, "status", x->status);
    jw_put_object(w, "progress");
    jw_put_int(w, "total", x->total);
    jw_put_int(w, "success", n->completed);
    jw_put_int(w, "failed", n->errors);
    jw_put_int(w, "percent", x->total ? ended * PERCENT / x->total : 0);
    jw_end_object(w);
    jw_key(w, STR("message"));
    jw_str(w, x->waits);
    jw_put_str(w, "reason_code", x->reason);
    jw_put_str(w, "cost", amount_decimal(&a, n->completed * x->cents));
    arena_release(&a);
}

void extraction_put(struct task *t, struct json_writer *w, const struct extract_task *x)
{
    api_put_fields(t, w, extraction_fields, x);
    extraction_put_status(w, x);
}

static int reply_status(int err, struct json_writer *w, const struct extract_task *x)
{
    if (!err)
        extraction_put_status(w, x);
    return err;
}

int extraction_status(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_task x;
    return reply_status(
        extract_task_get(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"), &x), w,
        &x);
}

int extraction_cancel(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_task x;
    return reply_status(
        extract_task_cancel(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"), &x),
        w, &x);
}

/* What is tried again counts like what is new: it asks the AI once more. */
int extraction_retry(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract *x = c->node->extract;
    struct str id = http_param(c->x, "task_id");
    struct limit_taken taken = {.count = 0};
    struct extract_task k;
    int err = extract_task_get(t, x, c->session.uid, id, &k);
    if (!err && k.counts.errors)
        err = api_limit_take(t, c, LIMIT_EXTRACTION, k.counts.errors, &taken);
    if (err)
        return err;
    err = extract_task_retry(t, x, c->session.uid, id, &k);
    if (err && err != ERR_UNCERTAIN && taken.count)
        limit_return(t, c->node->limits, &taken);
    return reply_status(err, w, &k);
}

int64_t extraction_place(const struct api_call *c)
{
    int64_t place = 0;
    bool number = str_to_i64(http_param(c->x, "place"), &place);
    return number && place > 0 && place <= EXTRACT_DOCUMENTS_MAX ? place : 0;
}

int extraction_row_retry(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract *x = c->node->extract;
    struct str id = http_param(c->x, "task_id");
    struct limit_taken taken = {.count = 0};
    struct extract_task k;
    struct extract_row row;
    int err = extract_task_find(t, x, c->session.uid, id, &k);
    if (!err)
        err = extract_row_read(t, x, &k, extraction_place(c), &row);
    if (!err && str_eq(row.state, STR("error")))
        err = api_limit_take(t, c, LIMIT_EXTRACTION, 1, &taken);
    if (err)
        return err;
    err = extract_row_retry(t, x, c->session.uid, id, extraction_place(c), &k);
    if (err && err != ERR_UNCERTAIN && taken.count)
        limit_return(t, c->node->limits, &taken);
    return reply_status(err, w, &k);
}

int extractions_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str cursor = api_text(c, "cursor");
    int64_t below = INT64_MAX, limit = 20;
    struct extract_page page;
    if (cursor.p && (!str_to_i64(cursor, &below) || below < 1))
        return api_refuse(t, c, "cursor", "is no cursor of this list");
    (void)api_int(c, "limit", &limit);
    int err = extract_task_list(t, c->node->extract, c->session.uid, below, limit, &page);
    if (err)
        return err;
    jw_put_array(w, "tasks");
    for (size_t i = 0; i < page.count; i++) {
        jw_object(w);
        extraction_put(t, w, &page.list[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_key(w, STR("next"));
    jw_str(w, page.next ? str_int(task_arena(t), page.next) : STR_NULL);
    return 0;
}

/* --- what requests have --- */

#define WISH_FIELDS                                                                                \
    {"template_id", API_TEXT, .least = 1, .most = TEMPLATE_ID_CHARS,                               \
     .about = "of a template of yours, or a ready one"},                                           \
        {"language", API_TEXT, .optional = true, .choices = TEMPLATE_LANGUAGES,                    \
         .about = "of a ready template; en if absent"},                                            \
        {"document_ids",                                                                           \
         API_TEXTS,                                                                                \
         .optional = true,                                                                         \
         .least = 1,                                                                               \
         .most = EXTRACT_DOCUMENTS_MAX,                                                            \
         .item_most = 64,                                                                          \
         .about = "documents of yours; or query_id"},                                              \
        {"query_id",                                                                               \
         API_TEXT,                                                                                 \
         .optional = true,                                                                         \
         .least = 1,                                                                               \
         .most = 64,                                                                               \
         .about = "a run that is DONE or CANCELLED, and archived: its relevant papers"},           \
    {                                                                                              \
        "dois", API_TEXTS, .optional = true, .least = 1, .most = EXTRACT_DOCUMENTS_MAX,            \
                           .item_most = 255, .about = "of that run: these papers instead"          \
    }
const struct api_field extraction_estimate_body[] = {WISH_FIELDS, API_END};
const struct api_field extraction_estimate_reply[] = {
    {"documents", API_INT, .most = EXTRACT_DOCUMENTS_MAX, .about = "that it is about"},
    {"cost", API_MONEY, .about = "if each of them is completed"},
    {"simulated", API_BOOL,
     .about = "the server has no AI but its simulated one: values would mean nothing"},
    API_FREE_FIELDS,
    API_END,
};
const struct api_field extraction_submit_body[] = {
    WISH_FIELDS,
    {"name", API_TEXT, .optional = true, .most = EXTRACT_NAME_CHARS, .about = "for yourself"},
    {"project_id", API_TEXT, .optional = true, .least = 1, .most = 64,
     .about = "of yours; your first one if absent"},
    {"webhook", API_TEXT, .optional = true, .least = 1, .most = HOOK_URL_CHARS,
     .about = "https address that is called when the task is completed"},
    {API_REQUEST_ID_FIELD},
    API_END,
};
const struct api_field extraction_submit_reply[] = {
    {"taskId", API_TEXT, .most = OWN_ID_CHARS, .about = "of the task"},
    {"total", API_INT, .most = EXTRACT_DOCUMENTS_MAX, .about = "documents that it is about"},
    {"webhook_secret", API_TEXT, .optional = true, .most = 128, .secret = true,
     .about = "what calls to the webhook are signed with"},
    API_END,
};
const struct api_field extractions_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = EXTRACT_PAGE_MAX,
     .about = "tasks on a page; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 20,
     .about = "next of the page before"},
    API_END,
};
const struct api_field extractions_reply[] = {
    {"tasks", API_OBJECTS, .about = "the newest first", .fields = extraction_fields},
    {"next", API_TEXT, .optional = true, .most = 20,
     .about = "cursor of the next page; null: none"},
    API_END,
};
