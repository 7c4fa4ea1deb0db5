/* paper_fixture.h -- what the tests of papers have in common: real stores, a node, a small corpus,
 * and a made-up store of points that can be away, refuse, or die after a step. */
#ifndef APP_EMBED_PAPER_PAPER_FIXTURE_H
#define APP_EMBED_PAPER_PAPER_FIXTURE_H

#include <stdlib.h>

#include "app/embed/paper/papers_private.h"
#include "corpus/paper.h"
#include "engine/papers/block.h"
#include "engine/store/keys.h"
#include "tests/node.h"

#define POINTS_MAX 4000
#define CORPUS_MAX 4000
#define JOURNAL    "NATURE"
#define BATCH      64 /* texts: as the settings have it */

struct world {
    struct group links, tasks;
    struct node node;
    struct runs runs;
    struct papers *papers;
};
static struct world world;
static struct world *const w = &world;

/* --- points --- */

struct point_of { /* of an owner */
    uint64_t owner;
    int64_t space;
    uint16_t year;
    char text[200];
};
static struct point_of points[POINTS_MAX];
static size_t point_count;
static int asked;                /* calls of put */
static size_t texts, texts_most; /* chunks of all calls, and of the largest */
static int partial;              /* calls of put that fill no whole batches, of BATCH texts */
static int asking, asking_most;  /* at once */
static bool partial_fails;       /* the next of them, for the service is away */
static int dropped;              /* owners */
static int64_t thinks_ms;        /* before it stores */
static int service;              /* error of the service, or 0 */
static const char *dies_once;    /* the step after which the node dies */
static int deaths;
static int64_t space_now, completed_space;
static bool building;
static void (*while_put)(struct task *t);  /* called once, before points are stored */
static void (*while_drop)(struct task *t); /* likewise, before they are removed */

static inline struct point_of *point_of(uint64_t owner)
{
    for (size_t i = 0; i < point_count; i++)
        if (points[i].owner == owner)
            return &points[i];
    return NULL;
}

static inline void drop_point(uint64_t owner)
{
    struct point_of *x = point_of(owner);
    if (x)
        *x = points[--point_count];
}

static inline void put_point(const struct collection_document *d,
                             struct collection_outcome *outcome)
{
    *outcome = (struct collection_outcome){.err = 0};
    texts += d->chunk_count;
    if (str_find(d->chunks[0], STR("refused")) >= 0) {
        *outcome = (struct collection_outcome){ERR_REFUSED, "the service refuses it"};
        return;
    }
    drop_point(d->owner);
    check(point_count < POINTS_MAX);
    struct point_of *x = &points[point_count++];
    *x = (struct point_of){.owner = d->owner, .space = space_now, .year = d->tags.year};
    snprintf(x->text, sizeof x->text, "%.*s", STR_ARG(d->chunks[0]));
}

/* As collection_put_fenced and collection_drop_fenced ask it: in a transaction. */
struct fence_of {
    const struct collection_fence *fence;
    bool *may;
    size_t count;
};

static inline int ask_fence_body(struct task *t, struct sql *c, void *arg)
{
    struct fence_of *x = arg;
    for (size_t i = 0; i < x->count; i++)
        x->may[i] = true;
    return x->fence->may(t, c, x->fence->arg, x->may);
}

static inline bool *ask_fence(struct task *t, const struct collection_fence *fence, size_t count)
{
    struct fence_of x = {fence, ARENA_ARRAY(task_arena(t), bool, count), count};
    check(sql_tx(t, w->node.sql, ask_fence_body, &x) == 0);
    return x.may;
}

static inline int made_up_put(struct task *t, struct collections *c, enum collection which,
                              const struct collection_document *docs, size_t count,
                              const bool *asks, const struct collection_fence *fence,
                              struct collection_outcome *outcomes, int64_t *space)
{
    size_t chunks = 0;
    (void)c;
    check(which == COLLECTION_PAPERS && count > 0 && asks && *asks);
    for (size_t i = 0; i < count; i++)
        chunks += docs[i].chunk_count;
    bool fails = partial_fails && chunks % BATCH;
    partial += chunks % BATCH > 0;
    partial_fails &= !fails;
    asked++;
    asking_most = ++asking > asking_most ? asking : asking_most;
    int err = thinks_ms ? task_sleep(t, thinks_ms) : 0;
    asking--;
    if (err)
        return ERR_CANCELED;
    if (service || fails)
        return task_fail(t, fails ? ERR_UNAVAILABLE : service,
                         "the embedding service cannot be reached");
    void (*fn)(struct task *) = while_put;
    while_put = NULL;
    if (fn)
        fn(t);
    const bool *may = ask_fence(t, fence, count);
    for (size_t i = 0; i < count; i++)
        if (may[i])
            put_point(&docs[i], &outcomes[i]);
        else
            outcomes[i] = (struct collection_outcome){ERR_CONFLICT, "it was embedded again"};
    texts_most = chunks > texts_most ? chunks : texts_most;
    *space = space_now;
    return 0;
}

static inline int made_up_drop(struct task *t, struct collections *c, enum collection which,
                               const uint64_t *ids, size_t count,
                               const struct collection_fence *fence)
{
    (void)c;
    check(which == COLLECTION_PAPERS);
    if (service)
        return task_fail(t, service, "the store cannot be reached");
    void (*fn)(struct task *) = while_drop;
    while_drop = NULL;
    if (fn)
        fn(t);
    const bool *may = ask_fence(t, fence, count);
    for (size_t i = 0; i < count; i++)
        if (may[i]) {
            drop_point(ids[i]);
            dropped++;
        }
    return 0;
}

static inline int64_t made_up_space(const struct collections *c, enum collection which, bool *is)
{
    (void)c;
    (void)which;
    *is = building;
    return space_now;
}

static inline int made_up_complete(struct task *t, struct collections *c, enum collection which,
                                   int64_t space)
{
    (void)t;
    (void)c;
    (void)which;
    completed_space = space;
    building = false;
    return 0;
}

/* As a node that is killed, and another that goes on: nothing is told, the job is taken again. */
static inline int die(struct task *t, const char *step)
{
    if (!dies_once || strcmp(dies_once, step) != 0)
        return 0;
    deaths++;
    dies_once = NULL;
    return task_fail(t, ERR_CANCELED, "the node dies");
}

/* --- the world --- */

static inline void sql_do(struct task *t, const char *statement)
{
    int err = sql_call(t, w->node.sql, NULL, statement);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

static inline int64_t sql_number(struct task *t, const char *statement)
{
    struct sql_rows r;
    int err = sql_call(t, w->node.sql, &r, statement);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
    return r.count ? r.cells[0].i : -1;
}

static inline void made_up_store(struct papers *p)
{
    p->service = true;
    p->put = made_up_put;
    p->drop = made_up_drop;
    p->space = made_up_space;
    p->complete = made_up_complete;
    p->dies = die;
    p->kind.backoff_ms = 20;
    p->kind.lease_ms = 2000;
}

static inline struct test_node world_node(void)
{
    return (struct test_node){&w->node, &w->links, &w->tasks, &w->runs};
}

static inline void open_world(struct task *t)
{
    struct test_node x = world_node();
    struct node *n = &w->node;
    node_open(t, &x);
    n->blocks =
        blocks_new(&(struct blocks_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
    n->papers = w->papers = papers_new(n);
    made_up_store(w->papers);
}

static inline void close_world(struct task *t)
{
    struct test_node x = world_node();
    node_end(t, &x);
    papers_free(w->papers);
    blocks_free(w->node.blocks);
    node_release(t, &x);
}

/* --- the corpus --- */

struct entry { /* a paper that is in it */
    char doi[40], title[60];
    int64_t year;
};
static struct entry corpus[CORPUS_MAX];
static size_t corpus_count;
static int64_t digests;

static inline struct entry *entry_of(const char *doi)
{
    for (size_t i = 0; i < corpus_count; i++)
        if (strcmp(corpus[i].doi, doi) == 0)
            return &corpus[i];
    return NULL;
}

/* Blocks are as db init leaves them, with a digest that they never had before. */
static inline void touch(struct task *t, int64_t year)
{
    check(sql_call(t, w->node.sql, NULL,
                   "REPLACE INTO corpus_block (journal, year, papers, digest) SELECT ?, ?,"
                   " COUNT(*), ? FROM paperinfo WHERE journal = ? AND year = ?",
                   sql_text(STR(JOURNAL)), sql_int(year), sql_int(++digests),
                   sql_text(STR(JOURNAL)), sql_int(year)) == 0);
}

/* title "": it has neither title nor abstract. */
static inline void write_paper(struct task *t, const char *doi, int64_t year, const char *title)
{
    struct paper p = {.doi = str_of(doi),
                      .journal = STR(JOURNAL),
                      .year = year,
                      .file = STR("a.bib"),
                      .strings = STR("")};
    struct buf json;
    struct entry *e = entry_of(doi);
    p.bib =
        *title ? str_printf(task_arena(t),
                            "@article{k,\n title = {%s},\n abstract = {About %s.}\n}", title, title)
               : STR("@article{k, note = {nothing}}");
    if (!e && corpus_count < CORPUS_MAX)
        e = &corpus[corpus_count++];
    check(e);
    snprintf(e->doi, sizeof e->doi, "%s", doi);
    snprintf(e->title, sizeof e->title, "%s", title);
    e->year = year;
    buf_init(&json);
    paper_write_json(&json, &p);
    check(sql_call(t, w->node.sql, NULL, "REPLACE INTO paperinfo (DOI, Bib) VALUES (?, ?)",
                   sql_text(p.doi), sql_text(buf_str(&json))) == 0);
    buf_release(&json);
}

static inline void withdraw(struct task *t, const char *doi)
{
    struct entry *e = entry_of(doi);
    check(e);
    check(sql_call(t, w->node.sql, NULL, "DELETE FROM paperinfo WHERE DOI = ?",
                   sql_text(str_of(doi))) == 0);
    *e = corpus[--corpus_count];
}

static inline void small_corpus(struct task *t)
{
    write_paper(t, "10.1/a", 2020, "Iron");
    write_paper(t, "10.1/b", 2020, "Copper");
    write_paper(t, "10.1/bare", 2020, "");
    write_paper(t, "10.1/c", 2021, "Zinc");
    touch(t, 2020);
    touch(t, 2021);
}

/* Papers of one year, all alike. */
static inline void many(struct task *t, int64_t year, int count)
{
    for (int i = 0; i < count; i++) {
        struct task_scope scope = task_scope(t);
        write_paper(t, arena_printf(task_arena(t), "10.2/%lld/%d", (long long)year, i), year,
                    arena_printf(task_arena(t), "Paper %d", i));
        task_scope_end(t, scope);
    }
    touch(t, year);
}

/* --- what tests do --- */

static inline void begin(struct task *t)
{
    open_world(t);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    sql_do(t, "DELETE FROM embedding_unit");
    sql_do(t, "DELETE FROM embedding_paper");
    sql_do(t, "DELETE FROM paper_words");
    sql_do(t, "DELETE FROM paperinfo");
    sql_do(t, "DELETE FROM corpus_block");
    sql_do(t, "DELETE FROM corpus_load");
    point_count = corpus_count = texts = texts_most = 0;
    asked = service = deaths = dropped = partial = asking_most = 0;
    partial_fails = false;
    dies_once = NULL;
    thinks_ms = 0;
    while_put = while_drop = NULL;
    space_now = 1;
    building = false;
    completed_space = 0;
}

static inline void fill(struct task *t)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, w->node.jobs, &turn) == 0);
}

static inline void go(struct task *t)
{
    check(task_go(&w->tasks, "jobs", jobs_task, w->node.jobs) == 0);
    role_in(&w->tasks, jobs_keep_role, w->node.jobs, 50);
    role_in(&w->tasks, jobs_refill_role, w->node.jobs, 20);
    fill(t);
}

static inline struct papers_wanted want(struct task *t, enum papers_which which)
{
    struct papers_wanted out = {.units = -1};
    int err = papers_want(t, w->node.sql, &(struct papers_wish){.which = which}, &out);
    if (err)
        printf("# papers_want: %s %s\n", err_name(err), task_error(t));
    check(!err);
    return out;
}

static inline bool comes_to_rest(struct task *t)
{
    const char *left = "SELECT COUNT(*) FROM embedding_unit WHERE state IN " PAPER_OPEN;
    for (int i = 0; i < 3000 && sql_number(t, left); i++)
        pause_ms(t, 5);
    return sql_number(t, left) == 0;
}

static inline bool agrees(struct task *t, const struct entry *e)
{
    struct sql_rows r;
    uint64_t owner = collection_paper_owner(str_of(e->doi));
    const struct point_of *x = point_of(owner);
    const char *text = arena_printf(task_arena(t), "%s\n\nAbout %s.", e->title, e->title);
    check(sql_call(t, w->node.sql, &r,
                   "SELECT p.year, p.space, p.version, x.year, x.words FROM embedding_paper p"
                   " JOIN paper_words x ON x.owner = p.owner WHERE p.owner = ? AND p.doi = ?",
                   sql_int((int64_t)owner), sql_text(str_of(e->doi))) == 0);
    const struct sql_value *v = r.cells;
    bool is = r.count == 1 && v[0].i == e->year && v[1].i == space_now && v[2].i > 0 &&
              v[3].i == e->year && x && strcmp(x->text, text) == 0 && x->space == space_now &&
              x->year == e->year;
    if (!is)
        printf("# %s '%s' %lld: row %zu %lld %lld, point '%s'\n", e->doi, e->title,
               (long long)e->year, r.count, r.count ? (long long)v[0].i : -1,
               r.count ? (long long)v[1].i : -1, x ? x->text : "(none)");
    return is;
}

/* Rows, words and points are those of the corpus, and there are no others. */
static inline bool all_agree(struct task *t)
{
    int64_t with = 0;
    bool agree = true;
    for (size_t i = 0; i < corpus_count; i++) {
        struct task_scope scope = task_scope(t);
        if (*corpus[i].title && !strstr(corpus[i].title, "refused")) {
            agree &= agrees(t, &corpus[i]);
            with++;
        }
        task_scope_end(t, scope);
    }
    int64_t rows = sql_number(t, "SELECT COUNT(*) FROM embedding_paper WHERE space > 0");
    int64_t lost = sql_number(t, "SELECT COUNT(*) FROM paper_words x LEFT JOIN embedding_paper p"
                                 " ON p.owner = x.owner WHERE p.owner IS NULL");
    if (rows != with || (int64_t)point_count != with || lost)
        printf("# %lld papers, %lld rows, %zu points, %lld words too many\n", (long long)with,
               (long long)rows, point_count, (long long)lost);
    return agree && rows == with && (int64_t)point_count == with && lost == 0;
}
#endif
