/* millrace token: API tokens of users, made, listed and revoked by the operator. */
#include "engine/people/api_token.h"

#include <stdio.h>

#include "base/json.h"
#include "base/time.h"
#include "engine/api/tokens.h"
#include "serve/node/engine.h"
#include "tool/menu.h"
#include "tool/tool.h"
#include "tool/user/commands.h"

static const char list_about[] =
    "Shows number, name, beginning, scopes, state, and when the token was made, last used, from\n"
    "where, and when it expires; newest first. State: active; expired; revoked.\n"
    "\n"
    "  millrace token list asher\n"
    "  millrace token list asher --all --json";
static const char add_about[] =
    "Makes an API token, with which a program calls the API in the name of the user, and prints\n"
    "it: it is stored nowhere and cannot be shown again. It may do what its scopes name, and\n"
    "nothing else: \"read\" (everything that can be looked at), the name of an application (all "
    "of\n"
    "it), such as account, catalog, screen, distill, download, extract, plan, pool, post, search,\n"
    "or with \":read\" behind it (what can be looked at there). No token logs in, sees sessions, "
    "makes\n"
    "tokens or is an admin.\n"
    "\n"
    "  millrace token add asher nightly --scope read --scope screen --days 90\n"
    "  curl -H \"Authorization: Bearer mr_...\" http://127.0.0.1:8080/api/me";
static const char revoke_about[] =
    "Takes effect on every node at once. NUMBER is what \"millrace token list\" shows.";

struct options {
    bool all, json;
    const char *name;
    struct opt_texts scopes;
    struct str joined; /* scopes that fit */
    int64_t days, id;
    struct arena arena;
};

/* --- the list --- */

static const char *iso(char out[TIME_ISO_BYTES], int64_t ms)
{
    if (ms == 0)
        return "-";
    time_iso(ms * 1000, out);
    return out;
}

static void show_json(struct task *t, const struct api_token *k, bool first)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    api_put_token(t, &w, k);
    printf("%s\n  %s", first ? "" : ",", jw_finish(&w, task_arena(t)).p);
}

static void show(struct task *t, const struct api_token *k)
{
    char made[TIME_ISO_BYTES], used[TIME_ISO_BYTES], ends[TIME_ISO_BYTES];
    struct str address = k->address.p ? k->address : STR("-"), state = api_token_state(t, k);
    printf("%lld\t%.*s\t%.*s\t%.*s\t%.*s\t%s\t%s\t%.*s\t%s\n", (long long)k->id, STR_ARG(k->name),
           STR_ARG(k->prefix), STR_ARG(k->scopes), STR_ARG(state), iso(made, k->created_ms),
           iso(used, k->used_ms), STR_ARG(address), iso(ends, k->expires_ms));
}

static int list(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct user u;
    struct api_token *all = NULL;
    size_t count = 0;
    int err = user_named(t, a, &u);
    if (!err)
        err = api_token_list(t, a->db->sql, u.uid, o->all, &all, &count);
    if (err)
        return err;
    if (o->json)
        printf("[");
    for (size_t i = 0; i < count; i++)
        if (o->json)
            show_json(t, &all[i], i == 0);
        else
            show(t, &all[i]);
    if (o->json)
        printf("%s]\n", count ? "\n" : "");
    return 0;
}

/* --- making and revoking --- */

static int add(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.add_token"};
    char token[API_TOKEN_BYTES];
    struct api_token made;
    struct user u = {.uid = 0};
    int err = user_named(t, a, &u);
    struct api_token_new n = {
        .uid = u.uid, .name = str_of(o->name), .scopes = o->joined, .days = o->days, .by = &by};
    if (!err)
        err = api_token_add(t, a->cache, &n, token, &made);
    if (err)
        return err;
    fprintf(stderr, "token %lld of %.*s; it is not shown again:\n", (long long)made.id,
            STR_ARG(u.username));
    printf("%s\n", token);
    explicit_bzero(token, sizeof token);
    return 0;
}

static int revoke(struct task *t, struct account *a)
{
    const struct options *o = a->arg;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.revoke_token"};
    struct user u = {.uid = 0};
    int err = user_named(t, a, &u);
    if (err)
        return err;
    err = api_token_revoke(t, a->cache, u.uid, o->id, &by);
    return err == ERR_NOT_FOUND
               ? task_fail(t, err, "\"%s\" has no API token %lld", a->name, (long long)o->id)
               : err;
}

/* --- command lines --- */

static const char *add_problem(struct account *a, char **operands)
{
    struct options *o = a->arg;
    struct str scopes[OPT_TEXTS_MAX];
    o->name = operands[1];
    const char *why = api_token_name_problem(str_of(o->name));
    if (why)
        return arena_printf(&o->arena, "the name %s", why);
    if (o->scopes.count == 0)
        return "--scope SCOPE is missing: a token may do only what its scopes name";
    if (o->scopes.count > API_SCOPES_MAX)
        return arena_printf(&o->arena, "a token has at most %d scopes", API_SCOPES_MAX);
    for (size_t i = 0; i < o->scopes.count; i++) {
        scopes[i] = str_of(o->scopes.list[i]);
        why = api_scope_problem(&o->arena, &node_api, scopes[i]);
        if (why)
            return arena_printf(&o->arena, "\"%s\" %s", o->scopes.list[i], why);
    }
    o->joined = api_scopes_join(&o->arena, scopes, o->scopes.count);
    return o->joined.n <= API_TOKEN_SCOPES_BYTES_MAX ? NULL : "the scopes are too long";
}

static const char *revoke_problem(struct account *a, char **operands)
{
    struct options *o = a->arg;
    return str_to_i64(str_of(operands[1]), &o->id) && o->id > 0
               ? NULL
               : "NUMBER must be one that millrace token list shows";
}

static int list_main(int argc, char **argv)
{
    struct options o = {.all = false};
    const struct opt opts[] = {
        {"all", NULL, "with those that were revoked", .flag = &o.all},
        {"json", NULL, "as JSON", .flag = &o.json},
    };
    return account_main((struct command){"token list", "USER", list_about, opts, 2},
                        &(struct account){.mysql_only = true, .apply = list, .arg = &o}, argc,
                        argv);
}

static int add_main(int argc, char **argv)
{
    struct options o = {.days = 0};
    const struct opt opts[] = {
        {"scope", "SCOPE", "what it may do; may be given several times", .texts = &o.scopes},
        {"days", "N", "after which it is refused; default: never", .number = &o.days, .least = 1,
         .most = API_TOKEN_DAYS_MAX},
    };
    arena_init(&o.arena);
    int status = account_main((struct command){"token add", "USER NAME", add_about, opts, 2},
                              &(struct account){.problem = add_problem, .apply = add, .arg = &o},
                              argc, argv);
    arena_release(&o.arena);
    return status;
}

static int revoke_main(int argc, char **argv)
{
    struct options o = {.id = 0};
    return account_main((struct command){"token revoke", "USER NUMBER", revoke_about, NULL, 0},
                        &(struct account){.problem = revoke_problem, .apply = revoke, .arg = &o},
                        argc, argv);
}

static const struct menu_item items[] = {
    {"list", list_main, "show a user's API tokens"},
    {"add", add_main, "make an API token for a user's program"},
    {"revoke", revoke_main, "make an API token useless"},
};

int token_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace token", items, sizeof items / sizeof *items}, argc,
                    argv);
}
