/* The audit log: read, filtered, exported. It cannot be changed. */
#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "base/time.h"
#include "corpus/csv.h"

#define EXPORTED_AT_ONCE 200
#define ACTION_MAX       64

static int time_of(struct task *t, struct api_call *c, const char *name, int64_t *ms)
{
    struct str text = api_text(c, name);
    int64_t us;
    if (!text.p)
        return 0;
    if (!time_from_iso(text, &us))
        return api_refuse(t, c, name, "must be a time like 2026-01-31 or 2026-01-31T12:00:00Z");
    *ms = us / 1000;
    return 0;
}

static int filter_of(struct task *t, struct api_call *c, struct admin_filter *f)
{
    *f = (struct admin_filter){.admin = api_text(c, "admin"), .action = api_text(c, "action")};
    api_int(c, "user", &f->user_uid);
    int err = time_of(t, c, "from", &f->from_ms);
    return err ? err : time_of(t, c, "to", &f->to_ms);
}

/* --- reading --- */

/* Whatever any action changes or asks for. */
static const struct api_field state_fields[] = {
    {"balance", API_TEXT, .optional = true},
    {"permission", API_INT, .optional = true},
    {"banned", API_BOOL, .optional = true},
    {"password", API_TEXT, .optional = true},
    {"role", API_TEXT, .optional = true},
    {"state", API_TEXT, .optional = true},
    {"record", API_TEXT, .optional = true, .about = "of a charge, that could not be read"},
    {"on", API_BOOL, .optional = true},
    {"drained", API_BOOL, .optional = true},
    {"paused", API_BOOL, .optional = true, .about = "of a queue"},
    {"jobs", API_INT, .optional = true, .about = "failures that were retried, or dropped"},
    {"posts", API_INT, .optional = true, .about = "that are to be embedded again"},
    {"prompt", API_TEXT, .optional = true},
    {"active", API_BOOL, .optional = true},
    {"name", API_TEXT, .optional = true},
    {"scopes", API_TEXT, .optional = true, .about = "of an API token"},
    {"key", API_TEXT, .optional = true, .secret = true},
    {"service", API_TEXT, .optional = true},
    {"rpm_limit", API_INT, .optional = true},
    {"tpm_limit", API_INT, .optional = true},
    {"minute_cap", API_INT, .optional = true},
    {"day_cap", API_INT, .optional = true},
    {"month_cap", API_INT, .optional = true},
    {"batch_id", API_INT, .optional = true, .about = "of items of a pool; so are the next"},
    {"imported", API_INT, .optional = true},
    {"duplicates", API_INT, .optional = true},
    {"rejected", API_INT, .optional = true},
    {"dropped", API_INT, .optional = true},
    {"category", API_TEXT, .optional = true, .about = "of a prompt template; so are the next"},
    {"subcategory", API_TEXT, .optional = true},
    {"version", API_INT, .optional = true},
    {"is_default", API_BOOL, .optional = true},
    {"units", API_INT, .optional = true, .about = "of papers, that were queued; so is the next"},
    {"papers", API_INT, .optional = true},
    API_END,
};
#define AT(member) API_AT(struct admin_row, member)
static const struct api_field action_fields[] = {
    {"id", API_INT, AT(id), .least = 1, .most = INT64_MAX, .about = "grows"},
    {"at", API_TIME, AT(at_ms), .about = "when"},
    {"admin_uid", API_INT, AT(deed.admin_uid), .most = INT32_MAX,
     .about = "number of the admin; 0: at the command line"},
    {"admin", API_TEXT, AT(deed.admin_name), .most = 255, .about = "their name then"},
    {"ip_address", API_TEXT, AT(deed.address), .most = 45, .about = "from where"},
    {"action", API_TEXT, AT(action), .most = ACTION_MAX, .about = "what, like user.recharge"},
    {"user", API_INT, .optional = true, .most = INT32_MAX, .about = "to which user"},
    {"target", API_TEXT, AT(deed.target), .optional = true,
     .about = "or to what: an admin, a run, a key, a switch, an API token"},
    {"outcome", API_TEXT, AT(outcome), .choices = ADMIN_OUTCOMES,
     .about = "begun: another row tells the end; repeated: it had been done before"},
    {"error", API_TEXT, AT(deed.error), .optional = true, .about = "why not"},
    {"request_id", API_TEXT, AT(deed.request_id), .optional = true, .about = "as it was sent"},
    {"reason", API_TEXT, AT(deed.reason), .optional = true, .about = "as it was sent"},
    {"asked", API_TEXT, AT(deed.asked), .optional = true, .about = "what was sent, as JSON"},
    {"before", API_OBJECT, .optional = true, .about = "as it was", .fields = state_fields},
    {"after", API_OBJECT, .optional = true, .about = "as it is then", .fields = state_fields},
    API_END,
};

static void put_object(struct json_writer *w, const char *name, struct str json)
{
    jw_key(w, str_of(name));
    if (json.p)
        jw_raw(w, json);
    else
        jw_null(w);
}

static void put_row(struct task *t, struct json_writer *w, const struct admin_row *r)
{
    jw_object(w);
    api_put_fields(t, w, action_fields, r);
    api_put_known(w, "user", r->deed.user_uid != 0, r->deed.user_uid);
    put_object(w, "before", r->deed.before);
    put_object(w, "after", r->deed.after);
    jw_end_object(w);
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_filter f;
    struct admin_row *rows;
    size_t count;
    int64_t limit = admin_limit(c);
    int err = filter_of(t, c, &f);
    if (!err)
        err = admin_cursor(t, c, &f.before_id);
    if (!err)
        err = admin_audit_list(t, c->node->sql, &f, limit + 1, &rows, &count);
    if (err)
        return err;
    bool more = (int64_t)count > limit;
    jw_put_array(w, "actions");
    for (size_t i = 0; i < count && (int64_t)i < limit; i++)
        put_row(t, w, &rows[i]);
    jw_end_array(w);
    jw_put_str(w, "next", more ? str_int(task_arena(t), rows[limit - 1].id) : STR_NULL);
    return 0;
}

/* --- exporting --- */

static const char *const columns[] = {"id",     "at",     "admin_uid", "admin",      "ip_address",
                                      "action", "user",   "target",    "outcome",    "error",
                                      "asked",  "before", "after",     "request_id", "reason"};

static void add_row(struct csv_writer *w, const struct admin_row *r)
{
    const struct admin_deed *d = &r->deed;
    char at[TIME_ISO_BYTES];
    time_iso(r->at_ms * 1000, at);
    csv_add_int(w, r->id);
    csv_add(w, str_of(at));
    csv_add_int(w, d->admin_uid);
    csv_add(w, d->admin_name);
    csv_add(w, d->address);
    csv_add(w, r->action);
    if (d->user_uid)
        csv_add_int(w, d->user_uid);
    else
        csv_add(w, STR(""));
    const struct str rest[] = {d->target, r->outcome, d->error,      d->asked,
                               d->before, d->after,   d->request_id, d->reason};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        csv_add(w, rest[i]);
    csv_end_row(w);
}

/* Rows that are added meanwhile have higher numbers: they do not disturb. No connection to MySQL is
 * held while the client reads. */
static int send_page(struct task *t, struct api_call *c, struct admin_filter *f, struct buf *b,
                     bool *more)
{
    struct admin_row *rows;
    size_t count;
    struct csv_writer w = {.out = b};
    int err = admin_audit_list(t, c->node->sql, f, EXPORTED_AT_ONCE, &rows, &count);
    if (err)
        return err;
    for (size_t i = 0; i < count; i++)
        add_row(&w, &rows[i]);
    *more = count == EXPORTED_AT_ONCE;
    if (count)
        f->before_id = rows[count - 1].id;
    err = b->len ? http_stream_write(t, c->x, buf_str(b)) : 0;
    buf_clear(b);
    return err;
}

static int send_all(struct task *t, struct api_call *c, struct admin_filter *f, struct buf *b)
{
    struct csv_writer w = {.out = b};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        csv_add(&w, str_of(columns[i]));
    csv_end_row(&w);
    int err = 0;
    for (bool more = true; more && !err;) {
        struct task_scope s = task_scope(t);
        err = send_page(t, c, f, b, &more);
        task_scope_end(t, s);
    }
    return err ? err : http_stream_end(t, c->x);
}

static int export(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_filter f;
    struct buf b;
    int err = filter_of(t, c, &f);
    if (err)
        return err;
    c->replied = true;
    http_set_header(c->x, "Content-Disposition", STR("attachment; filename=\"audit.csv\""));
    err = http_stream_begin(t, c->x, 200, "text/csv; charset=utf-8");
    if (err)
        return err;
    buf_init(&b);
    err = send_all(t, c, &f, &b);
    buf_release(&b);
    return err;
}

/* --- the table --- */

#define FILTER                                                                                     \
    {"admin", API_TEXT, .optional = true, .least = 1, .most = 255, .about = "name or number"},     \
        {"action",   API_TEXT,           .optional = true,                                         \
         .least = 1, .most = ACTION_MAX, .about = "like user.recharge"},                           \
        {"user",     API_INT,           .optional = true,                                          \
         .least = 1, .most = INT32_MAX, .about = "number of the user it was done to"},             \
        {"from", API_TEXT, TIME, .about = "from this time on, like 2026-01-31T12:00:00Z"},         \
    {                                                                                              \
        "to", API_TEXT, TIME, .about = "before this time, likewise; 2026-01-31 is its beginning"   \
    }
#define TIME .optional = true, .least = 1, .most = TIME_ISO_BYTES - 1

static const struct api_field list_query[] = {
    FILTER, {ADMIN_LIMIT_FIELD}, {ADMIN_CURSOR_FIELD}, API_END};
static const struct api_field export_query[] = {FILTER, API_END};

static const struct api_field list_reply[] = {
    {"actions", API_OBJECTS, .about = "newest first", .fields = action_fields},
    {ADMIN_NEXT_FIELD},
    API_END,
};

const struct api_route admin_audit_routes[] = {
    {"GET", "/api/admin/audit", API_ADMIN, list, "What admins did", .query = list_query,
     .reply = list_reply},
    {"GET", "/api/admin/audit.csv", API_ADMIN, export, "The same for spreadsheets",
     .query = export_query, .media = "text/csv", .secret = true},
    {.method = NULL},
};
