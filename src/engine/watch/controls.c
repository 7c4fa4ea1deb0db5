#include "engine/watch/controls.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/judge/judge.h"
#include "engine/people/switches.h"
#include "engine/store/keys.h"
#include "wire/redis.h"

#define DRAINED        "drained:"
#define PROMPTS        "prompts"
#define HOST_CHARS_MAX 36
#define MARK_CHARS     4

struct controls {
    struct node *node;
    int64_t drained, prompts; /* versions of the rows that were read last; -1: none */
};

const char *control_node_id(struct arena *a, const char *host, const char *data_dir, int place)
{
    char path[PATH_MAX], mark[SHA256_HEX_BYTES];
    sha256_hex(str_of(realpath(data_dir, path) ? path : data_dir), mark);
    return arena_printf(a, "%.*s-%.*s-%d", HOST_CHARS_MAX, *host ? host : "node", MARK_CHARS, mark,
                        place);
}

/* --- what the table says --- */

/* Versions keep a slow reader from bringing an old value back. */
static void learn_drained(struct controls *c, bool drained, int64_t version)
{
    struct node *n = c->node;
    if (version < c->drained)
        return;
    c->drained = version;
    if (n->drained != drained)
        log_info("engine", "this node %s", drained ? "takes no work any more" : "takes work again");
    n->drained = drained;
}

static void learn_prompts(struct controls *c, int64_t version)
{
    const char *why = NULL;
    struct arena a;
    if (version <= c->prompts || !c->node->judge)
        return;
    c->prompts = version;
    arena_init(&a);
    if (judge_reload(&a, c->node->judge, &why))
        log_error("engine", "the prompt stays as it was: %s", why);
    else
        log_info("engine", "the prompt was read again: %s", judge_prompt_mark(c->node->judge));
    arena_release(&a);
}

static void learn(void *arg, struct str name, struct str value, int64_t version)
{
    struct controls *c = arg;
    struct str prefix = STR(DRAINED);
    if (str_eq(name, STR(PROMPTS)))
        learn_prompts(c, version);
    else if (str_starts(name, prefix) &&
             str_eq(str_from(name.p + prefix.n, name.n - prefix.n), str_of(c->node->id)))
        learn_drained(c, str_eq(value, STR("true")), version);
}

struct controls *controls_new(struct node *n)
{
    struct controls *c = check_memory(calloc(1, sizeof *c));
    check(n->id);
    c->node = n;
    c->drained = c->prompts = -1;
    switches_also(n->switches, learn, c);
    return c;
}

void controls_free(struct controls *c)
{
    free(c);
}

/* --- changes --- */

/* Does a node with this id send heartbeats? */
static int find_living(struct task *t, struct node *n, struct str id, bool *found)
{
    const struct redis_reply *r;
    int err = redis_call(t, n->redis, key_nodes_info, &r, STR("HVALS"), key_nodes_info);
    *found = false;
    for (size_t i = 0; !err && r->type == REDIS_ARRAY && i < r->count; i++) {
        const struct json *j;
        *found = *found || (!json_parse(task_arena(t), r->items[i]->str, &j, NULL) &&
                            str_eq(json_str(json_get(j, "id")), id));
    }
    return err;
}

/* What was drained before can be undone when the node is gone, and when Redis does not answer. */
static int is_known(struct task *t, struct node *n, struct str id, struct str name)
{
    struct sql_rows r;
    bool found = str_eq(id, str_of(n->id));
    int err =
        found ? 0 : sql_call(t, n->sql, &r, "SELECT 1 FROM setting WHERE name = ?", sql_text(name));
    if (err || found || r.count)
        return err;
    err = find_living(t, n, id, &found);
    return err || found ? err : task_fail(t, ERR_NOT_FOUND, "there is no node %.*s", STR_ARG(id));
}

int control_drain(struct task *t, struct controls *c, struct str id, bool drained,
                  const struct admin_deed *by)
{
    if (id.n == 0 || id.n > CONTROL_ID_CHARS_MAX)
        return task_fail(t, ERR_NOT_FOUND, "there is no node %.*s", STR_ARG(id));
    struct setting_change x = {.name = str_printf(task_arena(t), DRAINED "%.*s", STR_ARG(id)),
                               .value = drained ? STR("true") : STR("false"),
                               .unset = STR("false"),
                               .member = "drained",
                               .deed = *by};
    x.deed.target = id;
    int err = is_known(t, c->node, id, x.name);
    if (!err)
        err = sql_tx(t, c->node->sql, setting_change, &x);
    if (!err && str_eq(id, str_of(c->node->id)))
        learn_drained(c, drained, x.version);
    return err;
}

int control_reload(struct task *t, struct controls *c, const struct admin_deed *by)
{
    struct judge *judge = c->node->judge;
    const char *why = NULL;
    struct setting_change x = {.name = STR(PROMPTS), .value = STR("true"), .deed = *by};
    x.deed.target = STR("ai.prompt_file");
    x.deed.before = str_printf(task_arena(t), "{\"prompt\":\"%s\"}", judge_prompt_mark(judge));
    if (judge_reload(task_arena(t), judge, &why))
        return task_fail(t, ERR_INVALID, "%s", why);
    x.deed.after = str_printf(task_arena(t), "{\"prompt\":\"%s\"}", judge_prompt_mark(judge));
    int err = sql_tx(t, c->node->sql, setting_change, &x);
    if (!err)
        c->prompts = x.version;
    return err;
}
