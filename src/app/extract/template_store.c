#include "app/extract/template_store.h"

#include "app/extract/fields/template.h"
#include "base/err.h"
#include "engine/people/own_id.h"
#include "engine/store/cluster.h"
#include "wire/sql.h"

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define OWN        " id = ? AND uid = ? AND deleted IS NULL"

static int none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such template");
}

/* --- ready ones --- */

static size_t count_fields(struct arena *a, struct str fields)
{
    struct extract_template x;
    const char *complaint;
    int err = extract_template_parse(a, fields, &x, &complaint);
    check(!err); /* they are part of the program */
    return x.count;
}

static struct stored_template ready(struct arena *a, const struct extract_ready *r,
                                    struct str language)
{
    const struct extract_ready_text *x = str_eq(language, STR("zh")) ? &r->zh : &r->en;
    return (struct stored_template){.id = r->id,
                                    .name = x->name,
                                    .version = 1,
                                    .field_count = (int64_t)count_fields(a, x->fields),
                                    .ready = true,
                                    .fields = x->fields};
}

static int refuse_ready(struct task *t)
{
    return task_fail(t, ERR_CONFLICT,
                     "the template comes with the program and stays as it is: copy it, and change "
                     "the copy");
}

/* --- reading --- */

int template_store_list(struct task *t, struct sql_pool *sql, int64_t uid, struct str language,
                        struct stored_template **out, size_t *count)
{
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r,
                 "SELECT id, name, version, field_count, " MS(
                     "changed_at") " FROM extraction_template WHERE uid = ? AND deleted IS NULL"
                                   " ORDER BY changed_at DESC, id LIMIT ?",
                 sql_int(uid), sql_int(TEMPLATES_MAX));
    if (err)
        return err;
    size_t n = 0;
    struct stored_template *list =
        ARENA_ARRAY(task_arena(t), struct stored_template, r.count + extract_ready_count);
    for (size_t i = 0; i < extract_ready_count; i++) {
        list[n] = ready(task_arena(t), &extract_ready_table[i], language);
        list[n++].fields = STR_NULL;
    }
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        list[n++] = (struct stored_template){.id = row[0].s,
                                             .name = row[1].s,
                                             .version = row[2].i,
                                             .field_count = row[3].i,
                                             .changed_ms = row[4].i};
    }
    *out = list;
    *count = n;
    return 0;
}

static int get_own(struct task *t, struct sql_pool *sql, int64_t uid, struct str id,
                   int64_t version, struct stored_template *out)
{
    struct sql_rows r;
    struct extract_template x;
    const char *complaint;
    int err = sql_call(
        t, sql, &r,
        "SELECT v.name, v.version, v.fields, " MS(
            "v.changed_at") " FROM extraction_template x JOIN extraction_template_version v"
                            " ON v.template_id = x.id AND v.version = IF(? = 0, x.version, ?)"
                            " WHERE x.id = ? AND x.uid = ? AND x.deleted IS NULL",
        sql_int(version), sql_int(version), sql_text(id), sql_int(uid));
    if (err)
        return err;
    if (r.count == 0)
        return none(t);
    *out = (struct stored_template){.id = id,
                                    .name = r.cells[0].s,
                                    .version = r.cells[1].i,
                                    .fields = r.cells[2].s,
                                    .changed_ms = r.cells[3].i};
    if (extract_template_parse(task_arena(t), out->fields, &x, &complaint))
        return task_fail(t, ERR_INTERNAL, "template %.*s, version %lld: %s", STR_ARG(id),
                         (long long)out->version, complaint);
    out->field_count = (int64_t)x.count;
    return 0;
}

int template_store_get(struct task *t, struct sql_pool *sql, int64_t uid, struct str id,
                       int64_t version, struct str language, struct stored_template *out)
{
    const struct extract_ready *r = extract_ready(id);
    if (r && version <= 1) {
        *out = ready(task_arena(t), r, language);
        return 0;
    }
    return own_id_is(id, uid) ? get_own(t, sql, uid, id, version, out) : none(t);
}

/* --- changing --- */

struct change {
    int64_t uid;
    struct stored_template *x;
    int64_t version; /* the new one */
};

static int keep_version(struct task *t, struct sql *c, const struct change *ch)
{
    const struct stored_template *x = ch->x;
    int err = sql_on(t, c, NULL,
                     "INSERT INTO extraction_template_version (template_id, version, name, fields,"
                     " changed_at) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3))",
                     sql_text(x->id), sql_int(ch->version), sql_text(x->name), sql_text(x->fields));
    return err ? err
               : sql_on(t, c, NULL,
                        "DELETE FROM extraction_template_version WHERE template_id = ?"
                        " AND version <= ?",
                        sql_text(x->id), sql_int(ch->version - TEMPLATE_VERSIONS_KEPT));
}

/* The user's row is locked: two that add at the same time are counted one after the other. */
static int check_room(struct task *t, struct sql *c, int64_t uid)
{
    struct sql_rows r;
    int err = cluster_turn(t, c, CLUSTER_USER, uid);
    if (!err)
        err =
            sql_on(t, c, NULL, "SELECT uid FROM user_info WHERE uid = ? FOR UPDATE", sql_int(uid));
    if (!err)
        err = sql_on(t, c, &r,
                     "SELECT COUNT(*) FROM extraction_template WHERE uid = ? AND deleted IS NULL",
                     sql_int(uid));
    if (!err && r.cells[0].i >= TEMPLATES_MAX)
        err = task_fail(t, ERR_CONFLICT, "you have %d templates: delete some of them first",
                        TEMPLATES_MAX);
    return err;
}

static int add(struct task *t, struct sql *c, void *arg)
{
    const struct change *ch = arg;
    const struct stored_template *x = ch->x;
    int err = check_room(t, c, ch->uid);
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO extraction_template (id, uid, name, field_count, version,"
                     " created_at, changed_at)"
                     " VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                     sql_text(x->id), sql_int(ch->uid), sql_text(x->name), sql_int(x->field_count),
                     sql_int(ch->version));
    return err ? err : keep_version(t, c, ch);
}

int template_store_add(struct task *t, struct sql_pool *sql, int64_t uid, struct stored_template *x)
{
    struct change ch = {.uid = uid, .x = x, .version = 1};
    x->id = own_id_new(t, uid);
    int err = sql_tx(t, sql, add, &ch);
    if (!err)
        x->version = ch.version;
    return err;
}

static int change(struct task *t, struct sql *c, void *arg)
{
    struct change *ch = arg;
    const struct stored_template *x = ch->x;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT version FROM extraction_template WHERE" OWN " FOR UPDATE",
                     sql_text(x->id), sql_int(ch->uid));
    if (!err && r.count == 0)
        err = none(t);
    if (!err && r.cells[0].i != x->version)
        err =
            task_fail(t, ERR_CONFLICT, "the template was changed meanwhile: it is version %lld now",
                      (long long)r.cells[0].i);
    if (err)
        return err;
    ch->version = r.cells[0].i + 1;
    err = sql_on(t, c, NULL,
                 "UPDATE extraction_template SET name = ?, field_count = ?, version = ?,"
                 " changed_at = UTC_TIMESTAMP(3) WHERE id = ?",
                 sql_text(x->name), sql_int(x->field_count), sql_int(ch->version), sql_text(x->id));
    return err ? err : keep_version(t, c, ch);
}

int template_store_change(struct task *t, struct sql_pool *sql, int64_t uid,
                          struct stored_template *x)
{
    struct change ch = {.uid = uid, .x = x};
    if (extract_ready(x->id))
        return refuse_ready(t);
    if (!own_id_is(x->id, uid))
        return none(t);
    int err = sql_tx(t, sql, change, &ch);
    if (!err)
        x->version = ch.version;
    return err;
}

static int delete (struct task *t, struct sql *c, void *arg)
{
    const struct change *ch = arg;
    struct sql_rows r;
    int err =
        sql_on(t, c, &r, "UPDATE extraction_template SET deleted = UTC_TIMESTAMP(3) WHERE" OWN,
               sql_text(ch->x->id), sql_int(ch->uid));
    if (!err && r.affected == 0)
        err = none(t);
    return err ? err
               : sql_on(t, c, NULL, "DELETE FROM extraction_template_version WHERE template_id = ?",
                        sql_text(ch->x->id));
}

int template_store_delete(struct task *t, struct sql_pool *sql, int64_t uid, struct str id)
{
    struct stored_template x = {.id = id};
    struct change ch = {.uid = uid, .x = &x};
    if (extract_ready(id))
        return refuse_ready(t);
    return own_id_is(id, uid) ? sql_tx(t, sql, delete, &ch) : none(t);
}
