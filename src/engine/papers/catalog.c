#include "engine/papers/catalog_private.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "engine/store/keys.h"
#include "engine/store/lock.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define LOCK_MS       10000 /* a loader waits this long for the lock of one that died */
#define LOCK_POLL_MS  100
#define LOST_LOCK_MAX 3 /* loads that took longer than LOCK_MS */

/* Keys or arguments of the script, as they are gathered. */
struct words {
    struct arena *arena;
    struct str *v;
    size_t n, cap;
};

static void add(struct words *w, struct str s)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 256;
        w->v = arena_grow(w->arena, w->v, w->cap * sizeof *w->v, cap * sizeof *w->v);
        w->cap = cap;
    }
    w->v[w->n++] = s;
}

struct loading {
    struct task *task;
    struct redis *redis;
    struct sql_pool *sql;
    struct words keys, values;
    struct map *named; /* set of the keys that the new catalog has */
    struct catalog_size size;
};

/* A key with a number of values, which the caller adds. */
static void add_key(struct loading *l, struct str key, struct str kind, size_t value_count)
{
    add(&l->keys, key);
    add(&l->values, kind);
    add(&l->values, str_int(task_arena(l->task), (int64_t)value_count));
    map_add(l->named, key);
}

/* Every row of a query with two columns, as a hash. */
static int add_pairs(struct loading *l, struct str key, const char *query, int64_t *count)
{
    struct sql_rows r;
    int err = sql_call(l->task, l->sql, &r, query);
    if (err)
        return err;
    add_key(l, key, STR("hash"), r.count * 2);
    for (size_t i = 0; i < r.count; i++) {
        add(&l->values, sql_row(&r, i)[0].s);
        add(&l->values, sql_row(&r, i)[1].s);
    }
    *count = (int64_t)r.count;
    return 0;
}

/* The rows come in order of their tag: each run of them is a set. */
static int add_tag_journals(struct loading *l)
{
    struct sql_rows r;
    int err = sql_call(l->task, l->sql, &r,
                       "SELECT p.Tag, p.Name FROM info_paper_with_tag p"
                       " JOIN info_tag t ON t.Tag = p.Tag JOIN contentlist c ON c.Name = p.Name"
                       " ORDER BY p.Tag, p.Name");
    for (size_t i = 0, end; !err && i < r.count; i = end) {
        struct str tag = sql_row(&r, i)[0].s;
        for (end = i; end < r.count && str_eq(sql_row(&r, end)[0].s, tag);)
            end++;
        add_key(l, key_tag_journals(task_arena(l->task), tag), STR("set"), end - i);
        for (size_t j = i; j < end; j++)
            add(&l->values, sql_row(&r, j)[1].s);
    }
    if (!err)
        l->size.pairs = (int64_t)r.count;
    return err;
}

static struct str journal_info(struct arena *a, const struct sql_value *row)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "FullName", row[1].s);
    jw_put_str(&w, "DataRange", row[2].s);
    jw_put_str(&w, "UpdateDate", row[3].s);
    return jw_finish(&w, a);
}

static int add_journals(struct loading *l)
{
    struct sql_rows r;
    int err = sql_call(l->task, l->sql, &r,
                       "SELECT Name, FullName, DataRange, UpdateDate FROM contentlist");
    if (err)
        return err;
    add_key(l, key_journals, STR("hash"), r.count * 2);
    for (size_t i = 0; i < r.count; i++) {
        add(&l->values, sql_row(&r, i)[0].s);
        add(&l->values, journal_info(task_arena(l->task), sql_row(&r, i)));
    }
    return add_pairs(l, key_prices, "SELECT Name, CAST(Price AS CHAR) FROM contentlist",
                     &l->size.journals);
}

static int add_years_of(struct loading *l, struct str journal, struct str text)
{
    struct arena *a = task_arena(l->task);
    const struct json *years;
    if (json_parse(a, text, &years, NULL) || years->type != JSON_OBJECT)
        return task_fail(l->task, ERR_PROTO, "contentlist_year_number of %.*s is no JSON object",
                         STR_ARG(journal));
    add_key(l, key_year_numbers(a, journal), STR("hash"), years->count * 2);
    json_each (it, years) {
        int64_t papers;
        if (!json_int(it, &papers))
            return task_fail(l->task, ERR_PROTO,
                             "contentlist_year_number of %.*s: \"%.*s\" is no number",
                             STR_ARG(journal), STR_ARG(it->key));
        add(&l->values, it->key);
        add(&l->values, str_int(a, papers));
    }
    l->size.years += years->count;
    return 0;
}

/* With the load that they are of. One statement, so that the two agree; without any years it has
 * one row, of NULLs and the load. */
static int add_years(struct loading *l)
{
    struct sql_rows r;
    int err = sql_call(l->task, l->sql, &r,
                       "SELECT y.Name, y.YearNumberJson, l.load_no FROM"
                       " (SELECT " CATALOG_LOAD " AS load_no) l LEFT JOIN"
                       " (contentlist_year_number y JOIN contentlist c ON c.Name = y.Name)"
                       " ON l.load_no IS NOT NULL");
    if (err)
        return err;
    add_key(l, key_catalog, STR("hash"), 2);
    add(&l->values, STR("load"));
    add(&l->values, str_int(task_arena(l->task), r.cells[2].i));
    for (size_t i = 0; !err && i < r.count; i++)
        if (sql_row(&r, i)[0].s.p)
            err = add_years_of(l, sql_row(&r, i)[0].s, sql_row(&r, i)[1].s);
    return err;
}

/* "2024 3 2025 0": rows first to end - 1. */
static struct str bare_text(struct arena *a, const struct sql_rows *r, size_t first, size_t end)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = first; i < end; i++)
        buf_printf(&b, "%s%lld %lld", i > first ? " " : "", (long long)sql_row(r, i)[1].i,
                   (long long)sql_row(r, i)[2].i);
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

/* Of papers without an abstract, by journal. */
static int add_bare(struct loading *l)
{
    struct sql_rows r;
    int err = sql_call(l->task, l->sql, &r,
                       "SELECT n.journal, n.year, n.bare FROM corpus_bare n JOIN corpus_block b"
                       " ON b.journal = n.journal AND b.year = n.year AND b.papers = n.papers"
                       " AND b.digest = n.digest ORDER BY n.journal, n.year");
    if (err)
        return err;
    size_t journals = 0;
    for (size_t i = 0; i < r.count; i++)
        journals += i == 0 || !str_eq(sql_row(&r, i)[0].s, sql_row(&r, i - 1)[0].s);
    add_key(l, key_bare, journals ? STR("hash") : STR("gone"), journals * 2);
    for (size_t i = 0, end; i < r.count; i = end) {
        struct str journal = sql_row(&r, i)[0].s;
        for (end = i; end < r.count && str_eq(sql_row(&r, end)[0].s, journal);)
            end++;
        add(&l->values, journal);
        add(&l->values, bare_text(task_arena(l->task), &r, i, end));
    }
    return 0;
}

/* Keys that the catalog in Redis has, and the new one does not. */
static int add_gone(struct loading *l, struct str hash,
                    struct str (*key_of)(struct arena *a, struct str name))
{
    const struct redis_reply *r;
    int err = redis_call(l->task, l->redis, hash, &r, STR("HKEYS"), hash);
    for (size_t i = 0; !err && i < r->count; i++) {
        struct str key = key_of(task_arena(l->task), r->items[i]->str);
        if (!map_get(l->named, key))
            add_key(l, key, STR("gone"), 0);
    }
    return err;
}

static int gather(struct loading *l)
{
    int err = add_pairs(l, key_tags, "SELECT Tag, TagType FROM info_tag", &l->size.tags);
    if (!err)
        err = add_tag_journals(l);
    if (!err)
        err = add_journals(l);
    if (!err)
        err = add_years(l);
    if (!err)
        err = add_bare(l);
    if (!err)
        err = add_gone(l, key_tags, key_tag_journals);
    return err ? err : add_gone(l, key_journals, key_year_numbers);
}

/* ERR_CONFLICT: the lock went to another loader meanwhile; nothing was changed. */
static int replace(struct loading *l, const struct lock *lock)
{
    int64_t replaced;
    int err = SCRIPT_NUMBER(l->task, l->redis, catalog_replace, &replaced, .lock = lock->key,
                            .catalog = {l->keys.v, l->keys.n}, .token = lock_token(lock),
                            .values = {l->values.v, l->values.n});
    return err || replaced ? err : ERR_CONFLICT;
}

static int load_once(struct task *t, struct redis *r, struct sql_pool *sql,
                     struct catalog_size *out)
{
    struct backoff poll = {.ms = LOCK_POLL_MS};
    struct lock lock;
    int err;
    while ((err = lock_take(t, r, key_catalog_lock, LOCK_MS, &lock)) == ERR_BUSY)
        if ((err = backoff_wait(t, &poll)))
            return err;
    if (err)
        return err;
    struct loading l = {.task = t, .redis = r, .sql = sql, .named = map_new()};
    l.keys.arena = l.values.arena = task_arena(t);
    err = gather(&l);
    if (!err)
        err = replace(&l, &lock);
    map_free(l.named);
    lock_drop(t, &lock);
    if (!err)
        *out = l.size;
    return err;
}

int catalog_load(struct task *t, struct redis *r, struct sql_pool *sql, struct catalog_size *out)
{
    int err = ERR_CONFLICT;
    for (int tries = 0; err == ERR_CONFLICT && tries < LOST_LOCK_MAX; tries++) {
        struct task_scope s = task_scope(t);
        err = load_once(t, r, sql, out);
        task_scope_end(t, s);
    }
    if (err == ERR_CONFLICT)
        return task_fail(t, ERR_TIMEOUT,
                         "the catalog was not loaded: %d times that took longer than %d s; is the "
                         "machine overloaded?",
                         LOST_LOCK_MAX, LOCK_MS / 1000);
    return err;
}
