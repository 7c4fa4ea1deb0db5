/* Which papers owners stand for, on a real MariaDB. */
#include "engine/search/indexed.h"

#include "base/log.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

#define MANY 1500

static struct mariadb server;

static struct sql_pool *pool_of(struct task *t)
{
    return sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
}

static void add(struct task *t, struct sql_pool *p, uint64_t owner, const char *doi,
                const char *journal, int64_t year)
{
    check(sql_call(t, p, NULL,
                   "INSERT INTO embedding_paper (owner, doi, journal, year, version) VALUES"
                   " (?, ?, ?, ?, 1)",
                   sql_int((int64_t)owner), sql_text(str_of(doi)), sql_text(str_of(journal)),
                   sql_int(year)) == 0);
}

static void test_few(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report report;
    struct indexed_paper papers[6];
    size_t found = 9;
    check(schema_migrate(t, p, &report) == 0);
    is_int(indexed_find(t, p, NULL, 0, papers, &found), 0, "none is asked for");
    is_int((int64_t)found, 0, "and none found");
    const uint64_t owners[] = {INT64_MAX, 5, 7, 1, 5, UINT64_MAX};
    is_int(indexed_find(t, p, owners, 6, papers, &found), 0, "asked of an empty table");
    is_int((int64_t)found, 0, "nothing is known");
    add(t, p, 1, "10.1/a", "NATURE", 1999);
    add(t, p, 5, "10.1/e", "光学学报", 2020);
    add(t, p, INT64_MAX, "10.1/z", "Science", 2026);
    is_int(indexed_find(t, p, owners, 6, papers, &found), 0, "asked again");
    is_int((int64_t)found, 4, "those that are not known are left out");
    ok(papers[0].owner == INT64_MAX && papers[1].owner == 5 && papers[2].owner == 1 &&
           papers[3].owner == 5,
       "the others are in the order asked, as often as asked");
    is_str(papers[1].doi, STR("10.1/e"), "its DOI");
    is_str(papers[1].journal, STR("光学学报"), "its journal");
    is_int(papers[1].year, 2020, "its year");
    is_str(papers[0].doi, STR("10.1/z"), "each has its own");
    sql_pool_free(p);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    static uint64_t owners[2 * MANY];
    static struct indexed_paper papers[2 * MANY];
    size_t found;
    for (int i = 0; i < MANY; i++)
        add(t, p, (uint64_t)(1000 + 2 * i), str_printf(task_arena(t), "10.2/%d", i).p, "NATURE",
            1900 + i % 100);
    for (int i = 0; i < 2 * MANY; i++) /* in no order that the table has; each second is unknown */
        owners[i] = (uint64_t)(1000 + i * 1777 % (2 * MANY));
    is_int(indexed_find(t, p, owners, 2 * MANY, papers, &found), 0, "three statements");
    is_int((int64_t)found, MANY, "all that there are");
    size_t at = 0, wrong = 0;
    for (int i = 0; i < 2 * MANY; i++) {
        if (owners[i] % 2)
            continue;
        struct str doi =
            str_printf(task_arena(t), "10.2/%llu", (unsigned long long)(owners[i] - 1000) / 2);
        wrong += papers[at].owner != owners[i] || !str_eq(papers[at].doi, doi);
        at++;
    }
    is_int((int64_t)wrong, 0, "in the order asked");
    sql_pool_free(p);
}

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct indexed_paper paper;
    size_t found = 7;
    uint64_t owner = 1;
    mariadb_kill(&server);
    is_int(indexed_find(t, p, &owner, 1, &paper, &found), ERR_UNAVAILABLE, "MySQL is away");
    is_int((int64_t)found, 7, "nothing is said of papers");
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "indexed_test");
    mariadb_start(&server, NULL);
    tap_task(test_few, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_away, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
