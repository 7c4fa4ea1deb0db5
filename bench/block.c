/* Milliseconds to fetch one block of 500 papers from Redis and to read all titles and abstracts:
 * bench_block, on the stores of the settings. Takes the block that is nearest to 500 papers and
 * scales to 500; the median of many rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "corpus/paper.h"
#include "engine/papers/block.h"
#include "engine/setup/config.h"
#include "engine/setup/stores.h"

#define ROUNDS 101
#define PAPERS 500

struct bench {
    struct group links;
    struct redis *redis;
    struct sql_pool *sql;
    struct blocks *blocks;
    struct bibtex *reader;
};

static int read_block(struct task *t, struct bench *b, struct str journal, int64_t year, size_t *n)
{
    struct block block;
    int err = block_fetch(t, b->blocks, journal, year, &block);
    for (size_t i = 0; !err && i < block.count; i++) {
        struct str text;
        struct paper_fields f;
        err = block_unpack(t, b->blocks, task_arena(t), block.papers[i].packed, &text);
        if (!err)
            err = paper_read_bibtex(task_arena(t), b->reader, text, &f);
        check(err || f.title.n > 0);
    }
    *n = block.count;
    return err;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct sql_rows r;
    check(
        sql_call(t, b->sql, &r,
                 "SELECT journal, year FROM corpus_block ORDER BY ABS(papers - 500), journal, year "
                 "LIMIT 1") == 0);
    check(r.count == 1);
    double ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        size_t papers;
        struct task_scope s = task_scope(t);
        int64_t began = loop_now_us(task_loop(t));
        check(read_block(t, b, sql_row(&r, 0)[0].s, sql_row(&r, 0)[1].i, &papers) == 0);
        ms[i] = (double)(loop_now_us(task_loop(t)) - began) / 1e3 * PAPERS / (double)papers;
        task_scope_end(t, s);
    }
    qsort(ms, ROUNDS, sizeof *ms, compare);
    printf("%.3f\n", ms[ROUNDS / 2]);
    redis_close(b->redis);
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
    struct bench b = {.reader = bibtex_new(NULL, NULL)};
    struct group g;
    group_init(&g, l);
    group_init(&b.links, l);
    b.redis = redis_open(
        &b.links,
        &(struct redis_options){.url = s.redis_url, .password = s.redis_password, .name = "bench"});
    b.sql =
        sql_pool_new(l, &(struct sql_options){.url = s.mysql_url, .password = s.mysql_password});
    b.blocks = blocks_new(&(struct blocks_options){.redis = b.redis, .sql = b.sql});
    check(task_go(&g, "bench", run, &b) == 0);
    loop_run(l);
    blocks_free(b.blocks);
    sql_pool_free(b.sql);
    bibtex_free(b.reader);
    loop_free(l);
    arena_release(&a);
    return 0;
}
