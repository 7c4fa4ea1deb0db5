#include "engine/api/api.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine/api/api_private.h"
#include "engine/api/scope.h"
#include "engine/money/ledger.h"
#include "engine/people/admin.h"
#include "engine/people/api_token.h"
#include "engine/setup/address.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"
#include "wire/sql.h"

struct served {
    struct api *api;
    const struct api_route *route;
    const char *scope; /* the template of what a token needs for it */
    struct http_route http;
    bool secret; /* the reply carries a token or a key */
};

struct api {
    struct node *node;
    struct api_table table;
    size_t count;
    struct served *routes;
    struct buf openapi;
};

/* --- sessions --- */

/* p == NULL: there is none. */
static struct str bearer_token(const struct http_exchange *x)
{
    struct str rest = http_header(x, "authorization");
    struct str scheme = rest.p ? str_cut(&rest, ' ') : STR("");
    return rest.p && str_ieq(scheme, STR("Bearer")) ? str_trim(rest) : STR_NULL;
}

static bool is_read(const struct http_exchange *x)
{
    return str_eq(http_method(x), STR("GET")) || str_eq(http_method(x), STR("HEAD"));
}

/* "https://example.org:8080" is where "example.org:8080" is; "null" is nowhere. */
static bool origin_is_host(struct str origin, struct str host)
{
    ptrdiff_t at = str_find(origin, STR("://"));
    if (at < 0 || !host.p)
        return false;
    size_t start = (size_t)at + 3;
    return str_ieq(str_from(origin.p + start, origin.n - start), host);
}

/* A page of another site can make a browser send our cookie, but cannot forge where the page is
 * from. A client that sends neither header is no browser. */
static int refuse_cross_site(struct task *t, const struct http_exchange *x)
{
    struct str site = http_header(x, "sec-fetch-site"), origin = http_header(x, "origin");
    bool ours = site.p     ? str_eq(site, STR("same-origin")) || str_eq(site, STR("none"))
                : origin.p ? origin_is_host(origin, http_header(x, "host"))
                           : true;
    return ours ? 0 : task_fail(t, ERR_FORBIDDEN, "cross-site request");
}

/* Asked for every call: removing or demoting an admin is effective at once. */
static int require_admin_role(struct task *t, struct api_call *c)
{
    struct admin a;
    int err = admin_get(t, c->node->cache, c->session.uid, &a);
    if (err == ERR_NOT_FOUND)
        return task_fail(t, ERR_UNAUTHENTICATED, "please log in");
    if (err)
        return err;
    c->degraded = a.degraded;
    if (c->route->access == API_SUPER && !a.super)
        return task_fail(t, ERR_FORBIDDEN, "only super admins may do this");
    return 0;
}

/* The cookie and the tokens of the other world mean nothing here. token.p == NULL: the cookie. */
static int require_kind(struct task *t, struct api_call *c, struct str token, enum session_kind k)
{
    bool admin = k == SESSION_ADMIN;
    if (!token.p)
        token = http_cookie(c->x, admin ? API_ADMIN_COOKIE : API_COOKIE);
    if (!token.p)
        return task_fail(t, ERR_UNAUTHENTICATED, "please log in");
    int err = session_get(t, c->node->cache, k, token, &c->session);
    if (err == ERR_UNAUTHENTICATED)
        return task_fail(t, err, "please log in");
    if (err)
        return err;
    c->admin = admin;
    return admin ? require_admin_role(t, c) : 0;
}

static int require_session(struct task *t, struct api_call *c, struct str token)
{
    enum api_access access = c->route->access;
    int err = require_kind(t, c, token, access >= API_ADMIN ? SESSION_ADMIN : SESSION_USER);
    if (err == ERR_UNAUTHENTICATED && access == API_EITHER)
        err = require_kind(t, c, token, SESSION_ADMIN);
    return err;
}

int64_t api_uid(const struct api_call *c)
{
    return c->admin ? 0 : c->session.uid;
}

int api_be_admin(struct task *t, struct api_call *c)
{
    check(c->route->access == API_EITHER);
    if (c->admin)
        return 0;
    struct api_call tried = *c; /* a Bearer token that is a user's stands for no cookie */
    int err = bearer_token(c->x).p ? ERR_UNAUTHENTICATED
                                   : require_kind(t, &tried, STR_NULL, SESSION_ADMIN);
    if (err == ERR_UNAUTHENTICATED)
        return task_fail(t, ERR_FORBIDDEN, "only admins may do this");
    if (!err)
        *c = tried;
    return err;
}

int api_require_scope(struct task *t, const struct api_call *c, struct str scope)
{
    bool read = strcmp(c->route->method, "GET") == 0;
    if (!c->session.scopes.p || api_scopes_allow(c->session.scopes, scope, read))
        return 0;
    bool whole = !memchr(scope.p, ':', scope.n);
    return task_fail(t, ERR_SCOPE, "the API token has no scope for this: it needs \"%.*s%s\"",
                     STR_ARG(scope), whole && read ? ":read" : "");
}

/* A token that is not known, for any reason, is told so before what tokens cannot do. */
static int require_token(struct task *t, struct api_call *c, struct str token, const char *scope)
{
    struct session s;
    int err = api_token_get(t, c->node->tokens, token, c->address, &s);
    if (err)
        return err;
    if (c->route->access != API_USER && c->route->access != API_EITHER)
        return task_fail(t, ERR_SCOPE, "no API token can do this, whatever its scopes: log in");
    c->session = s;
    return api_require_scope(t, c, api_scope_need(task_arena(t), scope, c->x));
}

static int admit(struct task *t, struct api_call *c, const char *scope)
{
    struct str bearer = bearer_token(c->x);
    int err = bearer.p || is_read(c->x) ? 0 : refuse_cross_site(t, c->x);
    if (err || c->route->access == API_PUBLIC)
        return err;
    return api_token_is(bearer) ? require_token(t, c, bearer, scope)
                                : require_session(t, c, bearer);
}

/* --- what the call says --- */

int api_refuse(struct task *t, struct api_call *c, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(task_arena(t), fmt, ap);
    va_end(ap);
    c->wrong = arena_strdup(task_arena(t), field);
    return task_fail(t, ERR_INVALID, "%s: %s", field, message);
}

static int take_path(struct task *t, struct api_call *c)
{
    struct str rest = str_of(c->route->path);
    while (rest.p) {
        struct str segment = str_cut(&rest, '/');
        if (segment.n == 0 || segment.p[0] != ':')
            continue;
        const char *name = str_z(task_arena(t), str_from(segment.p + 1, segment.n - 1));
        const char *why = api_check_path(task_arena(t), http_param(c->x, name));
        if (why)
            return api_refuse(t, c, name, "%s", why);
    }
    return 0;
}

static int take_query(struct task *t, struct api_call *c)
{
    struct api_problem p;
    int err = api_check_query(task_arena(t), c->route->query, http_query_string(c->x), &c->query,
                              &c->query_count, &p);
    return err ? api_refuse(t, c, p.field, "%s", p.message) : 0;
}

/* "application/json", and with "charset=utf-8" if that is sent. */
static bool is_json(struct str type)
{
    struct str charset = type, media = type.p ? str_trim(str_cut(&charset, ';')) : STR("");
    if (!str_ieq(media, STR("application/json")))
        return false;
    charset = charset.p ? str_trim(charset) : STR("");
    return charset.n == 0 || str_ieq(charset, STR("charset=utf-8")) ||
           str_ieq(charset, STR("charset=\"utf-8\""));
}

static int take_body(struct task *t, struct api_call *c)
{
    struct str text;
    struct api_problem p;
    const struct json *body = NULL;
    int err = http_body(t, c->x, &text);
    if (err)
        return err;
    if (text.n > 0 && !is_json(http_header(c->x, "content-type")))
        return task_fail(t, ERR_INVALID, "the body must be of type application/json");
    if (text.n > 0)
        err = http_body_json(t, c->x, &body);
    if (err)
        return err;
    if (body && body->type != JSON_OBJECT)
        return task_fail(t, ERR_INVALID, "the body must be a JSON object");
    c->body = body;
    err = api_check_body(task_arena(t), c->route->body, body, &p);
    return err ? api_refuse(t, c, p.field, "%s", p.message) : 0;
}

static int take_input(struct task *t, struct api_call *c)
{
    int err = take_path(t, c);
    if (!err)
        err = take_query(t, c);
    return err || c->route->upload ? err : take_body(t, c);
}

/* --- the answer --- */

static int reply_refusal(struct task *t, struct api_call *c)
{
    struct json_writer w;
    http_json(c->x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", false);
    jw_put_object(&w, "error");
    jw_put_str(&w, "code", str_of(err_name(ERR_INVALID)));
    jw_put_str(&w, "message", str_of(task_error(t)));
    jw_put_str(&w, "field", str_of(c->wrong));
    jw_end_object(&w);
    jw_end_object(&w);
    return http_reply_json(t, c->x, http_status_of(ERR_INVALID));
}

static int answer(struct task *t, struct api_call *c)
{
    struct json_writer w;
    http_json(c->x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", true);
    int err = c->route->handler(t, c, &w);
    if (err || c->replied)
        return err;
    check(w.depth == 1 && !c->route->media);
    if (c->degraded || c->session.degraded)
        jw_put_bool(&w, "degraded", true);
    jw_end_object(&w);
    return http_reply_json(t, c->x, c->route->status ? c->route->status : 200);
}

static int serve(struct task *t, struct api_call *c)
{
    int err = take_input(t, c);
    if (!err)
        err = answer(t, c);
    if (err && c->session.sid.p && !c->replied)
        api_note_refusal(t, c, err);
    return err;
}

/* What an admin does is in the audit log, which is in MySQL (ADM-4): unlike a user's pause, it
 * cannot take effect before its row is there. */
static void excuse(struct http_exchange *x, const struct sql_pool *sql,
                   const struct api_route *route)
{
    if (sql_pool_read_only(sql))
        http_excuse(x, "the database is read-only at the moment: nothing can be changed until it "
                       "is writable again");
    else if (sql_pool_away(sql) && route->access >= API_ADMIN)
        http_excuse(x, "the database does not answer at the moment: what admins do must be in its "
                       "audit log, so nothing was changed; try again when it is back. Users can "
                       "pause and terminate their runs meanwhile");
    else if (sql_pool_away(sql))
        http_excuse(x, "the database does not answer at the moment: recent runs and results can be "
                       "seen, paused and terminated, all else has to wait until it is back");
}

static int handle(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct served *s = ctx;
    struct api_call c = {.node = s->api->node, .x = x, .route = s->route, .table = &s->api->table};
    http_set_header(x, "Cache-Control", STR("no-store"));
    if (!s->secret)
        http_allow_gzip(x);
    c.address = address_of_client(task_arena(t), c.node->proxies, http_peer(x),
                                  http_header_list(x, "x-forwarded-for"));
    int err = admit(t, &c, s->scope);
    if (err == ERR_FORBIDDEN && c.session.sid.p)
        api_note_refusal(t, &c, err); /* an admin without the role */
    if (!err)
        err = serve(t, &c);
    if (err == ERR_UNAVAILABLE && c.node->sql)
        excuse(x, c.node->sql, c.route);
    return err == ERR_INVALID && c.wrong && !c.replied ? reply_refusal(t, &c) : err;
}

void api_set_cookie(struct api_call *c, const char *name, const char *token, int64_t seconds)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s=%s; Path=/; Max-Age=%" PRId64 "; HttpOnly; SameSite=Lax%s", name, token,
               seconds, c->node->config->behind_tls ? "; Secure" : "");
    http_set_header(c->x, "Set-Cookie", buf_str(&b));
    buf_release(&b);
}

/* --- values --- */

static const struct json *member(const struct api_call *c, const char *name, enum api_type type)
{
    const struct api_field *f = api_field_find(c->route->body, str_of(name));
    if (!f)
        f = api_field_find(c->route->query, str_of(name));
    check(f && f->type == type);
    return json_get(c->body, name);
}

/* p == NULL: the query has none. */
static struct str parameter(const struct api_call *c, const char *name)
{
    for (size_t i = 0; i < c->query_count; i++)
        if (strcmp(c->query[i].field->name, name) == 0)
            return c->query[i].value;
    return STR_NULL;
}

struct str api_text(const struct api_call *c, const char *name)
{
    const struct json *j = member(c, name, API_TEXT);
    return j ? j->s : parameter(c, name);
}

bool api_int(const struct api_call *c, const char *name, int64_t *out)
{
    const struct json *j = member(c, name, API_INT);
    struct str word = parameter(c, name);
    return j ? json_int(j, out) : word.p && str_to_i64(word, out);
}

bool api_null(const struct api_call *c, const char *name)
{
    const struct api_field *f = api_field_find(c->route->body, str_of(name));
    check(f && f->nullable);
    const struct json *j = json_get(c->body, name);
    return j && j->type == JSON_NULL;
}

bool api_bool(const struct api_call *c, const char *name, bool *out)
{
    const struct json *j = member(c, name, API_BOOL);
    struct str word = parameter(c, name);
    return j ? json_bool(j, out) : word.p && api_check_bool(word, out);
}

bool api_money(const struct api_call *c, const char *name, int64_t *cents)
{
    const struct json *j = member(c, name, API_MONEY);
    struct str word = j ? j->s : parameter(c, name);
    return word.p && amount_cents(word, cents);
}

const struct json *api_values(const struct api_call *c, const char *name)
{
    return member(c, name, API_VALUES);
}

size_t api_texts(struct task *t, const struct api_call *c, const char *name, const struct str **out)
{
    const struct json *j = member(c, name, API_TEXTS);
    struct str *texts = ARENA_ARRAY(task_arena(t), struct str, j ? j->count : c->query_count);
    size_t n = 0;
    json_each (it, j)
        texts[n++] = it->s;
    for (size_t i = 0; i < c->query_count; i++)
        if (strcmp(c->query[i].field->name, name) == 0)
            texts[n++] = c->query[i].value;
    *out = texts;
    return n;
}

/* --- all routes --- */

static bool has_secret(const struct api_field *fields)
{
    for (const struct api_field *f = fields; f && f->name; f++)
        if (f->secret || has_secret(f->fields))
            return true;
    return false;
}

static struct http_route http_route_of(const struct api_route *r)
{
    bool get = strcmp(r->method, "GET") == 0;
    int64_t body_max = r->body_bytes_max ? r->body_bytes_max : API_BODY_BYTES_MAX;
    return (struct http_route){r->method, r->path, handle, get ? 0 : (size_t)body_max};
}

struct api *api_new(struct node *n, const struct api_application *applications, size_t count)
{
    struct api *a = check_memory(calloc(1, sizeof(*a)));
    a->node = n;
    a->table = (struct api_table){applications, count};
    for (size_t i = 0; i < count; i++)
        for (const struct api_route *r = applications[i].routes; r->method; r++)
            a->count += r->handler != NULL;
    a->routes = check_memory(calloc(a->count + 1, sizeof(*a->routes)));
    struct served *s = a->routes;
    for (size_t i = 0; i < count; i++)
        for (const struct api_route *r = applications[i].routes; r->method; r++) {
            api_check_route(r);
            api_check_scope(&applications[i], r);
            if (r->handler)
                *s++ = (struct served){a, r, r->scope ? r->scope : applications[i].name,
                                       http_route_of(r), r->secret || has_secret(r->reply)};
        }
    buf_init(&a->openapi);
    api_openapi(&a->openapi, &a->table);
    return a;
}

void api_free(struct api *a)
{
    if (!a)
        return;
    buf_release(&a->openapi);
    free(a->routes);
    free(a);
}

static int get_openapi(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct api *a = ctx;
    http_allow_gzip(x);
    return http_reply(t, x, 200, "application/json", buf_str(&a->openapi));
}

static const struct http_route openapi_route = {"GET", "/openapi.json", get_openapi, 0};

void api_serve(struct api *a, struct http_server *s)
{
    for (size_t i = 0; i < a->count; i++)
        http_server_add(s, &a->routes[i].http, 1, &a->routes[i]);
    http_server_add(s, &openapi_route, 1, a);
}
