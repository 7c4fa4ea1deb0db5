#include "engine/papers/block.h"

#include <stdlib.h>

#include "engine/papers/block_private.h"
#include "engine/papers/catalog_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define POLL_MS       50  /* a task looks this often whether another node's build has ended */
#define CONFLICTS_MAX 3   /* builds that were begun and lost */
#define FETCHES_MAX   3   /* of a block that is damaged each time after it was built */
#define CLEANUP_MS    200 /* of a deadline, kept back to release the lock */

struct blocks *blocks_new(const struct blocks_options *o)
{
    struct blocks *b = check_memory(calloc(1, sizeof *b));
    b->redis = o->redis;
    b->sql = o->sql;
    b->hits = metric(o->metrics, METRIC_COUNTER, "millrace_block_hits_total", "",
                     "Blocks that were found in Redis.");
    b->misses = metric(o->metrics, METRIC_COUNTER, "millrace_block_misses_total", "",
                       "Blocks that were asked for and missing in Redis, or damaged.");
    b->built = metric(o->metrics, METRIC_COUNTER, "millrace_blocks_built_total", "",
                      "Blocks built from MySQL.");
    b->packed = metric(o->metrics, METRIC_COUNTER, "millrace_block_papers_packed_total", "",
                       "Papers packed for blocks, those of failed builds too.");
    b->building = map_new();
    b->left = map_new();
    waitq_init(&b->ended);
    block_dictionaries_init(&b->dictionaries);
    return b;
}

static void forget_left(struct blocks *b)
{
    struct str key;
    void *token;
    for (size_t at = 0; map_next(b->left, &at, &key, &token);)
        free(token);
    map_free(b->left);
}

void blocks_free(struct blocks *b)
{
    check(map_count(b->building) == 0);
    block_dictionaries_release(&b->dictionaries);
    map_free(b->building);
    forget_left(b);
    free(b);
}

int64_t block_ttl_ms(struct loop *l)
{
    return BLOCK_TTL_MS - (int64_t)(loop_random(l) % (BLOCK_TTL_MS / 10));
}

/* Every command here is idempotent, so whether a lost one was done does not matter. */
static int settled(int err)
{
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

/* --- what a block says of itself --- */

struct str block_header(struct arena *a, struct block_version v)
{
    return str_printf(a, "%lld %lld %lld %lld", (long long)v.papers, (long long)v.digest,
                      (long long)v.as_of, (long long)v.changed);
}

bool block_header_read(struct str header, int64_t fields, struct block_version *out)
{
    struct str rest = header;
    struct block_version v = {.as_of = -1};
    if (!rest.p || !str_to_i64(str_cut(&rest, ' '), &v.papers) || !rest.p ||
        !str_to_i64(str_cut(&rest, ' '), &v.digest))
        return false;
    /* One that was built before loads were numbered ends here. */
    if (rest.p &&
        (!str_to_i64(str_cut(&rest, ' '), &v.as_of) || !rest.p || !str_to_i64(rest, &v.changed)))
        return false;
    if (v.papers < 1 || v.papers != fields - 1)
        return false;
    *out = v;
    return true;
}

bool block_same(struct block_version a, struct block_version b)
{
    return a.papers == b.papers && a.digest == b.digest;
}

int block_confirm(struct task *t, struct blocks *b, struct str key, struct block_version v)
{
    struct arena *a = task_arena(t);
    int64_t done; /* 0: it has been replaced or has gone meanwhile */
    return settled(SCRIPT_NUMBER(t, b->redis, block_confirm, &done, .block = key,
                                 .field = STR(BLOCK_HEADER), .papers = str_int(a, v.papers),
                                 .digest = str_int(a, v.digest), .header = block_header(a, v)));
}

int block_read_problem(struct task *t, const struct redis_reply *r)
{
    bool no_hash = r->type == REDIS_ERROR && str_starts(r->str, STR("WRONGTYPE "));
    return no_hash ? 0 : redis_verdict(t, r, NULL);
}

static void look_add(struct redis_batch *batch, struct str key)
{
    redis_batch_add(batch, key, STR("HGET"), key, STR(BLOCK_HEADER));
    redis_batch_add(batch, key, STR("HLEN"), key);
}

/* replies: of the two above. */
static int look_read(struct task *t, const struct redis_reply *const *replies, bool *whole,
                     struct block_version *out)
{
    int err = block_read_problem(t, replies[0]);
    if (!err)
        err = block_read_problem(t, replies[1]);
    if (!err)
        *whole = replies[0]->type == REDIS_STRING && replies[1]->type == REDIS_INT &&
                 block_header_read(replies[0]->str, replies[1]->integer, out);
    return err;
}

int blocks_look(struct task *t, struct blocks *b, const struct block_name *names, size_t count,
                bool *fresh)
{
    check(count <= BLOCKS_LOOK_MAX);
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, b->redis);
    for (size_t i = 0; i < count; i++)
        look_add(&batch, key_block(task_arena(t), names[i].journal, names[i].year));
    int err = count ? redis_batch_run(&batch, &replies) : 0;
    for (size_t i = 0; !err && i < count; i++) {
        struct block_version v, now = names[i].version;
        bool whole = false;
        err = look_read(t, replies + 2 * i, &whole, &v);
        fresh[i] = now.papers
                       ? whole && block_same(v, now)
                       : replies[2 * i + 1]->type == REDIS_INT && replies[2 * i + 1]->integer == 0;
        if (!err && whole && fresh[i] && v.as_of < now.as_of)
            err =
                block_confirm(t, b, key_block(task_arena(t), names[i].journal, names[i].year), now);
    }
    return settled(err);
}

/* --- having one built --- */

int block_read_version(struct task *t, struct blocks *b, struct str journal, int64_t year,
                       struct block_version *out)
{
    struct sql_rows r;
    int err = sql_call(t, b->sql, &r,
                       "SELECT papers, digest, " CATALOG_LOAD ", load_no FROM corpus_block"
                       " WHERE journal = ? AND year = ?",
                       sql_text(journal), sql_int(year));
    if (!err)
        *out = r.count
                   ? (struct block_version){r.cells[0].i, r.cells[1].i, r.cells[2].i, r.cells[3].i}
                   : (struct block_version){0};
    return err;
}

/* *there: Redis has what j wants. *wanted is read for BLOCK_FRESH, which compares with it. */
static int look_again(struct task *t, struct blocks *b, const struct block_job *j, bool *there,
                      struct block_version *wanted)
{
    if (j->want == BLOCK_ANEW)
        return 0;
    int err = j->want == BLOCK_FRESH ? block_read_version(t, b, j->journal, j->year, wanted) : 0;
    if (err)
        return err;
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    struct block_version found;
    bool whole = false;
    redis_batch_init(&batch, t, b->redis);
    look_add(&batch, j->key);
    err = redis_batch_run(&batch, &replies);
    if (!err)
        err = look_read(t, replies, &whole, &found);
    if (!err)
        *there = whole && (j->want == BLOCK_WHOLE || block_same(found, *wanted));
    if (!err && *there && j->want == BLOCK_FRESH && found.as_of < wanted->as_of)
        err = block_confirm(t, b, j->key, *wanted);
    return err;
}

static int build_locked(struct task *t, struct blocks *b, struct block_job *j, const struct lock *l)
{
    struct block_version v = {0};
    bool there = false;
    int err = look_again(t, b, j, &there, &v);
    if (err || there)
        return err;
    if (j->want != BLOCK_FRESH) /* for which look_again has read it, before the papers too */
        err = block_read_version(t, b, j->journal, j->year, &v);
    if (!err)
        err = block_build(t, b, j, l, v);
    if (!err) {
        j->built = true;
        metric_add(b->built, 1);
    }
    return err;
}

/* A cancelled task cannot call Redis: the token is kept for the next task that wants the lock. */
static void leave_lock(struct blocks *b, const struct lock *l)
{
    if (map_count(b->left) == BLOCK_LEFT_MAX) { /* most of these locks expired long ago */
        forget_left(b);
        b->left = map_new();
    }
    free(map_set(b->left, l->key, check_memory(strdup(l->token))));
}

/* Best effort: the key aside and the lock both expire. */
static void clean_up(struct task *t, struct blocks *b, const struct block_job *j,
                     const struct lock *l, int err)
{
    if (task_canceled(t)) {
        leave_lock(b, l);
        return;
    }
    struct str aside = key_block_aside(task_arena(t), j->journal, j->year, lock_token(l));
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (err && redis_call(t, b->redis, aside, NULL, STR("UNLINK"), aside))
        (void)task_fail(t, err, "%s", text);
    lock_drop(t, l);
}

/* The lock of j is held. If a cancelled task of this node left it, it is released now. */
static void give_back(struct task *t, struct blocks *b, const struct block_job *j, struct str key)
{
    char *token = map_del(b->left, key);
    if (!token)
        return;
    struct lock l = {.redis = b->redis, .key = key};
    memcpy(l.token, token, LOCK_TOKEN_BYTES);
    free(token);
    clean_up(t, b, j, &l, ERR_CANCELED);
}

/* *held stays false: another task builds it. ERR_CONFLICT: the lock was lost to another task. */
static int lock_and_build(struct task *t, struct blocks *b, struct block_job *j, bool *held)
{
    struct str key = key_block_lock(task_arena(t), j->journal, j->year);
    struct lock l;
    int err = lock_take(t, b->redis, key, BLOCK_LOCK_MS, &l);
    if (err == ERR_BUSY) {
        give_back(t, b, j, key);
        return 0;
    }
    if (err)
        return err;
    *held = true;
    /* A task that runs out of time while it builds has some left to release the lock. */
    int64_t left = task_time_left_ms(t);
    int64_t old = task_deadline(t, left - (left / 10 < CLEANUP_MS ? left / 10 : CLEANUP_MS));
    err = build_locked(t, b, j, &l);
    task_deadline_restore(t, old);
    clean_up(t, b, j, &l, err);
    return err;
}

/* Builds it, or waits until the lock is free or has expired, and looks again. */
static int build_or_wait(struct task *t, struct blocks *b, struct block_job *j)
{
    struct backoff poll = {.ms = POLL_MS};
    for (int conflicts = 0;;) {
        struct arena_mark mark = arena_mark(task_arena(t));
        bool held = false;
        int err = lock_and_build(t, b, j, &held);
        arena_reset(task_arena(t), mark);
        if (err == ERR_CONFLICT)
            conflicts++;
        else if (err || held)
            return err;
        if (conflicts == CONFLICTS_MAX)
            return task_fail(t, ERR_UNAVAILABLE,
                             "%.*s was built %d times in vain: each time its lock or its key "
                             "aside had expired in Redis; is the machine overloaded?",
                             STR_ARG(j->key), conflicts);
        err = backoff_wait(t, &poll);
        if (err)
            return err;
    }
}

/* Singleflight: one task of this node at a time; the others wait for it, then look again. */
static int ensure_within(struct task *t, struct blocks *b, struct block_job *j)
{
    while (map_get(b->building, j->key)) {
        struct block_version v;
        bool there = false;
        int err = waitq_wait(t, &b->ended);
        if (!err && !map_get(b->building, j->key))
            err = look_again(t, b, j, &there, &v);
        if (err || there)
            return err;
    }
    map_add(b->building, j->key);
    int err = build_or_wait(t, b, j);
    map_del(b->building, j->key);
    waitq_wake_all(&b->ended);
    return err;
}

static int ensure(struct task *t, struct blocks *b, struct block_job *j)
{
    int64_t old = task_deadline(t, BLOCK_BUILD_MS_MAX);
    int err = ensure_within(t, b, j);
    task_deadline_restore(t, old);
    return settled(err);
}

int block_refresh(struct task *t, struct blocks *b, struct str journal, int64_t year, bool force,
                  bool *built)
{
    struct block_job j = {.journal = journal,
                          .year = year,
                          .key = key_block(task_arena(t), journal, year),
                          .want = force ? BLOCK_ANEW : BLOCK_FRESH};
    int err = ensure(t, b, &j);
    if (!err && built)
        *built = j.built;
    return err;
}

/* --- reading one --- */

/* What HGETALL returned, in a. False: the block is not whole. */
static bool read_block(struct arena *a, const struct redis_reply *r, struct block *out)
{
    if (r->type != REDIS_ARRAY || r->count < 2)
        return false;
    struct block_paper *papers = ARENA_ARRAY(a, struct block_paper, r->count / 2);
    struct str header = STR_NULL;
    size_t count = 0;
    for (size_t i = 0; i + 1 < r->count; i += 2) {
        struct str field = r->items[i]->str, value = r->items[i + 1]->str;
        if (str_eq(field, STR(BLOCK_HEADER)))
            header = value;
        else
            papers[count++] = (struct block_paper){field, value};
    }
    struct block_version v;
    if (!block_header_read(header, (int64_t)count + 1, &v))
        return false;
    *out = (struct block){v, count, papers};
    return true;
}

/* One round trip; a damaged block leaves nothing in the arena. */
static int fetch(struct task *t, struct blocks *b, struct str key, bool *whole, struct block *out)
{
    struct arena *a = task_arena(t);
    struct arena_mark mark = arena_mark(a);
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, b->redis);
    redis_batch_add(&batch, key, STR("HGETALL"), key);
    redis_batch_add(&batch, key, STR("PEXPIRE"), key, str_int(a, block_ttl_ms(task_loop(t))));
    int err = redis_batch_run(&batch, &replies);
    if (!err)
        err = block_read_problem(t, replies[0]);
    if (!err)
        *whole = read_block(a, replies[0], out);
    if (err || !*whole)
        arena_reset(a, mark);
    return settled(err);
}

int block_fetch(struct task *t, struct blocks *b, struct str journal, int64_t year,
                struct block *out)
{
    struct block_job j = {.journal = journal,
                          .year = year,
                          .key = key_block(task_arena(t), journal, year),
                          .want = BLOCK_WHOLE};
    for (int i = 0; i < FETCHES_MAX; i++) {
        bool whole = false;
        int err = fetch(t, b, j.key, &whole, out);
        if (!err && i == 0)
            metric_add(whole ? b->hits : b->misses, 1);
        if (err || whole)
            return err;
        err = ensure(t, b, &j);
        if (err)
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE,
                     "%.*s was gone or damaged %d times, just after it had been built",
                     STR_ARG(j.key), FETCHES_MAX);
}
