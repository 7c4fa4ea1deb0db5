#include "app/download/downloads_private.h"
#include "engine/store/keys.h"

struct build {
    struct downloads *downloads;
    struct exporter *exporter;
    struct buf out; /* not handed on yet */
    int64_t rows, bytes;
    bool has_turn;
    download_fn *fn;
    download_far_fn *far;
    void *arg;
};

struct rendering {
    struct exporter *exporter;
    const struct result_row *rows;
    const struct block_pick *picks;
    size_t count;
};

static void render(void *arg)
{
    const struct rendering *r = arg;
    for (size_t i = 0; i < r->count; i++)
        export_add(r->exporter, &r->rows[i], r->picks[i].bibtex);
}

/* --- turns --- */

static int get_turn(struct task *t, struct build *b)
{
    int err = sem_get(t, &b->downloads->turn);
    b->has_turn = !err;
    return err;
}

static void end_turn(struct build *b)
{
    if (b->has_turn)
        sem_put(&b->downloads->turn);
    b->has_turn = false;
}

/* --- one batch --- */

/* A client may take its piece slowly: the turn is given up meanwhile. */
static int hand_piece(struct task *t, struct build *b, struct str piece)
{
    if (b->far)
        return b->fn(t, piece, b->arg);
    end_turn(b);
    int err = b->fn(t, piece, b->arg);
    return err ? err : get_turn(t, b);
}

static int hand_on(struct task *t, struct build *b, size_t least)
{
    int err = 0;
    while (!err && b->out.len >= least && b->out.len > 0) {
        struct str piece = buf_str(&b->out);
        if (piece.n > DOWNLOAD_PIECE_BYTES)
            piece.n = DOWNLOAD_PIECE_BYTES;
        err = hand_piece(t, b, piece);
        buf_consume(&b->out, piece.n);
        b->bytes += (int64_t)piece.n;
    }
    return err;
}

/* Rendering five hundred papers takes milliseconds, too long for the loop's own thread. */
static int take_rows(struct task *t, const struct result_row *rows, size_t count, void *arg)
{
    struct build *b = arg;
    struct block_pick *picks = ARENA_ARRAY(task_arena(t), struct block_pick, count);
    for (size_t i = 0; i < count; i++)
        picks[i] = (struct block_pick){
            .journal = rows[i].journal, .year = rows[i].year, .doi = rows[i].doi};
    int err = blocks_pick(t, b->downloads->blocks, picks, count);
    if (err)
        return err;
    struct rendering r = {b->exporter, rows, picks, count};
    err = download_offload(t, render, &r);
    b->rows += (int64_t)count;
    if (!err)
        err = hand_on(t, b, DOWNLOAD_PIECE_BYTES);
    if (!err && b->far)
        err = b->far(t, b->rows, b->bytes + (int64_t)b->out.len, b->arg);
    if (err)
        return err;
    end_turn(b);
    return get_turn(t, b);
}

int download_build(struct task *t, struct downloads *d, const struct download_wish *w,
                   download_fn *fn, download_far_fn *far, void *arg)
{
    struct build b = {.downloads = d, .fn = fn, .far = far, .arg = arg};
    struct results r = {d->options.redis, d->options.sql, d->options.ledger, d->blocks, NULL};
    buf_init(&b.out);
    b.exporter = export_new(w->format, &b.out);
    int err = get_turn(t, &b);
    if (!err)
        err = results_each(t, &r, w->run, w->all ? RESULTS_ALL : RESULTS_HIT, take_rows, &b);
    if (!err)
        err = hand_on(t, &b, 0);
    end_turn(&b);
    export_free(b.exporter);
    buf_release(&b.out);
    return err;
}
