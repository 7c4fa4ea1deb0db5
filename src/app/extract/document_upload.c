/* From a request into pieces: a bounded part of the file is in memory, one megabyte of it. */
#include <stdlib.h>

#include "app/extract/document_private.h"
#include "app/extract/pdf.h"
#include "base/log.h"
#include "base/sha256.h"
#include "corpus/charset.h"
#include "engine/people/own_id.h"
#include "engine/setup/config.h"
#include "engine/store/cluster.h"
#include "loop/offload.h"
#include "wire/http_server.h"

#define REPAIRED_MAX 100 /* a text has at most one broken place in so many bytes */
#define MB           (1024 * 1024)

struct upload {
    struct node *node;
    struct http_exchange *x;
    int64_t uid;
    struct document *doc;
    bool pdf, utf8; /* utf8: all bytes so far, and no byte order mark */
    bool wide;      /* text in UTF-16 */
    bool ended;     /* the client has sent everything */
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char *piece; /* DOCUMENT_PIECE_BYTES */
    size_t n;    /* bytes in it */
    int64_t place, bytes, bytes_max;
    bool begun, unsure; /* there is a row; it may be the document already */
    struct str text;    /* converted; p == NULL: the file is the text, or a PDF */
    bool again;
};

/* --- names --- */

/* The last part of a path, as one line: no control characters, of Unicode neither. */
static struct str clean_name(struct arena *a, struct str name)
{
    for (size_t i = name.n; i-- > 0;)
        if (name.p[i] == '/' || name.p[i] == '\\') {
            name = str_skip(name, i + 1);
            break;
        }
    char *p = arena_alloc(a, name.n + 1);
    size_t n = 0, chars = 0;
    while (name.n && chars < DOCUMENT_NAME_CHARS) {
        size_t step = str_utf8_step(name);
        unsigned char c = (unsigned char)name.p[0];
        bool control = c < ' ' || c == 0x7F || (c == 0xC2 && (unsigned char)name.p[1] < 0xA0);
        if (step && !control) {
            memcpy(p + n, name.p, step);
            n += step;
            chars++;
        }
        name = str_skip(name, step ? step : 1);
    }
    struct str clean = str_trim(str_from(p, n));
    return clean.n ? clean : STR("document");
}

static bool is_called(struct str name, struct str suffix)
{
    return name.n > suffix.n && str_ieq(str_skip(name, name.n - suffix.n), suffix);
}

/* --- what it is --- */

static int no_document(struct task *t, const char *why)
{
    return task_fail(t, ERR_INVALID, "the file is neither text nor PDF: %s", why);
}

/* By its first bytes, then by its name. */
static int recognize(struct task *t, struct upload *u, struct str name)
{
    struct str head = str_from(u->piece, u->n);
    if (head.n == 0)
        return task_fail(t, ERR_INVALID, "the file is empty");
    u->pdf = pdf_is(head);
    u->wide = str_starts(head, STR("\xFF\xFE")) || str_starts(head, STR("\xFE\xFF"));
    u->utf8 = !u->pdf && !u->wide && !str_starts(head, STR("\xEF\xBB\xBF"));
    if (!u->pdf && is_called(name, STR(".pdf")))
        return task_fail(t, ERR_INVALID, "the file is called .pdf, but is none");
    bool markdown = is_called(name, STR(".md")) || is_called(name, STR(".markdown"));
    u->doc->media = u->pdf     ? STR("application/pdf")
                    : markdown ? STR("text/markdown")
                               : STR("text/plain");
    return 0;
}

/* --- room --- */

static int too_large(struct task *t, const struct upload *u)
{
    return task_fail(t, ERR_LIMIT, "the file is too large: a document has at most %lld MB",
                     (long long)(u->bytes_max / MB));
}

static int has_room(struct task *t, const struct upload *u, const struct sql_value *row)
{
    int64_t mb = u->node->config->extract_user_mb;
    if (row[0].i >= DOCUMENT_UPLOADS_MAX)
        return task_fail(t, ERR_RATE, "%d of your files are being uploaded already",
                         DOCUMENT_UPLOADS_MAX);
    if (row[1].i >= DOCUMENTS_MAX)
        return task_fail(t, ERR_CONFLICT, "you have %d documents: delete some of them first",
                         DOCUMENTS_MAX);
    if (row[2].i > mb * MB - u->doc->bytes)
        return task_fail(t, ERR_CONFLICT,
                         "there is no room for the file: your documents have %lld MB of %lld MB; "
                         "delete some of them first",
                         (long long)(row[2].i / MB), (long long)mb);
    return 0;
}

/* Uploads of one user begin and end one after the other: quota and digests are of all of them. */
static int lock_user(struct task *t, struct sql *c, int64_t uid)
{
    int err = cluster_turn(t, c, CLUSTER_USER, uid);
    return err ? err
               : sql_on(t, c, NULL, "SELECT uid FROM user_info WHERE uid = ? FOR UPDATE",
                        sql_int(uid));
}

/* doc->bytes is what the client has announced, or what a document may have: it is reserved. */
static int begin_row(struct task *t, struct sql *c, void *arg)
{
    struct upload *u = arg;
    struct sql_rows r;
    int err = lock_user(t, c, u->uid);
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT COUNT(IF(stored_at IS NULL, 1, NULL)), COUNT(*),"
                     " CAST(COALESCE(SUM(bytes), 0) AS SIGNED) FROM document"
                     " WHERE uid = ? AND deleted IS NULL",
                     sql_int(u->uid));
    if (!err)
        err = has_room(t, u, r.cells);
    if (!err)
        err = sql_on(t, c, &r,
                     "INSERT INTO document (id, uid, name, media, bytes, created_at)"
                     " VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3))",
                     sql_text(u->doc->id), sql_int(u->uid), sql_text(u->doc->name),
                     sql_text(u->doc->media), sql_int(u->doc->bytes));
    if (!err)
        u->doc->number = (int64_t)r.insert_id;
    return err;
}

static int begin(struct task *t, struct upload *u)
{
    int err = sql_tx(t, u->node->sql, begin_row, u);
    u->begun = !err;
    return err;
}

/* --- pieces --- */

/* Reads until the piece is full, or the file ends. */
static int fill(struct task *t, struct upload *u)
{
    while (!u->ended && u->n < DOCUMENT_PIECE_BYTES) {
        size_t got;
        int err = http_body_read(t, u->x, u->piece + u->n, DOCUMENT_PIECE_BYTES - u->n, &got);
        if (err)
            return err;
        sha256_add(&u->hash, str_from(u->piece + u->n, got));
        u->n += got;
        u->bytes += (int64_t)got;
        u->ended = got == 0;
        if (u->bytes > u->bytes_max)
            return too_large(t, u);
    }
    return 0;
}

/* Bytes of the piece to store now: of UTF-8 whole characters. */
static size_t whole_bytes(struct upload *u)
{
    size_t valid = u->utf8 ? str_utf8_prefix(str_from(u->piece, u->n)) : u->n;
    bool cut = u->n - valid < 4 && !u->ended; /* perhaps: its rest is in the next piece */
    u->utf8 = u->utf8 && (valid == u->n || cut);
    return u->utf8 ? valid : u->n;
}

static int store_piece(struct task *t, struct upload *u)
{
    size_t n = whole_bytes(u);
    if (!u->pdf && !u->wide && memchr(u->piece, '\0', u->n))
        return no_document(t, "it has a NUL character");
    int err = n ? document_piece_add(t, u->node->sql, u->doc->number, DOCUMENT_FILE, u->place++,
                                     str_from(u->piece, n))
                : 0;
    if (err)
        return err;
    u->n -= n;
    memmove(u->piece, u->piece + n, u->n);
    return 0;
}

static int store_pieces(struct task *t, struct upload *u)
{
    int err = 0;
    while (!err && u->n) {
        err = store_piece(t, u);
        if (!err)
            err = fill(t, u);
    }
    return err;
}

/* --- text in another encoding --- */

struct conversion {
    struct arena *arena;
    struct str bytes;
    struct charset_text out;
    int err;
};

static void convert_it(void *arg)
{
    struct conversion *c = arg;
    c->err = charset_to_utf8(c->arena, c->bytes, &c->out);
}

static int convert_whole(struct task *t, struct upload *u)
{
    struct document_pieces p = {u->doc->number, DOCUMENT_FILE, u->bytes};
    struct conversion c = {.arena = task_arena(t)};
    int err = document_pieces_read(t, u->node->sql, &p, &c.bytes);
    if (!err)
        err = offload(t, convert_it, &c);
    if (err || c.err)
        return err ? err : c.err;
    if (memchr(c.out.utf8.p, '\0', c.out.utf8.n))
        return no_document(t, "it has a NUL character");
    if (c.out.repaired > c.bytes.n / REPAIRED_MAX)
        return no_document(t, "it is in no encoding that is known here");
    if (c.out.utf8.n == 0)
        return task_fail(t, ERR_INVALID, "the file is empty");
    u->text = c.out.utf8;
    return 0;
}

static int convert(struct task *t, struct upload *u)
{
    if (u->pdf || u->utf8)
        return 0;
    int err = sem_get(t, &u->node->documents->conversions);
    if (err)
        return err;
    err = convert_whole(t, u);
    sem_put(&u->node->documents->conversions);
    return err;
}

/* --- the end --- */

static int find_alike(struct task *t, struct sql *c, struct upload *u)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT id FROM document WHERE uid = ? AND digest = ?",
                     sql_int(u->uid), sql_blob(str_from((char *)u->digest, SHA256_BYTES)));
    u->again = !err && r.count;
    if (u->again)
        u->doc->id = r.cells[0].s;
    return err;
}

static int finish_row(struct task *t, struct sql *c, void *arg)
{
    struct upload *u = arg;
    struct sql_rows r;
    int err = lock_user(t, c, u->uid);
    if (!err)
        err = find_alike(t, c, u);
    if (err || u->again)
        return err;
    if (u->text.p)
        err = document_text_add(t, c, u->doc->number, u->text);
    const char *from = u->pdf ? NULL : u->text.p ? DOCUMENT_TEXT : DOCUMENT_FILE;
    int64_t text_bytes = u->pdf ? 0 : u->text.p ? (int64_t)u->text.n : u->bytes;
    if (!err)
        err = sql_on(t, c, &r,
                     "UPDATE document SET bytes = ?, digest = ?, text_from = ?, text_bytes = ?,"
                     " stored_at = UTC_TIMESTAMP(3) WHERE number = ? AND stored_at IS NULL",
                     sql_int(u->bytes), sql_blob(str_from((char *)u->digest, SHA256_BYTES)),
                     sql_text(str_of(from)), sql_int(text_bytes), sql_int(u->doc->number));
    if (!err && r.affected == 0)
        err = task_fail(t, ERR_CONFLICT, "the upload took too long");
    return err;
}

static int finish(struct task *t, struct upload *u)
{
    sha256_end(&u->hash, u->digest);
    int err = convert(t, u);
    if (!err)
        err = sql_tx(t, u->node->sql, finish_row, u);
    u->unsure = err == ERR_UNCERTAIN || err == ERR_TIMEOUT || err == ERR_CANCELED;
    return err;
}

struct leftover {
    struct sql_pool *sql;
    int64_t number;
};

static void drop(struct task *t, void *arg)
{
    struct leftover *l = arg;
    if (document_drop(t, l->sql, l->number))
        log_debug("documents", "pieces of an upload stay until the sweep: %s", task_error(t));
    free(l);
}

/* By another task: this one may be cancelled, and must not keep its client waiting. What may have
 * been stored after all is left to the sweep, which looks at the row. */
static void drop_pieces(struct upload *u)
{
    if (!u->begun || u->unsure)
        return;
    struct leftover *l = check_memory(malloc(sizeof *l));
    *l = (struct leftover){u->node->sql, u->doc->number};
    if (task_go(u->node->group, "document-drop", drop, l))
        free(l);
}

/* A client that is sending does not read: it hears of a refusal after the last byte. */
static int refuse(struct task *t, struct upload *u, int err)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    bool asks = u->bytes == 0 && http_header(u->x, "expect").p; /* whether it shall send at all */
    size_t got = 1;
    while (!u->ended && !asks && got &&
           http_body_read(t, u->x, u->piece, DOCUMENT_PIECE_BYTES, &got) == 0)
        ;
    return task_fail(t, err, "%s", why);
}

static int receive(struct task *t, struct upload *u, struct str name)
{
    int64_t announced;
    bool told = str_to_i64(http_header(u->x, "content-length"), &announced);
    u->doc->bytes = told ? announced : u->bytes_max;
    if (u->doc->bytes > u->bytes_max)
        return too_large(t, u);
    int err = fill(t, u);
    if (!err)
        err = recognize(t, u, name);
    if (!err)
        err = begin(t, u);
    if (!err)
        err = store_pieces(t, u);
    return err ? err : finish(t, u);
}

int document_upload(struct task *t, struct node *n, int64_t uid, struct str name,
                    struct http_exchange *x, struct document *out, bool *again)
{
    struct arena *a = task_arena(t);
    struct upload *u = ARENA_NEW(a, struct upload);
    *out = (struct document){.id = own_id_new(t, uid), .name = clean_name(a, name)};
    *u = (struct upload){.node = n,
                         .x = x,
                         .uid = uid,
                         .doc = out,
                         .piece = arena_alloc(a, DOCUMENT_PIECE_BYTES),
                         .bytes_max = n->config->extract_document_mb * MB};
    sha256_begin(&u->hash);
    int err = receive(t, u, name);
    if (err || u->again)
        drop_pieces(u);
    if (err)
        return refuse(t, u, err);
    *again = u->again;
    return document_get(t, n, uid, out->id, out);
}
