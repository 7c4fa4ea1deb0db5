#include "engine/people/attempts.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/sha256.h"
#include "engine/people/attempts_local.h"
#include "engine/setup/address.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define ID_BYTES      33
#define SUBJECTS      2   /* the user and the address, or the address */
#define SWEPT_AT_ONCE 100 /* subjects of one script */

/* Each kind has an index of its own, because its sweeper keeps what its window holds. */
struct attempts {
    struct redis *redis;
    struct attempts_local *local;
    const char *noun; /* for messages */
    struct str index;
    int64_t max, window_ms;
    int64_t *refused, *counted_here;
    bool alone; /* Redis does not answer, and the log says so */
};

static struct attempts *new_kind(struct attempts kind)
{
    struct attempts *a = check_memory(malloc(sizeof *a));
    *a = kind;
    a->local = attempts_local_new((size_t)kind.max);
    return a;
}

struct attempts *attempts_new(struct redis *r, struct metrics *m)
{
    return new_kind((struct attempts){
        .redis = r,
        .noun = "failed log-ins",
        .index = key_attempts,
        .max = ATTEMPTS_MAX,
        .window_ms = ATTEMPTS_WINDOW_MS,
        .refused = metric(m, METRIC_COUNTER, "millrace_login_attempts_refused_total", "",
                          "Log-ins that were refused because too many had failed before."),
        .counted_here = metric(m, METRIC_COUNTER, "millrace_login_attempts_local_total", "",
                               "Log-ins that a node counted by itself, without Redis.")});
}

struct attempts *attempts_new_registrations(struct redis *r, struct metrics *m, int64_t max)
{
    return new_kind((struct attempts){
        .redis = r,
        .noun = "registrations",
        .index = key_registrations,
        .max = max,
        .window_ms = REGISTRATIONS_WINDOW_MS,
        .refused = metric(m, METRIC_COUNTER, "millrace_registrations_refused_total", "",
                          "Registrations that were refused because their address had too many."),
        .counted_here = metric(m, METRIC_COUNTER, "millrace_registrations_local_total", "",
                               "Registrations that a node counted by itself, without Redis.")});
}

void attempts_free(struct attempts *a)
{
    attempts_local_free(a->local);
    free(a);
}

void attempts_set_window(struct attempts *a, int64_t ms)
{
    check(ms > 0);
    a->window_ms = ms;
}

/* How many there are; the address is the last. */
static size_t name_subjects(struct arena *a, const struct attempt *who, struct str out[SUBJECTS])
{
    size_t count = 0;
    if (who->name.p) {
        char digest[SHA256_HEX_BYTES]; /* a name may be a password in the wrong field */
        sha256_hex(who->name, digest);
        out[count++] = key_attempts_of(a, who->realm, "name", str_of(digest));
    }
    out[count++] = key_attempts_of(a, who->realm, "address", address_subject(a, who->address));
    return count;
}

/* *wait_ms: 0 if it was counted. */
static int take_in_redis(struct task *t, struct attempts *a, const struct str *subjects,
                         size_t count, int64_t *wait_ms)
{
    char id[ID_BYTES];
    loop_token(task_loop(t), id, sizeof id);
    const struct redis_reply *r;
    int err =
        SCRIPT(t, a->redis, attempts_take, &r, .index = a->index, .subjects = {subjects, count},
               .id = str_of(id), .most = str_int(task_arena(t), a->max),
               .window_ms = str_int(task_arena(t), a->window_ms));
    if (!err)
        *wait_ms = r->integer;
    return err;
}

static void say_alone(struct task *t, struct attempts *a, bool alone)
{
    if (alone && !a->alone)
        log_warn("engine", "%s are counted by each node alone: %s; the limit is that of each node",
                 a->noun, task_error(t));
    a->alone = alone;
}

int attempts_take(struct task *t, struct attempts *a, const struct attempt *who,
                  int64_t *retry_after_s)
{
    struct str subjects[SUBJECTS];
    size_t count = name_subjects(task_arena(t), who, subjects);
    int64_t wait_ms = 0;
    int err = take_in_redis(t, a, subjects, count, &wait_ms);
    if (err == ERR_CANCELED)
        return err;
    say_alone(t, a, err != 0);
    if (err) {
        metric_add(a->counted_here, 1);
        err = attempts_local_take(a->local, subjects, count,
                                  (struct attempts_now){loop_now_ms(task_loop(t)), a->window_ms},
                                  &wait_ms);
        if (err)
            return task_fail(t, err, "too many %s at the same time; try again later", a->noun);
    }
    if (wait_ms == 0)
        return 0;
    metric_add(a->refused, 1);
    *retry_after_s = (wait_ms + 999) / 1000;
    return task_fail(t, ERR_RATE, "too many %s; try again in %lld s", a->noun,
                     (long long)*retry_after_s);
}

void attempts_forgive(struct task *t, struct attempts *a, const struct attempt *who)
{
    struct str subjects[SUBJECTS];
    size_t count = name_subjects(task_arena(t), who, subjects);
    attempts_local_forgive(a->local, subjects, count);
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (SCRIPT(t, a->redis, attempts_forgive, NULL, .index = a->index,
               .subjects = {subjects, count}))
        (void)task_fail(t, 0, "%s", text); /* they end by themselves */
}

/* --- sweeping --- */

static int64_t clock_of(const struct redis_reply *r)
{
    int64_t s = 0, us = 0;
    bool fine = r->type == REDIS_ARRAY && r->count == 2 && str_to_i64(r->items[0]->str, &s) &&
                str_to_i64(r->items[1]->str, &us);
    return fine ? s * 1000 + us / 1000 : 0;
}

/* *count: how many were looked at. */
static int sweep_some(struct task *t, struct attempts *a, size_t *count)
{
    const struct redis_reply *r;
    int err = redis_call(t, a->redis, STR_NULL, &r, STR("TIME"));
    if (err)
        return err;
    struct str before = str_int(task_arena(t), clock_of(r) - a->window_ms);
    err = redis_call(t, a->redis, a->index, &r, STR("ZRANGEBYSCORE"), a->index, STR("-inf"), before,
                     STR("LIMIT"), STR("0"), str_int(task_arena(t), SWEPT_AT_ONCE));
    if (err || r->count == 0)
        return err;
    struct str *subjects = ARENA_ARRAY(task_arena(t), struct str, r->count);
    for (size_t i = 0; i < r->count; i++)
        subjects[i] = r->items[i]->str;
    *count = r->count;
    return SCRIPT(t, a->redis, attempts_sweep, NULL, .index = a->index,
                  .subjects = {subjects, r->count}, .before = before);
}

int attempts_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct attempts *a = arg;
    size_t count = 0;
    attempts_local_sweep(a->local, (struct attempts_now){loop_now_ms(task_loop(t)), a->window_ms});
    int err = redis_up(a->redis) ? sweep_some(t, a, &count) : 0;
    return err ? err : count == SWEPT_AT_ONCE ? ROLE_MORE : 0;
}
