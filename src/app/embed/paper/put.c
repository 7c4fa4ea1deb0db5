/* Papers get vectors: one stream of chunks, over the bounds of units, cut into full batches.
 *
 *   1. A unit brings some of its papers into the line, and waits.
 *   2. A putter, a task, takes as many from the front of the line as fill whole batches of the
 *      service, whichever units they are of, and hands them to collection_put.
 *   3. Of several putters some have their vectors stored, others ask, and one has its texts ready
 *      for the next call that ends: how many calls are under way is bounded in the collection
 *      (calls_max). So no call waits for papers to be read or vectors to be stored, as long as
 *      there is work.
 *   4. A unit goes on when all that it has brought was put.
 *
 * A call for a batch that is not full takes as long as one for a full batch. So papers that fill
 * none wait for more: until the units that are being read have brought theirs, and nothing else is
 * being put, or for LINGER_MS. */
#include "app/embed/paper/papers_private.h"
#include "corpus/prose/tokens.h"
#include "engine/ai/embedding.h"
#include "engine/setup/config.h"

#define PUTTERS_MORE 3 /* than ask: one has its texts ready, two store */
#define LINGER_MS    250

struct put_paper { /* what became of it */
    bool told;     /* its put has succeeded; else nothing is known */
    int err;       /* its own */
    int64_t space;
};

struct bringing {     /* some papers of a unit */
    struct list link; /* of the line, until all are taken */
    struct task *task;
    struct paper_work *work;
    struct paper_doc **list;
    struct put_paper *outcomes;
    size_t count, taken, done; /* taken: by putters */
    int err;                   /* of a put with some of them */
};

/* --- batches --- */

/* Of the service; tokens count where texts of full length are more than it takes at once. */
struct batch_size {
    int64_t texts, tokens, tokens_each;
    int64_t batches; /* in a put: as many as can be asked for at once */
};

static struct batch_size size_of(const struct papers *p)
{
    const struct config *c = p->node->config;
    struct batch_size s = {.texts = c->ai_embedding_batch_max,
                           .tokens = c->ai_embedding_batch_tokens,
                           .batches = c->embedding_papers_calls};
    bool tight = s.texts * PAPER_CHUNK_TOKENS > s.tokens;
    if (s.batches > EMBEDDING_BATCHES_MAX)
        s.batches = EMBEDDING_BATCHES_MAX;
    if (tight || s.texts * s.batches > POINTS_CHANGE_MAX - PAPER_CHUNKS_MAX)
        s.batches = 1;
    s.tokens_each = tight;
    return s;
}

static size_t putters_max(const struct papers *p)
{
    int64_t batches = size_of(p).batches;
    return (size_t)((p->node->config->embedding_papers_calls + batches - 1) / batches) +
           PUTTERS_MORE;
}

struct filling { /* the papers at the front of the line */
    struct batch_size size;
    int64_t texts, tokens, batch; /* batch: the one that is being filled, from 1 */
    size_t papers, full;          /* full: those of whole batches */
};

static int64_t tokens_of(const struct paper_doc *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->chunk_count; i++)
        n += tokens_estimate(d->chunks[i]);
    return n;
}

static bool has_room(const struct filling *f, int64_t texts, int64_t tokens)
{
    return f->papers == 0 || (f->texts + texts <= f->size.texts * f->batch &&
                              f->tokens + tokens <= f->size.tokens * f->batch);
}

/* False: it has no place in the batches of a put. */
static bool fill(struct filling *f, const struct paper_doc *d)
{
    int64_t texts = (int64_t)d->chunk_count, tokens = f->size.tokens_each ? tokens_of(d) : 0;
    if (!has_room(f, texts, tokens))
        f->full = f->papers;
    while (!has_room(f, texts, tokens) && f->batch < f->size.batches)
        f->batch++;
    if (!has_room(f, texts, tokens))
        return false;
    f->texts += texts;
    f->tokens += tokens;
    f->papers++;
    if (f->texts >= f->size.texts * f->batch)
        f->full = f->papers;
    return true;
}

static struct filling look_at_line(const struct papers *p)
{
    struct filling f = {.size = size_of(p), .batch = 1};
    list_each (it, &p->puts.line) {
        const struct bringing *b = list_entry(it, struct bringing, link);
        for (size_t i = b->taken; i < b->count; i++)
            if (!fill(&f, b->list[i]))
                return f;
    }
    return f;
}

/* How many papers are to be put now; *wait_ms: until that may change by itself. */
static size_t due(struct task *t, const struct papers *p, int64_t *wait_ms)
{
    const struct paper_puts *puts = &p->puts;
    if (list_empty(&puts->line))
        return 0;
    struct filling f = look_at_line(p);
    *wait_ms = puts->since_ms + LINGER_MS - loop_now_ms(task_loop(t));
    bool alone = puts->coming == 0 && puts->under_way == 0;
    if (f.full)
        return f.full;
    return alone || *wait_ms <= 0 || task_canceled(t) ? f.papers : 0;
}

/* --- one put --- */

struct part { /* of it: papers of a unit */
    struct bringing *of;
    size_t from, count;
};

static size_t take(struct task *t, struct papers *p, size_t papers, struct part **parts)
{
    size_t n = 0;
    p->puts.since_ms = loop_now_ms(task_loop(t));
    *parts = ARENA_ARRAY(task_arena(t), struct part, papers);
    while (papers) {
        struct bringing *b = list_entry(p->puts.line.next, struct bringing, link);
        size_t left = b->count - b->taken, count = left < papers ? left : papers;
        (*parts)[n++] = (struct part){b, b->taken, count};
        b->taken += count;
        papers -= count;
        if (b->taken == b->count)
            list_del(&b->link);
    }
    return n;
}

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

static void hand_back(struct task *t, const struct part *x, int err)
{
    struct bringing *b = x->of;
    if (err && !b->err)
        b->err = task_fail(b->task, err, "%s", task_error(t));
    b->done += x->count;
    if (b->done == b->taken)
        task_wake(b->task);
}

static struct paper_as_read as_read(const struct paper_work *w, const struct paper_doc *d)
{
    return (struct paper_as_read){&w->unit, d->owner, d->digest};
}

static void put_parts(struct task *t, struct papers *p, const struct part *parts, size_t count,
                      size_t papers)
{
    struct collection_document *docs =
        ARENA_ARRAY(task_arena(t), struct collection_document, papers);
    struct collection_outcome *outcomes =
        ARENA_ARRAY(task_arena(t), struct collection_outcome, papers);
    struct paper_as_read *list = ARENA_ARRAY(task_arena(t), struct paper_as_read, papers);
    struct papers_as_read x = {list, papers};
    struct collection_fence fence = {paper_fence_may, &x};
    int64_t space = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < parts[i].count; k++, n++) {
            const struct paper_doc *d = parts[i].of->list[parts[i].from + k];
            docs[n] = document_of(parts[i].of->work, d);
            list[n] = as_read(parts[i].of->work, d);
        }
    const bool *asks = parts[0].of->work->job->asks;
    int err =
        p->put(t, p->node->collections, COLLECTION_PAPERS, docs, n, asks, &fence, outcomes, &space);
    n = 0;
    for (size_t i = 0; i < count; i++) {
        struct put_paper *to = parts[i].of->outcomes + parts[i].from;
        for (size_t k = 0; k < parts[i].count && !err; k++)
            to[k] = (struct put_paper){.told = true, .err = outcomes[n++].err, .space = space};
        hand_back(t, &parts[i], err);
    }
}

/* --- putters --- */

static task_fn putter_task;

/* One looks at the line, if there is room for one. ERR_LIMIT: there is none, and none can be
 * started. */
static int need_putter(struct papers *p)
{
    struct paper_puts *x = &p->puts;
    if (x->looks)
        waitq_wake_one(&x->news);
    if (x->looks || list_empty(&x->line) || x->putters == putters_max(p))
        return 0;
    int err = task_go(p->node->group, "papers-put", putter_task, p);
    x->looks = !err;
    x->putters += !err;
    return x->putters ? 0 : err;
}

static void put_some_of_line(struct task *t, struct papers *p, size_t papers)
{
    struct task_scope scope = task_scope(t);
    struct part *parts;
    size_t count = take(t, p, papers, &parts);
    p->puts.under_way++;
    (void)need_putter(p); /* without one this putter comes to the rest */
    put_parts(t, p, parts, count, papers);
    p->puts.under_way--;
    task_scope_end(t, scope);
}

/* Until the line has changed, or some of it has waited for long. */
static void await_news(struct task *t, struct papers *p, int64_t wait_ms)
{
    int64_t old = task_deadline(t, wait_ms);
    p->puts.looks = true;
    int err = waitq_wait(t, &p->puts.news); /* if it is cancelled, so are its puts */
    (void)err;
    p->puts.looks = false;
    task_deadline_restore(t, old);
}

static void putter_task(struct task *t, void *arg)
{
    struct papers *p = arg;
    struct paper_puts *x = &p->puts;
    x->looks = false;
    while (!list_empty(&x->line)) {
        int64_t wait_ms = 0;
        size_t papers = due(t, p, &wait_ms);
        if (papers)
            put_some_of_line(t, p, papers);
        else if (x->looks)
            break;
        else
            await_news(t, p, wait_ms);
    }
    x->putters--;
}

void paper_puts_init(struct papers *p)
{
    list_init(&p->puts.line);
    waitq_init(&p->puts.news);
}

void paper_comes(struct papers *p)
{
    p->puts.coming++;
}

void paper_came(struct papers *p)
{
    if (--p->puts.coming == 0)
        (void)need_putter(p);
}

/* Until all of them are put, or a put has failed. */
static int bring(struct task *t, struct papers *p, struct bringing *b)
{
    if (list_empty(&p->puts.line))
        p->puts.since_ms = loop_now_ms(task_loop(t));
    list_push(&p->puts.line, &b->link);
    int err = need_putter(p);
    while (!err && !b->err && b->done < b->count)
        err = task_wait(t);
    if (b->taken < b->count)
        list_del(&b->link);
    while (b->done < b->taken)
        task_wait_always(t);
    if (err == ERR_LIMIT)
        return task_fail(t, err, "no stack is free");
    return err ? err : b->err;
}

/* --- what became of them --- */

static bool is_refused(int err)
{
    return err == ERR_REFUSED || err == ERR_LIMIT || err == ERR_INVALID || err == ERR_PROTO;
}

/* Those that the service gave no vector for have none: not those of another text either. *again:
 * how many were embedded by another call meanwhile. */
static int drop_refused(struct task *t, const struct bringing *b, size_t *again)
{
    struct papers *p = b->work->papers;
    uint64_t *refused = ARENA_ARRAY(task_arena(t), uint64_t, b->count);
    struct paper_as_read *list = ARENA_ARRAY(task_arena(t), struct paper_as_read, b->count);
    struct papers_as_read x = {.list = list};
    struct collection_fence fence = {paper_fence_may, &x};
    size_t n = 0;
    *again = 0;
    for (size_t i = 0; i < b->count; i++) {
        int err = b->outcomes[i].err;
        if (is_refused(err)) {
            list[n] = as_read(b->work, b->list[i]);
            refused[n++] = b->list[i]->owner;
        } else if (err)
            ++*again;
    }
    x.count = n;
    return n ? p->drop(t, p->node->collections, COLLECTION_PAPERS, refused, n, &fence) : 0;
}

/* Those from the first that was stored and is not noted yet, of its space. *found: of them. */
static int note_space(struct task *t, struct bringing *b, struct paper_doc **list, size_t *found)
{
    int64_t space = 0;
    *found = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct put_paper *o = &b->outcomes[i];
        if (!o->told || o->err || (*found && o->space != space))
            continue;
        space = o->space;
        o->told = false;
        list[(*found)++] = b->list[i];
    }
    int err = paper_write_space(t, b->work, list, *found, space);
    for (size_t i = 0; i < *found && !err; i++) {
        list[i]->space = space;
        metric_add(b->work->papers->chunks, (int64_t)list[i]->chunk_count);
    }
    if (!err)
        metric_add(b->work->papers->embedded, (int64_t)*found);
    return err;
}

/* Mostly one; two if the model has changed meanwhile. */
static int note_spaces(struct task *t, struct bringing *b)
{
    struct paper_doc **list = ARENA_ARRAY(task_arena(t), struct paper_doc *, b->count);
    size_t found = 1;
    int err = 0;
    while (!err && found)
        err = note_space(t, b, list, &found);
    return err;
}

/* A put has failed: what others have stored is not asked for again. */
static int keep_stored(struct task *t, struct bringing *b, int err)
{
    struct str why = str_dup(task_arena(t), str_of(task_error(t)));
    if (note_spaces(t, b) == ERR_CANCELED)
        return ERR_CANCELED;
    return task_fail(t, err, "%.*s", STR_ARG(why));
}

static int put_some(struct task *t, struct paper_work *w, struct paper_doc **list, size_t count)
{
    struct bringing b = {.task = t, .work = w, .list = list, .count = count};
    size_t again;
    b.outcomes = ARENA_ARRAY(task_arena(t), struct put_paper, count);
    memset(b.outcomes, 0, count * sizeof *b.outcomes);
    int err = bring(t, w->papers, &b);
    if (err == ERR_CANCELED || err == ERR_TIMEOUT)
        return err;
    if (err)
        return keep_stored(t, &b, err);
    err = paper_dies(t, w, "put");
    if (!err)
        err = drop_refused(t, &b, &again);
    if (!err)
        err = note_spaces(t, &b);
    if (err)
        return err;
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
