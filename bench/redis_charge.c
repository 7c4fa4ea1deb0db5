/* redis_charge -- how many charges per second 1,024 tasks get through one connection.
 *
 *   bench_redis_charge URL SCRIPT COUNT [RANDOM]
 *
 * The DOI is "10.1000/" and a 12-digit number below RANDOM, as redis-benchmark makes it, so that
 * both do the same work. Prints charges per second. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/loop.h"
#include "wire/redis.h"

#define TASKS 1024

struct bench {
    const char *url;
    struct redis_script script;
    int64_t left, range, failed;
    struct redis *redis;
};

static void charge(struct task *t, void *arg)
{
    struct bench *b = arg;
    while (b->left-- > 0) {
        struct task_scope scope = task_scope(t);
        uint64_t n = loop_random(task_loop(t)) % (uint64_t)b->range;
        const struct str argv[] = {
            STR("user:1:balance"),
            STR("result:1:q1"),
            STR("billing_queue:1"),
            STR("user:1:seq"),
            STR("progress:1:q1"),
            STR("3"),
            str_printf(task_arena(t), "10.1000/%012llu", (unsigned long long)n),
            STR("{\"ai_result\":\"relevant\",\"block_key\":\"meta:Journal:2020\"}"),
            STR("1767225600000"),
        };
        const struct redis_reply *reply;
        int err = redis_script_run(t, b->redis, &b->script, argv[0], 5, 9, argv, &reply);
        if (err || reply->type != REDIS_INT || reply->integer == 3)
            b->failed++;
        task_scope_end(t, scope);
    }
}

static void run(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct group link, workers;
    group_init(&link, task_loop(t));
    group_init(&workers, task_loop(t));
    b->redis = redis_open(&link, &(struct redis_options){.url = b->url, .name = "bench"});
    check(b->redis);
    if (redis_call(t, b->redis, STR_NULL, NULL, STR("PING"))) {
        fprintf(stderr, "%s\n", task_error(t));
        exit(1);
    }
    int64_t count = b->left, start_us = loop_now_us(task_loop(t));
    for (int i = 0; i < TASKS; i++)
        check(task_go(&workers, "charge", charge, b) == 0);
    check(group_join(t, &workers) == 0);
    int64_t took_us = loop_now_us(task_loop(t)) - start_us;
    redis_close(b->redis);
    check(group_join(t, &link) == 0);
    printf("%.0f\n", (double)count * 1e6 / (double)took_us);
}

static struct str read_whole(const char *path)
{
    struct buf b;
    buf_init(&b);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(1);
    }
    size_t n;
    while ((n = fread(buf_reserve(&b, 4096), 1, 4096, f)) > 0)
        buf_added(&b, n);
    fclose(f);
    return buf_str(&b); /* as long as the program */
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s URL SCRIPT COUNT [RANDOM]\n", argv[0]);
        return 2;
    }
    log_setup(LOG_WARN, LOG_TEXT, "bench");
    struct bench b = {.url = argv[1],
                      .script = {.name = "charge", .text = read_whole(argv[2])},
                      .left = atoll(argv[3]),
                      .range = argc > 4 ? atoll(argv[4]) : 1000000000};
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "bench", run, &b) == 0);
    loop_run(l);
    loop_free(l);
    if (b.failed)
        fprintf(stderr, "%lld charges failed\n", (long long)b.failed);
    return b.failed != 0;
}
