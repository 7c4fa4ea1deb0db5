/* Users in a real MariaDB, with a real Redis in front. */
#include <stdio.h>

#include "engine/people/cache_fixture.h"

static const struct str hash = {"$2b$12$secretsecretsecret", 25};

static int create(struct task *t, struct node *n, struct str name, int64_t cents, int64_t *uid)
{
    struct user_new u = {
        .username = name, .password_hash = hash, .permission = 3, .opening_cents = cents};
    return user_create(t, n->sql, &u, uid);
}

static int64_t count_of(struct task *t, struct node *n, const char *statement, int64_t uid)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement, sql_int(uid)) == 0);
    return r.cells[0].i;
}

static void test_create(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    int64_t poor = 0, rich = 0;
    open_node(t, &n);
    reset(t, &n);
    sql_do(t, &n, "DELETE FROM billing_log");
    is_int(create(t, &n, STR("Asher_李"), 0, &poor), 0, "a user is made");
    is_int(create(t, &n, STR("Bertha"), 12345, &rich), 0, "and one with money");
    ok(poor > 0 && rich > poor, "with numbers of their own");
    is_int(count_of(t, &n, "SELECT COUNT(*) FROM billing_log WHERE uid = ?", poor), 0,
           "no money, no record of it");
    is_int(count_of(t, &n,
                    "SELECT COUNT(*) FROM billing_log WHERE uid = ? AND source = 'mysql' AND"
                    " number = 1 AND kind = 'opening' AND cents = 12345 AND"
                    " ABS(TIMESTAMPDIFF(SECOND, at, UTC_TIMESTAMP())) < 60",
                    rich),
           1, "an opening is recorded");
    is_int(count_of(t, &n,
                    "SELECT COUNT(*) FROM user_info WHERE uid = ? AND balance = 123.45 AND"
                    " move_no = 1 AND billed_seq = 0",
                    rich),
           1, "and is the balance");
    is_int(count_of(t, &n, "SELECT move_no FROM user_info WHERE uid = ?", poor), 0, "no move");
    struct user u;
    is_int(user_get(t, n.cache, poor, &u), 0, "a user is read by number");
    is_str(u.username, STR("Asher_李"), "name as it was given");
    is_str(u.password, hash, "hash");
    ok(u.permission == 3 && !u.banned && u.version == 0 && u.uid == poor, "the rest");
    int64_t uid = -7;
    is_int(create(t, &n, STR("BERTHA"), 0, &uid), ERR_EXISTS, "a name is taken in every case");
    is_int(uid, -7, "and the number stays as it was");
    is_int(create(t, &n, STR("o'brien"), 0, &uid), ERR_INVALID, "a bad name is refused");
    ok(!strstr(task_error(t), "secret"), "no hash in the message");
    is_int(user_get(t, n.cache, 999, &u), ERR_NOT_FOUND, "nobody");
    close_node(t, &n);
}

struct rival {
    struct node *node;
    struct str name;
    int err;
    int64_t uid;
};

static void rival_task(struct task *t, void *arg)
{
    struct rival *r = arg;
    r->err = create(t, r->node, r->name, 100, &r->uid);
}

static void test_rivals(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    reset(t, &n);
    sql_do(t, &n, "DELETE FROM billing_log");
    struct rival r[4] = {{&n, STR("asher"), 1, 0},
                         {&n, STR("ASHER"), 1, 0},
                         {&n, STR("Asher"), 1, 0},
                         {&n, STR("ａｓｈｅｒ"), 1, 0}};
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < 4; i++)
        check(task_go(&g, "rival", rival_task, &r[i]) == 0);
    check(group_join(t, &g) == 0);
    int made = 0, taken = 0;
    for (size_t i = 0; i < 4; i++) {
        made += r[i].err == 0;
        taken += r[i].err == ERR_EXISTS;
    }
    is_int(made, 1, "of four at once with the same name one is made");
    is_int(taken, 3, "the others hear that it is taken");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM user_info WHERE username_folded = 'asher'"), 1,
           "one row");
    is_int(sql_number(t, &n, "SELECT COUNT(*) FROM billing_log"), 1, "one opening");
    close_node(t, &n);
}

static void test_find(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct user u;
    int64_t uid;
    open_node(t, &n);
    reset(t, &n);
    check(create(t, &n, STR("José"), 0, &uid) == 0);
    static const struct str found[] = {STR("José"), STR("JOSÉ"), STR("jose\u0301"), STR("Ｊosé")};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        ok(user_find(t, n.sql, found[i], &u) == 0 && u.uid == uid, "found as %.*s",
           STR_ARG(found[i]));
    is_str(u.username, STR("José"), "it has the name it was given");
    static const struct str lost[] = {STR("jose"),        STR("josé "),  STR("jos%"),
                                      STR("' OR ''='"),   STR("jos\0é"), STR(""),
                                      STR("\xff\xff\xff")};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        is_int(user_find(t, n.sql, lost[i], &u), ERR_NOT_FOUND, "not found, %zu", i);
    close_node(t, &n);
}

static void test_change(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct user u;
    open_started(t, &n);
    check(user_get(t, n.cache, 1, &u) == 0 && u.permission == 10);
    is_int(user_set_permission(t, n.cache, 1, 1000), 0, "a permission is set");
    ok(user_get(t, n.cache, 1, &u) == 0 && u.permission == 1000 && u.version == 1, "and read");
    is_int(
        user_change(t, n.cache,
                    &(struct user_change){.uid = 1, .part = USER_PASSWORD, .hash = STR("other")}),
        0, "a password");
    ok(user_get(t, n.cache, 1, &u) == 0 && u.version == 2, "counts");
    is_str(u.password, STR("other"), "and is read");
    is_int(user_set_banned(t, n.cache, 1, true), 0, "a ban");
    ok(user_get(t, n.cache, 1, &u) == 0 && u.banned && u.version == 3, "is read");
    is_int(user_set_banned(t, n.cache, 1, true), 0, "again");
    ok(user_get(t, n.cache, 1, &u) == 0 && u.banned && !u.degraded, "makes no difference");
    is_int(user_set_banned(t, n.cache, 1, false), 0, "its end");
    ok(user_get(t, n.cache, 1, &u) == 0 && !u.banned, "is read");
    is_int(marks(t, &n), 0, "no marks are left");
    is_int(user_set_permission(t, n.cache, 1, 1001), ERR_INVALID, "too large");
    is_int(user_set_permission(t, n.cache, 1, -1), ERR_INVALID, "negative");
    is_int(user_set_permission(t, n.cache, 999, 1), ERR_NOT_FOUND, "nobody's");
    is_int(user_change(t, n.cache,
                       &(struct user_change){.uid = 999, .part = USER_PASSWORD, .hash = STR("x")}),
           ERR_NOT_FOUND, "nobody's password");
    is_int(marks(t, &n), 0, "which leaves no mark");
    check(user_find(t, n.sql, STR("user1"), &u) == 0);
    ok(u.permission == 1000 && u.version == 5, "MySQL has it all");
    close_node(t, &n);
}

static void test_damaged(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct user u;
    open_started(t, &n);
    say(t, &n, STR("HSET"), STR("user:1:info"), STR("version"), STR("0"), STR("what"), STR("ever"));
    ok(user_get(t, n.cache, 1, &u) == 0 && u.permission == 10, "a damaged record is gone round");
    say(t, &n, STR("HSET"), STR("user:1:info"), STR("username"), STR("x"), STR("password"),
        STR("y"), STR("banned"), STR("no"), STR("permission"), STR("many"));
    ok(user_get(t, n.cache, 1, &u) == 0 && u.permission == 10, "one without numbers, too");
    is_str(u.username, STR("User1"), "it comes from MySQL");
    is_str(say(t, &n, STR("HGET"), STR("user:1:info"), STR("username"))->str, STR("User1"),
           "and replaces the damaged one");
    close_node(t, &n);
}

static bool taken(struct task *t, struct node *n, const char *name)
{
    bool yes = false;
    check(user_name_taken(t, n->sql, str_of(name), &yes) == 0);
    return yes;
}

static void test_lookalike(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    int64_t uid;
    open_node(t, &n);
    reset(t, &n);
    sql_do(t, &n, "DELETE FROM admin_info");
    sql_do(t, &n,
           "INSERT INTO admin_info (username, username_folded, password)"
           " VALUES ('Admin', 'admin', 'x')");
    ok(taken(t, &n, "admin") && taken(t, &n, "ADMIN"), "the name of an admin, in any case");
    ok(taken(t, &n, "\u0430dmin"), "with a Cyrillic a");
    ok(taken(t, &n, "\u0391DM\u0399\u039d"), "with Greek capitals");
    ok(taken(t, &n, "adm\u0131n"), "with an i that has no dot");
    ok(!taken(t, &n, "admins") && !taken(t, &n, "adman"), "others are free");
    check(create(t, &n, STR("paxcoop"), 0, &uid) == 0);
    ok(taken(t, &n, "\u0440\u0430\u0445\u0441\u043e\u043e\u0440"), "a user, wholly in Cyrillic");
    check(create(t, &n, STR("\u0430\u043d\u0442\u043e\u043d"), 0, &uid) == 0);
    ok(taken(t, &n, "AHTOH"), "Latin capitals like a Cyrillic name");
    ok(taken(t, &n, "\u0391\u041d\u03a4\u041e\u041d"), "two scripts like one");
    ok(!taken(t, &n, "anton"), "what only means the same is free");
    ok(!taken(t, &n, "\u674e\u660e\u540c"), "and so is Chinese");
    close_node(t, &n);
}

int main(void)
{
    static void (*const tests[])(struct task *, void *) = {
        test_create, test_rivals, test_find, test_change, test_damaged, test_lookalike};
    return run_tests(tests, sizeof tests / sizeof *tests);
}
