/* Compressed replies.
 *
 * Only where the handler has allowed it: text that has both a secret and words of an attacker tells
 * the secret by its length (BREACH). Short bodies are compressed on the loop's own thread, longer
 * ones on a helper thread. */
#include <stdlib.h>
#include <zlib.h>

#include "loop/offload.h"
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_field.h"

/* Fits one packet with its headers: compressed, it would not arrive earlier. */
#define LEAST_BYTES 1400
/* A quarter of a millisecond of the loop's time. */
#define INLINE_BYTES_MAX (32 * 1024)
/* A third of JSON and a fifth of BibTeX are left, at 150 MB/s; level 6 gains a quarter more, and
 * takes six times as long. */
#define LEVEL       1
#define GZIP_WINDOW (15 + 16) /* of zlib: the largest, with the head and the checksum of gzip */
#define STEP_BYTES  (16 * 1024)

struct http_gzip {
    z_stream z;
    struct buf *out;
    struct str in;
    bool last;
};

void http_allow_gzip(struct http_exchange *x)
{
    x->gzip_allowed = true;
}

/* Whether Accept-Encoding decides how so many bytes are sent. */
static bool is_open(const struct http_exchange *x, struct http_weights w, uint64_t bytes)
{
    return x->gzip_allowed && !x->events && bytes > 0 &&
           (bytes >= LEAST_BYTES || w.of[HTTP_IDENTITY] == 0) && !http_is_set(x, "content-range") &&
           !http_is_set(x, "content-encoding");
}

static struct http_weights weights_of(const struct http_exchange *x)
{
    return http_weights_parse(http_header_list(x, "accept-encoding"));
}

static bool is_wanted(struct http_weights w)
{
    return w.of[HTTP_GZIP] > 0 && w.of[HTTP_GZIP] >= w.of[HTTP_IDENTITY];
}

bool http_gzip_applies(const struct http_exchange *x, uint64_t bytes)
{
    if (!x->gzip_allowed)
        return false; /* before the headers are searched */
    struct http_weights w = weights_of(x);
    return is_wanted(w) && is_open(x, w, bytes);
}

/* The same, and tells the client. */
static bool choose(struct http_exchange *x, uint64_t bytes)
{
    if (!x->gzip_allowed)
        return false;
    struct http_weights w = weights_of(x);
    if (!is_open(x, w, bytes))
        return false;
    http_set_header(x, "Vary", STR("Accept-Encoding"));
    return is_wanted(w);
}

/* --- compressing --- */

static struct http_gzip *gzip_new(struct http_exchange *x)
{
    struct http_gzip *g = check_memory(calloc(1, sizeof(*g)));
    check(deflateInit2(&g->z, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    g->out = &x->conn->kit->packed;
    return g;
}

static void gzip_free(struct http_gzip *g)
{
    deflateEnd(&g->z);
    free(g);
}

static void compress_piece(void *arg)
{
    struct http_gzip *g = arg;
    g->z.next_in = (Bytef *)(uintptr_t)g->in.p;
    g->z.avail_in = (uInt)g->in.n;
    buf_clear(g->out);
    do {
        g->z.next_out = (Bytef *)buf_reserve(g->out, STEP_BYTES + g->in.n / 4);
        g->z.avail_out = (uInt)buf_room(g->out);
        int got = deflate(&g->z, g->last ? Z_FINISH : Z_NO_FLUSH);
        check(got == Z_OK || got == Z_STREAM_END || got == Z_BUF_ERROR);
        buf_added(g->out, buf_room(g->out) - g->z.avail_out);
    } while (g->z.avail_out == 0);
}

static int run(struct task *t, struct http_gzip *g, struct str in, bool last)
{
    check(in.n <= UINT32_MAX);
    g->in = in;
    g->last = last;
    int err = in.n > INLINE_BYTES_MAX ? offload(t, compress_piece, g) : ERR_BUSY;
    if (err == ERR_BUSY) {
        compress_piece(g); /* it is short, or too many wait for the helper threads */
        err = 0;
    }
    return err;
}

/* --- a whole body --- */

void http_gzip_body(struct task *t, struct http_exchange *x, struct str *body)
{
    if (!choose(x, body->n))
        return;
    struct http_gzip *g = gzip_new(x);
    int err = run(t, g, *body, true);
    gzip_free(g);
    struct str packed = buf_str(&x->conn->kit->packed);
    bool gains =
        packed.n < body->n || body->n < LEAST_BYTES; /* the latter: it must be compressed */
    if (err || !gains)
        return;
    http_set_header(x, "Content-Encoding", STR("gzip"));
    *body = packed;
}

/* --- a stream --- */

bool http_gzip_begin(struct http_exchange *x, uint64_t bytes)
{
    if (!choose(x, bytes))
        return false;
    http_set_header(x, "Content-Encoding", STR("gzip"));
    if (!x->headless)
        x->gzip = gzip_new(x);
    return true;
}

int http_gzip_piece(struct task *t, struct http_exchange *x, struct str *piece, bool last)
{
    int err = run(t, x->gzip, *piece, last);
    *piece = buf_str(x->gzip->out);
    return err;
}

void http_gzip_end(struct http_exchange *x)
{
    if (x->gzip)
        gzip_free(x->gzip);
    x->gzip = NULL;
}
