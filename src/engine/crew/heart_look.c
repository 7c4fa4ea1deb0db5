/* The invariants of the bench. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/crew/heart_fixture.h"
#include "engine/store/keys.h"

void heart_problem(struct heart_world *w, const char *fmt, ...)
{
    if (*w->problem)
        return;
    va_list ap;
    int at = snprintf(w->problem, sizeof w->problem,
                      "at %lld ms: ", (long long)(loop_now_ms(w->loop) - w->began_ms));
    va_start(ap, fmt);
    vsnprintf(w->problem + at, sizeof w->problem - (size_t)at, fmt, ap);
    va_end(ap);
}

struct heart_run *heart_run_of(struct heart_world *w, struct str qid)
{
    for (size_t i = 0; i < w->run_count; i++)
        if (str_eq(qid, str_of(w->runs[i].qid)))
            return &w->runs[i];
    return NULL;
}

int64_t heart_number(struct heart_world *w, struct str command, struct str key, struct str field,
                     int64_t absent)
{
    struct arena_mark mark = arena_mark(&w->scratch);
    const struct str argv[] = {command, key, field};
    int64_t n =
        redis_number(redis_model_argv(w->model, &w->scratch, field.p ? 3 : 2, argv), absent);
    arena_reset(&w->scratch, mark);
    return n;
}

/* --- money and results --- */

/* "…/<qid>.<paper>" up to a quote. -1: not a paper of the run. */
static int64_t paper_of(const struct heart_run *r, struct str doi)
{
    struct str rest = doi, head = str_cut(&rest, '/'), qid = str_cut(&rest, '.');
    int64_t paper = -1;
    if (!head.p || !str_eq(qid, str_of(r->qid)) || !str_to_i64(rest, &paper) || paper < 0 ||
        paper >= (int64_t)r->units * r->unit_papers)
        return -1;
    return paper;
}

static struct str after(struct str text, struct str mark)
{
    ptrdiff_t at = str_find(text, mark);
    check(at >= 0);
    return str_from(text.p + at + mark.n, text.n - (size_t)at - mark.n);
}

static void look_record(struct heart_world *w, struct heart_user *u, struct str record)
{
    struct str doi = after(record, STR("\"doi\":\"")), cost = after(record, STR("\"cost\":"));
    struct str qid = after(record, STR("\"qid\":\""));
    struct heart_run *r = heart_run_of(w, str_cut(&qid, '"'));
    check(r);
    int64_t paper = paper_of(r, str_cut(&doi, '"')), cents = 0;
    if (paper < 0 || !str_to_i64(str_cut(&cost, ','), &cents))
        heart_problem(w, "run %s: a record is malformed: %.*s", r->qid, STR_ARG(record));
    else if (r->charged[paper]++)
        heart_problem(w, "run %s: paper %lld is charged twice", r->qid, (long long)paper);
    else if (cents != r->cents)
        heart_problem(w, "run %s: paper %lld costs %lld", r->qid, (long long)paper,
                      (long long)cents);
    if (r->known && r->told != RUN_RUNNING && r->told != RUN_PAUSED)
        heart_problem(w, "run %s is charged while it is %s", r->qid, run_state_name(r->told));
    u->spent += cents;
}

static void look_money(struct heart_world *w, struct heart_user *u)
{
    struct arena *a = &w->scratch;
    int64_t balance = heart_number(w, STR("GET"), key_balance(a, u->uid), STR_NULL, INT64_MIN);
    const struct redis_reply *run =
        redis_model_call(w->model, a, STR("HGET"), key_ledger(a, u->uid), STR("run"));
    if (balance == INT64_MIN || run->type != REDIS_STRING ||
        !str_eq(run->str, redis_model_run_id(w->model)))
        return; /* the balance is not loaded yet */
    if (balance < 0)
        heart_problem(w, "user %lld has a balance below zero", (long long)u->uid);
    if (balance + u->spent != u->deposited)
        heart_problem(w, "user %lld: %lld left and %lld spent are not %lld", (long long)u->uid,
                      (long long)balance, (long long)u->spent, (long long)u->deposited);
}

/* What was charged and recorded since the last look. */
static void look_charges(struct heart_world *w, struct heart_run *r)
{
    struct arena *a = &w->scratch;
    struct heart_user *u = &w->users[r->uid - 1];
    const struct redis_reply *records =
        redis_model_call(w->model, a, STR("LRANGE"), key_billing_queue(a, r->uid),
                         str_int(a, (int64_t)u->records), STR("-1"));
    for (size_t i = 0; i < records->count; i++, u->records++)
        look_record(w, u, records->items[i]->str);
    look_money(w, u);
    const struct redis_reply *arrivals = redis_model_call(
        w->model, a, STR("LRANGE"), r->arrivals, str_int(a, (int64_t)r->arrived), STR("-1"));
    for (size_t i = 0; i < arrivals->count; i++, r->arrived++) {
        int64_t paper = paper_of(r, arrivals->items[i]->str);
        if (paper < 0 || r->has_result[paper]++)
            heart_problem(w, "run %s: a result came twice, or is no paper's: %.*s", r->qid,
                          STR_ARG(arrivals->items[i]->str));
    }
}

/* --- runs --- */

static int complete_units(const struct heart_run *r)
{
    int complete = 0;
    for (int i = 0; i < r->units; i++) {
        int papers = 0;
        for (int k = 0; k < r->unit_papers; k++)
            papers += r->has_result[i * r->unit_papers + k] > 0;
        complete += papers == r->unit_papers;
    }
    return complete;
}

static void look_done(struct heart_world *w, const struct heart_run *r)
{
    int64_t waiting = heart_number(w, STR("LLEN"), r->pending, STR_NULL, 0);
    if (complete_units(r) < r->units)
        heart_problem(w, "run %s is DONE, but %d of its %d units lack results", r->qid,
                      r->units - complete_units(r), r->units);
    if (waiting || r->leases)
        heart_problem(w, "run %s is DONE, but %lld units wait and %lld are held", r->qid,
                      (long long)waiting, (long long)r->leases);
}

/* The state has changed. */
static void look_change(struct heart_world *w, struct heart_run *r, enum run_state state)
{
    if (r->known && r->told == RUN_CANCELLED)
        heart_problem(w, "run %s was terminated, and is %s", r->qid, run_state_name(state));
    r->known = true;
    r->told = state;
    r->told_ms = loop_now_ms(w->loop);
    r->results = heart_number(w, STR("HLEN"), r->result, STR_NULL, 0);
    if (state == RUN_DONE)
        look_done(w, r);
}

/* Each unit of a run that has been split is in one place: it waits, is held, or is finished. */
static void look_units(struct heart_world *w, const struct heart_run *r, int64_t total,
                       int64_t finished)
{
    int64_t waiting = heart_number(w, STR("LLEN"), r->pending, STR_NULL, 0);
    if (r->told != RUN_CANCELLED && waiting + r->leases + finished != total)
        heart_problem(w, "run %s: %lld units wait, %lld are held, %lld are finished, of %lld",
                      r->qid, (long long)waiting, (long long)r->leases, (long long)finished,
                      (long long)total);
    if (finished > complete_units(r))
        heart_problem(w, "run %s: %lld units are finished, but %d have all results", r->qid,
                      (long long)finished, complete_units(r));
}

static void look_run(struct heart_world *w, struct heart_run *r)
{
    const struct redis_reply *s =
        redis_model_call(w->model, &w->scratch, STR("HMGET"), r->status, STR("state"),
                         STR("changed"), STR("total_blocks"), STR("finished_blocks"));
    enum run_state state;
    if (s->items[0]->type != REDIS_STRING || !run_state_parse(s->items[0]->str, &state))
        return;
    int64_t changed = redis_number(s->items[1], 0), total = redis_number(s->items[2], -1);
    int64_t leases = heart_number(w, STR("HLEN"), r->inflight, STR_NULL, 0), had = r->leases;
    r->leases = leases;
    if (changed < r->told_changed)
        heart_problem(w, "run %s: an older version of its row overwrites a newer one", r->qid);
    r->told_changed = changed;
    if (!r->known || r->told != state)
        look_change(w, r, state);
    else if (state != RUN_RUNNING && leases > had)
        heart_problem(w, "run %s: a unit is taken while it is %s", r->qid, run_state_name(state));
    if (total >= 0)
        look_units(w, r, total, redis_number(s->items[3], 0));
    if (state == RUN_CANCELLED &&
        heart_number(w, STR("HLEN"), r->result, STR_NULL, 0) != r->results)
        heart_problem(w, "run %s: a result is recorded after it was terminated", r->qid);
}

/* Redis came back older than it was. Charges that it has lost do not count: the real ledger, which
 * is not part of the bench, refunds them. Claims are lost, too: the first node that reconnects may
 * be granted workers that another node, with papers in hand, still has. */
void heart_look_older(struct heart_world *w)
{
    struct arena_mark mark = arena_mark(&w->scratch);
    for (int i = 0; i < HEART_NODES; i++)
        if (w->nodes[i])
            w->nodes[i]->silent_until_ms = loop_now_ms(w->loop) + 2 * HEART_RETURN_MS;
    for (int i = 0; i < HEART_USERS; i++)
        w->users[i].records = 0, w->users[i].spent = 0;
    for (size_t i = 0; i < w->run_count; i++) {
        struct heart_run *r = &w->runs[i];
        r->known = false;
        r->told_changed = 0;
        r->arrived = 0;
        memset(r->charged, 0, sizeof r->charged);
        memset(r->has_result, 0, sizeof r->has_result);
    }
    for (size_t i = 0; i < w->run_count; i++)
        look_charges(w, &w->runs[i]);
    for (size_t i = 0; i < w->run_count; i++)
        look_run(w, &w->runs[i]);
    arena_reset(&w->scratch, mark);
}

void heart_look_script(struct heart_world *w, const struct redis_script *s, size_t argc,
                       const struct str *argv)
{
    struct arena_mark mark = arena_mark(&w->scratch);
    for (size_t i = 0; i < w->run_count; i++)
        for (size_t k = 0; k < argc && k < 5; k++)
            if (str_eq(argv[k], w->runs[i].status)) {
                if (!strcmp(s->name, "charge"))
                    look_charges(w, &w->runs[i]);
                look_run(w, &w->runs[i]);
            }
    arena_reset(&w->scratch, mark);
}

void heart_look_call(struct heart_world *w, const struct ai *ai, struct str doi)
{
    int64_t now_ms = loop_now_ms(w->loop);
    for (size_t i = 0; i < w->run_count; i++) {
        struct heart_run *r = &w->runs[i];
        int64_t paper = paper_of(r, doi);
        if (paper < 0)
            continue;
        r->asked[paper]++;
        int64_t since_ms = r->told_ms > ai->redis->fault_ms ? r->told_ms : ai->redis->fault_ms;
        if (r->told != RUN_RUNNING && ai->redis->up && now_ms - since_ms > HEART_PAUSE_MS)
            heart_problem(w, "run %s is %s for %lld ms, and the AI is asked", r->qid,
                          run_state_name(r->told), (long long)(now_ms - since_ms));
    }
    heart_look(w);
}

/* --- workers --- */

int64_t heart_workers(const struct heart_world *w, int64_t uid)
{
    int64_t sum = 0;
    for (int i = 0; i < HEART_NODES; i++) {
        struct str name;
        void *run;
        for (size_t at = 0; w->nodes[i] && map_next(w->nodes[i]->crew->runs, &at, &name, &run);) {
            const struct crew_run *r = run;
            sum += r->run.id.uid == uid ? r->count : 0;
        }
    }
    return sum;
}

/* Its last heartbeat in Redis is so old that other nodes may treat it as dead: then its workers do
 * not count until it has claimed them again. */
static bool is_silent(struct heart_world *w, struct heart_node *n)
{
    struct str name = str_printf(&w->scratch, "%016" PRIx64, n->node.incarnation);
    int64_t beat_ms = heart_number(w, STR("ZSCORE"), key_nodes, name, 0);
    if (loop_wall_ms(w->loop) - beat_ms > HEART_SILENT_MS)
        n->silent_until_ms = loop_now_ms(w->loop) + HEART_RETURN_MS;
    return loop_now_ms(w->loop) < n->silent_until_ms;
}

static bool any_silent(struct heart_world *w)
{
    struct arena_mark mark = arena_mark(&w->scratch);
    bool silent = false;
    for (int i = 0; i < HEART_NODES; i++)
        silent = (w->nodes[i] && is_silent(w, w->nodes[i])) || silent;
    arena_reset(&w->scratch, mark);
    return silent;
}

/* After a permission was lowered, workers beyond it stop with the paper in hand; no worker starts
 * beyond it. */
void heart_look(struct heart_world *w)
{
    bool silent = any_silent(w);
    for (int i = 0; i < HEART_USERS; i++) {
        struct heart_user *u = &w->users[i];
        int64_t workers = heart_workers(w, u->uid), most = u->permission;
        if (loop_now_ms(w->loop) < u->permission_ms && u->permission_before > most)
            most = u->permission_before;
        u->excused = silent || (u->excused && workers > most);
        if (workers > most && workers > u->workers && !u->excused)
            heart_problem(w, "user %lld has %lld workers and may have %lld", (long long)u->uid,
                          (long long)workers, (long long)most);
        u->workers = workers;
    }
}

/* --- at the end --- */

static void look_run_end(struct heart_world *w, const struct heart_run *r)
{
    int64_t waiting = heart_number(w, STR("LLEN"), r->pending, STR_NULL, 0);
    if (r->state != RUN_DONE && r->state != RUN_CANCELLED)
        heart_problem(w, "run %s is %s in its row at the end", r->qid, run_state_name(r->state));
    else if (r->told != r->state)
        heart_problem(w, "run %s is %s in Redis, and %s in its row", r->qid,
                      run_state_name(r->told), run_state_name(r->state));
    else if (r->state == RUN_DONE)
        look_done(w, r);
    if (waiting || r->leases)
        heart_problem(w, "run %s has ended, but %lld units wait and %lld are held", r->qid,
                      (long long)waiting, (long long)r->leases);
}

void heart_look_end(struct heart_world *w)
{
    struct arena_mark mark = arena_mark(&w->scratch);
    redis_model_clock(w->model, loop_wall_ms(w->loop));
    for (size_t i = 0; i < w->run_count; i++) {
        look_run(w, &w->runs[i]);
        look_run_end(w, &w->runs[i]);
    }
    for (int i = 0; i < HEART_USERS; i++)
        look_money(w, &w->users[i]);
    if (w->ai_busy)
        heart_problem(w, "%lld calls to the AI are under way at the end", (long long)w->ai_busy);
    arena_reset(&w->scratch, mark);
}
