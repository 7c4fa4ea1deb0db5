#include "engine/charge.h"

#include "base/buf.h"
#include "base/json.h"
#include "corpus/doi.h"
#include "engine/keys.h"
#include "engine/ledger_private.h"
#include "engine/scripts.h"

#define TRIES_MAX   8     /* of a call: answers that were lost, balances that were gone again */
#define GATHERS_MAX 8     /* calls of other tasks that were cut short */
#define ANNOUNCE_MS 20000 /* ledger_task forgets after 60 s */

/* --- one call --- */

enum {
    KEYS = 9,
    HEAD = 4,
    WORDS = 3
}; /* of the script: keys, words for all, at most for each paper */

static const char *problem_of(const struct charge *c, const struct charge *first)
{
    if (c->uid != first->uid || !str_eq(c->qid, first->qid))
        return "papers of several runs cannot be charged at once";
    if (c->qid.n == 0 || c->qid.n > CHARGE_QID_BYTES_MAX || !str_utf8_valid(c->qid))
        return "a run has an id of 1 to 64 bytes";
    if (c->doi.n == 0 || c->doi.n > DOI_BYTES_MAX || !str_utf8_valid(c->doi))
        return "a paper has a DOI of 1 to 255 bytes";
    if (c->result.n == 0 || c->result.n > CHARGE_RESULT_BYTES_MAX)
        return "a result has 1 to 262144 bytes";
    if (c->cents < 0 || c->cents > LEDGER_CENTS_MAX || (c->failed && (c->cents || c->relevant)))
        return "a paper costs from 0.00 to 999999999.99, and nothing if it failed";
    return NULL;
}

/* As the script wants them: a letter each. */
static struct str kinds(struct arena *a, size_t count, const struct charge *c)
{
    char *letters = arena_alloc(a, count);
    for (size_t i = 0; i < count; i++)
        letters[i] = c[i].failed ? 'f' : c[i].relevant ? 'r' : 'n';
    return str_from(letters, count);
}

/* One number where all cost the same, as papers of one price list mostly do. */
static struct str prices(struct arena *a, size_t count, const struct charge *c, struct buf *b)
{
    size_t same = 1;
    while (same < count && c[same].cents == c->cents)
        same++;
    if (same == count)
        return str_int(a, c->cents);
    buf_clear(b);
    for (size_t i = 0; i < count; i++) {
        buf_add_int(b, c[i].cents);
        buf_add_char(b, ' ');
    }
    return str_dup(a, buf_str(b));
}

/* The record from after its seq to within the quotes of its DOI; the script adds the rest. */
static struct str record_head(struct task *t, struct str qid, struct buf *b)
{
    buf_clear(b);
    buf_add_lit(b, ",\"timestamp\":");
    buf_add_int(b, loop_wall_ms(task_loop(t)));
    buf_add_lit(b, ",\"kind\":\"charge\",\"qid\":\"");
    json_escape(b, qid);
    buf_add_lit(b, "\",\"doi\":\"");
    return str_dup(task_arena(t), buf_str(b));
}

/* The DOIs as they stand in JSON. Returns how many: 0 if each stands there as it is. */
static size_t json_dois(struct arena *a, size_t count, const struct charge *c, struct buf *b,
                        struct str *out)
{
    bool odd = false;
    buf_clear(b);
    for (size_t i = 0; i < count; i++) {
        size_t before = b->len;
        json_escape(b, c[i].doi);
        out[i].n = b->len - before;
        odd = odd || out[i].n != c[i].doi.n;
    }
    if (!odd)
        return 0;
    const char *p = str_dup(a, buf_str(b)).p;
    for (size_t i = 0; i < count; p += out[i++].n)
        out[i].p = p;
    return count;
}

static struct str *script_words(struct task *t, size_t count, const struct charge *c, size_t *argc)
{
    struct arena *a = task_arena(t);
    struct str *argv = ARENA_ARRAY(a, struct str, KEYS + HEAD + WORDS * count), *at = argv;
    struct buf b;
    buf_init(&b);
    *at++ = key_balance(a, c->uid);
    *at++ = key_ledger(a, c->uid);
    *at++ = key_billing_queue(a, c->uid);
    *at++ = key_result(a, c->uid, c->qid);
    *at++ = key_query_status(a, c->uid, c->qid);
    *at++ = key_progress(a, c->uid, c->qid);
    *at++ = key_failed(a, c->uid, c->qid);
    *at++ = key_arrivals(a, c->uid, c->qid);
    *at++ = key_relevant(a, c->uid, c->qid);
    *at++ = str_int(a, (int64_t)count);
    *at++ = kinds(a, count, c);
    *at++ = prices(a, count, c, &b);
    *at++ = record_head(t, c->qid, &b);
    for (size_t i = 0; i < count; i++) {
        *at++ = c[i].doi;
        *at++ = c[i].result;
    }
    at += json_dois(a, count, c, &b, at);
    buf_release(&b);
    *argc = (size_t)(at - argv);
    return argv;
}

static bool read_status(const struct redis_reply *r, enum charge_outcome *out)
{
    static const enum charge_outcome outcomes[] = {CHARGE_FUNDS, CHARGE_DONE, CHARGE_EXISTS};
    if (r->type != REDIS_INT || r->integer < 0 || r->integer > 2)
        return false;
    *out = outcomes[r->integer];
    return true;
}

/* *loaded stays true unless there is no balance; nothing was done then. */
static int call_script(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                       bool *loaded, enum charge_outcome *out)
{
    const struct redis_reply *r;
    size_t argc;
    const struct str *argv = script_words(t, count, c, &argc);
    int err = redis_script_run(t, l->redis, &script_charge, argv[0], KEYS, argc, argv, &r);
    if (err)
        return err;
    if (r->type == REDIS_INT && r->integer == -1) {
        *loaded = false;
        return 0;
    }
    bool all = r->type == REDIS_INT && (r->integer == 1 || r->integer == -2);
    bool fits = all || (r->type == REDIS_ARRAY && r->count == count);
    for (size_t i = 0; fits && i < count; i++) {
        if (all)
            out[i] = r->integer == 1 ? CHARGE_DONE : CHARGE_STOPPED;
        else
            fits = read_status(r->items[i], &out[i]);
    }
    return fits ? 0 : task_fail(t, ERR_PROTO, "script charge returned something else");
}

/* Before a record is made: one that nobody knows of would wait for the sweeper. */
static int announce(struct task *t, struct ledger *l, int64_t uid)
{
    uint64_t epoch = redis_epoch(l->redis);
    int64_t now_ms = loop_now_ms(task_loop(t));
    struct ledger_announced *last = &l->announced[(uint64_t)uid % LEDGER_ANNOUNCED_MAX];
    if (last->uid == uid && last->epoch == epoch && now_ms - last->at_ms < ANNOUNCE_MS)
        return 0;
    int err =
        redis_call(t, l->redis, key_billing, NULL, STR("ZADD"), key_billing, STR("GT"),
                   str_int(task_arena(t), loop_wall_ms(task_loop(t))), str_int(task_arena(t), uid));
    if (!err)
        *last = (struct ledger_announced){uid, now_ms, epoch};
    return err;
}

static int charge_once(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                       bool *done, enum charge_outcome *out)
{
    bool loaded = true;
    int64_t cents;
    int err = announce(t, l, c->uid);
    if (!err)
        err = call_script(t, l, count, c, &loaded, out);
    if (!err && !loaded)
        return ledger_load(t, l, c->uid, &cents);
    *done = !err;
    return err;
}

/* All are charges of one run. */
static int charge_all(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                      enum charge_outcome *out)
{
    check(count > 0 && count <= CHARGE_MANY_MAX);
    cache_touch(t, l->cache, c->uid); /* first: a balance without a deadline would stay for ever */
    for (int i = 0; i < TRIES_MAX; i++) {
        bool done = false;
        struct arena_mark mark = arena_mark(task_arena(t));
        int err = charge_once(t, l, count, c, &done, out);
        arena_reset(task_arena(t), mark);
        if (done || (err && err != ERR_UNCERTAIN)) /* charged or not, the script will see */
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE, "Redis comes and goes");
}

int ledger_charge_many(struct task *t, struct ledger *l, size_t count, const struct charge *c,
                       enum charge_outcome *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *problem = problem_of(&c[i], c);
        if (problem)
            return task_fail(t, ERR_INVALID, "%s", problem);
    }
    return charge_all(t, l, count, c, out);
}

/* --- one call for all who come in the same turn ---
 *
 *   1. The first task that charges for a run opens a gather and yields: every other task that is ready
 *      runs before it. If it has patience it sleeps instead.
 *   2. Those that charge for the same run leave their charge and wait.
 *   3. The first one comes back, closes the gather, copies what is in it and makes the call. Who gives
 *      up meanwhile takes itself out; the call may have charged for it, as with any lost answer.
 *   4. It hands the outcomes out. If it was cut short itself (cancelled, or out of its own time), the
 *      others do not know what happened and begin anew. */

struct gather {
    struct str key;
    struct list places;
    size_t count;
};

struct place {
    struct list link;
    struct task *task;
    const struct charge *charge;
    size_t number; /* in the call */
    bool done, again;
    int err;
    enum charge_outcome outcome;
};

static void gather_close(struct ledger *l, const struct gather *g)
{
    if (map_get(l->gathers, g->key) == g)
        map_del(l->gathers, g->key);
}

static int follow(struct task *t, struct ledger *l, struct gather *g, struct place *p)
{
    list_push(&g->places, &p->link);
    if (++g->count == CHARGE_MANY_MAX)
        gather_close(l, g);
    int err = 0;
    while (!p->done && !err)
        err = task_wait(t);
    if (p->done)
        return p->err;
    list_del(&p->link);
    return err;
}

/* It may be gone before the call is made, or made again. The run is the leader's own. */
static struct charge copy_charge(struct arena *a, const struct charge *c, struct str qid)
{
    struct charge copy = *c;
    copy.qid = qid;
    copy.doi = str_dup(a, c->doi);
    copy.result = str_dup(a, c->result);
    return copy;
}

static void hand_out(struct task *t, struct gather *g, int err, const enum charge_outcome *outcomes)
{
    for (struct list *it; (it = list_pop(&g->places));) {
        struct place *p = list_entry(it, struct place, link);
        p->done = true;
        p->again = err == ERR_CANCELED || err == ERR_TIMEOUT;
        p->err = err;
        if (!err)
            p->outcome = outcomes[p->number];
        else if (p->task != t)
            (void)task_fail(p->task, err, "%s", task_error(t));
        if (p->task != t)
            task_wake(p->task);
    }
}

static int lead(struct task *t, struct ledger *l, struct str key, struct place *p)
{
    struct arena *a = task_arena(t);
    struct gather g = {.key = key, .count = 1};
    list_init(&g.places);
    list_push(&g.places, &p->link);
    map_set(l->gathers, key, &g);
    int64_t ms = p->charge->patience_ms;
    int err = ms > 0 ? task_sleep(t, ms) : task_yield(t);
    gather_close(l, &g);

    struct charge *charges = ARENA_ARRAY(a, struct charge, g.count);
    enum charge_outcome *outcomes = ARENA_ARRAY(a, enum charge_outcome, g.count);
    size_t count = 0;
    list_each (it, &g.places) {
        struct place *q = list_entry(it, struct place, link);
        q->number = count;
        charges[count++] = q == p ? *p->charge : copy_charge(a, q->charge, p->charge->qid);
    }
    if (!err)
        err = charge_all(t, l, count, charges, outcomes);
    hand_out(t, &g, err, outcomes);
    return err;
}

static int charge_together(struct task *t, struct ledger *l, struct place *p)
{
    struct str key = key_result(task_arena(t), p->charge->uid, p->charge->qid);
    for (int i = 0; i < GATHERS_MAX; i++) {
        struct gather *g = map_get(l->gathers, key);
        if (!g)
            return lead(t, l, key, p);
        int err = follow(t, l, g, p);
        if (!p->again)
            return err;
        p->done = p->again = false;
    }
    return lead(t, l, key, p);
}

int ledger_charge(struct task *t, struct ledger *l, const struct charge *c,
                  enum charge_outcome *out)
{
    const char *problem = problem_of(c, c); /* here, so that it does not spoil the others' call */
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    struct place p = {.task = t, .charge = c};
    struct arena_mark mark = arena_mark(task_arena(t));
    int err = charge_together(t, l, &p);
    arena_reset(task_arena(t), mark);
    if (!err)
        *out = p.outcome;
    return err;
}
