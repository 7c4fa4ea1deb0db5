/* The document names every route and field, once, with its limits. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/api/api_private.h"
#include "tests/tap.h"

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const struct api_field inner_fields[] = {
    {"x", API_INT, .least = INT64_MIN, .most = INT64_MAX},
    {"label", API_TEXT, .optional = true, .most = 5},
    END,
};
/* One of everything. */
static const struct api_field all_fields[] = {
    {"name", API_TEXT, .least = 3, .most = 5, .about = "what it is \"called\""},
    {"count", API_INT, .optional = true, .least = -1, .most = 100},
    {"flag", API_BOOL, .optional = true},
    {"amount", API_MONEY, .most = 100000},
    {"kind", API_TEXT, .optional = true, .choices = "red|green"},
    {"tags", API_TEXTS, .least = 1, .most = 3, .item_most = 4},
    {"colours", API_TEXTS, .optional = true, .most = 2, .choices = "red|green"},
    {"years", API_COUNTS, .optional = true, .most = 10},
    {"values", API_VALUES, .optional = true, .most = 3, .item_most = 4},
    {"any", API_ANY, .optional = true, .most = 3, .item_most = 4},
    {"inner", API_OBJECT, .fields = inner_fields},
    {"rows", API_OBJECTS, .optional = true, .least = 1, .most = 2, .fields = inner_fields},
    END,
};
static const struct api_field reply_fields[] = {
    {"id", API_INT, .about = "any number"},
    {"text", API_TEXT, .about = "any text"},
    {"texts", API_TEXTS, .about = "any texts"},
    {"slots", API_INTS, .about = "any numbers"},
    {"when", API_TIME, .optional = true},
    {"cost", API_MONEY, .about = "an amount"},
    {"all", API_OBJECT, .fields = all_fields},
    {"rows", API_OBJECTS, .optional = true, .fields = inner_fields},
    {"members", API_MEMBERS, .fields = inner_fields},
    END,
};
static const struct api_field query_fields[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = 100, .about = "at most so many"},
    {"flag", API_BOOL, .optional = true},
    {"tag", API_TEXTS, .optional = true, .most = 3, .item_most = 4},
    {"q", API_TEXT, .least = 1, .most = 3},
    END,
};

static const struct api_route thing_routes[] = {
    {"POST", "/api/things", API_PUBLIC, NULL, "Make a thing", .body = all_fields,
     .reply = reply_fields, .status = 201},
    {"GET", "/api/things/:id", API_USER, NULL, "Show a thing", .reply = reply_fields},
    {"GET", "/api/things", API_PUBLIC, NULL, "Find things", .query = query_fields},
    {"DELETE", "/api/things/:id", API_USER, NULL, "Remove a thing", .status = 200},
    {"GET", "/api/events", API_PUBLIC, NULL, "What happens", .media = "text/event-stream"},
    {.method = NULL},
};
static const struct api_route other_routes[] = {
    {"PUT", "/api/things/:id", API_SUPER, NULL, "Replace a thing", .body = all_fields},
    {"POST", "/api/users/:uid/things/:id", API_ADMIN, NULL, "Give a thing", .status = 200},
    {"GET", "/readyz", API_PUBLIC, NULL, "Readiness", .reply = reply_fields, .fails_whole = true},
    {.method = NULL},
};
static const struct api_application applications[] = {
    {"things", thing_routes},
    {"others", other_routes},
};

static const struct json *at(const struct json *j, const char *path)
{
    struct arena a;
    arena_init(&a);
    struct str rest = str_of(path);
    while (rest.p && j)
        j = json_get(j, str_z(&a, str_cut(&rest, ' ')));
    arena_release(&a);
    return j;
}

static bool lists(const struct json *array, const char *word)
{
    json_each (it, array)
        if (str_eq(json_str(it), str_of(word)))
            return true;
    return false;
}

static void names_fields(const struct json *schema, const struct api_field *fields)
{
    for (const struct api_field *f = fields; f && f->name; f++) {
        const struct json *p = json_get(json_get(schema, "properties"), f->name);
        ok(p && lists(json_get(schema, "required"), f->name) == !f->optional, "names %s", f->name);
        if (json_get(p, "anyOf"))
            p = json_first(json_get(p, "anyOf"));
        if (f->type == API_OBJECTS || f->type == API_MEMBERS)
            p = json_get(p, f->type == API_OBJECTS ? "items" : "additionalProperties");
        names_fields(f->fields ? p : NULL, f->fields);
    }
    bool closed = true;
    ok(!schema || (json_bool(json_get(schema, "additionalProperties"), &closed) && !closed),
       "and no others");
}

/* "/api/things/:id" is "/api/things/{id}". */
static const char *template_of(struct arena *a, const char *path)
{
    const char *out = "";
    struct str rest = str_of(path + 1);
    while (rest.p) {
        struct str s = str_cut(&rest, '/');
        out = s.p[0] == ':' ? arena_printf(a, "%s/{%.*s}", out, (int)s.n - 1, s.p + 1)
                            : arena_printf(a, "%s/%.*s", out, STR_ARG(s));
    }
    return out;
}

static void names_route(struct arena *a, const struct json *paths, const struct api_route *r)
{
    char method[8] = {0};
    for (size_t i = 0; r->method[i]; i++)
        method[i] = (char)(r->method[i] | 0x20);
    const struct json *o = json_get(json_get(paths, template_of(a, r->path)), method);
    ok(o != NULL, "names %s %s", r->method, r->path);
    is_str(json_str(json_get(o, "summary")), str_of(r->summary), "its summary");
    if (r->body)
        names_fields(at(o, "requestBody content application/json schema"), r->body);
    char status[4];
    snprintf(status, sizeof(status), "%d", r->status ? r->status : 200);
    const struct json *done = json_get(json_get(o, "responses"), status);
    if (!r->media)
        names_fields(at(done, "content application/json schema"), r->reply);
    else
        ok(json_get(json_get(done, "content"), r->media) != NULL, "its type");
    for (const struct api_field *f = r->query; f && f->name; f++) {
        size_t found = 0;
        json_each (it, json_get(o, "parameters"))
            found += str_eq(json_str(json_get(it, "name")), str_of(f->name));
        is_int((int64_t)found, 1, "parameter %s", f->name);
    }
}

/* For validators that are not ours. */
static void dump(struct str text)
{
    const char *path = getenv("OPENAPI_DUMP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fwrite(text.p, 1, text.n, f);
    fclose(f);
}

static void limits_and_names(const struct json *j)
{
    const struct json *make = at(j, "paths /api/things post");
    is_str(json_str(json_get(make, "operationId")), STR("post_things"), "name of an operation");
    is_str(json_str(at(j, "paths /api/users/{uid}/things/{id} post operationId")),
           STR("post_users_by_uid_things_by_id"), "with parameters");
    ok(lists(json_get(make, "tags"), "things"), "its application");
    ok(lists(at(j, "paths /api/things/{id} put tags"), "others"), "another one at the same path");
    is_int(json_get(make, "security")->count, 0, "anybody may call it");
    is_int(at(j, "paths /api/things/{id} get security")->count, 2, "users, in two ways");
    ok(json_get(json_get(make, "responses"), "409") != NULL, "refusals");
    is_str(json_str(at(j, "paths /readyz get operationId")), STR("get_readyz"), "outside of /api");
    const struct json *failed =
        at(j, "paths /readyz get responses 503 content application/json schema");
    names_fields(failed, reply_fields);
    ok(lists(json_get(failed, "required"), "error") && at(failed, "properties error $ref"),
       "a failure that has the reply's fields, too");

    const struct json *fields = at(make, "requestBody content application/json schema properties");
    const struct json *name = json_get(fields, "name"), *x = at(fields, "inner properties x");
    int64_t v = 0;
    ok(json_int(json_get(name, "minLength"), &v) && v == 3, "a least length");
    ok(json_int(json_get(name, "maxLength"), &v) && v == 5, "a largest length");
    is_str(json_str(json_get(name, "description")), STR("what it is \"called\""), "what it is");
    ok(json_int(at(fields, "count minimum"), &v) && v == -1, "a least number");
    ok(x && !json_get(x, "minimum") && !json_get(x, "maximum"), "a number without limits");
    ok(lists(at(fields, "kind enum"), "red") && lists(at(fields, "kind enum"), "green"), "choices");
    ok(json_int(at(fields, "tags items maxLength"), &v) && v == 4, "items");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    struct buf b;
    buf_init(&b);
    api_openapi(&b, &(struct api_table){applications, 2});
    const struct json *j = NULL;
    ok(json_parse(&a, buf_str(&b), &j, NULL) == 0, "it is JSON");
    is_str(json_str(json_get(j, "openapi")), STR("3.1.0"), "its version");
    for (size_t i = 0; i < 2; i++)
        for (const struct api_route *r = applications[i].routes; r->method; r++)
            names_route(&a, json_get(j, "paths"), r);
    is_int(json_get(j, "paths")->count, 5, "each path is there once");
    is_int(at(j, "paths /api/things/{id}")->count, 3, "with all of its methods");
    limits_and_names(j);
    dump(buf_str(&b));
    buf_release(&b);
    arena_release(&a);
    return tap_done();
}
