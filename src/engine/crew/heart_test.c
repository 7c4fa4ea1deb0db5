/* Dispatcher, crew, supply and worker on a bench: one test for each situation, then schedules that
 * come from a seed (heart_schedule.c). What the bench is made of stands in heart_fixture.h. */
#include "engine/crew/heart_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/time.h"
#include "engine/crew/heart_schedule.h"
#include "tests/tap.h"

static struct redis_model *model;

/* --- a world for one test --- */

struct scene {
    void (*fn)(struct task *t, struct heart_world *w);
    const char *name;
};

static int64_t results_of(const struct heart_run *r)
{
    int64_t sum = 0;
    for (int i = 0; i < HEART_PAPERS; i++)
        sum += r->has_result[i];
    return sum;
}

static int64_t asked_of(const struct heart_run *r)
{
    int64_t sum = 0;
    for (int i = 0; i < HEART_PAPERS; i++)
        sum += r->asked[i];
    return sum;
}

static void play(struct task *t, void *arg)
{
    const struct scene *s = arg;
    struct heart_world *w = heart_world_new(task_loop(t), model);
    heart_recharge(w, 0, 100000);
    heart_recharge(w, 1, 100000);
    heart_node_up(w, 0);
    heart_node_up(w, 1);
    s->fn(t, w);
    for (int i = 0; i < HEART_NODES; i++)
        if (w->nodes[i])
            heart_node_drain(t, w, i, 5000);
    heart_look_end(w);
    is_str(str_of(w->problem), STR(""), "%s: all invariants hold", s->name);
    is_int((int64_t)loop_task_count(w->loop), 1, "%s: no task is left", s->name);
    heart_world_free(w);
}

static void until(struct task *t, struct heart_world *w, int64_t ms)
{
    for (int64_t end_ms = loop_now_ms(w->loop) + ms; loop_now_ms(w->loop) < end_ms;) {
        check(task_sleep(t, 5) == 0);
        heart_look(w);
    }
}

/* Waits until the AI was asked so often about the run. */
static void until_asked(struct task *t, struct heart_world *w, const struct heart_run *r,
                        int64_t count)
{
    for (int i = 0; asked_of(r) < count && i < 2000; i++)
        until(t, w, 5);
}

/* Units that are held under leases of nodes that do not live. */
static int64_t leases_of_dead(struct heart_world *w, const struct heart_run *r)
{
    const struct redis_reply *leases =
        redis_model_call(model, &w->scratch, STR("HGETALL"), r->inflight);
    int64_t dead = 0;
    for (size_t i = 1; i < leases->count; i += 2) {
        bool lives = false;
        for (int k = 0; k < HEART_NODES; k++)
            lives = lives || (w->nodes[k] && strtoull(leases->items[i]->str.p, NULL, 16) ==
                                                 w->nodes[k]->node.incarnation);
        dead += !lives;
    }
    return dead;
}

/* --- situations --- */

static void two_nodes(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 6, 5, 10);
    int64_t most = 0, both = 0;
    until(t, w, 1000); /* each node must have the other in its member list */
    struct heart_run *s = heart_submit(t, w, 0, 6, 5, 10);
    for (int i = 0; i < 400 && !heart_at_rest(w); i++) {
        until(t, w, 10);
        int64_t n = heart_workers(w, 1);
        most = n > most ? n : most;
        both += w->nodes[0]->crew->workers.count > 0 && w->nodes[1]->crew->workers.count > 0;
    }
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE && s->state == RUN_DONE,
       "two runs are done by two nodes");
    is_int(most, 4, "all workers that the permission allows were at work, and no more");
    ok(both > 20, "on both nodes at the same time");
    is_int(asked_of(r) + asked_of(s), 60, "each paper was asked about once");
    is_int(w->users[0].spent, 600, "and paid for once");
}

static void paused(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 4, 10, 10);
    until_asked(t, w, r, 8);
    is_int(heart_control(t, w, r, RUN_PAUSE), 0, "a run is paused at work");
    until(t, w, 1000);
    int64_t asked = asked_of(r);
    ok(heart_workers(w, 1) == 0 && w->ai_busy == 0, "its workers have left");
    is_int(results_of(r), asked, "calls that were under way were recorded");
    until(t, w, 2000);
    ok(asked_of(r) == asked && asked < 40, "and none began");
    is_int(heart_number(w, STR("HLEN"), r->inflight, STR_NULL, 0), 0, "its units went back");
    is_int(heart_control(t, w, r, RUN_RESUME), 0, "it is resumed");
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "and is done");
    ok(asked_of(r) == 40 && w->users[0].spent == 400, "with each paper asked about and paid once");
}

static void terminated(struct task *t, struct heart_world *w)
{
    w->ai_ms_min = w->ai_ms_max = 3000;
    struct heart_run *r = heart_submit(t, w, 0, 4, 10, 10);
    until_asked(t, w, r, 4);
    is_int(heart_control(t, w, r, RUN_TERMINATE), 0, "a run is terminated while the AI thinks");
    until(t, w, 300);
    ok(w->ai_busy == 0 && heart_workers(w, 1) == 0, "its calls are cut off, its workers gone");
    ok(heart_settle(t, w, 5000), "the crews close it");
    ok(results_of(r) == 0 && w->users[0].spent == 0, "and nothing is charged");
}

static void late_reply(struct task *t, struct heart_world *w)
{
    w->ai_ms_min = w->ai_ms_max = 60;
    struct heart_run *r = heart_submit(t, w, 0, 2, 10, 10);
    until_asked(t, w, r, 2);
    until(t, w, 20);
    heart_redis_break(&w->nodes[0]->redis); /* no node can read that the run has ended */
    heart_redis_break(&w->nodes[1]->redis);
    int64_t before = results_of(r);
    is_int(heart_control(t, w, r, RUN_TERMINATE), 0, "a run ends while its nodes are cut off");
    until(t, w, 500);
    ok(asked_of(r) > before, "they have replies of the AI in hand");
    heart_redis_mend(&w->nodes[0]->redis);
    heart_redis_mend(&w->nodes[1]->redis);
    ok(heart_settle(t, w, 10000), "they are connected again and close it");
    is_int(results_of(r), before, "and replies that came after the end are not recorded");
}

static void drained(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until_asked(t, w, r, 8);
    heart_node_drain(t, w, 0, 5000);
    ok(r->state == RUN_RUNNING, "a node drains in the middle of a run");
    is_int(leases_of_dead(w, r), 0, "it has given its units back");
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "the other one does the rest");
    ok(asked_of(r) == 40 && w->users[0].spent == 400, "no paper was asked about twice");
}

static void drained_at_once(struct task *t, struct heart_world *w)
{
    w->ai_ms_min = w->ai_ms_max = 1000;
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until_asked(t, w, r, 4);
    heart_node_drain(t, w, 0, 0);
    is_int(leases_of_dead(w, r), 0, "a node that may not wait gives back what it cuts off");
    ok(heart_settle(t, w, 30000) && w->users[0].spent == 400, "and the other one does it");
}

static void died(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until(t, w, 4500); /* before that a missing heartbeat means nothing */
    struct heart_run *s = heart_submit(t, w, 0, 8, 5, 10);
    until_asked(t, w, s, 8);
    heart_node_kill(t, w, 1);
    until(t, w, 1000);
    ok(leases_of_dead(w, s) > 0, "a node dies and leaves its leases");
    ok(heart_settle(t, w, 20000) && r->state == RUN_DONE && s->state == RUN_DONE,
       "the other one takes its units and does them");
    ok(w->users[0].spent == 800, "and each paper is paid for once");
}

/* A paper that takes its node down each time the AI is asked about it. */
static void poison(struct task *t, struct heart_world *w)
{
    heart_node_drain(t, w, 0, 5000);
    w->ai_ms_min = w->ai_ms_max = 50;
    struct heart_run *r = heart_submit(t, w, 0, 1, 4, 10);
    for (int asked = 0; asked < 2 * UNIT_VAIN_MAX && !heart_at_rest(w);) {
        until(t, w, 5);
        if (r->asked[0] == asked)
            continue;
        asked = r->asked[0];
        heart_node_kill(t, w, 1);
        heart_node_up(w, 1);
    }
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE,
       "a paper that kills its node is given up");
    is_int(r->asked[0], UNIT_VAIN_MAX, "after so many times");
    is_int(r->asked[1] + r->asked[2] + r->asked[3], 3, "each of the others was asked about once");
    ok(results_of(r) == 4 && w->users[0].spent == 30, "and all but that one are paid for");
}

static void silent(struct task *t, struct heart_world *w)
{
    w->ai_ms_min = w->ai_ms_max = 1500;
    heart_permit(w, 0, 2);
    until(t, w, 5000);
    struct heart_run *r = heart_submit(t, w, 0, 2, 8, 10);
    until_asked(t, w, r, 2);
    until(t, w, 1000);
    heart_redis_break(&w->nodes[0]->redis);
    until(t, w, 8000); /* it works on, and another node has leased its unit meanwhile */
    heart_redis_mend(&w->nodes[0]->redis);
    ok(heart_settle(t, w, 60000) && r->state == RUN_DONE,
       "a node that lost its lease does no harm");
    is_int(w->users[0].spent, 160, "papers that both have judged are paid for once");
}

static void broke(struct task *t, struct heart_world *w)
{
    w->users[0].deposited = 0;
    heart_recharge(w, 0, 205);
    struct heart_run *r = heart_submit(t, w, 0, 4, 10, 10);
    for (int i = 0; i < 1000 && r->state != RUN_PAUSED; i++)
        until(t, w, 10);
    ok(r->state == RUN_PAUSED && !strcmp(r->reason, RUN_REASON_FUNDS),
       "a run pauses itself when the money is gone");
    until(t, w, 1000);
    ok(w->users[0].spent == 200 && heart_workers(w, 1) == 0, "nothing is owed, no worker is left");
    heart_recharge(w, 0, 1000);
    is_int(heart_control(t, w, r, RUN_RESUME), 0, "after a recharge it is resumed");
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "and is done");
    is_int(w->users[0].spent, 400, "for what it costs");
}

/* Its user resumes it again and again, without money. */
static void resume_unpaid(struct task *t, struct heart_world *w, struct heart_run *r)
{
    for (int i = 0; i < 3 * UNIT_VAIN_MAX && !heart_at_rest(w); i++) {
        until(t, w, 2000);
        if (r->state == RUN_PAUSED)
            check(heart_control(t, w, r, RUN_RESUME) == 0);
    }
}

/* Answers that cannot be paid for are lost. The first time that is missed when the worker hands in
 * the second paper, whose answer is lost, too. */
static void unpaid(struct task *t, struct heart_world *w)
{
    w->users[0].deposited = 0;
    heart_recharge(w, 0, 5);
    struct heart_run *r = heart_submit(t, w, 0, 1, 2, 10);
    resume_unpaid(t, w, r);
    ok(heart_at_rest(w) && r->state == RUN_DONE, "papers whose answers are lost are given up");
    ok(r->asked[0] == UNIT_VAIN_MAX && r->asked[1] == UNIT_VAIN_MAX,
       "one after the other: asked about %d and %d times", r->asked[0], r->asked[1]);
    ok(results_of(r) == 2 && w->users[0].spent == 0, "and none is paid for");
    r = heart_submit(t, w, 0, 1, 1, 10);
    resume_unpaid(t, w, r);
    heart_recharge(w, 0, 100);
    ok(r->asked[0] == UNIT_VAIN_MAX && heart_control(t, w, r, RUN_RETRY_FAILED) == 0,
       "one that was given up is tried again, with money");
    ok(heart_settle(t, w, 10000) && r->asked[0] == UNIT_VAIN_MAX + 1 && w->users[0].spent == 10,
       "asked about once more, and paid for");
}

static void restarted(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until_asked(t, w, r, 12);
    for (int i = 0; i < HEART_NODES; i++)
        heart_redis_break(&w->nodes[i]->redis);
    redis_model_restart(model, ++w->restarts);
    until(t, w, 300);
    for (int i = 0; i < HEART_NODES; i++)
        heart_redis_mend(&w->nodes[i]->redis);
    ok(heart_settle(t, w, 20000) && r->state == RUN_DONE,
       "Redis is restarted, and the run is done");
    is_int(w->users[0].spent, 400, "each paper is paid for once");
}

/* The run has one worker at most, and its share goes from the first node, which took a unit, to the
 * second one, which must get that unit. */
static void moves_to_second(struct task *t, struct heart_world *w, struct heart_run *r)
{
    w->nodes[0]->node.drained = true;
    heart_node_up(w, 1);
    until(t, w, 1000);
    check(heart_control(t, w, r, RUN_RESUME) == 0);
    (void)heart_settle(t, w, 20000);
}

static struct heart_run *begin_on_first(struct task *t, struct heart_world *w, int units)
{
    w->ai_ms_min = w->ai_ms_max = 1000;
    heart_permit(w, 0, 1);
    heart_node_drain(t, w, 1, 1000);
    struct heart_run *r = heart_submit(t, w, 0, units, 1, 10);
    until_asked(t, w, r, 1);
    return r;
}

/* A unit that was taken before Redis was restarted cannot be finished. */
static void restarted_aside(struct task *t, struct heart_world *w)
{
    struct heart_run *r = begin_on_first(t, w, 1);
    heart_redis_break(&w->nodes[0]->redis);
    heart_restart(w, false);
    heart_redis_mend(&w->nodes[0]->redis);
    check(heart_control(t, w, r, RUN_PAUSE) == 0);
    until(t, w, 1500);
    moves_to_second(t, w, r);
    ok(heart_settle(t, w, 20000) && r->state == RUN_DONE,
       "a unit that was taken before a restart of Redis goes to another node");
    ok(asked_of(r) == 1 && w->users[0].spent == 10, "papers that have a result are passed over");
}

/* A lease that a node has given back is its own again after Redis comes back older. */
static void older_aside(struct task *t, struct heart_world *w)
{
    struct heart_run *r = begin_on_first(t, w, 2);
    redis_model_clock(model, loop_wall_ms(w->loop));
    redis_model_save(model);
    check(heart_control(t, w, r, RUN_PAUSE) == 0);
    until(t, w, 1500);
    heart_redis_break(&w->nodes[0]->redis);
    heart_restart(w, true);
    heart_redis_mend(&w->nodes[0]->redis);
    until(t, w, 1000);
    moves_to_second(t, w, r);
    ok(heart_settle(t, w, 20000) && r->state == RUN_DONE,
       "leases that come back with an older Redis go to another node");
    is_int(w->users[0].spent, 20, "and what was lost is judged and paid again");
}

/* Redis comes back as it was before a run was terminated. No worker starts until a dispatcher, and
 * there is none at first, has reconciled Redis with the rows. */
static void older(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until_asked(t, w, r, 8);
    redis_model_clock(model, loop_wall_ms(w->loop));
    redis_model_save(model);
    check(heart_control(t, w, r, RUN_TERMINATE) == 0);
    until(t, w, 500);
    int64_t asked = asked_of(r);
    for (int i = 0; i < HEART_NODES; i++) {
        group_cancel(&w->nodes[i]->group);
        heart_redis_break(&w->nodes[i]->redis);
    }
    heart_restart(w, true);
    for (int i = 0; i < HEART_NODES; i++)
        heart_redis_mend(&w->nodes[i]->redis);
    until(t, w, 2000);
    ok(r->told == RUN_RUNNING, "Redis comes back older, with a run as RUNNING that has ended");
    ok(heart_workers(w, 1) == 0 && asked_of(r) == asked, "no worker starts until it is reconciled");
    heart_node_kill(t, w, 0);
    heart_node_up(w, 0);
    ok(heart_settle(t, w, 20000) && r->told == RUN_CANCELLED, "and then the run is over again");
    is_int(asked_of(r), asked, "the AI was not asked any more");
}

static void lost(struct task *t, struct heart_world *w)
{
    w->redis_faults = w->sql_faults = 500;
    struct heart_run *r = heart_submit(t, w, 0, 8, 5, 10);
    until(t, w, 5000);
    w->redis_faults = w->sql_faults = 0;
    ok(heart_settle(t, w, 20000) && r->state == RUN_DONE, "every twentieth call is lost");
    is_int(w->users[0].spent, 400, "each paper is paid for once");
}

static void failures(struct task *t, struct heart_world *w)
{
    w->ai_faults = 10000;
    struct heart_run *r = heart_submit(t, w, 0, 2, 5, 10);
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "an AI that fails ends the run, too");
    ok(results_of(r) == 10 && w->users[0].spent == 0, "with results that cost nothing");
}

static void outage(struct task *t, struct heart_world *w)
{
    struct heart_run *r = heart_submit(t, w, 0, 4, 5, 10);
    until_asked(t, w, r, 5);
    w->ai_outages = 10000;
    until(t, w, 3000);
    ok(r->state == RUN_RUNNING && results_of(r) < 20, "a service that does not work is waited for");
    w->ai_outages = 0;
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "the run ends when it is back");
    ok(results_of(r) == 20 && w->users[0].spent == 200, "every paper has its verdict");
}

static void refused(struct task *t, struct heart_world *w)
{
    w->ai_refusals = 10000;
    struct heart_run *r = heart_submit(t, w, 0, 4, 5, 10);
    for (int i = 0; i < 1000 && r->state != RUN_PAUSED; i++)
        until(t, w, 10);
    ok(r->state == RUN_PAUSED &&
           !strncmp(r->reason, RUN_REASON_REFUSED, strlen(RUN_REASON_REFUSED)),
       "a run whose requests are refused alike is paused: %s", r->reason);
    until(t, w, 1000);
    ok(results_of(r) == 0 && heart_workers(w, 1) == 0, "no paper has failed, no worker is left");
    w->ai_refusals = 0;
    is_int(heart_control(t, w, r, RUN_RESUME), 0, "the setting is mended, the run resumed");
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE, "and is done");
    is_int(results_of(r), 20, "with all verdicts");
    w->ai_refusals = 10000;
    r = heart_submit(t, w, 0, 2, 2, 10);
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE && results_of(r) == 4,
       "few papers that are refused fail: that the run is the cause cannot be known");
}

static void refused_between_withdrawn(struct task *t, struct heart_world *w)
{
    w->ai_refusals = 10000;
    w->withdrawn = 7000;
    struct heart_run *r = heart_submit(t, w, 0, 4, 10, 10);
    for (int i = 0; i < 1000 && r->state != RUN_PAUSED; i++)
        until(t, w, 10);
    ok(r->state == RUN_PAUSED, "papers that left the corpus are no verdicts: the run is paused");
    w->ai_refusals = 0;
    is_int(heart_control(t, w, r, RUN_RESUME), 0, "the setting is mended, the run resumed");
    ok(heart_settle(t, w, 10000) && r->state == RUN_DONE && results_of(r) == 40, "and is done");
    int64_t there = 0;
    for (int i = 0; i < 40; i++)
        there += r->asked[i] > 0;
    ok(there > CREW_REFUSED_MAX && there < 40, "some papers were there (%lld)", (long long)there);
    is_int(w->users[0].spent, 10 * there, "and each of them has its verdict");
}

/* --- schedules --- */

#define SECONDS        20   /* of schedules, unless HEART_SCHEDULES says how many */
#define FAILURES_MAX   10   /* that are shown */
#define MUTATION_TRIES 1000 /* schedules in which a mutation must be found */

static uint64_t number_of(const char *name, uint64_t absent)
{
    int64_t n;
    const char *text = getenv(name);
    return text && str_to_i64(str_of(text), &n) && n >= 0 ? (uint64_t)n : absent;
}

/* HEART_SEED: the first seed. HEART_SCHEDULES: how many. HEART_LOG: prints the nodes' log. */
static void schedules(void)
{
    struct heart_schedule s = {.model = model};
    uint64_t first = number_of("HEART_SEED", 1), count = number_of("HEART_SCHEDULES", 0), done = 0;
    int64_t began_us = time_mono_us(), us = 0, failed = 0;
    while (failed < FAILURES_MAX && (count ? done < count : us < SECONDS * 1000000LL)) {
        uint64_t seed = first + done++;
        bool held = heart_schedule_run(&s, seed);
        if (!held)
            printf("# HEART_SEED=%llu HEART_SCHEDULES=1: %s\n", (unsigned long long)seed,
                   s.problem);
        failed += !held;
        us = time_mono_us() - began_us;
    }
    printf(
        "# %llu schedules, seeds from %llu, %lld s of virtual time, %lld calls to the AI: %.1f s\n",
        (unsigned long long)done, (unsigned long long)first, (long long)s.virtual_ms / 1000,
        (long long)s.ai_calls, (double)us / 1e6);
    is_int(failed, 0, "in all schedules all invariants hold");
}

/* Defects that the schedules must find. The first two are those that this bench was built for. */
static const struct mutation {
    const char *name, *script, *from, *to;
    uint64_t first; /* seed; 0: 1. For what few schedules find: one in 2,000 or so. */
} mutations[] = {
    {"unit_finish.lua without its lease check", "unit_finish",
     "redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2]", "false", 0},
    {"unit_finish.lua that does not look which server the unit was taken in", "unit_finish",
     "~= ARGV[3] or", "== '' or", 0},
    {"unit_take.lua that does not look for a pause", "unit_take",
     "redis.call('EXISTS', KEYS[3]) == 1 or state == 'PAUSED'", "false", 0},
    {"charge.lua that does not look at the state", "charge",
     "state ~= 'RUNNING' and state ~= 'PAUSED'", "false", 0},
    {"charge.lua that does not look for a result", "charge", "had[doi] == 'v' or", "", 0},
    {"charge.lua that does not look at the balance", "charge", "elseif cents > left then",
     "elseif false then", 0},
    {"workers_claim.lua without a limit", "workers_claim",
     "math.min(wants - has, most - total[mine])", "wants - has", 0},
    {"run_tell.lua that lets an older version of the row overwrite a newer one", "run_tell",
     "was[2] and tonumber(was[2]) >= changed", "false", 2500},
};

static void mutants(void)
{
    for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        const struct mutation *m = &mutations[i];
        struct heart_schedule s = {.model = model};
        uint64_t seed = m->first ? m->first : 1, end = seed + MUTATION_TRIES;
        redis_model_mutate(model, m->script, m->from, m->to);
        while (seed < end && heart_schedule_run(&s, seed))
            seed++;
        redis_model_mutate(model, m->script, NULL, NULL);
        printf("# schedule %llu: %s\n", (unsigned long long)seed, s.problem);
        ok(*s.problem, "is found: %s", m->name);
    }
}

/* The same seed is the same schedule, to the call. */
static void repeats(void)
{
    struct heart_schedule a = {.model = model}, b = a;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        check(heart_schedule_run(&a, seed) == heart_schedule_run(&b, seed));
    }
    ok(a.virtual_ms == b.virtual_ms && a.ai_calls == b.ai_calls, "a seed repeats its schedule");
}

/* A huge run uses all of the rate. A small one of another user starts beside it; a second one of
 * the same user waits. */
static void beside_huge(struct task *t, struct heart_world *w)
{
    w->requests_limit = 100;
    w->ai_ms_min = w->ai_ms_max = 900;
    struct heart_run *huge = heart_submit(t, w, 0, 4, 10, 10);
    until_asked(t, w, huge, 4);
    struct heart_run *more = heart_submit(t, w, 0, 1, 2, 10);
    struct heart_run *small = heart_submit(t, w, 1, 1, 2, 10);
    until(t, w, 1500);
    ok(small->state == RUN_RUNNING && asked_of(small) > 0, "a small run starts beside a huge one");
    is_int(heart_workers(w, 2), 1, "with a worker, as its share is small");
    ok(more->state == RUN_QUEUED && huge->state == RUN_RUNNING, "the huge one's user waits");
    ok(heart_settle(t, w, 60000) && more->state == RUN_DONE && huge->state == RUN_DONE,
       "all of them end");
    ok(small->ended_ms < huge->ended_ms, "the small one first");
}

/* Jobs use all of the rate while no run wants it. Runs count on what jobs will lose, and not on the
 * share that jobs keep. */
static void beside_jobs(struct task *t, struct heart_world *w)
{
    w->requests_limit = w->jobs_requests = 700;
    w->ai_ms_min = w->ai_ms_max = 1000; /* a worker makes 60 requests in a minute */
    heart_permit(w, 0, 12);
    struct heart_run *first = heart_submit(t, w, 0, 5, 8, 10);
    until_asked(t, w, first, 10);
    struct heart_run *second = heart_submit(t, w, 0, 4, 10, 10);
    struct heart_run *third = heart_submit(t, w, 0, 2, 10, 10);
    until(t, w, 3000);
    ok(second->state == RUN_RUNNING, "a second run starts although jobs use all of the rate");
    ok(third->state == RUN_QUEUED, "a third one would need the share of jobs: 660 of 700");
    ok(heart_settle(t, w, 120000) && third->state == RUN_DONE, "and has its turn later");
}

/* A run that needs more than its share waits for the rate, but not for long. */
static void beside_huge_later(struct task *t, struct heart_world *w)
{
    w->requests_limit = 40;
    w->ai_ms_min = w->ai_ms_max = 5000;
    struct heart_run *huge = heart_submit(t, w, 0, 4, 10, 10);
    until_asked(t, w, huge, 8);
    struct heart_run *large = heart_submit(t, w, 1, 4, 1, 10);
    until(t, w, 10000);
    ok(large->state == RUN_QUEUED, "a run that is larger than its share waits");
    until(t, w, 22000);
    ok(large->state == RUN_RUNNING && huge->state == RUN_RUNNING, "not longer than half a minute");
    is_int(heart_workers(w, 2), 1, "and starts with what the share feeds");
    ok(heart_settle(t, w, 120000) && large->state == RUN_DONE, "both end");
}

int main(void)
{
    static const struct scene scenes[] = {
        {two_nodes, "two nodes"},
        {beside_huge, "beside a huge run"},
        {beside_jobs, "beside jobs"},
        {beside_huge_later, "beside a huge run, later"},
        {paused, "pause"},
        {terminated, "terminate"},
        {late_reply, "late"},
        {drained, "drain"},
        {drained_at_once, "drain at once"},
        {died, "death"},
        {poison, "poison"},
        {silent, "lost lease"},
        {broke, "no money"},
        {unpaid, "no money, again"},
        {restarted, "restart"},
        {restarted_aside, "restart, aside"},
        {older_aside, "older, aside"},
        {older, "older"},
        {lost, "lost replies"},
        {failures, "AI failures"},
        {outage, "outage"},
        {refused, "refused"},
        {refused_between_withdrawn, "refused, withdrawn"},
    };
    log_setup(getenv("HEART_LOG") ? LOG_DEBUG : LOG_ERROR, LOG_TEXT, "test");
    model = redis_model_new();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        tap_task(play, (void *)&scenes[i], false);
    repeats();
    mutants();
    schedules();
    redis_model_free(model);
    return tap_done();
}
