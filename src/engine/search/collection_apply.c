/* From MySQL into the stores, in one story:
 *
 *   1. A change (put, drop, tag) is one transaction in MySQL: vectors and tags, and a row of
 *      point_change for each owner, numbered under the lock of the collection's row. So numbers
 *      have no gaps, and become visible in their order. Once it is committed nothing can be lost; a
 *      change that was not committed has not touched any store.
 *   2. A store follows this log. Its row (vector_store) says which changes it has: `applied`. To
 *      apply some, the present state of their owners is read and put into the store in one step
 *      each: the points that they have now replace those that they had. Then the store is settled,
 *      and only then `applied` moves on. So all of it can be repeated, and a node that is killed at
 *      any moment leaves work that the next one, or the next round of the role, does again.
 *   3. State that was read must not be put after a later one: all this happens in the turn of the
 *      store, one task of all nodes at a time. The turn is a lock of the system on a file, which
 *      the kernel takes from a process only with its life; and a lock on the row of vector_store,
 *      for nodes of other machines that share a server. The former holds also while MySQL is away
 *      and has forgotten the latter, so an embedded store is written to by one process at a time,
 *      whatever happens. What is left is a server: a node loses MySQL while its request is under
 *      way, another machine's node takes the turn, and the first request takes effect after the
 *      second: the count of 9 may notice that, or the next change of that owner.
 *   4. The caller of a change applies the log itself, up to its own rows, so it is visible when the
 *      call returns. If the store is away the role does it later, and searches say that it is
 *      behind.
 *   5. A store that is missing, damaged or of another space is noted in its row: cursor_owner -1,
 *      applied: the last change. Then an empty one is made, which takes the place of what was
 *      there, and cursor_owner is 0. (A node that dies between both makes an empty one again.)
 *   6. Then owners are copied, in their order, a batch in each turn: read, put, settled, and
 *      cursor_owner moves on. Changes of the log go on meanwhile. One that concerns an owner before
 *      the cursor is applied by the log; one behind the cursor by both, each with the state of its
 *      moment, in order. So a deletion stays one: what copies an owner later reads that it has
 *      gone. Searches find what is there and say `degraded`.
 *   7. cursor_owner NULL: it is complete.
 *   8. Damage is found in one file, and must not have the next one made anew: the node that finds
 *      it remembers in which build, and in its turn compares that with the row.
 *   9. Rows of the log go when all stores that were seen lately have them. One that comes back
 *      later finds a gap behind `applied`, and is made anew. So is one whose number of points is
 *      not that of the rows in MySQL when it has all changes: it is an old copy of the file, or
 *      MySQL was restored. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/search/collection_private.h"
#include "engine/store/cluster.h"
#include "wire/sql.h"

#define FLUSH_POINTS 512  /* are put at a time, at least */
#define COPY_POINTS  2048 /* in one batch of a store that is made anew */
#define PAGE_ROWS    256
#define BUILDS_MAX   2 /* of a store, in one call */

/* --- points on their way into a store --- */

struct load {
    struct task *t;
    struct sql *c;
    struct shelf *shelf;
    struct space *space;
    struct arena arena; /* texts of the points that wait */
    struct point *points;
    struct point_payload *payloads;
    float *vectors;
    size_t count;  /* of points that wait */
    size_t copied; /* points that were put; */
    int64_t last;  /* the last of their owners; 0: none */
    int store_err; /* of the store, with its text; 0: none */
};

static void load_open(struct load *l, struct task *t, struct sql *c, struct shelf *s,
                      struct space *x)
{
    size_t dimension = (size_t)x->dimension;
    *l = (struct load){.t = t, .c = c, .shelf = s, .space = x};
    arena_init(&l->arena);
    l->points = check_memory(calloc(POINTS_CHANGE_MAX, sizeof *l->points));
    l->payloads = check_memory(calloc(POINTS_CHANGE_MAX, sizeof *l->payloads));
    l->vectors = check_memory(malloc(POINTS_CHANGE_MAX * dimension * sizeof *l->vectors));
}

static void load_close(struct load *l)
{
    arena_release(&l->arena);
    free(l->points);
    free(l->payloads);
    free(l->vectors);
}

/* Puts the first n points that wait, which are all of their owners, and has others gone. */
static int flush(struct load *l, size_t n, const uint64_t *gone, size_t gone_count)
{
    struct points_store *store = l->space->store;
    size_t dimension = (size_t)l->space->dimension;
    struct points_change change = {.space = {l->space->model, dimension},
                                   .gone = gone,
                                   .gone_count = gone_count,
                                   .points = l->points,
                                   .vectors = l->vectors,
                                   .payloads = store_has_payload(store) ? l->payloads : NULL,
                                   .count = n};
    if (!n && !gone_count)
        return 0;
    int err = store->ops->put(l->t, store, &change);
    if (err)
        return l->store_err = err;
    if (n)
        l->last = (int64_t)l->points[n - 1].owner;
    l->copied += n;
    l->count -= n;
    memmove(l->points, l->points + n, l->count * sizeof *l->points);
    memmove(l->payloads, l->payloads + n, l->count * sizeof *l->payloads);
    memmove(l->vectors, l->vectors + n * dimension, l->count * dimension * sizeof *l->vectors);
    if (!l->count)
        arena_reset(&l->arena, (struct arena_mark){NULL, NULL});
    return 0;
}

/* The points of whole owners: those before the last one's, which may not be complete yet. */
static size_t whole(const struct load *l, uint64_t next)
{
    size_t n = l->count;
    while (n && l->points[n - 1].owner == next)
        n--;
    return n;
}

/* owner, part, version, vector, flags, journal, year, text, title, name */
#define COLUMNS                                                                                    \
    "v.owner, v.part, v.version, v.vector, o.flags, o.journal, o.year,"                            \
    " IF(?, v.text, NULL), IF(?, o.title, NULL), IF(?, o.name, NULL)"
#define TABLES " FROM point_vector v JOIN point_owner o ON o.collection = ? AND o.owner = v.owner"

static int add(struct load *l, const struct sql_value *row)
{
    uint64_t owner = (uint64_t)row[0].i;
    size_t dimension = (size_t)l->space->dimension;
    if (row[3].s.n != dimension * sizeof(float))
        return task_fail(l->t, ERR_INTERNAL, "vector %lld:%lld in MySQL is not of its space",
                         (long long)row[0].i, (long long)row[1].i);
    size_t ready = whole(l, owner);
    if (ready >= FLUSH_POINTS || l->count == POINTS_CHANGE_MAX) {
        int err = flush(l, ready, NULL, 0);
        if (err)
            return err;
    }
    if (l->count == POINTS_CHANGE_MAX)
        return task_fail(l->t, ERR_INTERNAL, "owner %lld has too many vectors",
                         (long long)row[0].i);
    l->points[l->count] = (struct point){.owner = owner,
                                         .part = (uint32_t)row[1].i,
                                         .version = (uint64_t)row[2].i,
                                         .tags = {.flags = (uint32_t)row[4].i,
                                                  .journal = (uint16_t)row[5].i,
                                                  .year = (uint16_t)row[6].i}};
    memcpy(l->vectors + l->count * dimension, row[3].s.p, row[3].s.n);
    if (store_has_payload(l->space->store))
        l->payloads[l->count] = (struct point_payload){.text = str_dup(&l->arena, row[7].s),
                                                       .title = str_dup(&l->arena, row[8].s),
                                                       .key = str_dup(&l->arena, row[9].s)};
    l->count++;
    return 0;
}

static size_t row_start(const struct load *l, struct sql_value *v)
{
    for (size_t i = 0; i < 3; i++)
        v[i] = sql_int(store_has_payload(l->space->store));
    v[3] = sql_text(shelf_name(l->shelf));
    v[4] = sql_int(l->space->number);
    return 5;
}

/* --- following the log --- */

struct apply { /* a transaction */
    struct shelf *shelf;
    struct space *space;
    struct progress at; /* of the store, as this transaction leaves it */
    int64_t head;       /* as it sees it: shelf->head may be of before or after by now */
    /* What it has found and done. */
    bool spoiled, more;
    int store_err;
    const char *why;
};

static int read_store(struct task *t, struct sql *c, struct apply *g)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT applied, cursor_owner, builds, copied, total FROM vector_store"
                     " WHERE place = ? AND space = ? FOR UPDATE",
                     sql_text(str_of(g->shelf->all->place)), sql_int(g->space->number));
    if (!err)
        g->at = progress_read(r.cells, r.count);
    return err;
}

static int read_head(struct task *t, struct sql *c, struct apply *g)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT number FROM vector_collection WHERE name = ?",
                     sql_text(shelf_name(g->shelf)));
    if (!err && r.count)
        g->head = g->shelf->head = r.cells[0].i;
    return err;
}

struct owners { /* in ascending order, each once */
    uint64_t *all;
    size_t count;
};

static bool owners_has(const struct owners *o, uint64_t owner)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->all[i] == owner)
            return true;
    return false;
}

/* Of the log: of an owner whose points were changed tags need not be. */
static void owners_read(struct arena *a, const struct sql_rows *r, bool tags_only,
                        const struct owners *without, struct owners *out)
{
    *out = (struct owners){.all = ARENA_ARRAY(a, uint64_t, r->count + 1)};
    for (size_t i = 0; i < r->count; i++) {
        uint64_t owner = (uint64_t)sql_row(r, i)[1].i;
        if (sql_row(r, i)[2].i == tags_only && !owners_has(out, owner) &&
            !(without && owners_has(without, owner)))
            out->all[out->count++] = owner;
    }
}

/* All points of these owners; those that have none are gone. */
static int put_owners(struct load *l, const struct owners *o)
{
    struct task *t = l->t;
    struct arena *a = task_arena(t);
    struct owners gone = {.all = ARENA_ARRAY(a, uint64_t, o->count + 1)};
    struct owners seen = {.all = ARENA_ARRAY(a, uint64_t, o->count + 1)};
    int64_t owner = -1, part = -1;
    int err = 0;
    for (size_t rows = PAGE_ROWS; rows == PAGE_ROWS && !err;) {
        struct task_scope scope = task_scope(t);
        struct sql_value first[8];
        struct sql_rows r;
        size_t n = row_start(l, first);
        first[n++] = sql_int(owner);
        first[n++] = sql_int(owner);
        first[n++] = sql_int(part);
        err = sql_on_list(t, l->c,
                          "SELECT " COLUMNS TABLES " WHERE v.space = ? AND (v.owner > ? OR"
                          " (v.owner = ? AND v.part > ?)) AND v.owner IN",
                          " ORDER BY v.owner, v.part LIMIT 256", first, n, o->all, o->count, &r);
        rows = err ? 0 : r.count;
        for (size_t i = 0; i < rows && !err; i++) {
            const struct sql_value *row = sql_row(&r, i);
            if (row[0].i != owner)
                seen.all[seen.count++] = (uint64_t)row[0].i;
            owner = row[0].i;
            part = row[1].i;
            err = add(l, row);
        }
        task_scope_end(t, scope);
    }
    for (size_t i = 0; i < o->count; i++)
        if (!owners_has(&seen, o->all[i]))
            gone.all[gone.count++] = o->all[i];
    return err ? err : flush(l, l->count, gone.all, gone.count);
}

static int tag_owners(struct load *l, const struct owners *o)
{
    struct points_store *store = l->space->store;
    struct sql_rows r;
    if (!o->count)
        return 0;
    int err = sql_on_list(l->t, l->c,
                          "SELECT owner, flags, journal, year, title FROM point_owner"
                          " WHERE collection = ? AND owner IN",
                          "", &sql_text(shelf_name(l->shelf)), 1, o->all, o->count, &r);
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct point_tags tags = {
            .flags = (uint32_t)row[1].i, .journal = (uint16_t)row[2].i, .year = (uint16_t)row[3].i};
        err = store->ops->tag(l->t, store, (uint64_t)row[0].i, tags, row[4].s);
        l->store_err = err;
    }
    return err;
}

static int follow(struct load *l, struct apply *g)
{
    struct task *t = l->t;
    struct owners changed, tagged;
    struct sql_rows r;
    int err = sql_on(t, l->c, &r,
                     "SELECT number, owner, tags_only FROM point_change WHERE collection = ?"
                     " AND number > ? ORDER BY number LIMIT ?",
                     sql_text(shelf_name(g->shelf)), sql_int(g->at.applied), sql_int(CHANGES_MAX));
    if (err)
        return err;
    int64_t first = r.count ? r.cells[0].i : g->head + 1;
    g->spoiled = first != g->at.applied + 1; /* rows are missing; or MySQL is an older one */
    if (g->spoiled || !r.count)
        return 0;
    owners_read(task_arena(t), &r, false, NULL, &changed);
    owners_read(task_arena(t), &r, true, &changed, &tagged);
    if (changed.count)
        err = put_owners(l, &changed);
    if (!err)
        err = tag_owners(l, &tagged);
    if (err)
        return err;
    g->at.applied = sql_row(&r, r.count - 1)[0].i;
    g->more = r.count == CHANGES_MAX;
    return 0;
}

/* --- making it anew --- */

/* Owners behind the cursor, until there are enough points. */
static int copy(struct load *l, struct apply *g)
{
    struct task *t = l->t;
    int64_t owner = g->at.cursor, part = INT64_MAX;
    size_t before = l->copied, rows = PAGE_ROWS;
    int err = 0;
    while (rows == PAGE_ROWS && l->copied - before < COPY_POINTS && !err) {
        struct task_scope scope = task_scope(t);
        struct sql_value v[8];
        struct sql_rows r;
        size_t n = row_start(l, v);
        v[n++] = sql_int(owner);
        v[n++] = sql_int(owner);
        v[n++] = sql_int(part);
        err = sql_on_argv(t, l->c,
                          "SELECT " COLUMNS TABLES " WHERE v.space = ? AND (v.owner > ? OR"
                          " (v.owner = ? AND v.part > ?)) ORDER BY v.owner, v.part LIMIT 256",
                          n, v, &r);
        rows = err ? 0 : r.count;
        for (size_t i = 0; i < rows && !err; i++) {
            owner = sql_row(&r, i)[0].i;
            part = sql_row(&r, i)[1].i;
            err = add(l, sql_row(&r, i));
        }
        task_scope_end(t, scope);
    }
    if (err)
        return err;
    bool all = rows < PAGE_ROWS;
    err = flush(l, all ? l->count : whole(l, (uint64_t)owner), NULL, 0);
    if (err)
        return err;
    g->at.cursor = l->last ? l->last : g->at.cursor;
    g->at.copied += (int64_t)(l->copied - before);
    g->at.complete = all;
    g->more = g->more || !all;
    return 0;
}

/* The store is to be made anew: what it has is not looked at any more. */
static int spoil(struct task *t, struct sql *c, const struct shelf *s, struct progress *at,
                 int64_t space)
{
    struct sql_rows r;
    struct sql_value place = sql_text(str_of(s->all->place));
    int err = sql_on(t, c, &r, "SELECT COUNT(*) FROM point_vector WHERE space = ?", sql_int(space));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO vector_store (place, space, applied, total, seen_at)"
                     " VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE"
                     " applied = VALUES(applied), cursor_owner = -1, builds = builds + 1,"
                     " copied = 0, total = VALUES(total)",
                     place, sql_int(space), sql_int(s->head), r.cells[0]);
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT applied, cursor_owner, builds, copied, total FROM vector_store"
                     " WHERE place = ? AND space = ?",
                     place, sql_int(space));
    if (!err)
        *at = progress_read(r.cells, r.count);
    return err;
}

static int spoil_tx(struct task *t, struct sql *c, void *arg)
{
    struct apply *g = arg;
    struct sql_rows r;
    /* Locks out those who remove rows of the log: none goes that this store needs. */
    int err = cluster_turn(t, c, CLUSTER_COLLECTION, (int64_t)g->shelf->which);
    if (!err)
        err = sql_on(t, c, &r, "SELECT number FROM vector_collection WHERE name = ? FOR UPDATE",
                     sql_text(shelf_name(g->shelf)));
    if (err)
        return err;
    if (!r.count)
        return task_fail(t, ERR_INTERNAL, "table vector_collection lacks %s",
                         collection_name(g->shelf->which));
    g->shelf->head = r.cells[0].i;
    return spoil(t, c, g->shelf, &g->at, g->space->number);
}

static int create(struct task *t, struct shelf *s, struct space *x)
{
    struct points_space space = {x->model, (size_t)x->dimension};
    int err = x->store->ops->create(t, x->store, &space);
    if (!err)
        err = sql_call(t, s->all->options.sql, NULL,
                       "UPDATE vector_store SET cursor_owner = 0 WHERE place = ? AND space = ?"
                       " AND cursor_owner = -1",
                       sql_text(str_of(s->all->place)), sql_int(x->number));
    if (err)
        return err;
    x->at.cursor = 0;
    if (!x->at.total || x->at.builds == 1) /* the first one is no loss */
        return 0;
    metric_add(s->rebuilds, 1);
    log_warn("vectors",
             "the index of %s (space %lld) is made anew from MySQL, %lld points: searches by "
             "meaning miss some until then",
             collection_name(s->which), (long long)x->number, (long long)x->at.total);
    return 0;
}

/* --- one step, in the turn --- */

static int keep(struct task *t, struct sql *c, const struct apply *g)
{
    const struct progress *at = &g->at;
    return sql_on(t, c, NULL,
                  "UPDATE vector_store SET applied = ?, cursor_owner = ?, copied = ?,"
                  " seen_at = UTC_TIMESTAMP(3) WHERE place = ? AND space = ?",
                  sql_int(at->applied), at->complete ? sql_null() : sql_int(at->cursor),
                  sql_int(at->copied), sql_text(str_of(g->shelf->all->place)),
                  sql_int(g->space->number));
}

static int follow_and_copy(struct load *l, struct apply *g)
{
    struct points_store *store = g->space->store;
    int64_t applied = g->at.applied, copied = g->at.copied;
    int err = follow(l, g);
    if (!err && !g->spoiled && !g->at.complete)
        err = copy(l, g);
    if (!err && (g->at.applied != applied || g->at.copied != copied))
        err = l->store_err = store->ops->settle(l->t, store);
    return err;
}

static int step(struct task *t, struct sql *c, void *arg)
{
    struct apply *g = arg;
    struct load l;
    g->spoiled = g->more = false;
    g->store_err = 0;
    int err = read_store(t, c, g);
    if (!err)
        err = read_head(t, c, g); /* from here on a snapshot, later than the lock */
    if (err || !g->at.known || g->at.cursor == CURSOR_TO_CREATE)
        return err;
    load_open(&l, t, c, g->shelf, g->space);
    err = follow_and_copy(&l, g);
    g->store_err = l.store_err;
    load_close(&l);
    return err || g->spoiled ? err : keep(t, c, g);
}

static bool is_damage(int err)
{
    return err == ERR_NOT_FOUND || err == ERR_PROTO || err == ERR_CONFLICT;
}

void space_found(struct task *t, struct shelf *s, struct space *x, int err)
{
    x->away = err && !is_damage(err);
    bool has_one = x->at.known && x->at.cursor != CURSOR_TO_CREATE;
    if (!is_damage(err) || !has_one || x->damaged_build == x->at.builds)
        return;
    x->damaged_build = x->at.builds;
    log_warn("vectors", "the index of %s (space %lld) is damaged or lost: %s",
             collection_name(s->which), (long long)x->number, task_error(t));
}

int space_apply(struct task *t, struct shelf *s, struct space *x, bool *more)
{
    struct apply g = {.shelf = s, .space = x};
    *more = false;
    int err = sql_tx(t, s->all->options.sql, step, &g);
    if (g.store_err)
        space_found(t, s, x, g.store_err);
    bool damaged = is_damage(g.store_err) || (g.at.known && g.at.cursor != CURSOR_TO_CREATE &&
                                              x->damaged_build == g.at.builds);
    if (err && !damaged)
        return err;
    if (!g.at.known || g.spoiled || damaged) {
        err = sql_tx(t, s->all->options.sql, spoil_tx, &g);
        if (err)
            return err;
    }
    x->at = g.at;
    x->away = false;
    *more = g.more;
    if (x->at.cursor != CURSOR_TO_CREATE)
        return 0;
    *more = true;
    return create(t, s, x);
}

/* All of the log up to this change; of a store that is made anew one batch. */
static int apply_to(struct task *t, struct shelf *s, struct space *x, int64_t upto)
{
    bool more = true;
    int64_t builds = x->at.builds;
    int err = 0;
    do {
        err = space_apply(t, s, x, &more);
        if (!err && x->at.builds > builds + BUILDS_MAX)
            err = task_fail(t, ERR_UNAVAILABLE, "vectors: the index is damaged again and again");
    } while (more && !err && (x->at.applied < upto || (!x->at.complete && !x->at.copied)));
    return err;
}

int shelf_apply(struct task *t, struct shelf *s, int64_t upto)
{
    struct space *spaces[SPACES_MAX];
    size_t n = 0;
    int err = shelf_know(t, s);
    if (!err)
        err = turn_get(t, s, true);
    if (err)
        return err;
    list_each (it, &s->spaces)
        if (n < SPACES_MAX)
            spaces[n++] = space_get(list_entry(it, struct space, link));
    for (size_t i = 0; i < n; i++) {
        if (!err)
            err = apply_to(t, s, spaces[i], upto);
        space_put(spaces[i]);
    }
    turn_put(s);
    return err;
}
