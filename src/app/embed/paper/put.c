/* Papers get vectors. Chunks that units bring while a collection_put is under way go together in
 * the next one, so that batches are full where units are small. While one put stores, another one
 * asks; how many calls are under way is bounded in the collection (calls_max). */
#include "app/embed/paper/papers_private.h"
#include "engine/ai/embedding.h"
#include "engine/setup/config.h"

_Static_assert(PAPER_PUT *PAPER_PUT_UNITS <= POINTS_CHANGE_MAX, "one put takes all of them");

struct bringing { /* some papers of a unit */
    struct gather_item item;
    struct paper_work *work;
    struct paper_doc **list;
    size_t count;
    struct collection_outcome *outcomes;
    int64_t space;
};

static struct collection_document document_of(const struct paper_work *w, const struct paper_doc *d)
{
    return (struct collection_document){.owner = d->owner,
                                        .version = 1, /* digests are in no order */
                                        .tags = w->tags,
                                        .title = d->title.p ? d->title : STR(""),
                                        .key = d->doi,
                                        .chunks = d->chunks,
                                        .chunk_count = d->chunk_count};
}

/* A gather_fn. */
static int put_together(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct papers *p = arg;
    struct arena *a = task_arena(t);
    size_t most = 0, n = 0;
    int64_t space = 0;
    for (size_t i = 0; i < count; i++)
        most += ((struct bringing *)items[i])->count;
    struct collection_document *docs = ARENA_ARRAY(a, struct collection_document, most);
    struct collection_outcome *outcomes = ARENA_ARRAY(a, struct collection_outcome, most);
    for (size_t i = 0; i < count; i++) {
        const struct bringing *b = (struct bringing *)items[i];
        for (size_t k = 0; k < b->count; k++)
            docs[n++] = document_of(b->work, b->list[k]);
    }
    const bool *asks = ((struct bringing *)items[0])->work->job->asks;
    int err = p->put(t, p->node->collections, COLLECTION_PAPERS, docs, n, asks, outcomes, &space);
    n = 0;
    for (size_t i = 0; i < count && !err; i++) {
        struct bringing *b = (struct bringing *)items[i];
        b->space = space;
        for (size_t k = 0; k < b->count; k++)
            b->outcomes[k] = (struct collection_outcome){.err = outcomes[n++].err};
    }
    return err;
}

/* One puts stores while others ask. */
static int64_t puts_max(const struct papers *p)
{
    return p->node->config->embedding_papers_calls / EMBEDDING_BATCHES_MAX + 2;
}

void paper_puts_init(struct papers *p)
{
    gather_init(&p->puts, &(struct gather_options){.group = p->node->group,
                                                   .name = "papers-put",
                                                   .fn = put_together,
                                                   .arg = p,
                                                   .items_max = PAPER_PUT_UNITS,
                                                   .clerks_max = (size_t)puts_max(p)});
}

static bool is_refused(int err)
{
    return err == ERR_REFUSED || err == ERR_LIMIT || err == ERR_INVALID || err == ERR_PROTO;
}

/* Those that the service gave no vector for have none: not those of another text either. *stored of
 * the list, from its beginning; *again: others were embedded by another call meanwhile. */
static int sort_out(struct task *t, struct bringing *b, size_t *stored, size_t *again)
{
    struct papers *p = b->work->papers;
    uint64_t *refused = ARENA_ARRAY(task_arena(t), uint64_t, b->count);
    size_t refused_count = 0;
    *stored = *again = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct paper_doc *d = b->list[i];
        int err = b->outcomes[i].err;
        if (is_refused(err))
            refused[refused_count++] = d->owner;
        else if (err)
            ++*again;
        else
            b->list[(*stored)++] = d;
    }
    return refused_count
               ? p->drop(t, p->node->collections, COLLECTION_PAPERS, refused, refused_count)
               : 0;
}

static int put_some(struct task *t, struct paper_work *w, struct paper_doc **list, size_t count)
{
    struct papers *p = w->papers;
    struct bringing b = {.work = w, .list = list, .count = count};
    size_t stored, again;
    b.outcomes = ARENA_ARRAY(task_arena(t), struct collection_outcome, count);
    int err = gather_do(t, &p->puts, &b.item, p->put_turn++ % puts_max(p));
    if (!err)
        err = paper_dies(t, w, "put");
    if (!err)
        err = sort_out(t, &b, &stored, &again);
    if (!err)
        err = paper_write_space(t, w, list, stored, b.space);
    if (err)
        return err;
    for (size_t i = 0; i < stored; i++) {
        list[i]->space = b.space;
        metric_add(p->chunks, (int64_t)list[i]->chunk_count);
    }
    metric_add(p->embedded, (int64_t)stored);
    if (again)
        return task_fail(t, ERR_CONFLICT, "%zu papers were embedded again meanwhile", again);
    return paper_dies(t, w, "space");
}

int paper_put_all(struct task *t, struct paper_work *w)
{
    bool building;
    int64_t space = w->papers->space(w->papers->node->collections, COLLECTION_PAPERS, &building);
    struct paper_doc **list = ARENA_ARRAY(task_arena(t), struct paper_doc *, PAPER_PUT);
    size_t n = 0, chunks = 0;
    int err = 0;
    for (size_t i = 0; i <= w->count && !err && !w->final; i++) {
        struct paper_doc *d = i < w->count ? &w->docs[i] : NULL;
        if (n && (!d || chunks + d->chunk_count > PAPER_PUT)) {
            struct task_scope scope = task_scope(t);
            err = put_some(t, w, list, n);
            task_scope_end(t, scope);
            n = chunks = 0;
        }
        if (!d || (d->space && (!space || d->space == space)))
            continue;
        list[n++] = d;
        chunks += d->chunk_count;
    }
    return err;
}
