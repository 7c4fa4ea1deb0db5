/* Reconciles all users, on any node: applies the outbox to Redis, syncs records to MySQL.
 *
 * A uid is announced in sys:billing before a record is made. An announcement is dropped when it is
 * old and the queue is empty, never at once: between the announcement and the record the queue may
 * be empty. A record made more than ANNOUNCED_MS after its announcement is late, not lost: the next
 * record announces the user again, and the sweeper syncs before it evicts the balance. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/money/ledger_private.h"
#include "engine/store/due.h"
#include "engine/store/keys.h"

#define ANNOUNCED_MS 60000
#define MOVES_MAX    100  /* users of the outbox that are read at once */
#define USERS_MAX    1000 /* of the announced */
#define TROUBLE_MS   1000 /* first pause of the exponential backoff per user */
#define TROUBLE_MAX  60000
#define TROUBLED_MAX 10000

struct trouble {
    int64_t until_ms, pause_ms;
};

/* --- backoff per user --- */

static bool is_troubled(struct task *t, struct ledger *l, int64_t uid)
{
    struct trouble *x = map_get(l->troubled, str_int(task_arena(t), uid));
    return x && x->until_ms > loop_now_ms(task_loop(t));
}

static void note_trouble(struct task *t, struct ledger *l, int64_t uid)
{
    struct str key = str_int(task_arena(t), uid);
    struct trouble *x = map_get(l->troubled, key);
    if (!x && map_count(l->troubled) == TROUBLED_MAX)
        return; /* tried each time then */
    if (!x) {
        x = check_memory(calloc(1, sizeof *x));
        map_set(l->troubled, key, x);
    }
    x->pause_ms = x->pause_ms == 0 ? TROUBLE_MS : 2 * x->pause_ms;
    if (x->pause_ms > TROUBLE_MAX)
        x->pause_ms = TROUBLE_MAX;
    x->until_ms = loop_now_ms(task_loop(t)) + loop_jitter(task_loop(t), x->pause_ms);
}

/* Ends or extends the backoff of one user. Returns errors that end the round. */
static int settle(struct task *t, struct ledger *l, int64_t uid, const char *what, int err)
{
    if (!err)
        free(map_del(l->troubled, str_int(task_arena(t), uid)));
    if (!err || err_is_outage(err))
        return err;
    log_warn("ledger", "cannot carry over %s of user %lld, will retry: %s", what, (long long)uid,
             task_error(t));
    note_trouble(t, l, uid);
    return 0;
}

/* --- moves --- */

/* One page of the outbox, of users after *uid. */
static int drain_page(struct task *t, struct ledger *l, int64_t *uid, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, l->sql, &r,
                       "SELECT uid, move_no FROM ledger_outbox WHERE uid > ? ORDER BY uid LIMIT ?",
                       sql_int(*uid), sql_int(MOVES_MAX));
    *count = err ? 0 : r.count;
    for (size_t i = 0; !err && i < r.count; i++) {
        *uid = sql_row(&r, i)[0].i;
        if (!is_troubled(t, l, *uid))
            err = settle(t, l, *uid, "moves", ledger_carry_over(t, l, *uid, sql_row(&r, i)[1].i));
    }
    return err;
}

static int drain_outbox(struct task *t, struct ledger *l)
{
    int64_t uid = 0, total = 0;
    size_t count;
    int err;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = drain_page(t, l, &uid, &count);
        arena_reset(task_arena(t), mark);
        total += (int64_t)count;
    } while (!err && count == MOVES_MAX);
    metric_set(l->moves_waiting, total);
    return err;
}

/* --- records --- */

static int forget(struct task *t, struct ledger *l, int64_t uid, int64_t announced_ms)
{
    int64_t dropped;
    return due_drop(t, l->redis, key_billing, str_int(task_arena(t), uid), announced_ms, &dropped);
}

/* waiting: records in the queue. */
static int serve_user(struct task *t, struct ledger *l, int64_t uid, int64_t announced_ms,
                      int64_t waiting)
{
    if (waiting > 0)
        return is_troubled(t, l, uid) ? 0 : settle(t, l, uid, "records", ledger_sync(t, l, uid));
    bool old = announced_ms < loop_wall_ms(task_loop(t)) - ANNOUNCED_MS;
    return old ? forget(t, l, uid, announced_ms) : 0;
}

/* One page of the announced; *count: how many there were. */
static int sync_page(struct task *t, struct ledger *l, int64_t from, size_t *count, int64_t *total)
{
    const struct redis_reply *users;
    const struct redis_reply *const *lengths;
    struct redis_batch b;
    int err = redis_call(t, l->redis, key_billing, &users, STR("ZRANGE"), key_billing,
                         str_int(task_arena(t), from), str_int(task_arena(t), from + USERS_MAX - 1),
                         STR("WITHSCORES"));
    *count = err ? 0 : users->count / 2;
    if (err || *count == 0)
        return err;
    int64_t *uids = ARENA_ARRAY(task_arena(t), int64_t, *count);
    redis_batch_init(&b, t, l->redis);
    for (size_t i = 0; i < *count; i++) {
        if (!str_to_i64(users->items[2 * i]->str, &uids[i]))
            return ledger_alarm(
                t, l,
                "the set of announced users has a member that is no uid: users around it "
                "are not synced until it is removed (ZREM)");
        struct str key = key_billing_queue(task_arena(t), uids[i]);
        redis_batch_add(&b, key, STR("LLEN"), key);
    }
    err = redis_batch_run(&b, &lengths);
    for (size_t i = 0; !err && i < *count; i++) /* a user in backoff must not hold up the others */
        if (lengths[i]->type == REDIS_INT && !is_troubled(t, l, uids[i]))
            l->pace.waiting += lengths[i]->integer;
    /* Starts at a random user: nodes that all start with the same one would do the same work. */
    size_t first = loop_random(task_loop(t)) % *count;
    for (size_t k = 0; !err && k < *count; k++) {
        size_t i = (first + k) % *count;
        int64_t at = 0, waiting = lengths[i]->type == REDIS_INT ? lengths[i]->integer : 1;
        (void)str_to_i64(users->items[2 * i + 1]->str, &at);
        *total += waiting;
        err = serve_user(t, l, uids[i], at, waiting);
    }
    return err;
}

static int sync_all(struct task *t, struct ledger *l)
{
    int64_t total = 0;
    size_t count = 0;
    int err = 0;
    l->pace.waiting = 0;
    for (int64_t from = 0; !err && (from == 0 || count == USERS_MAX); from += USERS_MAX) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = sync_page(t, l, from, &count, &total);
        arena_reset(task_arena(t), mark);
    }
    if (!err)
        metric_set(l->records_waiting, total);
    return err;
}

int ledger_round(struct task *t, struct ledger *l)
{
    int err = drain_outbox(t, l);
    int synced = task_canceled(t) ? ERR_CANCELED : sync_all(t, l);
    return err ? err : synced;
}

int ledger_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn; /* runs on every node, without a lock */
    return ledger_round(t, arg);
}
