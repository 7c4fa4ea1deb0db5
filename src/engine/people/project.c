#include "engine/people/project.h"

#include "engine/people/own_id.h"
#include "wire/sql.h"

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define COLUMNS    "SELECT id, name, " MS("created_at") ", " MS("changed_at") " FROM project"

static int take(struct task *t, const struct sql_rows *r, struct project *out)
{
    if (r->count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no such project");
    *out = (struct project){.id = r->cells[0].s,
                            .name = r->cells[1].s,
                            .created_ms = r->cells[2].i,
                            .changed_ms = r->cells[3].i};
    return 0;
}

static int find_first(struct task *t, struct sql_pool *sql, int64_t uid, struct sql_rows *out)
{
    return sql_call(t, sql, out, COLUMNS " WHERE uid = ? ORDER BY created_at, id LIMIT 1",
                    sql_int(uid));
}

/* Two requests may find none at the same time: the key (uid, name) lets one of them make it. */
static int first(struct task *t, struct sql_pool *sql, int64_t uid, struct project *out)
{
    struct sql_rows r;
    int err = find_first(t, sql, uid, &r);
    if (err || r.count)
        return err ? err : take(t, &r, out);
    err = sql_call(t, sql, NULL,
                   "INSERT IGNORE INTO project (id, uid, name, created_at, changed_at)"
                   " VALUES (?, ?, '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                   sql_text(own_id_new(t, uid)), sql_int(uid));
    if (!err)
        err = find_first(t, sql, uid, &r);
    return err ? err : take(t, &r, out);
}

int project_get(struct task *t, struct sql_pool *sql, int64_t uid, struct str id,
                struct project *out)
{
    struct sql_rows r = {0};
    if (!id.p)
        return first(t, sql, uid, out);
    int err = own_id_is(id, uid) ? sql_call(t, sql, &r, COLUMNS " WHERE id = ? AND uid = ?",
                                            sql_text(id), sql_int(uid))
                                 : 0;
    return err ? err : take(t, &r, out);
}
