#include "wire/redis/redis_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

/* Between two looks, however often the map is asked for. */
#define PAUSE_MS 50
/* A node that says nothing for so long is left out. */
#define ANSWER_MS 1000
/* A connection that neither map nor redirection has named for so long is closed. */
#define UNNAMED_MS 15000

struct redis_map *redis_map_new(struct redis *front, struct group *g)
{
    struct redis_map *m = check_memory(calloc(1, sizeof(*m)));
    m->front = front;
    m->group = g;
    list_init(&m->shards);
    waitq_init(&m->wake);
    return m;
}

void redis_map_free(struct redis_map *m)
{
    check(list_empty(&m->shards));
    free(m);
}

/* --- servers --- */

static bool is_at(const struct redis *server, const struct redis_address *at)
{
    const struct redis_address *it = &server->url.addresses[0];
    return strcmp(it->host, at->host) == 0 && strcmp(it->port, at->port) == 0;
}

/* NULL: there are too many, or no task can be started. */
static struct redis_shard *shard_at(struct redis_map *m, const struct redis_address *at)
{
    list_each (it, &m->shards) {
        struct redis_shard *s = list_entry(it, struct redis_shard, link);
        if (is_at(s->server, at)) {
            s->named_ms = loop_now_ms(m->front->loop);
            return s;
        }
    }
    if (m->shard_count >= REDIS_SHARDS_MAX || m->front->state == REDIS_CLOSED)
        return NULL;
    struct redis *server = redis_open_member(m->front, m->group, at);
    if (!server)
        return NULL;
    struct redis_shard *s = check_memory(calloc(1, sizeof(*s)));
    s->server = server;
    s->named_ms = loop_now_ms(m->front->loop);
    list_push(&m->shards, &s->link);
    m->shard_count++;
    return s;
}

static void drop(struct redis_map *m, struct redis_shard *s)
{
    list_del(&s->link);
    m->shard_count--;
    s->server->front = NULL; /* it may end later than the map */
    redis_close(s->server);
    free(s);
}

static void drop_unnamed(struct redis_map *m)
{
    int64_t now_ms = loop_now_ms(m->front->loop);
    list_each_safe (it, &m->shards) {
        struct redis_shard *s = list_entry(it, struct redis_shard, link);
        if (s->slots == 0 && s->server->users == 0 && now_ms - s->named_ms >= UNNAMED_MS)
            drop(m, s);
    }
}

/* --- what it comes to --- */

static int by_run_id(const void *a, const void *b)
{
    return memcmp(*(const char *const *)a, *(const char *const *)b, 40);
}

/* One generation of all: another one when any server with slots is another process. */
static void sum_run_ids(struct redis_map *m)
{
    const char *ids[REDIS_SHARDS_MAX];
    char digits[SHA256_HEX_BYTES];
    uint8_t bytes[SHA256_BYTES];
    struct sha256 h;
    size_t n = 0;
    list_each (it, &m->shards) {
        struct redis_shard *s = list_entry(it, struct redis_shard, link);
        if (s->slots)
            ids[n++] = s->server->run_id;
    }
    qsort(ids, n, sizeof(*ids), by_run_id);
    sha256_begin(&h);
    for (size_t i = 0; i < n; i++)
        sha256_add(&h, str_from(ids[i], 40));
    sha256_end(&h, bytes);
    hex_write(bytes, SHA256_BYTES, digits);
    memcpy(m->run_id, digits, sizeof(m->run_id) - 1);
}

/* All slots have a master, and all of these are connected. */
static bool is_whole(const struct redis_map *m)
{
    size_t slots = 0;
    list_each (it, &m->shards) {
        struct redis_shard *s = list_entry(it, struct redis_shard, link);
        if (s->slots && !redis_up(s->server))
            return false;
        slots += s->slots;
    }
    return m->known && slots == REDIS_SLOTS;
}

static void want(struct redis_map *m)
{
    m->wanted = true;
    waitq_wake_all(&m->wake);
}

void redis_map_changed(struct redis_map *m)
{
    struct redis *f = m->front;
    want(m);
    if (f->state == REDIS_CLOSED)
        return;
    bool up = is_whole(m);
    if (up)
        sum_run_ids(m);
    if (m->known) {
        f->problem[0] = '\0';
        f->epoch = m->connections;
        waitq_wake_all(&f->first);
    }
    f->state = up ? REDIS_UP : REDIS_DOWN;
    metric_set(f->metrics.up, up);
}

static void own(struct redis_map *m, unsigned slot, struct redis_shard *s)
{
    struct redis_shard *before = m->owners[slot];
    if (before == s)
        return;
    if (before)
        before->slots--;
    if (s)
        s->slots++;
    m->owners[slot] = s;
}

struct redis *redis_map_redirect(struct redis_map *m, const struct redis_redirect *to)
{
    struct redis_shard *s = shard_at(m, &to->to);
    if (!to->ask) {
        own(m, to->slot, s);
        redis_map_changed(m);
    }
    return s ? s->server : NULL;
}

/* Any one that is connected, rather one that has slots: others may be about to leave. */
static struct redis *any(const struct redis_map *m)
{
    struct redis *found = NULL;
    list_each (it, &m->shards) {
        struct redis_shard *s = list_entry(it, struct redis_shard, link);
        if (!found || (s->slots && redis_up(s->server)))
            found = s->server;
        if (s->slots && redis_up(s->server))
            break;
    }
    return found;
}

struct redis *redis_map_owner(const struct redis_map *m, struct str key)
{
    if (!key.p)
        return any(m);
    struct redis_shard *s = m->owners[redis_slot(key)];
    return s ? s->server : NULL;
}

int redis_map_find(struct task *t, struct redis_map *m, struct str key, struct redis **out)
{
    struct redis *f = m->front;
    if (!m->known && f->state != REDIS_CLOSED) {
        int err = redis_wait_for_first(t, f);
        if (err)
            return err;
    }
    *out = m->known && f->state != REDIS_CLOSED ? redis_map_owner(m, key) : NULL;
    if (*out)
        return 0;
    if (f->state != REDIS_CLOSED && m->known) {
        want(m);
        return task_fail(t, ERR_UNAVAILABLE, "redis %s: no node of the cluster has slot %u",
                         f->name, key.p ? redis_slot(key) : 0);
    }
    return task_fail(t, ERR_UNAVAILABLE, "redis %s is down: %s", f->name, f->problem);
}

/* --- learning --- */

struct answer {
    int64_t epoch;
    struct redis_range *ranges;
    size_t count;
};

/* What the node knows, in the task's arena. False: nothing. */
static bool ask(struct task *t, struct redis *server, struct answer *out)
{
    struct redis_batch b;
    const struct redis_reply *const *r;
    int64_t old = task_deadline(t, ANSWER_MS);
    redis_batch_init(&b, t, server);
    redis_batch_add(&b, STR_NULL, STR("CLUSTER"), STR("INFO"));
    redis_batch_add(&b, STR_NULL, STR("CLUSTER"), STR("SLOTS"));
    int err = redis_batch_run(&b, &r);
    task_deadline_restore(t, old);
    if (err)
        return false;
    out->epoch = r[0]->type == REDIS_STRING ? redis_cluster_epoch(r[0]->str) : -1;
    if (redis_slots_parse(task_arena(t), r[1], server->url.addresses[0].host, &out->ranges,
                          &out->count))
        return out->count > 0;
    redis_trouble(server, LOG_ERROR, "does not say which slots are where: %s",
                  r[1]->type == REDIS_ERROR ? r[1]->str.p : "its answer is none");
    return false;
}

/* Of all that answer, the one that has heard of the latest change: one that is cut off from the
 * others still tells what was. */
static bool ask_all(struct task *t, struct redis_map *m, struct answer *best)
{
    bool found = false;
    list_each (it, &m->shards) { /* only this task takes any out */
        struct redis *server = list_entry(it, struct redis_shard, link)->server;
        struct answer a;
        if (redis_up(server) && ask(t, server, &a) && (!found || a.epoch > best->epoch)) {
            *best = a;
            found = true;
        }
    }
    return found;
}

static void take_over(struct redis_map *m, const struct answer *a)
{
    static const size_t none = (size_t)-1;
    size_t *of = check_memory(malloc(REDIS_SLOTS * sizeof(*of)));
    for (size_t i = 0; i < REDIS_SLOTS; i++)
        of[i] = none;
    for (size_t i = 0; i < a->count; i++)
        for (unsigned slot = a->ranges[i].first; slot <= a->ranges[i].last; slot++)
            of[slot] = i;
    struct redis_shard **shards = check_memory(calloc(a->count, sizeof(struct redis_shard *)));
    for (size_t i = 0; i < a->count; i++)
        shards[i] = shard_at(m, &a->ranges[i].master);
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
        own(m, slot, of[slot] == none ? NULL : shards[of[slot]]);
    free(shards);
    free(of);
    m->known = true;
}

static void open_all_named(struct redis_map *m)
{
    const struct redis_url *u = &m->front->url;
    for (size_t i = 0; i < u->address_count; i++)
        (void)shard_at(m, &u->addresses[i]);
}

static void learn(struct task *t, struct redis_map *m)
{
    struct task_scope scope = task_scope(t);
    struct answer a;
    m->wanted = false;
    if (ask_all(t, m, &a)) {
        take_over(m, &a);
        bool wanted = m->wanted;
        redis_map_changed(m);
        m->wanted = wanted; /* by others, meanwhile */
        drop_unnamed(m);
    } else {
        open_all_named(m); /* those that the map knows may all be gone */
        if (m->known || loop_now_ms(m->front->loop) - m->front->opened_ms >= ANSWER_MS)
            redis_trouble(m->front, LOG_WARN, "no node of the cluster answers");
    }
    task_scope_end(t, scope);
}

/* Until the map is asked for, or it is time. */
static int pause_between(struct task *t, struct redis_map *m)
{
    struct backoff least = {.ms = PAUSE_MS};
    int err = backoff_wait(t, &least);
    int64_t old = task_deadline(t, redis_up(m->front) ? REDIS_MAP_MS : REDIS_MAP_DOWN_MS);
    while (!err && !m->wanted)
        err = waitq_wait(t, &m->wake);
    task_deadline_restore(t, old);
    return err == ERR_TIMEOUT ? 0 : err;
}

void redis_map_run(struct task *t, void *arg)
{
    struct redis *f = arg;
    struct redis_map *m = f->map;
    f->link = t;
    snprintf(f->problem, sizeof(f->problem), "not connected yet");
    if (f->url.path)
        redis_trouble(f, LOG_ERROR, "a Redis Cluster is not reached over a unix socket");
    open_all_named(m);
    while (!f->closing && !task_canceled(t) && !pause_between(t, m))
        learn(t, m);
    f->state = REDIS_CLOSED;
    metric_set(f->metrics.up, 0);
    m->known = false;
    memset(m->owners, 0, sizeof(m->owners));
    list_each_safe (it, &m->shards)
        drop(m, list_entry(it, struct redis_shard, link));
    redis_retire(t, f);
}
