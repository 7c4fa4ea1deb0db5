/* Copies an archived run back from MySQL to Redis, before it is reopened. */
#include "engine/runs/archive_private.h"
#include "engine/runs/results_private.h"
#include "engine/runs/row.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define ON_DISK_MS 2000 /* Redis writes its file once a second */

struct recall {
    const struct archive *archive;
    struct run_id id;
    bool archived;
    struct run_row row;
};

/* If the run is not reopened after all, archive_expire sets the TTL of its keys again. */
static int note(struct task *t, struct sql *c, void *arg)
{
    struct recall *x = arg;
    int err = run_row_lock(t, c, x->id, &x->row);
    x->archived = !err && x->row.archived;
    if (err || !x->archived)
        return err;
    return sql_on(t, c, NULL,
                  "INSERT INTO archive_outbox (query_id, uid, changed_ms, told_at)"
                  " VALUES (?, ?, ?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                  " changed_ms = VALUES(changed_ms), told_at = VALUES(told_at)",
                  sql_text(x->id.qid), sql_int(x->id.uid), sql_int(x->row.changed_ms));
}

/* First: no key of the run may expire before it is reopened. */
static int look(struct task *t, const struct recall *x, bool *whole)
{
    enum { ASKED = 5 };
    struct arena *a = task_arena(t);
    struct str status = key_query_status(a, x->id.uid, x->id.qid);
    struct str result = key_result(a, x->id.uid, x->id.qid);
    struct str arrivals = key_arrivals(a, x->id.uid, x->id.qid);
    struct str relevant = key_relevant(a, x->id.uid, x->id.qid);
    struct str failed = key_failed(a, x->id.uid, x->id.qid);
    const struct str keys[ASKED] = {status, result, arrivals, relevant, failed};
    struct redis_batch b;
    const struct redis_reply *const *r;
    redis_batch_init(&b, t, x->archive->redis);
    for (size_t i = 0; i < ASKED; i++)
        redis_batch_add(&b, keys[i], STR("PERSIST"), keys[i]);
    redis_batch_add(&b, status, STR("HGET"), status, STR("state"));
    redis_batch_add(&b, result, STR("HLEN"), result);
    redis_batch_add(&b, arrivals, STR("LLEN"), arrivals);
    redis_batch_add(&b, relevant, STR("LLEN"), relevant);
    redis_batch_add(&b, failed, STR("SCARD"), failed);
    int err = redis_batch_run(&b, &r);
    for (size_t i = 0; !err && i < ASKED; i++)
        err = redis_verdict(t, r[i], NULL);
    if (err)
        return err;
    r += ASKED;
    *whole = r[0]->type == REDIS_STRING && r[1]->integer == x->row.finished &&
             r[2]->integer == x->row.finished && r[3]->integer == x->row.relevant &&
             r[4]->integer == x->row.failed;
    return 0;
}

static int step(struct task *t, const struct recall *x, struct str name, struct script_list words,
                int64_t *results)
{
    struct arena *a = task_arena(t);
    int64_t uid = x->id.uid, found = 0;
    struct str qid = x->id.qid;
    int err =
        SCRIPT_NUMBER(t, x->archive->redis, run_recall, &found,
                      .status = key_query_status(a, uid, qid), .results = key_result(a, uid, qid),
                      .arrivals = key_arrivals(a, uid, qid), .relevant = key_relevant(a, uid, qid),
                      .failed = key_failed(a, uid, qid), .progress = key_progress(a, uid, qid),
                      .changed = str_int(a, x->row.changed_ms), .step = name, .words = words);
    if (!err && found < 0)
        err = task_fail(t, ERR_CONFLICT, "the run goes on already");
    if (!err)
        *results = found;
    return err;
}

static int add(struct task *t, const struct recall *x, const struct result_row *rows, size_t count)
{
    enum { WORDS = 3 }; /* for each paper */
    struct str *words = ARENA_ARRAY(task_arena(t), struct str, WORDS * count), *at = words;
    struct buf json;
    int64_t results;
    buf_init(&json);
    for (size_t i = 0; i < count; i++) {
        const struct result *r = &rows[i].result;
        buf_clear(&json);
        result_write(&json, r);
        *at++ = rows[i].doi;
        *at++ = str_printf(task_arena(t), "%c", outcome_letter(r->outcome));
        *at++ = str_dup(task_arena(t), buf_str(&json));
    }
    buf_release(&json);
    return step(t, x, STR("add"), (struct script_list){words, WORDS * count}, &results);
}

/* Always from MySQL: results_each would choose the store by the row, which may change. */
static int add_all(struct task *t, const struct recall *x)
{
    const struct results from = {.redis = x->archive->redis, .sql = x->archive->sql};
    struct results_place at = {.archived = true};
    int err = 0;
    for (bool more = true; more && !err;) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct results_page page = {.count = 0};
        err = results_mysql_page(t, &from, x->id, RESULTS_ALL, &at, RESULTS_LIMIT_MAX, &page);
        if (!err && page.count)
            err = add(t, x, page.rows, page.count);
        more = !err && page.next.p && results_cursor_read(page.next, RESULTS_ALL, &at);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

static int load(struct task *t, const struct recall *x)
{
    struct arena *a = task_arena(t);
    struct redis *r = x->archive->redis;
    struct str key = key_result(a, x->id.uid, x->id.qid);
    struct generation before = generation_at(r, key);
    int64_t results = 0;
    const struct str status[] = {str_of(run_state_name(x->row.state)), str_int(a, x->row.finished),
                                 str_int(a, x->row.relevant), str_int(a, x->row.failed),
                                 str_int(a, x->row.cents)};
    int err = step(t, x, STR("begin"), (struct script_list){NULL, 0}, &results);
    if (!err)
        err = add_all(t, x);
    if (!err)
        err = step(t, x, STR("end"), (struct script_list){status, sizeof status / sizeof *status},
                   &results);
    /* Wait until the results are on disk: a Redis that restarts without them would still have a seq
     * above their charges, and ledger_repair would miss them. */
    if (!err)
        err = task_sleep(t, ON_DISK_MS);
    if (!err && (results != x->row.finished || !generation_lasts_at(r, key, &before)))
        err = task_fail(t, ERR_UNAVAILABLE, "the run could not be brought back; try again");
    return err;
}

/* What is not in MySQL yet goes there before it can be tried again (BIL-7). */
static int close_first(struct task *t, struct recall *x)
{
    struct archive mine = *x->archive;
    struct archive_run run = {
        .id = x->id, .state = str_of(run_state_name(RUN_DONE)), .changed_ms = x->row.changed_ms};
    mine.turn = NULL;
    int err = archive_run(t, &mine, &run, &x->archived);
    if (!err && !x->archived)
        err = task_fail(t, ERR_CONFLICT, "the run is being closed: try again in a moment");
    return err ? err : sql_tx(t, x->archive->sql, note, x);
}

int archive_recall(struct task *t, const struct archive *a, struct run_id id)
{
    struct recall x = {.archive = a, .id = id};
    bool whole = false;
    int err = sql_tx(t, a->sql, note, &x);
    if (!err && !x.archived && x.row.state == RUN_DONE)
        err = close_first(t, &x);
    if (!err && x.archived)
        err = look(t, &x, &whole);
    if (!err && x.archived && !whole)
        err = load(t, &x);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
}
