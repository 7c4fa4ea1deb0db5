#include "engine/api/scope.h"

#include "base/nearest.h"

/* --- the grammar --- */

static bool name_sound(struct str name)
{
    size_t chars = 0;
    for (struct str rest = name; rest.n; chars++) {
        unsigned char c = (unsigned char)rest.p[0];
        size_t step = str_utf8_step(rest);
        if (step == 0 || c <= ' ' || c == 0x7f || c == ':' || c == '/' || c == ',')
            return false;
        rest = str_skip(rest, step);
    }
    return chars >= 1 && chars <= API_SCOPE_NAME_CHARS_MAX;
}

static bool allows(struct str scope, struct str need, bool read)
{
    struct str of = scope, application = str_cut(&of, ':');
    struct str part = need, needed = str_cut(&part, ':');
    if (str_eq(scope, STR("read")))
        return read;
    if (!str_eq(application, needed))
        return false;
    if (of.p && str_eq(of, STR("read")))
        return read;
    return str_starts(need, scope) &&
           (need.n == scope.n || need.p[scope.n] == ':' || need.p[scope.n] == '/');
}

bool api_scopes_allow(struct str scopes, struct str need, bool read)
{
    while (scopes.p)
        if (allows(str_cut(&scopes, ' '), need, read))
            return true;
    return false;
}

struct str api_scopes_join(struct arena *a, const struct str *scopes, size_t count)
{
    struct str list = STR("");
    for (size_t i = 0; i < count; i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again |= str_eq(scopes[i], scopes[j]);
        if (!again)
            list = STR_JOIN(a, list, list.n ? STR(" ") : STR(""), scopes[i]);
    }
    return list;
}

/* A parameter with a slash in it would name something below another part. */
struct str api_scope_need(struct arena *a, const char *template, const struct http_exchange *x)
{
    struct str names = str_of(template), application = str_cut(&names, ':'), need = application;
    while (names.p) {
        struct str value = http_param(x, str_z(a, str_cut(&names, '/')));
        if (!name_sound(value))
            return application;
        need = STR_JOIN(a, need, need.n == application.n ? STR(":") : STR("/"), value);
    }
    return need;
}

/* --- what the table of routes has --- */

static bool reachable(const struct api_route *r)
{
    return (r->access == API_USER || r->access == API_EITHER) && r->handler;
}

static bool is_get(const struct api_route *r)
{
    return strcmp(r->method, "GET") == 0;
}

/* What tokens can reach of an application. */
struct reach {
    bool reads, writes;
    const char *parts; /* "type/group": the longest; NULL: it has none */
};

static struct reach reach_of(const struct api_application *application)
{
    struct reach reach = {.reads = false};
    for (const struct api_route *r = application->routes; r->method; r++) {
        if (!reachable(r))
            continue;
        *(is_get(r) ? &reach.reads : &reach.writes) = true;
        const char *parts = r->scope ? strchr(r->scope, ':') + 1 : NULL;
        if (parts && (!reach.parts || strlen(parts) > strlen(reach.parts)))
            reach.parts = parts;
    }
    return reach;
}

static const struct api_application *find(const struct api_table *table, struct str name)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct api_application *application = &table->applications[i];
        struct reach reach = reach_of(application);
        if ((reach.reads || reach.writes) && str_eq(str_of(application->name), name))
            return application;
    }
    return NULL;
}

static const char *unknown(struct arena *a, const struct api_table *table, struct str name)
{
    struct nearest n = nearest_to(name);
    struct str all = STR("");
    nearest_try(&n, "read");
    for (size_t i = 0; i < table->count; i++) {
        const char *known = table->applications[i].name;
        if (!find(table, str_of(known)))
            continue;
        nearest_try(&n, known);
        all = STR_JOIN(a, all, all.n ? STR(", ") : STR(""), str_of(known));
    }
    const char *near = nearest_name(&n);
    return near ? arena_printf(a, "is no scope; did you mean \"%s\"?", near)
                : arena_printf(a,
                               "is no scope: there are \"read\" and the names of applications, "
                               "also with \":read\" behind them: %.*s",
                               STR_ARG(all));
}

static size_t depth_of(const char *parts)
{
    size_t n = 0;
    for (struct str rest = str_of(parts); rest.p; n++)
        (void)str_cut(&rest, '/');
    return n;
}

const char *api_scope_problem(struct arena *a, const struct api_table *table, struct str scope)
{
    struct str part = scope, name = str_cut(&part, ':');
    if (str_eq(scope, STR("read")))
        return NULL;
    const struct api_application *application = find(table, name);
    if (!application)
        return unknown(a, table, name);
    if (!part.p || str_eq(part, STR("read")))
        return NULL;
    struct reach reach = reach_of(application);
    if (!reach.parts)
        return arena_printf(a, "is no scope: there are \"%s\" and \"%s:read\"", application->name,
                            application->name);
    size_t depth = 0;
    for (; part.p; depth++)
        if (!name_sound(str_cut(&part, '/')))
            return arena_printf(a, "is no scope: it must be like \"%s:%s\"", application->name,
                                reach.parts);
    return depth <= depth_of(reach.parts)
               ? NULL
               : arena_printf(a, "has too many parts: it must be like \"%s:%s\"", application->name,
                              reach.parts);
}

const struct api_field api_scope_fields[] = {
    {"name", API_TEXT, .about = "a scope: all that the application has"},
    {"reads", API_BOOL, .about = "\"<name>:read\" is of use"},
    {"writes", API_BOOL, .about = "\"<name>\" has more than \"<name>:read\""},
    {"parts", API_TEXT, .optional = true,
     .about = "what \"<name>:<part>\" is made of: \"type/group\"; null: it has no parts"},
    API_END,
};

void api_put_scopes(struct json_writer *w, const struct api_table *table)
{
    jw_put_array(w, "applications");
    for (size_t i = 0; i < table->count; i++) {
        struct reach reach = reach_of(&table->applications[i]);
        if (!reach.reads && !reach.writes)
            continue;
        jw_object(w);
        jw_put_str(w, "name", str_of(table->applications[i].name));
        jw_put_bool(w, "reads", reach.reads);
        jw_put_bool(w, "writes", reach.writes);
        jw_put_str(w, "parts", str_of(reach.parts));
        jw_end_object(w);
    }
    jw_end_array(w);
}

/* --- one route --- */

static bool has_parameter(const char *path, struct str name)
{
    for (struct str rest = str_of(path); rest.p;) {
        struct str segment = str_cut(&rest, '/');
        if (segment.n > 1 && segment.p[0] == ':' && str_eq(str_skip(segment, 1), name))
            return true;
    }
    return false;
}

void api_check_scope(const struct api_application *application, const struct api_route *r)
{
    struct str names = str_of(r->scope), name = STR("");
    if (reachable(r))
        check(name_sound(str_of(application->name)) && strcmp(application->name, "read") != 0);
    if (!r->scope)
        return;
    check(reachable(r) && str_eq(str_cut(&names, ':'), str_of(application->name)) && names.p);
    while (names.p) {
        name = str_cut(&names, '/');
        check(has_parameter(r->path, name));
    }
}

static void put_alternative(struct json_writer *w, struct str scope)
{
    jw_object(w);
    jw_put_array(w, "token");
    jw_str(w, scope);
    jw_end_array(w);
    jw_end_object(w);
}

/* "pool:{type}/{group}", then "pool:{type}". */
static void put_parts(struct json_writer *w, const char *template)
{
    for (size_t depth = depth_of(template); depth > 0; depth--) {
        struct buf b;
        buf_init(&b);
        struct str names = str_of(template);
        buf_add_str(&b, str_cut(&names, ':'));
        for (size_t i = 0; i < depth; i++) {
            struct str name = str_cut(&names, '/');
            buf_printf(&b, "%s{%.*s}", i ? "/" : ":", STR_ARG(name));
        }
        put_alternative(w, buf_str(&b));
        buf_release(&b);
    }
}

/* Each alternative suffices. */
void api_put_security(struct json_writer *w, const char *application, const struct api_route *r)
{
    jw_put_array(w, "security");
    if (r->access != API_PUBLIC) {
        if (r->access < API_ADMIN)
            jw_raw(w, STR("{\"cookie\":[]}"));
        if (r->access >= API_ADMIN || r->access == API_EITHER)
            jw_raw(w, STR("{\"admin_cookie\":[]}"));
        jw_raw(w, STR("{\"bearer\":[]}"));
    }
    if (reachable(r)) {
        struct buf reads;
        buf_init(&reads);
        buf_printf(&reads, "%s:read", application);
        if (r->scope)
            put_parts(w, r->scope);
        put_alternative(w, str_of(application));
        if (is_get(r)) {
            put_alternative(w, buf_str(&reads));
            put_alternative(w, STR("read"));
        }
        buf_release(&reads);
    }
    jw_end_array(w);
}
