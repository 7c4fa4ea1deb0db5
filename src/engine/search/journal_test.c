/* Numbers of journals, on a real MariaDB. */
#include "engine/search/journal.h"

#include "base/log.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

#define TASKS 6
#define MANY  1500

static struct mariadb server;

static struct sql_pool *pool_of(struct task *t)
{
    return sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
}

static void test_numbers(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report report;
    ok(schema_migrate(t, p, &report) == 0, "the tables are made: %s", task_error(t));
    const struct str names[] = {STR("NATURE"), STR(""),        STR("光学学报"), STR("NATURE"),
                                STR("Nature"), STR("NATURE "), STR_NULL};
    uint16_t n[7], again[7];
    memset(n, 0xff, sizeof n);
    is_int(journal_numbers(t, p, names, 7, n), 0, "asked");
    ok(n[0] == 0 && n[2] == 0 && n[6] == 0, "nobody has a number yet");
    is_int(journal_numbers_give(t, p, names, 7, n), 0, "given");
    ok(n[0] && n[2] && n[0] == n[3] && n[0] != n[2] && n[4] != n[0] && n[5] != n[0] && n[5],
       "each name has its own, by bytes");
    ok(n[1] == 0 && n[6] == 0, "but no name has none");
    const struct str more[] = {STR("Science"), STR("NATURE"), STR("光学学报")};
    is_int(journal_numbers_give(t, p, more, 3, again), 0, "more of them");
    ok(again[1] == n[0] && again[2] == n[2] && again[0] > n[5], "numbers are kept");
    is_int(journal_numbers(t, p, names, 7, again), 0, "asked again");
    ok(memcmp(again, n, sizeof n) == 0, "as they were given");
    is_int(journal_numbers_give(t, p, NULL, 0, NULL), 0, "none is asked for");
    sql_pool_free(p);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    static struct str names[MANY];
    static uint16_t numbers[MANY], again[MANY];
    static bool taken[JOURNAL_NUMBERS_MAX + 1];
    for (int i = 0; i < MANY; i++)
        names[i] = str_printf(task_arena(t), "Journal of %d", i);
    is_int(journal_numbers_give(t, p, names, MANY, numbers), 0, "more than one statement asks for");
    int twice = 0;
    for (int i = 0; i < MANY; i++) {
        twice += taken[numbers[i]] || !numbers[i];
        taken[numbers[i]] = true;
    }
    is_int(twice, 0, "each has its own");
    check(journal_numbers(t, p, names, MANY, again) == 0);
    ok(memcmp(numbers, again, sizeof again) == 0, "and keeps it");
    sql_pool_free(p);
}

/* --- at the same time --- */

struct hand {
    struct sql_pool *pool;
    uint16_t numbers[20];
    int err;
};

static void give(struct task *t, void *arg)
{
    struct hand *h = arg;
    struct str names[20];
    for (int i = 0; i < 20; i++)
        names[i] = str_printf(task_arena(t), "Both want %d", i);
    h->err = journal_numbers_give(t, h->pool, names, 20, h->numbers);
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    check(sql_call(t, p, NULL, "DELETE FROM journal_number") == 0);
    struct hand hands[TASKS];
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < TASKS; i++) {
        hands[i] = (struct hand){.pool = p};
        check(task_go(&g, "give", give, &hands[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    int wrong = 0;
    for (int i = 0; i < TASKS; i++)
        wrong += hands[i].err != 0 ||
                 memcmp(hands[i].numbers, hands[0].numbers, sizeof hands[i].numbers) != 0;
    is_int(wrong, 0, "all who want them at once get the same, in an empty table, too");
    sql_pool_free(p);
}

static void test_full(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    check(sql_call(t, p, NULL, "INSERT INTO journal_number VALUES (?, 'the last but one')",
                   sql_int(JOURNAL_NUMBERS_MAX - 1)) == 0);
    const struct str two[] = {STR("one"), STR("two")};
    uint16_t n[2] = {7, 7};
    is_int(journal_numbers_give(t, p, two, 2, n), ERR_LIMIT, "two do not fit: %s", task_error(t));
    is_int(journal_numbers(t, p, two, 2, n), 0, "nothing changed");
    ok(n[0] == 0 && n[1] == 0, "neither has one");
    is_int(journal_numbers_give(t, p, two, 1, n), 0, "one does");
    is_int(n[0], JOURNAL_NUMBERS_MAX, "the last");
    is_int(journal_numbers_give(t, p, two, 1, n), 0, "which it has from now on");
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "journal_test");
    mariadb_start(&server, NULL);
    tap_task(test_numbers, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_together, NULL, true);
    tap_task(test_full, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
