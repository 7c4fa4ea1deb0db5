/* The order of what was found, by all ways that work. */
#include "app/embed/search/search_private.h"

#define MEANING_MS 8000 /* a service that answers later is away for searches */
#define LISTS      4    /* at most: by meaning and by words, of each kind */

static enum collection collection_of(enum order_kind kind)
{
    return kind == ORDER_POST ? COLLECTION_POSTS : COLLECTION_PAPERS;
}

/* --- what hits must be --- */

struct filters {
    struct point_filter of[ORDER_KINDS];
    bool kinds[ORDER_KINDS];
};

/* Posts that are hidden, but for the caller's own. */
static int filter_posts(struct task *t, struct searches *s, struct search_caller who,
                        struct point_filter *f)
{
    uint64_t *mine = NULL;
    *f = (struct point_filter){.without = who.admin ? 0 : POINT_HIDDEN};
    int err = who.admin ? 0 : s->sources.hidden(t, s->node->sql, who.uid, &mine, &f->unless_count);
    f->unless = mine;
    return err;
}

/* Journals that have no number have no papers that were indexed. */
static int filter_papers(struct task *t, struct searches *s, const struct search_wish *w,
                         struct filters *out)
{
    struct point_filter *f = &out->of[ORDER_PAPER];
    *f =
        (struct point_filter){.year_from = (uint16_t)w->year_from, .year_to = (uint16_t)w->year_to};
    if (w->year_to && !w->year_from)
        f->year_from = 1; /* 0 is no year */
    if (w->journal_count == 0)
        return 0;
    uint16_t *numbers = ARENA_ARRAY(task_arena(t), uint16_t, w->journal_count);
    int err = s->sources.journals(t, s->node->sql, w->journals, w->journal_count, numbers);
    for (size_t i = 0; !err && i < w->journal_count; i++)
        if (numbers[i])
            numbers[f->journal_count++] = numbers[i];
    f->journals = numbers;
    out->kinds[ORDER_PAPER] &= f->journal_count > 0;
    return err;
}

bool search_asks(const struct search_wish *w, enum order_kind kind)
{
    bool of_papers = w->journal_count || w->year_from || w->year_to;
    return w->kinds[kind] && (kind == ORDER_PAPER || !of_papers);
}

static int make_filters(struct task *t, struct searches *s, const struct search_wish *w,
                        struct filters *f)
{
    *f = (struct filters){.kinds = {search_asks(w, ORDER_POST), search_asks(w, ORDER_PAPER)}};
    int err = f->kinds[ORDER_POST] ? filter_posts(t, s, w->who, &f->of[ORDER_POST]) : 0;
    if (!err && f->kinds[ORDER_PAPER])
        err = filter_papers(t, s, w, f);
    return err;
}

/* --- the ways --- */

/* How it went with one way of searching, over all kinds. */
struct way {
    const char *reason;      /* the first that was missing */
    size_t asked, away;      /* collections */
    bool empty[ORDER_KINDS]; /* nothing was embedded yet */
};

static void say(struct way *w, const char *reason, bool away)
{
    w->away += away;
    if (!w->reason)
        w->reason = reason;
}

/* By cosines, which can be compared over collections. */
static void add_points(struct order *o, const struct collection_answer answers[ORDER_KINDS])
{
    size_t at[ORDER_KINDS] = {0}, place = 0;
    const struct collection_answer *posts = &answers[ORDER_POST], *papers = &answers[ORDER_PAPER];
    while (at[ORDER_POST] < posts->count || at[ORDER_PAPER] < papers->count) {
        enum order_kind k =
            at[ORDER_PAPER] == papers->count ||
                    (at[ORDER_POST] < posts->count &&
                     posts->hits[at[ORDER_POST]].score >= papers->hits[at[ORDER_PAPER]].score)
                ? ORDER_POST
                : ORDER_PAPER;
        const struct point *p = &answers[k].hits[at[k]++].point;
        order_add_point(o, k, &place, p->owner, p->version, p->part);
    }
}

static int by_meaning(struct task *t, struct searches *s, const struct search_wish *w,
                      const struct filters *f, struct order *o, struct way *way)
{
    struct collection_answer answers[ORDER_KINDS] = {{.count = 0}, {.count = 0}};
    int64_t old = task_deadline(t, MEANING_MS);
    int err = 0;
    for (int k = 0; k < ORDER_KINDS && !err; k++) {
        struct points_query q = {.k = ORDER_HITS_MAX, .filter = &f->of[k]};
        struct collection_answer *a = &answers[k];
        if (!f->kinds[k])
            continue;
        way->asked++;
        err = s->sources.meaning(t, s->node->collections, collection_of((enum order_kind)k),
                                 w->question, &q, a);
        if (err && err != ERR_CANCELED && err != ERR_INVALID) {
            *a = (struct collection_answer){.degraded = true, .reason = COLLECTION_NO_ANSWER};
            err = 0;
        }
        if (!err && a->degraded && strcmp(a->reason, COLLECTION_EMPTY) == 0)
            way->empty[k] = true; /* which is no trouble if there is nothing to embed */
        else if (!err && a->degraded)
            say(way, a->reason, a->count == 0);
    }
    task_deadline_restore(t, old);
    if (!err)
        add_points(o, answers);
    return err;
}

/* Scores of the two tables cannot be compared: the first of each are alike. */
static int by_words(struct task *t, struct searches *s, const struct search_wish *w,
                    const struct filters *f, struct order *o, struct way *way)
{
    for (int k = 0; k < ORDER_KINDS; k++) {
        struct words_hit *hits = NULL;
        size_t count = 0, place = 0;
        if (!f->kinds[k])
            continue;
        way->asked++;
        int err = s->sources.words(t, s->words, collection_of((enum order_kind)k), w->question,
                                   &f->of[k], ORDER_HITS_MAX, &hits, &count);
        if (err == ERR_CANCELED)
            return err;
        if (err)
            say(way, SEARCH_NO_WORDS, true);
        for (size_t i = 0; !err && i < count; i++)
            order_add_words(o, (enum order_kind)k, &place, hits[i].owner);
    }
    return 0;
}

/* That nothing was embedded is a lack only if words find what could have been. */
static void judge(struct search_found *out, const struct way *meaning, const struct way *words)
{
    out->reason = meaning->reason ? meaning->reason : words->reason;
    for (size_t i = 0; i < out->order.count && !out->reason; i++)
        if (meaning->empty[out->order.hits[i].kind])
            out->reason = COLLECTION_EMPTY;
}

int search_find(struct task *t, struct searches *s, const struct search_wish *w,
                struct search_found *out)
{
    struct filters f;
    struct way meaning = {.reason = NULL}, words = {.reason = NULL};
    *out = (struct search_found){.reason = NULL};
    order_init(&out->order, task_arena(t), LISTS);
    int err = make_filters(t, s, w, &f);
    if (!err)
        err = by_words(t, s, w, &f, &out->order, &words);
    if (!err)
        err = by_meaning(t, s, w, &f, &out->order, &meaning);
    if (err)
        return err;
    bool lost = meaning.asked && meaning.away == meaning.asked && words.away == words.asked;
    if (lost)
        return task_fail(t, ERR_UNAVAILABLE,
                         "neither the vectors nor the words can be searched at the moment");
    judge(out, &meaning, &words);
    order_make(&out->order);
    return 0;
}

int search_find_like(struct task *t, struct searches *s, struct search_caller who,
                     enum order_kind kind, uint64_t owner, struct search_found *out)
{
    struct point_filter f = {.without = 0};
    struct collection_answer answers[ORDER_KINDS] = {{.count = 0}, {.count = 0}};
    struct collection_answer *a = &answers[kind];
    struct points_query q = {.k = ORDER_HITS_MAX, .filter = &f};
    *out = (struct search_found){.reason = NULL};
    order_init(&out->order, task_arena(t), 1);
    int err = kind == ORDER_POST ? filter_posts(t, s, who, &f) : 0;
    if (!err)
        err = s->sources.like(t, s->node->collections, collection_of(kind), owner, &q, a);
    if (err == ERR_NOT_FOUND)
        return task_fail(t, err, "it is not embedded yet");
    if (err)
        return err;
    if (a->degraded && a->count == 0)
        return task_fail(t, ERR_UNAVAILABLE, "vectors cannot be searched at the moment: %s",
                         a->reason);
    out->reason = a->degraded ? a->reason : NULL;
    add_points(&out->order, answers);
    order_make(&out->order);
    return 0;
}
