/* Documents into MySQL, and out of it. What the stores make of it is collection_apply.c. */
#include "engine/ai/embedding.h"
#include "engine/search/collection_private.h"
#include "engine/store/cluster.h"
#include "wire/sql.h"

#define PUT_TRIES     3
#define CONFIRMATIONS 2 /* of an answer by a model that is new */

struct change { /* of documents, in a transaction */
    struct shelf *shelf;
    const struct collection_document *docs; /* NULL: */
    const uint64_t *owners;                 /* these go */
    size_t count;
    const struct collection_fence *fence; /* NULL: there is none */
    struct collection_outcome *outcomes;  /* of docs */
    const struct embedding_item *items;   /* of all chunks, in order */
    size_t dimension;
    int64_t space, ticket;
    int64_t number; /* of its last row in point_change */
    bool gone;      /* the space was given up meanwhile */
};

static int owners_argv(struct task *t, struct sql *c, const char *begin, struct sql_value first,
                       const uint64_t *owners, size_t count, struct sql_rows *out)
{
    return sql_on_list(t, c, begin, "", &first, 1, owners, count, out);
}

/* --- tickets --- */

static int take_tickets(struct task *t, struct sql *c, void *arg)
{
    const struct change *g = arg;
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, 3 * g->count);
    for (size_t i = 0; i < g->count; i++) {
        v[3 * i] = sql_text(shelf_name(g->shelf));
        v[3 * i + 1] = sql_int((int64_t)g->docs[i].owner);
        v[3 * i + 2] = sql_int(g->ticket);
    }
    return sql_bulk(t, c, "INSERT INTO point_owner (collection, owner, ticket) VALUES",
                    "ON DUPLICATE KEY UPDATE ticket = VALUES(ticket), tagged = 0", 3, g->count, v,
                    NULL);
}

/* --- what every change does --- */

/* From here to the commit there is no other change of this collection. */
static int begin_change(struct task *t, struct sql *c, struct change *g)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_COLLECTION, (int64_t)g->shelf->which);
    if (!err)
        err = sql_on(t, c, &r, "SELECT number FROM vector_collection WHERE name = ? FOR UPDATE",
                     sql_text(shelf_name(g->shelf)));
    if (!err && !r.count)
        return task_fail(t, ERR_INTERNAL, "table vector_collection lacks %s",
                         collection_name(g->shelf->which));
    g->number = err ? 0 : r.cells[0].i;
    return err;
}

/* Which of them the fence lets through. */
static int ask_fence(struct task *t, struct sql *c, const struct change *g, bool **may)
{
    *may = ARENA_ARRAY(task_arena(t), bool, g->count);
    for (size_t i = 0; i < g->count; i++)
        (*may)[i] = true;
    return g->fence ? g->fence->may(t, c, g->fence->arg, *may) : 0;
}

/* The owners are in the log. */
static int end_change(struct task *t, struct sql *c, struct change *g, const uint64_t *owners,
                      size_t count, bool tags_only)
{
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, 4 * count + 1);
    for (size_t i = 0; i < count; i++) {
        v[4 * i] = sql_text(shelf_name(g->shelf));
        v[4 * i + 1] = sql_int(++g->number);
        v[4 * i + 2] = sql_int((int64_t)owners[i]);
        v[4 * i + 3] = sql_int(tags_only);
    }
    int err =
        sql_bulk(t, c, "INSERT INTO point_change (collection, number, owner, tags_only) VALUES", "",
                 4, count, v, NULL);
    return err ? err
               : sql_on(t, c, NULL, "UPDATE vector_collection SET number = ? WHERE name = ?",
                        sql_int(g->number), sql_text(shelf_name(g->shelf)));
}

/* The vectors of owners in all spaces that live. */
static int delete_everywhere(struct task *t, struct sql *c, const struct change *g,
                             const uint64_t *owners, size_t count)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT number FROM vector_space WHERE collection = ?",
                     sql_text(shelf_name(g->shelf)));
    for (size_t i = 0; i < r.count && !err; i++)
        err = owners_argv(t, c, "DELETE FROM point_vector WHERE space = ? AND owner IN",
                          sql_row(&r, i)[0], owners, count, NULL);
    return err;
}

/* --- putting --- */

static const struct sql_value *row_of(const struct sql_rows *r, uint64_t owner)
{
    for (size_t i = 0; i < r->count; i++)
        if (sql_row(r, i)[0].i == (int64_t)owner)
            return sql_row(r, i);
    return NULL;
}

/* Which documents are stored: those that no later call has anything to say about. */
static int choose(struct task *t, struct sql *c, struct change *g, const uint64_t *owners,
                  bool *stored)
{
    struct sql_rows r;
    bool *may;
    int err = ask_fence(t, c, g, &may);
    if (err)
        return err;
    err = owners_argv(t, c,
                      "SELECT owner, ticket, version FROM point_owner WHERE collection = ?"
                      " AND owner IN",
                      sql_text(shelf_name(g->shelf)), owners, g->count, &r);
    for (size_t i = 0; i < g->count && !err; i++) {
        struct collection_outcome *o = &g->outcomes[i];
        const struct sql_value *row = row_of(&r, owners[i]);
        if (o->err == ERR_CONFLICT) /* of an earlier try */
            *o = (struct collection_outcome){.err = 0};
        if (!o->err && (!may[i] || !row || row[1].i != g->ticket))
            *o = (struct collection_outcome){ERR_CONFLICT, "it was deleted, or embedded again, "
                                                           "while it was embedded"};
        else if (!o->err && row[2].i > (int64_t)g->docs[i].version)
            *o = (struct collection_outcome){ERR_CONFLICT, "a later version is stored already"};
        stored[i] = !o->err;
    }
    return err;
}

/* MySQL takes no other bytes; a text that has some is cut before them. */
static struct sql_value utf8(struct str s)
{
    return sql_text(s.p ? str_from(s.p, str_utf8_prefix(s)) : s);
}

static int insert_owners(struct task *t, struct sql *c, const struct change *g, const bool *stored)
{
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, 9 * g->count), *to = v;
    for (size_t i = 0; i < g->count; i++) {
        const struct collection_document *d = &g->docs[i];
        if (!stored[i])
            continue;
        *to++ = sql_text(shelf_name(g->shelf));
        *to++ = sql_int((int64_t)d->owner);
        *to++ = sql_int(g->ticket);
        *to++ = sql_int((int64_t)d->version);
        *to++ = sql_int(d->tags.flags);
        *to++ = sql_int(d->tags.journal);
        *to++ = sql_int(d->tags.year);
        *to++ = utf8(d->title);
        *to++ = utf8(d->key);
    }
    return sql_bulk(t, c,
                    "INSERT INTO point_owner (collection, owner, ticket, version, flags, journal,"
                    " year, title, name) VALUES",
                    "ON DUPLICATE KEY UPDATE version = VALUES(version),"
                    " flags = IF(tagged = 1, flags, VALUES(flags)),"
                    " journal = IF(tagged = 1, journal, VALUES(journal)),"
                    " year = IF(tagged = 1, year, VALUES(year)),"
                    " title = IF(tagged = 1, COALESCE(title, VALUES(title)), VALUES(title)),"
                    " name = VALUES(name)",
                    9, (size_t)(to - v) / 9, v, NULL);
}

static int insert_vectors(struct task *t, struct sql *c, const struct change *g, const bool *stored)
{
    const struct embedding_item *item = g->items;
    struct sql_value *v = ARENA_ARRAY(task_arena(t), struct sql_value, 6 * POINTS_CHANGE_MAX),
                     *to = v;
    for (size_t i = 0; i < g->count; i++) {
        const struct collection_document *d = &g->docs[i];
        for (size_t k = 0; k < d->chunk_count; k++, item++) {
            if (!stored[i])
                continue;
            *to++ = sql_int(g->space);
            *to++ = sql_int((int64_t)d->owner);
            *to++ = sql_int((int64_t)k);
            *to++ = sql_int((int64_t)d->version);
            *to++ = sql_blob(str_from((const char *)item->vector, g->dimension * sizeof(float)));
            *to++ = utf8(d->chunks[k]);
        }
    }
    return sql_bulk(t, c,
                    "INSERT INTO point_vector (space, owner, part, version, vector, text) VALUES",
                    "", 6, (size_t)(to - v) / 6, v, NULL);
}

/* Owners without chunks have none in any space; of the others those of this space are replaced. */
static int delete_former(struct task *t, struct sql *c, const struct change *g, const bool *stored,
                         bool empty)
{
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, g->count);
    size_t n = 0;
    for (size_t i = 0; i < g->count; i++)
        if (stored[i] && (g->docs[i].chunk_count == 0) == empty)
            owners[n++] = g->docs[i].owner;
    if (!n)
        return 0;
    return empty ? delete_everywhere(t, c, g, owners, n)
                 : owners_argv(t, c, "DELETE FROM point_vector WHERE space = ? AND owner IN",
                               sql_int(g->space), owners, n, NULL);
}

static int is_given_up(struct task *t, struct sql *c, struct change *g)
{
    struct sql_rows r;
    int err = g->space
                  ? sql_on(t, c, &r, "SELECT 1 FROM vector_space WHERE number = ? AND alive = 1",
                           sql_int(g->space))
                  : 0;
    g->gone = !err && g->space && !r.count;
    return err;
}

static int put(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    struct arena *a = task_arena(t);
    uint64_t *owners = ARENA_ARRAY(a, uint64_t, g->count);
    bool *stored = ARENA_ARRAY(a, bool, g->count);
    size_t n = 0;
    for (size_t i = 0; i < g->count; i++)
        owners[i] = g->docs[i].owner;
    int err = begin_change(t, c, g);
    if (!err)
        err = is_given_up(t, c, g);
    if (err || g->gone)
        return err ? err : ERR_UNAVAILABLE;
    err = choose(t, c, g, owners, stored);
    for (size_t i = 0; i < g->count; i++)
        if (stored[i])
            owners[n++] = g->docs[i].owner;
    if (err || !n)
        return err;
    err = delete_former(t, c, g, stored, true);
    if (!err)
        err = delete_former(t, c, g, stored, false);
    if (!err)
        err = insert_owners(t, c, g, stored);
    if (!err)
        err = insert_vectors(t, c, g, stored);
    return err ? err : end_change(t, c, g, owners, n, false);
}

/* --- embedding --- */

static size_t chunks_of(const struct collection_document *docs, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        check(docs[i].owner > 0 && docs[i].owner <= OWNER_MAX && docs[i].version <= OWNER_MAX);
        n += docs[i].chunk_count;
    }
    return n;
}

static bool is_known(const struct shelf *s, const struct embedding_answer *a)
{
    bool any = false;
    list_each (it, &s->spaces) {
        const struct space *x = list_entry(it, struct space, link);
        if (str_eq(str_of(x->model), a->model) && x->dimension == (int64_t)a->dimensions)
            return true;
        any = true;
    }
    return !any;
}

/* A model or a dimension that is new has everything embedded again: one reply is not enough for
 * that, be it only that a vector lacked a number. */
static int confirm(struct task *t, struct shelf *s, const struct str *texts, const bool *asks,
                   const struct embedding_answer *a)
{
    struct embedding_answer again;
    size_t at = 0;
    int err = 0;
    if (!a->dimensions || is_known(s, a))
        return 0;
    while (!a->items[at].vector)
        at++;
    for (int i = 0; i < CONFIRMATIONS && !err; i++) {
        err = embedding_ask(t, s->all->options.embedding, texts + at, 1, asks, &again);
        bool alike = !err && again.dimensions == a->dimensions && str_eq(again.model, a->model);
        if (err == ERR_CONFLICT || (!err && !alike))
            err = task_fail(t, ERR_UNAVAILABLE,
                            "the embedding service has answered as model %.*s with %zu dimensions "
                            "once, and then otherwise",
                            STR_ARG(a->model), a->dimensions);
    }
    return err;
}

/* A document of which a chunk has no vector is not stored: it would be found by half. */
static void read_outcomes(struct change *g)
{
    const struct embedding_item *item = g->items;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->docs[i].chunk_count; k++, item++)
            if (item->err && !g->outcomes[i].err)
                g->outcomes[i] = (struct collection_outcome){item->err, item->why};
}

static int embed(struct task *t, struct change *g, const bool *asks, struct embedding_answer *out)
{
    struct collections *c = g->shelf->all;
    size_t n = chunks_of(g->docs, g->count), at = 0;
    if (!n)
        return 0;
    if (!c->options.embedding)
        return task_fail(t, ERR_UNAVAILABLE, "there is no embedding service: ai.embedding.url");
    struct str *texts = ARENA_ARRAY(task_arena(t), struct str, n);
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->docs[i].chunk_count; k++)
            texts[at++] = g->docs[i].chunks[k];
    struct sem *calls = c->options.calls_max[g->shelf->which] ? &g->shelf->calls : NULL;
    int err = embedding_ask_within(t, c->options.embedding, texts, n, asks, calls, out);
    if (err == ERR_CONFLICT) /* it has changed its model meanwhile */
        err = embedding_ask_within(t, c->options.embedding, texts, n, asks, calls, out);
    if (err == ERR_CONFLICT)
        err = task_fail(t, ERR_UNAVAILABLE, "%s", task_error(t));
    if (!err)
        err = confirm(t, g->shelf, texts, asks, out);
    g->items = out->items;
    g->dimension = out->dimensions;
    if (!err)
        read_outcomes(g);
    return err;
}

/* Its space is found, or made, again if it was given up before the transaction. */
static int store(struct task *t, struct change *g, const struct embedding_answer *answer)
{
    int err = ERR_UNAVAILABLE;
    g->gone = true;
    for (int i = 0; i < PUT_TRIES && g->gone; i++) {
        struct space *x = NULL;
        err = g->dimension ? space_of_answer(t, g->shelf, answer->model, g->dimension, &x) : 0;
        if (err)
            return err == ERR_BUSY ? ERR_UNAVAILABLE : err;
        g->space = x ? x->number : 0;
        g->gone = false;
        err = sql_tx(t, g->shelf->all->options.sql, put, g);
        space_put(x);
        if (g->gone && shelf_look(t, g->shelf))
            break;
    }
    return g->gone ? task_fail(t, ERR_UNAVAILABLE, "the space of vectors was given up") : err;
}

int collection_put_fenced(struct task *t, struct collections *c, enum collection which,
                          const struct collection_document *docs, size_t count, const bool *asks,
                          const struct collection_fence *fence, struct collection_outcome *outcomes,
                          int64_t *space)
{
    struct shelf *s = shelf_of(c, which);
    struct change g = {
        .shelf = s, .docs = docs, .count = count, .fence = fence, .outcomes = outcomes};
    struct embedding_answer answer = {.dimensions = 0};
    bool building;
    check(chunks_of(docs, count) <= POINTS_CHANGE_MAX);
    memset(outcomes, 0, count * sizeof *outcomes);
    g.ticket = (int64_t)(loop_random(task_loop(t)) >> 1);
    int err = shelf_know(t, s);
    if (!err && count)
        err = sql_tx(t, c->options.sql, take_tickets, &g);
    if (!err)
        err = embed(t, &g, asks, &answer);
    if (!err && count)
        err = store(t, &g, &answer);
    if (err)
        return err;
    *space = g.space ? g.space : collection_space(c, which, &building);
    /* From here on nothing is lost: a store that is away follows the log. */
    return shelf_apply(t, s, g.number) == ERR_CANCELED ? ERR_CANCELED : 0;
}

int collection_put(struct task *t, struct collections *c, enum collection which,
                   const struct collection_document *docs, size_t count, const bool *asks,
                   struct collection_outcome *outcomes, int64_t *space)
{
    return collection_put_fenced(t, c, which, docs, count, asks, NULL, outcomes, space);
}

/* --- dropping --- */

static int drop(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    uint64_t *owners = ARENA_ARRAY(task_arena(t), uint64_t, g->count);
    bool *may = NULL;
    size_t n = 0;
    int err = begin_change(t, c, g);
    if (!err)
        err = ask_fence(t, c, g, &may);
    for (size_t i = 0; i < g->count && !err; i++)
        if (may[i])
            owners[n++] = g->owners[i];
    if (err || !n)
        return err;
    err = delete_everywhere(t, c, g, owners, n);
    if (!err)
        err = owners_argv(t, c, "DELETE FROM point_owner WHERE collection = ? AND owner IN",
                          sql_text(shelf_name(g->shelf)), owners, n, NULL);
    return err ? err : end_change(t, c, g, owners, n, false);
}

int collection_drop_fenced(struct task *t, struct collections *c, enum collection which,
                           const uint64_t *owners, size_t count,
                           const struct collection_fence *fence)
{
    struct change g = {
        .shelf = shelf_of(c, which), .owners = owners, .count = count, .fence = fence};
    if (!count)
        return 0;
    int err = sql_tx(t, c->options.sql, drop, &g);
    return err ? err : shelf_apply(t, g.shelf, g.number);
}

int collection_drop(struct task *t, struct collections *c, enum collection which,
                    const uint64_t *owners, size_t count)
{
    return collection_drop_fenced(t, c, which, owners, count, NULL);
}

/* --- tags --- */

struct tagging {
    struct change change;
    uint64_t owner;
    struct point_tags tags;
    struct str title;
    bool there;
};

static int tag(struct task *t, struct sql *c, void *arg)
{
    struct tagging *g = arg;
    struct sql_rows r;
    int err = begin_change(t, c, &g->change);
    if (!err)
        err = sql_on(t, c, &r, "SELECT 1 FROM point_owner WHERE collection = ? AND owner = ?",
                     sql_text(shelf_name(g->change.shelf)), sql_int((int64_t)g->owner));
    g->there = !err && r.count;
    if (err || !g->there)
        return err;
    err = sql_on(t, c, NULL,
                 "UPDATE point_owner SET tagged = 1, flags = ?, journal = ?, year = ?,"
                 " title = COALESCE(?, title) WHERE collection = ? AND owner = ?",
                 sql_int(g->tags.flags), sql_int(g->tags.journal), sql_int(g->tags.year),
                 utf8(g->title), sql_text(shelf_name(g->change.shelf)), sql_int((int64_t)g->owner));
    return err ? err : end_change(t, c, &g->change, &g->owner, 1, true);
}

int collection_tag(struct task *t, struct collections *c, enum collection which, uint64_t owner,
                   struct point_tags tags, struct str title)
{
    struct tagging g = {
        .change.shelf = shelf_of(c, which), .owner = owner, .tags = tags, .title = title};
    int err = sql_tx(t, c->options.sql, tag, &g);
    if (err || !g.there)
        return err;
    return shelf_apply(t, g.change.shelf, g.change.number) == ERR_CANCELED ? ERR_CANCELED : 0;
}
