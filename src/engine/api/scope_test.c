/* What API tokens may do: the grammar of scopes, and a server with made-up routes, one of which is
 * about parts. Sessions are made up: what is defined below is linked instead of the real ones. */
#include "engine/api/scope.h"

#include <stdio.h>

#include "base/log.h"
#include "engine/api/api_fixture.h"
#include "engine/api/api_private.h"
#include "engine/people/admin.h"
#include "engine/setup/address.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

int session_get(struct task *t, struct cache *c, enum session_kind kind, struct str token,
                struct session *out)
{
    (void)c;
    if (!str_eq(token, kind == SESSION_USER ? STR("alice") : STR("root")))
        return task_fail(t, ERR_UNAUTHENTICATED, "who?");
    *out = (struct session){.sid = token, .uid = 7, .username = token};
    return 0;
}

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    (void)t, (void)c;
    *out = (struct admin){.uid = uid};
    return 0;
}

/* --- the table --- */

static int nothing(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)c, (void)w;
    return 0;
}

/* One that learns from the body which part it is about. */
static int move(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return api_require_scope(
        t, c, STR_JOIN(task_arena(t), STR("pool:"), api_text(c, "to"), STR("/news")));
}

static const struct api_field move_body[] = {
    {"to", API_TEXT, .least = 1, .most = 64},
    API_END,
};
static const struct api_route screen_routes[] = {
    {"GET", "/api/queries", API_USER, nothing, "Look", .status = 200},
    {"POST", "/api/queries", API_USER, nothing, "Submit", .status = 200},
    {"GET", "/api/sessions", API_PERSON, nothing, "Sessions", .status = 200},
    {"DELETE", "/api/sessions", API_PERSON, nothing, "End them", .status = 200},
    {"POST", "/api/login", API_PUBLIC, nothing, "Log in", .status = 200},
    {"GET", "/api/look", API_EITHER, nothing, "Look closer", .status = 200},
    {.method = NULL},
};
static const struct api_route pool_routes[] = {
    {"POST", "/api/pools/:type/:group/pop", API_USER, nothing, "Pop", .scope = "pool:type/group"},
    {"GET", "/api/pools/:type/:group", API_USER, nothing, "Level", .scope = "pool:type/group"},
    {"GET", "/api/pools/:type", API_USER, nothing, "Groups", .scope = "pool:type"},
    {"POST", "/api/pools", API_USER, nothing, "New group", .status = 200},
    {"POST", "/api/pools/:type/:group/move", API_USER, move, "Move", .body = move_body,
     .scope = "pool:type/group"},
    {.method = NULL},
};
static const struct api_route admin_routes[] = {
    {"GET", "/api/admin/users", API_ADMIN, nothing, "Users", .status = 200},
    {"POST", "/api/admin/users", API_ADMIN, nothing, "Change", .audit = "user.x"},
    {.method = NULL},
};
static const struct api_application applications[] = {
    {"screen", screen_routes}, {"pool", pool_routes}, {"admin users", admin_routes}};
static const struct api_table table = {applications, 3};

/* --- the grammar --- */

static void test_allow(struct task *t, void *arg)
{
    (void)t, (void)arg;
    static const struct {
        const char *scopes, *need;
        bool get, post;
    } cases[] = {
        {"", "screen", false, false},
        {"read", "screen", true, false},
        {"read", "read", true, false},
        {"screen", "screen", true, true},
        {"screen:read", "screen", true, false},
        {"pool screen:read", "screen", true, false},
        {"scree", "screen", false, false},
        {"screens", "screen", false, false},
        {"screen", "screens", false, false},
        {"screen", "pool:titles/news", false, false},
        {"pool", "pool:titles/news", true, true},
        {"pool:read", "pool:titles/news", true, false},
        {"pool:titles", "pool:titles/news", true, true},
        {"pool:titles/news", "pool:titles/news", true, true},
        {"pool:titles/new", "pool:titles/news", false, false},
        {"pool:title", "pool:titles/news", false, false},
        {"pool:titles/news", "pool:titles", false, false},
        {"pool:titles/news", "pool:titles/newsletter", false, false},
        {"pool:titles", "pool", false, false},
        {"pool:read", "pool:read/news", true, false},
        {"pool", "pool:read/news", true, true},
        {"pool:", "pool:titles/news", false, false},
        {"pool:titles/", "pool:titles/news", false, false},
        {":read", "screen", false, false},
        {"screen pool:titles", "pool:titles/news", true, true},
        {"  screen", "screen", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str scopes = str_of(cases[i].scopes), need = str_of(cases[i].need);
        ok(api_scopes_allow(scopes, need, true) == cases[i].get &&
               api_scopes_allow(scopes, need, false) == cases[i].post,
           "\"%s\" for %s", cases[i].scopes, cases[i].need);
    }
}

static void test_problem(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        const char *scope, *why; /* NULL: fine; else how the text begins */
    } cases[] = {
        {"read", NULL},
        {"screen", NULL},
        {"screen:read", NULL},
        {"pool", NULL},
        {"pool:titles", NULL},
        {"pool:titles/news", NULL},
        {"pool:标题/新闻", NULL},
        {"pool:a.b-c_d", NULL},
        {"", "is no scope: there are \"read\" and the names of applications, also with"
             " \":read\" behind them: screen, pool"},
        {"scren", "is no scope; did you mean \"screen\"?"},
        {"Screen", "is no scope; did you mean \"screen\"?"},
        {"write", "is no scope"},
        {"*", "is no scope"},
        {"admin", "is no scope"},
        {"admin users", "is no scope"},
        {"read:screen", "is no scope"},
        {"screen:", "is no scope: there are \"screen\" and \"screen:read\""},
        {"screen:write", "is no scope: there are \"screen\" and \"screen:read\""},
        {"screen:read:read", "is no scope"},
        {"pool:", "is no scope: it must be like \"pool:type/group\""},
        {"pool:titles/", "is no scope: it must be like \"pool:type/group\""},
        {"pool:/news", "is no scope"},
        {"pool:a b", "is no scope"},
        {"pool:a,b", "is no scope"},
        {"pool:a\tb", "is no scope"},
        {"pool:\xff", "is no scope"},
        {"pool:titles/news/today", "has too many parts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = api_scope_problem(task_arena(t), &table, str_of(cases[i].scope));
        ok(cases[i].why ? why && str_starts(str_of(why), str_of(cases[i].why)) : !why, "\"%s\": %s",
           cases[i].scope, why ? why : "fine");
    }
    char longest[6 + API_SCOPE_NAME_CHARS_MAX + 1] = "pool:";
    memset(longest + 5, 'x', API_SCOPE_NAME_CHARS_MAX);
    ok(!api_scope_problem(task_arena(t), &table, str_of(longest)), "a name of 64 characters");
    longest[5 + API_SCOPE_NAME_CHARS_MAX] = 'x';
    ok(api_scope_problem(task_arena(t), &table, str_from(longest, 5 + 65)) != NULL, "not of 65");
    const struct str list[] = {STR("read"), STR("pool:a"), STR("read"), STR("pool:a"), STR("x")};
    is_str(api_scopes_join(task_arena(t), list, 5), STR("read pool:a x"), "each once");
    is_str(api_scopes_join(task_arena(t), list, 0), STR(""), "none");
}

/* --- over HTTP --- */

static struct reply request(struct task *t, struct site *site, const char *line,
                            const char *headers, const char *json)
{
    return ask(t, site,
               str_printf(task_arena(t),
                          "%s HTTP/1.1\r\nHost: h\r\n%s\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          line, headers, strlen(json), json));
}

static const struct {
    const char *line, *token;
    int status;
    const char *text; /* in the reply */
} calls[] = {
    {"GET /api/queries", "alice", 200, "true"},
    {"GET /api/queries", "mr_read", 200, "true"},
    {"GET /api/queries", "mr_screen:read", 200, "true"},
    {"GET /api/queries", "mr_pool:titles screen", 200, "true"},
    {"GET /api/queries", "mr_", 403, "it needs \\\"screen:read\\\""},
    {"GET /api/queries", "mr_pool", 403, "\"token_scope\""},
    {"GET /api/queries", "mr_gone", 401, "\"unauthenticated\""},
    {"POST /api/queries", "mr_screen", 200, "true"},
    {"POST /api/queries", "mr_read screen:read", 403, "it needs \\\"screen\\\""},
    {"POST /api/login", "mr_", 200, "true"},
    {"GET /api/look", "alice", 200, "true"},
    {"GET /api/look", "root", 200, "true"},
    {"GET /api/look", "mr_screen:read", 200, "true"},
    {"GET /api/look", "mr_pool", 403, "it needs \\\"screen:read\\\""},
    {"GET /api/sessions", "alice", 200, "true"},
    {"GET /api/sessions", "mr_read screen pool", 403, "no API token can do this"},
    {"DELETE /api/sessions", "mr_read screen pool", 403, "\"token_scope\""},
    {"DELETE /api/sessions", "mr_gone", 401, "\"unauthenticated\""},
    {"GET /api/admin/users", "root", 200, "true"},
    {"GET /api/admin/users", "mr_read admin users", 403, "\"token_scope\""},
    {"POST /api/admin/users", "mr_read admin users", 403, "\"token_scope\""},
    {"GET /api/admin/users", "mr_gone", 401, "\"unauthenticated\""},
    {"POST /api/pools/titles/news/pop", "mr_pool", 200, "true"},
    {"POST /api/pools/titles/news/pop", "mr_pool:titles", 200, "true"},
    {"POST /api/pools/titles/news/pop", "mr_pool:titles/news", 200, "true"},
    {"POST /api/pools/titles/news/pop", "mr_pool:titles/sport", 403,
     "it needs \\\"pool:titles/news\\\""},
    {"POST /api/pools/titles/news/pop", "mr_pool:contents", 403, "\"token_scope\""},
    {"POST /api/pools/titles/news/pop", "mr_read pool:read", 403, "\"token_scope\""},
    {"GET /api/pools/titles/news", "mr_pool:titles/news", 200, "true"},
    {"GET /api/pools/titles/news", "mr_pool:read", 200, "true"},
    {"GET /api/pools/titles", "mr_pool:titles/news", 403, "it needs \\\"pool:titles\\\""},
    {"GET /api/pools/titles", "mr_pool:titles", 200, "true"},
    {"POST /api/pools", "mr_pool:titles", 403, "it needs \\\"pool\\\""},
    {"POST /api/pools/%e6%a0%87%e9%a2%98/news/pop", "mr_pool:标题", 200, "true"},
    /* Parameters that would read like a part of another pool. */
    {"POST /api/pools/titles%2Fnews/x/pop", "mr_pool:titles", 403, "it needs \\\"pool\\\""},
    {"POST /api/pools/titles%2Fnews/x/pop", "mr_pool", 200, "true"},
    {"POST /api/pools/titles/news%20x/pop", "mr_pool:titles", 403, "\"token_scope\""},
    {"POST /api/pools/read/news/pop", "mr_pool:read", 403, "\"token_scope\""},
    {"POST /api/pools/read/news/pop", "mr_pool", 200, "true"},
};

static void test_calls(struct task *t, struct site *site)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *auth = arena_printf(task_arena(t), "Authorization: Bearer %s", calls[i].token);
        struct reply r = request(t, site, calls[i].line, auth, "");
        ok(r.status == calls[i].status && str_find(r.body, str_of(calls[i].text)) >= 0,
           "%s with %s: %d %.*s", calls[i].line, calls[i].token, r.status, STR_ARG(r.body));
    }
    is_int(notes, 0, "none of it is an admin's deed");
    struct reply r = request(t, site, "POST /api/pools/titles/news/move",
                             "Authorization: Bearer mr_pool:titles", "{\"to\":\"titles\"}");
    is_int(r.status, 200, "what the body names is in its scopes");
    r = request(t, site, "POST /api/pools/titles/news/move", "Authorization: Bearer mr_pool:titles",
                "{\"to\":\"contents\"}");
    ok(r.status == 403 && reply_has(&r, "it needs \\\"pool:contents/news\\\""), "or it is not");
    r = request(t, site, "POST /api/pools/titles/news/move", "Authorization: Bearer alice",
                "{\"to\":\"contents\"}");
    is_int(r.status, 200, "a session has no scopes");
}

static int head(struct task *t, struct site *site, const char *token)
{
    struct client c;
    client_open(t, site, &c);
    client_send(t, &c,
                str_printf(task_arena(t),
                           "HEAD /api/queries HTTP/1.1\r\nHost: h\r\n"
                           "Authorization: Bearer %s\r\n\r\n",
                           token));
    int status = client_reply_to_head(t, &c).status;
    client_close(&c);
    return status;
}

static void test_ways(struct task *t, struct site *site)
{
    is_int(head(t, site, "mr_read"), 200, "HEAD is a GET");
    is_int(head(t, site, "mr_pool"), 403, "in all respects");
    struct reply r = request(t, site, "POST /api/queries",
                             "Authorization: bearer mr_screen\r\nOrigin: https://elsewhere", "");
    is_int(r.status, 200, "another site may bring a token: no browser adds it by itself");
    r = request(t, site, "POST /api/queries",
                "Cookie: millrace_session=alice\r\nOrigin: https://elsewhere", "");
    is_int(r.status, 403, "but no cookie");
    r = request(t, site, "GET /api/queries", "Cookie: millrace_session=mr_read", "");
    is_int(r.status, 401, "a token is no cookie");
    r = request(t, site, "POST /api/queries",
                "Authorization: Bearer mr_read\r\nCookie: millrace_session=alice", "");
    is_int(r.status, 403, "a token is not helped by a cookie");
    r = request(t, site, "GET /api/queries", "Authorization: Basic mr_read", "");
    is_int(r.status, 401, "nor by another scheme");
    r = request(t, site, "GET /openapi.json", "X: y", "");
    ok(reply_has(&r, "{\"token\":[\"pool:{type}/{group}\"]},{\"token\":[\"pool:{type}\"]},"
                     "{\"token\":[\"pool\"]},{\"token\":[\"pool:read\"]},{\"token\":[\"read\"]}]"),
       "the document has the scopes of a GET");
    ok(reply_has(&r,
                 "\"summary\":\"Submit\",\"operationId\":\"post_queries\",\"tags\":[\"screen\"],"
                 "\"security\":[{\"cookie\":[]},{\"bearer\":[]},{\"token\":[\"screen\"]}]"),
       "of a POST");
    ok(reply_has(&r, "\"summary\":\"End them\",\"operationId\":\"delete_sessions\",\"tags\":"
                     "[\"screen\"],\"security\":[{\"cookie\":[]},{\"bearer\":[]}]"),
       "and none where no token helps");
    ok(reply_has(&r, "\"summary\":\"Look closer\",\"operationId\":\"get_look\",\"tags\":"
                     "[\"screen\"],\"security\":[{\"cookie\":[]},{\"admin_cookie\":[]},"
                     "{\"bearer\":[]},{\"token\":[\"screen\"]}"),
       "users, admins and tokens");
}

static void test_served(struct task *t, void *arg)
{
    (void)arg;
    struct site site;
    struct node node = {.config = NULL};
    struct arena arena;
    arena_init(&arena);
    node.proxies = address_list_new(&arena, "");
    struct api *api = api_new(&node, applications, 3);
    site_open(t, &site, (struct http_options){0}, NULL, 0, NULL);
    api_serve(api, site.server);
    test_calls(t, &site);
    test_ways(t, &site);
    site_close(t, &site);
    api_free(api);
    arena_release(&arena);
}

static void test_offered(struct task *t, void *arg)
{
    (void)arg;
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    api_put_scopes(&w, &table);
    is_str(jw_finish(&w, task_arena(t)),
           STR("{\"applications\":[{\"name\":\"screen\",\"reads\":true,\"writes\":true,"
               "\"parts\":null},{\"name\":\"pool\",\"reads\":true,\"writes\":true,"
               "\"parts\":\"type/group\"}]}"),
           "what tokens can reach");
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "scope_test");
    tap_task(test_allow, NULL, false);
    tap_task(test_problem, NULL, false);
    tap_task(test_served, NULL, false);
    tap_task(test_offered, NULL, false);
    return tap_done();
}
