/* gather.h -- what many tasks want at about the same time, done in one go.
 *
 * A task brings an item and waits. A clerk, a task of its own, takes all items of one key that
 * wait, and hands them to a function; those that come meanwhile wait for the next call, and go
 * together. Nothing is delayed in order to collect: an item that comes alone goes at once.
 *
 * Always true: one call about a key is under way at a time; an item is in one call at most; a task
 * does not return from gather_do while a clerk has its item. */
#ifndef LOOP_GATHER_H
#define LOOP_GATHER_H

#include "loop/task.h"

/* The first member of what the caller brings. All of it is gather's own but task, which tells fn
 * where results live: task_arena(item->task). */
struct gather_item {
    struct list link;
    struct task *task;
    int64_t key;
    int err;
    enum { GATHER_WAITS, GATHER_TAKEN, GATHER_DONE } state;
};

/* Runs in a clerk's task. An error is that of all items, with its text; if it returns 0, items
 * differ: each has succeeded, but for those that gather_fail was called for. */
typedef int gather_fn(struct task *t, void *arg, struct gather_item **items, size_t count);

struct gather_options {
    struct group *group; /* of the clerks; borrowed */
    const char *name;    /* a constant, for debuggers */
    gather_fn *fn;
    void *arg;
    size_t items_max;  /* in one call */
    size_t clerks_max; /* calls under way, each about another key */
};

struct gather {
    struct gather_options options;
    struct list line;    /* items that no clerk has, in the order they came */
    struct list working; /* struct clerk */
    size_t clerks;       /* working, or started to */
    bool starting;       /* one of them has not run yet */
};

void gather_init(struct gather *g, const struct gather_options *o);
/* What became of the item. ERR_CANCELED, ERR_TIMEOUT: no clerk had it yet. ERR_LIMIT: no clerk
 * could be started. The task's error has the words. */
MUST_CHECK int gather_do(struct task *t, struct gather *g, struct gather_item *item, int64_t key);
void gather_fail(struct gather_item *item, int err, const char *why); /* for fn */
#endif
