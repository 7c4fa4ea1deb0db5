#include <stdlib.h>

#include "app/download/downloads_private.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/api/file_name.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define AWAIT_POLL_MS       40
#define AWAIT_MARGIN_MS     1000 /* of the deadline is left to answer */
#define DOWNLOAD_BACKOFF_MS 2000
#define LOST_MS             15000 /* a download that waits longer may have left the queue */

static const char *const states[] = {
    [DOWNLOAD_PENDING] = "PENDING",
    [DOWNLOAD_PROCESSING] = "PROCESSING",
    [DOWNLOAD_READY] = "READY",
    [DOWNLOAD_FAILED] = "FAILED",
};

const char *download_state_name(enum download_state s)
{
    return states[s];
}

/* --- the whole --- */

static int64_t *counter(struct metrics *m, const char *name, const char *help)
{
    return metric(m, METRIC_COUNTER, name, "", help);
}

struct downloads *downloads_new(const struct downloads_options *o)
{
    struct downloads *d = check_memory(calloc(1, sizeof *d));
    struct metrics *m = o->metrics;
    d->options = *o;
    if (!o->lease_ms)
        d->options.lease_ms = DOWNLOAD_LEASE_MS;
    if (!o->held_bytes_max)
        d->options.held_bytes_max = DOWNLOAD_HELD_BYTES_MAX;
    if (!o->queued_max)
        d->options.queued_max = DOWNLOADS_QUEUED_MAX;
    d->blocks =
        blocks_new(&(struct blocks_options){.redis = o->redis, .sql = o->sql, .metrics = m});
    sem_init(&d->turn, 1);
    d->created_count = counter(m, "millrace_downloads_created_total", "Downloads asked for.");
    d->ready_count = counter(m, "millrace_downloads_ready_total", "Files that were built.");
    d->failed_count =
        counter(m, "millrace_downloads_failed_total", "Files that could not be built.");
    d->streamed_count = counter(m, "millrace_downloads_streamed_total",
                                "Files that were built while they were sent.");
    d->bytes_count = counter(m, "millrace_downloads_bytes_total", "Bytes of files built.");
    d->seconds = histogram_new(m, "millrace_download_build_seconds", "Building a file.");
    d->kind = (struct job_kind){.name = DOWNLOAD_QUEUE,
                                .concurrency = DOWNLOAD_WORKERS,
                                .lease_ms = d->options.lease_ms,
                                .deadline_ms = DOWNLOAD_DEADLINE_MS,
                                .tries_max = DOWNLOAD_TRIES_MAX,
                                .backoff_ms = DOWNLOAD_BACKOFF_MS,
                                .user_max = DOWNLOADS_WAITING_MAX,
                                .all_max = d->options.queued_max,
                                .work = download_work,
                                .give_up = download_give_up};
    jobs_add(o->jobs, &d->kind, d);
    return d;
}

void downloads_free(struct downloads *d)
{
    if (!d)
        return;
    histogram_free(d->seconds);
    blocks_free(d->blocks);
    free(d);
}

/* --- asking for one --- */

static struct str name_of(struct arena *a, struct str question, int64_t wall_ms,
                          const struct download_wish *w)
{
    struct str end = str_printf(a, "-%s.%s", w->all ? "all" : "relevant", export_name(w->format));
    return file_name(a, question, wall_ms, end);
}

/* The status first: a worker that takes the download finds it. */
static int note(struct task *t, struct downloads *d, const struct download_wish *w, struct str id,
                const struct run_view *v)
{
    struct arena *a = task_arena(t);
    struct str key = key_download_status(a, w->run.uid, id);
    int64_t wall_ms = loop_wall_ms(task_loop(t));
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, d->options.redis);
    redis_batch_add(&b, key, STR("HSET"), key, STR("state"), STR("PENDING"), STR("uid"),
                    str_int(a, w->run.uid), STR("qid"), w->run.qid, STR("type"),
                    str_of(export_name(w->format)), STR("scope"),
                    w->all ? STR("all") : STR("relevant"), STR("progress"), STR("0"), STR("rows"),
                    str_int(a, w->all ? v->finished : v->relevant), STR("name"),
                    name_of(a, v->question, wall_ms, w), STR("created_at"), str_int(a, wall_ms));
    redis_batch_add(&b, key, STR("PEXPIRE"), key, str_int(a, DOWNLOAD_STATUS_MS));
    int err = redis_batch_run(&b, &replies);
    for (size_t i = 0; !err && i < 2; i++)
        err = redis_verdict(t, replies[i], NULL);
    return err;
}

/* It was refused: its status goes. */
static int forget(struct task *t, struct downloads *d, int64_t uid, struct str id)
{
    struct str key = key_download_status(task_arena(t), uid, id);
    return redis_call(t, d->options.redis, key, NULL, STR("DEL"), key);
}

int download_push(struct task *t, struct downloads *d, int64_t uid, struct str id)
{
    struct job_push p = {
        .id = str_printf(task_arena(t), "%lld:%.*s", (long long)uid, STR_ARG(id)),
        .uid = uid,
        .version = 1,
        .order = loop_wall_ms(task_loop(t)),
    };
    enum jobs_room room;
    int err = jobs_push(t, d->options.jobs, DOWNLOAD_QUEUE, &p, 1, &room);
    if (err || room == JOBS_ROOM)
        return err;
    return room == JOBS_USER_FULL
               ? task_fail(t, ERR_RATE, "%d of your downloads are waiting already",
                           DOWNLOADS_WAITING_MAX)
               : task_fail(t, ERR_BUSY, "too many downloads are waiting");
}

int download_create(struct task *t, struct downloads *d, const struct download_wish *w,
                    char id[DOWNLOAD_ID_BYTES])
{
    const struct downloads_options *o = &d->options;
    struct runs runs = {.redis = o->redis, .sql = o->sql, .cache = o->cache, .ledger = o->ledger};
    struct run_view v;
    int err = run_view(t, &runs, w->run, &v);
    if (!err && v.degraded) /* a file is whole, or there is none */
        err = task_fail(t, ERR_UNAVAILABLE, "a store is away");
    if (err)
        return err;
    loop_token(task_loop(t), id, DOWNLOAD_ID_BYTES);
    err = note(t, d, w, str_of(id), &v);
    if (!err)
        err = download_push(t, d, w->run.uid, str_of(id));
    if (err == ERR_RATE || err == ERR_BUSY) {
        int also = forget(t, d, w->run.uid, str_of(id));
        return also ? also : err;
    }
    metric_add(d->created_count, !err);
    return err;
}

/* --- looking at it --- */

static bool parse_state(struct str name, enum download_state *out)
{
    for (int s = DOWNLOAD_PENDING; s <= DOWNLOAD_FAILED; s++)
        if (str_eq(name, str_of(states[s]))) {
            *out = (enum download_state)s;
            return true;
        }
    return false;
}

/* Reconciles status and queue: a Redis that came back older may have lost the push. A client that
 * waits polls the status, so it is noticed here. */
static void find_again(struct task *t, struct downloads *d, const struct download *found,
                       int64_t created_ms)
{
    bool waits = found->state == DOWNLOAD_PENDING || found->state == DOWNLOAD_PROCESSING;
    if (!waits || loop_wall_ms(task_loop(t)) - created_ms < LOST_MS)
        return;
    if (download_push(t, d, found->uid, found->id) == 0)
        log_debug("download", "%.*s waits for long; it is in the queue", STR_ARG(found->id));
}

int download_look(struct task *t, struct downloads *d, int64_t uid, struct str id,
                  struct download *out)
{
    if (!hex_is(id, DOWNLOAD_ID_BYTES - 1))
        return task_fail(t, ERR_NOT_FOUND, "you have no such download");
    struct str key = key_download_status(task_arena(t), uid, id);
    const struct redis_reply *r;
    int err =
        redis_call(t, d->options.redis, key, &r, STR("HMGET"), key, STR("state"), STR("qid"),
                   STR("type"), STR("scope"), STR("name"), STR("error"), STR("progress"),
                   STR("streamed"), STR("bytes"), STR("pieces"), STR("until"), STR("created_at"));
    if (err)
        return err;
    const struct redis_reply *const *f = r->items;
    struct download found = {
        .uid = uid,
        .id = id,
        .wish = {.run = {uid, f[1]->str}, .all = str_eq(f[3]->str, STR("all"))},
        .name = f[4]->str,
        .error = f[5]->type == REDIS_STRING ? f[5]->str : STR_NULL,
        .progress = redis_number(f[6], 0),
        .streamed = f[7]->type == REDIS_STRING,
        .bytes = redis_number(f[8], 0),
        .pieces = redis_number(f[9], 0),
        .expires_ms = redis_number(f[10], 0),
    };
    /* Without these it has expired, and a worker has written to it after that. */
    if (f[1]->type != REDIS_STRING || f[4]->type != REDIS_STRING ||
        !parse_state(f[0]->str, &found.state) || !export_parse(f[2]->str, &found.wish.format))
        return task_fail(t, ERR_NOT_FOUND, "you have no such download");
    find_again(t, d, &found, redis_number(f[11], 0));
    *out = found;
    return 0;
}

int download_await(struct task *t, struct downloads *d, int64_t uid, struct str id,
                   struct download *out)
{
    struct backoff poll = {.ms = AWAIT_POLL_MS};
    for (;;) {
        int err = download_look(t, d, uid, id, out);
        if (err || out->state == DOWNLOAD_READY || out->state == DOWNLOAD_FAILED)
            return err;
        if (task_time_left_ms(t) < AWAIT_MARGIN_MS)
            return task_fail(t, ERR_TIMEOUT, "the file is not ready yet");
        err = backoff_wait(t, &poll);
        if (err)
            return err;
    }
}

/* --- sending it --- */

static int not_ready(struct task *t, const struct download *file)
{
    return task_fail(t, ERR_CONFLICT, "the download is %s", states[file->state]);
}

/* Renews the TTL of the pieces that follow: a slow client may take longer for this one than they
 * would live. */
static int fetch_piece(struct task *t, struct downloads *d, const struct download *file, int64_t n,
                       struct str *out)
{
    struct arena *a = task_arena(t);
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, d->options.redis);
    for (int64_t i = n; i < file->pieces; i++) {
        struct str key = key_download_piece(a, file->uid, file->id, i);
        if (i == n)
            redis_batch_add(&b, key, STR("GET"), key);
        if (i > n || file->pieces > 1)
            redis_batch_add(&b, key, STR("PEXPIRE"), key, str_int(a, DOWNLOAD_FILE_MS));
    }
    int err = redis_batch_run(&b, &replies);
    if (!err && replies[0]->type != REDIS_STRING)
        err = task_fail(t, ERR_NOT_FOUND, "the file has expired; ask for it again");
    return err ? err : download_unpack(t, replies[0]->str, out);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* An empty file has a piece, too. */
int download_send_part(struct task *t, struct downloads *d, const struct download *file,
                       int64_t first, int64_t count, download_begin_fn *begin, download_fn *fn,
                       void *arg)
{
    if (file->state != DOWNLOAD_READY)
        return not_ready(t, file);
    int64_t at = first / DOWNLOAD_PIECE_BYTES * DOWNLOAD_PIECE_BYTES, end = first + count;
    check(!file->streamed && first >= 0 && count >= 0 && end <= file->bytes);
    int err = 0;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct str piece;
        err = fetch_piece(t, d, file, at / DOWNLOAD_PIECE_BYTES, &piece);
        if (!err && (int64_t)piece.n != least(file->bytes - at, DOWNLOAD_PIECE_BYTES))
            err = task_fail(t, ERR_PROTO, "a piece of download %.*s is not as long as it was",
                            STR_ARG(file->id));
        if (!err && begin)
            err = begin(t, arg);
        begin = NULL;
        size_t skipped = first > at ? (size_t)(first - at) : 0;
        if (!err) {
            piece.n = (size_t)least((int64_t)piece.n, end - at);
            err = fn(t, str_skip(piece, skipped), arg);
        }
        arena_reset(task_arena(t), mark);
        at += DOWNLOAD_PIECE_BYTES;
    } while (!err && at < end);
    return err;
}

/* A free slot for a file that is built while it is sent. NULL: there is none for this user. */
static int64_t *find_place(struct downloads *d, int64_t uid)
{
    int64_t *place = NULL;
    int same = 0;
    for (size_t i = 0; i < DOWNLOAD_STREAMS_MAX; i++) {
        same += d->streaming[i] == uid;
        if (d->streaming[i] == 0)
            place = &d->streaming[i];
    }
    return same < DOWNLOAD_STREAMS_OF_USER ? place : NULL;
}

int download_send(struct task *t, struct downloads *d, const struct download *file,
                  download_begin_fn *begin, download_fn *fn, void *arg)
{
    if (file->state != DOWNLOAD_READY)
        return not_ready(t, file);
    if (!file->streamed)
        return download_send_part(t, d, file, 0, file->bytes, begin, fn, arg);
    int64_t *place = find_place(d, file->uid);
    if (!place)
        return task_fail(t, ERR_BUSY, "too many large files are being sent");
    *place = file->uid;
    int err = begin ? begin(t, arg) : 0;
    if (!err)
        err = download_build(t, d, &file->wish, fn, NULL, arg);
    *place = 0;
    metric_add(d->streamed_count, !err);
    return err;
}
