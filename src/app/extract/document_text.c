/* Pieces of documents, and their text: as it was uploaded, or taken out of a PDF once. */
#include "app/extract/document_private.h"
#include "app/extract/pdf.h"
#include "app/extract/together.h"
#include "base/err.h"
#include "engine/people/own_id.h"

#define PARSES_TRIED 3 /* the row is read again after each; another node may have deleted it */

/* --- pieces --- */

/* One statement for each: a slow reader of the piece holds no connection. */
static int read_piece(struct task *t, struct sql_pool *sql, const struct document_pieces *p,
                      int64_t place, struct str *out)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT bytes FROM document_piece WHERE document = ? AND kind = ?"
                       " AND place = ?",
                       sql_int(p->number), sql_text(str_of(p->kind)), sql_int(place));
    if (!err && r.count == 0)
        err = document_none(t);
    if (!err)
        *out = r.cells[0].s;
    return err;
}

int document_pieces_each(struct task *t, struct sql_pool *sql, const struct document_pieces *p,
                         document_piece_fn *fn, void *arg)
{
    int64_t done = 0;
    int err = 0;
    for (int64_t place = 0; !err && done < p->bytes; place++) {
        struct task_scope scope = task_scope(t);
        struct str piece = STR("");
        err = read_piece(t, sql, p, place, &piece);
        done += (int64_t)piece.n;
        if (!err)
            err = fn(t, piece, arg);
        task_scope_end(t, scope);
    }
    return err;
}

struct gathering {
    char *p;
    size_t n, room;
};

static int gather(struct task *t, struct str piece, void *arg)
{
    struct gathering *g = arg;
    if (piece.n > g->room - g->n)
        return task_fail(t, ERR_INTERNAL, "pieces of a document have more bytes than its row says");
    memcpy(g->p + g->n, piece.p, piece.n);
    g->n += piece.n;
    return 0;
}

int document_pieces_read(struct task *t, struct sql_pool *sql, const struct document_pieces *p,
                         struct str *out)
{
    size_t bytes = (size_t)p->bytes;
    struct gathering g = {.p = arena_alloc(task_arena(t), bytes + 1), .room = bytes};
    int err = document_pieces_each(t, sql, p, gather, &g);
    g.p[g.n] = '\0';
    *out = str_from(g.p, g.n);
    return err;
}

#define ADD_PIECE "INSERT INTO document_piece (document, kind, place, bytes) VALUES (?, ?, ?, ?)"

int document_piece_add(struct task *t, struct sql_pool *sql, int64_t number, const char *kind,
                       int64_t place, struct str bytes)
{
    return sql_call(t, sql, NULL, ADD_PIECE, sql_int(number), sql_text(str_of(kind)),
                    sql_int(place), sql_blob(bytes));
}

int document_text_add(struct task *t, struct sql *c, int64_t number, struct str text)
{
    int err = 0;
    for (int64_t place = 0; !err && text.n; place++) {
        struct str piece = document_clip(text, DOCUMENT_PIECE_BYTES);
        err = sql_on(t, c, NULL, ADD_PIECE, sql_int(number), sql_text(STR(DOCUMENT_TEXT)),
                     sql_int(place), sql_blob(piece));
        text = str_skip(text, piece.n);
    }
    return err;
}

/* --- the row --- */

#define ROWS_AT_ONCE 256
#define SMALL_BYTES  (32 << 10) /* of a text that is read with its row: a statement has many */

struct source {
    struct gather_item item;
    struct documents *documents;
    int64_t uid;
    struct str id;
    /* As the row says. */
    int64_t number, bytes, text_bytes;
    struct str from, error, code; /* text_from, _error, _code; p == NULL: none */
    struct str text;              /* of at most SMALL_BYTES; else p == NULL */
    bool no_reader;               /* this machine could not parse it */
};

enum { ID, UID, NUMBER, BYTES, TEXT_BYTES, FROM, ERROR, CODE, TEXT };

static struct str own(struct arena *a, struct str s)
{
    return s.p ? str_dup(a, s) : STR_NULL;
}

static void take_row(struct source *s, const struct sql_value *v)
{
    struct arena *a = task_arena(s->item.task);
    s->number = v[NUMBER].i;
    s->bytes = v[BYTES].i;
    s->text_bytes = v[TEXT_BYTES].i;
    s->from = own(a, v[FROM].s);
    s->error = own(a, v[ERROR].s);
    s->code = own(a, v[CODE].s);
    s->text = (int64_t)v[TEXT].s.n == s->text_bytes ? own(a, v[TEXT].s) : STR_NULL;
}

static int look_some(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct arena *a = task_arena(t);
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks + 1);
    struct sql_rows r;
    v[0] = sql_int(SMALL_BYTES);
    for (size_t i = 0; i < marks; i++)
        v[i + 1] = sql_text(((struct source *)items[i < count ? i : count - 1])->id);
    int err = sql_argv(
        t, ((struct documents *)arg)->node->sql,
        sql_marks(a,
                  "SELECT d.id, d.uid, d.number, d.bytes, d.text_bytes, d.text_from,"
                  " d.text_error, d.text_code, p.bytes FROM document d LEFT JOIN document_piece p"
                  " ON p.document = d.number AND p.kind = d.text_from AND p.place = 0"
                  " AND d.text_bytes <= ? WHERE d.stored_at IS NOT NULL"
                  " AND (d.deleted IS NULL OR d.used = 1) AND d.id IN",
                  marks, ""),
        marks + 1, v, &r);
    if (err)
        return err;
    struct map *rows = map_new();
    for (size_t i = 0; i < r.count; i++)
        (void)map_set(rows, sql_row(&r, i)[ID].s, (void *)(uintptr_t)sql_row(&r, i));
    for (size_t i = 0; i < count; i++) {
        struct source *s = (struct source *)items[i];
        const struct sql_value *row = map_get(rows, s->id);
        if (row && row[UID].i == s->uid)
            take_row(s, row);
    }
    map_free(rows);
    return 0;
}

static int look_all(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    return together(t, arg, items, count, look_some);
}

/* Documents whose texts are wanted at the same time are looked for by one statement. */
static int look(struct task *t, struct source *s)
{
    s->number = 0;
    int err = own_id_is(s->id, s->uid) ? gather_do(t, &s->documents->looks, &s->item, 0) : 0;
    return err || s->number ? err : document_none(t);
}

/* --- a PDF --- */

struct parsed {
    int64_t number, pages;
    struct str text;    /* p == NULL: the file has none */
    struct str error;   /* why */
    const char *reason; /* of PDF_REASONS */
};

/* The first result counts. */
static int store(struct task *t, struct sql *c, void *arg)
{
    const struct parsed *p = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT 1 FROM document WHERE number = ? AND text_from IS NULL"
                     " AND text_error IS NULL FOR UPDATE",
                     sql_int(p->number));
    if (err || r.count == 0)
        return err;
    err = document_text_add(t, c, p->number, p->text);
    if (err)
        return err;
    return sql_on(
        t, c, NULL,
        "UPDATE document SET text_from = ?, text_bytes = ?, text_error = ?, text_code = ?,"
        " pages = ? WHERE number = ?",
        sql_text(p->text.p ? STR(DOCUMENT_TEXT) : STR_NULL), sql_int((int64_t)p->text.n),
        sql_text(p->error), sql_text(p->error.p ? str_of(p->reason) : STR_NULL), sql_int(p->pages),
        sql_int(p->number));
}

static bool is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] > ' ')
            return false;
    return true;
}

static int parse(struct task *t, struct source *s)
{
    struct node *n = s->documents->node;
    struct document_pieces file = {s->number, DOCUMENT_FILE, s->bytes};
    struct pdf_options o = pdf_options(n->config);
    struct parsed p = {.number = s->number, .reason = PDF_NO_TEXT};
    struct str bytes;
    int err = document_pieces_read(t, n->sql, &file, &bytes);
    if (err)
        return err;
    err = pdf_text(t, &o, bytes, &p.text, &p.pages, &p.reason);
    s->no_reader = err == ERR_UNAVAILABLE;
    if (!err && is_blank(p.text))
        err = task_fail(t, ERR_INVALID,
                        "the PDF has no text: its pages may be images, which are not read");
    if (err == ERR_INVALID) {
        p.text = STR_NULL;
        p.pages = 0;
        p.error = str_dup(task_arena(t), document_clip(str_of(task_error(t)), DOCUMENT_ERROR));
    } else if (err) {
        return err;
    }
    return sql_tx(t, n->sql, store, &p);
}

static int parse_alone(struct task *t, struct source *s)
{
    struct documents *d = s->documents;
    struct task_scope scope = task_scope(t);
    check(map_add(d->parsing, s->id));
    int err = sem_get(t, &d->parses);
    if (!err) {
        err = parse(t, s);
        sem_put(&d->parses);
    }
    (void)map_del(d->parsing, s->id);
    waitq_wake_all(&d->parsed);
    task_scope_end(t, scope);
    return err;
}

/* Singleflight: other tasks of this node that want the text wait for the one that parses. */
static int parse_once(struct task *t, struct source *s)
{
    struct documents *d = s->documents;
    if (!map_get(d->parsing, s->id))
        return parse_alone(t, s);
    int err = 0;
    while (!err && map_get(d->parsing, s->id))
        err = waitq_wait(t, &d->parsed);
    return err;
}

static int find_text(struct task *t, struct source *s)
{
    int err = look(t, s);
    for (int i = 0; !err && !s->from.p && !s->error.p && i < PARSES_TRIED; i++) {
        err = parse_once(t, s);
        if (!err)
            err = look(t, s);
    }
    if (err)
        return err;
    if (s->error.p)
        return task_fail(t, ERR_INVALID, "%.*s", STR_ARG(s->error));
    return s->from.p ? 0 : task_fail(t, ERR_UNAVAILABLE, "the document has not been read yet");
}

/* --- the text --- */

static struct document_pieces pieces_of(const struct source *s)
{
    bool file = str_eq(s->from, STR(DOCUMENT_FILE));
    return (struct document_pieces){s->number, file ? DOCUMENT_FILE : DOCUMENT_TEXT, s->text_bytes};
}

int document_text(struct task *t, struct node *n, int64_t uid, struct str id, struct str *text,
                  const char **reason)
{
    struct source s = {.documents = n->documents, .uid = uid, .id = id};
    int err = find_text(t, &s);
    *reason = err == ERR_INVALID ? pdf_reason(s.code) : err && s.no_reader ? PDF_READER : NULL;
    if (err)
        return err;
    if (s.text.p) {
        *text = s.text;
        return 0;
    }
    struct document_pieces p = pieces_of(&s);
    return document_pieces_read(t, n->sql, &p, text);
}

int document_text_each(struct task *t, struct node *n, int64_t uid, struct str id,
                       document_piece_fn *fn, void *arg)
{
    struct source s = {.documents = n->documents, .uid = uid, .id = id};
    int err = find_text(t, &s);
    if (err)
        return err;
    if (s.text.n)
        return fn(t, s.text, arg);
    struct document_pieces p = pieces_of(&s);
    return document_pieces_each(t, n->sql, &p, fn, arg);
}

void document_texts_init(struct documents *d)
{
    gather_init(&d->looks, &(struct gather_options){.group = d->node->group,
                                                    .name = "document texts",
                                                    .fn = look_all,
                                                    .arg = d,
                                                    .items_max = ROWS_AT_ONCE,
                                                    .clerks_max = 1});
}
