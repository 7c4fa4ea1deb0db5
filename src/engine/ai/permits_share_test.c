/* Runs and jobs share the rate (10), over all nodes: the script, called as nodes call it, on a
 * clock that the test sets (tests/redis_model.h). */
#include <stdio.h>

#include "engine/ai/permits_private.h"
#include "engine/store/scripts.h"
#include "tests/redis_model.h"
#include "tests/tap.h"

#define NODES_MAX 3
#define MINUTE_MS (PERMITS_MINUTE_SLOTS * PERMITS_SLOT_MS)
#define BEAT_MS   1000
#define MANY      50
#define HEAD      6 /* of a reply */
#define LEASE     5

static struct redis_model *model;
static int64_t now_ms = 1767225600000; /* 2026-01-01 */

struct sim_node {
    int64_t waits[PERMITS_CLASSES]; /* requests now */
    bool keeps[PERMITS_CLASSES];    /* as many come as are served */
    int64_t every_ms;               /* one for jobs comes so often; 0: none */
    int64_t ends_ms;                /* it dies then, after the beginning; 0: never */
    int64_t due_ms, comes_ms;
    bool fresh;
};

struct sim {
    int64_t rpm, tpm, tokens[PERMITS_CLASSES];
    struct sim_node nodes[NODES_MAX];
    size_t count;
    int64_t begun_ms;
    int64_t given[PERMITS_CLASSES], wait_ms_max; /* of a job that comes alone */
};

static int64_t call(struct sim *s, size_t number)
{
    struct sim_node *n = &s->nodes[number];
    struct arena a;
    arena_init(&a);
    const struct str argv[] = {STR("ring"),
                               STR("window"),
                               STR("minute"),
                               STR("day"),
                               STR("month"),
                               str_int(&a, PERMITS_SLOT_MS),
                               str_int(&a, PERMITS_SLOTS),
                               n->fresh ? STR("1") : STR("0"),
                               str_int(&a, (int64_t)number),
                               STR("20"), /* share */
                               str_int(&a, n->waits[PERMITS_RUNS]),
                               str_int(&a, s->tokens[PERMITS_RUNS]),
                               str_int(&a, s->tokens[PERMITS_RUNS]),
                               str_int(&a, n->waits[PERMITS_JOBS]),
                               str_int(&a, s->tokens[PERMITS_JOBS]),
                               str_int(&a, s->tokens[PERMITS_JOBS]),
                               STR("0"),
                               STR("0"),
                               STR("1"), /* advance, large, keys */
                               STR("1"),
                               str_int(&a, s->rpm),
                               str_int(&a, s->tpm),
                               STR("-1"),
                               STR("-1"),
                               STR("-1")};
    const struct redis_reply *r = redis_model_script(model, &a, &script_permits_lease.redis, 5,
                                                     sizeof argv / sizeof *argv, argv);
    check(r->type == REDIS_ARRAY && r->count >= HEAD);
    n->fresh = false;
    for (size_t i = HEAD; i + LEASE <= r->count; i += LEASE) {
        size_t class = (size_t)r->items[i + 4]->integer;
        int64_t given = r->items[i + 2]->integer;
        check(class < PERMITS_CLASSES && given <= n->waits[class]);
        if (now_ms - s->begun_ms >= MINUTE_MS) /* the first minute is a burst */
            s->given[class] += given;
        n->waits[class] -= n->keeps[class] ? 0 : given;
    }
    int64_t wait_ms = r->items[0]->integer;
    arena_release(&a);
    return wait_ms;
}

/* When something happens on the node next. */
static int64_t next_ms(const struct sim *s, const struct sim_node *n)
{
    if (n->ends_ms && now_ms - s->begun_ms >= n->ends_ms)
        return INT64_MAX;
    return n->every_ms && n->comes_ms < n->due_ms ? n->comes_ms : n->due_ms;
}

static void step(struct sim *s)
{
    size_t first = 0;
    for (size_t i = 1; i < s->count; i++)
        if (next_ms(s, &s->nodes[i]) < next_ms(s, &s->nodes[first]))
            first = i;
    struct sim_node *n = &s->nodes[first];
    now_ms = next_ms(s, n);
    redis_model_clock(model, now_ms);
    bool comes = n->every_ms && n->comes_ms <= now_ms;
    if (comes) {
        n->waits[PERMITS_JOBS]++;
        n->comes_ms = now_ms + n->every_ms;
    }
    int64_t wait_ms = call(s, first);
    bool waits = n->waits[PERMITS_RUNS] || n->waits[PERMITS_JOBS];
    n->due_ms = now_ms + (waits ? wait_ms : BEAT_MS);
    if (n->waits[PERMITS_JOBS] && n->every_ms && now_ms - s->begun_ms >= 2 * MINUTE_MS) {
        int64_t ms = now_ms - (n->comes_ms - n->every_ms * n->waits[PERMITS_JOBS]);
        s->wait_ms_max = ms > s->wait_ms_max ? ms : s->wait_ms_max;
    }
}

/* Whole minutes after the first one; returns all that was given in them. */
static int64_t simulate(struct sim *s, int64_t minutes)
{
    static uint64_t run;
    redis_model_clear(model, ++run);
    s->begun_ms = now_ms;
    for (size_t i = 0; i < s->count; i++) {
        struct sim_node *n = &s->nodes[i];
        n->due_ms = n->comes_ms = now_ms + (int64_t)i * 37;
        n->fresh = i == 0;
        for (size_t c = 0; c < PERMITS_CLASSES; c++)
            n->waits[c] = n->keeps[c] ? MANY : 0;
    }
    while (now_ms < s->begun_ms + (minutes + 1) * MINUTE_MS)
        step(s);
    printf("# %lld for runs and %lld for jobs in %lld minutes\n", (long long)s->given[0],
           (long long)s->given[1], (long long)minutes);
    return s->given[PERMITS_RUNS] + s->given[PERMITS_JOBS];
}

#define ONLY_RUNS                                                                                  \
    {                                                                                              \
        .keeps = { true, false }                                                                   \
    }
#define ONLY_JOBS                                                                                  \
    {                                                                                              \
        .keeps = { false, true }                                                                   \
    }
#define BOTH                                                                                       \
    {                                                                                              \
        .keeps = { true, true }                                                                    \
    }

static void shared(const char *what, struct sim s, int64_t minutes)
{
    int64_t all = simulate(&s, minutes), limit = s.rpm * minutes;
    int64_t jobs = s.given[PERMITS_JOBS], slack = limit / 100 + 2;
    ok(all >= limit * 97 / 100 && all <= limit, "%s: the limit is used: %lld of %lld", what,
       (long long)all, (long long)limit);
    ok(jobs >= all / 5 - slack && jobs <= all / 5 + slack, "%s: a fifth is for jobs: %lld", what,
       (long long)jobs);
}

static void test_both(void)
{
    const int64_t limits[] = {10, 600};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct sim one = {.rpm = limits[i], .tpm = 1000000000, .tokens = {10, 10}, .count = 1};
        struct sim two = one, three = one;
        char what[64];
        one.nodes[0] = (struct sim_node)BOTH;
        two.count = 2;
        two.nodes[0] = (struct sim_node)ONLY_RUNS;
        two.nodes[1] = (struct sim_node)ONLY_JOBS;
        three.count = 3;
        three.nodes[0] = (struct sim_node)ONLY_JOBS;
        three.nodes[1] = (struct sim_node)BOTH;
        three.nodes[2] = (struct sim_node)ONLY_RUNS;
        int64_t minutes = limits[i] < 100 ? 5 : 2;
        snprintf(what, sizeof what, "%lld a minute, one node", (long long)limits[i]);
        shared(what, one, minutes);
        snprintf(what, sizeof what, "%lld a minute, a node each", (long long)limits[i]);
        shared(what, two, minutes);
        snprintf(what, sizeof what, "%lld a minute, three nodes", (long long)limits[i]);
        shared(what, three, minutes);
    }
}

static void test_alone(void)
{
    struct sim s = {.rpm = 600, .tpm = 1000000000, .tokens = {10, 10}, .count = 1};
    s.nodes[0] = (struct sim_node)ONLY_JOBS;
    int64_t all = simulate(&s, 2);
    ok(all >= 1200 * 97 / 100, "jobs alone have all: %lld of 1200", (long long)all);
    s = (struct sim){.rpm = 600, .tpm = 1000000000, .tokens = {10, 10}, .count = 2};
    s.nodes[0] = (struct sim_node)ONLY_RUNS;
    all = simulate(&s, 2);
    ok(all >= 1200 * 97 / 100, "and runs alone, beside an idle node: %lld", (long long)all);
}

/* Jobs that want less than their share have it soon, and leave the rest to runs. */
static void test_few(void)
{
    struct sim s = {.rpm = 600, .tpm = 1000000000, .tokens = {10, 10}, .count = 2};
    s.nodes[0] = (struct sim_node)ONLY_RUNS;
    s.nodes[1] = (struct sim_node){.every_ms = 1500};
    ok(simulate(&s, 3) >= 1800 * 97 / 100, "with few jobs, too, the limit is used");
    ok(s.given[PERMITS_JOBS] >= 119 && s.nodes[1].waits[PERMITS_JOBS] <= 1,
       "all jobs are served: %lld, and those of the first minute",
       (long long)s.given[PERMITS_JOBS]);
    ok(s.wait_ms_max <= 3000, "none waits long, but for gaps of the limit: %lld ms",
       (long long)s.wait_ms_max);
}

/* If tokens are what is short, a fifth of these is for jobs. */
static void test_tokens(void)
{
    struct sim s = {.rpm = 100000, .tpm = 60000, .tokens = {100, 800}, .count = 2};
    s.nodes[0] = (struct sim_node)ONLY_RUNS;
    s.nodes[1] = (struct sim_node)ONLY_JOBS;
    (void)simulate(&s, 3);
    int64_t runs = s.given[PERMITS_RUNS] * 100, jobs = s.given[PERMITS_JOBS] * 800;
    ok(runs + jobs >= 180000 * 97 / 100, "the tokens are used: %lld", (long long)(runs + jobs));
    ok(jobs >= 32000 && jobs <= 40000, "a fifth of them is for jobs: %lld", (long long)jobs);
}

/* What a dead node waited for holds nothing up. */
static void test_dead(void)
{
    struct sim s = {.rpm = 600, .tpm = 1000000000, .tokens = {10, 10}, .count = 2};
    s.nodes[0] = (struct sim_node)ONLY_RUNS;
    s.nodes[1] = (struct sim_node){.keeps = {false, true}, .ends_ms = 2 * MINUTE_MS};
    ok(simulate(&s, 2) >= 1200 * 97 / 100, "a node with jobs dies: the limit is used");
    ok(s.given[PERMITS_JOBS] <= 600 / 5 + 8, "by runs: %lld", (long long)s.given[PERMITS_RUNS]);
}

int main(void)
{
    model = redis_model_new();
    test_both();
    test_alone();
    test_few();
    test_tokens();
    test_dead();
    redis_model_free(model);
    return tap_done();
}
