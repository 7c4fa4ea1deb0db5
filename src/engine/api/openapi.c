/* The table as an OpenAPI 3.1 document. */
#include <stdio.h>

#include "engine/api/api_private.h"
#include "engine/api/scope.h"

enum place { IN_QUERY, IN_BODY, IN_REPLY };

#define REQUEST_MONEY "^(0|[1-9][0-9]{0,8})(\\.[0-9]{1,2})?$"
#define REPLY_MONEY   "^-?[0-9]+\\.[0-9]{2}$"

static void put_schema(struct json_writer *w, const struct api_field *f, enum place place);

static void put_text(struct json_writer *w, const char *name, const char *value)
{
    jw_key(w, str_of(name));
    jw_str(w, str_of(value));
}

/* Limits of 0 to 0 are none, and neither is what no number can exceed. */
static void put_limits(struct json_writer *w, const char *least_name, int64_t least,
                       const char *most_name, int64_t most)
{
    if (least == 0 && most == 0)
        return;
    if (least > INT64_MIN) {
        jw_key(w, str_of(least_name));
        jw_int(w, least);
    }
    if (most < INT64_MAX) {
        jw_key(w, str_of(most_name));
        jw_int(w, most);
    }
}

static void put_words(struct json_writer *w, const char *name, const char *words)
{
    jw_key(w, str_of(name));
    jw_array(w);
    struct str rest = str_of(words);
    while (rest.p)
        jw_str(w, str_cut(&rest, '|'));
    jw_end_array(w);
}

/* What an object is besides its fields: with the members that every reply has, or every refusal. */
enum whole { PART, WHOLE_REPLY, WHOLE_FAILURE };

static void put_whole(struct json_writer *w, enum whole whole)
{
    if (whole == PART)
        return;
    jw_key(w, STR("success"));
    jw_raw(w, whole == WHOLE_REPLY ? STR("{\"const\":true}") : STR("{\"const\":false}"));
    if (whole == WHOLE_FAILURE) {
        jw_key(w, STR("error"));
        jw_raw(w, STR("{\"$ref\":\"#/components/schemas/Error/properties/error\"}"));
        return;
    }
    jw_key(w, STR("degraded"));
    jw_raw(w, STR("{\"type\":\"boolean\",\"description\":"
                  "\"true: read from the database, because the cache does not answer\"}"));
}

static void put_object(struct json_writer *w, const struct api_field *fields, enum place place,
                       enum whole whole)
{
    put_text(w, "type", "object");
    jw_put_object(w, "properties");
    put_whole(w, whole);
    for (const struct api_field *f = fields; f && f->name; f++) {
        jw_key(w, str_of(f->name));
        put_schema(w, f, place);
    }
    jw_end_object(w);
    jw_put_array(w, "required");
    if (whole != PART)
        jw_str(w, STR("success"));
    if (whole == WHOLE_FAILURE)
        jw_str(w, STR("error"));
    for (const struct api_field *f = fields; f && f->name; f++)
        if (!f->optional)
            jw_str(w, str_of(f->name));
    jw_end_array(w);
    jw_put_bool(w, "additionalProperties", false);
}

static void put_string(struct json_writer *w, const struct api_field *f, int64_t least,
                       int64_t most)
{
    put_text(w, "type", "string");
    if (f->choices)
        put_words(w, "enum", f->choices);
    else
        put_limits(w, "minLength", least, "maxLength", most);
}

static void put_integer(struct json_writer *w, const struct api_field *f)
{
    put_text(w, "type", "integer");
    put_text(w, "format", "int64");
    put_limits(w, "minimum", f->least, "maximum", f->most);
}

static void put_array(struct json_writer *w, const struct api_field *f, enum place place)
{
    put_text(w, "type", "array");
    put_limits(w, "minItems", f->least, "maxItems", f->most);
    jw_put_object(w, "items");
    if (f->type == API_OBJECTS)
        put_object(w, f->fields, place, PART);
    else if (f->type == API_INTS)
        put_text(w, "type", "integer");
    else
        put_string(w, f, f->item_most ? 1 : 0, f->item_most);
    jw_end_object(w);
}

static void put_bool(struct json_writer *w, enum place place)
{
    put_text(w, "type", place == IN_QUERY ? "string" : "boolean");
    if (place == IN_QUERY)
        put_words(w, "enum", "1|0|true|false");
}

static void begin_any_value(struct json_writer *w, const struct api_field *f)
{
    jw_put_array(w, "anyOf");
    jw_object(w);
    put_string(w, f, 0, f->item_most);
    jw_end_object(w);
    jw_raw(w, STR("{\"type\":\"number\"}"));
    jw_raw(w, STR("{\"type\":\"null\"}"));
    if (f->type == API_ANY)
        jw_raw(w, STR("{\"type\":\"boolean\"}"));
}

static void put_any_value(struct json_writer *w, const struct api_field *f)
{
    begin_any_value(w, f);
    jw_end_array(w);
}

static void put_any(struct json_writer *w, const struct api_field *f)
{
    begin_any_value(w, f);
    jw_object(w);
    put_text(w, "type", "array");
    put_limits(w, "minItems", 0, "maxItems", f->most);
    jw_put_object(w, "items");
    put_any_value(w, f);
    jw_end_object(w);
    jw_end_object(w);
    jw_end_array(w);
}

static void put_members(struct json_writer *w, const struct api_field *f, enum place place)
{
    put_text(w, "type", "object");
    jw_put_object(w, "additionalProperties");
    put_object(w, f->fields, place, PART);
    jw_end_object(w);
}

static void put_type(struct json_writer *w, const struct api_field *f, enum place place)
{
    switch (f->type) {
    case API_TEXT:
        put_string(w, f, f->least, f->most);
        break;
    case API_INT:
        put_integer(w, f);
        break;
    case API_REAL:
        put_text(w, "type", "number");
        put_limits(w, "minimum", f->least, "maximum", f->most);
        break;
    case API_BOOL:
        put_bool(w, place);
        break;
    case API_MONEY:
        put_text(w, "type", "string");
        put_text(w, "pattern", place == IN_REPLY ? REPLY_MONEY : REQUEST_MONEY);
        break;
    case API_TIME:
        put_text(w, "type", "string");
        put_text(w, "format", "date-time");
        break;
    case API_TEXTS:
    case API_INTS:
    case API_OBJECTS:
        put_array(w, f, place);
        break;
    case API_COUNTS:
        put_text(w, "type", "object");
        jw_put_object(w, "additionalProperties");
        put_integer(w, f);
        jw_end_object(w);
        break;
    case API_VALUES:
        put_text(w, "type", "object");
        put_limits(w, "minProperties", f->least, "maxProperties", f->most);
        jw_put_object(w, "additionalProperties");
        put_any_value(w, f);
        jw_end_object(w);
        break;
    case API_ANY:
        put_any(w, f);
        break;
    case API_OBJECT:
        put_object(w, f->fields, place, PART);
        break;
    case API_MEMBERS:
        put_members(w, f, place);
        break;
    }
}

static void put_schema(struct json_writer *w, const struct api_field *f, enum place place)
{
    bool nullable = f->nullable || (place == IN_REPLY && f->optional);
    jw_object(w);
    if (nullable) {
        jw_put_array(w, "anyOf");
        jw_object(w);
    }
    put_type(w, f, place);
    if (nullable) {
        jw_end_object(w);
        jw_raw(w, STR("{\"type\":\"null\"}"));
        jw_end_array(w);
    }
    if (f->about && place != IN_QUERY) /* there the parameter says it */
        put_text(w, "description", f->about);
    jw_end_object(w);
}

/* --- one route --- */

/* "/api/sessions/:sid" is "/api/sessions/{sid}". */
static void add_template(struct buf *b, const char *path)
{
    struct str rest = str_of(path + 1);
    while (rest.p) {
        struct str s = str_cut(&rest, '/');
        if (s.n > 0 && s.p[0] == ':')
            buf_printf(b, "/{%.*s}", (int)s.n - 1, s.p + 1);
        else
            buf_printf(b, "/%.*s", STR_ARG(s));
    }
}

static void add_method(struct buf *b, const struct api_route *r) /* "delete" */
{
    for (const char *p = r->method; *p; p++)
        buf_add_char(b, (char)(*p | 0x20));
}

/* DELETE /api/sessions/:sid is delete_sessions_by_sid. */
static void put_operation_id(struct json_writer *w, const struct api_route *r)
{
    struct buf id;
    buf_init(&id);
    add_method(&id, r);
    bool api = str_starts(str_of(r->path), STR("/api/"));
    struct str rest = str_of(r->path + (api ? sizeof("/api/") - 1 : 1));
    while (rest.p) {
        struct str s = str_cut(&rest, '/');
        bool param = s.n > 0 && s.p[0] == ':';
        buf_printf(&id, "%s%.*s", param ? "_by_" : "_", (int)s.n - param, s.p + param);
    }
    jw_put_str(w, "operationId", buf_str(&id));
    buf_release(&id);
}

static void put_path_parameters(struct json_writer *w, const char *path)
{
    struct str rest = str_of(path);
    while (rest.p) {
        struct str s = str_cut(&rest, '/');
        if (s.n == 0 || s.p[0] != ':')
            continue;
        jw_object(w);
        jw_put_str(w, "name", str_from(s.p + 1, s.n - 1));
        put_text(w, "in", "path");
        jw_put_bool(w, "required", true);
        jw_put_object(w, "schema");
        put_text(w, "type", "string");
        put_limits(w, "minLength", 1, "maxLength", API_PATH_PARAM_CHARS_MAX);
        jw_end_object(w);
        jw_end_object(w);
    }
}

static void put_parameters(struct json_writer *w, const struct api_route *r)
{
    if (!strchr(r->path, ':') && !r->query)
        return;
    jw_put_array(w, "parameters");
    put_path_parameters(w, r->path);
    for (const struct api_field *f = r->query; f && f->name; f++) {
        jw_object(w);
        put_text(w, "name", f->name);
        put_text(w, "in", "query");
        jw_put_bool(w, "required", !f->optional);
        if (f->about)
            put_text(w, "description", f->about);
        jw_key(w, STR("schema"));
        put_schema(w, f, IN_QUERY);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void begin_content(struct json_writer *w, const char *media)
{
    jw_put_object(w, "content");
    jw_key(w, str_of(media));
    jw_object(w);
    jw_put_object(w, "schema");
}

static void end_content(struct json_writer *w)
{
    jw_end_object(w);
    jw_end_object(w);
    jw_end_object(w);
}

static void put_request_body(struct json_writer *w, const struct api_route *r)
{
    if (!r->body && !r->upload)
        return;
    bool required = r->upload != NULL;
    for (const struct api_field *f = r->body; f && f->name; f++)
        required |= !f->optional;
    jw_put_object(w, "requestBody");
    jw_put_bool(w, "required", required);
    begin_content(w, r->upload ? r->upload : "application/json");
    if (r->upload)
        put_text(w, "type", "string");
    else
        put_object(w, r->body, IN_BODY, PART);
    end_content(w);
    jw_end_object(w);
}

static void put_failure(struct json_writer *w, const struct api_route *r)
{
    jw_object(w);
    put_text(w, "description", "error tells why; the rest is as told.");
    begin_content(w, "application/json");
    put_object(w, r->reply, IN_REPLY, WHOLE_FAILURE);
    end_content(w);
    jw_end_object(w);
}

static void put_responses(struct json_writer *w, const struct api_route *r)
{
    static const char *const failures[] = {"400", "401", "403", "404",
                                           "409", "429", "503", "default"};
    char status[16];
    snprintf(status, sizeof(status), "%d", r->status ? r->status : 200);
    jw_put_object(w, "responses");
    jw_key(w, str_of(status));
    jw_object(w);
    put_text(w, "description", "Done.");
    begin_content(w, r->media ? r->media : "application/json");
    if (r->media)
        put_text(w, "type", "string");
    else
        put_object(w, r->reply, IN_REPLY, WHOLE_REPLY);
    end_content(w);
    jw_end_object(w);
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        jw_key(w, str_of(failures[i]));
        if (r->fails_whole && strcmp(failures[i], "503") == 0)
            put_failure(w, r);
        else
            jw_raw(w, STR("{\"$ref\":\"#/components/responses/Error\"}"));
    }
    jw_end_object(w);
}

static void put_route(struct json_writer *w, const struct api_route *r, const char *application)
{
    struct buf method;
    buf_init(&method);
    add_method(&method, r);
    jw_key(w, buf_str(&method));
    buf_release(&method);
    jw_object(w);
    put_text(w, "summary", r->summary);
    if (r->access == API_SUPER)
        put_text(w, "description", "For super admins only.");
    put_operation_id(w, r);
    put_words(w, "tags", application);
    api_put_security(w, application, r);
    put_parameters(w, r);
    put_request_body(w, r);
    put_responses(w, r);
    jw_end_object(w);
}

/* --- the document --- */

/* Two paths that differ in the names of their parameters only would be one for the server and two
 * in the document, which does not allow it. */
static bool same_path(const char *a, const char *b)
{
    struct str x = str_of(a), y = str_of(b);
    while (x.p && y.p) {
        struct str s = str_cut(&x, '/'), u = str_cut(&y, '/');
        bool params = s.n > 0 && u.n > 0 && s.p[0] == ':' && u.p[0] == ':';
        if (!params && !str_eq(s, u))
            return false;
    }
    return !x.p && !y.p;
}

static bool seen_before(const struct api_table *p, const struct api_route *route)
{
    for (size_t i = 0; i < p->count; i++)
        for (const struct api_route *r = p->applications[i].routes; r->method; r++) {
            if (r == route)
                return false;
            if (same_path(r->path, route->path))
                return true;
        }
    return false;
}

static void put_path(struct json_writer *w, const struct api_table *p, const char *path)
{
    struct buf b;
    buf_init(&b);
    add_template(&b, path);
    jw_key(w, buf_str(&b));
    buf_release(&b);
    jw_object(w);
    for (size_t i = 0; i < p->count; i++)
        for (const struct api_route *r = p->applications[i].routes; r->method; r++)
            if (same_path(r->path, path)) {
                check(strcmp(r->path, path) == 0);
                put_route(w, r, p->applications[i].name);
            }
    jw_end_object(w);
}

static const char components[] =
    "{\"schemas\":{\"Error\":{\"type\":\"object\",\"properties\":{\"success\":{\"const\":false},"
    "\"error\":{\"type\":\"object\",\"properties\":{"
    "\"code\":{\"type\":\"string\",\"description\":\"for programs; never changes\"},"
    "\"message\":{\"type\":\"string\",\"description\":\"for people\"},"
    "\"field\":{\"type\":\"string\",\"description\":\"what in the request is wrong\"}},"
    "\"required\":[\"code\",\"message\"],\"additionalProperties\":false}},"
    "\"required\":[\"success\",\"error\"],\"additionalProperties\":false}},"
    "\"responses\":{\"Error\":{\"description\":\"Nothing was done; error tells why.\",\"content\":"
    "{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}},"
    "\"securitySchemes\":{"
    "\"cookie\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"" API_COOKIE "\"},"
    "\"admin_cookie\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":\"" API_ADMIN_COOKIE "\"},"
    "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\","
    "\"description\":\"The token of a session, as the log-in answers it.\"},"
    "\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"An API token (mr_...), "
    "as "
    "POST /api/tokens answers it, with one of the scopes that are named here. A scope is "
    "\\\"read\\\" "
    "(every GET of users' routes), the name of an application (its tag; all of its routes), "
    "\\\"<application>:read\\\" (its GETs), or \\\"<application>:<part>\\\" where a route has "
    "{parts} "
    "of its path here. Without it: 403 token_scope.\"}}}";

void api_openapi(struct buf *out, const struct api_table *table)
{
    const struct api_application *applications = table->applications;
    size_t count = table->count;
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    put_text(&w, "openapi", "3.1.0");
    jw_key(&w, STR("info"));
    jw_raw(&w, STR("{\"title\":\"millrace\",\"version\":\"" MILLRACE_VERSION "\"}"));
    jw_key(&w, STR("servers"));
    jw_raw(&w, STR("[{\"url\":\"/\"}]"));
    jw_put_array(&w, "tags");
    for (size_t i = 0; i < count; i++) {
        jw_object(&w);
        put_text(&w, "name", applications[i].name);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_put_object(&w, "paths");
    for (size_t i = 0; i < count; i++)
        for (const struct api_route *r = applications[i].routes; r->method; r++)
            if (!seen_before(table, r))
                put_path(&w, table, r->path);
    jw_end_object(&w);
    jw_key(&w, STR("components"));
    jw_raw(&w, str_of(components));
    jw_end_object(&w);
}
