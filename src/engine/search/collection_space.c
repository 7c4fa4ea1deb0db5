/* Spaces: which there are, which one is active, and how one follows another.
 *
 * Rows of vector_space change in transactions that lock the collection's row first, so each of them
 * sees what the one before has left. A node reads them twice a second, and at once when it changes
 * them or finds that a store is not what it was. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/embedding.h"
#include "engine/search/collection_private.h"
#include "engine/setup/config.h"
#include "engine/store/cluster.h"
#include "wire/sql.h"

#define MODEL_BYTES_MAX 127
#define FRESH_S         60 /* a model that has answered so lately is not given up for another one */
#define ANSWERED_S      10 /* that it has answered is noted so often */

/* --- what a node has of a space --- */

static struct space *space_new(struct shelf *s, const struct sql_value *row)
{
    struct space *x = check_memory(calloc(1, sizeof *x));
    list_init(&x->link);
    x->refs = 1;
    x->number = row[0].i;
    x->model = check_memory(strndup(row[1].s.p, row[1].s.n));
    x->dimension = row[2].i;
    x->asked = check_memory(strndup(row[3].s.p, row[3].s.n));
    x->asked_dimensions = row[4].i;
    x->store = store_new(s->all, s->which, x->number);
    return x;
}

struct space *space_get(struct space *x)
{
    if (x)
        x->refs++;
    return x;
}

void space_put(struct space *x)
{
    if (!x || --x->refs > 0)
        return;
    embedding_free(x->embedding);
    x->store->ops->free(x->store);
    free(x->asked);
    free(x->model);
    free(x);
}

struct space *shelf_find(struct shelf *s, int64_t number)
{
    list_each (it, &s->spaces) {
        struct space *x = list_entry(it, struct space, link);
        if (x->number == number)
            return x;
    }
    return NULL;
}

static void remove_space(struct space *x)
{
    list_del(&x->link);
    space_put(x);
}

void shelf_clear(struct shelf *s)
{
    s->active = s->building = NULL;
    while (!list_empty(&s->spaces))
        remove_space(list_entry(s->spaces.next, struct space, link));
}

/* --- reading them --- */

#define COLUMNS                                                                                    \
    "s.number, s.model, s.dimension, s.asked, s.asked_dimensions, s.active, v.applied,"            \
    " v.cursor_owner, v.builds, v.copied, v.total, v.space, c.number"

struct progress progress_read(const struct sql_value *row, bool known)
{
    struct progress p = {.known = known};
    if (!known)
        return p;
    p.applied = row[0].i;
    p.complete = row[1].type == SQL_NULL;
    p.cursor = p.complete ? 0 : row[1].i;
    p.builds = row[2].i;
    p.copied = row[3].i;
    p.total = row[4].i;
    return p;
}

static void take_row(struct shelf *s, const struct sql_value *row)
{
    struct space *x = shelf_find(s, row[0].i);
    if (!x) {
        x = space_new(s, row);
        list_push(&s->spaces, &x->link);
    }
    x->active = row[5].i == 1;
    x->at = progress_read(row + 6, row[11].type != SQL_NULL);
    if (x->active)
        s->active = x;
    else
        s->building = x; /* of several the newest */
    s->head = row[12].i;
}

static bool has_row_of(const struct sql_rows *r, int64_t number)
{
    for (size_t i = 0; i < r->count; i++)
        if (sql_row(r, i)[0].i == number)
            return true;
    return false;
}

static void note_behind(struct shelf *s, int64_t now_ms)
{
    bool behind = false;
    list_each (it, &s->spaces) {
        const struct space *x = list_entry(it, struct space, link);
        behind = behind || x->at.applied < s->head;
    }
    if (!behind)
        s->behind_since_ms = 0;
    else if (!s->behind_since_ms)
        s->behind_since_ms = now_ms;
}

int shelf_look(struct task *t, struct shelf *s)
{
    struct sql_rows r;
    int err = place_know(t, s->all);
    if (!err)
        err =
            sql_call(t, s->all->options.sql, &r,
                     "SELECT " COLUMNS " FROM vector_space s"
                     " JOIN vector_collection c ON c.name = s.collection"
                     " LEFT JOIN vector_store v ON v.space = s.number AND v.place = ?"
                     " WHERE s.collection = ? AND s.alive = 1 ORDER BY s.number LIMIT ?",
                     sql_text(str_of(s->all->place)), sql_text(shelf_name(s)), sql_int(SPACES_MAX));
    if (err)
        return err;
    s->active = s->building = NULL;
    list_each_safe (it, &s->spaces) {
        struct space *x = list_entry(it, struct space, link);
        if (!has_row_of(&r, x->number))
            remove_space(x);
    }
    for (size_t i = 0; i < r.count; i++)
        take_row(s, sql_row(&r, i));
    note_behind(s, loop_now_ms(task_loop(t)));
    s->known = true;
    return 0;
}

int shelf_know(struct task *t, struct shelf *s)
{
    return s->known ? 0 : shelf_look(t, s);
}

/* --- making them, and giving them up --- */

struct change { /* of the spaces of a collection, in a transaction */
    struct shelf *shelf;
    struct str model;
    int64_t dimension;
    int64_t space; /* the one to complete; or the one that was found or made */
    int err;       /* of what was asked for; 0: it is done */
};

static int lock_collection(struct task *t, struct sql *c, struct shelf *s)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_COLLECTION, (int64_t)s->which);
    return err ? err
               : sql_on(t, c, &r, "SELECT number FROM vector_collection WHERE name = ? FOR UPDATE",
                        sql_text(shelf_name(s)));
}

static int give_up(struct task *t, struct sql *c, int64_t space)
{
    return sql_on(t, c, NULL,
                  "UPDATE vector_space SET alive = NULL, active = NULL WHERE number = ?",
                  sql_int(space));
}

static int insert_space(struct task *t, struct sql *c, struct change *g, bool first)
{
    struct sql_rows r;
    const struct config *config = g->shelf->all->options.config;
    int err = sql_on(t, c, &r,
                     "INSERT INTO vector_space (collection, model, dimension, asked,"
                     " asked_dimensions, active, answered_at, created_at)"
                     " VALUES (?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                     sql_text(shelf_name(g->shelf)), sql_text(g->model), sql_int(g->dimension),
                     sql_text(str_of(config->ai_embedding_model)),
                     sql_int(config->ai_embedding_dimensions), first ? sql_int(1) : sql_null());
    g->space = (int64_t)r.insert_id;
    return err;
}

/* The rows that live, the newest first: number, model, dimension, active, whether it has answered
 * lately, and whether that is to be noted again. */
static int living(struct task *t, struct sql *c, const struct change *g, struct sql_rows *r)
{
    return sql_on(t, c, r,
                  "SELECT number, model, dimension, active,"
                  " answered_at > UTC_TIMESTAMP(3) - INTERVAL ? SECOND,"
                  " answered_at <= UTC_TIMESTAMP(3) - INTERVAL ? SECOND FROM vector_space"
                  " WHERE collection = ? AND alive = 1 ORDER BY number DESC FOR UPDATE",
                  sql_int(FRESH_S), sql_int(ANSWERED_S), sql_text(shelf_name(g->shelf)));
}

/* The model that answers now is to be the only one that is not active: what was being built for
 * another one is given up. But a service that changes to and fro would have everything embedded
 * again and again: then only what it has not been for a while is given up. */
static int answered_by(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    struct sql_rows r;
    bool any_active = false;
    g->space = 0;
    g->err = 0;
    int err = lock_collection(t, c, g->shelf);
    if (!err)
        err = living(t, c, g, &r);
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct sql_value *row = sql_row(&r, i);
        bool same = str_eq(row[1].s, g->model) && row[2].i == g->dimension;
        any_active = any_active || row[3].i == 1;
        if (same && row[5].i)
            err = sql_on(t, c, NULL,
                         "UPDATE vector_space SET answered_at = UTC_TIMESTAMP(3) WHERE number = ?",
                         row[0]);
        if (same)
            g->space = row[0].i;
        else if (row[3].i != 1 && row[4].i)
            g->err = ERR_BUSY;
        else if (row[3].i != 1)
            err = give_up(t, c, row[0].i);
    }
    if (err || g->err)
        return err ? err : ERR_BUSY;
    return g->space ? 0 : insert_space(t, c, g, !any_active);
}

static bool is_of(const struct space *x, struct str model, size_t dimension)
{
    return x && str_eq(str_of(x->model), model) && x->dimension == (int64_t)dimension;
}

static int make_space(struct task *t, struct shelf *s, struct str model, size_t dimension,
                      int64_t *number)
{
    struct change g = {.shelf = s, .model = model, .dimension = (int64_t)dimension};
    int err = sql_tx(t, s->all->options.sql, answered_by, &g);
    if (g.err)
        return task_fail(t, ERR_BUSY,
                         "the embedding service answers as model %.*s, and another one was being "
                         "changed to a moment ago",
                         STR_ARG(model));
    *number = g.space;
    return err;
}

int space_of_answer(struct task *t, struct shelf *s, struct str model, size_t dimension,
                    struct space **out)
{
    if (model.n > MODEL_BYTES_MAX || dimension < POINTS_DIMENSION_MIN ||
        dimension > POINTS_DIMENSION_MAX)
        return task_fail(t, ERR_REFUSED,
                         "vectors of model %.*s with %zu dimensions cannot be stored: the name may "
                         "have %d bytes, and dimensions are %d to %d",
                         STR_ARG(model), dimension, MODEL_BYTES_MAX, POINTS_DIMENSION_MIN,
                         POINTS_DIMENSION_MAX);
    struct space *x = s->building ? s->building : s->active;
    int64_t number = 0;
    int err = 0;
    if (!is_of(x, model, dimension) || s->building) { /* that of a building one is noted */
        err = make_space(t, s, model, dimension, &number);
        if (!err)
            err = shelf_look(t, s);
        if (err)
            return err;
        x = shelf_find(s, number);
        if (!x)
            return task_fail(t, ERR_UNAVAILABLE, "the space of vectors was given up meanwhile");
    }
    *out = space_get(x);
    return 0;
}

static int complete(struct task *t, struct sql *c, void *arg)
{
    struct change *g = arg;
    struct sql_rows r;
    bool there = false;
    g->err = 0;
    int err = lock_collection(t, c, g->shelf);
    if (!err)
        err = living(t, c, g, &r);
    for (size_t i = 0; i < r.count && !err; i++)
        there = there || sql_row(&r, i)[0].i == g->space;
    if (!err && !there)
        return g->err = ERR_CONFLICT;
    for (size_t i = 0; i < r.count && !err; i++)
        if (sql_row(&r, i)[0].i != g->space)
            err = give_up(t, c, sql_row(&r, i)[0].i);
    return err ? err
               : sql_on(t, c, NULL, "UPDATE vector_space SET active = 1 WHERE number = ?",
                        sql_int(g->space));
}

int64_t collection_space(const struct collections *c, enum collection which, bool *building)
{
    const struct shelf *s = &c->shelves[which];
    *building = s->building != NULL;
    return s->building ? s->building->number : s->active ? s->active->number : 0;
}

int collection_complete(struct task *t, struct collections *c, enum collection which, int64_t space)
{
    struct shelf *s = shelf_of(c, which);
    struct change g = {.shelf = s, .space = space};
    int err = shelf_look(t, s);
    struct space *x = err ? NULL : shelf_find(s, space);
    if (err || (x && x->active))
        return err;
    if (x && !x->at.complete)
        return task_fail(t, ERR_UNAVAILABLE, "the store of the new vectors is not complete yet");
    err = sql_tx(t, c->options.sql, complete, &g);
    if (g.err)
        return task_fail(t, ERR_CONFLICT, "space %lld has been given up", (long long)space);
    if (err)
        return err;
    log_info("vectors", "%s are searched by model %s from now on", collection_name(which),
             x ? x->model : "?");
    return shelf_look(t, s);
}
