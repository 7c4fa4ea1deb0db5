/* One call to a cluster: to the master that has the key, and on to where it says. */
#include "wire/redis/redis_map.h"

#include <string.h>

/* So many redirections are followed at once; further ones after a pause. */
#define AT_ONCE_MAX 4
#define PAUSES                                                                                     \
    {                                                                                              \
        .ms = 5, .ms_max = 200                                                                     \
    }

enum heed { DONE, MOVED, ASKED, LATER };

static enum heed heed_of(const struct redis_reply *r)
{
    if (r->type != REDIS_ERROR)
        return DONE;
    if (str_starts(r->str, STR("MOVED ")))
        return MOVED;
    if (str_starts(r->str, STR("ASK ")))
        return ASKED;
    /* LOADING: a master that was restarted sooner than it was replaced. */
    bool later = str_starts(r->str, STR("TRYAGAIN ")) || str_starts(r->str, STR("CLUSTERDOWN ")) ||
                 str_starts(r->str, STR("LOADING ")) || str_starts(r->str, STR("MASTERDOWN "));
    return later ? LATER : DONE;
}

bool redis_cluster_repeats(const struct redis_reply *reply)
{
    return heed_of(reply) != DONE;
}

static void count(const struct redis *front, enum heed h)
{
    const struct redis_metrics *m = &front->metrics;
    metric_add(h == MOVED ? m->moved : h == ASKED ? m->asked : m->told_later, 1);
}

struct walk {
    struct redis *server; /* that an ASK has named; NULL: the one that has the key */
    int redirections;
    struct backoff pauses;
};

static int pause_before_next(struct task *t, struct redis *front, struct walk *w,
                             const struct redis_reply *said)
{
    int err = backoff_wait(t, &w->pauses);
    if (err != ERR_TIMEOUT)
        return err;
    return task_fail(t, ERR_UNAVAILABLE, "redis %s: the cluster says: %s", front->name,
                     said->str.p);
}

/* After an answer that is none: where to ask next, or an error. */
static int follow(struct task *t, struct redis *front, struct walk *w, const char *asked_host,
                  const struct redis_reply *said)
{
    enum heed h = heed_of(said);
    struct redis_redirect to;
    count(front, h);
    w->server = NULL;
    if (h != LATER) {
        if (!redis_redirect_parse(task_arena(t), said->str, asked_host, &to))
            return task_fail(t, ERR_PROTO, "redis %s: cannot read its %s", front->name,
                             said->str.p);
        struct redis *server = redis_map_redirect(front->map, &to);
        if (h == ASKED)
            w->server = server;
    }
    if (h != LATER && ++w->redirections <= AT_ONCE_MAX)
        return 0;
    w->server = NULL; /* it may be gone after the pause */
    return pause_before_next(t, front, w, said);
}

static int go_round(struct task *t, struct redis *front, struct str key, redis_once_fn *once,
                    void *call, const struct redis_reply **out)
{
    struct walk w = {.pauses = PAUSES};
    for (;;) {
        bool asking = w.server != NULL;
        struct redis *server = w.server;
        int err = asking ? 0 : redis_map_find(t, front->map, key, &server);
        if (err)
            return err;
        redis_enter(server);
        err = once(t, server, asking, call, out);
        bool done = err || heed_of(*out) == DONE;
        if (!done)
            err = follow(t, front, &w, server->url.addresses[0].host, *out);
        (void)redis_leave(server, 0);
        if (done || err)
            return err;
    }
}

int redis_cluster_ask(struct task *t, struct redis *front, struct str key, redis_once_fn *once,
                      void *call, const struct redis_reply **out)
{
    int64_t old = task_deadline(t, front->command_ms);
    int err = go_round(t, front, key, once, call, out);
    task_deadline_restore(t, old);
    return err;
}
