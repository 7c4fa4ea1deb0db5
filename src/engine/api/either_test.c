/* Routes that accept either kind of session. Sessions and admins are made up: what is defined below
 * is linked instead of the real ones. */
#include <stdio.h>

#include "base/log.h"
#include "engine/api/api.h"
#include "engine/api/api_fixture.h"
#include "engine/people/admin.h"
#include "engine/setup/address.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

/* "alice" is a user and "clerk" an admin, both of number 7; "ghost" was an admin. */
int session_get(struct task *t, struct cache *c, enum session_kind kind, struct str token,
                struct session *out)
{
    (void)c;
    if (str_eq(token, STR("broken")))
        return task_fail(t, ERR_UNAVAILABLE, "secret host");
    bool user = str_eq(token, STR("alice"));
    bool admin = str_eq(token, STR("clerk")) || str_eq(token, STR("ghost"));
    if (kind == SESSION_USER ? !user : !admin)
        return task_fail(t, ERR_UNAUTHENTICATED, "who?");
    *out = (struct session){.sid = token, .uid = 7, .username = token};
    if (str_eq(token, STR("ghost")))
        out->uid = 8;
    return 0;
}

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    (void)c;
    *out = (struct admin){.uid = uid};
    return uid == 8 ? task_fail(t, ERR_NOT_FOUND, "no such admin") : 0;
}

/* Whose call it is; what only admins may see, if that is asked for. */
static int either(struct task *t, struct api_call *c, struct json_writer *w)
{
    bool deep = false;
    (void)api_bool(c, "deep", &deep);
    int err = deep ? api_be_admin(t, c) : 0;
    jw_put_int(w, "uid", api_uid(c));
    jw_put_str(w, "who", c->session.username);
    return err;
}

static const struct api_field query[] = {{"deep", API_BOOL, .optional = true}, API_END};
static const struct api_field reply[] = {
    {"uid", API_INT, .about = "0: an admin's"}, {"who", API_TEXT, .about = "it is"}, API_END};
static const struct api_route routes[] = {
    {"GET", "/api/e", API_EITHER, either, "For both", query, NULL, reply, .status = 200},
    {"POST", "/api/e", API_EITHER, either, "For both", query, NULL, reply, .audit = "e.do"},
    {.method = NULL},
};
static const struct api_application applications[] = {{"e", routes}};

#define USER(token)   "Cookie: " API_COOKIE "=" token
#define ADMIN(token)  "Cookie: " API_ADMIN_COOKIE "=" token
#define BOTH(u, a)    USER(u) "; " API_ADMIN_COOKIE "=" a
#define BEARER(token) "Authorization: Bearer " token
#define CROSS         "\r\nSec-Fetch-Site: cross-site"
#define ALICE         "\"uid\":7,\"who\":\"alice\""
#define CLERK         "\"uid\":0,\"who\":\"clerk\"" /* an admin's number is no user's */

static const struct {
    const char *line, *headers;
    int status;
    const char *text; /* in the reply */
} calls[] = {
    {"GET /api/e", "X: y", 401, "please log in"},
    {"GET /api/e", USER("alice"), 200, ALICE},
    {"GET /api/e", BEARER("alice"), 200, ALICE},
    {"GET /api/e", ADMIN("clerk"), 200, CLERK},
    {"GET /api/e", BEARER("clerk"), 200, CLERK},
    {"GET /api/e", BEARER("ghost"), 401, "please log in"},
    {"GET /api/e", BEARER("broken"), 503, "unavailable"},
    {"GET /api/e", USER("clerk"), 401, "please log in"},
    {"GET /api/e", ADMIN("alice"), 401, "please log in"},
    {"GET /api/e", BOTH("alice", "clerk"), 200, ALICE},
    {"GET /api/e", BOTH("ended", "clerk"), 200, CLERK},
    {"GET /api/e", BOTH("broken", "clerk"), 503, "unavailable"},
    {"GET /api/e", BEARER("mr_e:read"), 200, "\"uid\":7"},
    {"GET /api/e", BEARER("mr_other"), 403, "token_scope"},
    {"GET /api/e?deep=1", ADMIN("clerk"), 200, CLERK},
    {"GET /api/e?deep=1", USER("alice"), 403, "only admins may do this"},
    {"GET /api/e?deep=1", BOTH("alice", "clerk"), 200, CLERK},
    {"GET /api/e?deep=1", BOTH("alice", "ghost"), 403, "only admins may do this"},
    {"GET /api/e?deep=1", BOTH("alice", "broken"), 503, "unavailable"},
    {"GET /api/e?deep=1", BEARER("alice") "\r\n" ADMIN("clerk"), 403, "only admins"},
    {"GET /api/e?deep=1", BEARER("mr_e") "\r\n" ADMIN("clerk"), 403, "only admins"},
    {"POST /api/e", ADMIN("clerk"), 200, CLERK},
    {"POST /api/e", ADMIN("clerk") CROSS, 403, "cross-site"},
    {"POST /api/e", USER("alice") CROSS, 403, "cross-site"},
};

static struct reply request(struct task *t, struct site *site, const char *line, const char *more)
{
    return ask(t, site,
               str_printf(task_arena(t), "%s HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", line, more));
}

static void test_calls(struct task *t, void *arg)
{
    (void)arg;
    struct site site;
    struct node node = {.config = NULL};
    struct arena arena;
    arena_init(&arena);
    node.proxies = address_list_new(&arena, "");
    struct api *api = api_new(&node, applications, 1);
    site_open(t, &site, (struct http_options){0}, NULL, 0, NULL);
    api_serve(api, site.server);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct reply r = request(t, &site, calls[i].line, calls[i].headers);
        ok(r.status == calls[i].status && reply_has(&r, calls[i].text) && !reply_has(&r, "secret"),
           "%s with %s: %d %.*s", calls[i].line, calls[i].headers, r.status, STR_ARG(r.body));
    }
    notes = 0;
    struct reply r = request(t, &site, "POST /api/e?deep=1", USER("alice"));
    ok(r.status == 403 && notes == 0, "a user's refusal is no admin's deed");
    r = request(t, &site, "POST /api/e?x=1", ADMIN("clerk"));
    ok(r.status == 400 && notes == 1 && strstr(noted, "e.do"), "an admin's is: %s", noted);
    site_close(t, &site);
    api_free(api);
    arena_release(&arena);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "either_test");
    tap_task(test_calls, NULL, false);
    return tap_done();
}
