/* Limits are used, and never more than that. */
#include "engine/ai/permits_fixture.h"

static int64_t now_us(struct task *t)
{
    return loop_now_us(task_loop(t));
}

#define HAMMER_SLOT_MS 20
#define HAMMER_MS      (PERMITS_MINUTE_SLOTS * HAMMER_SLOT_MS * 5 / 2)
/* A machine that stands still for 0.1 s spoils the lower limit, never the upper one. */
#define HAMMER_TRIES 3

/* Two nodes with fifty workers each. Returns the fewest of any minute after the first. */
static int64_t hammer(struct task *t, struct worker w, bool tokens, int64_t *most)
{
    struct node nodes[2];
    struct worker workers[2] = {w, w};
    struct group g;
    group_init(&g, task_loop(t));
    record.count = 0;
    for (size_t i = 0; i < 2; i++)
        open_node(t, &nodes[i], HAMMER_SLOT_MS);
    int64_t from = now_us(t) + (PERMITS_SLOTS + 1) * HAMMER_SLOT_MS * (int64_t)1000;
    for (size_t i = 0; i < 2; i++) {
        workers[i].record = &record;
        workers[i].node = &nodes[i];
        start_workers(&g, &workers[i], 50);
    }
    pause_ms(t, HAMMER_MS);
    int64_t to = now_us(t);
    stop_workers(t, &g);
    for (size_t i = 0; i < 2; i++)
        close_node(t, &nodes[i]);
    *most = most_in_a_minute(&record, HAMMER_SLOT_MS, 0, tokens);
    return fewest_in_a_minute(&record, HAMMER_SLOT_MS, from, to, tokens);
}

static void use_up(struct task *t, struct worker w, bool tokens, int64_t limit)
{
    int64_t fewest = 0, most = 0;
    const char *what = tokens ? "tokens" : "requests";
    for (int i = 0; i < HAMMER_TRIES && most <= limit && fewest < limit * 97 / 100; i++) {
        empty_stores(t);
        add_key(t, 1, tokens ? 1000000 : limit, tokens ? limit : 1000000000);
        fewest = hammer(t, w, tokens, &most);
        printf("# %lld to %lld %s in a minute\n", (long long)fewest, (long long)most, what);
    }
    ok(most <= limit, "in no minute more %s than the limit: %lld", what, (long long)most);
    ok(fewest >= limit * 97 / 100, "and in none fewer than 97 %%: %lld", (long long)fewest);
}

static void test_requests(struct task *t, void *arg)
{
    (void)arg;
    use_up(t, (struct worker){.tokens = 10, .used = 7}, false, 600);
}

static void test_tokens(struct task *t, void *arg)
{
    (void)arg;
    use_up(t, (struct worker){.tokens = 20, .used = 15, .hold_ms = 5}, true, 60000);
}

/* One node has only runs, the other one only jobs: these get a fifth, together they use all. */
static void test_shared(struct task *t, void *arg)
{
    (void)arg;
    struct node nodes[2];
    struct record sent[2];
    struct worker workers[2];
    struct group g;
    empty_stores(t);
    add_key(t, 1, 600, 1000000000);
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < 2; i++) {
        record_init(&sent[i]);
        open_node(t, &nodes[i], SLOT_MS);
        workers[i] = (struct worker){.node = &nodes[i],
                                     .record = &sent[i],
                                     .class = i ? PERMITS_JOBS : PERMITS_RUNS,
                                     .tokens = 10,
                                     .used = 10};
        start_workers(&g, &workers[i], 50);
    }
    pause_ms(t, PERMITS_SLOTS * SLOT_MS); /* after the burst of the first minute */
    size_t runs = sent[0].count, jobs = sent[1].count;
    pause_ms(t, 2 * PERMITS_MINUTE_SLOTS * SLOT_MS);
    struct permits_load l;
    check(permits_load(t, nodes[0].permits, &l) == 0);
    stop_workers(t, &g);
    runs = sent[0].count - runs;
    jobs = sent[1].count - jobs;
    printf("# %zu for runs, %zu for jobs\n", runs, jobs);
    ok(jobs * 100 >= (runs + jobs) * 18 && jobs * 100 <= (runs + jobs) * 22, "a fifth is for jobs");
    ok(l.jobs_requests >= 80 && l.jobs_requests <= 160, "and is known: %lld of about 120",
       (long long)l.jobs_requests);
    for (size_t i = 0; i < 2; i++) {
        close_node(t, &nodes[i]);
        free(sent[i].sends);
    }
}

/* Each key by its own limits, all of them used. */
static void test_several(struct task *t, void *arg)
{
    (void)arg;
    empty_stores(t);
    add_key(t, 1, 100, 1000000000);
    add_key(t, 2, 1000, 1000000000);
    add_key(t, 3, 1000000, 3000);
    struct node n;
    open_node(t, &n, SLOT_MS);
    record.count = 0;
    struct worker w = {.node = &n, .record = &record, .tokens = 10, .used = 10};
    struct group g;
    group_init(&g, task_loop(t));
    start_workers(&g, &w, 50);
    pause_ms(t, 2 * PERMITS_MINUTE_SLOTS * SLOT_MS + 300);
    struct permits_load l;
    check(permits_load(t, n.permits, &l) == 0);
    stop_workers(t, &g);
    int64_t limits[] = {100, 1000, 300};
    for (int64_t key = 1; key <= 3; key++) {
        int64_t most = most_in_a_minute(&record, SLOT_MS, key, false);
        ok(most <= limits[key - 1] && most >= limits[key - 1] * 97 / 100,
           "key %lld is used up to its limit: %lld", (long long)key, (long long)most);
    }
    is_int(l.keys_active, 3, "three keys are active");
    is_int(l.requests_limit, 1001100, "their limits are added up");
    ok(l.requests_used >= 1300 && l.requests_used <= 1400, "and what was used: %lld",
       (long long)l.requests_used);
    is_int(l.tokens_used, 10 * l.requests_used, "tokens, too");
    int64_t sum = 0, busy = 0;
    for (size_t i = 0; i < PERMITS_SECONDS; i++) {
        sum += l.requests[i];
        busy += l.requests[i] > 0;
    }
    ok(sum == l.requests_used && busy > 50, "second by second: %lld have some", (long long)busy);
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_requests, NULL, true);
    tap_task(test_tokens, NULL, true);
    tap_task(test_several, NULL, true);
    tap_task(test_shared, NULL, true);
    return stop_stores();
}
