#include "engine/ai/permits_private.h"

/* --- what goes back --- */

void keyring_give_back(struct keyring *k, int64_t now_us, struct keyring_key *key,
                       const struct keyring_return *r)
{
    if (r->requests == 0 && r->tokens == 0)
        return;
    struct keyring_return *x = &key->returns[r->slot % KEYRING_SLOTS];
    if (x->waiting && x->slot != r->slot) /* Redis was away for a minute: that slot is history */
        x->requests = x->tokens = 0;
    if (!x->waiting && k->return_count++ == 0) {
        k->return_since_us = now_us;
        keyring_wake(k);
    }
    x->waiting = true;
    x->slot = r->slot;
    x->requests += r->requests;
    x->tokens += r->tokens;
}

void keyring_clear_lots(struct keyring *k, int64_t now_us, const struct keyring_key *of)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->lot_count; i++) {
        struct keyring_lot *x = &k->lots[i];
        bool fresh = now_us < x->begun_us + KEYRING_STOCK_SLOTS * keyring_slot_us(k);
        if (fresh && x->requests && x->key != of) {
            k->lots[kept++] = *x;
            continue;
        }
        k->stock -= x->requests;
        keyring_give_back(k, now_us, x->key,
                          &(struct keyring_return){
                              .slot = x->slot, .requests = x->requests, .tokens = x->tokens});
    }
    k->lot_count = kept;
}

/* --- handing out --- */

/* age_us: of the lease, at most. */
static bool hand_out(struct keyring *k, int64_t now_us, int64_t age_us, int64_t tokens,
                     struct permit *out, struct keyring_key **key)
{
    for (size_t i = 0; i < k->lot_count; i++) {
        struct keyring_lot *x = &k->lots[i];
        if (x->requests == 0 || x->tokens < tokens || now_us >= x->begun_us + age_us ||
            !x->key->active || x->key->rests_until_us > now_us)
            continue;
        x->requests--;
        x->tokens -= tokens;
        k->stock--;
        *key = x->key;
        *out = (struct permit){.key_id = x->key->id,
                               .slot = x->slot,
                               .tokens = tokens,
                               .until_us = x->begun_us + KEYRING_VALID_SLOTS * keyring_slot_us(k)};
        return true;
    }
    return false;
}

static void finish(struct keyring_waiter *w, int err)
{
    list_del(&w->in);
    w->done = true;
    w->err = err;
    task_wake(w->task);
}

void keyring_serve(struct keyring *k, int64_t now_us, bool just_leased)
{
    int64_t slots = just_leased ? KEYRING_VALID_SLOTS - KEYRING_LEFT_SLOTS : KEYRING_STOCK_SLOTS;
    int64_t age_us = slots * keyring_slot_us(k);
    while (!list_empty(&k->waiting)) {
        struct keyring_waiter *w = list_entry(k->waiting.next, struct keyring_waiter, in);
        if (!hand_out(k, now_us, age_us, w->tokens, w->out, &w->key))
            return;
        finish(w, 0);
    }
}

void keyring_fail_waiters(struct keyring *k, int err)
{
    struct list *lists[] = {&k->waiting, &k->large};
    for (size_t i = 0; i < 2; i++)
        while (!list_empty(lists[i]))
            finish(list_entry(lists[i]->next, struct keyring_waiter, in), err);
}

/* Limits have changed: who is large? */
void keyring_sort_waiters(struct keyring *k)
{
    list_each_safe (it, &k->waiting)
        if (list_entry(it, struct keyring_waiter, in)->tokens > k->tpm_max) {
            list_del(it);
            list_push(&k->large, it);
        }
    list_each_safe (it, &k->large)
        if (list_entry(it, struct keyring_waiter, in)->tokens <= k->tpm_max) {
            list_del(it);
            list_push(&k->waiting, it);
        }
}

/* --- taking --- */

static int wait_for_permit(struct task *t, struct keyring *k, struct keyring_waiter *w)
{
    bool large = k->looked && w->tokens > k->tpm_max;
    struct list *line = large ? &k->large : &k->waiting;
    if (list_empty(line))
        keyring_wake(k);
    list_push(line, &w->in);
    metric_add(k->waits, 1);
    int err = 0;
    while (!w->done && !err)
        err = task_wait(t);
    list_del(&w->in);
    if (!err)
        return w->err;
    if (w->done && !w->err) /* it came too late */
        keyring_give_back(k, loop_now_us(task_loop(t)), w->key,
                          &(struct keyring_return){
                              .slot = w->out->slot, .requests = 1, .tokens = w->out->tokens});
    return err;
}

int keyring_take(struct task *t, struct keyring *k, int64_t tokens, struct permit *out)
{
    check(tokens >= 0);
    if (task_canceled(t))
        return task_fail(t, ERR_CANCELED, "the task was told to stop");
    if (k->looked && k->tpm_max == 0)
        return task_fail(t, ERR_UNAVAILABLE, "there is no active key of the AI service");
    struct permit p;
    struct keyring_waiter w = {.task = t, .tokens = tokens, .out = &p};
    int64_t now_us = loop_now_us(task_loop(t));
    k->takes++;
    k->take_tokens += tokens;
    if (!list_empty(&k->waiting) ||
        !hand_out(k, now_us, KEYRING_STOCK_SLOTS * keyring_slot_us(k), tokens, &p, &w.key)) {
        int err = wait_for_permit(t, k, &w);
        if (err == ERR_UNAVAILABLE)
            return task_fail(t, err, "there is no active key of the AI service any more");
        if (err)
            return err;
    } else if (k->stock < k->demand / 5 && now_us >= k->advance_again_us) {
        keyring_wake(k);
    }
    metric_add(k->permits, 1);
    *out = p;
    out->api_key = str_dup(task_arena(t), str_of(w.key->api_key));
    return 0;
}

/* --- and after --- */

void keyring_settle(struct task *t, struct keyring *k, const struct permit *p, int64_t tokens_used)
{
    struct keyring_key *key = keyring_find(k, p->key_id);
    check(key && tokens_used >= 0);
    keyring_give_back(k, loop_now_us(task_loop(t)), key,
                      &(struct keyring_return){.slot = p->slot, .tokens = p->tokens - tokens_used});
}

void keyring_unused(struct task *t, struct keyring *k, const struct permit *p)
{
    struct keyring_key *key = keyring_find(k, p->key_id);
    check(key);
    keyring_give_back(
        k, loop_now_us(task_loop(t)), key,
        &(struct keyring_return){.slot = p->slot, .requests = 1, .tokens = p->tokens});
}
