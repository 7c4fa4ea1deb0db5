/* From MySQL to the list: numbering, pushing, and mending a list that counts no more. */
#include "app/pool/pools_private.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define STALE_MS         1000 /* a lock that is held for longer is a dead node's, or a slow one's */
#define DRY_MS           500  /* a group without usable items is not asked again for so long */
#define ADOPT_EACH_MS    60000
#define FIRST_ITEMS      500  /* while it is not known how large items are */
#define BUSY_PER_S       2000 /* items that leave the list */
#define BUSY_ITEMS       2500 /* are put into it at once then: the next ones follow soon */
#define BUSY_ITEMS_FIRST 1000 /* of a list that is low already */
#define BUSY_RECENT_MS   1000
#define BLOCKS_MAX       16 /* by one fill */
#define OTHERS_MS        10 /* another node fills: it is not asked again for so long */

/* What MySQL has of the list. */
struct row {
    struct str list;
    int64_t limit, numbered;
};

static int read_row(struct task *t, struct pool *x, struct row *out)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       "SELECT l.list, l.handed_limit, g.numbered FROM pool_list l"
                       " JOIN pool_group g ON g.type = l.type AND g.group_id = l.group_id"
                       " WHERE l.type = ? AND l.group_id = ?",
                       POOL_VALUES(x->id));
    if (!err && r.count == 0) {
        x->has_rows = false;
        err = task_fail(t, ERR_BUSY, "the rows of %.*s are gone", STR_ARG(x->key));
    }
    if (!err)
        *out = (struct row){r.cells[0].s, r.cells[1].i, r.cells[2].i};
    return err;
}

/* --- mending --- */

struct mending {
    struct pool_id id;
    struct str seen; /* the name in MySQL */
    char name[POOL_NAME_BYTES];
    struct pool_taken taken;
};

#define NOT_HANDED_OUT                                                                             \
    " WHERE i.group_id = ? AND i.number > ? AND i.number < " POOL_UNNUMBERED " AND i.status = 2"

/* What may have been handed out is used; what surely was not is usable. */
static int sort_out(struct task *t, struct sql *c, struct pool_id id, const struct pool_numbers *n,
                    int64_t limit, int64_t *unseen)
{
    struct pool_runs runs;
    struct sql_rows r;
    int64_t above = limit > n->marked ? limit : n->marked;
    int err = pool_runs_find(t, c, id, n->marked + 1, n->numbered, &runs);
    if (err)
        return err;
    struct sql_value ids = pool_runs_value(t, &runs);
    err = sql_on(t, c, &r,
                 pool_runs_sql(t, id, &runs, "UPDATE ",
                               " SET i.status = 0, i.used_at = UNIX_TIMESTAMP()"
                               " WHERE i.group_id = ? AND i.number > ? AND i.number <= ?"
                               " AND i.status = 2"),
                 ids, sql_int(id.group), sql_int(n->marked), sql_int(limit));
    *unseen = err ? 0 : (int64_t)r.affected;
    if (!err)
        err = sql_on(t, c, &r,
                     pool_runs_sql(t, id, &runs, "SELECT i.batch_id, MIN(i.id) FROM ",
                                   NOT_HANDED_OUT " GROUP BY i.batch_id"),
                     ids, sql_int(id.group), sql_int(above));
    if (!err)
        err = pool_places_back(t, c, id, &r);
    if (!err)
        err = sql_on(t, c, NULL,
                     pool_runs_sql(t, id, &runs, "UPDATE ",
                                   " SET i.status = 1, i.number = 0" NOT_HANDED_OUT),
                     ids, sql_int(id.group), sql_int(above));
    if (!err)
        err = sql_on(t, c, NULL, "DELETE FROM pool_run WHERE type = ? AND group_id = ?",
                     POOL_VALUES(id));
    return err;
}

int pool_take_back(struct task *t, struct sql *c, struct pool_id id, struct str seen,
                   struct str fresh, struct pool_taken *out)
{
    struct sql_rows r;
    struct pool_numbers n;
    int err = pool_lock_group(t, c, id, &n);
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT list, handed_limit FROM pool_list WHERE type = ? AND group_id = ?"
                     " FOR UPDATE",
                     POOL_VALUES(id));
    if (err)
        return err;
    /* Not ERR_CONFLICT, for which the transaction would be tried again. */
    if (r.count == 0 || (seen.p && !str_eq(r.cells[0].s, seen)))
        return task_fail(t, ERR_BUSY, "another node mends %s", pool_label(task_arena(t), id).p);
    int64_t limit = r.cells[1].i, last = n.numbered > limit ? n.numbered : limit;
    err = sort_out(t, c, id, &n, limit, &out->unseen);
    out->first = last + 1;
    if (!err)
        err = sql_on(t, c, NULL,
                     "UPDATE pool_group SET numbered = ?, marked = ?, unseen = unseen + ?"
                     " WHERE type = ? AND group_id = ?",
                     sql_int(last), sql_int(last), sql_int(out->unseen), POOL_VALUES(id));
    if (!err)
        err = sql_on(t, c, NULL, "UPDATE pool_list SET list = ? WHERE type = ? AND group_id = ?",
                     sql_text(fresh), POOL_VALUES(id));
    return err;
}

static int rename_list(struct task *t, struct sql *c, void *arg)
{
    struct mending *m = arg;
    return pool_take_back(t, c, m->id, m->seen, str_of(m->name), &m->taken);
}

/* look and row: what both stores have; on success that of the new list. */
static int mend(struct task *t, struct pool *x, const struct generation *generation,
                struct pool_look *look, struct row *row)
{
    struct mending m = {.id = x->id, .seen = row->list};
    int64_t begun;
    loop_token(task_loop(t), m.name, sizeof m.name);
    /* If this Redis knew that list, it knows the least that was handed out. */
    int err = look->stored.n && str_eq(look->stored, row->list) ? pool_mark(t, x, look->first) : 0;
    if (!err)
        err = sql_tx(t, x->pools->options.sql, rename_list, &m);
    x->places.found_ms = 0; /* what was taken back may be elsewhere */
    if (!err)
        err = SCRIPT_NUMBER(t, x->pools->options.redis, pool_begin, &begun, .list = x->list,
                            .state = x->state, .seen = look->stored,
                            .generation = generation_str(generation), .name = str_of(m.name),
                            .first = str_int(task_arena(t), m.taken.first));
    if (!err && !begun)
        err = task_fail(t, ERR_BUSY, "Redis was restarted while %.*s was mended", STR_ARG(x->key));
    if (m.taken.unseen)
        log_warn("pool",
                 "%.*s: Redis has forgotten how many of the last %lld items it handed out, so all "
                 "of them count as used; %s",
                 STR_ARG(x->key), (long long)m.taken.unseen,
                 err ? "it is tried again" : "pops go on");
    metric_add(x->pools->unseen, m.taken.unseen);
    if (err)
        return err;
    metric_add(x->pools->mended, 1);
    *look = (struct pool_look){.list = str_dup(task_arena(t), str_of(m.name)),
                               .first = m.taken.first,
                               .limit = m.taken.first - 1,
                               .marked = m.taken.first - 1};
    *row = (struct row){.list = look->list, .limit = row->limit, .numbered = m.taken.first - 1};
    return 0;
}

/* --- numbering --- */

struct numbering {
    struct pool *pool;
    struct str list; /* its name */
    int64_t first;   /* number that it hands out next, or a smaller one */
    int64_t wanted;  /* in the list, in all; 0: what was numbered before is pushed, and no more */
    int64_t most;    /* in one transaction */
    int64_t pending; /* number of the first that is to be pushed */
    int64_t given;   /* that of the first of rows */
    struct sql_rows before, rows; /* number, id, text: numbered before and not pushed; now */
    bool gaps;                    /* before is not whole */
    bool dry;                     /* there was room for more than is usable */
};

/* The rest of a list that is not to be larger than so many bytes. */
static int64_t room(const struct pool *x, int64_t wanted, int64_t listed)
{
    int64_t most = x->item_bytes ? POOL_LIST_BYTES_MAX / x->item_bytes : FIRST_ITEMS;
    int64_t items = wanted < most ? wanted : most;
    return items > listed ? items - listed : 0;
}

/* What a filler that died has left. */
static int read_pending(struct task *t, struct sql *c, struct numbering *n, int64_t numbered)
{
    const struct pool *x = n->pool;
    int64_t last = n->pending + POOL_LIST_ITEMS - 1;
    struct pool_runs runs;
    if (last > numbered)
        last = numbered;
    int err = pool_runs_find(t, c, x->id, n->pending, last, &runs);
    if (err)
        return err;
    return sql_on(t, c, &n->before,
                  pool_runs_sql(t, x->id, &runs, "SELECT i.number, i.id, i.$text FROM ",
                                " WHERE i.group_id = ? AND i.number BETWEEN ? AND ?"
                                " AND i.status = 2 ORDER BY i.number"),
                  pool_runs_value(t, &runs), sql_int(x->id.group), sql_int(n->pending),
                  sql_int(last));
}

static int64_t id_of(const struct sql_rows *rows, size_t i)
{
    return sql_row(rows, i)[1].i;
}

static void find_runs(struct task *t, const struct numbering *n, int64_t numbered,
                      struct pool_runs *out)
{
    pool_runs_init(t, out, n->rows.count);
    for (size_t i = 0; i < n->rows.count; i++)
        pool_runs_add(out, numbered + 1 + (int64_t)i, id_of(&n->rows, i), 1);
}

/* Items that were added together have ids in a row: a statement for each run takes two thirds of
 * the time that one join takes. The LIMIT keeps it from looking at the row behind, which another
 * program may have locked; with an ORDER BY, MariaDB would collect the rows first. */
static int number_runs(struct task *t, struct sql *c, const struct numbering *n,
                       const struct pool_runs *runs, uint64_t *affected)
{
    const struct pool *x = n->pool;
    const char *statement = pool_sql(task_arena(t), x->id.type,
                                     "UPDATE $table FORCE INDEX (PRIMARY) SET status = 2,"
                                     " number = id + ? WHERE id BETWEEN ? AND ? AND status = 1"
                                     " LIMIT ?");
    int err = 0;
    for (size_t i = 0; i < runs->count && !err; i++) {
        struct sql_rows r;
        const struct pool_run *run = &runs->list[i];
        err = sql_on(t, c, &r, statement, sql_int(run->number - run->id), sql_int(run->id),
                     sql_int(run->id + run->items - 1), sql_int(run->items));
        *affected += err ? 0 : r.affected;
    }
    return err;
}

static int number_each(struct task *t, struct sql *c, struct numbering *n, int64_t numbered,
                       uint64_t *affected)
{
    struct sql_rows r;
    struct buf ids;
    buf_init(&ids);
    for (size_t i = 0; i < n->rows.count; i++) {
        buf_add_char(&ids, i ? ',' : '[');
        buf_add_int(&ids, id_of(&n->rows, i));
    }
    buf_add_char(&ids, ']');
    int err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), n->pool->id.type,
                              "UPDATE " POOL_IDS " STRAIGHT_JOIN $table AS i FORCE INDEX (PRIMARY)"
                              " ON i.id = j.id"
                              " SET i.status = 2, i.number = ? + j.place WHERE i.status = 1"),
                     sql_text(buf_str(&ids)), sql_int(numbered));
    buf_release(&ids);
    *affected = err ? 0 : r.affected;
    return err;
}

/* The rows are named by their ids: whatever another program does to the table meanwhile, what is
 * pushed is what was numbered. */
static int number_rows(struct task *t, struct sql *c, struct numbering *n, int64_t numbered)
{
    const struct pool *x = n->pool;
    struct pool_runs runs;
    uint64_t affected = 0;
    find_runs(t, n, numbered, &runs);
    int err = pool_runs_long(&runs) ? number_runs(t, c, n, &runs, &affected)
                                    : number_each(t, c, n, numbered, &affected);
    if (!err && affected != n->rows.count)
        err = task_fail(t, ERR_CONFLICT, "items of %.*s were changed by another program",
                        STR_ARG(x->key));
    if (!err)
        err = pool_runs_note(t, c, x->id, &runs);
    if (!err)
        err =
            sql_on(t, c, NULL, "UPDATE pool_group SET numbered = ? WHERE type = ? AND group_id = ?",
                   sql_int(numbered + (int64_t)n->rows.count), POOL_VALUES(x->id));
    return err;
}

static int give_numbers(struct task *t, struct sql *c, void *arg)
{
    struct numbering *n = arg;
    const struct pool *x = n->pool;
    struct pool_numbers g;
    n->before.count = n->rows.count = 0;
    int err = pool_lock_group(t, c, x->id, &g);
    if (!err && g.numbered >= n->pending)
        err = read_pending(t, c, n, g.numbered);
    if (err)
        return err;
    /* By numbers: those that another node has just given are on their way to the list. */
    int64_t count = room(x, n->wanted, g.numbered - n->first + 1);
    if (count > n->most)
        count = n->most;
    if (count > 0)
        err = pool_find_usable(t, c, n->pool, count, &n->rows);
    n->dry = count > 0 && n->rows.count == 0;
    n->given = g.numbered + 1;
    return err || n->rows.count == 0 ? err : number_rows(t, c, n, g.numbered);
}

/* --- items that are usable again --- */

#define STRAYED                                                                                    \
    " FROM $table FORCE INDEX (in_order) WHERE group_id = ? AND status = 1"                        \
    " AND (number BETWEEN 0 AND ? OR number = " POOL_UNNUMBERED ") GROUP BY batch_id"

/* What may be in the list stays. */
static int adopt(struct task *t, struct sql *c, void *arg)
{
    const struct pool *x = arg;
    struct pool_numbers n;
    struct sql_rows r;
    int err = pool_lock_group(t, c, x->id, &n);
    if (!err)
        err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), x->id.type, "SELECT batch_id, MIN(id)" STRAYED),
                     sql_int(x->id.group), sql_int(n.marked));
    if (!err)
        err = pool_places_back(t, c, x->id, &r);
    if (!err)
        err = sql_on(t, c, &r,
                     pool_sql(task_arena(t), x->id.type,
                              "UPDATE $table FORCE INDEX (in_order) SET number = 0"
                              " WHERE group_id = ? AND status = 1"
                              " AND (number BETWEEN 1 AND ? OR number = " POOL_UNNUMBERED ")"),
                     sql_int(x->id.group), sql_int(n.marked));
    if (!err && r.affected)
        log_info("pool", "%.*s: %llu used items are usable again", STR_ARG(x->key),
                 (unsigned long long)r.affected);
    return err;
}

/* Other programs have given items that were used status 1, or have committed items of a batch later
 * than others with larger ids. No lock while all items are looked at: mostly there are none. */
int pool_adopt(struct task *t, struct pool *x)
{
    struct sql_rows r;
    int err = sql_call(t, x->pools->options.sql, &r,
                       pool_sql(task_arena(t), x->id.type, "SELECT batch_id" STRAYED " LIMIT 1"),
                       sql_int(x->id.group), sql_int(INT64_MAX));
    x->places.found_ms = 0;
    return err || r.count == 0 ? err : sql_tx(t, x->pools->options.sql, adopt, x);
}

/* Nothing is usable: that is believed for a while, and all items are looked at now and then. */
static int found_dry(struct task *t, struct pool *x)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (x->adopted_ms && now_ms - x->adopted_ms < ADOPT_EACH_MS) {
        x->dry_ms = now_ms + DRY_MS;
        return 0;
    }
    x->adopted_ms = now_ms;
    return pool_adopt(t, x);
}

/* --- all of it --- */

/* The rows follow each other, unless someone has deleted some by hand. */
static bool has_gaps(const struct sql_rows *rows, int64_t first)
{
    return rows->count > 0 &&
           (sql_row(rows, 0)->i != first ||
            sql_row(rows, rows->count - 1)->i != first + (int64_t)rows->count - 1);
}

static int check_budget(struct task *t, const struct pool *x)
{
    const struct redis_reply *r;
    int64_t most = x->pools->options.lists_bytes_max;
    if (!most)
        return 0;
    int err =
        redis_call(t, x->pools->options.redis, key_pools, &r, STR("HGET"), key_pools, STR("bytes"));
    if (!err && redis_number(r, 0) >= most)
        err = task_fail(t, ERR_LIMIT, "the lists of pools take %lld bytes of Redis already",
                        (long long)most);
    return err;
}

/* It is emptied fast. */
static bool is_busy(struct task *t, const struct pool *x)
{
    return x->per_s >= BUSY_PER_S && loop_now_ms(task_loop(t)) - x->popped_ms < BUSY_RECENT_MS;
}

/* Then little and often: pops wait for the first items of a list that is empty. */
static int64_t most_at_once(struct task *t, const struct pool *x, const struct pool_look *look)
{
    return !is_busy(t, x)                  ? POOL_LIST_ITEMS
           : look->length < POOL_LOW_ITEMS ? BUSY_ITEMS_FIRST
                                           : BUSY_ITEMS;
}

/* Pops have made room for a further block meanwhile. */
static bool goes_on(struct task *t, const struct pool *x, const struct numbering *n)
{
    return n->rows.count && is_busy(t, x) && str_eq(n->list, str_of(x->name)) &&
           room(x, n->wanted, n->pending - x->first) >= POOL_PUSH_ITEMS;
}

/* Gives numbers to a block, while the one before is pushed; then begins to push it. */
static int fill_block(struct task *t, struct numbering *n, struct pool_push *push)
{
    struct pool_push before = {.pool = n->pool, .list = n->list};
    int err = sql_tx(t, n->pool->pools->options.sql, give_numbers, n);
    int pushed = pool_push_end(t, push);
    err = err ? err : pushed;
    n->gaps = !err && has_gaps(&n->before, n->pending);
    if (err || n->gaps)
        return err;
    pool_push_begin(t, &before, &n->before, n->pending);
    err = pool_push_end(t, &before);
    if (err)
        return err;
    pool_push_begin(t, push, &n->rows, n->given);
    metric_add(n->pool->pools->numbered, (int64_t)n->rows.count);
    n->pending = n->given + (int64_t)n->rows.count;
    return 0;
}

/* Block after block, as long as pops empty the list. */
static int fill_blocks(struct task *t, struct numbering *n)
{
    struct pool *x = n->pool;
    struct pool_push push = {.pool = x, .list = n->list};
    int err = 0;
    for (int i = 0; !err && i < BLOCKS_MAX; i++) {
        struct task_scope s = task_scope(t);
        err = fill_block(t, n, &push);
        task_scope_end(t, s);
        if (err || n->gaps || !goes_on(t, x, n))
            break;
        n->first = x->first;
        n->most = BUSY_ITEMS;
    }
    int pushed = pool_push_end(t, &push);
    return err ? err : pushed;
}

static int fill(struct task *t, struct pool *x, int64_t low)
{
    struct generation generation = generation_at(x->pools->options.redis, x->state);
    struct pool_look look;
    struct row row;
    int err = pool_look(t, x, &look);
    if (!err)
        err = read_row(t, x, &row);
    if (err)
        return err;
    if (look.list.n && look.was.n && str_eq(look.was, row.list)) {
        err = pool_settled(t, x, look.was, look.list, look.first);
        row.list = look.list;
    }
    if (!err && (look.list.n == 0 || !str_eq(look.list, row.list) ||
                 look.first + look.length - 1 > row.numbered))
        err = mend(t, x, &generation, &look, &row);
    struct numbering n = {.pool = x,
                          .list = look.list,
                          .first = look.first,
                          .most = most_at_once(t, x, &look),
                          .pending = look.first + look.length};
    if (!err && look.length < low && check_budget(t, x) == 0)
        n.wanted = POOL_LIST_ITEMS;
    if (!err)
        err = fill_blocks(t, &n);
    if (!err && n.gaps)
        return mend(t, x, &generation, &look, &row);
    if (err)
        return err;
    look.length = n.pending - look.first;
    pool_note(x, &look);
    return n.dry ? found_dry(t, x) : 0;
}

/* The lock saves work; a node that died with it must not keep others from working. */
static int lock_list(struct task *t, struct pool *x)
{
    struct redis *redis = x->pools->options.redis;
    const struct redis_reply *r;
    int err = x->locked ? lock_keep(t, &x->lock, POOL_LOCK_MS)
                        : lock_take(t, redis, x->filling, POOL_LOCK_MS, &x->lock);
    x->locked = !err;
    if (err != ERR_BUSY)
        return err == ERR_CONFLICT ? ERR_BUSY : err;
    err = redis_call(t, redis, x->filling, &r, STR("PTTL"), x->filling);
    if (!err && redis_number(r, 0) > POOL_LOCK_MS - STALE_MS)
        err = task_fail(t, ERR_BUSY, "another node fills %.*s", STR_ARG(x->key));
    return err;
}

/* If Redis does not answer, or the task is cancelled, it is held still: for the next fill, or until
 * the node stops. */
void pool_unlock(struct task *t, struct pool *x)
{
    if (x->locked)
        x->locked = !lock_drop(t, &x->lock);
}

static int fill_locked(struct task *t, struct pool *x, int64_t low)
{
    struct task_scope s = task_scope(t);
    int64_t begun_us = loop_now_us(task_loop(t));
    int err =
        pool_redis(x) ? pool_ensure(t, x) : task_fail(t, ERR_UNAVAILABLE, "Redis does not answer");
    if (!err)
        err = lock_list(t, x);
    if (!err)
        err = fill(t, x, low);
    pool_unlock(t, x);
    histogram_add_us(x->pools->fill_seconds, loop_now_us(task_loop(t)) - begun_us);
    task_scope_end(t, s);
    return err;
}

int pool_fill(struct task *t, struct pool *x, int64_t low)
{
    if (x->fills) {
        int err = 0;
        while (x->fills && !err)
            err = waitq_wait(t, &x->filled);
        return err ? err : x->fill_err;
    }
    if (x->dry_ms > loop_now_ms(task_loop(t)) && x->name[0])
        return 0;
    x->fills = true;
    x->fills_soon = false;
    x->busy++;
    x->fill_err = fill_locked(t, x, low);
    x->fills = false;
    x->fill_count++;
    if (x->fill_err == ERR_BUSY)
        x->others_ms = loop_now_ms(task_loop(t)) + OTHERS_MS;
    waitq_wake_all(&x->filled);
    pool_put(x);
    return x->fill_err;
}

int pool_fill_some(struct task *t, struct pool *x, bool *whole)
{
    uint64_t fills = x->fill_count, pushes = x->pushes;
    pool_fill_soon(x);
    *whole = !x->fills && !x->fills_soon;
    if (*whole)
        return pool_fill(t, x, POOL_LIST_ITEMS);
    int err = 0;
    while (!err && x->fill_count == fills && x->pushes == pushes)
        err = waitq_wait(t, &x->filled);
    *whole = !err && x->fill_count != fills;
    return *whole ? x->fill_err : err;
}

static void fill_task(struct task *t, void *arg)
{
    struct pool *x = arg;
    int err = pool_fill(t, x, POOL_LIST_ITEMS);
    if (err && !err_is_outage(err) && err != ERR_BUSY)
        log_warn("pool", "%.*s cannot be filled: %s; MySQL hands out", STR_ARG(x->key),
                 task_error(t));
    x->fills_soon = false;
    pool_put(x);
}

void pool_fill_soon(struct pool *x)
{
    int64_t now_ms = loop_now_ms(x->pools->options.group->loop);
    if (x->fills || x->fills_soon || x->dry_ms > now_ms || x->others_ms > now_ms ||
        task_go(x->pools->options.group, "pool fill", fill_task, x))
        return;
    x->fills_soon = true;
    x->busy++;
}
