#include <inttypes.h>
#include <stdio.h>

#include "app/download/downloads_private.h"
#include "base/log.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define POLL_MS     200  /* between looks for downloads that other nodes queued */
#define AWAY_MS     1000 /* between looks while Redis does not answer */
#define RETRY_MS    2000 /* backoff: times the tries so far */
#define LEASE_BYTES 48

/* One download that a worker has taken. */
struct job {
    struct downloads *downloads;
    struct str member; /* "<uid>:<id>" */
    struct str id;
    struct download_wish wish;
    char lease[LEASE_BYTES];
    struct generation generation; /* in which it was taken */
    int64_t rows, tries;          /* rows: expected, for the progress */
    int64_t progress, pieces, bytes, kept_ms;
    bool too_large;
};

/* --- the lease --- */

/* ms of 0: releases it. */
static int set_lease(struct task *t, const struct job *j, int64_t ms)
{
    struct redis *redis = j->downloads->options.redis;
    int64_t kept;
    if (ms == 0)
        return redis_call(t, redis, key_download_taken, NULL, STR("ZREM"), key_download_taken,
                          j->member);
    return SCRIPT_NUMBER(t, redis, download_keep, &kept, .taken = key_download_taken,
                         .download = j->member, .ms = str_int(task_arena(t), ms));
}

static int keep_lease(struct task *t, struct job *j)
{
    int64_t now_ms = loop_now_ms(task_loop(t)), lease_ms = j->downloads->options.lease_ms;
    if (now_ms - j->kept_ms < lease_ms / 4)
        return 0;
    int err = set_lease(t, j, lease_ms);
    if (!err)
        j->kept_ms = now_ms;
    return err;
}

static int not_ours(struct task *t)
{
    return task_fail(t, ERR_CONFLICT, "another worker has this download");
}

/* A Redis that was restarted may have lost pieces that were saved before: what was begun is
 * finished in the same generation, or not at all. Nothing waits between this and the call that
 * follows it. */
static int same_redis(struct task *t, const struct job *j)
{
    return generation_lasts(j->downloads->options.redis, &j->generation)
               ? 0
               : task_fail(t, ERR_UNAVAILABLE, "Redis was lost while the file was built");
}

/* --- building --- */

/* packed: "" if there is no piece yet. */
static int save(struct task *t, struct job *j, struct str packed)
{
    struct arena *a = task_arena(t);
    int64_t saved;
    int err = SCRIPT_NUMBER(t, j->downloads->options.redis, download_save, &saved,
                            .status = key_download_status(a, j->wish.run.uid, j->id),
                            .piece = key_download_piece(a, j->wish.run.uid, j->id, j->pieces),
                            .lease = str_of(j->lease), .progress = str_int(a, j->progress),
                            .packed = packed, .ms = str_int(a, DOWNLOAD_FILE_MS));
    return err || saved ? err : not_ours(t);
}

static int save_piece(struct task *t, struct str piece, void *arg)
{
    struct job *j = arg;
    if (j->bytes + (int64_t)piece.n > j->downloads->options.held_bytes_max) {
        j->too_large = true;
        return ERR_LIMIT;
    }
    struct str packed;
    int err = download_pack(t, piece, &packed);
    if (!err)
        err = save(t, j, packed);
    if (err)
        return err;
    j->pieces++;
    j->bytes += (int64_t)piece.n;
    return 0;
}

/* Stops early when the file will clearly be too large to be held. */
static int note_progress(struct task *t, int64_t rows, int64_t bytes, void *arg)
{
    struct job *j = arg;
    int64_t expected = j->rows > rows ? j->rows : rows;
    int64_t max = j->downloads->options.held_bytes_max;
    if (bytes / rows * expected > max + max / 4) {
        j->too_large = true;
        return ERR_LIMIT;
    }
    j->progress = rows * 99 / expected;
    int err = keep_lease(t, j);
    return err || rows >= expected ? err : save(t, j, STR(""));
}

/* --- the end of it --- */

/* Drops all pieces, or renews the TTL of all of them. */
static int each_piece(struct task *t, const struct job *j, bool drop)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, j->downloads->options.redis);
    for (int64_t n = 0; n < j->pieces; n++) {
        struct str key = key_download_piece(a, j->wish.run.uid, j->id, n);
        if (drop)
            redis_batch_add(&b, key, STR("UNLINK"), key);
        else
            redis_batch_add(&b, key, STR("PEXPIRE"), key, str_int(a, DOWNLOAD_FILE_MS));
    }
    return j->pieces ? redis_batch_run(&b, &replies) : 0;
}

/* Pieces are dropped only after the script has compared the lease. */
static int finish(struct task *t, struct job *j)
{
    struct arena *a = task_arena(t);
    int64_t done;
    int err = 0;
    if (!j->too_large && j->pieces == 0)
        err = save_piece(t, STR(""), j); /* an empty file is a file */
    if (!err && !j->too_large && j->pieces > 1)
        err = each_piece(t, j, false);
    if (err)
        return err;
    err = same_redis(t, j);
    if (!err)
        err = SCRIPT_NUMBER(t, j->downloads->options.redis, download_finish, &done,
                            .status = key_download_status(a, j->wish.run.uid, j->id),
                            .downloads = key_downloads_of(a, j->wish.run.uid),
                            .lease = str_of(j->lease), .id = j->id, .bytes = str_int(a, j->bytes),
                            .pieces = str_int(a, j->too_large ? 0 : j->pieces),
                            .ms = str_int(a, DOWNLOAD_FILE_MS),
                            .held_max = str_int(a, DOWNLOAD_USER_BYTES_MAX));
    if (err || done == 0)
        return err ? err : not_ours(t);
    metric_add(j->downloads->ready_count, 1);
    metric_add(j->downloads->bytes_count, j->bytes);
    return j->too_large || done == 2 ? each_piece(t, j, true) : 0;
}

static int give_up(struct task *t, struct job *j, const char *reason)
{
    struct arena *a = task_arena(t);
    int64_t done;
    int err = SCRIPT_NUMBER(t, j->downloads->options.redis, download_fail, &done,
                            .status = key_download_status(a, j->wish.run.uid, j->id),
                            .downloads = key_downloads_of(a, j->wish.run.uid),
                            .lease = str_of(j->lease), .id = j->id, .reason = str_of(reason));
    if (err || done == 0)
        return err ? err : not_ours(t);
    metric_add(j->downloads->failed_count, 1);
    return 0;
}

static bool may_pass(int err)
{
    return err_may_pass(err) || err == ERR_CLOSED;
}

/* After an error that may pass, the lease is shortened so that a worker tries again. A download
 * that another worker holds is left alone. */
static int recover(struct task *t, struct job *j, int err)
{
    if (task_canceled(t))
        return ERR_CANCELED;
    if (err == ERR_CONFLICT)
        return 0;
    bool again = may_pass(err) && j->tries < DOWNLOAD_TRIES_MAX;
    log_warn("download", "%.*s of run %.*s was not built: %s; %s", STR_ARG(j->id),
             STR_ARG(j->wish.run.qid), *task_error(t) ? task_error(t) : err_name(err),
             again ? "it is tried again" : "it is FAILED, the user can ask for it again");
    if (again)
        return set_lease(t, j, RETRY_MS * j->tries);
    err = give_up(t, j, may_pass(err) ? "the stores did not answer" : "the file cannot be built");
    if (err == ERR_CONFLICT)
        return 0;
    return err ? err : set_lease(t, j, 0);
}

static int build(struct task *t, struct job *j)
{
    int64_t began_us = loop_now_us(task_loop(t));
    int err = download_build(t, j->downloads, &j->wish, save_piece, note_progress, j);
    if (!err || j->too_large)
        err = finish(t, j);
    if (err)
        return recover(t, j, err);
    histogram_add_us(j->downloads->seconds, loop_now_us(task_loop(t)) - began_us);
    err = same_redis(t, j); /* an older Redis may not have the READY status */
    return err ? err : set_lease(t, j, 0);
}

/* --- taking --- */

/* False: there is no such download, or it needs no building. */
static bool read_job(const struct redis_reply *r, struct job *j)
{
    if (r->type != REDIS_ARRAY || r->count != 6 || r->items[5]->type != REDIS_INT)
        return false;
    const struct redis_reply *const *f = r->items;
    j->wish.run.qid = f[1]->str;
    j->wish.all = str_eq(f[3]->str, STR("all"));
    j->tries = f[5]->integer;
    return f[1]->type == REDIS_STRING && export_parse(f[2]->str, &j->wish.format) &&
           str_to_i64(f[4]->str, &j->rows);
}

static int work(struct task *t, struct downloads *d, struct str member)
{
    struct job j = {.downloads = d,
                    .member = member,
                    .generation = generation_now(d->options.redis),
                    .kept_ms = loop_now_ms(task_loop(t))};
    struct str rest = member;
    const struct redis_reply *r;
    if (!str_to_i64(str_cut(&rest, ':'), &j.wish.run.uid) || !rest.p)
        return set_lease(t, &j, 0);
    j.id = rest;
    snprintf(j.lease, sizeof j.lease, "%016" PRIx64 ":%" PRIu64, d->options.incarnation,
             ++d->takes);
    int err = SCRIPT(t, d->options.redis, download_begin, &r,
                     .status = key_download_status(task_arena(t), j.wish.run.uid, j.id),
                     .lease = str_of(j.lease));
    if (err)
        return err;
    if (!read_job(r, &j))
        return set_lease(t, &j, 0);
    if (j.tries > DOWNLOAD_TRIES_MAX)
        return recover(t, &j,
                       task_fail(t, ERR_UNAVAILABLE, "%d workers died or stalled while building it",
                                 DOWNLOAD_TRIES_MAX));
    return build(t, &j);
}

/* Polls until there is a download. ERR_CLOSED: the node drains. */
static int take(struct task *t, struct downloads *d, struct str *member)
{
    struct str lease_ms = str_int(task_arena(t), d->options.lease_ms);
    while (!d->draining) {
        bool rests = d->options.drained && *d->options.drained;
        struct task_scope scope = task_scope(t);
        const struct redis_reply *r;
        int err = rests
                      ? ERR_CLOSED
                      : SCRIPT(t, d->options.redis, download_take, &r, .queue = key_download_queue,
                               .taken = key_download_taken, .ms = lease_ms);
        if (!err && r->type == REDIS_ARRAY && r->count == 2 && r->items[0]->str.n) {
            metric_set(d->waiting, r->items[1]->integer);
            *member = r->items[0]->str; /* the scope is the caller's to end */
            return 0;
        }
        task_scope_end(t, scope);
        if (!err)
            metric_set(d->waiting, 0);
        int64_t old = task_deadline(t, err && !rests ? AWAY_MS : POLL_MS);
        err = waitq_wait(t, &d->created);
        task_deadline_restore(t, old);
        if (err && err != ERR_TIMEOUT)
            return err;
    }
    return ERR_CLOSED;
}

static int take_and_work(struct task *t, struct downloads *d)
{
    struct str member;
    int err = sem_get(t, &d->asking);
    if (err)
        return err;
    d->busy++;
    err = take(t, d, &member);
    sem_put(&d->asking);
    bool taken = !err;
    if (taken)
        err = work(t, d, member);
    if (--d->busy == 0)
        waitq_wake_all(&d->idle);
    return taken ? err : 0; /* else the node drains, or the task is cancelled */
}

static void worker(struct task *t, void *arg)
{
    struct downloads *d = arg;
    while (!d->draining && !task_canceled(t)) {
        struct task_scope scope = task_scope(t);
        int err = take_and_work(t, d);
        if (err && err != ERR_CANCELED)
            log_warn("download", "a worker lost its download, which is retried after its lease: %s",
                     *task_error(t) ? task_error(t) : err_name(err));
        task_scope_end(t, scope);
    }
}

void downloads_task(struct task *t, void *arg)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < DOWNLOAD_WORKERS; i++)
        if (task_go(&g, "download", worker, arg))
            log_error("download",
                      "worker %d cannot start: out of memory; fewer files are built at once", i);
    int err = group_join(t, &g);
    (void)err; /* it ends when it is cancelled */
}

void downloads_drain(struct task *t, struct downloads *d, int64_t ms)
{
    int err = 0;
    d->draining = true;
    waitq_wake_all(&d->created);
    int64_t old = task_deadline(t, ms > 0 ? ms : 0);
    while (d->busy && !err)
        err = waitq_wait(t, &d->idle);
    task_deadline_restore(t, old);
}
