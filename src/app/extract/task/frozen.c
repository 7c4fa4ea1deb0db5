/* What tasks have frozen, as it was last used: parsed and written once on a node, not for each
 * document. Rows of extraction_task keep their fields and model for good, so nothing here is ever
 * stale. */
#include "app/extract/task/extract_private.h"

#include <stdlib.h>

#include "app/extract/fields/prompt.h"
#include "engine/judge/prompt.h"
#include "engine/setup/config.h"
#include "engine/setup/endpoint.h"

#define KEPT_MAX 64 /* besides those in use */

static void frozen_free(struct extract_frozen *f)
{
    list_del(&f->link);
    arena_release(&f->arena);
    free(f);
}

/* The one that was used longest ago is first in the list. */
static void forget_old(struct extract *x)
{
    struct list *next;
    for (struct list *it = x->frozen.next; x->frozen_count > KEPT_MAX && it != &x->frozen;
         it = next) {
        struct extract_frozen *f = list_entry(it, struct extract_frozen, link);
        next = it->next;
        if (f->users)
            continue;
        frozen_free(f);
        x->frozen_count--;
    }
}

void extract_frozen_release(struct extract *x)
{
    struct list *it;
    while ((it = x->frozen.next) != &x->frozen)
        frozen_free(list_entry(it, struct extract_frozen, link));
}

static struct extract_frozen *find(struct extract *x, int64_t number)
{
    list_each (it, &x->frozen) {
        struct extract_frozen *f = list_entry(it, struct extract_frozen, link);
        if (f->number == number)
            return f;
    }
    return NULL;
}

struct extract_frozen *extract_frozen_get(struct extract *x, int64_t number)
{
    struct extract_frozen *f = find(x, number);
    if (!f)
        return NULL;
    list_del(&f->link);
    list_push(&x->frozen, &f->link);
    f->users++;
    return f;
}

void extract_frozen_put(struct extract_frozen *f)
{
    if (!f)
        return;
    check(f->users > 0);
    f->users--;
}

static struct extract_question *question_of(const struct extract *x, struct extract_frozen *f)
{
    const struct config *c = x->node->config;
    struct prompt_model m = {.name = f->model.p,
                             .temperature_milli = c->ai_temperature_milli,
                             .max_tokens = c->extract_max_tokens,
                             .params = endpoint_params(&f->arena, c->ai_params)};
    return extract_question(&f->arena, &f->template, &m, c->extract_json_schema);
}

static void add(struct extract *x, const struct sql_value *row)
{
    struct extract_frozen *f = check_memory(calloc(1, sizeof *f));
    const char *complaint = NULL;
    arena_init(&f->arena);
    f->number = row[0].i;
    struct str fields = str_dup(&f->arena, row[1].s);
    f->model = str_of(str_z(&f->arena, row[2].s));
    if (extract_template_parse(&f->arena, fields, &f->template, &complaint))
        f->problem = complaint;
    else
        f->question = question_of(x, f);
    list_push(&x->frozen, &f->link);
    x->frozen_count++;
}

int extract_frozen_load(struct task *t, struct extract *x, const int64_t *numbers, size_t count)
{
    struct arena *a = task_arena(t);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, sql_padded(count));
    struct sql_rows r;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool known = find(x, numbers[i]) != NULL;
        for (size_t k = 0; !known && k < n; k++)
            known = v[k].i == numbers[i];
        if (!known)
            v[n++] = sql_int(numbers[i]);
    }
    if (n == 0)
        return 0;
    forget_old(x); /* not later: what is read now has no user yet */
    size_t marks = sql_padded(n);
    for (size_t i = n; i < marks; i++)
        v[i] = v[n - 1];
    int err = sql_argv(t, x->node->sql,
                       sql_marks(a,
                                 "SELECT number, fields, model FROM extraction_task"
                                 " WHERE number IN",
                                 marks, ""),
                       marks, v, &r);
    for (size_t i = 0; !err && i < r.count; i++)
        if (!find(x, sql_row(&r, i)[0].i)) /* another call may have read it meanwhile */
            add(x, sql_row(&r, i));
    return err;
}
