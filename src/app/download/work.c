#include <inttypes.h>
#include <stdio.h>

#include "app/download/downloads_private.h"
#include "base/log.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define LEASE_BYTES 48

/* One download that is being built. */
struct work {
    struct downloads *downloads;
    struct str id;
    struct download_wish wish;
    char lease[LEASE_BYTES];      /* of its status: a fencing token */
    struct str status;            /* its key */
    struct generation generation; /* in which it was begun */
    int64_t rows;                 /* expected, for the progress */
    int64_t progress, pieces, bytes;
    bool too_large;
};

static int not_ours(struct task *t)
{
    return task_fail(t, ERR_BUSY, "another worker has this download");
}

/* A Redis that was restarted may have lost pieces that were saved before: what was begun is
 * finished in the same generation, or not at all. Nothing waits between this and the call that
 * follows it. */
static int same_redis(struct task *t, const struct work *j)
{
    return generation_lasts_at(j->downloads->options.redis, j->status, &j->generation)
               ? 0
               : task_fail(t, ERR_UNAVAILABLE, "Redis was lost while the file was built");
}

/* --- building --- */

/* packed: "" if there is no piece yet. */
static int save(struct task *t, struct work *j, struct str packed)
{
    struct arena *a = task_arena(t);
    int64_t saved;
    int err =
        SCRIPT_NUMBER(t, j->downloads->options.redis, download_save, &saved, .status = j->status,
                      .piece = key_download_piece(a, j->wish.run.uid, j->id, j->pieces),
                      .lease = str_of(j->lease), .progress = str_int(a, j->progress),
                      .packed = packed, .ms = str_int(a, DOWNLOAD_FILE_MS));
    return err || saved ? err : not_ours(t);
}

static int save_piece(struct task *t, struct str piece, void *arg)
{
    struct work *j = arg;
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
    struct work *j = arg;
    int64_t expected = j->rows > rows ? j->rows : rows;
    int64_t max = j->downloads->options.held_bytes_max;
    if (bytes / rows * expected > max + max / 4) {
        j->too_large = true;
        return ERR_LIMIT;
    }
    j->progress = rows * 99 / expected;
    return rows >= expected ? 0 : save(t, j, STR(""));
}

/* --- the end of it --- */

/* Drops all pieces, or renews the TTL of all of them. */
static int each_piece(struct task *t, const struct work *j, bool drop)
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
static int finish(struct task *t, struct work *j)
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
                            .status = j->status, .downloads = key_downloads_of(a, j->wish.run.uid),
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

/* A download that is given up; why is for its user. */
int download_give_up(struct task *t, void *arg, const struct job *j, const char *why)
{
    struct downloads *d = arg;
    struct str id = j->id;
    int64_t done, uid;
    if (!str_to_i64(str_cut(&id, ':'), &uid) || !id.p)
        return 0;
    int err =
        SCRIPT_NUMBER(t, d->options.redis, download_fail, &done,
                      .status = key_download_status(task_arena(t), uid, id), .reason = str_of(why));
    metric_add(d->failed_count, !err && done);
    return err;
}

static int build(struct task *t, struct work *j)
{
    int64_t began_us = loop_now_us(task_loop(t));
    int err = download_build(t, j->downloads, &j->wish, save_piece, note_progress, j);
    if (!err || j->too_large)
        err = finish(t, j);
    if (!err) {
        histogram_add_us(j->downloads->seconds, loop_now_us(task_loop(t)) - began_us);
        return same_redis(t, j); /* an older Redis may not have the READY status */
    }
    if (err == ERR_CANCELED)
        return err;
    log_warn("download", "%.*s of run %.*s was not built: %s", STR_ARG(j->id),
             STR_ARG(j->wish.run.qid), *task_error(t) ? task_error(t) : err_name(err));
    bool passes = err_may_pass(err) || err == ERR_CLOSED;
    return task_fail(t, err, "%s",
                     passes ? "the stores did not answer" : "the file cannot be built");
}

/* False: there is no such download, or it needs no building. */
static bool read_status(const struct redis_reply *r, struct work *j)
{
    if (r->type != REDIS_ARRAY || r->count != 5)
        return false;
    const struct redis_reply *const *f = r->items;
    j->wish.run.qid = f[1]->str;
    j->wish.all = str_eq(f[3]->str, STR("all"));
    return f[1]->type == REDIS_STRING && export_parse(f[2]->str, &j->wish.format) &&
           str_to_i64(f[4]->str, &j->rows);
}

int download_work(struct task *t, void *arg, const struct job *job)
{
    struct downloads *d = arg;
    struct work j = {.downloads = d};
    struct str rest = job->id;
    const struct redis_reply *r;
    if (!str_to_i64(str_cut(&rest, ':'), &j.wish.run.uid) || !rest.p)
        return JOB_WRITTEN;
    j.id = rest;
    j.status = key_download_status(task_arena(t), j.wish.run.uid, j.id);
    j.generation = generation_at(d->options.redis, j.status);
    snprintf(j.lease, sizeof j.lease, "%016" PRIx64 ":%" PRIu64, d->options.incarnation,
             ++d->takes);
    int err = SCRIPT(t, d->options.redis, download_begin, &r, .status = j.status,
                     .lease = str_of(j.lease));
    if (err)
        return err;
    return read_status(r, &j) ? build(t, &j) : JOB_WRITTEN;
}
