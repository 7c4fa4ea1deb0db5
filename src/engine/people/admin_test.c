/* Admins and their audit log on real stores. */
#include "engine/people/admin.h"

#include <stdio.h>

#include "engine/people/cache_fixture.h"
#include "engine/people/session.h"

static const struct str hash = {"$2b$12$secretsecretsecret", 25};
static const struct admin_deed root = {
    .admin_uid = 1, .admin_name = {"root", 4}, .address = {"1.2.3.4", 7}, .action = "admin.test"};

static void open_empty(struct task *t, struct node *n)
{
    open_started(t, n);
    sql_do(t, n, "DELETE FROM admin_audit");
    sql_do(t, n, "DELETE FROM session");
}

static int64_t add(struct task *t, struct node *n, const char *name, bool super)
{
    int64_t uid = -1;
    int err = admin_create(t, n->sql, str_of(name), hash, super, &root, &uid);
    if (err)
        printf("# %s: %s\n", name, task_error(t));
    return err ? err : uid;
}

/* The last note: action, target, outcome, before, after. */
static struct str last_note(struct task *t, struct node *n)
{
    struct admin_row *rows;
    size_t count;
    check(admin_audit_list(t, n->sql, &(struct admin_filter){0}, 1, &rows, &count) == 0);
    if (count == 0)
        return STR("(none)");
    const struct admin_deed *d = &rows[0].deed;
    return str_printf(task_arena(t), "%.*s %.*s %.*s %.*s %.*s %.*s", STR_ARG(d->admin_name),
                      STR_ARG(rows[0].action), STR_ARG(d->target), STR_ARG(rows[0].outcome),
                      STR_ARG(d->before), STR_ARG(d->after));
}

static int64_t notes(struct task *t, struct node *n)
{
    return sql_number(t, n, "SELECT COUNT(*) FROM admin_audit");
}

static void test_create(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct admin a, *all;
    size_t count;
    open_empty(t, &n);
    int64_t one = add(t, &n, "Root", true), two = add(t, &n, "clerk", false);
    ok(one > 0 && two > one, "two admins");
    is_str(last_note(t, &n), STR("root admin.test clerk done  {\"role\": \"admin\"}"), "noted");
    is_int(add(t, &n, "ROOT", false), ERR_EXISTS, "a name is taken in every case");
    is_int(add(t, &n, "o'brien", false), ERR_INVALID, "a bad name is refused");
    is_int(notes(t, &n), 2, "which is not noted here");
    ok(admin_get(t, n.cache, one, &a) == 0 && a.super && !a.degraded, "a super admin");
    is_str(a.username, STR("Root"), "with a name");
    ok(admin_get(t, n.cache, two, &a) == 0 && !a.super, "and another one");
    is_int(say(t, &n, STR("HEXISTS"), key_admin_info(task_arena(t), one), STR("role"))->integer, 1,
           "in Redis");
    is_int(say(t, &n, STR("HEXISTS"), key_admin_info(task_arena(t), one), STR("password"))->integer,
           0, "without the password");
    say(t, &n, STR("HSET"), key_admin_info(task_arena(t), two), STR("role"), STR("king"));
    ok(admin_get(t, n.cache, two, &a) == 0 && !a.super, "a damaged record makes nobody super");
    ok(admin_find(t, n.sql, STR("rOOt"), &a) == 0 && a.uid == one && str_eq(a.password, hash),
       "found by name");
    is_int(admin_find(t, n.sql, STR("nobody"), &a), ERR_NOT_FOUND, "nobody is not");
    is_int(admin_get(t, n.cache, 999, &a), ERR_NOT_FOUND, "nor by number");
    ok(admin_list(t, n.sql, &all, &count) == 0 && count == 2 && all[0].uid == one &&
           all[0].created_ms > 0,
       "all of them");
    close_node(t, &n);
}

static void test_change(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct admin a;
    struct session s;
    char token[SESSION_TOKEN_BYTES], kept[SESSION_TOKEN_BYTES];
    open_empty(t, &n);
    int64_t one = add(t, &n, "one", true), two = add(t, &n, "two", false);
    struct session_start start = {SESSION_ADMIN, two, STR("two"), STR("1.1.1.1"), STR("x")};
    check(admin_get(t, n.cache, two, &a) == 0 && !a.super);
    is_int(admin_set_role(t, n.cache, two, true, &root), 0, "promoted");
    ok(admin_get(t, n.cache, two, &a) == 0 && a.super, "at once");
    is_str(last_note(t, &n),
           STR("root admin.test two done {\"role\": \"admin\"} {\"role\": \"super\"}"), "noted");
    check(session_begin(t, n.cache, &start, token) == 0 &&
          session_begin(t, n.cache, &start, kept) == 0 &&
          session_get(t, n.cache, SESSION_ADMIN, str_of(kept), &s) == 0);
    is_int(admin_set_password(t, n.cache, two, STR("other"), s.sid, &root), 0, "a new password");
    ok(admin_find(t, n.sql, STR("two"), &a) == 0 && str_eq(a.password, STR("other")), "is there");
    is_str(last_note(t, &n), STR("root admin.test two done  {\"password\": \"new\"}"),
           "noted without it");
    is_int(session_get(t, n.cache, SESSION_ADMIN, str_of(token), &s), ERR_UNAUTHENTICATED,
           "other sessions end");
    is_int(session_get(t, n.cache, SESSION_ADMIN, str_of(kept), &s), 0, "one is kept");
    is_int(session_get(t, n.cache, SESSION_USER, str_of(kept), &s), ERR_UNAUTHENTICATED,
           "which is no user's");
    is_int(admin_set_role(t, n.cache, one, false, &root), 0, "demoted, as another one is there");
    is_int(admin_set_role(t, n.cache, two, false, &root), ERR_CONFLICT, "but not the last one");
    is_int(admin_remove(t, n.cache, two, &root), ERR_CONFLICT, "who cannot be removed either");
    ok(strstr(task_error(t), "two is the last super admin") != NULL, "and is named");
    is_int(admin_set_role(t, n.cache, two, true, &root), 0, "a super admin may become one");
    int64_t before = notes(t, &n);
    is_int(admin_remove(t, n.cache, 999, &root), ERR_NOT_FOUND, "nobody is not removed");
    is_int(admin_set_password(t, n.cache, 999, hash, STR_NULL, &root), ERR_NOT_FOUND,
           "nor given a password");
    is_int(notes(t, &n), before, "nothing happened, nothing is noted");
    check(admin_set_role(t, n.cache, one, true, &root) == 0);
    is_int(admin_remove(t, n.cache, two, &root), 0, "removed");
    is_int(admin_get(t, n.cache, two, &a), ERR_NOT_FOUND, "is gone");
    is_int(session_get(t, n.cache, SESSION_ADMIN, str_of(kept), &s), ERR_UNAUTHENTICATED,
           "with all sessions");
    is_str(last_note(t, &n), STR("root admin.test two done {\"role\": \"super\"} "), "noted");
    is_int(marks(t, &n), 0, "no marks are left");
    close_node(t, &n);
}

struct remover {
    struct node *node;
    int64_t uid;
    bool demote;
    int err;
};

static void remove_task(struct task *t, void *arg)
{
    struct remover *r = arg;
    r->err = r->demote ? admin_set_role(t, r->node->cache, r->uid, false, &root)
                       : admin_remove(t, r->node->cache, r->uid, &root);
}

/* Several at once take each other away; one must stay, each time. */
static void test_last(struct task *t, void *arg)
{
    (void)arg;
    struct node n[2];
    open_empty(t, &n[0]);
    open_node(t, &n[1]);
    start_node(t, &n[1]);
    bool stayed = true, told = true;
    for (int round = 0; round < 10; round++) {
        struct remover r[3];
        struct group g;
        sql_do(t, &n[0], "DELETE FROM admin_info");
        group_init(&g, task_loop(t));
        for (int i = 0; i < 3; i++) {
            char name[] = {'b', 'o', 's', 's', (char)('0' + i), '\0'};
            r[i] = (struct remover){&n[i % 2], add(t, &n[0], name, true), i == 2, 0};
            check(r[i].uid > 0);
        }
        add(t, &n[0], "clerk", false);
        for (int i = 0; i < 3; i++)
            check(task_go(&g, "remover", remove_task, &r[i]) == 0);
        check(group_join(t, &g) == 0);
        int refused = 0;
        for (int i = 0; i < 3; i++)
            refused += r[i].err == ERR_CONFLICT;
        stayed = stayed && sql_number(t, &n[0],
                                      "SELECT COUNT(*) FROM admin_info"
                                      " WHERE role = 'super'") == 1;
        told = told && refused == 1;
    }
    ok(stayed, "one super admin stays, whoever is removed at the same time");
    ok(told, "and whoever tried is told");
    close_node(t, &n[1]);
    close_node(t, &n[0]);
}

static void test_degraded(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct admin a;
    open_empty(t, &n);
    int64_t one = add(t, &n, "one", true), two = add(t, &n, "two", true);
    check(admin_get(t, n.cache, one, &a) == 0 && admin_get(t, n.cache, two, &a) == 0);
    store_redis_kill(&store);
    for (int i = 0; i < 2000 && cache_trusts_redis(n.cache); i++)
        check(task_sleep(t, 5) == 0);
    ok(admin_get(t, n.cache, one, &a) == 0 && a.degraded && a.super, "from MySQL, without Redis");
    is_int(admin_set_role(t, n.cache, one, false, &root), 0, "changed");
    is_int(admin_remove(t, n.cache, two, &root), ERR_CONFLICT, "the rule holds");
    store_redis_spawn(&store, store_args);
    check(await_trust(t, &n));
    ok(admin_get(t, n.cache, one, &a) == 0 && !a.super && !a.degraded,
       "what Redis remembers is not believed");
    close_node(t, &n);
}

static int both(struct task *t, struct sql *c, void *arg)
{
    const struct admin_deed *d = arg;
    int err = admin_audit_add(t, c, d);
    return err ? err : task_fail(t, ERR_INTERNAL, "undone");
}

static int alone(struct task *t, struct sql *c, void *arg)
{
    return admin_audit_add(t, c, arg);
}

static void test_audit(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct admin_row *rows;
    size_t count;
    open_empty(t, &n);
    struct admin_deed d = root;
    d.action = "user.recharge";
    d.user_uid = 5;
    d.request_id = STR("r\"1");
    d.reason = STR("=1+1\n\"quoted\" \xf0\x9f\x98\x80");
    d.before = STR("{\"balance\":\"1.00\"}");
    d.after = STR("{\"balance\":\"2.00\"}");
    is_int(sql_tx(t, n.sql, both, &d), ERR_INTERNAL, "what is rolled back");
    is_int(notes(t, &n), 0, "was not done, and is not noted");
    is_int(sql_tx(t, n.sql, alone, &d), 0, "what is done");
    is_int(sql_tx(t, n.sql, alone, &d), ERR_EXISTS, "is done once for a request");
    d.outcome = ADMIN_REPEATED;
    is_int(admin_audit_note(t, n.sql, &d), 0, "a repeat is noted");
    d = (struct admin_deed){ADMIN_OPERATOR, .action = "admin.add"};
    d.outcome = ADMIN_REFUSED;
    char longest[3 * ADMIN_AUDIT_TEXT_CHARS + 4];
    for (int i = 0; i <= ADMIN_AUDIT_TEXT_CHARS; i++)
        memcpy(longest + 3 * i, "\xe5\xaf\x86", 3);
    d.error = str_from(longest, sizeof longest - 1);
    is_int(admin_audit_note(t, n.sql, &d), 0, "so is a refusal");
    check(admin_audit_list(t, n.sql, &(struct admin_filter){0}, 10, &rows, &count) == 0);
    is_int((int64_t)count, 3, "three rows");
    ok(rows[0].id > rows[1].id && rows[1].id > rows[2].id, "newest first");
    is_str(rows[0].outcome, STR("refused"), "its outcome");
    is_int((int64_t)rows[0].deed.error.n, (int64_t)3 * ADMIN_AUDIT_TEXT_CHARS,
           "texts are cut at a character");
    const struct admin_row *r = &rows[2];
    ok(r->deed.admin_uid == 1 && r->deed.user_uid == 5 && r->at_ms > 1700000000000,
       "who, whom, when");
    is_str(r->deed.address, STR("1.2.3.4"), "from where");
    is_str(r->action, STR("user.recharge"), "what");
    is_str(r->deed.request_id, STR("r\"1"), "for which request");
    is_str(r->deed.reason, STR("=1+1\n\"quoted\" \xf0\x9f\x98\x80"), "why");
    ok(r->deed.before.p && str_find(r->deed.before, STR("\"1.00\"")) > 0, "before");
    ok(r->deed.after.p && str_find(r->deed.after, STR("\"2.00\"")) > 0, "after");
    is_str(rows[1].deed.request_id, STR("r\"1"), "a repeat has the request, too");
    static const struct {
        struct admin_filter filter;
        size_t count;
    } cases[] = {
        {{.admin = {"ROOT", 4}}, 2},
        {{.admin = {"1", 1}}, 2},
        {{.admin = {"2", 1}}, 0},
        {{.action = {"admin.add", 9}}, 1},
        {{.action = {"admin", 5}}, 0},
        {{.user_uid = 5}, 2},
        {{.user_uid = 6}, 0},
        {{.admin = {"' OR 1=1 -- ", 12}}, 0},
        {{.user_uid = 5, .action = {"admin.add", 9}}, 0},
        {{.from_ms = 1}, 3},
        {{.to_ms = 4000000000000}, 3},
        {{.from_ms = 4000000000000}, 0},
        {{.to_ms = 1000, .admin = {"1", 1}}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct admin_row *some;
        check(admin_audit_list(t, n.sql, &cases[i].filter, 10, &some, &count) == 0);
        is_int((int64_t)count, (int64_t)cases[i].count, "filter %zu", i);
    }
    struct admin_filter behind = {.before_id = rows[1].id};
    check(admin_audit_list(t, n.sql, &behind, 10, &rows, &count) == 0);
    is_int((int64_t)count, 1, "behind a row");
    close_node(t, &n);
}

static void test_user_change(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct admin_deed by = root;
    by.action = "user.permission";
    struct user_change ch = {.uid = 1, .part = USER_PERMISSION, .number = 77, .by = &by};
    is_int(user_change(t, n.cache, &ch), 0, "a permission is changed");
    is_str(last_note(t, &n),
           STR("root user.permission  done {\"permission\": 10} {\"permission\": 77}"),
           "and noted");
    ch = (struct user_change){.uid = 1, .part = USER_BANNED, .number = 1, .by = &by};
    is_int(user_change(t, n.cache, &ch), 0, "a ban");
    is_str(last_note(t, &n),
           STR("root user.permission  done {\"banned\": false} {\"banned\": true}"), "is noted");
    ch = (struct user_change){.uid = 1, .part = USER_PASSWORD, .hash = hash, .by = &by};
    is_int(user_change(t, n.cache, &ch), 0, "a password");
    is_str(last_note(t, &n), STR("root user.permission  done  {\"password\": \"new\"}"),
           "is noted without it");
    ch.uid = 999;
    is_int(user_change(t, n.cache, &ch), ERR_NOT_FOUND, "nobody's");
    is_int(notes(t, &n), 3, "is not noted");
    struct str prefix;
    ok(user_name_prefix(task_arena(t), STR("JOS\xc3\x89"), &prefix) &&
           str_eq(prefix, STR("jos\xc3\xa9")),
       "how names begin is folded");
    ok(!user_name_prefix(task_arena(t), STR("a%"), &prefix) &&
           !user_name_prefix(task_arena(t), STR("\xff"), &prefix) &&
           !user_name_prefix(task_arena(t), STR(""), &prefix),
       "what no name begins with");
    close_node(t, &n);
}

int main(void)
{
    static void (*const tests[])(struct task *, void *) = {
        test_create, test_change, test_last, test_degraded, test_audit, test_user_change};
    return run_tests(tests, sizeof tests / sizeof *tests);
}
