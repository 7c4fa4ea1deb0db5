/* What an admin asks for and does not get is noted. Sessions, admins and the audit log are made up:
 * what is defined below is linked instead of the real ones. */
#include <stdio.h>

#include "base/log.h"
#include "engine/api/api.h"
#include "engine/api/api_fixture.h"
#include "engine/people/admin.h"
#include "engine/setup/address.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

int session_get(struct task *t, struct cache *c, enum session_kind kind, struct str token,
                struct session *out)
{
    (void)c;
    if (kind != SESSION_ADMIN || !str_eq(token, STR("clerk")))
        return task_fail(t, ERR_UNAUTHENTICATED, "who?");
    *out = (struct session){.sid = token, .uid = 2, .username = token};
    return 0;
}

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    (void)t, (void)c;
    *out = (struct admin){.uid = uid};
    return 0;
}

/* --- the table --- */

static int act(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct str how = api_text(c, "how");
    if (str_eq(how, STR("refuse")))
        return api_refuse(t, c, "how", "must not be \"%.*s\"", STR_ARG(how));
    return str_eq(how, STR("busy")) ? task_fail(t, ERR_BUSY, "secret queue") : 0;
}

static const struct api_field body[] = {
    {"amount", API_MONEY, .least = 1},
    {"request_id", API_TEXT, .least = 1, .most = 64},
    {"how", API_TEXT, .optional = true, .least = 1, .most = 9},
    {"password", API_TEXT, .optional = true, .least = 1, .most = 64, .secret = true},
    API_END,
};
static const struct api_route routes[] = {
    {"POST", "/api/admin/users/:uid/x/:id", API_ADMIN, act, "Act", .body = body, .audit = "user.x"},
    {"POST", "/api/admin/all", API_SUPER, act, "For others", .body = body, .audit = "all.x"},
    {"GET", "/api/admin/x", API_ADMIN, act, "Look", .status = 200},
    {.method = NULL},
};
static const struct api_application application = {"x", routes};

static struct reply request(struct task *t, struct site *site, const char *line, const char *token,
                            const char *json)
{
    struct client c;
    client_open(t, site, &c);
    client_send(t, &c,
                str_printf(task_arena(t),
                           "%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           line, token, strlen(json), json));
    struct reply r = client_reply(t, &c);
    client_close(&c);
    return r;
}

static const struct {
    const char *json;
    int status;
    const char *note; /* how it begins */
} cases[] = {
    {"{\"amount\":1e3,\"request_id\":\"r\",\"password\":\"hidden\"}", 400,
     "3 amount: must be an amount in quotes, like \"240.00\" r"
     " {\"amount\":1000.0,\"request_id\":\"r\"}"},
    {"{\"amount\":\"-5\",\"request_id\":\"r\"}", 400,
     "3 amount: must be an amount like \"240.00\" r {\"amount\":\"-5\",\"request_id\":\"r\"}"},
    {"{\"amount\":\"1\",\"request_id\":\"0123456789\",\"how\":\"refuse\"}", 400,
     "3 how: must not be \"refuse\" 01234567"
     " {\"amount\":\"1\",\"request_id\":\"01234567\",\"how\":\"refuse\"}"},
    {"{\"amount\":\"1\",\"request_id\":\"r\",\"how\":\"busy\"}", 503,
     "4 busy r {\"amount\":\"1\",\"request_id\":\"r\",\"how\":\"busy\"}"},
    {"{\"amount\":[1],\"request_id\":true,\"else\":5}", 400,
     "3 else: is not known here  {\"amount\":\"array\",\"request_id\":true}"},
    {"{", 400, "3 "},
};
#define CASES (sizeof cases / sizeof *cases)

static void test(struct task *t, void *arg)
{
    (void)arg;
    struct site site;
    struct node node = {.config = NULL};
    struct arena arena;
    arena_init(&arena);
    node.proxies = address_list_new(&arena, "");
    struct api *api = api_new(&node, &application, 1);
    site_open(t, &site, (struct http_options){0}, NULL, 0, NULL);
    api_serve(api, site.server);
    static const char line[] = "POST /api/admin/users/5/x/run1";
    for (size_t i = 0; i < CASES; i++) {
        struct reply r = request(t, &site, line, "clerk", cases[i].json);
        const char *want =
            arena_printf(task_arena(t), "2 unix user.x user 5 target run1 %s", cases[i].note);
        ok(str_starts(str_of(noted), str_of(want)), "noted: %s", noted);
        is_int(r.status, cases[i].status, "and answered");
        ok(str_find(r.body, STR("another text")) < 0, "as ever");
        is_int(notes, (int64_t)i + 1, "noted once");
    }
    is_int(request(t, &site, line, "nobody", "{}").status, 401, "nobody");
    is_int(request(t, &site, "POST /api/admin/all", "clerk", "{}").status, 403, "no super admin");
    ok(str_starts(str_of(noted),
                  STR("2 unix all.x user 0 target  3 only super admins may do this")),
       "noted: %s", noted);
    is_int(request(t, &site, "GET /api/admin/x?y=1", "clerk", "").status, 400, "only a look");
    is_int(request(t, &site, line, "clerk", "{\"amount\":\"1\",\"request_id\":\"r\"}").status, 200,
           "what is done is for its handler to note");
    is_int(notes, CASES + 1, "nothing else is noted here");
    site_close(t, &site);
    api_free(api);
    arena_release(&arena);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "api_audit_test");
    tap_task(test, NULL, false);
    return tap_done();
}
