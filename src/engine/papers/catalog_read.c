#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/papers/catalog_private.h"
#include "engine/store/keys.h"

/* A range of more years than this is read with HGETALL, which is cheaper then. */
#define YEARS_BY_NAME_MAX 20

/* Not an error: Redis answers, but the catalog has not been loaded yet, or is replaced again and
 * again. */
#define NOT_LOADED 1
#define TRIES_MAX  3 /* while the catalog is replaced between two commands */

/* --- what both stores share --- */

bool catalog_is_year(struct str name, int64_t *year)
{
    return name.n == 4 && str_to_i64(name, year) && *year >= CATALOG_YEAR_MIN;
}

void catalog_add_year(struct catalog_journal *j, int64_t year, int64_t papers)
{
    size_t at = j->year_count++;
    for (; at > 0 && j->years[at - 1].year > year; at--) /* most often they come in order */
        j->years[at] = j->years[at - 1];
    j->years[at] = (struct catalog_year){year, papers};
}

int catalog_add_papers(struct task *t, int64_t *sum, int64_t papers)
{
    if (__builtin_add_overflow(*sum, papers, sum))
        return task_fail(t, ERR_LIMIT, "there are more papers than can be counted");
    return 0;
}

int catalog_add_up(struct task *t, struct catalog_estimate *e, struct catalog_estimate_row *row)
{
    int err = catalog_add_papers(t, &e->papers, row->papers);
    if (err)
        return err;
    e->bare = e->bare < 0 || row->bare < 0 ? -1 : e->bare + row->bare;
    if (__builtin_mul_overflow(row->papers, row->price, &row->cents) ||
        __builtin_mul_overflow(row->cents, (int64_t)100, &row->cents) ||
        __builtin_add_overflow(e->cents, row->cents, &e->cents))
        return task_fail(t, ERR_LIMIT, "the papers cost more than can be counted");
    return 0;
}

static int tag_order(const void *a, const void *b)
{
    const struct catalog_tag *x = a, *y = b;
    int order = str_compare(x->type, y->type);
    return order ? order : str_compare(x->tag, y->tag);
}

static int journal_order(const void *a, const void *b)
{
    return str_compare(((const struct catalog_journal *)a)->name,
                       ((const struct catalog_journal *)b)->name);
}

/* --- Redis --- */

static int damaged(struct task *t, struct str what)
{
    return task_fail(t, ERR_PROTO, "the catalog in Redis is damaged at \"%.*s\"", STR_ARG(what));
}

/* The commands of a batch were chosen for the types of their keys: what comes back is an error, or
 * of the shape that the command has. */
static int run(struct redis_batch *b, const struct redis_reply *const **replies)
{
    size_t count = b->count;
    int err = redis_batch_run(b, replies);
    for (size_t i = 0; !err && i < count; i++)
        if ((*replies)[i]->type == REDIS_ERROR)
            err = task_fail(b->task, ERR_REFUSED, "Redis says of the catalog: %.*s",
                            STR_ARG((*replies)[i]->str));
    return err;
}

static int redis_tags(struct task *t, struct redis *r, struct catalog_tag **out, size_t *count)
{
    const struct redis_reply *const *replies;
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, key_tags, STR("HGETALL"), key_tags);
    redis_batch_add(&b, key_prices, STR("EXISTS"), key_prices);
    int err = run(&b, &replies);
    if (err)
        return err;
    if (!replies[1]->integer)
        return NOT_LOADED;
    size_t n = replies[0]->count / 2;
    struct catalog_tag *tags = ARENA_ARRAY(task_arena(t), struct catalog_tag, n);
    for (size_t i = 0; i < n; i++) {
        tags[i].tag = replies[0]->items[2 * i]->str;
        tags[i].type = replies[0]->items[2 * i + 1]->str;
        struct str key = key_tag_journals(task_arena(t), tags[i].tag);
        redis_batch_add(&b, key, STR("SCARD"), key);
    }
    if (n && (err = run(&b, &replies)))
        return err;
    for (size_t i = 0; i < n; i++)
        tags[i].journals = replies[i]->integer;
    *out = tags;
    *count = n;
    return 0;
}

static void hmget(struct redis_batch *b, struct str key, const struct str *names, size_t count)
{
    struct str *argv = arena_alloc(task_arena(b->task), (count + 2) * sizeof *argv);
    argv[0] = STR("HMGET");
    argv[1] = key;
    memcpy(argv + 2, names, count * sizeof *names);
    redis_batch_argv(b, key, count + 2, argv);
}

/* Tags that the catalog has now. The set of one that was removed may still be there, if Redis had
 * lost the list of tags when the catalog was loaded. */
static int redis_known(struct task *t, struct redis *r, const struct str *tags, size_t tag_count,
                       struct str *known, size_t *count)
{
    const struct redis_reply *const *replies;
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    hmget(&b, key_tags, tags, tag_count);
    int err = run(&b, &replies);
    *count = 0;
    for (size_t i = 0; !err && i < tag_count; i++)
        if (replies[0]->items[i]->type == REDIS_STRING)
            known[(*count)++] = tags[i];
    return err;
}

/* The names of the journals that have the tags. */
static int redis_names(struct task *t, struct redis *r, const struct str *tags, size_t tag_count,
                       bool any, const struct redis_reply **names)
{
    static const struct redis_reply none = {.type = REDIS_ARRAY};
    struct str argv[CATALOG_TAGS_MAX + 1] = {any ? STR("SUNION") : STR("SINTER")};
    struct str known[CATALOG_TAGS_MAX];
    const struct redis_reply *const *replies;
    size_t count = 0;
    int err = tag_count ? redis_known(t, r, tags, tag_count, known, &count) : 0;
    if (err)
        return err;
    bool some = any ? count > 0 : count == tag_count;
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, key_prices, STR("EXISTS"), key_prices);
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = key_tag_journals(task_arena(t), known[i]);
    if (tag_count == 0)
        redis_batch_add(&b, key_prices, STR("HKEYS"), key_prices);
    else if (some)
        redis_batch_argv(&b, argv[1], count + 1, argv);
    err = run(&b, &replies);
    if (err)
        return err;
    *names = tag_count == 0 || some ? replies[1] : &none;
    return replies[0]->integer ? 0 : NOT_LOADED;
}

static int read_info(struct task *t, struct str text, struct catalog_journal *j)
{
    const struct json *info;
    if (json_parse(task_arena(t), text, &info, NULL))
        return damaged(t, j->name);
    j->full_name = json_str(json_get(info, "FullName"));
    j->data_range = json_str(json_get(info, "DataRange"));
    j->update_date = json_str(json_get(info, "UpdateDate"));
    return 0;
}

static void read_years(struct task *t, const struct redis_reply *hash, struct catalog_journal *j)
{
    int64_t year, papers;
    j->years = arena_alloc(task_arena(t), (hash->count / 2 + 1) * sizeof *j->years);
    for (size_t i = 0; i + 1 < hash->count; i += 2)
        if (catalog_is_year(hash->items[i]->str, &year) &&
            str_to_i64(hash->items[i + 1]->str, &papers) && papers >= 0)
            catalog_add_year(j, year, papers);
}

static int read_price(struct task *t, struct str journal, struct str text, int64_t *price)
{
    return str_to_i64(text, price) && *price >= 0 ? 0 : damaged(t, journal);
}

static int redis_journals(struct task *t, struct redis *r, const struct str *tags, size_t tag_count,
                          bool any, struct catalog_journal **out, size_t *count)
{
    const struct redis_reply *found;
    int err = redis_names(t, r, tags, tag_count, any, &found);
    if (err)
        return err;
    struct arena *a = task_arena(t);
    struct catalog_journal *journals = ARENA_ARRAY(a, struct catalog_journal, found->count);
    struct str *names = ARENA_ARRAY(a, struct str, found->count);
    for (size_t i = 0; i < found->count; i++)
        names[i] = found->items[i]->str;
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    if (found->count) {
        hmget(&b, key_journals, names, found->count);
        hmget(&b, key_prices, names, found->count);
    }
    for (size_t i = 0; i < found->count; i++) {
        struct str key = key_year_numbers(a, names[i]);
        redis_batch_add(&b, key, STR("HGETALL"), key);
    }
    const struct redis_reply *const *replies;
    if (found->count && (err = run(&b, &replies)))
        return err;
    size_t n = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct redis_reply *info = replies[0]->items[i], *price = replies[1]->items[i];
        if (info->type == REDIS_NIL || price->type == REDIS_NIL)
            continue; /* removed by a load between the two round trips */
        struct catalog_journal *j = &journals[n++];
        j->name = names[i];
        if ((err = read_info(t, info->str, j)) ||
            (err = read_price(t, j->name, price->str, &j->price)))
            return err;
        read_years(t, replies[i + 2], j);
    }
    *out = journals;
    *count = n;
    return 0;
}

/* The years of the range as names of fields; 0: the range is wide, read all of them. */
static size_t years_by_name(struct arena *a, const struct catalog_choice *c, struct str *names)
{
    if (c->year_to - c->year_from >= YEARS_BY_NAME_MAX)
        return 0;
    size_t n = 0;
    for (int64_t year = c->year_from; year <= c->year_to; year++)
        names[n++] = str_int(a, year);
    return n;
}

/* Papers of the years in the range: values alone, or a whole hash. *years: how many there are. */
static int papers_of(struct task *t, const struct catalog_choice *c, bool by_name,
                     const struct redis_reply *r, int64_t *papers, int *years)
{
    int err = 0;
    for (size_t i = 0; !err && i < r->count; i += by_name ? 1 : 2) {
        const struct redis_reply *value = r->items[by_name ? i : i + 1];
        int64_t year = c->year_from, n;
        if (value->type == REDIS_NIL || !str_to_i64(value->str, &n) || n < 0 ||
            (!by_name && !catalog_is_year(r->items[i]->str, &year)))
            continue;
        if (year < c->year_from || year > c->year_to)
            continue;
        err = catalog_add_papers(t, papers, n);
        ++*years;
    }
    return err;
}

/* Papers without an abstract: of a text "2024 3 2025 0", nil if none were counted. They are known
 * if they were counted in each of the years. */
static int64_t bare_of(const struct catalog_choice *c, const struct redis_reply *r, int years)
{
    struct str rest = r->type == REDIS_STRING ? r->str : STR_NULL;
    int64_t sum = 0, year, n;
    while (rest.p && str_to_i64(str_cut(&rest, ' '), &year) && rest.p &&
           str_to_i64(str_cut(&rest, ' '), &n))
        if (year >= c->year_from && year <= c->year_to) {
            sum += n;
            years--;
        }
    return years == 0 ? sum : -1;
}

/* Replies: the load, prices, whether there are any, papers without an abstract, the years of each
 * journal, the load once more. */
static int ask_for_price(struct task *t, struct redis *r, const struct catalog_choice *c,
                         bool *by_name, const struct redis_reply *const **replies)
{
    struct redis_batch b;
    redis_batch_init(&b, t, r);
    redis_batch_add(&b, key_catalog, STR("HGET"), key_catalog, STR("load"));
    hmget(&b, key_prices, c->journals, c->journal_count);
    redis_batch_add(&b, key_prices, STR("EXISTS"), key_prices);
    hmget(&b, key_bare, c->journals, c->journal_count);
    struct str argv[YEARS_BY_NAME_MAX + 2];
    size_t years = years_by_name(task_arena(t), c, argv + 2);
    argv[0] = years ? STR("HMGET") : STR("HGETALL");
    for (size_t i = 0; i < c->journal_count; i++) {
        argv[1] = key_year_numbers(task_arena(t), c->journals[i]);
        redis_batch_argv(&b, argv[1], years + 2, argv);
    }
    redis_batch_add(&b, key_catalog, STR("HGET"), key_catalog, STR("load"));
    *by_name = years > 0;
    return run(&b, replies);
}

/* The commands are no transaction: between two of them the catalog may be replaced. All are of one
 * load if the first says the same as the last. */
static int ask_at_once(struct task *t, struct redis *r, const struct catalog_choice *c,
                       bool *by_name, const struct redis_reply *const **replies, int64_t *load)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int err = ask_for_price(t, r, c, by_name, replies);
        if (err)
            return err;
        const struct redis_reply *first = (*replies)[0], *last = (*replies)[4 + c->journal_count];
        if (first->type == REDIS_NIL || last->type == REDIS_NIL || !(*replies)[2]->integer)
            return NOT_LOADED;
        if (!str_to_i64(first->str, load))
            return damaged(t, key_catalog);
        if (str_eq(first->str, last->str))
            return 0;
    }
    return NOT_LOADED;
}

static int redis_price(struct task *t, struct redis *r, const struct catalog_choice *c,
                       struct catalog_estimate *out, struct str *unknown)
{
    const struct redis_reply *const *replies;
    struct catalog_estimate e = {0};
    bool by_name;
    int err = ask_at_once(t, r, c, &by_name, &replies, &e.load);
    if (err)
        return err;
    e.rows = ARENA_ARRAY(task_arena(t), struct catalog_estimate_row, c->journal_count);
    for (size_t i = 0; !err && i < c->journal_count; i++) {
        struct catalog_estimate_row *row = &e.rows[i];
        const struct redis_reply *price = replies[1]->items[i];
        int years = 0;
        row->journal = c->journals[i];
        if (price->type == REDIS_NIL) {
            *unknown = row->journal;
            return ERR_NOT_FOUND;
        }
        err = read_price(t, row->journal, price->str, &row->price);
        if (!err)
            err = papers_of(t, c, by_name, replies[i + 4], &row->papers, &years);
        row->bare = bare_of(c, replies[3]->items[i], years);
        if (!err)
            err = catalog_add_up(t, &e, row);
    }
    if (!err)
        *out = e;
    return err;
}

/* --- Redis, or else MySQL --- */

static bool redis_is_trusted(const struct catalog *c)
{
    return !c->cache || cache_trusts_redis(c->cache);
}

/* Whether to fall back to MySQL. Not when the question is wrong or the caller is cancelled, and not
 * when Redis is overloaded: MySQL would be next. */
static bool ask_mysql(struct task *t, int err)
{
    if (err == ERR_PROTO || err == ERR_REFUSED)
        log_warn("catalog",
                 "%s; the catalog is read from MySQL, which is slower: run \"millrace db warm\"",
                 task_error(t));
    return err != 0 && err != ERR_CANCELED && err != ERR_NOT_FOUND && err != ERR_LIMIT &&
           err != ERR_BUSY;
}

int catalog_tags(struct task *t, const struct catalog *c, struct catalog_tag **out, size_t *count,
                 bool *degraded)
{
    int err = redis_is_trusted(c) ? redis_tags(t, c->redis, out, count) : ERR_UNAVAILABLE;
    bool without_redis = err < 0;
    if (ask_mysql(t, err))
        err = catalog_mysql_tags(t, c->sql, out, count);
    if (err)
        return err;
    *degraded = without_redis;
    qsort(*out, *count, sizeof **out, tag_order);
    return 0;
}

int catalog_journals(struct task *t, const struct catalog *c, const struct str *tags,
                     size_t tag_count, bool any, struct catalog_journal **out, size_t *count,
                     bool *degraded)
{
    check(tag_count <= CATALOG_TAGS_MAX);
    int err = redis_is_trusted(c) ? redis_journals(t, c->redis, tags, tag_count, any, out, count)
                                  : ERR_UNAVAILABLE;
    bool without_redis = err < 0;
    if (ask_mysql(t, err))
        err = catalog_mysql_journals(t, c->sql, tags, tag_count, any, out, count);
    if (err)
        return err;
    *degraded = without_redis;
    qsort(*out, *count, sizeof **out, journal_order);
    return 0;
}

int catalog_price(struct task *t, const struct catalog *c, const struct catalog_choice *choice,
                  struct catalog_estimate *out, struct str *unknown, bool *degraded)
{
    check(choice->journal_count > 0 && choice->journal_count <= CATALOG_JOURNALS_MAX);
    check(choice->year_from >= CATALOG_YEAR_MIN && choice->year_from <= choice->year_to &&
          choice->year_to <= CATALOG_YEAR_MAX);
    int err =
        redis_is_trusted(c) ? redis_price(t, c->redis, choice, out, unknown) : ERR_UNAVAILABLE;
    bool without_redis = err < 0;
    if (ask_mysql(t, err))
        err = catalog_mysql_price(t, c->sql, choice, out, unknown);
    if (!err)
        *degraded = without_redis;
    return err;
}
