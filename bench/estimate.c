/* Milliseconds of an estimate over 500 journals and 10 years, and of a list of 30 journals with
 * 15 years each, on the stores of the settings: bench_estimate. Fills the catalog with made-up
 * journals first. The medians of many rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/papers/catalog.h"
#include "engine/setup/config.h"
#include "engine/setup/stores.h"

#define ROUNDS   201
#define JOURNALS 500

struct bench {
    struct group links;
    struct catalog catalog;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fifteen years each; the first thirty have the tag "thirty". */
static void fill(struct task *t, struct bench *b)
{
    static const char *const statements[] = {
        "REPLACE INTO info_tag VALUES ('thirty', 'made up')",
        "REPLACE INTO contentlist SELECT CONCAT('MADE UP ', seq), CONCAT('Journal number ', seq,"
        " ' that was made up'), '2010-2024', '10/31/2025', seq % 4 FROM seq_1_to_500",
        "REPLACE INTO contentlist_year_number SELECT CONCAT('MADE UP ', a.seq), CONCAT('{',"
        " GROUP_CONCAT('\"', y.seq, '\": ', 100 + (a.seq * y.seq) % 900 ORDER BY y.seq), '}')"
        " FROM seq_1_to_500 a JOIN seq_2010_to_2024 y GROUP BY a.seq",
        "REPLACE INTO info_paper_with_tag (Name, Tag)"
        " SELECT CONCAT('MADE UP ', seq), 'thirty' FROM seq_1_to_30",
    };
    struct catalog_size size;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        check(sql_call(t, b->catalog.sql, NULL, statements[i]) == 0);
    check(catalog_load(t, b->catalog.redis, b->catalog.sql, &size) == 0);
}

static void estimate(struct task *t, const struct bench *b)
{
    struct str names[JOURNALS], unknown;
    for (int i = 0; i < JOURNALS; i++)
        names[i] = str_printf(task_arena(t), "MADE UP %d", i + 1);
    struct catalog_choice c = {names, JOURNALS, 2013, 2022};
    struct catalog_estimate e;
    bool degraded = true;
    check(catalog_price(t, &b->catalog, &c, &e, &unknown, &degraded) == 0);
    check(e.papers > 0 && !degraded);
}

static void list(struct task *t, const struct bench *b)
{
    struct catalog_journal *journals;
    size_t count;
    bool degraded = true;
    struct str tag = STR("thirty");
    check(catalog_journals(t, &b->catalog, &tag, 1, false, &journals, &count, &degraded) == 0);
    check(count == 30 && journals[0].year_count == 15 && !degraded);
}

static double measure(struct task *t, const struct bench *b,
                      void (*what)(struct task *t, const struct bench *b))
{
    double ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct task_scope s = task_scope(t);
        int64_t began = loop_now_us(task_loop(t));
        what(t, b);
        ms[i] = (double)(loop_now_us(task_loop(t)) - began) / 1e3;
        task_scope_end(t, s);
    }
    qsort(ms, ROUNDS, sizeof *ms, compare);
    return ms[ROUNDS / 2];
}

static void run(struct task *t, void *arg)
{
    struct bench *b = arg;
    fill(t, b);
    printf("%.3f %.3f\n", measure(t, b, estimate), measure(t, b, list));
    redis_close(b->catalog.redis);
}

int main(void)
{
    struct arena a;
    struct config c;
    struct stores s;
    const char *why;
    arena_init(&a);
    check(config_load(&a, NULL, true, environ, &c, &why) == 0);
    check(stores_find(&a, &c, &s, &why) == 0);
    struct loop *l = loop_new(NULL);
    struct bench b = {0};
    struct group g;
    group_init(&g, l);
    group_init(&b.links, l);
    b.catalog.redis = redis_open(
        &b.links,
        &(struct redis_options){.url = s.redis_url, .password = s.redis_password, .name = "bench"});
    b.catalog.sql =
        sql_pool_new(l, &(struct sql_options){.url = s.mysql_url, .password = s.mysql_password});
    check(task_go(&g, "bench", run, &b) == 0);
    loop_run(l);
    sql_pool_free(b.catalog.sql);
    loop_free(l);
    arena_release(&a);
    return 0;
}
