/* Scripts: loaded once per connection (SCRIPT LOAD), run by hash (EVALSHA). */
#include "base/log.h"
#include "wire/redis/redis_map.h"

#define SHA_BYTES 40
#define TRIES_MAX 4 /* of a script that the server has lost each time */

struct known_script {
    struct list link;
    const struct redis_script *script;
    char sha[SHA_BYTES];
    uint64_t epoch; /* of the connection it was last loaded on; 0: must be loaded again */
    bool loading;   /* by one task (singleflight) */
    struct waitq loaded;
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
    waitq_init(&k->loaded);
    list_push(&r->scripts, &k->link);
    return k;
}

static int load(struct task *t, struct redis *r, struct known_script *k)
{
    const struct str words[] = {STR("SCRIPT"), STR("LOAD"), k->script->text};
    const struct redis_reply *reply;
    int err = redis_ask(t, r, false, &(struct redis_command){.argc = 3, .argv = words}, &reply);
    if (err == ERR_UNCERTAIN)
        return ERR_UNAVAILABLE; /* loaded or not, it has not run */
    if (!err)
        err = redis_verdict(t, reply, &reply);
    if (err)
        return err;
    if (reply->type != REDIS_STRING || reply->str.n != SHA_BYTES)
        return task_fail(t, ERR_PROTO, "SCRIPT LOAD %s returned no hash", k->script->name);
    memcpy(k->sha, reply->str.p, SHA_BYTES);
    /* If the connection has changed meanwhile, NOSCRIPT follows and it is loaded again. */
    k->epoch = r->epoch;
    return 0;
}

/* Singleflight: of the tasks that need the script loaded, one loads it. */
static int ensure_loaded(struct task *t, struct redis *r, struct known_script *k)
{
    while (k->epoch == 0 || k->epoch != r->epoch) {
        int err;
        if (k->loading) {
            err = waitq_wait(t, &k->loaded);
        } else {
            k->loading = true;
            err = load(t, r, k);
            k->loading = false;
            waitq_wake_all(&k->loaded);
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

static int run(struct task *t, struct redis *r, bool asking, struct known_script *k,
               const struct redis_command *c, const struct redis_reply **out)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int err = ensure_loaded(t, r, k);
        if (err)
            return err;
        err = redis_ask(t, r, asking, c, out);
        if (err || !is_forgotten(*out))
            return err;
        /* NOSCRIPT comes before a line of it ran: repeating is safe. Replies come in order, so
         * other tasks that get it do so before the reload is answered. */
        k->epoch = 0;
    }
    return task_fail(t, ERR_REFUSED, "redis %s loses script %s each time it is loaded", r->name,
                     k->script->name);
}

int redis_script_ask(struct task *t, struct redis *r, bool asking, void *call,
                     const struct redis_reply **out)
{
    const struct redis_script_call *s = call;
    struct known_script *k = find(r, s->script);
    char count[STR_INT_BYTES];
    const struct str head[] = {STR("EVALSHA"), str_from(k->sha, SHA_BYTES),
                               str_digits(count, (int64_t)s->key_count)};
    /* Where it is, not what it is now: the command is written at once when the connection is up,
     * and what is written goes over that connection only. */
    const struct str tail = str_from(r->run_id, sizeof r->run_id - 1);
    struct redis_command c = {.head_count = 3,
                              .head = head,
                              .argc = s->argc,
                              .argv = s->argv,
                              .tail_count = s->script->run_id,
                              .tail = &tail};
    return run(t, r, asking, k, &c, out);
}

int redis_script_run(struct task *t, struct redis *r, const struct redis_script *s, struct str key,
                     size_t key_count, size_t argc, const struct str *argv,
                     const struct redis_reply **out)
{
    check(key_count <= argc);
    struct redis_script_call call = {s, key_count, argc, argv};
    const struct redis_reply *reply;
    redis_enter(r);
    int err = r->map ? redis_cluster_ask(t, r, key, redis_script_ask, &call, &reply)
                     : redis_script_ask(t, r, false, &call, &reply);
    return redis_leave(r, err ? err : redis_verdict(t, reply, out));
}
