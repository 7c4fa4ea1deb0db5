/* The jobs of a queue, as admins see them: by Redis alone. */
#include "engine/jobs/jobs_private.h"

int jobs_length(struct task *t, struct jobs *j, const char *queue, int64_t *count)
{
    const struct jobs_queue *q = jobs_find(j, str_of(queue));
    const struct redis_reply *r;
    check(q);
    int err = redis_call(t, j->options.redis, q->keys.info, &r, STR("HLEN"), q->keys.info);
    *count = err ? 0 : redis_number(r, 0);
    return err;
}

/* The infos of the ids, in their order; a job that has left meanwhile has none. */
static int read_infos(struct task *t, const struct jobs_queue *q, const struct redis_reply *ids,
                      const struct redis_reply **out)
{
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, ids->count + 2);
    argv[0] = STR("HMGET");
    argv[1] = q->keys.info;
    for (size_t i = 0; i < ids->count; i++)
        argv[i + 2] = ids->items[i]->str;
    int err = redis_argv(t, q->jobs->options.redis, q->keys.info, ids->count + 2, argv, out);
    if (!err && ((*out)->type != REDIS_ARRAY || (*out)->count != ids->count))
        err = task_fail(t, ERR_PROTO, "the infos of queue %s cannot be read", q->kind->name);
    return err;
}

int jobs_list(struct task *t, struct jobs *j, const char *queue, bool working, size_t most,
              struct jobs_entry **out, size_t *count)
{
    const struct jobs_queue *q = jobs_find(j, str_of(queue));
    check(q && most > 0);
    struct str key = working ? q->keys.leases : q->keys.waiting;
    const struct redis_reply *ids, *infos;
    *count = 0;
    int err = redis_call(t, j->options.redis, key, &ids, STR("ZRANGE"), key, STR("0"),
                         str_int(task_arena(t), (int64_t)most - 1));
    if (err || ids->count == 0)
        return err;
    err = read_infos(t, q, ids, &infos);
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct jobs_entry, ids->count);
    for (size_t i = 0; i < ids->count; i++) {
        struct job job;
        if (infos->items[i]->type != REDIS_STRING || !jobs_info_read(infos->items[i]->str, &job))
            continue;
        (*out)[(*count)++] = (struct jobs_entry){.id = ids->items[i]->str,
                                                 .uid = job.uid,
                                                 .version = job.version,
                                                 .priority = job.priority,
                                                 .tries = job.tries,
                                                 .since_ms = job.since_ms};
    }
    return 0;
}
