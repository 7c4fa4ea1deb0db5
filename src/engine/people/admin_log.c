#include "engine/people/admin_log.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"
#include "engine/store/record.h"

#define LATE_MS    (3600LL * 1000) /* see limit_ids */
#define SPAN_FIRST 2000            /* numbers that are looked at first; see read_page */
#define SPAN_GROWS 30

static const char *const outcomes[] = {
    [ADMIN_DONE] = "done",       [ADMIN_BEGUN] = "begun",   [ADMIN_REPEATED] = "repeated",
    [ADMIN_REFUSED] = "refused", [ADMIN_FAILED] = "failed",
};

/* --- adding --- */

struct str admin_audit_cut(struct str s)
{
    size_t n = 0;
    for (int i = 0; i < ADMIN_AUDIT_TEXT_CHARS && n < s.n; i++) {
        size_t step = str_utf8_step(str_from(s.p + n, s.n - n));
        n += step ? step : 1;
    }
    return str_from(s.p, n);
}

static void put_text(struct json_writer *w, const char *name, struct str s)
{
    if (!s.p)
        return;
    jw_key(w, str_of(name));
    jw_str(w, admin_audit_cut(s));
}

static void put_object(struct json_writer *w, const char *name, struct str json)
{
    if (!json.p)
        return;
    jw_key(w, str_of(name));
    jw_raw(w, json);
}

static struct str details_of(struct task *t, const struct admin_deed *d)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_str(&w, "outcome", str_of(outcomes[d->outcome]));
    put_text(&w, "error", d->error);
    put_text(&w, "target", d->target);
    put_text(&w, "request_id", d->request_id);
    put_text(&w, "reason", d->reason);
    put_object(&w, "before", d->before);
    put_object(&w, "after", d->after);
    put_object(&w, "asked", d->asked);
    return jw_finish(&w, task_arena(t));
}

static const char insert[] =
    "INSERT INTO admin_audit (at, admin_uid, admin_name, action, target_uid, request_id, details,"
    " ip_address) VALUES (UTC_TIMESTAMP(3), ?, ?, ?, ?, ?, ?, ?)";
#define INSERTED 7

/* The column request_id, which is unique, is for rows of a transaction: what they tell has
 * happened. All others have it among the details only. */
static void values_of(struct task *t, const struct admin_deed *d, bool in_transaction,
                      struct sql_value v[INSERTED])
{
    check(d->action && d->admin_name.p && d->address.p);
    const struct sql_value values[INSERTED] = {
        sql_int(d->admin_uid),
        sql_text(d->admin_name),
        sql_text(str_of(d->action)),
        d->user_uid ? sql_int(d->user_uid) : sql_null(),
        sql_text(in_transaction ? d->request_id : STR_NULL),
        sql_text(details_of(t, d)),
        sql_text(d->address),
    };
    memcpy(v, values, sizeof values);
}

int admin_audit_add(struct task *t, struct sql *c, const struct admin_deed *d)
{
    struct sql_value v[INSERTED];
    values_of(t, d, true, v);
    return sql_on_argv(t, c, insert, INSERTED, v, NULL);
}

int admin_audit_note(struct task *t, struct sql_pool *p, const struct admin_deed *d)
{
    struct sql_value v[INSERTED];
    values_of(t, d, false, v);
    return sql_argv(t, p, insert, INSERTED, v, NULL);
}

/* --- reading --- */

#define TEXT_OF(name)   "JSON_UNQUOTE(JSON_EXTRACT(details, '$." name "'))"
#define OBJECT_OF(name) "JSON_EXTRACT(details, '$." name "')"
#define AT(member)      .at = offsetof(struct admin_row, member)

static const struct record_column columns[] = {
    {NULL, "id", RECORD_INT, AT(id)},
    {NULL, "CAST(UNIX_TIMESTAMP(at) * 1000 AS SIGNED)", RECORD_TIME, AT(at_ms)},
    {NULL, "admin_uid", RECORD_INT, AT(deed.admin_uid)},
    {NULL, "admin_name", RECORD_TEXT, AT(deed.admin_name)},
    {NULL, "ip_address", RECORD_TEXT, AT(deed.address)},
    {NULL, "action", RECORD_TEXT, AT(action)},
    {NULL, "target_uid", RECORD_INT, AT(deed.user_uid)},
    {NULL, "COALESCE(" TEXT_OF("outcome") ", 'done')", RECORD_TEXT, AT(outcome)},
    {NULL, TEXT_OF("error"), RECORD_TEXT, AT(deed.error)},
    {NULL, TEXT_OF("target"), RECORD_TEXT, AT(deed.target)},
    {NULL, TEXT_OF("request_id"), RECORD_TEXT, AT(deed.request_id)},
    {NULL, TEXT_OF("reason"), RECORD_TEXT, AT(deed.reason)},
    {NULL, OBJECT_OF("before"), RECORD_TEXT, AT(deed.before)},
    {NULL, OBJECT_OF("after"), RECORD_TEXT, AT(deed.after)},
    {NULL, OBJECT_OF("asked"), RECORD_TEXT, AT(deed.asked)},
    {.type = RECORD_END},
};
static const struct record_kind kind = {"admin_audit", columns, sizeof(struct admin_row)};

/* Conditions are left out, not made true: so the server sees which index to use. */
struct question {
    struct buf text;
    struct sql_value argv[24];
    size_t argc;
};

static void ask(struct question *q, const char *text, struct sql_value v)
{
    check(q->argc < sizeof q->argv / sizeof *q->argv);
    buf_add_str(&q->text, str_of(text));
    q->argv[q->argc++] = v;
}

/* Rows with a number between after and before. */
struct span {
    int64_t after, before;
};

/* As a column has it. Not FROM_UNIXTIME, which ends in 2038. */
static struct sql_value moment(struct task *t, int64_t ms)
{
    char iso[TIME_ISO_BYTES];
    time_iso(ms * 1000, iso);
    return sql_text(str_dup(task_arena(t), str_from(iso, sizeof iso - 2))); /* without its Z */
}

/* of_admin: the condition on the admin, with its value; NULL: none. */
static void ask_rows(struct task *t, struct question *q, const struct admin_filter *f,
                     struct span ids, int64_t limit, const char *of_admin, struct sql_value value)
{
    buf_add_lit(&q->text, "(");
    ask(q, record_select(task_arena(t), &kind, "WHERE id < ?"), sql_int(ids.before));
    ask(q, " AND id > ?", sql_int(ids.after));
    if (of_admin)
        ask(q, of_admin, value);
    if (f->action.p)
        ask(q, " AND action = ?", sql_text(f->action));
    if (f->user_uid)
        ask(q, " AND target_uid = ?", sql_int(f->user_uid));
    if (f->from_ms)
        ask(q, " AND at >= ?", moment(t, f->from_ms));
    if (f->to_ms)
        ask(q, " AND at < ?", moment(t, f->to_ms));
    ask(q, " ORDER BY id DESC LIMIT ?)", sql_int(limit));
}

/* A name of digits may also be a number: what is found is of both. */
static void ask_all(struct task *t, struct question *q, const struct admin_filter *f,
                    struct span ids, int64_t limit)
{
    int64_t uid;
    if (!f->admin.p) {
        ask_rows(t, q, f, ids, limit, NULL, sql_null());
        return;
    }
    ask_rows(t, q, f, ids, limit, " AND admin_name = ?", sql_text(f->admin));
    if (!str_to_i64(f->admin, &uid))
        return;
    buf_add_lit(&q->text, " UNION ");
    ask_rows(t, q, f, ids, limit, " AND admin_uid = ?", sql_int(uid));
    ask(q, " ORDER BY id DESC LIMIT ?", sql_int(limit));
}

static int find_id(struct task *t, struct sql_pool *p, const char *query, struct sql_value at,
                   int64_t *id)
{
    struct sql_rows r;
    int err = sql_argv(t, p, query, at.type == SQL_NULL ? 0 : 1, &at, &r);
    if (!err && r.count)
        *id = r.cells[0].i;
    return err;
}

/* Ids grow with the time, but for statements that had to wait and for a clock that was set: no row
 * is an hour late. So a time is also a limit of ids, and the rows of other times need not be
 * read. */
static int limit_ids(struct task *t, struct sql_pool *p, const struct admin_filter *f,
                     struct span *ids)
{
    int64_t newest = 0, later = INT64_MAX;
    *ids = (struct span){0, f->before_id};
    int err = f->before_id ? 0
                           : find_id(t, p, "SELECT id FROM admin_audit ORDER BY id DESC LIMIT 1",
                                     sql_null(), &newest);
    if (!f->before_id)
        ids->before = newest + 1;
    if (!err && f->from_ms)
        err = find_id(t, p,
                      "SELECT id FROM admin_audit WHERE at < ? ORDER BY at DESC, id DESC LIMIT 1",
                      moment(t, f->from_ms - LATE_MS), &ids->after);
    if (!err && f->to_ms)
        err = find_id(t, p, "SELECT id FROM admin_audit WHERE at > ? ORDER BY at, id LIMIT 1",
                      moment(t, f->to_ms + LATE_MS), &later);
    if (later < ids->before)
        ids->before = later;
    return err;
}

static int read_rows(struct task *t, struct sql_pool *p, const struct admin_filter *f,
                     struct span ids, int64_t limit, struct sql_rows *r)
{
    struct question q = {.argc = 0};
    buf_init(&q.text);
    ask_all(t, &q, f, ids, limit);
    int err = sql_argv(t, p, str_z(task_arena(t), buf_str(&q.text)), q.argc, q.argv, r);
    buf_release(&q.text);
    return err;
}

/* Asked for all rows, the server begins with the newest one of an admin, wherever the page begins,
 * and an export would read the whole table for each page. So it is asked for some ids, then for
 * many, then for all. */
static int read_page(struct task *t, struct sql_pool *p, const struct admin_filter *f,
                     int64_t limit, struct sql_rows *r)
{
    struct span ids;
    int err = limit_ids(t, p, f, &ids);
    for (int64_t span = SPAN_FIRST; !err; span *= SPAN_GROWS) {
        bool all = span >= ids.before - ids.after;
        struct span some = {all ? ids.after : ids.before - span, ids.before};
        err = read_rows(t, p, f, some, limit, r);
        if (err || all || (int64_t)r->count == limit)
            break;
    }
    return err;
}

int admin_audit_list(struct task *t, struct sql_pool *p, const struct admin_filter *f,
                     int64_t limit, struct admin_row **out, size_t *count)
{
    check(limit > 0 && limit <= ADMIN_AUDIT_PAGE_MAX);
    struct sql_rows r;
    int err = read_page(t, p, f, limit, &r);
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct admin_row, r.count);
    *count = r.count;
    for (size_t i = 0; i < r.count; i++)
        record_take(&kind, sql_row(&r, i), &(*out)[i]);
    return 0;
}
