/* Items that have numbers go to the list, in the order of these, while the next ones are numbered.
 * What died in between is found again by its number (fill.c). */
#include <stdio.h>
#include <stdlib.h>

#include "app/pool/pools_private.h"
#include "base/json.h"
#include "engine/store/scripts.h"

#define PUSH_BYTES_MAX (1 << 20)

/* Items as the list has them, one behind the other. */
static void write_items(struct pool_push *p, const struct sql_rows *rows)
{
    buf_init(&p->json);
    p->ends = check_memory(malloc(rows->count * sizeof *p->ends));
    p->count = rows->count;
    for (size_t i = 0; i < rows->count; i++) {
        const struct sql_value *row = sql_row(rows, i);
        buf_add_lit(&p->json, "{\"id\":");
        buf_add_int(&p->json, row[1].i);
        buf_add_lit(&p->json, ",\"text\":\"");
        json_escape(&p->json, row[2].s);
        buf_add_lit(&p->json, "\"}");
        p->ends[i] = p->json.len;
    }
}

static size_t end_of(const struct pool_push *p, size_t i)
{
    return i ? p->ends[i - 1] : 0;
}

/* From the item at *at on. */
static int push_some(struct task *t, const struct pool_push *p, size_t *at)
{
    struct arena *a = task_arena(t);
    struct pool *x = p->pool;
    struct str *items = ARENA_ARRAY(a, struct str, POOL_PUSH_ITEMS);
    size_t count = 0, first = end_of(p, *at), end = first;
    int64_t behind, number = p->number + (int64_t)*at;
    while (*at + count < p->count && count < POOL_PUSH_ITEMS && end - first < PUSH_BYTES_MAX) {
        size_t begin = end;
        end = p->ends[*at + count];
        items[count++] = str_from(buf_str(&p->json).p + begin, end - begin);
    }
    int err = SCRIPT_NUMBER(t, x->pools->options.redis_bulk, pool_push, &behind, .list = x->list,
                            .state = x->state, .name = p->list, .number = str_int(a, number),
                            .bytes = str_int(a, (int64_t)(end - first)), .items = {items, count});
    if (err)
        return err;
    if (behind < number) /* it is lost, or another one */
        return task_fail(t, ERR_BUSY, "the list of %.*s was changed while it was filled",
                         STR_ARG(x->key));
    *at += (size_t)(behind - number); /* further, if another node has pushed the same */
    return 0;
}

static void push_task(struct task *t, void *arg)
{
    struct pool_push *p = arg;
    struct pool *x = p->pool;
    for (size_t at = 0; at < p->count && !p->err;) {
        struct task_scope s = task_scope(t);
        p->err = push_some(t, p, &at);
        x->pushes++;
        waitq_wake_all(&x->filled);
        task_scope_end(t, s);
    }
    if (p->err)
        snprintf(p->why, sizeof p->why, "%s", task_error(t));
}

void pool_push_begin(struct task *t, struct pool_push *p, const struct sql_rows *rows,
                     int64_t number)
{
    check(p->count == 0);
    if (rows->count == 0)
        return;
    group_init(&p->tasks, task_loop(t));
    p->number = number;
    write_items(p, rows);
    p->pool->item_bytes = (int64_t)(p->json.len / p->count);
    p->err = task_go(&p->tasks, "pool push", push_task, p);
    if (p->err)
        snprintf(p->why, sizeof p->why, "no stack is free");
}

int pool_push_end(struct task *t, struct pool_push *p)
{
    if (p->count == 0)
        return 0;
    int err = group_join(t, &p->tasks);
    if (!err && p->err)
        err = task_fail(t, p->err, "%s", p->why);
    buf_release(&p->json);
    free(p->ends);
    p->count = 0;
    return err;
}
