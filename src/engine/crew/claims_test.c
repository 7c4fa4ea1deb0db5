/* Runs and jobs of one user share a permission, on a clock that the test sets. */
#include "engine/store/scripts.h"
#include "tests/redis_model.h"
#include "tests/tap.h"

#define ROUND_MS 500

static struct redis_model *model;
static struct arena arena;
static int64_t now_ms = 1767225600000; /* 2026-01-01 */

static void pass(int64_t ms)
{
    now_ms += ms;
    redis_model_clock(model, now_ms);
}

static void begin(void)
{
    static uint64_t run;
    redis_model_clear(model, ++run);
    pass(0);
}

/* Of one node; "a" and "b" live. */
static int64_t claim(const char *node, const char *part, int64_t permission, int64_t has,
                     int64_t wants)
{
    struct str argv[] = {STR("workers"),
                         str_int(&arena, permission),
                         str_of(node),
                         str_of(part),
                         STR("2"),
                         STR("a"),
                         STR("b"),
                         strcmp(part, "jobs") ? STR("q1") : STR("jobs"),
                         str_int(&arena, has),
                         str_int(&arena, wants)};
    const struct redis_reply *r = redis_model_script(model, &arena, &script_workers_claim.redis, 1,
                                                     sizeof argv / sizeof *argv, argv);
    check(r->type == REDIS_ARRAY && r->count == 1);
    return r->items[0]->integer;
}

static void test_together(void)
{
    begin();
    is_int(claim("a", "runs", 10, 0, 6), 6, "six workers");
    is_int(claim("a", "jobs", 10, 0, 6), 4, "and four jobs are ten, on one node");
    is_int(claim("b", "jobs", 10, 0, 1), 0, "none on the other");
    is_int(claim("a", "jobs", 10, 4, 4), 4, "the report of jobs keeps the workers,");
    is_int(claim("a", "runs", 10, 5, 5), 5, "and that of workers the jobs:");
    is_int(claim("b", "jobs", 10, 0, 5), 1, "one was free");
    begin();
    is_int(claim("a", "jobs", 0, 0, 1), 0, "a permission of 0 lets no job begin");
    is_int(claim("a", "runs", 0, 0, 1), 0, "and no worker");
}

/* A side that is alone has everything; when the other comes, it yields. */
static void test_yields(void)
{
    begin();
    is_int(claim("a", "runs", 10, 0, 10), 10, "runs alone have all ten");
    is_int(claim("b", "jobs", 10, 0, 5), 0, "nothing is free for jobs");
    is_int(claim("a", "runs", 10, 10, 10), 8, "so two workers are told to end");
    is_int(claim("b", "jobs", 10, 0, 5), 0, "but count until they have");
    is_int(claim("a", "runs", 10, 8, 10), 8, "and no others take their place");
    is_int(claim("b", "jobs", 10, 0, 5), 2, "because these are for jobs");
    is_int(claim("b", "jobs", 10, 2, 5), 2, "a fifth, and no more");
    pass(1000);
    is_int(claim("a", "runs", 10, 8, 10), 8, "the rest stays with the runs");
    is_int(claim("b", "jobs", 10, 0, 0), 0, "when no job waits");
    is_int(claim("a", "runs", 10, 8, 10), 10, "runs have all again");

    begin();
    is_int(claim("a", "jobs", 10, 0, 10), 10, "jobs alone have all ten");
    is_int(claim("b", "runs", 10, 0, 10), 0, "runs wait");
    is_int(claim("a", "jobs", 10, 10, 10), 10, "jobs are not interrupted,");
    is_int(claim("a", "jobs", 10, 7, 10), 7, "but those that end are not followed by others");
    is_int(claim("b", "runs", 10, 0, 10), 3, "their place is for the runs");
    is_int(claim("a", "jobs", 10, 1, 2), 2, "until only a fifth is jobs");
    begin();
    claim("a", "runs", 2, 0, 2);
    claim("a", "jobs", 2, 0, 1);
    is_int(claim("a", "runs", 2, 2, 2), 1, "of two calls one is for jobs");
}

/* A note of a side that is gone holds nothing up for long. */
static void test_stale_note(void)
{
    begin();
    claim("a", "runs", 10, 0, 10);
    claim("b", "jobs", 10, 0, 5);
    pass(15000);
    is_int(claim("a", "runs", 10, 10, 10), 10, "jobs that ask no more are forgotten");
}

/* A permission of one, of which both want it all the time. Each side holds it for its turn. */
static void test_turns(void)
{
    int64_t runs = 0, jobs = 0, job_ms = 0, both = 0, runs_ms = 0, jobs_ms = 0;
    begin();
    for (int64_t i = 0; i < 2400; i++, pass(ROUND_MS)) { /* twenty minutes */
        runs = claim("a", "runs", 1, runs, 1);           /* a worker ends within a round */
        job_ms = jobs ? job_ms + ROUND_MS : 0;
        if (job_ms >= 8000) /* a job takes so long */
            jobs = claim("b", "jobs", 1, 0, 0);
        if (i % 10 == 0 && !jobs) /* a held job is tried every five seconds */
            jobs = claim("b", "jobs", 1, 0, 1);
        both += runs && jobs;
        runs_ms += runs ? ROUND_MS : 0;
        jobs_ms += jobs ? ROUND_MS : 0;
    }
    is_int(both, 0, "never both at once");
    ok(runs_ms > 1200000 / 3, "runs have their time: %lld s of 1200", (long long)runs_ms / 1000);
    ok(jobs_ms > 1200000 / 8, "and jobs theirs: %lld s", (long long)jobs_ms / 1000);
}

/* What a dead node, or an older Redis, has left behind. */
static void test_left_behind(void)
{
    begin();
    is_int(claim("dead", "jobs", 5, 0, 5), 5, "a node that is not among the living");
    is_int(claim("a", "jobs", 5, 0, 5), 0, "counts for a moment");
    pass(2000);
    is_int(claim("a", "jobs", 5, 0, 5), 5, "and then no more");
    pass(14999);
    is_int(claim("b", "jobs", 5, 0, 5), 0, "a living node's jobs count while it renews them");
    pass(1);
    is_int(claim("b", "jobs", 5, 0, 5), 5, "and not for ever: an older Redis brought them back");
}

int main(void)
{
    arena_init(&arena);
    model = redis_model_new();
    test_together();
    test_yields();
    test_stale_note();
    test_turns();
    test_left_behind();
    redis_model_free(model);
    arena_release(&arena);
    return tap_done();
}
