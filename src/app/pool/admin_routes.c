/* What admins see of pools, and put into them. */
#include "app/pool/import.h"
#include "app/pool/routes.h"

#define PIECE_BYTES_MAX (16 << 20)
#define IMPORT_MS       25000 /* of one piece: handlers have half a minute */

/* --- levels --- */

#define AT(member) API_AT(struct pool_level, member)
static const struct api_field level_fields[] = {
    {"type", API_TEXT, AT(type), .most = POOL_TYPE_NAME_CHARS, .about = "of the items"},
    {"group", API_INT, AT(group), .about = "number of the group"},
    {"usable", API_INT, AT(usable), .about = "in MySQL, in no list yet"},
    {"in_list", API_INT, AT(in_list), .about = "in the list, and handed out next"},
    {"handed_out", API_INT, AT(handed_out), .about = "but not marked as used yet"},
    {"used", API_INT, AT(used), .about = "handed out, and marked"},
    {"unseen", API_INT, AT(unseen), .about = "of those used: lost with Redis, at most"},
    {"per_hour", API_INT, AT(per_hour), .about = "handed out, at the present pace"},
    {"minutes_left", API_INT, AT(minutes), .optional = true, .most = INT64_MAX,
     .about = "until it runs out at this pace; null: it does not"},
    API_END,
};

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct pool_levels levels;
    int err = pools_count(t, c->node->pools, &levels);
    if (err)
        return err;
    c->degraded = c->degraded || levels.degraded;
    api_put_list(t, w, "pools", level_fields, levels.list, levels.count);
    api_put_time(w, "counted_at", levels.counted_ms);
    jw_put_int(w, "list_items", POOL_LIST_ITEMS);
    jw_put_int(w, "low_minutes", POOL_LOW_MINUTES);
    jw_put_array(w, "types");
    for (size_t i = 0; i < pool_type_count; i++)
        jw_str(w, str_of(pool_types[i].name));
    jw_end_array(w);
    return 0;
}

/* --- import --- */

static struct admin_deed deed_of(struct task *t, const struct api_call *c, struct pool_id id)
{
    struct admin_deed d = api_deed(c);
    d.target = str_printf(task_arena(t), "%s/%lld", id.type->name, (long long)id.group);
    return d;
}

static enum pool_format format_of(const struct api_call *c)
{
    return str_eq(api_text(c, "format"), STR("csv")) ? POOL_CSV : POOL_JSONL;
}

static const struct api_field problem_fields[] = {
    {"line", API_INT, API_AT(struct pool_problem, line), .about = "of the file"},
    {"message", API_TEXT, API_AT(struct pool_problem, message), .most = POOL_PROBLEM_CHARS,
     .about = "why its text was not taken"},
    API_END,
};

static int note_import(struct task *t, struct api_call *c, const struct pool_import *m)
{
    struct admin_deed d = deed_of(t, c, m->pool);
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_int(&w, "batch_id", m->batch);
    jw_put_int(&w, "imported", m->imported);
    jw_put_int(&w, "duplicates", m->in_file + m->in_group);
    jw_put_int(&w, "rejected", m->rejected);
    d.after = jw_finish(&w, task_arena(t));
    return admin_audit_note(t, c->node->sql, &d);
}

/* Where the piece is in its file, as the reply to the one before told. */
static int take_place(struct task *t, struct api_call *c, struct pool_import *m)
{
    int64_t column = -1, columns = 0;
    api_int(c, "batch_id", &m->batch);
    api_int(c, "line", &m->place.line);
    api_int(c, "column", &column);
    api_int(c, "columns", &columns);
    if (m->format == POOL_CSV && m->place.line && (columns == 0 || column < 0 || column >= columns))
        return api_refuse(t, c, "column", "a later piece of a CSV file needs column and columns");
    m->place.column = (size_t)(column < 0 ? 0 : column);
    m->place.columns = (size_t)columns;
    return 0;
}

static int import(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct pool_import *m = ARENA_NEW(task_arena(t), struct pool_import);
    struct str piece;
    bool last = true;
    m->format = format_of(c);
    api_bool(c, "last", &last);
    int err = pool_of_path(t, c, &m->pool);
    if (!err)
        err = take_place(t, c, m);
    if (!err)
        err = http_body(t, c->x, &piece);
    if (err)
        return err;
    task_deadline(t, IMPORT_MS);
    err = pool_import(t, c->node->sql, m, piece, last);
    if (err)
        return err;
    if (m->read == 0 && !last)
        return task_fail(t, ERR_INVALID, "no row ends in this piece: send a larger one");
    err = note_import(t, c, m);
    if (err)
        return err;
    jw_put_int(w, "batch_id", m->batch);
    jw_put_int(w, "imported", m->imported);
    jw_put_int(w, "duplicates_in_file", m->in_file);
    jw_put_int(w, "duplicates_in_group", m->in_group);
    jw_put_int(w, "rejected", m->rejected);
    jw_put_int(w, "read", (int64_t)m->read);
    jw_put_int(w, "line", m->place.line);
    jw_put_int(w, "column", (int64_t)m->place.column);
    jw_put_int(w, "columns", (int64_t)m->place.columns);
    api_put_list(t, w, "problems", problem_fields, m->problems, m->problem_count);
    return 0;
}

/* --- export --- */

static int write_piece(struct task *t, struct str piece, void *arg)
{
    struct api_call *c = arg;
    int err = 0;
    if (!c->replied) {
        c->replied = true;
        err = http_stream_begin(t, c->x, 200, c->route->media);
    }
    return err ? err : http_stream_write(t, c->x, piece);
}

static int export(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct pool_id id;
    enum pool_format format = format_of(c);
    bool used = !str_eq(api_text(c, "which"), STR("unused"));
    int err = pool_of_path(t, c, &id);
    if (err)
        return err;
    struct str name = str_printf(task_arena(t), "attachment; filename=\"%s-%lld-%s.%s\"",
                                 id.type->name, (long long)id.group, used ? "used" : "unused",
                                 format == POOL_CSV ? "csv" : "jsonl");
    http_set_header(c->x, "Content-Disposition", name);
    err = pool_export(t, c->node->sql, id, format, used, write_piece, c);
    if (!err)
        err = write_piece(t, STR(""), c);
    return err ? err : http_stream_end(t, c->x);
}

/* --- drop --- */

/* Noted before, because it takes several transactions. */
static int drop(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct pool_id id;
    int64_t dropped = 0;
    int err = pool_of_path(t, c, &id);
    if (err)
        return err;
    struct admin_deed d = deed_of(t, c, id);
    d.outcome = ADMIN_BEGUN;
    err = admin_audit_note(t, c->node->sql, &d);
    if (!err)
        err = pool_drop(t, c->node->pools, id, &dropped);
    d.outcome = err ? ADMIN_FAILED : ADMIN_DONE;
    d.error = err ? str_of(err_name(err)) : STR_NULL;
    d.after = str_printf(task_arena(t), "{\"dropped\":%lld}", (long long)dropped);
    int noted = admin_audit_note(t, c->node->sql, &d);
    if (err || noted)
        return err ? err : noted;
    jw_put_int(w, "dropped", dropped);
    return 0;
}

/* --- the tables --- */

#define FORMAT "format", API_TEXT, .choices = POOL_FORMATS, .about = "of the file"

static const struct api_field list_reply[] = {
    {"pools", API_OBJECTS, .about = "every group that has items", .fields = level_fields},
    {"counted_at", API_TIME, .about = "some seconds ago, where there are millions of items"},
    {"list_items", API_INT, .about = "what a full list has"},
    {"low_minutes", API_INT, .about = "a group that runs out within this is an alert"},
    {"types", API_TEXTS, .item_most = POOL_TYPE_NAME_CHARS, .about = "that there are"},
    API_END,
};
static const struct api_field import_query[] = {
    {FORMAT},
    {"batch_id", API_INT, .optional = true, .least = 1, .most = POOL_BATCH_MAX,
     .about = "the largest goes first; the next one of the group if absent"},
    {"last", API_BOOL, .optional = true, .about = "false: another piece of the file follows"},
    {"line", API_INT, .optional = true, .least = 1, .most = INT64_MAX,
     .about = "of a later piece: as the reply before told"},
    {"column", API_INT, .optional = true, .least = 0, .most = CSV_COLUMNS_MAX, .about = "likewise"},
    {"columns", API_INT, .optional = true, .least = 1, .most = CSV_COLUMNS_MAX,
     .about = "likewise"},
    API_END,
};
static const struct api_field import_reply[] = {
    {"batch_id", API_INT, .about = "of the items; to be sent with the next piece"},
    {"imported", API_INT, .about = "items of this piece that are new"},
    {"duplicates_in_file", API_INT, .about = "texts that this import had before; not stored again"},
    {"duplicates_in_group", API_INT, .about = "texts that the group had before it"},
    {"rejected", API_INT, .about = "rows that are no good"},
    {"read", API_INT, .about = "bytes of the piece; the next one begins behind them"},
    {"line", API_INT, .about = "to be sent with the next piece"},
    {"column", API_INT, .about = "likewise"},
    {"columns", API_INT, .about = "likewise"},
    {"problems", API_OBJECTS, .most = POOL_PROBLEMS_MAX, .about = "the first of the rejected rows",
     .fields = problem_fields},
    API_END,
};
static const struct api_field export_query[] = {
    {FORMAT},
    {"which", API_TEXT, .optional = true, .choices = "used|unused", .about = "used if absent"},
    API_END,
};
static const struct api_field drop_reply[] = {
    {"dropped", API_INT, .about = "items that were deleted"},
    API_END,
};

const struct api_route admin_pool_routes[] = {
    {"GET", "/api/admin/pools", API_ADMIN, list, "Levels and paces of all pools",
     .reply = list_reply},
    {"POST", "/api/admin/pools/:type/:group/import", API_ADMIN, import,
     "Put items into a pool: a file, or a piece of one", .query = import_query,
     .upload = "text/plain", .reply = import_reply, .body_bytes_max = PIECE_BYTES_MAX,
     .audit = "pool.import"},
    {"GET", "/api/admin/pools/:type/:group/export", API_ADMIN, export, "Items of a pool as a file",
     .query = export_query, .media = "text/plain"},
    {"POST", "/api/admin/pools/:type/:group/drop", API_ADMIN, drop,
     "Delete the items of a pool that are not used", .reply = drop_reply, .audit = "pool.drop"},
    {.method = NULL},
};
