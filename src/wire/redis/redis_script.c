/* Scripts: told once with SCRIPT LOAD, called by the hash that returns. */
#include <stdio.h>

#include "base/log.h"
#include "wire/redis/redis_private.h"

#define SHA_BYTES 40
/* A server that forgets a script each time before it is called has a bigger trouble. */
#define TRIES_MAX 4

struct known_script {
    struct list link;
    const struct redis_script *script;
    char sha[SHA_BYTES];
    uint64_t epoch; /* of the connection it was last told on; 0: must be told again */
    bool telling;   /* some task is doing it */
    struct waitq told;
};

static struct known_script *find(struct redis *r, const struct redis_script *s)
{
    list_each (it, &r->scripts) {
        struct known_script *k = list_entry(it, struct known_script, link);
        if (k->script == s)
            return k;
    }
    struct known_script *k = ARENA_NEW(&r->arena, struct known_script);
    k->script = s;
    waitq_init(&k->told);
    list_push(&r->scripts, &k->link);
    return k;
}

static int load(struct task *t, struct redis *r, struct known_script *k)
{
    const struct str words[] = {STR("SCRIPT"), STR("LOAD"), k->script->text};
    const struct redis_reply *reply;
    int err = redis_ask(t, r, &(struct redis_command){.argc = 3, .argv = words}, &reply);
    if (err == ERR_UNCERTAIN)
        return ERR_UNAVAILABLE; /* told or not, it was not run */
    if (!err)
        err = redis_verdict(t, reply, &reply);
    if (err)
        return err;
    if (reply->type != REDIS_STRING || reply->str.n != SHA_BYTES)
        return task_fail(t, ERR_PROTO, "SCRIPT LOAD %s returned no hash", k->script->name);
    memcpy(k->sha, reply->str.p, SHA_BYTES);
    /* Should the connection have changed meanwhile, a NOSCRIPT will say so. */
    k->epoch = r->epoch;
    return 0;
}

/* Many tasks may find at once that the server does not know the script: one of them tells it. */
static int tell(struct task *t, struct redis *r, struct known_script *k)
{
    while (k->epoch == 0 || k->epoch != r->epoch) {
        int err;
        if (k->telling) {
            err = waitq_wait(t, &k->told);
        } else {
            k->telling = true;
            err = load(t, r, k);
            k->telling = false;
            waitq_wake_all(&k->told);
        }
        if (err)
            return err;
    }
    return 0;
}

static bool is_forgotten(const struct redis_reply *reply)
{
    return reply->type == REDIS_ERROR && str_starts(reply->str, STR("NOSCRIPT "));
}

static int run(struct task *t, struct redis *r, struct known_script *k,
               const struct redis_command *c, const struct redis_reply **out)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int err = tell(t, r, k);
        if (err)
            return err;
        const struct redis_reply *reply;
        err = redis_ask(t, r, c, &reply);
        if (err)
            return err;
        if (!is_forgotten(reply))
            return redis_verdict(t, reply, out);
        /* Refused before a line of it ran, so asking again is safe. Whoever else gets this
         * answer gets it before the server has been told: replies come in order. */
        k->epoch = 0;
    }
    return task_fail(t, ERR_REFUSED, "redis %s forgets script %s each time it is told", r->name,
                     k->script->name);
}

int redis_script_run(struct task *t, struct redis *r, const struct redis_script *s, struct str key,
                     size_t key_count, size_t argc, const struct str *argv,
                     const struct redis_reply **out)
{
    check(key_count <= argc);
    (void)key;
    redis_enter(r);
    struct known_script *k = find(r, s);
    char count[24];
    int n = snprintf(count, sizeof(count), "%zu", key_count);
    const struct str head[] = {STR("EVALSHA"), str_from(k->sha, SHA_BYTES),
                               str_from(count, (size_t)n)};
    struct redis_command c = {.head_count = 3, .head = head, .argc = argc, .argv = argv};
    return redis_leave(r, run(t, r, k, &c, out));
}
