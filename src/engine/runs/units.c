#include "engine/runs/units.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/store/keys.h"
#include "engine/store/scripts.h"

/* Of the paper that is the first one now: once when the unit was left, and perhaps once before
 * that, while the verdict on the paper before it was being recorded. */
#define ASKED_AHEAD 2

int units_put(struct task *t, struct redis *r, struct run_id id, const struct str *units,
              size_t count)
{
    struct arena *a = task_arena(t);
    int64_t status;
    int err = SCRIPT_NUMBER(t, r, units_put, &status, .status = key_query_status(a, id.uid, id.qid),
                            .pending = key_pending(a, id.uid, id.qid), .units = {units, count});
    if (!err && status < 0)
        err = task_fail(t, ERR_CONFLICT, "run %.*s cannot start any more", STR_ARG(id.qid));
    return err;
}

static void read_vain(struct str s, struct unit *u)
{
    struct str asks = str_cut(&s, ' ');
    if (!str_to_i64(asks, &u->vain) || !str_to_i64(s, &u->vain_open))
        u->vain = u->vain_open = 0;
}

int unit_take(struct task *t, struct redis *r, struct run_id id, const struct unit_claim *claim,
              enum unit_found *found, struct unit *out)
{
    struct arena *a = task_arena(t);
    struct unit u;
    snprintf(u.lease, sizeof u.lease, "%016" PRIx64 ":%" PRIu64, claim->incarnation, claim->number);
    const struct redis_reply *reply;
    int err = SCRIPT(
        t, r, unit_take, &reply, .status = key_query_status(a, id.uid, id.qid),
        .terminate = key_terminate_signal(a, id.uid, id.qid),
        .pause = key_pause_signal(a, id.uid, id.qid), .pending = key_pending(a, id.uid, id.qid),
        .inflight = key_inflight(a, id.uid, id.qid), .vain = key_vain(a, id.uid, id.qid),
        .lease = str_of(u.lease), .again = claim->again ? STR("1") : STR("0"));
    if (err)
        return err;
    if (reply->type != REDIS_ARRAY || reply->count != 5 || reply->items[0]->type != REDIS_INT ||
        reply->items[3]->type != REDIS_INT)
        return task_fail(t, ERR_PROTO, "script unit_take returned something else");
    int64_t status = reply->items[0]->integer;
    u.name = reply->items[1]->str;
    snprintf(u.generation.id, sizeof u.generation.id, "%.*s", STR_ARG(reply->items[2]->str));
    u.fresh = reply->items[3]->integer == 1;
    read_vain(reply->items[4]->str, &u);
    *out = u;
    *found = status == 1    ? UNIT_FOUND
             : status == 0  ? UNIT_NONE
             : status == -1 ? UNIT_PAUSED
                            : UNIT_TERMINATED;
    return 0;
}

int unit_opened(struct task *t, struct redis *r, struct run_id id, struct unit *u, int64_t open)
{
    if (u->vain == 0 || u->vain_open == open)
        return 0;
    struct arena *a = task_arena(t);
    struct str key = key_vain(a, id.uid, id.qid);
    int64_t vain = u->vain_open ? ASKED_AHEAD : u->vain;
    int err = redis_call(t, r, key, NULL, STR("HSET"), key, u->name,
                         str_printf(a, "%" PRId64 " %" PRId64, vain, open));
    if (!err) {
        u->vain = vain;
        u->vain_open = open;
    }
    return err;
}

static int not_ours(struct task *t, const struct unit *u)
{
    return task_fail(t, ERR_CONFLICT, "unit %.*s is not ours any more", STR_ARG(u->name));
}

int unit_finish(struct task *t, struct redis *r, struct run_id id, const struct unit *u, bool *last)
{
    struct arena *a = task_arena(t);
    int64_t status;
    int err =
        SCRIPT_NUMBER(t, r, unit_finish, &status, .status = key_query_status(a, id.uid, id.qid),
                      .inflight = key_inflight(a, id.uid, id.qid), .unit = u->name,
                      .lease = str_of(u->lease), .generation = generation_str(&u->generation));
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

int units_reap(struct task *t, struct redis *r, struct run_id id, unit_holder_fn *holder,
               const void *arg, int64_t *returned)
{
    struct arena *a = task_arena(t);
    struct str key = key_inflight(a, id.uid, id.qid);
    const struct redis_reply *leases;
    *returned = 0;
    int err = redis_call(t, r, key, &leases, STR("HGETALL"), key);
    if (err)
        return err;
    struct str *given = ARENA_ARRAY(a, struct str, leases->count / 2 * 3 + 1);
    size_t count = 0;
    for (size_t i = 0; i + 1 < leases->count; i += 2) {
        uint64_t incarnation, number;
        enum unit_holder h = UNIT_LEFT;
        if (read_lease(leases->items[i + 1]->str, &incarnation, &number))
            h = holder(arg, incarnation, number);
        if (h == UNIT_HELD)
            continue;
        given[count++] = leases->items[i]->str;
        given[count++] = leases->items[i + 1]->str;
        given[count++] = h == UNIT_LEFT_IN_VAIN ? STR("1") : STR("0");
    }
    if (count == 0)
        return 0;
    return SCRIPT_NUMBER(t, r, unit_give_back, returned,
                         .status = key_query_status(a, id.uid, id.qid),
                         .pending = key_pending(a, id.uid, id.qid), .inflight = key,
                         .vain = key_vain(a, id.uid, id.qid), .leases = {given, count});
}
