#include "app/embed/search/search_private.h"

#include <stdlib.h>

#include "base/time.h"
#include "loop/loop.h"

#define TURNS       8     /* searches at once on a node */
#define WAITING_MAX 64    /* and so many that wait for one */
#define SEARCH_MS   15000 /* of all of it */

static const char *const reasons[SEARCH_REASON_COUNT] = {
    COLLECTION_NO_SERVICE, COLLECTION_NO_ANSWER, COLLECTION_EMPTY, COLLECTION_REBUILT,
    COLLECTION_AWAY,       COLLECTION_OTHER,     SEARCH_NO_WORDS};

struct searches *searches_new(struct node *n)
{
    struct searches *s = check_memory(calloc(1, sizeof *s));
    struct arena a;
    s->node = n;
    s->words = words_new(n->sql);
    s->sources = (struct search_sources){
        collection_search, collection_like, words_search, post_hidden_of,     post_rows,
        paper_rows,        journal_numbers, post_extent,  post_extent_hidden, papers_extent};
    sem_init(&s->turns, TURNS);
    arena_init(&a);
    for (int i = 0; i < 2; i++)
        s->asked[i] =
            metric(n->metrics, METRIC_COUNTER, "millrace_searches_total",
                   i ? "kind=\"like\"" : "kind=\"question\"", "Searches of posts and papers.");
    for (size_t i = 0; i < SEARCH_REASON_COUNT; i++)
        s->degraded[i] = metric(n->metrics, METRIC_COUNTER, "millrace_searches_degraded_total",
                                arena_printf(&a, "reason=\"%s\"", reasons[i]),
                                "Searches that one way of searching was missing from.");
    arena_release(&a);
    s->seconds = histogram_new(n->metrics, "millrace_search_seconds",
                               "Searching posts and papers, the first page.");
    return s;
}

void searches_free(struct searches *s)
{
    if (!s)
        return;
    words_free(s->words);
    histogram_free(s->seconds);
    often_release(&s->often);
    free(s);
}

/* --- how often, and how many at once --- */

static int count_user(struct task *t, struct searches *s, struct search_caller who,
                      int64_t *retry_after_s)
{
    return who.admin
               ? 0
               : often_count(t, &s->often, who.uid, SEARCH_MINUTE_MAX, "searches", retry_after_s);
}

static int take_turn(struct task *t, struct searches *s)
{
    if (s->waiting >= WAITING_MAX)
        return task_fail(t, ERR_BUSY, "too many searches are under way: try again in a moment");
    s->waiting++;
    int err = sem_get(t, &s->turns);
    s->waiting--;
    return err;
}

static void note_degraded(struct searches *s, const char *reason)
{
    for (size_t i = 0; reason && i < SEARCH_REASON_COUNT; i++)
        if (strcmp(reason, reasons[i]) == 0)
            metric_add(s->degraded[i], 1);
}

/* --- pages --- */

/* The order that the cursor is of, or a new one. */
static int order_of(struct task *t, struct searches *s, const struct search_wish *w,
                    struct search_place *p, struct search_found *f)
{
    int err = w->cursor.p ? search_place_read(t, w->cursor, p) : 0;
    if (err)
        return err;
    err = p->id.p ? search_kept(t, s, w, p->id, f) : ERR_NOT_FOUND;
    if (err != ERR_NOT_FOUND)
        return err;
    p->id = STR_NULL;
    int64_t begun_us = loop_now_us(task_loop(t));
    metric_add(s->asked[0], 1);
    err = search_find(t, s, w, f);
    histogram_add_us(s->seconds, loop_now_us(task_loop(t)) - begun_us);
    if (!err)
        note_degraded(s, f->reason);
    return err;
}

static int make_page(struct task *t, struct searches *s, const struct search_wish *w,
                     struct search_page *out)
{
    struct search_place p = {STR_NULL, 0};
    struct search_found f = {.reason = NULL};
    int err = order_of(t, s, w, &p, &f);
    if (err)
        return err;
    err = search_hits(t, s, w->who, w->question, &f.order, &p.at, w->limit, out);
    if (err)
        return err;
    err = search_count(t, s, w, out->extents);
    if (err)
        return err;
    out->reason = f.reason;
    if (p.at < f.order.count) {
        if (!p.id.p)
            search_keep(t, s, w, &f, &p.id);
        out->next = search_place_write(task_arena(t), &p);
    }
    return 0;
}

int search_page(struct task *t, struct searches *s, const struct search_wish *w,
                struct search_page *out, int64_t *retry_after_s)
{
    *out = (struct search_page){.next = STR_NULL};
    int err = count_user(t, s, w->who, retry_after_s);
    if (err)
        return err;
    int64_t old = task_deadline(t, SEARCH_MS);
    err = take_turn(t, s);
    if (!err) {
        err = make_page(t, s, w, out);
        sem_put(&s->turns);
    }
    task_deadline_restore(t, old);
    return err;
}

/* --- what is alike --- */

static int make_like(struct task *t, struct searches *s, struct search_caller who,
                     enum order_kind kind, uint64_t owner, size_t limit, struct search_page *out)
{
    struct search_found f = {.reason = NULL};
    size_t at = 0;
    int err = search_may_see(t, s, who, kind, owner);
    if (!err)
        err = search_find_like(t, s, who, kind, owner, &f);
    if (err)
        return err;
    note_degraded(s, f.reason);
    out->reason = f.reason;
    return search_hits(t, s, who, STR(""), &f.order, &at, limit, out);
}

int search_like(struct task *t, struct searches *s, struct search_caller who, enum order_kind kind,
                uint64_t owner, size_t limit, struct search_page *out, int64_t *retry_after_s)
{
    *out = (struct search_page){.next = STR_NULL};
    int err = count_user(t, s, who, retry_after_s);
    if (err)
        return err;
    int64_t old = task_deadline(t, SEARCH_MS);
    metric_add(s->asked[1], 1);
    err = take_turn(t, s);
    if (!err) {
        err = make_like(t, s, who, kind, owner, limit, out);
        sem_put(&s->turns);
    }
    task_deadline_restore(t, old);
    return err;
}
