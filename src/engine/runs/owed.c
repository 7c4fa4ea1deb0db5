#include "engine/runs/owed.h"

#include "base/log.h"
#include "base/sha256.h"
#include "engine/runs/live.h"
#include "engine/runs/row.h"
#include "engine/store/due.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define HALT_MS      600 /* that a pause waits for MySQL before it goes to Redis */
#define HEARD_MS     150 /* after which all crews have read the stream of changes */
#define ANNOUNCED_MS 60000
#define TOKEN_BYTES  8
#define AT_ONCE      500

/* --- notes --- */

static struct str note_of(struct task *t, enum run_state wanted)
{
    uint8_t bytes[TOKEN_BYTES];
    char token[2 * TOKEN_BYTES + 1];
    loop_secret(task_loop(t), bytes, sizeof bytes);
    hex_write(bytes, sizeof bytes, token);
    return str_printf(task_arena(t), "%s %s", run_state_name(wanted), token);
}

enum run_event run_owed_event(struct str note)
{
    return str_starts(note, STR("CANCELLED ")) ? RUN_TERMINATE : RUN_PAUSE;
}

int run_owed(struct task *t, struct redis *r, struct run_id id, struct str *note)
{
    struct str status = key_query_status(task_arena(t), id.uid, id.qid);
    const struct redis_reply *reply;
    int err = redis_call(t, r, status, &reply, STR("HGET"), status, STR("owed"));
    if (!err)
        *note = reply->type == REDIS_STRING ? reply->str : STR_NULL;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

int run_owed_drop(struct task *t, struct redis *r, struct run_id id, struct str note)
{
    int err = SCRIPT(t, r, run_settle, NULL,
                     .status = key_query_status(task_arena(t), id.uid, id.qid), .note = note);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* --- pause and terminate in Redis --- */

static int run_script(struct task *t, const struct runs *r, struct run_id id, enum run_state wanted,
                      struct str *state)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *reply;
    int err =
        SCRIPT(t, r->redis, run_halt, &reply, .status = key_query_status(a, id.uid, id.qid),
               .pause = key_pause_signal(a, id.uid, id.qid),
               .terminate = key_terminate_signal(a, id.uid, id.qid),
               .pending = key_pending(a, id.uid, id.qid),
               .inflight = key_inflight(a, id.uid, id.qid), .vain = key_vain(a, id.uid, id.qid),
               .state = str_of(run_state_name(wanted)), .note = note_of(t, wanted));
    if (!err && reply->type != REDIS_STRING)
        err = task_fail(t, ERR_PROTO, "script run_halt returned something else");
    if (!err)
        *state = reply->str;
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
}

/* Best effort: dispatcher and crews look at the state by themselves, but later. Once this is over
 * no worker begins another paper. */
static void tell_workers(struct task *t, const struct runs *r, struct str name)
{
    int err = run_line_up(t, r->redis, name, STR("0"), false);
    if (!err)
        err = run_publish(t, r->redis, name);
    if (!err)
        err = backoff_wait(t, &(struct backoff){.ms = HEARD_MS});
    (void)err;
}

static int halt(struct task *t, const struct runs *r, struct run_id id, enum run_state wanted,
                enum run_state *state)
{
    struct arena *a = task_arena(t);
    struct str found = STR(""), name = run_name(a, id);
    struct run_row row;
    int err = run_row_away(t, r->redis, id, &row); /* what is no run is not announced */
    if (!err)
        err = redis_call(t, r->redis, key_owed, NULL, STR("ZADD"), key_owed,
                         str_int(a, loop_wall_ms(task_loop(t))), name);
    if (!err)
        err = run_script(t, r, id, wanted, &found);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    if (!run_state_parse(found, state))
        return task_fail(t, ERR_UNAVAILABLE, "the run is gone from Redis");
    if (*state != wanted)
        return task_fail(t, ERR_CONFLICT, "the run is %s", run_state_name(*state));
    tell_workers(t, r, name);
    log_info("run", "%.*s is %s in Redis; its row follows when MySQL answers", STR_ARG(id.qid),
             run_state_name(wanted));
    return 0;
}

int run_halt(struct task *t, const struct runs *r, struct run_id id, enum run_event e,
             enum run_state *state, bool *degraded)
{
    check(e == RUN_PAUSE || e == RUN_TERMINATE);
    int64_t old = task_deadline(t, HALT_MS);
    int err = run_control(t, r, id, e, "", state);
    task_deadline_restore(t, old);
    *degraded = !cache_trusts_redis(r->cache);
    if (!err_may_pass(err) || *degraded)
        return err;
    *degraded = true;
    return halt(t, r, id, e == RUN_PAUSE ? RUN_PAUSED : RUN_CANCELLED, state);
}

/* --- the rows follow --- */

/* An announcement may be ahead of its note, so it goes later. */
static int forget(struct task *t, const struct runs *r, struct str name, int64_t announced_ms)
{
    if (announced_ms > loop_wall_ms(task_loop(t)) - ANNOUNCED_MS)
        return 0;
    int64_t dropped;
    return due_drop(t, r->redis, key_owed, name, announced_ms, &dropped);
}

static int settle_one(struct task *t, const struct runs *r, struct str name, int64_t announced_ms)
{
    struct run_id id;
    int err = run_name_read(name, &id) ? run_settle(t, r, id) : 0;
    if (err && !err_is_outage(err)) {
        log_error("run", "%.*s: what its row is owed cannot be written, will retry: %s",
                  STR_ARG(name), task_error(t));
        return 0;
    }
    return err ? err : forget(t, r, name, announced_ms);
}

static int settle_page(struct task *t, const struct runs *r, int64_t from, size_t *count)
{
    struct arena *a = task_arena(t);
    const struct redis_reply *reply;
    int err = redis_call(t, r->redis, key_owed, &reply, STR("ZRANGE"), key_owed, str_int(a, from),
                         str_int(a, from + AT_ONCE - 1), STR("WITHSCORES"));
    *count = err || reply->type != REDIS_ARRAY ? 0 : reply->count / 2;
    for (size_t i = 0; !err && i < *count; i++) {
        int64_t at_ms = 0;
        struct arena_mark mark = arena_mark(a); /* rows have long parameters */
        (void)str_to_i64(reply->items[2 * i + 1]->str, &at_ms);
        err = settle_one(t, r, reply->items[2 * i]->str, at_ms);
        arena_reset(a, mark);
    }
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* What is passed over because members leave meanwhile comes with the next round. */
int run_settle_all(struct task *t, const struct runs *r)
{
    size_t count = AT_ONCE;
    int err = 0;
    for (int64_t from = 0; !err && count == AT_ONCE; from += AT_ONCE)
        err = settle_page(t, r, from, &count);
    return err;
}
