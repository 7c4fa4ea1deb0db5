/* What is wrong, by the overview. */
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/ai/service.h"
#include "engine/crew/members.h"
#include "engine/money/ledger.h"
#include "engine/store/amount.h"
#include "engine/watch/alerts_private.h"

#define WINDOW_MS    60000
#define FAILURES_MIN 10

struct episode *alerts_find(struct alerts *a, const char *name)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->list[i].name, name) == 0)
            return &a->list[i];
    return NULL;
}

/* It is so. True: that is new. One whose end was not told yet goes on. */
static bool is_so(struct task *t, struct alerts *a, const char *name, const char *fmt, ...)
    PRINTF(4, 5);
static bool is_so(struct task *t, struct alerts *a, const char *name, const char *fmt, ...)
{
    struct episode *e = alerts_find(a, name);
    if (e) {
        bool again = e->over;
        e->seen = true;
        e->over = false;
        return again;
    }
    if (a->count == ALERTS_MAX)
        return false; /* the log of the node that found it has it */
    e = &a->list[a->count++];
    *e = (struct episode){.since_ms = loop_wall_ms(task_loop(t)), .seen = true};
    snprintf(e->name, sizeof e->name, "%s", name);
    va_list args;
    va_start(args, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    log_error("alert", "%s: %s", e->name, e->text);
    return true;
}

/* Has it been so for ms? *since: of the loop; -1: it is not. An episode that is noted already,
 * perhaps by another node, needs no wait. */
static bool lasts(struct task *t, struct alerts *a, const char *name, bool so, int64_t *since,
                  int64_t ms)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    const struct episode *e = alerts_find(a, name);
    if (so && e && !e->over)
        return true;
    if (!so)
        *since = -1;
    else if (*since < 0)
        *since = now_ms;
    return so && now_ms - *since >= ms;
}

/* What cannot be judged now goes on as it was. */
static void keep(struct alerts *a, const char *prefix)
{
    for (size_t i = 0; i < a->count; i++)
        if (strncmp(a->list[i].name, prefix, strlen(prefix)) == 0 && !a->list[i].over)
            a->list[i].seen = true;
}

static bool watch_stores(struct task *t, struct alerts *a, const struct overview_data *d)
{
    bool news = false;
    if (lasts(t, a, "redis", !d->redis.up, &a->redis_down_ms, a->options.store_ms))
        news |= is_so(t, a, "redis", "Redis does not answer: %.*s", STR_ARG(d->redis.problem));
    if (lasts(t, a, "mysql", !d->mysql.up, &a->mysql_down_ms, a->options.store_ms))
        news |= is_so(t, a, "mysql", "MySQL does not answer: %.*s", STR_ARG(d->mysql.problem));
    if (lasts(t, a, "read_only", d->read_only, &a->read_only_ms, a->options.store_ms))
        news |= is_so(t, a, "read_only",
                      "MySQL is read-only: nothing is submitted, dispatched or billed until it is "
                      "writable again");
    return news;
}

/* What of a store that is away cannot be judged. */
static bool watch_settings(struct task *t, struct alerts *a, const struct overview_data *d)
{
    const struct {
        const char *name;
        const struct overview_store *store;
    } all[] = {{"settings:redis", &d->redis}, {"settings:mysql", &d->mysql}};
    bool news = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!all[i].store->up)
            keep(a, all[i].name);
        else if (all[i].store->settings.n)
            news |= is_so(t, a, all[i].name, "%.*s", STR_ARG(all[i].store->settings));
    if (!d->mysql.up)
        keep(a, "read_only");
    return news;
}

static bool watch_money(struct task *t, struct alerts *a, const struct overview_data *d)
{
    bool news = false;
    int64_t most = a->options.records_max;
    if (lasts(t, a, "billing", d->records > most, &a->records_over_ms, a->options.records_ms))
        news |= is_so(t, a, "billing",
                      "%lld charges wait to be written to MySQL; more than %lld is too many",
                      (long long)d->records, (long long)most);
    if (d->audited_ms == 0)
        keep(a, "drift"); /* a new Redis has not heard of it */
    else if (d->drift_cents || d->findings)
        news |=
            is_so(t, a, "drift",
                  "the audit has %lld finding%s, %s is not where it belongs; \"millrace audit\" "
                  "shows more",
                  (long long)d->findings, d->findings == 1 ? "" : "s",
                  amount_decimal(task_arena(t), d->drift_cents).p);
    return news;
}

static bool watch_paused(struct task *t, struct alerts *a, const struct alerts_paused_list *paused)
{
    bool news = false;
    if (!paused->known)
        keep(a, "verdicts:");
    for (size_t i = 0; i < paused->count; i++) {
        const struct alerts_paused *p = &paused->list[i];
        news |= is_so(t, a, str_printf(task_arena(t), "verdicts:%lld", (long long)p->uid).p,
                      "run %.*s of user %lld is paused until its ledger is repaired: %.*s",
                      STR_ARG(p->qid), (long long)p->uid, STR_ARG(p->reason));
    }
    return news;
}

/* One episode for each cause, however many runs stand for it. */
static bool watch_reason(struct task *t, struct alerts *a, const struct reason *why, bool so,
                         int64_t runs, struct run_id one)
{
    struct arena *arena = task_arena(t);
    const char *name = str_printf(arena, "standing:%s", reason_word(why->code)).p;
    if (!lasts(t, a, name, so, &a->standing_ms[why->code], a->options.standing_ms))
        return false;
    struct str text = reason_text(arena, why);
    return is_so(t, a, name, "runs stand still (%lld, one is %.*s of user %lld): %.*s",
                 (long long)runs, STR_ARG(one.qid), (long long)one.uid, STR_ARG(text));
}

static bool watch_standing(struct task *t, struct alerts *a, const struct overview_data *d)
{
    bool news = false;
    if (!d->standing_known) {
        keep(a, "standing:");
        return false;
    }
    for (int code = REASON_NONE + 1; code < REASON_FUNDS; code++) {
        struct standing_group none = {.why.code = (enum reason_code)code};
        const struct standing_group *g = &none;
        for (size_t i = 0; i < d->standing_count; i++)
            if (d->standing[i].why.code == none.why.code)
                g = &d->standing[i];
        news |= watch_reason(t, a, &g->why, g->runs > 0, g->runs, g->example);
    }
    return news;
}

static bool watch_refused(struct task *t, struct alerts *a, const struct alerts_paused_list *p)
{
    struct reason_facts f = {.state = RUN_PAUSED, .row = p->refused.reason};
    struct reason why = reason_of(&f);
    why.code = REASON_REFUSED;
    if (!p->known) {
        keep(a, "standing:refused");
        return false;
    }
    return watch_reason(t, a, &why, p->refused_count > 0, p->refused_count,
                        (struct run_id){p->refused.uid, p->refused.qid});
}

/* Of the jobs that ended in the last minute, half or more failed, and ten at least. */
static bool mostly_fails(struct task *t, struct alerts_window *w, const struct jobs_look *l,
                         bool was)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    int64_t done = l->done - w->done, failed = l->failed - w->failed;
    bool begins = w->since_ms == 0 || done < 0 || failed < 0; /* Redis counts from 0 again */
    if (!begins && now_ms - w->since_ms < WINDOW_MS)
        return was || (failed >= FAILURES_MIN && failed >= done);
    *w = (struct alerts_window){now_ms, l->done, l->failed};
    return !begins && failed >= FAILURES_MIN && failed >= done;
}

/* There are jobs, and none has ended since the last look. What waited may be in work, and may wait
 * again; it may also have been taken between the look's count and the look at its age. */
static bool stands_still(const struct jobs_look *l, int64_t ended)
{
    return l->waiting + l->delayed + l->held + l->working > 0 && l->done + l->failed == ended;
}

static bool watch_queues(struct task *t, struct alerts *a, const struct overview_data *d)
{
    bool news = false;
    if (d->queue_count == 0) {
        keep(a, "queue:");
        keep(a, "failing:");
    }
    for (size_t i = 0; i < d->queue_count; i++) {
        const struct jobs_look *l = &d->queues[i];
        const char *late = arena_printf(task_arena(t), "queue:%s", l->name);
        const char *failing = arena_printf(task_arena(t), "failing:%s", l->name);
        const struct episode *e = alerts_find(a, failing);
        if (l->oldest_ms > a->options.queue_ms && !l->paused)
            news |= is_so(t, a, late, "%lld jobs of queue %s wait, the oldest for %lld minutes",
                          (long long)(l->waiting + l->delayed), l->name,
                          (long long)l->oldest_ms / 60000);
        else if (!l->paused && stands_still(l, a->ended[i]))
            keep(a, late);
        a->ended[i] = l->done + l->failed;
        if (mostly_fails(t, &a->windows[i], l, e && !e->over))
            news |= is_so(t, a, failing,
                          "half or more of the jobs of queue %s fail; the log has the reasons",
                          l->name);
    }
    return news;
}

static bool watch_source(struct task *t, struct alerts *a, const struct alerts_source *s,
                         const struct alerts_told *told)
{
    bool news = false;
    if (!told->known || told->count >= ALERTS_FACTS_MAX)
        keep(a, s->prefix);
    for (size_t i = 0; told->known && i < told->count; i++) {
        const struct alerts_fact *f = &told->list[i];
        const struct episode *e = alerts_find(a, f->name.p);
        if (!f->lasts || (e && !e->over))
            news |= is_so(t, a, f->name.p, "%.*s", STR_ARG(f->text));
    }
    return news;
}

static bool watch_keys(struct task *t, struct alerts *a, const struct overview_data *d)
{
    bool news = false;
    if (!d->keys_known)
        keep(a, "key:");
    for (size_t i = 0; i < d->key_count; i++) {
        const struct permits_state *k = &d->keys[i];
        if (k->refused)
            news |= is_so(t, a, str_printf(task_arena(t), "key:%lld", (long long)k->id).p,
                          "%s refused key %lld (%.*s), %.*s", ai_service_words(k->service),
                          (long long)k->id, STR_ARG(k->shown), STR_ARG(k->error));
    }
    return news;
}

static bool lives(const struct overview_data *d, const char *name)
{
    for (size_t i = 0; i < d->node_count; i++)
        if (strcmp(name + strlen("node:"), d->nodes[i].id.p) == 0)
            return true;
    return false;
}

/* A lost node leaves the list once it is noted here; the episode lasts until a node has its
 * slot. */
static bool watch_nodes(struct task *t, struct alerts *a, const struct overview_data *d,
                        struct alerts_found *out)
{
    struct node *n = a->options.node;
    bool news = false;
    if (!n->members || !members_certain(n->members, loop_now_ms(task_loop(t)))) {
        keep(a, "node:");
        return false;
    }
    out->lost = ARENA_ARRAY(task_arena(t), struct str, d->lost_count + 1);
    for (size_t i = 0; i < d->lost_count; i++) {
        const struct overview_lost *l = &d->lost[i];
        news |= is_so(t, a, str_printf(task_arena(t), "node:%.*s", STR_ARG(l->id)).p,
                      "node %.*s (%.*s) sends no heartbeat", STR_ARG(l->id), STR_ARG(l->name));
        out->lost[out->lost_count++] = str_dup(task_arena(t), l->incarnation);
    }
    for (size_t i = 0; i < a->count; i++)
        if (strncmp(a->list[i].name, "node:", 5) == 0 && !a->list[i].over &&
            !lives(d, a->list[i].name))
            a->list[i].seen = true;
    return news;
}

/* What a store that is away would have told is not known: then nothing of that is over. */
static bool known_to_be_over(const struct episode *e, const struct overview_data *d)
{
    bool of_store = strcmp(e->name, "redis") == 0 || strcmp(e->name, "mysql") == 0;
    return !e->seen && (of_store || d->redis.up);
}

void alerts_watch(struct task *t, struct alerts *a, const struct overview_data *d,
                  const struct alerts_asked *asked, struct alerts_found *out)
{
    for (size_t i = 0; i < a->count; i++)
        a->list[i].seen = false;
    bool news = watch_stores(t, a, d);
    news |= watch_settings(t, a, d);
    if (d->redis.up) {
        news |= watch_money(t, a, d);
        news |= watch_paused(t, a, &asked->paused);
        news |= watch_standing(t, a, d);
        news |= watch_refused(t, a, &asked->paused);
        news |= watch_keys(t, a, d);
        news |= watch_queues(t, a, d);
        news |= watch_nodes(t, a, d, out);
        for (size_t i = 0; i < a->options.source_count; i++)
            news |= watch_source(t, a, &a->options.sources[i], &asked->told[i]);
    }
    for (size_t i = 0; i < a->count; i++) {
        struct episode *e = &a->list[i];
        if (e->over || !known_to_be_over(e, d))
            continue;
        log_info("alert", "%s is over: %s", e->name, e->text);
        e->over = true;
        e->again_ms = e->pause_ms = 0;
        news = true;
    }
    out->news = news;
}
