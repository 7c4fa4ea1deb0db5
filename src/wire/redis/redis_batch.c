/* Several commands in one round trip; on a cluster, in one to each master that has one of the keys.
 */
#include <stdio.h>

#include "wire/redis/redis_map.h"

void redis_batch_init(struct redis_batch *b, struct task *t, struct redis *r)
{
    *b = (struct redis_batch){.task = t, .redis = r};
}

static char *batch_room(struct redis_batch *b, size_t bytes)
{
    if (b->cap - b->len < bytes) {
        size_t cap = 2 * b->cap + bytes;
        b->bytes = arena_grow(task_arena(b->task), b->bytes, b->len, cap);
        b->cap = cap;
    }
    return b->bytes + b->len;
}

/* Where a command of the batch goes, on a cluster. */
static void note_key(struct redis_batch *b, struct str key, size_t bytes)
{
    struct arena *a = task_arena(b->task);
    if (b->count == b->items_cap) {
        size_t cap = b->items_cap ? 2 * b->items_cap : 8, one = sizeof(*b->items);
        b->items = arena_grow(a, b->items, b->items_cap * one, cap * one);
        b->items_cap = cap;
    }
    b->items[b->count] = (struct redis_batch_item){str_dup(a, redis_hash_tag(key)), b->len, bytes};
    if (!key.p)
        b->items[b->count].tag = STR_NULL;
}

void redis_batch_argv(struct redis_batch *b, struct str key, size_t argc, const struct str *argv)
{
    struct redis_command c = {.argc = argc, .argv = argv};
    size_t bytes = redis_encoded_bytes(&c);
    if (b->err || b->len + bytes > REDIS_COMMAND_BYTES_MAX) {
        b->err = ERR_LIMIT;
        return;
    }
    redis_encode(&c, batch_room(b, bytes));
    if (b->redis->map)
        note_key(b, key, bytes);
    b->len += bytes;
    if (b->count++ == 0)
        b->first_len = bytes;
}

static int batch_ask(struct redis_batch *b, const struct redis_reply **replies)
{
    struct redis *r = b->redis;
    if (b->err)
        return task_fail(b->task, b->err, "a Redis batch is over the limit of %d bytes",
                         REDIS_COMMAND_BYTES_MAX);
    if (b->count == 0)
        return 0;
    if (r->map)
        return redis_batch_cluster(b, replies);
    int err = redis_admit(b->task, r, b->count, b->len);
    if (err)
        return err;
    buf_add(&r->out, b->bytes, b->len);
    struct redis_wait w = {.task = b->task, .replies = replies};
    redis_queue_put(r, &w, b->count, b->len, b->first_len);
    return redis_await(b->task, r, &w);
}

int redis_batch_run(struct redis_batch *b, const struct redis_reply *const **replies)
{
    struct redis *r = b->redis;
    const struct redis_reply **all = arena_alloc(task_arena(b->task), b->count * sizeof(*all));
    redis_enter(r);
    int err = batch_ask(b, all);
    redis_batch_init(b, b->task, r);
    if (!err)
        *replies = all;
    return redis_leave(r, err);
}

/* --- on a cluster --- */

/* What one master gets of a batch. */
struct part {
    struct redis *server; /* entered */
    size_t count, bytes, first_bytes;
    struct redis_wait wait;
    bool sent;
    int err;
};

struct parts {
    struct part *all;
    size_t count;
    size_t *of; /* of each command: its part */
};

static struct part *part_of(struct parts *p, struct redis *server)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].server == server)
            return &p->all[i];
    struct part *new = &p->all[p->count++];
    *new = (struct part){.server = server};
    redis_enter(server);
    return new;
}

/* Each command goes to the part of the master that has its key. */
static int split(struct redis_batch *b, struct parts *p)
{
    struct arena *a = task_arena(b->task);
    p->all = ARENA_ARRAY(a, struct part, b->count);
    p->of = ARENA_ARRAY(a, size_t, b->count);
    for (size_t i = 0; i < b->count; i++) {
        struct redis *server;
        int err = redis_map_find(b->task, b->redis->map, b->items[i].tag, &server);
        if (err)
            return err;
        struct part *part = part_of(p, server);
        p->of[i] = (size_t)(part - p->all);
        if (part->count++ == 0)
            part->first_bytes = b->items[i].bytes;
        part->bytes += b->items[i].bytes;
    }
    return 0;
}

/* All are asked before one is sent to: mostly a batch goes whole or not at all. */
static int admit_all(struct task *t, struct parts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        int err = redis_admit(t, p->all[i].server, p->all[i].count, p->all[i].bytes);
        if (err)
            return err;
    }
    return 0;
}

static void send_parts(struct redis_batch *b, struct parts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->all[i];
        part->sent = redis_up(part->server); /* another one may have been waited for */
        part->err = part->sent ? 0 : ERR_UNAVAILABLE;
        part->wait = (struct redis_wait){
            .task = b->task,
            .replies = ARENA_ARRAY(task_arena(b->task), const struct redis_reply *, part->count)};
    }
    for (size_t i = 0; i < b->count; i++) {
        struct part *part = &p->all[p->of[i]];
        if (part->sent)
            buf_add(&part->server->out, b->bytes + b->items[i].at, b->items[i].bytes);
    }
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->all[i];
        if (part->sent)
            redis_queue_put(part->server, &part->wait, part->count, part->bytes, part->first_bytes);
    }
}

/* What the whole batch came to: parts that went may have run if another one did not. */
static int verdict(struct task *t, const struct parts *p)
{
    size_t unavailable = 0;
    int err = 0;
    for (size_t i = 0; i < p->count; i++) {
        int e = p->all[i].err;
        unavailable += e == ERR_UNAVAILABLE;
        if (e && (!err || e == ERR_CANCELED || e == ERR_TIMEOUT))
            err = e;
    }
    if (err != ERR_UNAVAILABLE || unavailable == p->count)
        return err;
    char why[256];
    snprintf(why, sizeof(why), "%s", task_error(t));
    return task_fail(t, ERR_UNCERTAIN, "%s", why);
}

static int await_all(struct task *t, struct parts *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].sent)
            redis_link_has_output(p->all[i].server);
    for (size_t i = 0; i < p->count; i++) {
        struct part *part = &p->all[i];
        if (part->sent)
            part->err = redis_await(t, part->server, &part->wait);
    }
    return verdict(t, p);
}

static int ask_encoded(struct task *t, struct redis *server, bool asking, void *call,
                       const struct redis_reply **out)
{
    struct redis_command c = {.encoded = *(struct str *)call};
    return redis_ask(t, server, asking, &c, out);
}

/* What a slot on its way kept a master from doing, one after the other. What cannot be done before
 * the deadline keeps the error that says so. */
static int repeat(struct redis_batch *b, const struct redis_reply **replies)
{
    for (size_t i = 0; i < b->count; i++) {
        if (!redis_cluster_repeats(replies[i]))
            continue;
        struct str bytes = str_from(b->bytes + b->items[i].at, b->items[i].bytes);
        int err =
            redis_cluster_ask(b->task, b->redis, b->items[i].tag, ask_encoded, &bytes, &replies[i]);
        if (err && err != ERR_UNAVAILABLE)
            return err;
    }
    return 0;
}

int redis_batch_cluster(struct redis_batch *b, const struct redis_reply **replies)
{
    struct parts p = {0};
    int64_t old = task_deadline(b->task, b->redis->command_ms);
    int err = split(b, &p);
    if (!err)
        err = admit_all(b->task, &p);
    if (!err) {
        send_parts(b, &p);
        err = await_all(b->task, &p);
    }
    for (size_t i = 0; !err && i < b->count; i++) {
        struct redis_wait *w = &p.all[p.of[i]].wait;
        replies[i] = *w->replies++;
    }
    for (size_t i = 0; i < p.count; i++)
        (void)redis_leave(p.all[i].server, 0);
    if (!err)
        err = repeat(b, replies);
    task_deadline_restore(b->task, old);
    return err;
}
