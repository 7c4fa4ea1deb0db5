/* engine/ai/ai.h and engine/judge/judge.h for the bench: an AI with latency, occasional failures,
 * and times without a usable key. Its verdict on a paper follows from the DOI. hand is set as
 * ai.c sets it. */
#include "engine/ai/ai.h"
#include "engine/crew/heart_fixture.h"
#include "engine/judge/judge.h"

#define NO_KEY_MS    50
#define NO_PERMIT_MS 20 /* at most, before a call */
#define AVERAGED     8

const char *judge_prompt_mark(const struct judge *j)
{
    (void)j;
    return "0123456789ab";
}

void ai_averages(const struct ai *ai, int64_t *latency_us, int64_t *tokens)
{
    *latency_us = ai->sum_us / AVERAGED;
    *tokens = ai->sum_us ? 500 : 0;
}

struct ai_state ai_state(const struct ai *ai, int64_t now_ms)
{
    static const struct ai_fault none;
    (void)ai, (void)now_ms;
    return (struct ai_state){.fault = &none};
}

/* At most one call of a worker is under way; the address of its hand identifies the worker. */
static const void **place_of(struct heart_world *w, const void *who)
{
    for (size_t i = 0; i < sizeof w->judging / sizeof *w->judging; i++)
        if (w->judging[i] == who)
            return &w->judging[i];
    return NULL;
}

static int call(struct task *t, struct ai *ai, struct str doi, struct ai_hand *hand)
{
    struct heart_world *w = ai->world;
    if (place_of(w, hand))
        heart_problem(w, "a worker has two calls under way");
    const void **place = place_of(w, NULL);
    check(place);
    heart_look_call(w, ai, doi);
    *place = hand;
    hand->busy = true;
    w->ai_calls++;
    w->ai_busy++;
    int64_t ms = heart_random(w, w->ai_ms_min, w->ai_ms_max);
    int err = task_sleep(t, ms);
    w->ai_busy--;
    *place = NULL;
    if (!err && heart_chance(w, w->ai_faults))
        err = ERR_PROTO;
    if (!err && heart_chance(w, w->ai_outages))
        err = ERR_UNAVAILABLE;
    if (!err && heart_chance(w, w->ai_refusals))
        err = ERR_REFUSED;
    hand->busy = !err;
    if (!err)
        ai->sum_us =
            ai->sum_us ? ai->sum_us + ms * 1000 - ai->sum_us / AVERAGED : ms * 1000 * AVERAGED;
    return err;
}

int heart_judge(struct task *t, const struct node *n, const void *opened,
                const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                struct result *out)
{
    (void)opened, (void)packed;
    struct heart_world *w = n->ai->world;
    static const uint8_t key[16], left[16] = {1};
    if ((int64_t)(siphash(left, paper->doi) % 10000) < w->withdrawn) { /* as judged.c */
        out->outcome = OUTCOME_FAILED;
        out->withdrawn = true;
        out->reason = STR("withdrawn");
        return 0;
    }
    int err = task_sleep(t, heart_random(w, 0, NO_PERMIT_MS));
    if (err)
        return err;
    while (!err && loop_now_ms(w->loop) < w->no_keys_until_ms)
        err = task_sleep(t, NO_KEY_MS);
    if (!err)
        err = call(t, n->ai, paper->doi, hand);
    if (err && err != ERR_CANCELED)
        return task_fail(t, err, "the AI service does not like it");
    out->outcome = siphash(key, paper->doi) % 2 == 0 ? OUTCOME_HIT : OUTCOME_MISS;
    out->reason = STR("why");
    return err;
}
