#include "engine/people/switches.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/tap.h"

static struct mariadb server;

static struct sql_pool *pool_of(struct task *t)
{
    return sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
}

static bool becomes(struct task *t, const struct switches *s, bool on, int64_t within_ms)
{
    for (int64_t ms = 0; ms < within_ms && switch_on(s, SWITCH_REGISTRATION) != on; ms += 10)
        check(task_sleep(t, 10) == 0);
    return switch_on(s, SWITCH_REGISTRATION) == on;
}

static struct str text(struct task *t, struct sql_pool *p, const char *query)
{
    struct sql_rows r;
    check(sql_call(t, p, &r, query) == 0);
    return r.count && sql_row(&r, 0)[0].type == SQL_TEXT ? sql_row(&r, 0)[0].s : STR("(none)");
}

static int switch_set(struct task *t, struct switches *s, enum switch_name n, bool on,
                      int64_t admin_uid)
{
    struct admin_deed by = {ADMIN_OPERATOR, .admin_uid = admin_uid, .action = "switch.turn"};
    return switch_turn(t, s, n, on, &by);
}

static void test_switch(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report report;
    check(schema_migrate(t, p, &report) == 0);
    struct switches *one = switches_new(p), *two = switches_new(p);
    ok(switch_on(one, SWITCH_REGISTRATION), "anybody may register, unless somebody says no");
    struct group g;
    group_init(&g, task_loop(t));
    role_in(&g, switches_role, one, 500);
    role_in(&g, switches_role, two, 500);

    is_int(switch_set(t, one, SWITCH_REGISTRATION, false, 7), 0, "it is switched off");
    ok(!switch_on(one, SWITCH_REGISTRATION), "here at once");
    ok(becomes(t, two, false, 1500), "elsewhere soon");
    is_str(text(t, p, "SELECT value FROM setting WHERE name = 'registration' AND changed_by = 7"),
           STR("false"), "the table says so, and who did it");
    struct switches *later = switches_new(p);
    role_in(&g, switches_role, later, 500);
    ok(becomes(t, later, false, 1500), "who starts later learns it");

    is_int(switch_set(t, two, SWITCH_REGISTRATION, true, 0), 0, "and on again");
    ok(becomes(t, one, true, 1500), "everywhere");
    is_str(text(t, p, "SELECT value FROM setting WHERE version = 1 AND changed_by IS NULL"),
           STR("true"), "with its version");
    struct admin_deed by = {.admin_uid = 3,
                            .admin_name = STR("root"),
                            .address = STR("1.2.3.4"),
                            .action = "switch.turn"};
    ok(switch_on(one, SWITCH_NEW_RUNS), "runs are started, unless somebody says no");
    is_int(switch_turn(t, one, SWITCH_NEW_RUNS, false, &by), 0, "an admin turns one");
    ok(!switch_on(one, SWITCH_NEW_RUNS) && switch_on(one, SWITCH_REGISTRATION), "that one");
    is_str(text(t, p,
                "SELECT CONCAT(admin_name, ' ', JSON_VALUE(details, '$.target'), ' ',"
                " JSON_VALUE(details, '$.before.on'), ' ', JSON_VALUE(details, '$.after.on'))"
                " FROM admin_audit WHERE admin_uid = 3"),
           STR("root new_runs 1 0"), "which is noted");
    enum switch_name found;
    ok(switch_find(STR("new_runs"), &found) && found == SWITCH_NEW_RUNS &&
           !switch_find(STR("new"), &found),
       "switches have names");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    switches_free(one);
    switches_free(two);
    switches_free(later);
    sql_pool_free(p);
}

struct reading {
    struct switches *s;
    struct group g;
    bool on, turned, early;
};

static void turn_off(struct task *t, void *arg)
{
    struct reading *x = arg;
    x->turned = switch_set(t, x->s, SWITCH_NEW_RUNS, false, 0) == 0;
}

static int read_then_work(struct task *t, struct sql *c, void *arg)
{
    struct reading *x = arg;
    int err = switch_read(t, c, SWITCH_NEW_RUNS, &x->on);
    check(task_go(&x->g, "turn", turn_off, x) == 0);
    check(task_sleep(t, 300) == 0);
    x->early = x->turned;
    return err;
}

/* What a switch allows is over before the switch is off. */
static void test_read(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    check(sql_call(t, p, NULL, "DELETE FROM setting WHERE name = 'new_runs'") == 0);
    for (int i = 0; i < 2; i++) {
        struct reading x = {.s = switches_new(p)};
        group_init(&x.g, task_loop(t));
        check(sql_tx(t, p, read_then_work, &x) == 0 && x.on);
        check(group_join(t, &x.g) == 0);
        ok(!x.early && x.turned, "a change waits for a transaction that has read %s",
           i ? "the switch" : "that there is no row");
        check(switch_set(t, x.s, SWITCH_NEW_RUNS, true, 0) == 0);
        switches_free(x.s);
    }
    sql_pool_free(p);
}

static void test_odd_rows(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct switches *s = switches_new(p);
    struct group g;
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    log_setup(LOG_WARN, LOG_TEXT, "test");
    group_init(&g, task_loop(t));
    check(sql_call(t, p, NULL,
                   "UPDATE setting SET value = '\"no\"', version = version + 1"
                   " WHERE name = 'registration'") == 0);
    check(sql_call(t, p, NULL, "INSERT INTO setting VALUES ('other', '7', 0, NOW(3), NULL)") == 0);
    role_in(&g, switches_role, s, 500);
    check(task_sleep(t, 1200) == 0);
    ok(switch_on(s, SWITCH_REGISTRATION), "what is neither true nor false changes nothing");
    ptrdiff_t at = str_find(buf_str(&log), STR("expected is true or false, found is \"no\""));
    ok(at >= 0, "and is said");
    struct str rest = str_from(buf_str(&log).p + at + 1, log.len - (size_t)at - 1);
    ok(at < 0 || str_find(rest, STR("expected is true or false")) < 0, "once");
    check(sql_call(t, p, NULL, "UPDATE setting SET value = ' false' WHERE version > 1") == 0);
    ok(becomes(t, s, false, 1500), "a row that is mended counts");

    /* A slow reader brings an older row: simulated by a table that goes back. */
    check(switch_set(t, s, SWITCH_REGISTRATION, true, 1) == 0);
    check(sql_call(t, p, NULL,
                   "UPDATE setting SET value = 'false', version = 0"
                   " WHERE name = 'registration'") == 0);
    check(task_sleep(t, 1200) == 0);
    ok(switch_on(s, SWITCH_REGISTRATION), "an older version does not count");

    mariadb_kill(&server);
    check(task_sleep(t, 1200) == 0);
    ok(switch_on(s, SWITCH_REGISTRATION), "without MySQL the last value stays");
    ok(switch_set(t, s, SWITCH_REGISTRATION, false, 1) != 0, "and cannot be changed");
    ok(switch_on(s, SWITCH_REGISTRATION), "nor is it");
    ok(str_find(buf_str(&log), STR("a round fails: ")) >= 0, "that is said, too");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    log_capture(NULL);
    buf_release(&log);
    switches_free(s);
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    tap_task(test_switch, NULL, true);
    tap_task(test_read, NULL, true);
    tap_task(test_odd_rows, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
