/* wire/redis.h for the bench: a connection that delays, loses and breaks, to a model in memory.
 *
 * A call is sent, arrives after 0 to 3 ms, is executed there, and its reply comes back after 0 to
 * 3 ms. Calls of one connection arrive in the order in which they were sent. A call whose task is
 * cancelled on the way is executed or lost, by chance. */
#include <event2/event.h>

#include "engine/crew/heart_fixture.h"

#define DELAY_MS 3

/* Nothing here has a file descriptor, so the loop need not ask the kernel. It would block there
 * only if all tasks waited for one another: that is a deadlock. */
int event_base_loop(struct event_base *base, int flags)
{
    (void)base;
    check(flags & EVLOOP_NONBLOCK);
    return 0;
}

struct request {
    struct list link;
    const struct redis_script *script; /* NULL: commands */
    size_t key_count;
    struct redis_command *commands;
    size_t count;
    struct arena *arena; /* where replies go */
    bool arrived, lost;
    const struct redis_reply **replies;
};

struct redis_command {
    size_t argc;
    const struct str *argv;
};

int64_t heart_random(struct heart_world *w, int64_t from, int64_t to)
{
    return from + (int64_t)(loop_random(w->loop) % (uint64_t)(to - from + 1));
}

bool heart_chance(struct heart_world *w, int64_t count)
{
    return count > 0 && heart_random(w, 0, 9999) < count;
}

void heart_redis_open(struct redis *r, struct heart_world *w)
{
    *r = (struct redis){.world = w, .up = true, .epoch = 1, .fault_ms = loop_now_ms(w->loop)};
    list_init(&r->queue);
}

/* --- on the way --- */

static void execute(struct redis *r, struct request *q)
{
    struct heart_world *w = r->world;
    redis_model_clock(w->model, loop_wall_ms(w->loop));
    for (size_t i = 0; i < q->count; i++) {
        const struct redis_command *c = &q->commands[i];
        q->replies[i] = q->script ? redis_model_script(w->model, q->arena, q->script, q->key_count,
                                                       c->argc, c->argv)
                                  : redis_model_argv(w->model, q->arena, c->argc, c->argv);
        if (q->script)
            heart_look_script(w, q->script, c->argc, c->argv);
    }
    q->arrived = true;
}

/* All that were sent before it arrive before it. */
static void arrive(struct redis *r, struct request *last)
{
    for (struct list *it; (it = list_pop(&r->queue));) {
        struct request *q = list_entry(it, struct request, link);
        execute(r, q);
        if (q == last)
            return;
    }
}

void heart_redis_break(struct redis *r)
{
    r->up = false;
    r->fault_ms = loop_now_ms(r->world->loop);
    bool there = true; /* some of them were, up to one */
    for (struct list *it; (it = list_pop(&r->queue));) {
        struct request *q = list_entry(it, struct request, link);
        there = there && heart_chance(r->world, 5000);
        if (there)
            execute(r, q);
        q->lost = true;
    }
}

void heart_redis_mend(struct redis *r)
{
    r->up = true;
    r->epoch++;
    r->fault_ms = loop_now_ms(r->world->loop);
}

static int64_t delay(struct heart_world *w)
{
    int64_t ms = heart_random(w, 0, 2 * DELAY_MS);
    return ms > DELAY_MS ? 0 : ms;
}

static int lose(struct task *t, struct redis *r, int err)
{
    r->fault_ms = loop_now_ms(r->world->loop);
    return task_fail(t, err, "the call to Redis was lost");
}

static int wait_ms(struct task *t, int64_t ms)
{
    return ms > 0 ? task_sleep(t, ms) : 0;
}

static int carry(struct task *t, struct redis *r, struct request *q)
{
    struct heart_world *w = r->world;
    int64_t now_ms = loop_now_ms(w->loop), at_ms = now_ms + delay(w);
    if (task_canceled(t))
        return ERR_CANCELED;
    if (!r->up || r->dead)
        return task_fail(t, ERR_UNAVAILABLE, "Redis is away");
    if (heart_chance(w, w->redis_faults))
        return lose(t, r, ERR_UNAVAILABLE);
    q->arena = task_arena(t);
    q->replies = ARENA_ARRAY(q->arena, const struct redis_reply *, q->count);
    r->arrive_ms = at_ms > r->arrive_ms ? at_ms : r->arrive_ms;
    list_push(&r->queue, &q->link);
    int err = wait_ms(t, r->arrive_ms - now_ms);
    bool waits = !q->arrived && !q->lost, never = heart_chance(w, err ? 5000 : w->redis_faults);
    if (waits && never)
        list_del(&q->link);
    else if (waits)
        arrive(r, q);
    if (!err && q->arrived)
        err = wait_ms(t, delay(w));
    if (err)
        return err;
    return !q->arrived || q->lost || heart_chance(w, w->redis_faults) ? lose(t, r, ERR_UNCERTAIN)
                                                                      : 0;
}

/* --- wire/redis.h --- */

bool redis_up(const struct redis *r)
{
    return r->up;
}

uint64_t redis_epoch(const struct redis *r)
{
    return r->epoch;
}

struct str redis_run_id(const struct redis *r)
{
    return r->up ? redis_model_run_id(r->world->model) : STR("");
}

bool redis_up_at(const struct redis *r, struct str key)
{
    (void)key;
    return redis_up(r);
}

uint64_t redis_epoch_at(const struct redis *r, struct str key)
{
    (void)key;
    return redis_epoch(r);
}

struct str redis_run_id_at(const struct redis *r, struct str key)
{
    (void)key;
    return redis_run_id(r);
}

int redis_verdict(struct task *t, const struct redis_reply *reply, const struct redis_reply **out)
{
    if (reply->type == REDIS_ERROR)
        return task_fail(t, ERR_REFUSED, "%.*s", STR_ARG(reply->str));
    if (out)
        *out = reply;
    return 0;
}

static int send_one(struct task *t, struct redis *r, struct request *q, size_t argc,
                    const struct str *argv, const struct redis_reply **out)
{
    struct redis_command c = {argc, argv};
    q->commands = &c;
    q->count = 1;
    int err = carry(t, r, q);
    return err ? err : redis_verdict(t, q->replies[0], out);
}

int redis_argv(struct task *t, struct redis *r, struct str key, size_t argc, const struct str *argv,
               const struct redis_reply **out)
{
    (void)key;
    return send_one(t, r, &(struct request){.script = NULL}, argc, argv, out);
}

int redis_script_run(struct task *t, struct redis *r, const struct redis_script *s, struct str key,
                     size_t key_count, size_t argc, const struct str *argv,
                     const struct redis_reply **out)
{
    (void)key;
    struct request q = {.script = s, .key_count = key_count};
    return send_one(t, r, &q, argc, argv, out);
}

/* bytes is an array of commands here. */
void redis_batch_init(struct redis_batch *b, struct task *t, struct redis *r)
{
    *b = (struct redis_batch){.task = t, .redis = r};
}

void redis_batch_argv(struct redis_batch *b, struct str key, size_t argc, const struct str *argv)
{
    (void)key;
    struct arena *a = task_arena(b->task);
    if (b->count == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 8, bytes = sizeof(struct redis_command);
        b->bytes = arena_grow(a, b->bytes, b->cap * bytes, cap * bytes);
        b->cap = cap;
    }
    struct str *copy = ARENA_ARRAY(a, struct str, argc);
    for (size_t i = 0; i < argc; i++)
        copy[i] = str_dup(a, argv[i]);
    ((struct redis_command *)(void *)b->bytes)[b->count++] = (struct redis_command){argc, copy};
}

int redis_batch_run(struct redis_batch *b, const struct redis_reply *const **replies)
{
    struct request q = {.commands = (void *)b->bytes, .count = b->count};
    int err = carry(b->task, b->redis, &q);
    if (!err)
        *replies = q.replies;
    redis_batch_init(b, b->task, b->redis);
    return err;
}
