/* The API as a client meets it: a server on a local socket, raw requests, and a table with one of
 * everything. Sessions and admins are made up: what is defined below is linked instead of the real
 * ones. */
#include <stdio.h>

#include "base/log.h"
#include "engine/api/api_fixture.h"
#include "engine/api/api_private.h"
#include "engine/money/ledger.h"
#include "engine/people/admin.h"
#include "engine/setup/address.h"
#include "engine/setup/config.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

/* "alice" and "slow" are users' tokens, "root" is a super admin's, "clerk" another one's; "ghost"
 * was removed. */
int session_get(struct task *t, struct cache *c, enum session_kind kind, struct str token,
                struct session *out)
{
    (void)c;
    if (str_eq(token, STR("broken")))
        return task_fail(t, ERR_UNAVAILABLE, "secret host");
    bool user = str_eq(token, STR("alice")) || str_eq(token, STR("slow"));
    int64_t admin = str_eq(token, STR("root"))    ? 1
                    : str_eq(token, STR("clerk")) ? 2
                    : str_eq(token, STR("ghost")) ? 3
                                                  : 0;
    if (kind == SESSION_USER ? !user : !admin)
        return task_fail(t, ERR_UNAUTHENTICATED, "whatever sessions say");
    *out = (struct session){.sid = token, .uid = admin ? admin : 7, .username = token};
    out->degraded = str_eq(token, STR("slow"));
    return 0;
}

int admin_get(struct task *t, struct cache *c, int64_t uid, struct admin *out)
{
    (void)c;
    if (uid != 1 && uid != 2)
        return task_fail(t, ERR_NOT_FOUND, "no such admin");
    *out = (struct admin){.uid = uid, .super = uid == 1};
    return 0;
}

/* --- handlers --- */

static void put_texts(struct task *t, struct api_call *c, struct json_writer *w, const char *name)
{
    const struct str *texts;
    size_t n = api_texts(t, c, name, &texts);
    jw_key(w, str_of(name));
    jw_array(w);
    for (size_t i = 0; i < n; i++)
        jw_str(w, texts[i]);
    jw_end_array(w);
}

/* What was understood. */
static void put_values(struct api_call *c, struct json_writer *w)
{
    int64_t v;
    bool yes;
    if (api_int(c, "count", &v))
        jw_put_int(w, "count", v);
    if (api_bool(c, "flag", &yes))
        jw_put_bool(w, "flag", yes);
    if (api_money(c, "amount", &v))
        jw_put_int(w, "cents", v);
    if (api_text(c, "kind").p)
        jw_put_str(w, "kind", api_text(c, "kind"));
}

static int make(struct task *t, struct api_call *c, struct json_writer *w)
{
    put_values(c, w);
    jw_put_str(w, "name", api_text(c, "name"));
    put_texts(t, c, w, "tags");
    return 0;
}

static int find(struct task *t, struct api_call *c, struct json_writer *w)
{
    put_values(c, w);
    put_texts(t, c, w, "tag");
    return 0;
}

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t;
    jw_put_str(w, "id", http_param(c->x, "id"));
    jw_put_str(w, "who", c->session.username);
    return 0;
}

static int where(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t;
    jw_put_str(w, "address", c->address);
    c->degraded = true;
    return 0;
}

static int nothing(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)c, (void)w;
    return 0;
}

static int fail(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str how = api_text(c, "how");
    jw_put_str(w, "partial", STR("output"));
    jw_key(w, STR("unfinished"));
    jw_array(w);
    if (str_eq(how, STR("refuse")))
        return api_refuse(t, c, "how", "must not be \"%.*s\"", STR_ARG(how));
    if (str_eq(how, STR("busy")))
        return task_fail(t, ERR_BUSY, "secret queue");
    return task_fail(t, ERR_INVALID, "just wrong");
}

static int events(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    c->replied = true;
    int err = sse_begin(t, c->x);
    return err ? err : sse_send(t, c->x, "state", STR("DONE"));
}

static int file(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    c->replied = true;
    return http_reply(t, c->x, 200, "text/csv", STR("a,b\n"));
}

static int cookies(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)w;
    api_set_cookie(c, API_COOKIE, "alice", 60);
    return 0;
}

/* --- the table --- */

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const struct api_field inner_fields[] = {
    {"x", API_INT, .least = INT64_MIN, .most = INT64_MAX},
    {"label", API_TEXT, true, .most = 5},
    END,
};
static const struct api_field make_body[] = {
    {"name", API_TEXT, .least = 3, .most = 5, .about = "what it is called"},
    {"count", API_INT, true, .least = -1, .most = 100},
    {"flag", API_BOOL, .optional = true},
    {"amount", API_MONEY, true, .least = 1, .most = 100000},
    {"kind", API_TEXT, true, .choices = "red|green"},
    {"tags", API_TEXTS, true, .least = 1, .most = 3, .item_most = 4},
    {"colours", API_TEXTS, true, .most = 2, .choices = "red|green"},
    {"years", API_COUNTS, true, .most = 10},
    {"values", API_VALUES, true, .most = 3, .item_most = 4},
    {"inner", API_OBJECT, true, .fields = inner_fields},
    {"rows", API_OBJECTS, true, .least = 1, .most = 2, .fields = inner_fields},
    {"pin", API_TEXT, true, .least = 4, .most = 4},
    {"note", API_TEXT, true, .most = 3},
    END,
};
static const struct api_field make_reply[] = {
    {"name", API_TEXT, .optional = true},
    {"tags", API_TEXTS, .optional = true},
    {"count", API_INT, .optional = true},
    END,
};
static const struct api_field find_query[] = {
    {"count", API_INT, true, .least = 1, .most = 100, .about = "at most so many"},
    {"flag", API_BOOL, .optional = true},
    {"amount", API_MONEY, .optional = true},
    {"kind", API_TEXT, true, .choices = "red|green"},
    {"tag", API_TEXTS, true, .least = 2, .most = 3, .item_most = 4},
    {"q", API_TEXT, .least = 1, .most = 3},
    END,
};
static const struct api_field show_reply[] = {
    {"id", API_TEXT, .most = API_PATH_PARAM_CHARS_MAX},
    {"who", API_TEXT, .optional = true},
    END,
};
static const struct api_field where_reply[] = {{"address", API_TEXT, .about = "of the client"},
                                               END};
static const struct api_field fail_body[] = {{"how", API_TEXT, .least = 1, .most = 9}, END};

static const struct api_route thing_routes[] = {
    {"POST", "/api/things", API_PUBLIC, make, "Make a thing", .body = make_body,
     .reply = make_reply, .status = 201},
    {"GET", "/api/things/:id", API_USER, show, "Show a thing", .reply = show_reply},
    {"GET", "/api/things", API_PUBLIC, find, "Find things", .query = find_query,
     .reply = make_reply},
    {"DELETE", "/api/things/:id", API_USER, show, "Remove a thing", .reply = show_reply},
    {"GET", "/api/events", API_PUBLIC, events, "What happens", .media = "text/event-stream"},
    {"GET", "/api/file", API_PUBLIC, file, "A file", .media = "text/csv"},
    {.method = NULL},
};
static const struct api_route other_routes[] = {
    {"POST", "/api/fail", API_PUBLIC, fail, "Fail", .body = fail_body, .body_bytes_max = 100},
    {"POST", "/api/nothing", API_PUBLIC, nothing, "Do nothing", .status = 200},
    {"POST", "/api/cookies", API_PUBLIC, cookies, "Get a cookie", .status = 200},
    {"GET", "/api/where", API_PUBLIC, where, "Where am I", .reply = where_reply},
    {"GET", "/api/admin/a", API_ADMIN, nothing, "For admins", .status = 200},
    {"POST", "/api/admin/a", API_SUPER, nothing, "For super admins", .status = 200,
     .audit = "a.do"},
    {.method = NULL},
};
static const struct api_application applications[] = {
    {"things", thing_routes},
    {"others", other_routes},
};

/* --- asking --- */

struct world {
    struct site site;
    struct node node;
    struct config config;
    struct arena arena;
    struct api *api;
};

static void world_open(struct task *t, struct world *w)
{
    *w = (struct world){0};
    arena_init(&w->arena);
    w->node.config = &w->config;
    w->node.proxies = address_list_new(&w->arena, "unix, 10.0.0.0/8");
    w->api = api_new(&w->node, applications, sizeof(applications) / sizeof(applications[0]));
    site_open(t, &w->site, (struct http_options){0}, NULL, 0, NULL);
    api_serve(w->api, w->site.server);
}

static void world_close(struct task *t, struct world *w)
{
    site_close(t, &w->site);
    api_free(w->api);
    arena_release(&w->arena);
}

/* line: "POST /api/things"; headers: "" or whole lines with their ends; body may be NULL. */
static struct reply request(struct task *t, struct world *w, const char *line, const char *headers,
                            struct str body)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s HTTP/1.1\r\nHost: here:80\r\n%s", line, headers);
    if (body.p)
        buf_printf(&b, "Content-Length: %zu\r\n", body.n);
    buf_add_lit(&b, "\r\n");
    if (body.p)
        buf_add_str(&b, body);
    struct reply r = ask(t, &w->site, buf_str(&b));
    buf_release(&b);
    return r;
}

#define JSON_TYPE "Content-Type: application/json\r\n"

static struct reply post(struct task *t, struct world *w, const char *path, const char *body)
{
    return request(t, w, arena_printf(task_arena(t), "POST %s", path), JSON_TYPE, str_of(body));
}

static struct reply get(struct task *t, struct world *w, const char *path)
{
    return request(t, w, arena_printf(task_arena(t), "GET %s", path), "", STR_NULL);
}

/* 400, with this field and this message. */
static void is_refused(const struct reply *r, const char *field, const char *message,
                       const char *what)
{
    char want[512];
    snprintf(want, sizeof(want),
             "{\"success\":false,\"error\":{\"code\":\"invalid\",\"message\":\"%s: %s\","
             "\"field\":\"%s\"}}",
             field, message, field);
    is_int(r->status, 400, "refused: %s", what);
    is_str(r->body, str_of(want), "and why");
}

/* --- bodies --- */

#define WITH(text) "{\"name\":\"abc\"," text "}"

static const struct {
    const char *body, *field, *message;
} bad_bodies[] = {
    {"{}", "name", "is missing"},
    {"", "name", "is missing"},
    {"{\"name\":\"ab\"}", "name", "must have 3 to 5 characters"},
    {"{\"name\":\"abcdef\"}", "name", "must have 3 to 5 characters"},
    {"{\"name\":\"\xc3\xa4\xe6\x9c\xac\"}", "name", "must have 3 to 5 characters"},
    {"{\"name\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
     "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"}",
     "name", "must have 3 to 5 characters"},
    {"{\"name\":\"a\\u0000c\"}", "name", "must not have NUL characters"},
    {"{\"name\":3}", "name", "must be a text"},
    {"{\"name\":null}", "name", "must be a text"},
    {"{\"name\":[\"abc\"]}", "name", "must be a text"},
    {"{\"nane\":\"abc\"}", "nane", "is not known here; did you mean \\\"name\\\"?"},
    {WITH("\"elephant\":1"), "elephant", "is not known here"},
    {WITH("\"\":1"), "", "is not known here"},
    {WITH("\"pin\":\"123\""), "pin", "must have 4 characters"},
    {WITH("\"note\":\"1234\""), "note", "must have at most 3 characters"},
    {WITH("\"count\":-2"), "count", "must be from -1 to 100"},
    {WITH("\"count\":101"), "count", "must be from -1 to 100"},
    {WITH("\"count\":1.0"), "count", "must be an integer"},
    {WITH("\"count\":\"1\""), "count", "must be an integer"},
    {WITH("\"count\":1e2"), "count", "must be an integer"},
    {WITH("\"count\":99999999999999999999"), "count", "must be an integer"},
    {WITH("\"flag\":1"), "flag", "must be true or false"},
    {WITH("\"flag\":null"), "flag", "must be true or false"},
    {WITH("\"amount\":1.5"), "amount", "must be an amount in quotes, like \\\"240.00\\\""},
    {WITH("\"amount\":\"1.555\""), "amount", "must be an amount like \\\"240.00\\\""},
    {WITH("\"amount\":\"-1\""), "amount", "must be an amount like \\\"240.00\\\""},
    {WITH("\"amount\":\"\""), "amount", "must be an amount like \\\"240.00\\\""},
    {WITH("\"amount\":\"0.00\""), "amount", "must be from 0.01 to 1000.00"},
    {WITH("\"amount\":\"1000.01\""), "amount", "must be from 0.01 to 1000.00"},
    {WITH("\"kind\":\"blue\""), "kind", "must be one of: red, green"},
    {WITH("\"kind\":\"red|green\""), "kind", "must be one of: red, green"},
    {WITH("\"kind\":\"\""), "kind", "must be one of: red, green"},
    {WITH("\"tags\":[]"), "tags", "must have 1 to 3 items"},
    {WITH("\"tags\":[\"a\",\"b\",\"c\",\"d\"]"), "tags", "must have 1 to 3 items"},
    {WITH("\"tags\":\"a\""), "tags", "must be an array of texts"},
    {WITH("\"tags\":{\"a\":\"b\"}"), "tags", "must be an array of texts"},
    {WITH("\"tags\":[\"a\",2]"), "tags[1]", "must be a text"},
    {WITH("\"tags\":[\"\"]"), "tags[0]", "must have 1 to 4 characters"},
    {WITH("\"tags\":[\"a\",\"b\",\"12345\"]"), "tags[2]", "must have 1 to 4 characters"},
    {WITH("\"tags\":[\"\\u0000\"]"), "tags[0]", "must not have NUL characters"},
    {WITH("\"colours\":[\"red\",\"blue\"]"), "colours[1]", "must be one of: red, green"},
    {WITH("\"years\":{\"2024\":11}"), "years.2024", "must be from 0 to 10"},
    {WITH("\"years\":{\"2024\":\"1\"}"), "years.2024", "must be an integer"},
    {WITH("\"years\":[1]"), "years", "must be an object of integers"},
    {WITH("\"values\":[1]"), "values", "must be an object"},
    {WITH("\"values\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4}"), "values", "must have at most 3 members"},
    {WITH("\"values\":{\"a\":\"abcde\"}"), "values.a", "must have at most 4 characters"},
    {WITH("\"values\":{\"a\":true}"), "values.a", "must be a text, a number or null"},
    {WITH("\"inner\":[]"), "inner", "must be an object"},
    {WITH("\"inner\":{}"), "inner.x", "is missing"},
    {WITH("\"inner\":{\"x\":1,\"y\":2}"), "inner.y", "is not known here; did you mean \\\"x\\\"?"},
    {WITH("\"inner\":{\"x\":1,\"label\":\"123456\"}"), "inner.label",
     "must have at most 5 characters"},
    {WITH("\"rows\":[]"), "rows", "must have 1 to 2 items"},
    {WITH("\"rows\":[{\"x\":1},{\"x\":1},{\"x\":1}]"), "rows", "must have 1 to 2 items"},
    {WITH("\"rows\":{}"), "rows", "must be an array of objects"},
    {WITH("\"rows\":[{\"x\":1},3]"), "rows[1]", "must be an object"},
    {WITH("\"rows\":[{\"x\":1},{\"x\":true}]"), "rows[1].x", "must be an integer"},
};

static void refused_bodies(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++) {
        struct reply r = post(t, &w, "/api/things", bad_bodies[i].body);
        is_refused(&r, bad_bodies[i].field, bad_bodies[i].message, bad_bodies[i].body);
    }
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "{\"");
    for (int i = 0; i < 100; i++)
        buf_add_lit(&b, "\xe6\x9c\xac");
    buf_add_lit(&b, "\":1}");
    struct reply r = request(t, &w, "POST /api/things", JSON_TYPE, buf_str(&b));
    ok(r.status == 400 && r.body.n < 600 && str_utf8_valid(r.body) &&
           !reply_has(&r, "\xef\xbf\xbd"),
       "a long unknown name is cut between characters");
    buf_release(&b);
    world_close(t, &w);
}

static void accepted_bodies(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    struct reply r = post(t, &w, "/api/things", "{\"name\":\"abc\"}");
    is_int(r.status, 201, "the status of the route");
    is_str(r.body, STR("{\"success\":true,\"name\":\"abc\",\"tags\":[]}"), "what is not there");
    is_str(reply_header(&r, "cache-control"), STR("no-store"), "not to be kept");
    r = post(t, &w, "/api/things",
             "{\"name\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xe6\x9c\xac\xc3\xa4\","
             "\"count\":100,\"flag\":true,\"amount\":\"1000\",\"kind\":\"green\",\"pin\":\"1234\","
             "\"tags\":[\"a\",\"a\",\"\xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac\"],"
             "\"years\":{\"2024\":10,\"x\":0},\"values\":{\"a\":\"abcd\",\"b\":1.5,\"c\":null},"
             "\"inner\":{\"x\":-9223372036854775808},"
             "\"rows\":[{\"x\":1,\"label\":\"\"},{\"x\":2}],\"colours\":[],\"note\":\"\"}");
    is_str(r.body,
           STR("{\"success\":true,\"count\":100,\"flag\":true,\"cents\":100000,\"kind\":\"green\","
               "\"name\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xe6\x9c\xac\xc3\xa4\","
               "\"tags\":[\"a\",\"a\",\"\xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac\xe6\x9c\xac\"]}"),
           "everything, at its limits");
    r = post(t, &w, "/api/things", WITH("\"count\":-1,\"flag\":false,\"amount\":\"0.01\""));
    ok(reply_has(&r, "\"count\":-1,\"flag\":false,\"cents\":1"), "at the lower ones");
    r = request(t, &w, "POST /api/nothing", "", STR_NULL);
    is_str(r.body, STR("{\"success\":true}"), "no body where none is wanted");
    r = post(t, &w, "/api/nothing", "{}");
    is_str(r.body, STR("{\"success\":true}"), "or an empty object");
    r = post(t, &w, "/api/nothing", "{\"a\":1}");
    is_refused(&r, "a", "is not known here", "anything else");
    world_close(t, &w);
}

/* Not wrong in one field, but as a whole. */
static void refused_forms(struct task *t, void *arg)
{
    static const struct {
        const char *type, *body, *message; /* NULL: it is fine */
    } cases[] = {
        {"application/json", "{\"name\":\"abc\"}", NULL},
        {"Application/JSON", "{\"name\":\"abc\"}", NULL},
        {"application/json; charset=utf-8", "{\"name\":\"abc\"}", NULL},
        {"application/json;charset=\"UTF-8\"", "{\"name\":\"abc\"}", NULL},
        {"application/json; charset=latin1", "{\"name\":\"abc\"}",
         "the body must be of type application/json"},
        {"application/jsonp", "{\"name\":\"abc\"}", "the body must be of type application/json"},
        {"text/plain", "{\"name\":\"abc\"}", "the body must be of type application/json"},
        {"", "{\"name\":\"abc\"}", "the body must be of type application/json"},
        {NULL, "{\"name\":\"abc\"}", "the body must be of type application/json"},
        {"application/json", "[]", "the body must be a JSON object"},
        {"application/json", "\"abc\"", "the body must be a JSON object"},
        {"application/json", "null", "the body must be a JSON object"},
        {"application/json", "{\"name\":\"abc\"", "the body is no JSON: line 1, column "},
        {"application/json", "{\"name\":\"abc\",\"name\":\"abd\"}",
         "the body is no JSON: line 1, column "},
        {"application/json", "{\"name\":\"a\xff\xff\"}", "the body is no JSON: line 1, column "},
    };
    (void)arg;
    struct world w;
    world_open(t, &w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *type = cases[i].type;
        const char *header = type ? arena_printf(task_arena(t), "Content-Type: %s\r\n", type) : "";
        struct reply r = request(t, &w, "POST /api/things", header, str_of(cases[i].body));
        const char *message = cases[i].message;
        is_int(r.status, message ? 400 : 201, "%s of type %s", cases[i].body, type ? type : "none");
        if (message)
            ok(reply_has(&r, message) && !reply_has(&r, "\"field\""), "%s", message);
    }
    struct reply r = post(t, &w, "/api/fail",
                          "{                                                  "
                          "                                                  }");
    is_int(r.status, 413, "larger than the route allows");
    r = request(t, &w, "GET /api/where", JSON_TYPE, STR("{}"));
    is_int(r.status, 200, "a body where none is read");
    world_close(t, &w);
}

/* --- queries and paths --- */

static const struct {
    const char *query, *field, *message;
} bad_queries[] = {
    {"", "q", "is missing"},
    {"?q=", "q", "must have 1 to 3 characters"},
    {"?q", "q", "must have 1 to 3 characters"},
    {"?q=abcd", "q", "must have 1 to 3 characters"},
    {"?q=a&q=b", "q", "is given twice"},
    {"?q=a&r=b", "r", "is not known here; did you mean \\\"q\\\"?"},
    {"?q=a&elephant", "elephant", "is not known here"},
    {"?q=a&count=0", "count", "must be from 1 to 100"},
    {"?q=a&count=101", "count", "must be from 1 to 100"},
    {"?q=a&count=1.0", "count", "must be an integer"},
    {"?q=a&count=", "count", "must be an integer"},
    {"?q=a&count=+1", "count", "must be an integer"},
    {"?q=a&count=5&count=5", "count", "is given twice"},
    {"?q=a&flag=yes", "flag", "must be 1 or 0"},
    {"?q=a&flag=", "flag", "must be 1 or 0"},
    {"?q=a&amount=1e3", "amount", "must be an amount like \\\"240.00\\\""},
    {"?q=a&kind=blue", "kind", "must be one of: red, green"},
    {"?q=a&tag=a", "tag", "must have 2 to 3 items"},
    {"?q=a&tag=a&tag=b&tag=c&tag=d", "tag", "must have 2 to 3 items"},
    {"?q=a&tag=a&tag=b&tag=c&tag=12345", "tag", "must have 2 to 3 items"}, /* looked at no more */
    {"?q=a&tag=a&tag=", "tag", "must have 1 to 4 characters"},
    {"?q=a&tag=a&tag=12345", "tag", "must have 1 to 4 characters"},
};

static void queries(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    struct arena *a = task_arena(t);
    for (size_t i = 0; i < sizeof(bad_queries) / sizeof(bad_queries[0]); i++) {
        const char *query = bad_queries[i].query;
        struct reply r = get(t, &w, arena_printf(a, "/api/things%s", query));
        is_refused(&r, bad_queries[i].field, bad_queries[i].message, query);
    }
    struct reply r = get(t, &w,
                         "/api/things?tag=a%20b&q=%E6%9C%AC%E6%9C%AC%E6%9C%AC&&count=100&"
                         "fl%61g=true&amount=2.5&kind=red&tag=c+d&");
    is_str(r.body,
           STR("{\"success\":true,\"count\":100,\"flag\":true,\"cents\":250,\"kind\":\"red\","
               "\"tag\":[\"a b\",\"c d\"]}"),
           "everything");
    r = get(t, &w, "/api/things?q=a&flag=0");
    is_str(r.body, STR("{\"success\":true,\"flag\":false,\"tag\":[]}"), "little");
    r = get(t, &w, "/api/where?x=1");
    is_refused(&r, "x", "is not known here", "a parameter where there is none");
    r = get(t, &w, "/api/where?");
    is_int(r.status, 200, "an empty query");
    r = get(t, &w, "/api/things?q=%00");
    is_int(r.status, 400, "NUL in a parameter");

    const char *alice = "Authorization: Bearer alice\r\n";
    struct buf line;
    buf_init(&line);
    buf_add_lit(&line, "GET /api/things/");
    for (int i = 0; i < API_PATH_PARAM_CHARS_MAX; i++)
        buf_add_lit(&line, "%C3%A4");
    r = request(t, &w, str_z(a, buf_str(&line)), alice, STR_NULL);
    is_int(r.status, 200, "the longest segment of a path");
    buf_add_lit(&line, "x");
    r = request(t, &w, str_z(a, buf_str(&line)), alice, STR_NULL);
    is_refused(&r, "id", "must have 1 to 128 characters", "a longer one");
    buf_release(&line);
    world_close(t, &w);
}

/* --- access --- */

#define COOKIE(token) "Cookie: " API_COOKIE "=" token "\r\n"
#define ADMIN(token)  "Cookie: " API_ADMIN_COOKIE "=" token "\r\n"
#define BEARER(token) "Authorization: Bearer " token "\r\n"
#define SITE(value)   "Sec-Fetch-Site: " value "\r\n"
#define ORIGIN(value) "Origin: " value "\r\n"

static const struct {
    const char *line, *headers;
    int status;
} callers[] = {
    {"GET /api/where", "", 200},
    {"GET /api/where", COOKIE("nobody"), 200}, /* the cookie is not read */
    {"GET /api/where", BEARER("broken"), 200},
    {"GET /api/things/1", "", 401},
    {"GET /api/things/1", COOKIE("alice"), 200},
    {"GET /api/things/1", BEARER("alice"), 200},
    {"GET /api/things/1", "authorization: bearer   alice\r\n", 200},
    {"GET /api/things/1", COOKIE("alicf"), 401},
    {"GET /api/things/1", COOKIE(""), 401},
    {"GET /api/things/1", BEARER("root"), 401},
    {"GET /api/things/1", ADMIN("root"), 401},
    {"GET /api/things/1", ADMIN("alice"), 401},
    {"GET /api/things/1", BEARER("alicf") COOKIE("alice"), 401}, /* the token was meant */
    {"GET /api/things/1", BEARER("alice") COOKIE("alicf"), 200},
    {"GET /api/things/1", "Authorization: Basic eA==\r\n" COOKIE("alice"), 200}, /* a proxy's */
    {"GET /api/things/1", "Authorization: Bearer\r\n", 401},
    {"GET /api/things/1", BEARER("broken"), 503},
    {"GET /api/admin/a", "", 401},
    {"GET /api/admin/a", COOKIE("alice"), 401},
    {"GET /api/admin/a", COOKIE("root"), 401},
    {"GET /api/admin/a", BEARER("alice"), 401},
    {"GET /api/admin/a", ADMIN("alice"), 401},
    {"GET /api/admin/a", ADMIN("root"), 200},
    {"GET /api/admin/a", BEARER("root"), 200},
    {"GET /api/admin/a", BEARER("clerk"), 200},
    {"GET /api/admin/a", BEARER("ghost"), 401},
    {"GET /api/admin/a", BEARER("root") COOKIE("alice"), 200},
    {"GET /api/admin/a", BEARER("alice") ADMIN("root"), 401}, /* the token was meant */
    {"POST /api/admin/a", ADMIN("root"), 200},
    {"POST /api/admin/a", ADMIN("clerk"), 403},
    {"POST /api/admin/a", ADMIN("ghost"), 401},
    {"POST /api/admin/a", COOKIE("alice"), 401},
    {"POST /api/admin/a", ADMIN("root") SITE("cross-site"), 403},
    {"GET /api/things/1", BEARER("clerk"), 401},

    /* Cross-site. */
    {"DELETE /api/things/1", COOKIE("alice"), 200},
    {"DELETE /api/things/1", COOKIE("alice") SITE("same-origin"), 200},
    {"DELETE /api/things/1", COOKIE("alice") SITE("none"), 200},
    {"DELETE /api/things/1", COOKIE("alice") SITE("same-site"), 403},
    {"DELETE /api/things/1", COOKIE("alice") SITE("cross-site"), 403},
    {"DELETE /api/things/1", COOKIE("alice") SITE(""), 403},
    {"DELETE /api/things/1", COOKIE("alice") SITE("cross-site") ORIGIN("http://here:80"), 403},
    {"DELETE /api/things/1", COOKIE("alice") SITE("same-origin") ORIGIN("null"), 200},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://here:80"), 200},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("https://HERE:80"), 200},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://here"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://here:81"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://there:80"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://evil.here:80"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("http://here:80.evil"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("null"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN("here:80"), 403},
    {"DELETE /api/things/1", COOKIE("alice") ORIGIN(""), 403},
    {"DELETE /api/things/1", BEARER("alice") SITE("cross-site"), 200},
    {"DELETE /api/things/1", BEARER("alice") ORIGIN("http://there"), 200},
    {"DELETE /api/things/1", "Authorization: Basic eA==\r\n" COOKIE("alice") SITE("cross-site"),
     403},
    {"DELETE /api/things/1", SITE("cross-site"), 403}, /* before the session is asked for */
    {"POST /api/nothing", SITE("cross-site"), 403},    /* logging in is a write */
    {"POST /api/nothing", ORIGIN("http://there"), 403},
    {"POST /api/nothing", SITE("same-origin"), 200},
    {"GET /api/things/1", COOKIE("alice") SITE("cross-site"), 200}, /* a link that was clicked */
    {"GET /api/things/1", COOKIE("alice") ORIGIN("http://there"), 200},
};

static void access_rules(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        struct reply r = request(t, &w, callers[i].line, callers[i].headers, STR_NULL);
        const char *headers = arena_strdup(task_arena(t), callers[i].headers);
        is_int(r.status, callers[i].status, "%s %.*s", callers[i].line,
               (int)strcspn(headers, "\r\n"), headers);
        if (r.status == 401)
            ok(reply_has(&r, "\"please log in\""), "and what to do");
        ok(str_eq(reply_header(&r, "cache-control"), STR("no-store")), "not to be kept");
        ok(!reply_has(&r, "secret"), "nothing about the stores");
    }
    struct reply r = request(t, &w, "POST /api/things", SITE("cross-site") JSON_TYPE, STR("{}"));
    is_str(r.body,
           STR("{\"success\":false,\"error\":{\"code\":\"forbidden\","
               "\"message\":\"cross-site request\"}}"),
           "cross-site goes before the body");
    r = request(t, &w, "GET /api/things/1?x=1", "", STR_NULL);
    is_int(r.status, 401, "the session goes before parameters");
    ok(notes > 0 && strstr(noted, "only super admins"), "who lacks the role is noted: %s", noted);
    world_close(t, &w);
}

static void answers(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    struct reply r = request(t, &w, "GET /api/things/a%2Fb", BEARER("alice"), STR_NULL);
    is_str(r.body, STR("{\"success\":true,\"id\":\"a/b\",\"who\":\"alice\"}"), "session and path");
    r = request(t, &w, "GET /api/things/1", BEARER("slow"), STR_NULL);
    is_str(r.body, STR("{\"success\":true,\"id\":\"1\",\"who\":\"slow\",\"degraded\":true}"),
           "the session was found without Redis");
    r = get(t, &w, "/api/where");
    is_str(r.body, STR("{\"success\":true,\"address\":\"unix\",\"degraded\":true}"),
           "the handler said so");
    r = request(t, &w, "GET /api/where", "X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\n", STR_NULL);
    ok(reply_has(&r, "\"5.6.7.8\""), "the address that the proxy has seen");
    r = request(t, &w, "GET /api/where", "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\n",
                STR_NULL);
    ok(reply_has(&r, "\"5.6.7.8\""), "also if it has added a line of its own");

    r = post(t, &w, "/api/fail", "{\"how\":\"refuse\"}");
    is_refused(&r, "how", "must not be \\\"refuse\\\"", "by a handler that had begun to write");
    r = post(t, &w, "/api/fail", "{\"how\":\"x\"}");
    is_str(r.body,
           STR("{\"success\":false,\"error\":{\"code\":\"invalid\",\"message\":\"just wrong\"}}"),
           "without a field");
    r = post(t, &w, "/api/fail", "{\"how\":\"busy\"}");
    ok(r.status == 503 && !reply_has(&r, "partial") && !reply_has(&r, "secret"),
       "not the caller's fault");

    r = get(t, &w, "/api/events");
    ok(r.status == 200 && reply_has(&r, "data: DONE"), "one that replies by itself");
    r = get(t, &w, "/api/file");
    is_str(r.body, STR("a,b\n"), "another one");
    is_str(reply_header(&r, "cache-control"), STR("no-store"), "not to be kept, either");
    r = post(t, &w, "/api/cookies", "{}");
    is_str(reply_header(&r, "set-cookie"),
           STR(API_COOKIE "=alice; Path=/; Max-Age=60; HttpOnly; SameSite=Lax"), "a cookie");
    w.config.behind_tls = true;
    r = post(t, &w, "/api/cookies", "{}");
    is_str(reply_header(&r, "set-cookie"),
           STR(API_COOKIE "=alice; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"),
           "behind TLS");
    r = get(t, &w, "/openapi.json");
    ok(r.status == 200 && reply_has(&r, "\"/api/things/{id}\""), "the document");
    struct client c;
    client_open(t, &w.site, &c);
    client_send(t, &c, STR("HEAD /api/where HTTP/1.1\r\nHost: h\r\n\r\n"));
    r = client_reply_to_head(t, &c);
    is_int(r.status, 200, "HEAD");
    client_close(&c);
    world_close(t, &w);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "api_test");
    tap_task(refused_bodies, NULL, false);
    tap_task(accepted_bodies, NULL, false);
    tap_task(refused_forms, NULL, false);
    tap_task(queries, NULL, false);
    tap_task(access_rules, NULL, false);
    tap_task(answers, NULL, false);
    return tap_done();
}
