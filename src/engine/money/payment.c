/* What jobs cost. Payments of one user that come to this node at about the same time are made by
 * one deduction of several requests (deduct.c): a job more costs a row more in its statements, and
 * no round trip. */
#include "engine/money/ledger_private.h"

#define CLERKS_MAX 8 /* users whose payments are made at the same time */

struct payment {
    struct gather_item item;
    struct ledger_move m;
    bool listed; /* in a deduction, that one or an earlier one */
};

static bool is_listed(const struct ledger_deduction *list, size_t count, struct str request_id)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i].m->request_id, request_id))
            return true;
    return false;
}

/* Those that come next. A job that is worked on twice, because its lease was lost, may pay twice at
 * the same time: its second payment is made after the first, and finds it. */
static size_t choose(struct gather_item **items, size_t count, struct ledger_deduction *list)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct payment *p = (struct payment *)(void *)items[i];
        if (p->listed || is_listed(list, n, p->m.request_id))
            continue;
        p->listed = true;
        list[n++] = (struct ledger_deduction){.m = &p->m, .task = items[i]->task};
    }
    return n;
}

static int pay_all(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct ledger *l = arg;
    struct ledger_deduction *list = ARENA_ARRAY(task_arena(t), struct ledger_deduction, count);
    cache_touch(t, l->cache, items[0]->key);
    for (size_t n; (n = choose(items, count, list)) > 0;) {
        ledger_deduct_all(t, l, list, n);
        for (size_t i = 0; i < n; i++) {
            struct payment *p = list_entry(list[i].m, struct payment, m);
            if (list[i].err)
                gather_fail(&p->item, list[i].err, task_error(p->item.task));
        }
    }
    return 0;
}

void ledger_payments_init(struct ledger *l, struct group *group)
{
    gather_init(&l->payments, &(struct gather_options){.group = group,
                                                       .name = "payments",
                                                       .fn = pay_all,
                                                       .arg = l,
                                                       .items_max = LEDGER_PAYMENTS,
                                                       .clerks_max = CLERKS_MAX});
}

int ledger_pay(struct task *t, struct ledger *l, const struct ledger_move *m)
{
    const char *problem = ledger_move_problem(m);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    check(l->payments.options.group && !m->also);
    struct payment p = {.m = *m};
    return gather_do(t, &l->payments, &p.item, m->uid);
}
