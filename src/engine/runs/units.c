#include "engine/runs/units.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* Runs a script of one run and gives the integer it returns. */
static int run_script(struct task *t, struct redis *r, const struct redis_script *s, size_t keys,
                      size_t argc, const struct str *argv, int64_t *out)
{
    const struct redis_reply *reply;
    int err = redis_script_run(t, r, s, argv[0], keys, argc, argv, &reply);
    if (!err && reply->type != REDIS_INT)
        err = task_fail(t, ERR_PROTO, "script %s returned something else", s->name);
    if (!err)
        *out = reply->integer;
    return err;
}

int units_put(struct task *t, struct redis *r, struct run_id id, const struct str *units,
              size_t count)
{
    struct arena *a = task_arena(t);
    struct str *argv = ARENA_ARRAY(a, struct str, 3 + count);
    argv[0] = key_query_status(a, id.uid, id.qid);
    argv[1] = key_pending(a, id.uid, id.qid);
    argv[2] = key_inflight(a, id.uid, id.qid);
    if (count)
        memcpy(argv + 3, units, count * sizeof *units);
    int64_t status;
    int err = run_script(t, r, &script_units_put, 3, 3 + count, argv, &status);
    if (!err && status < 0)
        err = task_fail(t, ERR_CONFLICT, "run %.*s cannot start any more", STR_ARG(id.qid));
    return err;
}

int unit_take(struct task *t, struct redis *r, struct run_id id, const struct unit_claim *claim,
              enum unit_found *found, struct unit *out)
{
    struct arena *a = task_arena(t);
    struct unit u;
    snprintf(u.lease, sizeof u.lease, "%016" PRIx64 ":%" PRIu64, claim->incarnation, claim->number);
    const struct str argv[] = {
        key_query_status(a, id.uid, id.qid), key_terminate_signal(a, id.uid, id.qid),
        key_pause_signal(a, id.uid, id.qid), key_pending(a, id.uid, id.qid),
        key_inflight(a, id.uid, id.qid),     str_of(u.lease),
        claim->again ? STR("1") : STR("0")};
    const struct redis_reply *reply;
    int err = redis_script_run(t, r, &script_unit_take, argv[0], 5, 7, argv, &reply);
    if (err)
        return err;
    if (reply->type != REDIS_ARRAY || reply->count != 4 || reply->items[0]->type != REDIS_INT ||
        reply->items[3]->type != REDIS_INT)
        return task_fail(t, ERR_PROTO, "script unit_take returned something else");
    int64_t status = reply->items[0]->integer;
    u.name = reply->items[1]->str;
    snprintf(u.run, sizeof u.run, "%.*s", STR_ARG(reply->items[2]->str));
    u.fresh = reply->items[3]->integer == 1;
    *out = u;
    *found = status == 1    ? UNIT_FOUND
             : status == 0  ? UNIT_NONE
             : status == -1 ? UNIT_PAUSED
                            : UNIT_TERMINATED;
    return 0;
}

static int not_ours(struct task *t, const struct unit *u)
{
    return task_fail(t, ERR_CONFLICT, "unit %.*s is not ours any more", STR_ARG(u->name));
}

int unit_finish(struct task *t, struct redis *r, struct run_id id, const struct unit *u, bool *last)
{
    struct arena *a = task_arena(t);
    const struct str argv[] = {key_query_status(a, id.uid, id.qid),
                               key_pending(a, id.uid, id.qid),
                               key_inflight(a, id.uid, id.qid),
                               u->name,
                               str_of(u->lease),
                               str_of(u->run)};
    int64_t status;
    int err = run_script(t, r, &script_unit_finish, 3, 6, argv, &status);
    if (!err && status <= 0)
        err = not_ours(t, u);
    if (!err)
        *last = status == 2;
    return err;
}

/* --- the reaper --- */

static bool read_lease(struct str lease, uint64_t *incarnation, uint64_t *number)
{
    char text[UNIT_LEASE_BYTES];
    if (lease.n >= sizeof text)
        return false;
    memcpy(text, lease.p, lease.n);
    text[lease.n] = '\0';
    return sscanf(text, "%16" SCNx64 ":%" SCNu64, incarnation, number) == 2;
}

int units_reap(struct task *t, struct redis *r, struct run_id id, unit_held_fn *held,
               const void *arg, int64_t *returned)
{
    struct arena *a = task_arena(t);
    struct str key = key_inflight(a, id.uid, id.qid);
    const struct redis_reply *leases;
    *returned = 0;
    int err = redis_call(t, r, key, &leases, STR("HGETALL"), key);
    if (err)
        return err;
    struct str *argv = ARENA_ARRAY(a, struct str, 3 + leases->count);
    size_t argc = 0;
    argv[argc++] = key_query_status(a, id.uid, id.qid);
    argv[argc++] = key_pending(a, id.uid, id.qid);
    argv[argc++] = key;
    for (size_t i = 0; i + 1 < leases->count; i += 2) {
        uint64_t incarnation, number;
        if (read_lease(leases->items[i + 1]->str, &incarnation, &number) &&
            held(arg, incarnation, number))
            continue;
        argv[argc++] = leases->items[i]->str;
        argv[argc++] = leases->items[i + 1]->str;
    }
    return argc == 3 ? 0 : run_script(t, r, &script_unit_give_back, 3, argc, argv, returned);
}
