#include "engine/ai/permits_private.h"

/* --- what goes back --- */

void permits_give_back(struct permits *k, int64_t now_us, struct permits_key *key,
                       const struct permits_return *r)
{
    if (r->requests == 0 && r->tokens == 0)
        return;
    struct permits_return *x = &key->returns[r->slot % PERMITS_SLOTS];
    if (x->waiting && x->slot != r->slot) /* Redis was away for a minute: that slot is history */
        x->requests = x->tokens = 0;
    if (!x->waiting && k->return_count++ == 0) {
        k->return_since_us = now_us;
        permits_wake(k);
    }
    x->waiting = true;
    x->slot = r->slot;
    x->requests += r->requests;
    x->tokens += r->tokens;
}

void permits_clear_lots(struct permits *k, int64_t now_us, const struct permits_key *of)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->lot_count; i++) {
        struct permits_lot *x = &k->lots[i];
        bool fresh = now_us < x->begun_us + PERMITS_STOCK_SLOTS * permits_slot_us(k);
        if (fresh && x->requests && x->key != of) {
            k->lots[kept++] = *x;
            continue;
        }
        k->stock -= x->requests;
        permits_give_back(k, now_us, x->key,
                          &(struct permits_return){
                              .slot = x->slot, .requests = x->requests, .tokens = x->tokens});
    }
    k->lot_count = kept;
}

/* --- handing out --- */

/* What may be handed out. */
struct wish {
    int64_t tokens, age_us; /* age_us: of the lease, at most */
    int64_t what;           /* for a class; PERMITS_ANY: of all lots */
};

static bool hand_out(struct permits *k, int64_t now_us, const struct wish *w, struct permit *out,
                     struct permits_key **key)
{
    int64_t tokens = w->tokens;
    for (size_t i = 0; i < k->lot_count; i++) {
        struct permits_lot *x = &k->lots[i];
        bool meant = w->what == PERMITS_ANY || x->what == PERMITS_ANY || x->what == w->what;
        if (!meant || x->requests == 0 || x->tokens < tokens || now_us >= x->begun_us + w->age_us ||
            !x->key->active || x->key->rests_until_us > now_us || x->key->tried)
            continue;
        x->requests--;
        x->tokens -= tokens;
        k->stock--;
        x->key->tried = x->key->on_trial;
        *key = x->key;
        *out = (struct permit){.key_id = x->key->id,
                               .slot = x->slot,
                               .tokens = tokens,
                               .until_us = x->begun_us + PERMITS_VALID_SLOTS * permits_slot_us(k)};
        return true;
    }
    return false;
}

static void finish(struct permits_waiter *w, int err)
{
    list_del(&w->in);
    w->done = true;
    w->err = err;
    task_wake(w->task);
}

static void serve(struct permits *k, int64_t now_us, struct list *line, struct wish wish)
{
    while (!list_empty(line)) {
        struct permits_waiter *w = list_entry(line->next, struct permits_waiter, in);
        wish.tokens = w->tokens;
        if (!hand_out(k, now_us, &wish, w->out, &w->key))
            return;
        finish(w, 0);
    }
}

/* Each class by what was leased for it; then by what that class has left over. */
void permits_serve(struct permits *k, int64_t now_us, bool just_leased)
{
    int64_t slots = just_leased ? PERMITS_VALID_SLOTS - PERMITS_LEFT_SLOTS : PERMITS_STOCK_SLOTS;
    struct wish wish = {.age_us = slots * permits_slot_us(k)};
    for (size_t c = 0; c < PERMITS_CLASSES; c++) {
        wish.what = (int64_t)c;
        serve(k, now_us, &k->waiting[c], wish);
    }
    wish.what = PERMITS_ANY;
    for (size_t c = 0; c < PERMITS_CLASSES; c++)
        serve(k, now_us, &k->waiting[c], wish);
}

void permits_fail_waiters(struct permits *k, int err)
{
    struct list *lists[] = {&k->waiting[PERMITS_RUNS], &k->waiting[PERMITS_JOBS], &k->large};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        while (!list_empty(lists[i]))
            finish(list_entry(lists[i]->next, struct permits_waiter, in), err);
}

/* Limits have changed: which tasks are above all of them? */
void permits_sort_waiters(struct permits *k)
{
    for (size_t c = 0; c < PERMITS_CLASSES; c++)
        list_each_safe (it, &k->waiting[c])
            if (list_entry(it, struct permits_waiter, in)->tokens > k->tpm_max) {
                list_del(it);
                list_push(&k->large, it);
            }
    list_each_safe (it, &k->large) {
        const struct permits_waiter *w = list_entry(it, struct permits_waiter, in);
        if (w->tokens <= k->tpm_max) {
            list_del(it);
            list_push(&k->waiting[w->class], it);
        }
    }
}

/* --- taking --- */

static int wait_for_permit(struct task *t, struct permits *k, struct permits_waiter *w)
{
    bool large = k->looked && w->tokens > k->tpm_max;
    struct list *line = large ? &k->large : &k->waiting[w->class];
    if (list_empty(line))
        permits_wake(k);
    list_push(line, &w->in);
    metric_add(k->waits, 1);
    int err = 0;
    while (!w->done && !err)
        err = task_wait(t);
    list_del(&w->in);
    if (!err)
        return w->err;
    if (w->done && !w->err) { /* the permit came too late */
        w->key->tried = false;
        permits_give_back(k, loop_now_us(task_loop(t)), w->key,
                          &(struct permits_return){
                              .slot = w->out->slot, .requests = 1, .tokens = w->out->tokens});
    }
    return err;
}

int permits_take(struct task *t, struct permits *k, enum permits_class c, int64_t tokens,
                 struct permit *out)
{
    check(tokens >= 0);
    if (task_canceled(t))
        return task_fail(t, ERR_CANCELED, "the task was cancelled");
    if (permits_none(k))
        return task_fail(t, ERR_UNAVAILABLE, "there is no active key of the AI service");
    struct permit p;
    struct permits_waiter w = {.task = t, .class = c, .tokens = tokens, .out = &p};
    struct wish wish = {
        .tokens = tokens, .age_us = PERMITS_STOCK_SLOTS * permits_slot_us(k), .what = PERMITS_ANY};
    int64_t now_us = loop_now_us(task_loop(t));
    k->takes++;
    k->take_tokens += tokens;
    if (!list_empty(&k->waiting[c]) || !hand_out(k, now_us, &wish, &p, &w.key)) {
        int err = wait_for_permit(t, k, &w);
        if (err == ERR_UNAVAILABLE)
            return task_fail(t, err, "there is no active key of the AI service any more");
        if (err)
            return err;
    } else if (k->stock < k->demand / 5 && now_us >= k->advance_again_us) {
        permits_wake(k);
    }
    metric_add(k->given, 1);
    *out = p;
    out->api_key = str_dup(task_arena(t), str_of(w.key->api_key));
    return 0;
}

/* --- and after --- */

/* A call with the key has ended. fine: not with a 429, after which permits_cool comes first. */
static void end_trial(struct task *t, struct permits *k, struct permits_key *key, bool fine)
{
    if (!key->tried)
        return;
    key->tried = false;
    key->on_trial = !fine;
    permits_serve(k, loop_now_us(task_loop(t)), false);
    permits_wake(k);
}

void permits_settle(struct task *t, struct permits *k, const struct permit *p, int64_t tokens_used)
{
    struct permits_key *key = permits_find(k, p->key_id);
    check(key && tokens_used >= 0);
    end_trial(t, k, key, true);
    permits_give_back(k, loop_now_us(task_loop(t)), key,
                      &(struct permits_return){.slot = p->slot, .tokens = p->tokens - tokens_used});
}

void permits_unused(struct task *t, struct permits *k, const struct permit *p)
{
    struct permits_key *key = permits_find(k, p->key_id);
    check(key);
    end_trial(t, k, key, false);
    permits_give_back(
        k, loop_now_us(task_loop(t)), key,
        &(struct permits_return){.slot = p->slot, .requests = 1, .tokens = p->tokens});
}
