/* What every node does twice a second for each collection: it reads the spaces, has their stores
 * follow the log, and copies a part of those that are made anew. One node of a machine also
 * verifies and compacts them, and removes what is not needed any more. */
#include "base/log.h"
#include "engine/search/collection_private.h"
#include "engine/store/cluster.h"

#define SEEN_MS       10000
#define SEEN_S        60    /* a place that was seen so lately has nodes */
#define FORGOTTEN_S   86400 /* one that was not is given up: the log need not wait for it */
#define COUNTED_MS    600000
#define SWEPT_MS      5000
#define SWEPT_VECTORS 1000 /* are deleted in one round */
#define SWEPT_CHANGES 10000
#define ROUND_MS      200 /* of copying, at a time */

/* --- the stores --- */

/* While there is more to copy, but other tasks want their turn, too. */
static int advance(struct task *t, struct shelf *s, struct space *x, bool *more)
{
    int64_t until_ms = loop_now_ms(task_loop(t)) + ROUND_MS;
    int err = 0;
    do {
        struct task_scope scope = task_scope(t);
        err = turn_get(t, s, false);
        *more = !err;
        if (!err) {
            err = space_apply(t, s, x, more);
            turn_put(s);
        }
        task_scope_end(t, scope);
        if (!err && *more)
            err = task_yield(t);
    } while (!err && *more && loop_now_ms(task_loop(t)) < until_ms);
    return err == ERR_BUSY ? 0 : err;
}

static bool is_due(const struct shelf *s, const struct space *x)
{
    return !x->at.known || !x->at.complete || x->at.applied < s->head ||
           x->damaged_build == x->at.builds;
}

/* In the turn: nothing changes them meanwhile. */
static int count_in_turn(struct task *t, struct shelf *s, struct space *x)
{
    struct sql_rows r;
    struct points_look look;
    int err =
        sql_call(t, s->all->options.sql, &r,
                 "SELECT (SELECT COUNT(*) FROM point_vector WHERE space = v.space),"
                 " c.number = v.applied AND v.cursor_owner IS NULL"
                 " FROM vector_store v JOIN vector_collection c"
                 " WHERE c.name = ? AND v.place = ? AND v.space = ?",
                 sql_text(shelf_name(s)), sql_text(str_of(s->all->place)), sql_int(x->number));
    if (err || !r.count || !r.cells[1].i)
        return err;
    s->counted_ms = loop_now_ms(task_loop(t));
    err = x->store->ops->look(t, x->store, &look);
    if (!err && r.cells[0].i != (int64_t)look.points)
        err = task_fail(t, ERR_PROTO, "it has %lld points instead of %lld", (long long)look.points,
                        (long long)r.cells[0].i);
    if (err)
        space_found(t, s, x, err);
    return err;
}

/* The number of points is that of the rows: else the store is an old copy, or MySQL is. */
static int count_points(struct task *t, struct shelf *s, struct space *x)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (!x->active || (s->counted_ms && now_ms - s->counted_ms < COUNTED_MS))
        return 0;
    int err = turn_get(t, s, false);
    if (err)
        return err == ERR_BUSY ? 0 : err;
    err = count_in_turn(t, s, x);
    turn_put(s);
    return err;
}

static int tend(struct task *t, struct shelf *s, struct space *x)
{
    if (!x->at.complete)
        return 0;
    int err = x->store->ops->tend(t, x->store);
    if (err && err != ERR_BUSY)
        space_found(t, s, x, err);
    if (!err)
        err = count_points(t, s, x);
    return err == ERR_CANCELED ? err : 0;
}

static void measure(struct task *t, struct shelf *s)
{
    struct points_look look = {.points = 0};
    struct space *x = space_get(s->active);
    int err = x ? x->store->ops->look(t, x->store, &look) : 0;
    if (err && x && x->at.complete)
        space_found(t, s, x, err);
    metric_set(s->points, (int64_t)look.points);
    metric_set(s->bytes, (int64_t)look.bytes);
    metric_set(s->behind, x && x->at.known ? s->head - x->at.applied : 0);
    space_put(x);
}

/* --- what is not needed any more --- */

static int forget(struct task *t, struct sql *c, void *arg)
{
    struct shelf *s = arg;
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_COLLECTION, (int64_t)s->which);
    if (!err)
        err = sql_on(t, c, &r, "SELECT number FROM vector_collection WHERE name = ? FOR UPDATE",
                     sql_text(shelf_name(s)));
    if (!err)
        err = sql_on(t, c, NULL,
                     "DELETE FROM vector_store WHERE seen_at < UTC_TIMESTAMP(3) - INTERVAL ? SECOND"
                     " AND place <> ?",
                     sql_int(FORGOTTEN_S), sql_text(str_of(s->all->place)));
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT MIN(v.applied) FROM vector_store v JOIN vector_space s"
                     " ON s.number = v.space WHERE s.collection = ? AND s.alive = 1",
                     sql_text(shelf_name(s)));
    if (err || r.cells[0].type == SQL_NULL)
        return err;
    return sql_on(t, c, NULL,
                  "DELETE FROM point_change WHERE collection = ? AND number <= ?"
                  " ORDER BY number LIMIT ?",
                  sql_text(shelf_name(s)), r.cells[0], sql_int(SWEPT_CHANGES));
}

static int remove_vectors(struct task *t, struct shelf *s, int64_t space, bool *more)
{
    struct sql_rows r;
    struct sql_pool *sql = s->all->options.sql;
    int err = sql_call(t, sql, &r, "DELETE FROM point_vector WHERE space = ? LIMIT ?",
                       sql_int(space), sql_int(SWEPT_VECTORS));
    *more = !err && r.affected == SWEPT_VECTORS;
    if (err || *more)
        return err;
    /* Other places have their stores of it still. */
    return sql_call(t, sql, NULL,
                    "DELETE FROM vector_space WHERE number = ? AND alive IS NULL AND NOT EXISTS"
                    " (SELECT 1 FROM vector_store v WHERE v.space = number)",
                    sql_int(space));
}

/* The stores and vectors of spaces that are not alive. */
static int remove_spaces(struct task *t, struct shelf *s, bool *more)
{
    struct sql_rows r;
    struct sql_pool *sql = s->all->options.sql;
    *more = false;
    int err = sql_call(t, sql, &r,
                       "SELECT number FROM vector_space WHERE collection = ? AND alive IS NULL"
                       " ORDER BY number LIMIT ?",
                       sql_text(shelf_name(s)), sql_int(SPACES_MAX));
    for (size_t i = 0; i < r.count && !err; i++) {
        int64_t number = sql_row(&r, i)[0].i;
        struct points_store *store = store_new(s->all, s->which, number);
        bool left = false;
        err = store->ops->drop(t, store);
        store->ops->free(store);
        if (!err)
            err = sql_call(t, sql, NULL, "DELETE FROM vector_store WHERE place = ? AND space = ?",
                           sql_text(str_of(s->all->place)), sql_int(number));
        if (!err)
            err = remove_vectors(t, s, number, &left);
        *more = *more || left;
    }
    return err;
}

static int sweep(struct task *t, struct shelf *s, bool *more)
{
    *more = false;
    if (s->swept_ms && loop_now_ms(task_loop(t)) - s->swept_ms < SWEPT_MS)
        return 0;
    int err = remove_spaces(t, s, more);
    if (!err)
        err = sql_tx(t, s->all->options.sql, forget, s);
    if (!err && !*more)
        s->swept_ms = loop_now_ms(task_loop(t));
    return err;
}

/* --- places --- */

/* Every place says now and then that it is there. */
static int note_seen(struct task *t, struct shelf *s)
{
    struct collections *c = s->all;
    struct sql_rows r;
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (s->seen_ms && now_ms - s->seen_ms < SEEN_MS)
        return 0;
    int err = sql_call(t, c->options.sql, NULL,
                       "UPDATE vector_store SET seen_at = UTC_TIMESTAMP(3) WHERE place = ?",
                       sql_text(str_of(c->place)));
    if (!err)
        err =
            sql_call(t, c->options.sql, &r,
                     "SELECT COUNT(DISTINCT place) FROM vector_store WHERE place LIKE 'embedded %'"
                     " AND seen_at > UTC_TIMESTAMP(3) - INTERVAL ? SECOND",
                     sql_int(SEEN_S));
    if (err)
        return err;
    s->seen_ms = now_ms;
    if (r.cells[0].i > 1 && c->places <= 1)
        log_warn("vectors",
                 "%lld machines have embedded stores of vectors: each has a copy of its own, made "
                 "from MySQL; for several machines use Qdrant (vectors.store)",
                 (long long)r.cells[0].i);
    c->places = r.cells[0].i;
    return 0;
}

/* --- a round --- */

static int round_of_space(struct task *t, struct shelf *s, struct space *x, bool *more)
{
    int err = 0;
    *more = false;
    if (is_due(s, x))
        err = advance(t, s, x, more);
    if (!err && x->active && x->at.complete && x->published != x->at.builds) {
        err = x->store->ops->publish(t, x->store);
        x->published = err ? 0 : x->at.builds;
    }
    return err || !s->tends ? err : tend(t, s, x);
}

static int round_of(struct task *t, struct shelf *s, bool *more)
{
    struct space *spaces[SPACES_MAX];
    size_t n = 0;
    int err = shelf_look(t, s);
    if (err)
        return err;
    list_each (it, &s->spaces)
        if (n < SPACES_MAX)
            spaces[n++] = space_get(list_entry(it, struct space, link));
    s->tends = tending_get(t, s);
    for (size_t i = 0; i < n; i++) {
        bool left = false;
        if (!err)
            err = round_of_space(t, s, spaces[i], &left);
        *more = *more || left;
        space_put(spaces[i]);
    }
    if (!err && n)
        measure(t, s);
    return err;
}

int collection_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct collections *c = arg;
    bool more = false;
    int err = 0;
    (void)turn;
    for (size_t i = 0; i < COLLECTION_COUNT && !err; i++) {
        struct shelf *s = &c->shelves[i];
        bool left = false;
        err = round_of(t, s, &more);
        if (!err)
            err = note_seen(t, s);
        if (!err && s->tends)
            err = sweep(t, s, &left);
        more = more || left;
    }
    return err || !more ? err : ROLE_MORE;
}
