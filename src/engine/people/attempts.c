#include "engine/people/attempts.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/sha256.h"
#include "engine/people/attempts_local.h"
#include "engine/setup/address.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define SUBJECTS      3   /* user and address, user, address; or the address alone */
#define SWEPT_AT_ONCE 100 /* subjects of one script */

/* Each kind has an index of its own, because its sweeper keeps what its window holds. */
struct attempts {
    struct redis *redis;
    struct attempts_local *local;
    const char *noun; /* for messages */
    struct str index;
    int64_t address_max, window_ms;
    int64_t *refused, *counted_here;
    bool alone; /* Redis does not answer, and the log says so */
};

static struct attempts *new_kind(struct attempts kind)
{
    struct attempts *a = check_memory(malloc(sizeof *a));
    *a = kind;
    a->local = attempts_local_new();
    return a;
}

struct attempts *attempts_new(struct redis *r, struct metrics *m, int64_t address_max)
{
    return new_kind((struct attempts){
        .redis = r,
        .noun = "failed log-ins",
        .index = key_attempts,
        .address_max = address_max,
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
        .address_max = max,
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

/* --- what is counted --- */

struct subjects {
    struct str keys[SUBJECTS];
    int64_t limits[SUBJECTS]; /* -N: N, then slowly */
    size_t count;
    struct str known; /* key of the first one */
};

static void add_subject(struct subjects *s, struct str key, int64_t limit)
{
    s->keys[s->count] = key;
    s->limits[s->count++] = limit;
}

static struct str name_digest(struct arena *a, struct str name)
{
    char digest[SHA256_HEX_BYTES]; /* a name may be a password in the wrong field */
    sha256_hex(name, digest);
    return str_dup(a, str_of(digest));
}

/* The pair of name and address is the first, the address the last. */
static struct subjects subjects_of(struct arena *a, const struct attempts *from,
                                   const struct attempt *who)
{
    struct subjects s = {.count = 0};
    struct str address = address_subject(a, who->address), pair = address;
    if (who->name.p) {
        struct str name = name_digest(a, who->name);
        pair = STR_JOIN(a, name, STR(":"), address);
        add_subject(&s, key_attempts_of(a, who->realm, "pair", pair), ATTEMPTS_MAX);
        if (!address_loopback(who->address))
            add_subject(&s, key_attempts_of(a, who->realm, "name", name), -ATTEMPTS_NAME_MAX);
    }
    add_subject(&s, key_attempts_of(a, who->realm, "address", address), from->address_max);
    s.known = key_attempts_of(a, who->realm, "known", pair);
    return s;
}

/* --- taking --- */

/* *wait_ms: 0 if it was counted. */
static int take_in_redis(struct task *t, struct attempts *a, const struct subjects *s,
                         struct attempt *who, int64_t *wait_ms)
{
    struct arena *m = task_arena(t);
    struct str limits[SUBJECTS];
    loop_token(task_loop(t), who->id, sizeof who->id);
    for (size_t i = 0; i < s->count; i++)
        limits[i] = str_int(m, s->limits[i]);
    const struct redis_reply *r;
    int err =
        SCRIPT(t, a->redis, attempts_take, &r, .index = a->index, .known = s->known,
               .subjects = {s->keys, s->count}, .id = str_of(who->id),
               .window_ms = str_int(m, a->window_ms), .slow_ms = str_int(m, ATTEMPTS_SLOW_MS),
               .slow_most_ms = str_int(m, ATTEMPTS_SLOW_MOST_MS), .limits = {limits, s->count});
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

static struct attempts_now now_of(struct task *t, const struct attempts *a)
{
    return (struct attempts_now){loop_now_ms(task_loop(t)), a->window_ms};
}

int attempts_take(struct task *t, struct attempts *a, struct attempt *who, int64_t *retry_after_s)
{
    struct subjects s = subjects_of(task_arena(t), a, who);
    int64_t wait_ms = 0;
    int err = take_in_redis(t, a, &s, who, &wait_ms);
    if (err == ERR_CANCELED)
        return err;
    say_alone(t, a, err != 0);
    if (err) {
        metric_add(a->counted_here, 1);
        err = attempts_local_take(a->local, s.keys, s.limits, s.count, now_of(t, a), &wait_ms);
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

/* --- taking back --- */

static void take_back(struct task *t, struct attempts *a, const struct attempt *who, bool right)
{
    struct subjects s = subjects_of(task_arena(t), a, who);
    attempts_local_return(a->local, s.keys, s.count, right);
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (SCRIPT(t, a->redis, attempts_return, NULL, .index = a->index, .known = s.known,
               .subjects = {s.keys, s.count}, .id = str_of(who->id),
               .known_ms = str_int(task_arena(t), right ? ATTEMPTS_KNOWN_MS : 0)))
        (void)task_fail(t, 0, "%s", text); /* they end by themselves */
}

void attempts_forgive(struct task *t, struct attempts *a, const struct attempt *who)
{
    take_back(t, a, who, true);
}

void attempts_return(struct task *t, struct attempts *a, const struct attempt *who)
{
    take_back(t, a, who, false);
}

/* --- unlocking --- */

/* One page of the index: subjects of the name among them are forgotten. */
static int unlock_page(struct task *t, struct redis *r, struct str pattern, struct str *cursor,
                       int64_t *count)
{
    const struct redis_reply *page, *gone;
    int err = redis_call(t, r, key_attempts, &page, STR("ZSCAN"), key_attempts, *cursor,
                         STR("MATCH"), pattern, STR("COUNT"), STR("1000"));
    if (err)
        return err;
    if (page->type != REDIS_ARRAY || page->count != 2 || page->items[1]->type != REDIS_ARRAY)
        return task_fail(t, ERR_PROTO, "ZSCAN returned something else");
    *cursor = page->items[0]->str;
    const struct redis_reply *found = page->items[1];
    size_t n = found->count / 2;
    struct str *subjects = ARENA_ARRAY(task_arena(t), struct str, n + 1);
    for (size_t i = 0; i < n; i++)
        subjects[i] = found->items[2 * i]->str;
    if (n == 0)
        return 0;
    err = SCRIPT(t, r, attempts_unlock, &gone, .index = key_attempts, .subjects = {subjects, n});
    if (!err)
        *count += gone->integer;
    return err;
}

int attempts_unlock(struct task *t, struct redis *r, const char *realm, struct str name,
                    int64_t *count)
{
    struct arena *a = task_arena(t);
    struct str digest = name_digest(a, name), cursor = STR("0");
    struct str pairs =
        key_attempts_of(a, realm, "pair", STR_JOIN(a, digest, STR(":*"))); /* hex: no wildcards */
    struct str key = key_attempts_of(a, realm, "name", digest);
    const struct redis_reply *gone;
    int err = SCRIPT(t, r, attempts_unlock, &gone, .index = key_attempts, .subjects = {&key, 1});
    if (err)
        return err;
    *count = gone->integer;
    do
        err = unlock_page(t, r, pairs, &cursor, count);
    while (!err && !str_eq(cursor, STR("0")));
    return err;
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
    int err = redis_call(t, a->redis, a->index, &r, STR("TIME"));
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
    attempts_local_sweep(a->local, now_of(t, a));
    int err = redis_up(a->redis) ? sweep_some(t, a, &count) : 0;
    return err ? err : count == SWEPT_AT_ONCE ? ROLE_MORE : 0;
}
