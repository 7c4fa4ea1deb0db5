/* How much there is that a search could find. */
#include "app/embed/search/search_private.h"

#define FRESH_US 2000000
#define SHARE    50 /* a count that has taken long is made more rarely: at most 1/50 of the time */

/* What is counted for all searches of the node. While one of them counts, the others take what was
 * counted last. */
static int refresh(struct task *t, struct searches *s)
{
    struct search_extents *x = &s->extents, now = {.known = true};
    const struct papers_filter all = {.count = 0};
    int64_t begun_us = loop_now_us(task_loop(t));
    if (x->counting || begun_us < x->until_us)
        return 0;
    x->counting = true;
    int err = s->sources.posts_there(t, s->node->sql, &now.open, &now.hidden);
    if (!err)
        err = s->sources.papers_there(t, s->node->sql, &all, &now.papers);
    x->counting = false;
    if (err == ERR_CANCELED)
        return err;
    int64_t ended_us = loop_now_us(task_loop(t)), rest_us = SHARE * (ended_us - begun_us);
    now.known = !err;
    now.until_us = ended_us + (rest_us > FRESH_US ? rest_us : FRESH_US);
    *x = now;
    return 0;
}

static struct embed_extent sum(struct embed_extent a, struct embed_extent b)
{
    return (struct embed_extent){a.total + b.total, a.by_words + b.by_words,
                                 a.by_meaning + b.by_meaning};
}

/* How many posts others hide is for admins alone. */
static int count_posts(struct task *t, struct searches *s, struct search_caller who,
                       struct search_extent *out)
{
    const struct search_extents *x = &s->extents;
    struct embed_extent hidden = x->hidden;
    int err = 0;
    if (!who.admin)
        err = s->sources.hidden_there(t, s->node->sql, who.uid, &hidden);
    out->known = !err && x->known;
    if (out->known)
        out->of = sum(x->open, hidden);
    return err;
}

static int count_papers(struct task *t, struct searches *s, const struct search_wish *w,
                        struct search_extent *out)
{
    const struct papers_filter f = {w->journals, w->journal_count, w->year_from, w->year_to};
    int err = 0;
    out->of = s->extents.papers;
    out->known = s->extents.known;
    if (f.count || f.year_from || f.year_to) {
        err = s->sources.papers_there(t, s->node->sql, &f, &out->of);
        out->known = !err;
    }
    return err;
}

int search_count(struct task *t, struct searches *s, const struct search_wish *w,
                 struct search_extent out[ORDER_KINDS])
{
    int err = refresh(t, s);
    for (int k = 0; k < ORDER_KINDS && err != ERR_CANCELED; k++) {
        out[k] = (struct search_extent){.asked = search_asks(w, (enum order_kind)k)};
        if (out[k].asked)
            err = k == ORDER_POST ? count_posts(t, s, w->who, &out[k])
                                  : count_papers(t, s, w, &out[k]);
    }
    return err == ERR_CANCELED ? err : 0;
}
