/* A document is worked on: asked, kept, paid (extract.h). Each step looks at what the row has, so
 * that a node that goes on after another repeats nothing that was kept. The engine brings the row
 * to its end, many at a time. */
#include "app/extract/task/extract_private.h"
#include "app/extract/fields/parts.h"
#include "app/extract/fields/prompt.h"
#include "corpus/quote.h"
#include "engine/ai/ai.h"
#include "engine/jobs/pay.h"
#include "engine/setup/config.h"

struct working {
    struct extract *extract;
    const struct job *job;
    bool final; /* nothing is left to do, or a later version of the row has its own job */
    struct extract_job_row row; /* as it was found; goes on with what is done */
    const struct extract_template *template;
    struct extract_values values;
};

static int after(struct task *t, const struct working *w, const char *step)
{
    return w->extract->dies ? w->extract->dies(t, step) : 0;
}

/* --- the row --- */

#define OF_THIS     " WHERE id = ? AND version = ? AND state IN ('pending', 'extracting')"
#define ARGS_MAX    5
#define TITLE_CHARS 1000

/* Changes the row in the version that is worked on; statement ends with OF_THIS. w->final: there is
 * no such row any more. What was so before is not counted as affected. */
static int change(struct task *t, struct working *w, const char *statement,
                  const struct sql_value *args, size_t count)
{
    struct sql_pool *sql = w->extract->node->sql;
    struct sql_value v[ARGS_MAX + 2], id = sql_text(w->job->id), n = sql_int(w->job->version);
    struct sql_rows r;
    check(count <= ARGS_MAX);
    for (size_t i = 0; i < count; i++)
        v[i] = args[i];
    v[count] = id;
    v[count + 1] = n;
    int err = sql_argv(t, sql, statement, count + 2, v, &r);
    if (err || r.affected)
        return err;
    err = sql_call(t, sql, &r, "SELECT 1 FROM extraction_result" OF_THIS, id, n);
    w->final = !err && r.count == 0;
    return err;
}
#define CHANGE(t, w, statement, ...)                                                               \
    change((t), (w), statement OF_THIS, (const struct sql_value[]){__VA_ARGS__},                   \
           sizeof((const struct sql_value[]){__VA_ARGS__}) / sizeof(struct sql_value))

/* --- asking --- */

/* What keeps the service from answering is for the user to see while the document waits. */
static int say_it_waits(struct task *t, struct working *w, int err, const char *reason)
{
    struct str why = str_dup(task_arena(t), str_of(task_error(t)));
    if (CHANGE(t, w, "UPDATE extraction_result SET waits = LEFT(?, 1000), waits_code = ?",
               sql_text(why), sql_text(str_of(reason))) == ERR_CANCELED)
        return ERR_CANCELED;
    return task_fail(t, err, "%.*s", STR_ARG(why));
}

/* The complaint is kept, so that a node that goes on knows it. After the last one all begins anew,
 * if the document is tried again by hand. */
static int wrong(struct task *t, struct working *w, const char *complaint)
{
    w->row.asks++;
    w->row.complaint = str_of(complaint);
    int err = CHANGE(t, w,
                     "UPDATE extraction_result SET asks = ?, complaint = LEFT(?, 1000),"
                     " waits = NULL, waits_code = NULL",
                     sql_int(w->row.asks < EXTRACT_ASKS_MAX ? w->row.asks : 0),
                     sql_text(str_of(complaint)));
    if (err || w->final || w->row.asks < EXTRACT_ASKS_MAX)
        return err;
    job_reason(w->job, EXTRACT_BAD_ANSWER);
    return task_fail(t, ERR_INVALID, "the AI gave no answer that fits the template: %s", complaint);
}

static const char *reason_of(int err, const struct extract_answer *a)
{
    return a->reason                                    ? a->reason
           : err == ERR_UNAVAILABLE || err == ERR_PROTO ? EXTRACT_SERVICE_DOWN
           : err == ERR_REFUSED                         ? EXTRACT_REFUSED
           : err == ERR_TIMEOUT                         ? EXTRACT_TOO_SLOW
                                                        : JOB_OTHER;
}

/* Until an answer fits, or there is none. */
static int ask_part(struct task *t, struct working *w, struct extract_query *q,
                    struct extract_values *out)
{
    struct extract *x = w->extract;
    for (;;) {
        struct extract_answer answer = {.complaint = NULL};
        q->complaint = w->row.complaint;
        int err = x->ask(t, x, q, &answer);
        err = err ? ai_job_error(t, w->extract->node->ai, err) : 0;
        if (err) {
            job_reason(w->job, reason_of(err, &answer));
            return err == ERR_UNAVAILABLE ? say_it_waits(t, w, err, reason_of(err, &answer)) : err;
        }
        w->row.tokens += answer.tokens;
        metric_add(x->asks, 1);
        metric_add(x->wrong, answer.complaint != NULL);
        if (!answer.complaint) {
            w->row.simulated |= answer.simulated;
            w->row.complaint = STR_NULL;
            w->row.asks = 0;
            *out = answer.values;
            return 0;
        }
        err = wrong(t, w, answer.complaint);
        if (err || w->final)
            return err;
    }
}

/* --- keeping --- */

static struct str result_of(struct task *t, const struct working *w)
{
    struct buf b;
    struct json_writer j;
    buf_init(&b);
    jw_init(&j, &b);
    extract_values_put(&j, w->template, &w->values);
    struct str s = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return s;
}

/* The values of the parts so far: a node that goes on asks about the next one. */
static int keep_part(struct task *t, struct working *w)
{
    int err = CHANGE(t, w,
                     "UPDATE extraction_result SET result = ?, parts = ?, parts_done = ?,"
                     " tokens = ?, simulated = ?, asks = 0, complaint = NULL, waits = NULL,"
                     " waits_code = NULL",
                     sql_text(result_of(t, w)), sql_int(w->row.parts), sql_int(w->row.parts_done),
                     sql_int(w->row.tokens), sql_int(w->row.simulated));
    return err || w->final ? err : after(t, w, "part");
}

/* All values, and that the payment begins: from here on it cannot be cancelled. */
static int keep_all(struct task *t, struct working *w, int64_t token)
{
    const struct extract_source *s = &w->row.source;
    struct extract_kept kept = {.number = w->row.number,
                                .result = result_of(t, w),
                                .text = s->document_id.p ? STR_NULL : s->text,
                                .title = extract_first_chars(s->title, TITLE_CHARS),
                                .parts = w->row.parts,
                                .tokens = w->row.tokens,
                                .token = token,
                                .simulated = w->row.simulated};
    bool done;
    extract_flags_of(task_arena(t), w->template, &w->values, &kept.flags);
    int err = extract_job_keep(t, w->extract, w->job, &kept, &done);
    w->final = !err && !done;
    return err || w->final ? err : after(t, w, "keep");
}

/* --- the document --- */

/* What was kept of the first parts counts if the text is cut as it was then. */
static int resume(struct task *t, struct working *w, size_t count)
{
    struct arena *a = task_arena(t);
    bool same = w->row.parts == (int64_t)count && w->row.parts_done > 0 && w->row.kept.p;
    extract_values_init(a, w->template, &w->values);
    if (same && extract_values_read(a, w->template, w->row.kept, &w->values))
        return task_fail(t, ERR_INTERNAL, "the values that were kept cannot be read");
    if (!same)
        w->row.parts_done = 0;
    w->row.parts = (int64_t)count;
    return 0;
}

static int ask_parts(struct task *t, struct working *w, const struct extract_part *parts,
                     size_t count)
{
    struct arena *a = task_arena(t);
    struct extract_query q = {
        .question = w->row.frozen->question,
        .reading = {.template = w->template,
                    .document = quote_text_new(a, w->row.source.text),
                    .whole = count == 1},
        .count = count,
        .model = w->row.frozen->model,
        .asks = w->job->asks,
    };
    int err = job_ask_begin(t, w->job);
    for (size_t i = (size_t)w->row.parts_done; !err && !w->final && i < count; i++) {
        struct extract_values found;
        q.reading.part = i;
        q.part = str_from(w->row.source.text.p + parts[i].begin, parts[i].end - parts[i].begin);
        err = ask_part(t, w, &q, &found);
        if (err || w->final)
            return err;
        extract_values_merge(a, w->template, &w->values, &found);
        w->row.parts_done++;
        if (i + 1 < count)
            err = keep_part(t, w);
    }
    return err;
}

/* Until w->values has those of all parts. */
static int obtain(struct task *t, struct working *w)
{
    struct arena *a = task_arena(t);
    struct extract_part *parts;
    int err = extract_source_read(t, w->extract, w->job->uid, &w->row.source);
    const char *reason = w->row.source.reason;
    if (err) {
        job_reason(w->job, reason);
        return err == ERR_UNAVAILABLE && reason ? say_it_waits(t, w, err, reason) : err;
    }
    size_t count =
        extract_parts(a, w->row.source.text, w->extract->node->config->extract_part_tokens, &parts);
    err = resume(t, w, count);
    if (!err)
        err = ask_parts(t, w, parts, count);
    job_ask_end(w->job);
    if (err || w->final || !extract_values_missing(w->template, &w->values).p || count == 1)
        return err;
    job_reason(w->job, EXTRACT_FIELD_MISSING);
    return task_fail(t, ERR_INVALID, "%.*s was found in no part of the document",
                     STR_ARG(extract_values_missing(w->template, &w->values)));
}

/* --- paying --- */

/* Without money, or while the account is stopped, it waits, and can be cancelled: unless a node
 * that took the job over, because this one stood still, is paying meanwhile. */
static int refused(struct task *t, struct working *w, int64_t token, int held)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    int err = after(t, w, "refused");
    if (!err)
        err = CHANGE(t, w, "UPDATE extraction_result SET paying = IF(paying = ?, 0, paying)",
                     sql_int(token));
    if (err)
        job_reason(w->job, NULL);
    return err ? err : task_fail(t, held, "%s", why);
}

/* Values that were kept in full, and the payment was not made. */
static int begin_again(struct task *t, struct working *w, int64_t token)
{
    return CHANGE(t, w,
                  "UPDATE extraction_result SET paying = ?, waits = NULL, waits_code = NULL,"
                  " changed_at = UTC_TIMESTAMP(3)",
                  sql_int(token));
}

/* A payment that is not certain is made certain by another try, which does not count: a row must
 * not end as an error that was paid. */
static int pay(struct task *t, struct working *w, int64_t token)
{
    int err = job_pay(t, w->extract->node->ledger, EXTRACT_QUEUE, w->job, w->row.cents);
    if (err == ERR_FUNDS || err == ERR_RATE)
        return refused(t, w, token, err);
    if (err && err_may_pass(err)) {
        const char *why = arena_strdup(task_arena(t), task_error(t));
        err = task_fail(t, ERR_UNAVAILABLE, "%s", why);
    }
    return err ? err : after(t, w, "pay");
}

static int work(struct task *t, struct working *w)
{
    int64_t token = (int64_t)(loop_random(task_loop(t)) >> 1 | 1);
    bool kept = w->row.parts > 0 && w->row.parts_done == w->row.parts;
    int err = kept ? begin_again(t, w, token) : obtain(t, w);
    if (!err && !w->final && !kept)
        err = keep_all(t, w, token);
    if (!err && !w->final)
        err = pay(t, w, token);
    return err;
}

int extract_work(struct task *t, void *arg, const struct job *j)
{
    struct working w = {.extract = arg, .job = j};
    int err = extract_job_read(t, w.extract, j, &w.row);
    if (err)
        return err;
    if (!w.row.open)
        return JOB_WRITTEN;
    w.template = &w.row.frozen->template;
    err = work(t, &w);
    extract_frozen_put(w.row.frozen);
    if (err || w.final)
        return err ? err : JOB_WRITTEN;
    metric_add(w.extract->completed, 1);
    return 0;
}
