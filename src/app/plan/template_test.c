/* Templates on real stores. */
#include <stdlib.h>

#include "app/plan/template_private.h"
#include "base/log.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct mariadb server;
static struct store_redis store;

struct fixture {
    struct group links, roles;
    struct node node;
    struct plan_templates *templates;
};

static void open_all(struct task *t, struct fixture *f)
{
    *f = (struct fixture){0};
    group_init(&f->links, task_loop(t));
    group_init(&f->roles, task_loop(t));
    f->node.redis = redis_open(
        &f->links, &(struct redis_options){.url = store.url_unix, .name = "hot", .quiet = true});
    f->node.sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .quiet = true});
    f->templates = plan_templates_new(
        &(struct plan_templates_options){.redis = f->node.redis, .sql = f->node.sql});
    f->node.plan_templates = f->templates;
    while (!redis_up(f->node.redis))
        check(task_sleep(t, 2) == 0);
}

static void close_all(struct task *t, struct fixture *f)
{
    group_cancel(&f->roles);
    check(group_join(t, &f->roles) == 0);
    plan_templates_free(f->templates);
    sql_pool_free(f->node.sql);
    redis_close(f->node.redis);
    check(group_join(t, &f->links) == 0);
}

static void make_tables(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct schema_report r;
    open_all(t, &f);
    check(schema_migrate(t, f.node.sql, &r) == 0);
    close_all(t, &f);
}

static const struct json *object(struct task *t, const char *text)
{
    const struct json *j;
    check(json_parse(task_arena(t), str_of(text), &j, NULL) == 0);
    return j;
}

static void round_of(struct task *t, struct fixture *f)
{
    struct role_turn turn = {.locked = false};
    f->templates->due_ms = 0;
    check(plan_templates_role(t, f->templates, &turn) == 0);
}

static void shipped(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct plan_template p;
    struct str prompt, full;
    open_all(t, &f);
    static const char *const categories[] = {"training", "nutrition"};
    for (size_t i = 0; i < 2; i++) {
        struct str category = str_of(categories[i]);
        ok(plan_template_get(t, &f.node, category, 0, &p) == 0 && p.is_default && p.degraded,
           "%s: the default is read from MySQL before Redis was told", categories[i]);
        ok(plan_template_fill(t, &p, object(t, "{\"goals\":\"get fit\",\"weeks\":2}"), &prompt,
                              &full) == 0,
           "%s: it can be filled (%s)", categories[i], task_error(t));
        ok(str_find(prompt, STR("\nWeeks: 2\n")) > 0 && str_find(prompt, STR("{{")) < 0,
           "%s: all of it", categories[i]);
    }
    round_of(t, &f);
    ok(plan_template_get(t, &f.node, STR("training"), 0, &p) == 0 && !p.degraded && p.id == 1,
       "from Redis after a round of the role");
    close_all(t, &f);
}

/* --- a slow loader, another node, and stores that are away --- */

static const struct admin_deed deed = {
    .action = "template.change", .admin_name = {"root", 4}, .address = {"local", 5}};

static struct plan_template read_one(struct task *t, struct fixture *f, int64_t id)
{
    struct plan_template p;
    check(plan_template_get(t, &f->node, STR("training"), id, &p) == 0);
    return p;
}

static void rename_to(struct task *t, struct fixture *f, struct plan_template *p, const char *name)
{
    p->name = str_of(name);
    check(plan_template_change(t, f->templates, p, &deed) == 0);
}

static struct plan_template add_one(struct task *t, struct fixture *f, const char *category)
{
    const char *why;
    struct plan_template p = {.category = str_of(category),
                              .subcategory = STR(""),
                              .name = STR("first"),
                              .text = str_printf(task_arena(t),
                                                 "Plan: %s\nStart date: {{start_date}}\n"
                                                 "Weeks: {{weeks}}\n",
                                                 category),
                              .variables_json = STR("[]")};
    check(plan_template_parse(task_arena(t), &p, &why) == 0);
    check(plan_template_add(t, f->templates, &p, &deed) == 0);
    return p;
}

/* A loader that has read the row before it was changed fills Redis afterwards. */
static void slow_loader(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    bool kept = false;
    open_all(t, &f);
    round_of(t, &f);
    struct plan_template p = add_one(t, &f, "training"), old = p;
    rename_to(t, &f, &p, "second");
    ok(plan_template_put(t, f.templates, &old, &kept) == 0 && kept, "an older row is refused");
    is_str(read_one(t, &f, p.id).name, STR("second"), "and is never seen");
    old = p;
    old.is_default = true; /* as if it had been the default when it was read */
    int64_t version;
    check(plan_template_make_default(t, f.templates, p.id, &deed, &version) == 0);
    ok(read_one(t, &f, 0).id == p.id, "a new default is seen at once");
    check(plan_template_make_default(t, f.templates, 1, &deed, &version) == 0);
    ok(plan_template_put(t, f.templates, &old, &kept) == 0 && kept && read_one(t, &f, 0).id == 1,
       "an old default does not come back");
    old = p = read_one(t, &f, p.id);
    check(plan_template_delete(t, f.templates, p.id, p.version, &deed) == 0);
    ok(plan_template_put(t, f.templates, &old, &kept) == 0 && kept,
       "nor does one that was deleted");
    is_int(plan_template_get(t, &f.node, STR("training"), p.id, &p), ERR_NOT_FOUND, "it is gone");
    close_all(t, &f);
}

/* The hash is lost, and Redis was told before: MySQL fills it. */
static void misses(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct plan_template p;
    open_all(t, &f);
    round_of(t, &f);
    check(redis_call(t, f.node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    p = read_one(t, &f, 0);
    ok(p.id == 1 && !p.degraded, "the default is loaded");
    struct str key = key_template(task_arena(t), STR("training"), 1);
    const struct redis_reply *r;
    check(redis_call(t, f.node.redis, key, &r, STR("PTTL"), key) == 0);
    ok(r->integer > 29LL * 24 * 3600 * 1000, "and fills Redis, for thirty days");
    check(redis_call(t, f.node.redis, key, NULL, STR("HSET"), key, STR("variables"), STR("[")) ==
          0);
    ok(read_one(t, &f, 1).variable_count > 5, "a hash that cannot be read is replaced");
    check(redis_call(t, f.node.redis, key, NULL, STR("SET"), key, STR("x")) == 0);
    ok(read_one(t, &f, 1).id == 1 && read_one(t, &f, 0).id == 1, "so is what is no hash");
    is_int(plan_template_get(t, &f.node, STR("nutrition"), 1, &p), ERR_NOT_FOUND,
           "a template is found in its category only");
    is_int(plan_template_get(t, &f.node, STR("no such"), 0, &p), ERR_NOT_FOUND, "not a category");
    is_int(plan_template_get(t, &f.node, STR("none"), 0, &p), ERR_NOT_FOUND, "an empty one");
    is_int(plan_template_get(t, &f.node, STR("training"), -1, &p), ERR_NOT_FOUND, "not an id");
    close_all(t, &f);
}

/* Two nodes: one changes while it is cut off from Redis, the other one tells Redis. */
static void outbox(struct task *t, void *arg)
{
    (void)arg;
    struct fixture here, there;
    open_all(t, &here);
    open_all(t, &there);
    round_of(t, &here);
    round_of(t, &there);
    struct plan_template p = add_one(t, &here, "training");
    is_str(read_one(t, &there, p.id).name, STR("first"), "another node sees it at once");
    /* Committed, and then the node has died: Redis was not told. */
    check(sql_call(t, here.node.sql, NULL,
                   "UPDATE prompt_template SET name = 'late', version = version + 1 WHERE id = ?",
                   sql_int(p.id)) == 0);
    round_of(t, &there);
    is_str(read_one(t, &here, p.id).name, STR("late"), "a round of any node tells it");
    struct sql_rows r;
    check(sql_call(t, here.node.sql, &r,
                   "SELECT COUNT(*) FROM prompt_template"
                   " WHERE told <> version") == 0);
    is_int(r.cells[0].i, 0, "and it need not be told again");
    close_all(t, &there);
    close_all(t, &here);
}

static void await_redis(struct task *t, struct fixture *f, bool up)
{
    while (redis_up(f->node.redis) != up)
        check(task_sleep(t, 2) == 0);
}

/* Redis is away, a template is changed, and Redis comes back as it was before. */
static void redis_away(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    const struct redis_reply *reply;
    open_all(t, &f);
    round_of(t, &f);
    struct plan_template p = add_one(t, &f, "training");
    check(redis_call(t, f.node.redis, STR_NULL, &reply, STR("SAVE")) == 0);
    store_redis_kill(&store);
    await_redis(t, &f, false);
    ok(read_one(t, &f, p.id).degraded, "Redis is away: from MySQL, degraded");
    rename_to(t, &f, &p, "changed");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    await_redis(t, &f, true);
    struct str key = key_template(task_arena(t), STR("training"), p.id);
    check(redis_call(t, f.node.redis, key, &reply, STR("HGET"), key, STR("name")) == 0);
    is_str(reply->str, STR("first"), "it comes back with what was");
    struct plan_template seen = read_one(t, &f, p.id);
    ok(str_eq(seen.name, STR("changed")) && seen.degraded, "which is not believed");
    round_of(t, &f);
    seen = read_one(t, &f, p.id);
    ok(str_eq(seen.name, STR("changed")) && !seen.degraded, "until it was told");
    close_all(t, &f);
}

static void mysql_away(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct plan_template p, *list;
    size_t count;
    bool degraded;
    open_all(t, &f);
    round_of(t, &f);
    mariadb_stop(&server);
    ok(read_one(t, &f, 1).id == 1 && read_one(t, &f, 0).id == 1, "MySQL is away: from Redis");
    ok(plan_templates_list(t, f.templates, STR_NULL, &list, &count, &degraded) == 0 && degraded &&
           count == 2,
       "so are the defaults, as a list");
    int err = plan_template_get(t, &f.node, STR("training"), 9999, &p);
    ok(err == ERR_UNAVAILABLE, "what Redis does not have is not known: %s", err_name(err));
    mariadb_restart(&server);
    while (plan_template_get(t, &f.node, STR("training"), 9999, &p) != ERR_NOT_FOUND)
        check(task_sleep(t, 20) == 0);
    close_all(t, &f);
}

/* --- filling, without stores --- */

static const char *const attacks[] = {
    "{{weeks}}",
    "{{",
    "}}",
    "{",
    "}",
    "x\nWeeks: 12",
    "\r\rPlan: nutrition",
    "\t",
    "a\xc2\x85"
    "b",
    "\xe2\x80\xa8Weeks: 1",
    "\xe2\x80\xa9",
    "\x0b\x0c",
    "\xf3\xa0\x81\x81",
    "{{{{a}}}}",
    "$\\n%s%n",
};

static void values(void)
{
    struct arena a;
    arena_init(&a);
    const char *why = "";
    struct plan_template p = {
        .category = STR("training"),
        .text = STR("Plan: training\nStart date: {{start_date}}\nWeeks: {{weeks}}\n"
                    "{{a}}{{a}}{\nend {{a}}"),
        .variables_json = STR("[\"a\"]"),
    };
    check(plan_template_parse(&a, &p, &why) == 0);
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        struct json member = {.type = JSON_STRING, .key = STR("a"), .s = str_of(attacks[i])};
        struct json object = {.type = JSON_OBJECT, .count = 1, .child = &member};
        struct str prompt, full;
        size_t lines = 0;
        int err = plan_text_fill(&a, &p, &object, 0, &prompt, &full, &why);
        check(err == 0);
        for (size_t at = 0; at < prompt.n; at++)
            lines += prompt.p[at] == '\n';
        ok(lines == 4 && str_find(prompt, STR("{{")) < 0 && str_find(prompt, STR("}}")) < 0 &&
               str_starts(prompt, STR("Plan: training\nStart date: 1970-01-02\nWeeks: 4\n")),
           "value %zu adds neither a place nor a line", i);
    }
    arena_release(&a);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    values();
    mariadb_start(&server, NULL);
    store_redis_start(&store, NULL);
    tap_task(make_tables, NULL, true);
    tap_task(shipped, NULL, true);
    tap_task(slow_loader, NULL, true);
    tap_task(misses, NULL, true);
    tap_task(outbox, NULL, true);
    tap_task(redis_away, NULL, true);
    tap_task(mysql_away, NULL, true);
    store_redis_stop(&store);
    mariadb_release(&server);
    return tap_done();
}
