/* Keys of the AI service: added, limited, switched on and off, tried, woken, deleted. The permits
 * of every node read the table twice a second. A key is never shown again once it is here. */
#include "engine/ai/permits.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "base/log.h"
#include "engine/ai/trial.h"
#include "engine/setup/config.h"
#include "engine/store/record.h"
#include "engine/store/cluster.h"

#define KEY_CHARS_MAX  512
#define KEY_CHARS_MIN  8
#define NAME_CHARS_MAX 255
#define RPM_DEFAULT    3000
#define TPM_DEFAULT    500000
#define LIMIT_MOST     INT32_MAX
#define TOKENS_MOST    1000000000000
#define LISTED_MAX     (10 * PERMITS_KEYS_MAX) /* also rows beyond those that are used */

static const char *const cap_names[PERMITS_CAPS] = {"minute_cap", "day_cap", "month_cap"};

struct ai_key {
    int64_t id;
    struct str key, name, service;
    int64_t rpm, tpm;
    bool active;
    int64_t caps[PERMITS_CAPS]; /* -1: none */
};

#define SHOWN(member) API_AT(struct ai_key, member)
static const struct api_field key_fields[] = {
    {"id", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the key"},
    {"key", API_TEXT, .most = KEY_CHARS_MAX, .secret = true, .about = "its ends"},
    {"name", API_TEXT, SHOWN(name), .most = NAME_CHARS_MAX, .about = "for people"},
    {"service", API_TEXT, SHOWN(service), .choices = AI_SERVICES, .about = "that the key is for"},
    {"rpm_limit", API_INT, SHOWN(rpm), .about = "requests in any 60 s"},
    {"tpm_limit", API_INT, SHOWN(tpm), .about = "tokens in any 60 s"},
    {"state", API_TEXT, .choices = PERMITS_WORDS, .about = ADMIN_KEY_STATE_ABOUT},
    {"rests_ms", API_INT, .about = "so much longer; 0: it does not rest"},
    {"last_error", API_TEXT, .optional = true, .about = "without secrets; null: none"},
    {"last_error_at", API_TIME, .optional = true, .about = "when"},
    {"active", API_BOOL, SHOWN(active),
     .about = "false: switched off, here or because the AI service refused it"},
    {"minute_cap", API_INT, SHOWN(caps[0]), .optional = true,
     .about = "calls in a minute; null: no cap"},
    {"day_cap", API_INT, SHOWN(caps[1]), .optional = true, .about = "calls in a day; null: no cap"},
    {"month_cap", API_INT, SHOWN(caps[2]), .optional = true,
     .about = "calls in a month; null: no cap"},
    API_END,
};

static void put_members(struct task *t, struct json_writer *w, const struct ai_key *k)
{
    jw_put_str(w, "key", str_of(log_secret(task_arena(t), k->key)));
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
    for (size_t i = 0; i < PERMITS_CAPS; i++)
        if (!api_int(c, cap_names[i], &k->caps[i]) && api_null(c, cap_names[i]))
            k->caps[i] = -1;
}

/* --- reading --- */

/* Members of an object for each key; as_list: of an array. While Redis is away only MySQL says what
 * state they are in. */
static int put_keys(struct task *t, struct api_call *c, struct json_writer *w,
                    const struct ai_key *keys, size_t count, bool as_list)
{
    struct permits_state *states = ARENA_ARRAY(task_arena(t), struct permits_state, count + 1);
    for (size_t i = 0; i < count; i++) {
        states[i] = (struct permits_state){.id = keys[i].id, .active = keys[i].active};
        memcpy(states[i].caps, keys[i].caps, sizeof states[i].caps);
    }
    int err = permits_look(t, c->node->redis, states, count);
    if (err && !err_may_pass(err))
        return err;
    c->degraded = c->degraded || err;
    for (size_t i = 0; i < count; i++) {
        if (as_list)
            jw_object(w);
        jw_put_int(w, "id", keys[i].id);
        put_members(t, w, &keys[i]);
        jw_put_str(w, "state", str_of(permits_word(&states[i])));
        jw_put_int(w, "rests_ms", states[i].rests_ms);
        jw_put_str(w, "last_error", states[i].error);
        api_put_time(w, "last_error_at", states[i].error_ms);
        if (as_list)
            jw_end_object(w);
    }
    return 0;
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct sql_rows r;
    int err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &kind, "ORDER BY api_index LIMIT ?"),
                       sql_int(LISTED_MAX));
    if (err)
        return err;
    struct ai_key *keys = ARENA_ARRAY(task_arena(t), struct ai_key, r.count + 1);
    for (size_t i = 0; i < r.count; i++)
        record_take(&kind, sql_row(&r, i), &keys[i]);
    jw_put_array(w, "keys");
    err = put_keys(t, c, w, keys, r.count, true);
    jw_end_array(w);
    return err;
}

/* The key of the path. */
static int find(struct task *t, struct api_call *c, struct ai_key *out)
{
    struct sql_rows r;
    int64_t id;
    int err = admin_path_number(t, c, "key", "key", &id);
    if (!err)
        err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &kind, "WHERE api_index = ?"), sql_int(id));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no key %lld", (long long)id);
    if (!err)
        record_take(&kind, r.cells, out);
    return err;
}

/* What is done with it, besides the row. */
static struct admin_deed deed_of(struct task *t, const struct api_call *c, const struct ai_key *k)
{
    struct admin_deed d = admin_deed_of(c);
    d.target = str_int(task_arena(t), k->id);
    return d;
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
    int err = cluster_turn(t, c, "keys", 0);
    if (!err)
        err = sql_on(t, c, &r, "SELECT api_index FROM api_list ORDER BY api_index FOR UPDATE");
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
    struct admin_deed d = deed_of(t, x->call, &x->key);
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

/* Of x->key.id, locked. */
static int lock_key(struct task *t, struct sql *c, struct writing *x, struct ai_key *out)
{
    struct sql_rows r;
    int err =
        sql_on(t, c, &r, record_select(task_arena(t), &kind, "WHERE api_index = ? FOR UPDATE"),
               sql_int(x->key.id));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no key %lld", (long long)x->key.id);
    if (!err)
        record_take(&kind, r.cells, out);
    return err;
}

static int update(struct task *t, struct sql *c, void *arg)
{
    struct writing *x = arg;
    struct ai_key before;
    int err = lock_key(t, c, x, &before);
    if (err)
        return err;
    x->key = before;
    take_values(x->call, &x->key);
    err = sql_on(t, c, NULL,
                 "UPDATE api_list SET api_name = ?, rpm_limit = ?, tpm_limit = ?, is_active = ?,"
                 " minute_cap = ?, day_cap = ?, month_cap = ? WHERE api_index = ?",
                 VALUES_OF(&x->key), sql_int(x->key.id));
    if (err)
        return err;
    struct admin_deed d = deed_of(t, x->call, &x->key);
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
    return put_keys(t, c, w, &x.key, 1, false);
}

/* --- deleting --- */

static int remove_row(struct task *t, struct sql *c, void *arg)
{
    struct writing *x = arg;
    struct ai_key before;
    int err = lock_key(t, c, x, &before);
    if (!err)
        err = sql_on(t, c, NULL, "DELETE FROM api_list WHERE api_index = ?", sql_int(x->key.id));
    if (err)
        return err;
    struct admin_deed d = deed_of(t, x->call, &before);
    d.before = json_of(t, &before);
    return admin_audit_add(t, c, &d);
}

static int remove_key(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct writing x = {.call = c};
    int err = admin_path_number(t, c, "key", "key", &x.key.id);
    if (!err)
        err = sql_tx(t, c->node->sql, remove_row, &x);
    if (!err)
        permits_forget_key(t, c->node->permits, x.key.id);
    return err;
}

/* --- waking and trying --- */

/* Those of its service; where there is none, any: Redis is told all the same. */
static struct permits *permits_of(const struct node *n, const struct ai_key *k)
{
    bool chat = str_eq(k->service, STR(AI_CHAT));
    return chat || !n->embedding_permits ? n->permits : n->embedding_permits;
}

static int try_key(struct task *t, const struct node *n, const struct ai_key *k,
                   struct ai_trial *out)
{
    if (str_eq(k->service, STR(AI_CHAT)))
        return ai_try_key(t, n->ai, AI_CHAT, k->key, n->config->ai_model, out);
    if (!n->embedding_ai)
        return task_fail(t, ERR_CONFLICT, "there is no embedding service: set ai.embedding.url");
    return ai_try_key(t, n->embedding_ai, AI_EMBEDDING, k->key, n->config->ai_embedding_model, out);
}

static int wake(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct ai_key k;
    int err = find(t, c, &k);
    if (!err)
        err = permits_wake_key(t, permits_of(c->node, &k), k.id);
    if (err)
        return err;
    struct admin_deed d = deed_of(t, c, &k);
    err = admin_audit_note(t, c->node->sql, &d);
    return err ? err : put_keys(t, c, w, &k, 1, false);
}

static int test_key(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct ai_key k;
    struct ai_trial trial;
    int err = find(t, c, &k);
    if (!err)
        err = try_key(t, c->node, &k, &trial);
    if (err)
        return err;
    struct admin_deed d = deed_of(t, c, &k);
    d.after = str_printf(task_arena(t), "{\"state\":\"%s\"}", trial.outcome);
    err = admin_audit_note(t, c->node->sql, &d);
    if (err)
        return err;
    jw_put_str(w, "key", str_of(log_secret(task_arena(t), k.key)));
    jw_put_str(w, "outcome", str_of(trial.outcome));
    jw_put_str(w, "words", trial.words);
    api_put_known(w, "status", trial.status > 0, trial.status);
    jw_put_int(w, "latency_ms", trial.latency_ms);
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
        {"minute_cap", API_INT, CAP, .about = "calls in a minute; null: no cap, as is -1"},        \
        {"day_cap", API_INT, CAP, .about = "calls in a day; null: no cap, as is -1"},              \
    {                                                                                              \
        "month_cap", API_INT, CAP, .about = "calls in a month; null: no cap, as is -1"             \
    }
#define CAP .optional = true, .nullable = true, .least = -1, .most = TOKENS_MOST

static const struct api_field add_body[] = {
    {"key", API_TEXT, .least = KEY_CHARS_MIN, .most = KEY_CHARS_MAX, .about = "visible ASCII",
     .secret = true},
    {"service", API_TEXT, .optional = true, .choices = AI_SERVICES,
     .about = "that the key is for; chat if absent"},
    LIMITS,
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field change_body[] = {LIMITS, {ADMIN_REASON_FIELD}, API_END};
static const struct api_field act_body[] = {{ADMIN_REASON_FIELD}, API_END};
static const struct api_field try_reply[] = {
    {"key", API_TEXT, .most = KEY_CHARS_MAX, .secret = true, .about = "its ends"},
    {"outcome", API_TEXT, .choices = AI_TRIAL_OUTCOMES,
     .about = "no_money: 402 or a used-up quota; limited: 429; failed: any other reply"},
    {"words", API_TEXT, .optional = true,
     .about = "what the service says, or why it cannot be reached; null: it works"},
    {"status", API_INT, .optional = true, .about = "of the reply; null: there was none"},
    {"latency_ms", API_INT, .about = "until then"},
    API_END,
};
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
    {"DELETE", "/api/admin/keys/:key", API_ADMIN, remove_key, "Delete a key", .body = act_body,
     .status = 200, .audit = "key.delete"},
    {"POST", "/api/admin/keys/:key/wake", API_ADMIN, wake, "Use a resting key again at once",
     .body = act_body, .reply = key_fields, .audit = "key.wake"},
    {"POST", "/api/admin/keys/:key/test", API_ADMIN, test_key,
     "Ask the AI service one tiny question with a key", .body = act_body, .reply = try_reply,
     .audit = "key.test"},
    {.method = NULL},
};
