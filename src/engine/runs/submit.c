/* How a run begins: its row, then Redis. */
#include <stdio.h>
#include <unictype.h>
#include <unistr.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/runs/promise.h"
#include "engine/runs/row.h"
#include "engine/runs/run.h"
#include "engine/runs/scope.h"

/* --- the question --- */

static const struct str spaces[] = {STR(" "),  STR("\t"),     STR("\n"),
                                    STR("\r"), STR("\u00a0"), STR("\u3000")};

/* The space that s begins with, or ends with; NULL: none. */
static const struct str *space_at(struct str s, bool end)
{
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        size_t n = spaces[i].n;
        if (s.n >= n && str_eq(str_from(end ? s.p + s.n - n : s.p, n), spaces[i]))
            return &spaces[i];
    }
    return NULL;
}

/* Spaces of all kinds, format and control characters cannot be seen; nor can the blank of
 * braille, which Unicode has among the symbols. */
static bool visible(ucs4_t c)
{
    return c != 0x2800 && !uc_is_property_default_ignorable_code_point(c) &&
           !uc_is_general_category_withtable(c, UC_CATEGORY_MASK_Z | UC_CATEGORY_MASK_C);
}

static bool any_visible(struct str s)
{
    ucs4_t c;
    for (size_t at = 0; at < s.n;) {
        int bytes = u8_mbtouc(&c, (const uint8_t *)s.p + at, s.n - at);
        if (bytes <= 0)
            return false;
        if (visible(c))
            return true;
        at += (size_t)bytes;
    }
    return false;
}

struct str run_question(struct str typed)
{
    for (const struct str *space; (space = space_at(typed, false));)
        typed = str_from(typed.p + space->n, typed.n - space->n);
    for (const struct str *space; (space = space_at(typed, true));)
        typed.n -= space->n;
    return any_visible(typed) ? typed : str_from(typed.p, 0);
}

/* --- of the papers nearest to a text --- */

void run_put_nearest(struct json_writer *j, const struct run_nearest *n,
                     const struct catalog_choice *choice)
{
    jw_put_object(j, "nearest");
    jw_put_str(j, "q", n->text);
    jw_put_int(j, "n", n->papers);
    jw_end_object(j);
    if (!choice->journal_count)
        return;
    jw_put_array(j, "chosen");
    for (size_t i = 0; i < choice->journal_count; i++)
        jw_str(j, choice->journals[i]);
    jw_end_array(j);
}

/* --- repeats --- */

static bool same_nearest(const struct json *stored, const struct run_nearest *n)
{
    struct run_nearest was;
    bool nearest = run_nearest_read(stored, &was);
    return n ? nearest && str_eq(was.text, n->text) && was.papers == n->papers : !nearest;
}

/* stored: objects with names, or names. */
static bool same_journals(const struct json *stored, const struct catalog_choice *choice)
{
    struct map *names = map_new();
    size_t count = 0, found = 0;
    json_each (j, stored) {
        struct str name = json_str(j->type == JSON_STRING ? j : json_get(j, "name"));
        if (name.p)
            map_set(names, name, names);
        count++;
    }
    for (size_t i = 0; i < choice->journal_count; i++)
        found += map_get(names, choice->journals[i]) != NULL;
    map_free(names);
    return count == choice->journal_count && found == count;
}

/* Prices may have changed since, and are no part of what was asked for. */
static bool same_request(struct task *t, const struct run_request *q, struct str params,
                         struct str original)
{
    const struct json *stored;
    int64_t from, to;
    if (json_parse(task_arena(t), params, &stored, NULL) ||
        !str_eq(json_str(json_get(stored, "question")), q->question) ||
        !str_eq(original, q->original_query_id))
        return false;
    return !q->choice ||
           (json_int(json_get(stored, "year_from"), &from) &&
            json_int(json_get(stored, "year_to"), &to) && from == q->choice->year_from &&
            to == q->choice->year_to && same_nearest(stored, q->nearest) &&
            same_journals(json_get(stored, q->nearest ? "chosen" : "journals"), q->choice));
}

#define REPEATED                                                                                   \
    "SELECT query_id, search_params, original_query_id FROM query_log"                             \
    " WHERE uid = ? AND request_id = ?"

/* c NULL: on any connection. *conflict: the request_id was something else. */
static int find_repeated(struct task *t, struct sql_pool *sql, struct sql *c,
                         const struct run_request *q, char qid[RUN_ID_BYTES], bool *conflict)
{
    struct sql_rows r;
    struct sql_value uid = sql_int(q->uid), id = sql_text(q->id);
    qid[0] = '\0';
    *conflict = false;
    if (!q->id.p)
        return 0;
    int err = c ? sql_on(t, c, &r, REPEATED, uid, id) : sql_call(t, sql, &r, REPEATED, uid, id);
    if (err || r.count == 0)
        return err;
    *conflict = !same_request(t, q, r.cells[1].s, r.cells[2].s);
    snprintf(qid, RUN_ID_BYTES, "%.*s", STR_ARG(r.cells[0].s));
    return 0;
}

static int refuse_request(struct task *t, const struct run_request *q)
{
    return task_fail(t, ERR_CONFLICT,
                     "request_id %.*s has submitted another run: question, journals, years, what "
                     "its papers are nearest to or the run that is distilled differ",
                     STR_ARG(q->id));
}

int run_repeated(struct task *t, const struct runs *r, const struct run_request *q,
                 char qid[RUN_ID_BYTES])
{
    bool conflict;
    int err = find_repeated(t, r->sql, NULL, q, qid, &conflict);
    return !err && conflict ? refuse_request(t, q) : err;
}

/* --- of any kind --- */

struct entering {
    const struct run_entry *entry;
    char *qid;
    bool conflict; /* the request_id was another run */
    struct run_row row;
};

static int check_queued(struct task *t, struct sql *c, int64_t uid)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT COUNT(*) FROM query_log WHERE uid = ? AND status = 'QUEUED'",
                     sql_int(uid));
    if (!err && r.cells[0].i >= RUN_QUEUED_MAX)
        err = task_fail(t, ERR_RATE, "%d of your runs are waiting already", RUN_QUEUED_MAX);
    return err;
}

static int insert_run(struct task *t, struct sql *c, struct entering *x)
{
    const struct run_entry *e = x->entry;
    const struct run_request *q = e->request;
    struct str qid = str_of(x->qid), original = q->original_query_id;
    int err =
        sql_on(t, c, NULL,
               "INSERT INTO query_log (query_id, uid, search_params, created_at, changed_at,"
               " status, total_papers, is_distillation, original_query_id, ceiling, request_id)"
               " VALUES (?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'QUEUED', ?, ?, ?, ?, ?)",
               sql_text(qid), sql_int(q->uid), sql_text(e->params), sql_int(e->papers),
               sql_int(original.p != NULL), sql_text(original), sql_int(e->cents), sql_text(q->id));
    if (!err && original.p)
        err = sql_on(t, c, NULL,
                     "INSERT INTO distillation (original_query_id, query_id) VALUES (?, ?)",
                     sql_text(original), sql_text(qid));
    return err ? err : run_row_lock(t, c, (struct run_id){q->uid, qid}, &x->row);
}

static int repeats(struct task *t, struct sql *c, void *arg, bool *repeated)
{
    struct entering *x = arg;
    int err = find_repeated(t, NULL, c, x->entry->request, x->qid, &x->conflict);
    *repeated = !err && x->qid[0];
    return err;
}

static int write_run(struct task *t, struct sql *c, void *arg)
{
    struct entering *x = arg;
    const struct run_entry *e = x->entry;
    int err = check_queued(t, c, e->request->uid);
    if (err)
        return err;
    loop_token(task_loop(t), x->qid, RUN_ID_BYTES);
    if (e->also)
        err = e->also(t, c, str_of(x->qid), e->arg);
    return err ? err : insert_run(t, c, x);
}

int run_enter(struct task *t, const struct runs *r, const struct run_entry *e,
              char qid[RUN_ID_BYTES])
{
    struct entering x = {.entry = e, .qid = qid};
    struct promise p = {.uid = e->request->uid,
                        .cents = e->cents,
                        .what = "run",
                        .repeats = repeats,
                        .write = write_run,
                        .arg = &x};
    bool repeated = false;
    int err = e->judge ? scope_keep_prompt(t, r->sql, e->judge) : 0;
    if (!err)
        err = promise_make(t, r, &p, &repeated);
    if (!err && x.conflict)
        err = refuse_request(t, e->request);
    if (err || repeated)
        return err;
    cache_touch(t, r->cache, e->request->uid);
    if (run_announce(t, r, &x.row))
        log_warn("run", "run %s is submitted but not in Redis yet, the keeper will retry: %s", qid,
                 task_error(t));
    return 0;
}

void run_put_journals(struct json_writer *j, const struct catalog_estimate_row *rows, size_t count)
{
    jw_put_array(j, "journals");
    for (size_t i = 0; i < count; i++) {
        jw_object(j);
        jw_put_str(j, "name", rows[i].journal);
        jw_put_int(j, "price", rows[i].price);
        jw_put_int(j, "papers", rows[i].papers);
        jw_end_object(j);
    }
    jw_end_array(j);
}

int64_t run_price(const struct json *params, struct str journal)
{
    int64_t price = -1;
    json_each (j, json_get(params, "journals"))
        if (str_eq(json_str(json_get(j, "name")), journal))
            (void)json_int(json_get(j, "price"), &price);
    return price;
}

/* --- of screening --- */

/* The choice of the run with the price of each paper, and how they are judged: frozen against later
 * changes. */
static struct str params_of(struct task *t, const struct run_wish *w,
                            const struct catalog_estimate *e, const struct judge_origin *judge)
{
    struct buf b;
    struct json_writer j;
    jw_begin(&j, &b);
    jw_put_str(&j, "question", w->question);
    jw_put_int(&j, "year_from", w->choice.year_from);
    jw_put_int(&j, "year_to", w->choice.year_to);
    if (e->bare >= 0)
        jw_put_int(&j, "without_abstract", e->bare);
    jw_put_int(&j, "load", e->load);
    scope_put_judge(&j, judge);
    run_put_journals(&j, e->rows, w->choice.journal_count);
    return jw_finish(&j, task_arena(t));
}

static int submit(struct task *t, const struct runs *r, const struct run_wish *w,
                  const struct run_request *q, char qid[RUN_ID_BYTES], struct str *unknown)
{
    struct catalog_estimate e;
    bool degraded;
    if (!cache_trusts_redis(r->cache))
        return task_fail(t, ERR_UNAVAILABLE, "runs cannot be submitted while Redis is away");
    int err = catalog_price(t, r->catalog, &w->choice, &e, unknown, &degraded);
    if (!err && e.papers == 0)
        err = task_fail(t, ERR_INVALID, "there are no papers in these journals and years");
    if (err)
        return err;
    const struct judge_origin *judge = scope_judge_now(t, r);
    struct run_entry entry = {.request = q,
                              .judge = judge,
                              .papers = e.papers,
                              .cents = e.cents,
                              .params = params_of(t, w, &e, judge)};
    return run_enter(t, r, &entry, qid);
}

int run_submit(struct task *t, const struct runs *r, int64_t uid, const struct run_wish *w,
               char qid[RUN_ID_BYTES], struct str *unknown)
{
    struct run_request q = {
        .uid = uid, .id = w->request_id, .question = w->question, .choice = &w->choice};
    int err = run_repeated(t, r, &q, qid);
    return err || qid[0] ? err : submit(t, r, w, &q, qid, unknown);
}
