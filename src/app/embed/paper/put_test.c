/* The papers of many units in full batches of the service. */
#include "app/embed/paper/paper_fixture.h"

#define YEARS 40
#define EACH  25 /* papers of a year: no batch */

static int batches_of(int papers)
{
    return (papers + BATCH - 1) / BATCH;
}

static void years(struct task *t, int count, int papers)
{
    for (int i = 0; i < count; i++)
        many(t, 1980 + i, papers);
    want(t, PAPERS_ALL);
    go(t);
}

/* How many units are read at once, and how soon, is not certain: a few calls more are fine. */
static void test_full(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    thinks_ms = 20;
    years(t, YEARS, EACH);
    ok(comes_to_rest(t) && all_agree(t), "units that fill no batch each are indexed");
    is_int((int64_t)texts, YEARS * EACH, "each paper once");
    ok(partial <= batches_of(YEARS * EACH) / 4,
       "nearly all batches are full: %d of %d puts are not", partial, asked);
    close_world(t);
}

/* Those that come while others are put wait for no more than a call. */
static void test_ahead(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    thinks_ms = 300;
    years(t, 4, 300);
    ok(comes_to_rest(t) && all_agree(t), "large units are indexed");
    ok(asking_most > 2, "the next papers are ready before a put has ended: %d at once",
       asking_most);
    ok(asking_most <= 4, "but not all of them");
    close_world(t);
}

/* Six times, so that a busy machine does not look like waiting. */
static void test_alone(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    years(t, 1, 3);
    ok(comes_to_rest(t) && all_agree(t), "few papers go alone");
    is_int(asked, 1, "in one call");
    int64_t began_ms = loop_now_ms(task_loop(t));
    for (int i = 0; i < 6; i++) {
        sql_do(t, "UPDATE embedding_paper SET space = 0");
        want(t, PAPERS_ALL);
        check(comes_to_rest(t));
    }
    int64_t took_ms = loop_now_ms(task_loop(t)) - began_ms;
    ok(asked == 7 && took_ms < 6 * 250, "and wait for no others: %lld ms", (long long)took_ms);
    close_world(t);
}

/* A put fails; the papers of its units that others have put are done. */
static void test_failed_part(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    partial_fails = true;
    years(t, 3, 100);
    ok(comes_to_rest(t) && all_agree(t), "a call fails, and all are indexed");
    ok(!partial_fails, "it has failed");
    is_int((int64_t)texts, 300, "what other calls have stored is not asked for again");
    close_world(t);
}

static void test_failed_first(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    service = ERR_UNAVAILABLE;
    years(t, 3, 100);
    for (int i = 0; i < 1000 && asked < 4; i++)
        pause_ms(t, 5);
    is_int((int64_t)texts, 0, "the service is away");
    service = 0;
    ok(comes_to_rest(t) && all_agree(t), "then all are indexed");
    is_int((int64_t)texts, 300, "each paper once");
    close_world(t);
}

static void test_tokens(struct task *t, void *arg)
{
    int64_t tokens = config.ai_embedding_batch_tokens;
    (void)arg;
    begin(t);
    config.ai_embedding_batch_tokens = 1000; /* of 64 texts of full length */
    years(t, 4, 150);
    ok(comes_to_rest(t) && all_agree(t), "a service that takes few tokens at once");
    ok(texts_most <= BATCH, "gets one batch with each call");
    config.ai_embedding_batch_tokens = 50;
    texts_most = 0;
    sql_do(t, "UPDATE embedding_paper SET space = 0");
    want(t, PAPERS_ALL);
    ok(comes_to_rest(t) && all_agree(t), "fewer still");
    ok(texts_most > 1 && texts_most < 10, "as many texts as they allow: %zu", texts_most);
    config.ai_embedding_batch_tokens = tokens;
    close_world(t);
}

/* The leases of all units are lost while their papers are in the line, and in a put. */
static void forget(struct task *t)
{
    sql_do(t, "UPDATE embedding_unit SET version = version + 1, changed_at = UTC_TIMESTAMP(3)");
}

static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    w->papers->kind.lease_ms = 600;
    thinks_ms = 1000;
    while_put = forget;
    years(t, 6, 300);
    ok(comes_to_rest(t) && all_agree(t), "units in a later version take over from those in line");
    ok(list_empty(&w->papers->puts.line) && w->papers->puts.under_way == 0, "nothing is left");
    close_world(t);
}

int main(void)
{
    start_stores();
    tap_task(test_full, NULL, true);
    tap_task(test_ahead, NULL, true);
    tap_task(test_alone, NULL, true);
    tap_task(test_failed_part, NULL, true);
    tap_task(test_failed_first, NULL, true);
    tap_task(test_tokens, NULL, true);
    tap_task(test_lost, NULL, true);
    return stop_stores();
}
