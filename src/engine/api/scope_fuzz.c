/* Input: scopes of a token, separated by blanks, then, after a NUL, what a call needs. What a
 * token may get is what the grammar says, and nothing is allowed that no scope begins. */
#include <stdint.h>

#include "engine/api/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int nothing(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)c, (void)w;
    return 0;
}

static const struct api_route screen_routes[] = {
    {"GET", "/api/queries", API_USER, nothing, "Look", .status = 200},
    {.method = NULL},
};
static const struct api_route pool_routes[] = {
    {"POST", "/api/pools/:type/:group/pop", API_USER, nothing, "Pop", .scope = "pool:type/group"},
    {.method = NULL},
};
static const struct api_application applications[] = {{"screen", screen_routes},
                                                      {"pool", pool_routes}};
static const struct api_table table = {applications, 2};

static size_t count(struct str s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == c;
    return n;
}

static void check_scope(struct arena *a, struct str scope)
{
    const char *why = api_scope_problem(a, &table, scope);
    if (why) {
        check(*why && str_utf8_valid(str_of(why)));
        return;
    }
    bool whole = str_eq(scope, STR("read")) || str_eq(scope, STR("screen")) ||
                 str_eq(scope, STR("screen:read")) || str_eq(scope, STR("pool"));
    check(whole || str_starts(scope, STR("pool:")));
    check(scope.n <= sizeof("pool:") + 2 * 4 * API_SCOPE_NAME_CHARS_MAX);
    check(str_utf8_valid(scope) && count(scope, ':') <= 1 && count(scope, '/') <= 1);
    check(!count(scope, ' ') && !count(scope, ',') && !count(scope, '\0'));
    if (!str_eq(scope, STR("read")) && !str_ends(scope, STR(":read")))
        check(api_scopes_allow(scope, scope, false));
}

/* The same by another way: some leading part of the need is a scope, or it is a GET. */
static bool allowed(struct str scopes, struct str need, bool read)
{
    struct str application = need;
    application = str_cut(&application, ':');
    while (scopes.p) {
        struct str scope = str_cut(&scopes, ' ');
        bool reads = str_ends(scope, STR(":read")) && str_starts(scope, application) &&
                     scope.n == application.n + 5;
        if (read && (reads || str_eq(scope, STR("read"))))
            return true;
        for (size_t n = 0; n <= need.n; n++)
            if ((n == need.n || need.p[n] == ':' || need.p[n] == '/') && n >= application.n &&
                str_eq(scope, str_from(need.p, n)) && !reads && !str_eq(scope, STR("read")))
                return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str need = str_from((const char *)data, size), scopes = str_cut(&need, '\0');
    if (!need.p)
        need = STR("pool:titles/news");
    for (struct str rest = scopes; rest.p;)
        check_scope(&a, str_cut(&rest, ' '));
    for (int read = 0; read < 2; read++)
        check(api_scopes_allow(scopes, need, read) == allowed(scopes, need, read));
    arena_release(&a);
    return 0;
}
