#include "engine/money/sweeper.h"

#include "base/log.h"
#include "engine/store/due.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* Retry later. A deadline that cache_touch renewed meanwhile is later still, and stays (GT). */
static int put_off(struct task *t, struct sweeper *s, int64_t uid, int64_t now_ms)
{
    return redis_call(t, s->redis, key_expiry, NULL, STR("ZADD"), key_expiry, STR("XX"), STR("GT"),
                      str_int(task_arena(t), now_ms + SWEEPER_RETRY_MS),
                      str_int(task_arena(t), uid));
}

/* Sessions go first: a session left without its set could not be found for removal. */
static int drop_records(struct task *t, struct sweeper *s, int64_t uid)
{
    int err = cache_drop_sessions(t, s->cache, uid);
    if (err)
        return err;
    return SCRIPT(t, s->redis, sweep_user, NULL, .user = key_user_info(task_arena(t), uid),
                  .history = key_history(task_arena(t), uid));
}

/* The deadline goes last: if the node dies before, all of it is repeated. */
static int sweep(struct task *t, struct sweeper *s, int64_t uid, int64_t now_ms, int64_t *swept)
{
    int err = ledger_let_go(t, s->ledger, uid);
    if (err == ERR_NOT_FOUND) /* not in MySQL: no money to lose */
        err = 0;
    if (!err)
        err = drop_records(t, s, uid);
    if (err)
        return err;
    int64_t dropped = 0;
    err = due_drop(t, s->redis, key_expiry, str_int(task_arena(t), uid), now_ms, &dropped);
    *swept += dropped;
    return err;
}

static void count(struct sweeper *s, const char *name, const char *help, int64_t n)
{
    if (s->metrics && n)
        metric_add(metric(s->metrics, METRIC_COUNTER, name, "", help), n);
}

int sweeper_round(struct task *t, struct sweeper *s, int64_t *swept)
{
    int64_t now_ms = loop_wall_ms(task_loop(t));
    const struct redis_reply *due;
    *swept = 0;
    int err = redis_call(t, s->redis, key_expiry, &due, STR("ZRANGEBYSCORE"), key_expiry,
                         STR("-inf"), str_int(task_arena(t), now_ms), STR("LIMIT"), STR("0"),
                         str_int(task_arena(t), SWEEPER_AT_ONCE));
    for (size_t i = 0; !err && i < due->count; i++) {
        int64_t uid;
        if (!str_to_i64(due->items[i]->str, &uid))
            continue;
        err = sweep(t, s, uid, now_ms, swept);
        if (!err || err_is_outage(err))
            continue;
        log_warn("sweeper", "cannot evict user %lld from Redis, will retry: %s", (long long)uid,
                 task_error(t));
        count(s, "millrace_sweeper_kept_total",
              "Users past their deadline who could not leave Redis yet.", 1);
        err = put_off(t, s, uid, now_ms);
    }
    count(s, "millrace_sweeper_swept_total", "Users whose records have left Redis.", *swept);
    return err;
}

int sweeper_role(struct task *t, void *arg, struct role_turn *turn)
{
    int64_t swept = 0;
    (void)turn; /* runs on every node, without a lock */
    int err = sweeper_round(t, arg, &swept);
    return err ? err : swept == SWEEPER_AT_ONCE ? ROLE_MORE : 0;
}
