#include "engine/money/statement.h"

/* Where a page begins: below these numbers. */
struct place {
    int64_t redis, mysql;
};

/* --- cursors: "<number of redis>.<number of mysql>" --- */

static bool read_cursor(struct str cursor, struct place *out)
{
    struct str rest = cursor;
    struct place p;
    if (cursor.n > 64 || !str_to_i64(str_cut(&rest, '.'), &p.redis) || !rest.p ||
        !str_to_i64(rest, &p.mysql) || p.redis < 0 || p.mysql < 0)
        return false;
    *out = p;
    return true;
}

/* --- rows of one counter --- */

#define COLUMNS                                                                                    \
    "b.number, b.kind, b.cents, CAST(UNIX_TIMESTAMP(b.at) * 1000 AS SIGNED), b.qid, b.doi, "       \
    "b.source"
#define BEHIND " AND b.number < ? ORDER BY b.number DESC LIMIT ?"

static const char *const all[] = {
    "SELECT " COLUMNS " FROM billing_log b WHERE b.uid = ? AND b.source = 'redis'" BEHIND,
    "SELECT " COLUMNS " FROM billing_log b WHERE b.uid = ? AND b.source = 'mysql'" BEHIND,
};
static const char *const of_run[] = {
    "SELECT " COLUMNS
    " FROM billing_log b WHERE b.qid = ? AND b.uid = ? AND b.source = 'redis'" BEHIND,
    "SELECT " COLUMNS
    " FROM billing_log b WHERE b.qid = ? AND b.uid = ? AND b.source = 'mysql'" BEHIND,
};
/* Few among millions of charges: found by the requests that made them. */
static const char deductions[] =
    "SELECT " COLUMNS " FROM ledger_request q JOIN billing_log b ON b.uid = q.uid"
    " AND b.source = 'redis' AND b.number = q.number"
    " WHERE q.uid = ? AND q.kind = 'deduction'"
    " AND q.number < ? ORDER BY q.number DESC LIMIT ?";
/* Those that paid for jobs, among a range of numbers. */
static const char jobs[] =
    "SELECT q.number, SUBSTRING_INDEX(q.request_id, ':', 1) FROM ledger_request q"
    " LEFT JOIN admin_audit a ON a.target_uid = q.uid AND a.action = 'user.deduct'"
    " AND a.request_id = q.request_id WHERE q.uid = ? AND q.kind = 'deduction'"
    " AND q.number BETWEEN ? AND ? AND q.request_id LIKE '_%:%' AND a.id IS NULL"
    " ORDER BY q.number DESC";

static int read_counter(struct task *t, struct sql_pool *sql, const struct statement_wish *w,
                        bool mysql, int64_t below, int64_t limit, struct sql_rows *out)
{
    if (w->qid.p)
        return sql_call(t, sql, out, of_run[mysql], sql_text(w->qid), sql_int(w->uid),
                        sql_int(below), sql_int(limit));
    return sql_call(t, sql, out, w->without_charges && !mysql ? deductions : all[mysql],
                    sql_int(w->uid), sql_int(below), sql_int(limit));
}

static struct str text_of(struct sql_value v)
{
    return v.type == SQL_NULL ? STR_NULL : v.s;
}

/* A run of another user gives the same ERR_NOT_FOUND as none: its existence is not disclosed. */
static int find_run(struct task *t, struct sql_pool *sql, const struct statement_wish *w)
{
    struct sql_rows rows;
    int err = sql_call(t, sql, &rows, "SELECT 1 FROM query_log WHERE query_id = ? AND uid = ?",
                       sql_text(w->qid), sql_int(w->uid));
    return !err && rows.count == 0 ? task_fail(t, ERR_NOT_FOUND, "you have no such run") : err;
}

/* --- a page --- */

/* What is left of each, and the later of their next two. */
static const struct sql_value *take(const struct sql_rows *redis, const struct sql_rows *mysql,
                                    size_t *i, size_t *k, struct place *at)
{
    const struct sql_value *a = *i < redis->count ? sql_row(redis, *i) : NULL;
    const struct sql_value *b = *k < mysql->count ? sql_row(mysql, *k) : NULL;
    if (a && (!b || a[3].i >= b[3].i)) {
        (*i)++;
        at->redis = a[0].i;
        return a;
    }
    if (b) {
        (*k)++;
        at->mysql = b[0].i;
    }
    return b;
}

/* What the deductions among the rows were for, in one query. */
static int name_jobs(struct task *t, struct sql_pool *sql, int64_t uid, struct statement_page *p)
{
    int64_t first = INT64_MAX, last = 0;
    struct sql_rows r;
    for (size_t i = 0; i < p->count; i++)
        if (str_eq(p->rows[i].kind, STR("deduction"))) {
            first = p->rows[i].number; /* newest first */
            last = last ? last : first;
        }
    if (last == 0)
        return 0;
    int err = sql_call(t, sql, &r, jobs, sql_int(uid), sql_int(first), sql_int(last));
    for (size_t i = 0, k = 0; !err && i < p->count && k < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, k);
        if (!str_eq(p->rows[i].kind, STR("deduction")) || p->rows[i].number != cell[0].i)
            continue;
        p->rows[i].job = cell[1].s;
        k++;
    }
    return err;
}

int statement_list(struct task *t, struct sql_pool *sql, const struct statement_wish *w,
                   struct str cursor, int64_t limit, struct statement_page *out)
{
    check(limit > 0 && limit <= STATEMENT_LIMIT_MAX);
    check(!w->qid.p || !w->without_charges);
    struct place at = {INT64_MAX, INT64_MAX};
    struct sql_rows redis, mysql;
    size_t i = 0, k = 0;
    *out = (struct statement_page){.count = 0};
    if (cursor.p && !read_cursor(cursor, &at))
        return task_fail(t, ERR_INVALID, "not a cursor that we gave");
    int err = w->qid.p ? find_run(t, sql, w) : 0;
    if (!err)
        err = read_counter(t, sql, w, false, at.redis, limit + 1, &redis);
    if (!err)
        err = read_counter(t, sql, w, true, at.mysql, limit + 1, &mysql);
    if (err)
        return err;
    out->rows = ARENA_ARRAY(task_arena(t), struct statement_row, (size_t)limit);
    while (out->count < (size_t)limit) {
        const struct sql_value *c = take(&redis, &mysql, &i, &k, &at);
        if (!c)
            break;
        out->rows[out->count++] = (struct statement_row){
            .source = c[6].s,
            .number = c[0].i,
            .at_ms = c[3].i,
            .cents = c[2].i,
            .kind = c[1].s,
            .qid = text_of(c[4]),
            .doi = text_of(c[5]),
        };
    }
    if (i < redis.count || k < mysql.count)
        out->next =
            str_printf(task_arena(t), "%lld.%lld", (long long)at.redis, (long long)at.mysql);
    return name_jobs(t, sql, w->uid, out);
}

bool statement_takes(const struct statement_row *r)
{
    return str_eq(r->kind, STR("charge")) || str_eq(r->kind, STR("deduction"));
}
