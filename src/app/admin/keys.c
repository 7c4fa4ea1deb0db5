/* Keys of the AI service: added, limited, switched on and off. The permits of every node read the
 * table twice a second. A key is never shown again once it is here. */
#include "engine/ai/permits.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/store/record.h"

#define KEY_CHARS_MAX  512
#define KEY_CHARS_MIN  8
#define NAME_CHARS_MAX 255
#define RPM_DEFAULT    3000
#define TPM_DEFAULT    500000
#define LIMIT_MOST     INT32_MAX
#define TOKENS_MOST    1000000000000
#define CAPS           3
#define SERVICES       AI_CHAT "|" AI_EMBEDDING
#define LISTED_MAX     (10 * PERMITS_KEYS_MAX) /* also rows beyond those that are used */

static const char *const cap_names[CAPS] = {"minute_cap", "day_cap", "month_cap"};

struct ai_key {
    int64_t id;
    struct str key, name, service;
    int64_t rpm, tpm;
    bool active;
    int64_t caps[CAPS]; /* -1: none */
};

#define SHOWN(member) API_AT(struct ai_key, member)
static const struct api_field key_fields[] = {
    {"id", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the key"},
    {"key", API_TEXT, .most = KEY_CHARS_MAX, .about = "its ends"},
    {"name", API_TEXT, SHOWN(name), .most = NAME_CHARS_MAX, .about = "for people"},
    {"service", API_TEXT, SHOWN(service), .choices = SERVICES, .about = "that the key is for"},
    {"rpm_limit", API_INT, SHOWN(rpm), .about = "requests in any 60 s"},
    {"tpm_limit", API_INT, SHOWN(tpm), .about = "tokens in any 60 s"},
    {"active", API_BOOL, SHOWN(active),
     .about = "false: switched off, here or because the AI service refused it"},
    {"minute_cap", API_INT, SHOWN(caps[0]), .optional = true,
     .about = "calls in a minute; null: no cap"},
    {"day_cap", API_INT, SHOWN(caps[1]), .optional = true, .about = "calls in a day; null: no cap"},
    {"month_cap", API_INT, SHOWN(caps[2]), .optional = true,
     .about = "calls in a month; null: no cap"},
    API_END,
};

/* "sk-…9f3a"; of a short one that would be too much. */
static struct str shown(struct task *t, struct str key)
{
    if (key.n < 16)
        return STR("\xe2\x80\xa6");
    return str_printf(task_arena(t), "%.3s\xe2\x80\xa6%s", key.p,
                      str_z(task_arena(t), str_from(key.p + key.n - 4, 4)));
}

static void put_members(struct task *t, struct json_writer *w, const struct ai_key *k)
{
    jw_put_str(w, "key", shown(t, k->key));
    api_put_fields(t, w, key_fields, k);
}

static struct str json_of(struct task *t, const struct ai_key *k)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    put_members(t, &w, k);
    return jw_finish(&w, task_arena(t));
}

/* --- the table api_list --- */

#define AT(member) .at = offsetof(struct ai_key, member)
static const struct record_column columns[] = {
    {NULL, "api_index", RECORD_INT, AT(id)},
    {NULL, "api_key", RECORD_TEXT, AT(key)},
    {NULL, "COALESCE(api_name, '')", RECORD_TEXT, AT(name)},
    {NULL, "rpm_limit", RECORD_INT, AT(rpm)},
    {NULL, "tpm_limit", RECORD_INT, AT(tpm)},
    {NULL, "is_active", RECORD_FLAG, AT(active)},
    {NULL, "COALESCE(minute_cap, -1)", RECORD_INT, AT(caps[0])},
    {NULL, "COALESCE(day_cap, -1)", RECORD_INT, AT(caps[1])},
    {NULL, "COALESCE(month_cap, -1)", RECORD_INT, AT(caps[2])},
    {NULL, "service", RECORD_TEXT, AT(service)},
    {.type = RECORD_END},
};
static const struct record_kind kind = {"api_list", columns, sizeof(struct ai_key)};

static struct sql_value cap_value(int64_t cap)
{
    return cap < 0 ? sql_null() : sql_int(cap);
}

/* What can be changed, in the order of both statements. */
#define VALUES_OF(k)                                                                               \
    sql_text((k)->name), sql_int((k)->rpm), sql_int((k)->tpm), sql_int((k)->active),               \
        cap_value((k)->caps[0]), cap_value((k)->caps[1]), cap_value((k)->caps[2])

/* What the call says about it; the rest stays. */
static void take_values(struct api_call *c, struct ai_key *k)
{
    struct str name = api_text(c, "name");
    if (name.p)
        k->name = name;
    api_int(c, "rpm_limit", &k->rpm);
    api_int(c, "tpm_limit", &k->tpm);
    api_bool(c, "active", &k->active);
    for (size_t i = 0; i < CAPS; i++)
        api_int(c, cap_names[i], &k->caps[i]);
}

/* --- reading --- */

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct sql_rows r;
    int err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &kind, "ORDER BY api_index LIMIT ?"),
                       sql_int(LISTED_MAX));
    if (err)
        return err;
    jw_put_array(w, "keys");
    for (size_t i = 0; i < r.count; i++) {
        struct ai_key k;
        record_take(&kind, sql_row(&r, i), &k);
        jw_object(w);
        jw_put_int(w, "id", k.id);
        put_members(t, w, &k);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

/* --- adding --- */

struct writing {
    struct api_call *call;
    struct ai_key key; /* afterwards */
    bool full;
};

static int insert(struct task *t, struct sql *c, void *arg)
{
    struct writing *x = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT api_index FROM api_list ORDER BY api_index FOR UPDATE");
    if (err)
        return err;
    x->full = r.count >= PERMITS_KEYS_MAX;
    if (x->full)
        return ERR_FORBIDDEN; /* not ERR_CONFLICT, for which a transaction is tried again */
    err = sql_on(t, c, &r,
                 "INSERT INTO api_list (api_name, rpm_limit, tpm_limit, is_active, minute_cap,"
                 " day_cap, month_cap, api_key, service) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                 VALUES_OF(&x->key), sql_text(x->key.key), sql_text(x->key.service));
    if (err)
        return err;
    x->key.id = (int64_t)r.insert_id;
    struct admin_deed d = admin_deed_of(x->call);
    d.target = str_int(task_arena(t), x->key.id);
    d.after = json_of(t, &x->key);
    return admin_audit_add(t, c, &d);
}

/* It becomes part of a header. */
static bool is_visible(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return true;
}

static int add(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct writing x = {.call = c,
                        .key = {.key = api_text(c, "key"),
                                .name = STR(""),
                                .service = STR(AI_CHAT),
                                .rpm = RPM_DEFAULT,
                                .tpm = TPM_DEFAULT,
                                .active = true,
                                .caps = {-1, -1, -1}}};
    take_values(c, &x.key);
    if (api_text(c, "service").p)
        x.key.service = api_text(c, "service");
    if (!is_visible(x.key.key))
        return api_refuse(t, c, "key", "must have visible ASCII characters only");
    int err = sql_tx(t, c->node->sql, insert, &x);
    if (err == ERR_EXISTS)
        return task_fail(t, ERR_EXISTS, "this key is there already for the service %.*s",
                         STR_ARG(x.key.service));
    if (err == ERR_FORBIDDEN && x.full)
        return task_fail(t, ERR_CONFLICT, "there are %d keys already", PERMITS_KEYS_MAX);
    if (!err)
        jw_put_int(w, "id", x.key.id);
    return err;
}

/* --- changing --- */

static int update(struct task *t, struct sql *c, void *arg)
{
    struct writing *x = arg;
    struct sql_rows r;
    int err =
        sql_on(t, c, &r, record_select(task_arena(t), &kind, "WHERE api_index = ? FOR UPDATE"),
               sql_int(x->key.id));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no key %lld", (long long)x->key.id);
    struct ai_key before;
    record_take(&kind, r.cells, &before);
    x->key = before;
    take_values(x->call, &x->key);
    err = sql_on(t, c, NULL,
                 "UPDATE api_list SET api_name = ?, rpm_limit = ?, tpm_limit = ?, is_active = ?,"
                 " minute_cap = ?, day_cap = ?, month_cap = ? WHERE api_index = ?",
                 VALUES_OF(&x->key), sql_int(x->key.id));
    if (err)
        return err;
    struct admin_deed d = admin_deed_of(x->call);
    d.target = str_int(task_arena(t), x->key.id);
    d.before = json_of(t, &before);
    d.after = json_of(t, &x->key);
    return admin_audit_add(t, c, &d);
}

static int change(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct writing x = {.call = c};
    int err = admin_path_number(t, c, "key", "key", &x.key.id);
    if (!err)
        err = sql_tx(t, c->node->sql, update, &x);
    if (err)
        return err;
    bool decided;
    if (api_bool(c, "active", &decided))
        permits_forget_error(t, c->node->permits, x.key.id);
    jw_put_int(w, "id", x.key.id);
    put_members(t, w, &x.key);
    return 0;
}

/* --- the table --- */

#define LIMITS                                                                                     \
    {"name", API_TEXT, .optional = true, .most = NAME_CHARS_MAX, .about = "for people"},           \
        {"rpm_limit",        API_INT,                                                              \
         .optional = true,   .least = 1,                                                           \
         .most = LIMIT_MOST, .about = "requests in any 60 s; 3000 if never set"},                  \
        {"tpm_limit",         API_INT,                                                             \
         .optional = true,    .least = 1,                                                          \
         .most = TOKENS_MOST, .about = "tokens in any 60 s; 500000 if never set"},                 \
        {"active", API_BOOL, .optional = true, .about = "it is used; true if never set"},          \
        {"minute_cap", API_INT, CAP, .about = "calls in a minute; -1: no cap"},                    \
        {"day_cap", API_INT, CAP, .about = "calls in a day; -1: no cap"},                          \
    {                                                                                              \
        "month_cap", API_INT, CAP, .about = "calls in a month; -1: no cap"                         \
    }
#define CAP .optional = true, .least = -1, .most = TOKENS_MOST

static const struct api_field add_body[] = {
    {"key", API_TEXT, .least = KEY_CHARS_MIN, .most = KEY_CHARS_MAX, .about = "visible ASCII",
     .secret = true},
    {"service", API_TEXT, .optional = true, .choices = SERVICES,
     .about = "that the key is for; chat if absent"},
    LIMITS,
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field change_body[] = {LIMITS, {ADMIN_REASON_FIELD}, API_END};
static const struct api_field id_reply[] = {
    {"id", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the key"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"keys", API_OBJECTS, .about = "by number", .fields = key_fields},
    API_END,
};

const struct api_route admin_keys_routes[] = {
    {"GET", "/api/admin/keys", API_ADMIN, list, "Keys of the AI service", .reply = list_reply},
    {"POST", "/api/admin/keys", API_ADMIN, add, "Add a key", .body = add_body, .reply = id_reply,
     .status = 201, .audit = "key.add"},
    {"POST", "/api/admin/keys/:key", API_ADMIN, change, "Limit a key, or switch it on or off",
     .body = change_body, .reply = key_fields, .audit = "key.change"},
    {.method = NULL},
};
