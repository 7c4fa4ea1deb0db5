/* The supply of a worker: leases units and loads their papers, one lot at a time. While the worker
 * judges the last paper of a lot, a fetcher loads the next lot, also across the end of a unit. A
 * lot is what a worker can judge in about a second, so that thousands of workers hold little
 * memory. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/ai.h"
#include "engine/crew/crew_private.h"
#include "engine/store/keys.h"
#include "loop/backoff.h"

#define LOT_US         1000000
#define LOT_PAPERS_MIN 4
#define FETCHERS_MAX   32 /* of a node */
#define BACKOFF_MS     100
#define BACKOFF_MS_MAX 2000

/* --- units --- */

static struct work_unit *unit_new(struct worker *w)
{
    struct work_unit *u = check_memory(calloc(1, sizeof *u));
    u->number = ++w->run->crew->take_count;
    list_push(&w->units, &u->link);
    return w->unit = u;
}

void supply_close_unit(struct worker *w, struct work_unit *u)
{
    if (w->unit == u)
        w->unit = NULL;
    list_del(&u->link);
    free(u->name);
    free(u->places);
    free(u);
}

/* R4: one script checks for terminate and pause, and leases a unit if there is neither. */
static int take(struct task *t, struct worker *w, struct work_unit *u)
{
    struct crew *c = w->run->crew;
    struct unit_claim claim = {c->node->incarnation, u->number, u->again};
    enum unit_found found;
    int err = unit_take(t, c->node->redis, w->run->run.id, &claim, &found, &u->unit);
    u->again = err != 0;
    if (err)
        return err;
    if (found != UNIT_FOUND)
        return found == UNIT_NONE ? ERR_NOT_FOUND : ERR_CLOSED;
    u->name = check_memory(strndup(u->unit.name.p, u->unit.name.n));
    u->unit.name = str_of(u->name);
    return 0;
}

/* --- its papers --- */

/* Keeps papers that have no result yet. A run that retries its failed papers keeps these, too. */
static int pass_over(struct task *t, const struct crew_run *r, struct app_paper *papers,
                     size_t *count)
{
    struct arena *a = task_arena(t);
    struct redis *redis = r->crew->node->redis;
    struct run_id id = r->run.id;
    struct redis_batch batch;
    const struct redis_reply *const *has;
    struct str *argv = ARENA_ARRAY(a, struct str, *count + 2);
    for (size_t i = 0; i < *count; i++)
        argv[2 + i] = papers[i].doi;
    redis_batch_init(&batch, t, redis);
    argv[0] = STR("HMGET");
    argv[1] = key_result(a, id.uid, id.qid);
    redis_batch_argv(&batch, argv[1], *count + 2, argv);
    argv[0] = STR("SMISMEMBER");
    argv[1] = key_failed(a, id.uid, id.qid);
    if (r->run.retry)
        redis_batch_argv(&batch, argv[1], *count + 2, argv);
    int err = redis_batch_run(&batch, &has);
    if (err)
        return err;
    if (has[0]->type != REDIS_ARRAY || (r->run.retry && has[1]->type != REDIS_ARRAY))
        return task_fail(t, ERR_PROTO, "the results of run %.*s cannot be read", STR_ARG(id.qid));
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (has[0]->items[i]->type != REDIS_STRING ||
            (r->run.retry && has[1]->items[i]->integer == 1))
            papers[kept++] = papers[i];
    metric_add(r->crew->skipped, (int64_t)(*count - kept));
    *count = kept;
    return 0;
}

static char *put(char *at, struct str s)
{
    memcpy(at, s.p, s.n);
    return at + s.n;
}

static bool same_place(const struct app_paper *a, const struct app_paper *b)
{
    return a->year == b->year && a->cents == b->cents && str_eq(a->journal, b->journal);
}

/* Copies them from the task's arena into one allocation: places, papers, journals, DOIs. */
static void keep_papers(struct work_unit *u, const struct app_paper *papers, size_t count)
{
    size_t places = 0, names = 0, dois = 0;
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && same_place(&papers[i], &papers[i - 1]);
        places += !same;
        names += same ? 0 : papers[i].journal.n;
        dois += papers[i].doi.n;
    }
    check(dois <= UINT32_MAX);
    size_t heads = places * sizeof *u->places + (count + 1) * sizeof *u->papers;
    u->places = check_memory(malloc(heads + names + dois));
    u->papers = (struct unit_paper *)(u->places + places);
    u->count = count;
    char *name = (char *)u->places + heads, *doi = name + names;
    u->dois = doi;
    places = 0;
    for (size_t i = 0; i < count; i++) {
        const struct app_paper *p = &papers[i];
        if (i == 0 || !same_place(p, &papers[i - 1])) {
            u->places[places++] =
                (struct unit_place){str_from(name, p->journal.n), p->year, p->cents};
            name = put(name, p->journal);
        }
        u->papers[i] = (struct unit_paper){(uint32_t)(doi - u->dois), (uint32_t)places - 1};
        doi = put(doi, p->doi);
    }
    u->papers[count].doi_at = (uint32_t)dois;
}

static struct app_paper paper_of(const struct work_unit *u, size_t i)
{
    const struct unit_paper *p = &u->papers[i];
    const struct unit_place *place = &u->places[p->place];
    return (struct app_paper){.doi = str_from(u->dois + p->doi_at, p[1].doi_at - p->doi_at),
                              .journal = place->journal,
                              .year = place->year,
                              .cents = place->cents};
}

static int list_papers(struct task *t, struct worker *w, struct work_unit *u)
{
    const struct crew_run *r = w->run;
    struct app_paper *papers = NULL;
    size_t count = 0;
    int err = r->app->papers(t, r->crew->node, &r->run, u->unit.name, &papers, &count);
    if (!err && count && !u->unit.fresh)
        err = pass_over(t, r, papers, &count);
    if (!err)
        err = unit_opened(t, r->crew->node->redis, r->run.id, &u->unit, (int64_t)count);
    if (!err)
        keep_papers(u, papers, count);
    return err;
}

/* --- lots --- */

static size_t lot_size(const struct worker *w, const struct work_unit *u)
{
    int64_t latency_us, tokens;
    ai_averages(w->run->crew->node->ai, &latency_us, &tokens);
    /* Few before the first verdict: the latency is not known, and all workers begin at once. */
    size_t n = latency_us > 0 ? (size_t)(LOT_US / latency_us) : 0;
    if (n < LOT_PAPERS_MIN)
        n = LOT_PAPERS_MIN;
    if (n > APP_UNIT_PAPERS)
        n = APP_UNIT_PAPERS;
    size_t left = u->count - u->fetched;
    return n < left ? n : left;
}

static struct lot *lot_new(struct work_unit *u, const struct block_pick *items, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].packed.n;
    struct lot *lot = check_memory(malloc(sizeof *lot + count * sizeof *lot->papers + bytes));
    *lot = (struct lot){.unit = u, .count = count};
    char *at = (char *)(lot->papers + count);
    for (size_t i = 0; i < count; i++) {
        struct str packed = items[i].packed;
        lot->papers[i] = (struct lot_paper){
            .paper = paper_of(u, u->fetched + i),
            .spent = (int64_t)(u->fetched + i) < u->unit.vain / UNIT_VAIN_MAX,
        };
        if (packed.p) {
            lot->papers[i].packed = str_from(at, packed.n);
            at = put(at, packed);
        }
    }
    u->fetched += count;
    lot->ends = u->fetched == u->count;
    return lot;
}

static int fetch_lot(struct task *t, struct worker *w, struct work_unit *u, struct lot **out)
{
    size_t count = lot_size(w, u);
    struct block_pick *items = ARENA_ARRAY(task_arena(t), struct block_pick, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct app_paper p = paper_of(u, u->fetched + i);
        items[i] = (struct block_pick){.journal = p.journal, .year = p.year, .doi = p.doi};
    }
    int err = count ? blocks_pick_packed(t, w->run->crew->node->blocks, items, count) : 0;
    if (!err)
        *out = lot_new(u, items, count);
    return err;
}

/* Can be repeated after any error: it continues with the first step that was not done. */
static int fetch(struct task *t, struct worker *w, struct lot **out)
{
    struct work_unit *u = w->unit;
    if (!u || (u->places && u->fetched == u->count))
        u = unit_new(w);
    int err = u->name ? 0 : take(t, w, u);
    if (err)
        return err;
    if (!u->places)
        err = list_papers(t, w, u);
    if (!err)
        err = fetch_lot(t, w, u, out);
    /* ERR_NOT_FOUND and ERR_CLOSED end the worker: only take may return them. */
    return err == ERR_NOT_FOUND || err == ERR_CLOSED ? ERR_INTERNAL : err;
}

/* --- fetchers --- */

static void fetch_for(struct task *t, struct worker *w)
{
    struct task_scope scope = task_scope(t);
    w->supply = SUPPLY_FETCHING;
    w->fetcher = t;
    int err = w->next_err = fetch(t, w, &w->next);
    if (err && err != ERR_NOT_FOUND && err != ERR_CLOSED && err != ERR_CANCELED &&
        err != ERR_UNAVAILABLE && err != ERR_UNCERTAIN)
        log_warn("crew", "papers of run %.*s cannot be loaded, its worker retries: %s",
                 STR_ARG(w->run->run.id.qid), task_error(t));
    w->fetcher = NULL;
    w->supply = SUPPLY_THERE;
    if (w->waits)
        task_wake(w->task);
    task_scope_end(t, scope);
}

/* Ends when no worker waits for a lot, or when the worker that it serves stops (supply_end). */
static void fetcher(struct task *t, void *arg)
{
    struct crew *c = arg;
    for (struct list *it; !task_canceled(t) && (it = list_pop(&c->hungry));)
        fetch_for(t, list_entry(it, struct worker, hunger));
    c->fetcher_count--;
}

/* Fewer fetchers than workers: each needs memory for the replies of Redis, which come one after the
 * other anyway. */
static void start_fetcher(struct crew *c)
{
    if (c->fetcher_count < FETCHERS_MAX && task_go(&c->fetchers, "fetcher", fetcher, c) == 0)
        c->fetcher_count++;
}

void supply_ahead(struct worker *w)
{
    struct crew *c = w->run->crew;
    w->supply = SUPPLY_ASKED;
    list_push(&c->hungry, &w->hunger);
    start_fetcher(c);
    if (c->fetcher_count == 0) { /* and none could be started */
        list_del(&w->hunger);
        w->supply = SUPPLY_NONE;
    }
}

/* --- the worker's side --- */

static int await(struct task *t, struct worker *w)
{
    int err = 0;
    w->waits = true;
    while (!err && w->supply != SUPPLY_THERE)
        err = task_wait(t);
    w->waits = false;
    return err;
}

static int next_once(struct task *t, struct worker *w, struct lot **out)
{
    if (w->supply == SUPPLY_NONE)
        supply_ahead(w);
    if (w->supply == SUPPLY_NONE)
        return task_fail(t, ERR_LIMIT, "no more tasks can be started");
    int err = await(t, w);
    if (err)
        return err;
    w->supply = SUPPLY_NONE;
    *out = w->next;
    w->next = NULL;
    return w->next_err;
}

int supply_next(struct task *t, struct worker *w, struct lot **out)
{
    for (struct backoff b = {.ms = BACKOFF_MS, .ms_max = BACKOFF_MS_MAX};;) {
        int err = next_once(t, w, out);
        if (!err || err == ERR_NOT_FOUND || err == ERR_CLOSED || err == ERR_CANCELED ||
            err == ERR_LIMIT)
            return err;
        if (w->hand.leaves)
            return ERR_CLOSED;
        err = backoff_wait(t, &b);
        if (err)
            return err;
    }
}

void supply_end(struct task *t, struct worker *w)
{
    if (w->supply == SUPPLY_ASKED)
        list_del(&w->hunger);
    if (w->fetcher)
        task_cancel(w->fetcher);
    w->waits = true;
    while (w->supply == SUPPLY_FETCHING)
        task_wait_always(t);
    if (!list_empty(&w->run->crew->hungry)) /* the cancelled fetcher would have served them */
        start_fetcher(w->run->crew);
    free(w->next);
    while (!list_empty(&w->units)) {
        struct work_unit *u = list_entry(w->units.next, struct work_unit, link);
        w->run->orphans = w->run->orphans || u->name || u->again;
        if (u->in_vain)
            (void)map_add(w->run->vain, str_int(task_arena(t), (int64_t)u->number));
        supply_close_unit(w, u);
    }
}
