/* How a block is built: rows come from MySQL one by one and gather in a batch. When it is full, a
 * helper thread packs it, and it goes to the key aside in one command. So a block of any size needs
 * memory for one batch. */
#include "base/log.h"
#include "corpus/paper.h"
#include "engine/papers/block_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/offload.h"

#define BATCH_PAPERS_MAX 256
#define BATCH_BYTES_MAX  (1024 * 1024) /* one paper above it makes a batch of its own */
#define NO_DIGEST        (-1)          /* of a block that changed while it was read */

struct batch_paper {
    struct str doi, json, packed;
};

struct build {
    struct blocks *blocks;
    const struct block_job *job;
    const struct lock *lock;
    int64_t kept_ms; /* when the lock was last taken or renewed */
    struct str aside;
    int64_t papers; /* aside already */

    /* The batch; while a helper thread has it, the task must not touch it. */
    struct block_packer *packer;
    struct arena kept, scratch; /* for the batch; for one paper of it */
    size_t count, bytes;
    struct batch_paper batch[BATCH_PAPERS_MAX];
    int err; /* of the last paper of the batch that was looked at */
};

/* --- on a helper thread --- */

int block_pack(struct block_packer *p, struct arena *a, struct arena *scratch, struct str doi,
               struct str json, struct str *packed)
{
    struct paper paper;
    int err = paper_read_json(scratch, doi, json, &paper);
    return err ? err : pack_put(p->pack, a, paper_bibtex(scratch, &paper), packed);
}

/* Stops at the first paper that cannot be packed; d->count becomes its place. */
static void pack_batch(void *arg)
{
    struct build *d = arg;
    struct arena_mark mark = arena_mark(&d->scratch);
    size_t i = 0;
    for (d->err = 0; i < d->count && !d->err; i++) {
        struct batch_paper *p = &d->batch[i];
        d->err = block_pack(d->packer, &d->kept, &d->scratch, p->doi, p->json, &p->packed);
        arena_reset(&d->scratch, mark);
    }
    if (d->err)
        d->count = i - 1;
}

/* --- on the task --- */

/* argv: HSET and what belongs to it. The TTL is set each time: if the key has expired meanwhile,
 * HSET makes a new one that would stay for ever. */
static int put_aside(struct task *t, struct build *d, size_t argc, const struct str *argv)
{
    struct redis_batch batch;
    const struct redis_reply *const *replies;
    redis_batch_init(&batch, t, d->blocks->redis);
    redis_batch_argv(&batch, d->aside, argc, argv);
    redis_batch_add(&batch, d->aside, STR("PEXPIRE"), d->aside,
                    str_int(task_arena(t), BLOCK_ASIDE_MS));
    int err = redis_batch_run(&batch, &replies);
    for (size_t i = 0; !err && i < 2; i++)
        err = redis_verdict(t, replies[i], NULL);
    return err;
}

static int put_batch(struct task *t, struct build *d)
{
    struct str *argv = ARENA_ARRAY(&d->kept, struct str, 2 + 2 * d->count);
    size_t argc = 0;
    argv[argc++] = STR("HSET");
    argv[argc++] = d->aside;
    for (size_t i = 0; i < d->count; i++) {
        argv[argc++] = d->batch[i].doi;
        argv[argc++] = d->batch[i].packed;
    }
    return put_aside(t, d, argc, argv);
}

static int keep_lock(struct task *t, struct build *d)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (now_ms - d->kept_ms < BLOCK_KEEP_MS)
        return 0;
    int err = lock_keep(t, d->lock, BLOCK_LOCK_MS);
    if (!err)
        d->kept_ms = now_ms;
    return err;
}

static int flush(struct task *t, struct build *d)
{
    if (d->count == 0)
        return 0;
    int err = offload(t, pack_batch, d);
    if (!err && d->err)
        err = task_fail(t, d->err, "paper %.*s in table paperinfo cannot be packed: %s",
                        STR_ARG(d->batch[d->count].doi),
                        d->err == ERR_LIMIT ? "it is too large" : "its JSON is not a paper's");
    if (!err)
        err = keep_lock(t, d);
    if (!err)
        err = put_batch(t, d);
    if (err)
        return err;
    d->papers += (int64_t)d->count;
    metric_add(d->blocks->packed, (int64_t)d->count);
    d->count = d->bytes = 0;
    arena_reset(&d->kept, (struct arena_mark){0});
    return 0;
}

static int take_row(struct task *t, const struct sql_value *cells, void *arg)
{
    struct build *d = arg;
    d->batch[d->count++] = (struct batch_paper){.doi = str_dup(&d->kept, cells[0].s),
                                                .json = str_dup(&d->kept, cells[1].s)};
    d->bytes += cells[1].s.n;
    bool full = d->count == BATCH_PAPERS_MAX || d->bytes >= BATCH_BYTES_MAX;
    return full ? flush(t, d) : 0;
}

static int fill(struct task *t, struct build *d)
{
    const struct sql_value args[] = {sql_text(d->job->journal), sql_int(d->job->year)};
    int err =
        sql_each(t, d->blocks->sql, "SELECT DOI, Bib FROM paperinfo WHERE journal = ? AND year = ?",
                 2, args, take_row, d);
    return err ? err : flush(t, d);
}

/* fields: 0 removes the block. */
static int commit(struct task *t, struct build *d, int64_t fields)
{
    struct blocks *b = d->blocks;
    struct str key = d->job->key;
    int64_t status;
    int err = SCRIPT_NUMBER(t, b->redis, block_commit, &status, .lock = d->lock->key,
                            .aside = d->aside, .block = key, .token = lock_token(d->lock),
                            .fields = str_int(task_arena(t), fields),
                            .ms = str_int(task_arena(t), block_ttl_ms(task_loop(t))));
    if (err || status == 1)
        return err;
    return task_fail(t, ERR_CONFLICT, "%.*s was built, but %s", STR_ARG(key),
                     status == 0 ? "the lock had gone to another builder"
                                 : "what was aside is gone");
}

/* The header has the number of papers found, so the block is whole. corpus_block may differ while
 * papers are being loaded: then the block is out of date, whatever corpus_block will say, and the
 * next refresh rebuilds it. */
static int finish(struct task *t, struct build *d, struct block_version v)
{
    if (d->papers == 0) {
        int err = commit(t, d, 0);
        return err ? err
                   : task_fail(t, ERR_NOT_FOUND, "there are no papers for %.*s",
                               STR_ARG(d->job->key));
    }
    if (d->papers != v.papers)
        log_warn(
            "block",
            "%.*s was built with %lld papers, but table corpus_block says %lld: expected during "
            "\"millrace db init\", otherwise the tables were changed by hand",
            STR_ARG(d->job->key), (long long)d->papers, (long long)v.papers);
    struct block_version now;
    int err = block_read_version(t, d->blocks, d->job->journal, d->job->year, &now);
    if (err)
        return err;
    if (!block_same(v, now))
        v.digest = NO_DIGEST;
    v.papers = d->papers;
    v.changed = now.changed;
    const struct str argv[] = {STR("HSET"), d->aside, STR(BLOCK_HEADER),
                               block_header(task_arena(t), v)};
    err = put_aside(t, d, 4, argv);
    return err ? err : commit(t, d, d->papers + 1);
}

int block_build(struct task *t, struct blocks *b, const struct block_job *j, const struct lock *l,
                struct block_version v)
{
    int err = b->dictionaries.answered ? 0 : blocks_learn(t, b);
    if (err)
        return err;
    struct build *d = ARENA_NEW(task_arena(t), struct build);
    d->blocks = b;
    d->job = j;
    d->lock = l;
    d->kept_ms = loop_now_ms(task_loop(t));
    d->aside = key_block_aside(task_arena(t), j->journal, j->year, lock_token(l));
    arena_init(&d->kept);
    arena_init(&d->scratch);
    d->packer = block_packer_get(b);
    if (v.papers > 0) /* else the tables say that there are none */
        err = fill(t, d);
    if (!err)
        err = finish(t, d, v);
    block_packer_put(b, d->packer);
    arena_release(&d->kept);
    arena_release(&d->scratch);
    return err;
}
