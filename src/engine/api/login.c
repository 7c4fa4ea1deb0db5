#include "engine/api/login.h"

#include "base/sha256.h"
#include "engine/people/user.h"

#define NAME_ASKED_MAX 64 /* characters of a name that somebody tries */

static const struct {
    const char *realm, *cookie;
    int64_t ttl_ms;
} worlds[] = {
    [SESSION_USER] = {"user", API_COOKIE, SESSION_TTL_MS},
    [SESSION_ADMIN] = {"admin", API_ADMIN_COOKIE, SESSION_ADMIN_TTL_MS},
};

/* Whoever tries a name that cannot exist is counted under it all the same. */
static struct str attempted_name(struct task *t, struct str name)
{
    return user_name_problem(name) ? name : user_name_folded(task_arena(t), name);
}

static int take_attempt(struct task *t, struct api_call *c, struct attempts *a,
                        const struct attempt *who)
{
    int64_t retry_after_s;
    int err = attempts_take(t, a, who, &retry_after_s);
    if (err == ERR_RATE)
        http_set_header(c->x, "Retry-After", str_int(task_arena(t), retry_after_s));
    return err;
}

int api_attempt(struct task *t, struct api_call *c, enum session_kind kind, struct str name,
                struct attempt *who)
{
    *who = (struct attempt){worlds[kind].realm, attempted_name(t, name), c->address};
    return take_attempt(t, c, c->node->attempts, who);
}

int api_attempt_register(struct task *t, struct api_call *c, struct attempt *who)
{
    *who = (struct attempt){.realm = "registration", .address = c->address};
    return take_attempt(t, c, c->node->registrations, who);
}

int api_session_begin(struct task *t, struct api_call *c, struct api_visitor *v)
{
    struct str agent = http_header(c->x, "User-Agent");
    struct session_start s = {v->kind, v->uid, v->username, c->address, agent.p ? agent : STR("")};
    return session_begin(t, c->node->cache, &s, v->token);
}

void api_session_welcome(struct api_call *c, struct json_writer *w, const struct api_visitor *v)
{
    c->degraded = !cache_trusts_redis(c->node->cache);
    api_set_cookie(c, worlds[v->kind].cookie, v->token, worlds[v->kind].ttl_ms / 1000);
    jw_put_int(w, "uid", v->uid);
    jw_put_str(w, "username", v->username);
    jw_put_str(w, "token", str_of(v->token));
}

int api_session_turn_away(struct task *t, struct api_call *c, const struct api_visitor *v)
{
    char sid[SHA256_HEX_BYTES];
    sha256_hex(str_of(v->token), sid);
    int err = session_end(t, c->node->cache, v->kind, v->uid, str_of(sid));
    if (err && err != ERR_NOT_FOUND)
        return err;
    return task_fail(t, ERR_UNAUTHENTICATED, "wrong user name or password");
}

int api_session_leave(struct task *t, struct api_call *c, enum session_kind kind,
                      const struct admin_deed *by)
{
    int err = session_end_by(t, c->node->cache, kind, c->session.uid, c->session.sid, by);
    if (err && err != ERR_NOT_FOUND)
        return err;
    api_set_cookie(c, worlds[kind].cookie, "", 0);
    return 0;
}

int api_session_list(struct task *t, struct api_call *c, struct json_writer *w,
                     enum session_kind kind)
{
    struct session *all;
    size_t count;
    int err = session_list(t, c->node->cache, kind, c->session.uid, &all, &count);
    if (err)
        return err;
    c->degraded = !cache_trusts_redis(c->node->cache);
    jw_key(w, STR("sessions"));
    jw_array(w);
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        jw_put_str(w, "sid", all[i].sid);
        jw_put_bool(w, "current", str_eq(all[i].sid, c->session.sid));
        api_put_time(w, "login_time", all[i].login_ms);
        api_put_time(w, "last_activity", all[i].active_ms);
        jw_put_str(w, "ip_address", all[i].ip_address);
        jw_put_str(w, "user_agent", all[i].user_agent);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

/* --- the tables --- */

const struct api_field api_login_body[] = {
    {"username", API_TEXT, .least = 1, .most = NAME_ASKED_MAX, .about = "as registered"},
    {"password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX, .about = "the password",
     .secret = true},
    API_END,
};
const struct api_field api_login_reply[] = {
    {"uid", API_INT, .least = 1, .most = INT32_MAX, .about = "number of the account"},
    {"username", API_TEXT, .most = USER_NAME_CHARS_MAX, .about = "as registered"},
    {"token", API_TEXT, .most = SESSION_TOKEN_BYTES,
     .about = "of the session, for Authorization: Bearer; also set as a cookie"},
    API_END,
};
const struct api_field api_password_body[] = {
    {"old_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "the one that holds now", .secret = true},
    {"new_password", API_TEXT, .least = 1, .most = USER_PASSWORD_BYTES_MAX,
     .about = "8 to 72 bytes", .secret = true},
    API_END,
};
static const struct api_field session_fields[] = {
    {"sid", API_TEXT, .most = 64, .about = "names the session; it cannot be used to log in"},
    {"current", API_BOOL, .about = "the one that asks"},
    {"login_time", API_TIME, .about = "when it began"},
    {"last_activity", API_TIME, .about = "when it was last used, to the minute"},
    {"ip_address", API_TEXT, .most = SESSION_ADDRESS_BYTES_MAX, .about = "where it began"},
    {"user_agent", API_TEXT, .most = SESSION_AGENT_BYTES_MAX, .about = "with which program"},
    API_END,
};
const struct api_field api_sessions_reply[] = {
    {"sessions", API_OBJECTS, .about = "newest first", .fields = session_fields},
    API_END,
};
