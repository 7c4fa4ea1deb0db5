#include "loop/gather.h"

struct clerk {
    struct list link;
    int64_t key;
};

void gather_init(struct gather *g, const struct gather_options *o)
{
    check(o->items_max > 0 && o->clerks_max > 0);
    *g = (struct gather){.options = *o};
    list_init(&g->line);
    list_init(&g->working);
}

void gather_fail(struct gather_item *item, int err, const char *why)
{
    item->err = task_fail(item->task, err, "%s", why);
}

static bool is_busy(const struct gather *g, int64_t key)
{
    list_each (it, &g->working)
        if (list_entry(it, struct clerk, link)->key == key)
            return true;
    return false;
}

/* The items of the first key in line that no clerk is busy with. */
static size_t take(struct gather *g, struct gather_item **out)
{
    size_t n = 0;
    list_each (it, &g->line) {
        struct gather_item *item = list_entry(it, struct gather_item, link);
        if (n == 0 ? is_busy(g, item->key) : item->key != out[0]->key)
            continue;
        out[n++] = item;
        if (n == g->options.items_max)
            break;
    }
    for (size_t i = 0; i < n; i++) {
        list_del(&out[i]->link);
        out[i]->state = GATHER_TAKEN;
    }
    return n;
}

static void hand_back(struct task *t, struct gather_item **items, size_t count, int err)
{
    for (size_t i = 0; i < count; i++) {
        if (err)
            gather_fail(items[i], err, task_error(t));
        items[i]->state = GATHER_DONE;
        task_wake(items[i]->task);
    }
}

static task_fn clerk_task;

static bool has_work(const struct gather *g)
{
    list_each (it, &g->line)
        if (!is_busy(g, list_entry(it, struct gather_item, link)->key))
            return true;
    return false;
}

/* ERR_LIMIT: none can be started, and none is there. */
static int need_clerk(struct gather *g)
{
    if (g->starting || g->clerks == g->options.clerks_max || !has_work(g))
        return 0;
    int err = task_go(g->options.group, g->options.name, clerk_task, g);
    g->starting = !err;
    g->clerks += !err;
    return g->clerks ? 0 : err;
}

static void clerk_task(struct task *t, void *arg)
{
    struct gather *g = arg;
    struct gather_item **items =
        ARENA_ARRAY(task_arena(t), struct gather_item *, g->options.items_max);
    g->starting = false;
    for (size_t n; (n = take(g, items)) > 0;) {
        struct clerk self = {.key = items[0]->key};
        struct task_scope scope = task_scope(t);
        list_push(&g->working, &self.link);
        (void)need_clerk(g); /* for another key; without one, this clerk comes to it */
        hand_back(t, items, n, g->options.fn(t, g->options.arg, items, n));
        list_del(&self.link);
        task_scope_end(t, scope);
    }
    g->clerks--;
}

int gather_do(struct task *t, struct gather *g, struct gather_item *item, int64_t key)
{
    *item = (struct gather_item){.task = t, .key = key};
    list_push(&g->line, &item->link);
    int err = need_clerk(g);
    while (!err && item->state == GATHER_WAITS)
        err = task_wait(t);
    if (item->state == GATHER_WAITS) {
        list_del(&item->link);
        return err == ERR_LIMIT ? task_fail(t, err, "no stack is free") : err;
    }
    while (item->state != GATHER_DONE)
        task_wait_always(t);
    return item->err;
}
