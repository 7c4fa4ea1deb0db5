/* Searches over made-up indexes and rows, and a real Redis for the pages. */
#include "app/embed/search/search_private.h"

#include <stdio.h>

#include "base/log.h"
#include "tests/store.h"
#include "tests/tap.h"

#define ROWS 8

static struct store_redis store;

/* --- the made-up world --- */

static struct {
    struct collection_answer meaning[COLLECTION_COUNT];
    int meaning_err, words_err;
    uint64_t words[COLLECTION_COUNT][ROWS];
    size_t words_count[COLLECTION_COUNT];
    struct post_row posts[ROWS];
    size_t post_count;
    /* What was asked: */
    struct point_filter asked[COLLECTION_COUNT];
    uint16_t journal;
    int calls;
    int counts, counts_err; /* of all that there is */
    int64_t counts_ms;
} world;

static struct point_hit points[COLLECTION_COUNT][ROWS];

static int by_meaning(struct task *t, struct collections *c, enum collection which,
                      struct str question, const struct points_query *q,
                      struct collection_answer *out)
{
    (void)c, (void)question;
    world.calls++;
    world.asked[which] = *q->filter;
    world.journal = q->filter->journal_count ? q->filter->journals[0] : 0;
    *out = world.meaning[which];
    return world.meaning_err ? task_fail(t, world.meaning_err, "made up") : 0;
}

static int by_likeness(struct task *t, struct collections *c, enum collection which, uint64_t owner,
                       const struct points_query *q, struct collection_answer *out)
{
    if (owner == 99)
        return task_fail(t, ERR_NOT_FOUND, "no points");
    return by_meaning(t, c, which, STR(""), q, out);
}

static int by_words(struct task *t, struct words *w, enum collection which, struct str question,
                    const struct point_filter *filter, size_t limit, struct words_hit **hits,
                    size_t *count)
{
    (void)w, (void)question, (void)filter, (void)limit;
    *hits = ARENA_ARRAY(task_arena(t), struct words_hit, ROWS);
    *count = world.words_count[which];
    for (size_t i = 0; i < *count; i++)
        (*hits)[i] = (struct words_hit){world.words[which][i], 1};
    return world.words_err ? task_fail(t, world.words_err, "made up") : 0;
}

static int hidden_of(struct task *t, struct sql_pool *sql, int64_t uid, uint64_t **ids,
                     size_t *count)
{
    (void)sql;
    *ids = ARENA_ARRAY(task_arena(t), uint64_t, ROWS);
    *count = 0;
    for (size_t i = 0; i < world.post_count; i++)
        if (world.posts[i].uid == uid && world.posts[i].hide)
            (*ids)[(*count)++] = (uint64_t)world.posts[i].id;
    return 0;
}

static int post_rows_of(struct task *t, struct sql_pool *sql, const int64_t *ids, size_t count,
                        struct post_row *rows, size_t *found)
{
    (void)t, (void)sql;
    *found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < world.post_count; k++)
            if (world.posts[k].id == ids[i])
                rows[(*found)++] = world.posts[k];
    return 0;
}

/* Papers 100 to 199. */
static int paper_rows_of(struct task *t, const struct node *n, const uint64_t *owners, size_t count,
                         struct paper_row *rows, size_t *found)
{
    (void)n;
    *found = 0;
    for (size_t i = 0; i < count; i++)
        if (owners[i] >= 100 && owners[i] < 200)
            rows[(*found)++] =
                (struct paper_row){.owner = owners[i],
                                   .doi = str_printf(task_arena(t), "10.1000/%d", (int)owners[i]),
                                   .journal = STR("NATURE"),
                                   .title = STR("On zebras"),
                                   .text = STR("They are striped. A zebra is no horse."),
                                   .year = owners[i] == 100 ? 0 : 2020};
    return 0;
}

static int journal_numbers_of(struct task *t, struct sql_pool *sql, const struct str *names,
                              size_t count, uint16_t *numbers)
{
    (void)t, (void)sql;
    for (size_t i = 0; i < count; i++)
        numbers[i] = str_eq(names[i], STR("NATURE")) ? 7 : 0;
    return 0;
}

static void meaning_of(enum collection which, const struct point_hit *hits, size_t count)
{
    memcpy(points[which], hits, count * sizeof *hits);
    world.meaning[which] = (struct collection_answer){.hits = points[which], .count = count};
}

static void words_of(enum collection which, const uint64_t *owners, size_t count)
{
    if (count)
        memcpy(world.words[which], owners, count * sizeof *owners);
    world.words_count[which] = count;
}

static int posts_there(struct task *t, struct sql_pool *sql, struct embed_extent *open,
                       struct embed_extent *hidden)
{
    (void)sql;
    world.counts++;
    int err = world.counts_ms ? task_sleep(t, world.counts_ms) : 0;
    if (err)
        return err;
    *open = (struct embed_extent){20, 15, 10};
    *hidden = (struct embed_extent){8, 7, 6};
    return world.counts_err ? task_fail(t, world.counts_err, "made up") : 0;
}

static int hidden_there(struct task *t, struct sql_pool *sql, int64_t owner,
                        struct embed_extent *out)
{
    (void)t, (void)sql;
    *out = (struct embed_extent){owner, 1, 0};
    return 0;
}

static int papers_there(struct task *t, struct sql_pool *sql, const struct papers_filter *f,
                        struct embed_extent *out)
{
    (void)t, (void)sql;
    *out = f->count || f->year_to
               ? (struct embed_extent){f->year_to, f->year_from, (int64_t)f->count}
               : (struct embed_extent){300, 200, 9};
    return 0;
}

/* User 1 has posts 1 and 2, the second one hidden; user 2 has posts 3 and 4, hidden too. */
static void world_begin(void)
{
    static const struct post_row posts[] = {
        {1, 1, 10, STR("Zebras"), STR("# Zebras\n\nThe *zebra* is striped."), false, 0},
        {2, 1, 20, STR("My zebras"), STR("A hidden zebra."), true, 0},
        {3, 2, 30, STR("Lions"), STR("Lions eat the zebra."), false, 0},
        {4, 2, 40, STR("Secret lions"), STR("A secret zebra."), true, 0},
    };
    static const struct point_hit near_posts[] = {
        {{1, 10, 0, {0}}, 0.9f}, {{2, 20, 0, {0}}, 0.8f},  {{4, 40, 0, {0}}, 0.7f},
        {{3, 30, 0, {0}}, 0.6f}, {{77, 70, 0, {0}}, 0.5f},
    };
    static const struct point_hit near_papers[] = {{{101, 0, 0, {0}}, 0.85f},
                                                   {{100, 0, 0, {0}}, 0.4f}};
    memset(&world, 0, sizeof world);
    memcpy(world.posts, posts, sizeof posts);
    world.post_count = 4;
    meaning_of(COLLECTION_POSTS, near_posts, 5);
    meaning_of(COLLECTION_PAPERS, near_papers, 2);
    words_of(COLLECTION_PAPERS, (uint64_t[]){100}, 1);
}

/* --- asking --- */

struct node_of_test {
    struct group group;
    struct node node;
    struct searches *searches;
};

static void open_node(struct task *t, struct node_of_test *x)
{
    group_init(&x->group, task_loop(t));
    x->node = (struct node){.loop = task_loop(t)};
    x->node.redis =
        redis_open(&x->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    x->searches = searches_new(&x->node);
    x->searches->sources = (struct search_sources){
        by_meaning,    by_likeness,        by_words,    hidden_of,    post_rows_of,
        paper_rows_of, journal_numbers_of, posts_there, hidden_there, papers_there};
    world_begin();
}

static void close_node(struct task *t, struct node_of_test *x)
{
    searches_free(x->searches);
    redis_close(x->node.redis);
    group_cancel(&x->group);
    check(group_join(t, &x->group) == 0);
}

static struct search_wish wish_of(int64_t uid)
{
    return (struct search_wish){.who = {.uid = uid, .admin = uid == 0},
                                .question = STR("zebra"),
                                .kinds = {true, true},
                                .limit = 20};
}

static struct str told(struct task *t, int err, const struct search_page *p)
{
    struct arena *a = task_arena(t);
    struct str s = STR("");
    if (err)
        return str_printf(a, "%s: %s", err_name(err), task_error(t));
    for (size_t i = 0; i < p->count; i++) {
        const struct search_hit *h = &p->hits[i];
        struct str name = h->kind == ORDER_POST ? str_printf(a, "p%d", (int)h->id) : h->doi;
        s = STR_JOIN(a, s, i ? STR(" ") : STR(""), name);
    }
    return p->reason ? STR_JOIN(a, s, STR(" but "), str_of(p->reason)) : s;
}

static struct str found(struct task *t, struct node_of_test *x, const struct search_wish *w,
                        struct search_page *p)
{
    int64_t retry;
    struct search_page mine;
    p = p ? p : &mine;
    return told(t, search_page(t, x->searches, w, p, &retry), p);
}

/* --- who finds what --- */

static void test_hidden(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(1);
    struct search_page p;
    is_str(found(t, &x, &w, &p), STR("10.1000/100 p1 10.1000/101 p2 p3"),
           "one's own hidden posts, not another's, nor what is gone");
    ok(p.hits[1].mine && !p.hits[1].hide && p.hits[3].hide && !p.hits[4].mine, "whose they are");
    ok(world.asked[COLLECTION_POSTS].without == POINT_HIDDEN &&
           world.asked[COLLECTION_POSTS].unless_count == 1 &&
           world.asked[COLLECTION_POSTS].unless[0] == 2,
       "the index is asked for no others");
    is_int(world.asked[COLLECTION_PAPERS].without, 0, "papers are not hidden");
    is_str(p.hits[1].snippet.text, STR("Zebras The zebra is striped."), "plain text");
    ok(p.hits[1].snippet.mark_count == 2 && p.hits[1].snippet.marks[1].begin == 11, "marked");
    ok(p.hits[0].year == 0 && p.hits[2].year == 2020, "what is known of papers");
    w = wish_of(2);
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 p1 10.1000/101 p4 p3"), "the other user");
    w = wish_of(3);
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 p1 10.1000/101 p3"), "a third one");
    w = wish_of(0);
    is_str(found(t, &x, &w, &p), STR("10.1000/100 p1 10.1000/101 p2 p4 p3"), "an admin: all");
    ok(world.asked[COLLECTION_POSTS].without == 0 && !p.hits[1].mine,
       "though none are the admin's");
    world.posts[0].hide = true;
    w = wish_of(2);
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 10.1000/101 p4 p3"),
           "a post that is hidden from now on");
    close_node(t, &x);
}

static void test_stale(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(3);
    w.kinds[ORDER_PAPER] = false;
    world.posts[0].version = 11;
    is_str(found(t, &x, &w, NULL), STR("p3"), "found by the points of an earlier version alone");
    words_of(COLLECTION_POSTS, (uint64_t[]){1, 3}, 2);
    is_str(found(t, &x, &w, NULL), STR("p1 p3"), "but by its words");
    world.posts[0].title = STR("Horses");
    world.posts[0].content = STR("Horses alone.");
    is_str(found(t, &x, &w, NULL), STR("p3"), "unless it has them no more");
    world.post_count = 0;
    is_str(found(t, &x, &w, NULL), STR(""), "all are gone");
    close_node(t, &x);
}

static void test_filters(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(3);
    const struct str journals[] = {STR("NO SUCH"), STR("NATURE")};
    w.journals = journals;
    w.journal_count = 2;
    w.year_to = 2021;
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 10.1000/101"), "posts are of no journal");
    const struct point_filter *f = &world.asked[COLLECTION_PAPERS];
    ok(world.journal == 7 && f->journal_count == 1 && f->year_to == 2021 && f->year_from == 1,
       "what is passed on: %zu journals, %d to %d", f->journal_count, f->year_from, f->year_to);
    w.journal_count = 1;
    int calls = world.calls;
    is_str(found(t, &x, &w, NULL), STR(""), "a journal that nobody has heard of");
    is_int(world.calls, calls, "nothing is asked for it");
    w = wish_of(3);
    w.kinds[ORDER_POST] = false;
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 10.1000/101"), "papers alone");
    close_node(t, &x);
}

/* --- what is missing --- */

static void without_meaning(const char *reason)
{
    for (int k = 0; k < COLLECTION_COUNT; k++)
        world.meaning[k] = (struct collection_answer){.degraded = true, .reason = reason};
}

static void test_degraded(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(3);
    words_of(COLLECTION_POSTS, (uint64_t[]){3}, 1);
    world.words_err = ERR_TIMEOUT;
    is_str(found(t, &x, &w, NULL), STR("p1 10.1000/101 p3 10.1000/100 but words_index_away"),
           "without words");
    world.words_err = 0;
    without_meaning(COLLECTION_NO_SERVICE);
    is_str(found(t, &x, &w, NULL), STR("p3 10.1000/100 but no_embedding_service"),
           "without vectors");
    world.meaning_err = ERR_TIMEOUT;
    is_str(found(t, &x, &w, NULL), STR("p3 10.1000/100 but embedding_service_away"),
           "which are too late");
    world.words_err = ERR_UNAVAILABLE;
    ok(str_starts(found(t, &x, &w, NULL), STR("unavailable: neither")), "without either");
    world.meaning_err = ERR_CANCELED;
    ok(str_starts(found(t, &x, &w, NULL), STR("canceled")), "a client that has gone");
    world_begin();
    world.meaning[COLLECTION_PAPERS].degraded = true;
    world.meaning[COLLECTION_PAPERS].reason = COLLECTION_REBUILT;
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 p1 10.1000/101 p3 but index_rebuilt"),
           "an index that is not complete");
    world_begin();
    without_meaning(COLLECTION_EMPTY);
    is_str(found(t, &x, &w, NULL), STR("10.1000/100 but nothing_embedded"),
           "papers that are not embedded");
    words_of(COLLECTION_PAPERS, NULL, 0);
    is_str(found(t, &x, &w, NULL), STR(""), "nothing at all: nothing is missing");
    close_node(t, &x);
}

/* --- pages --- */

static void test_pages(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(1);
    struct search_page p;
    w.limit = 2;
    is_str(found(t, &x, &w, &p), STR("10.1000/100 p1"), "the first page");
    ok(p.next.n > PAGES_ID_CHARS, "there are more: %.*s", STR_ARG(p.next));
    struct str second = w.cursor = p.next;
    meaning_of(COLLECTION_POSTS, points[0] + 3, 1); /* the index changes */
    int calls = world.calls;
    is_str(found(t, &x, &w, &p), STR("10.1000/101 p2"), "the second one, in the same order");
    is_int(world.calls, calls, "nothing is searched for it");
    world.posts[2].hide = true;
    w.cursor = p.next;
    is_str(found(t, &x, &w, &p), STR(""), "what was hidden meanwhile is in none");
    ok(!p.next.p, "that was the last");
    w.cursor = second;
    is_str(found(t, &x, &w, NULL), STR("10.1000/101 p2"), "a page can be asked for again");
    w.question = STR("lion");
    ok(str_starts(found(t, &x, &w, NULL), STR("invalid: is the cursor of another search")),
       "not of another question");
    w = wish_of(1);
    w.cursor = second;
    w.kinds[ORDER_PAPER] = false;
    ok(str_starts(found(t, &x, &w, NULL), STR("invalid")), "or with other filters");
    world_begin();
    w = wish_of(3);
    w.cursor = second;
    is_str(found(t, &x, &w, NULL), STR("10.1000/101 p3"),
           "another user's cursor is a place alone: an order of one's own");
    static const char *const wrong[] = {
        "", "x", "-", "-0", "-1001", "-1x", "abc-2", "--2", "0123456789abcdef0123456789abcdeg-2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w.cursor = str_of(wrong[i]);
        ok(str_starts(found(t, &x, &w, NULL), STR("invalid: is no cursor")), "\"%s\"", wrong[i]);
    }
    close_node(t, &x);
}

static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    open_node(t, &x);
    struct search_wish w = wish_of(1);
    struct search_page p;
    w.limit = 2;
    check(str_starts(found(t, &x, &w, &p), STR("10.")));
    w.cursor = p.next;
    check(redis_call(t, x.node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    is_str(found(t, &x, &w, &p), STR("10.1000/101 p2"), "an order that is gone is made again");
    ok(p.next.n > PAGES_ID_CHARS && !str_eq(p.next, w.cursor), "and kept again");
    store_redis_kill(&store);
    w.cursor = STR_NULL;
    is_str(found(t, &x, &w, &p), STR("10.1000/100 p1"), "Redis is away");
    is_str(p.next, STR("-2"), "the next page can be asked for");
    w.cursor = p.next;
    is_str(found(t, &x, &w, &p), STR("10.1000/101 p2"), "all the same");
    close_node(t, &x);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

/* --- alike, and too often --- */

static void test_like(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    struct search_page p;
    int64_t retry;
    open_node(t, &x);
    struct search_caller third = {.uid = 3}, owner = {.uid = 2}, admin = {.admin = true};
    int err = search_like(t, x.searches, third, ORDER_POST, 3, 20, &p, &retry);
    is_str(told(t, err, &p), STR("p1 p3"), "posts that are like one");
    is_int((int64_t)p.hits[0].snippet.mark_count, 0, "nothing is marked");
    err = search_like(t, x.searches, third, ORDER_POST, 4, 20, &p, &retry);
    is_str(told(t, err, &p), STR("not_found: there is no such post"), "a hidden one is not there");
    err = search_like(t, x.searches, owner, ORDER_POST, 4, 2, &p, &retry);
    is_str(told(t, err, &p), STR("p1 p4"), "but for its owner");
    err = search_like(t, x.searches, admin, ORDER_POST, 4, 20, &p, &retry);
    is_str(told(t, err, &p), STR("p1 p2 p4 p3"), "and admins");
    err = search_like(t, x.searches, third, ORDER_PAPER, 150, 1, &p, &retry);
    is_str(told(t, err, &p), STR("10.1000/101"), "papers");
    err = search_like(t, x.searches, third, ORDER_PAPER, 200, 1, &p, &retry);
    is_str(told(t, err, &p), STR("not_found: there is no such paper"), "one that is not there");
    without_meaning(COLLECTION_AWAY);
    err = search_like(t, x.searches, third, ORDER_PAPER, 150, 1, &p, &retry);
    is_int(err, ERR_UNAVAILABLE, "no vectors: %s", task_error(t));
    close_node(t, &x);
}

static void test_often(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    struct search_page p;
    int64_t retry = 0;
    int refused = 0, err = 0;
    open_node(t, &x);
    struct search_wish w = wish_of(1), other = wish_of(2), admin = wish_of(0);
    for (int i = 0; i < 2 * SEARCH_MINUTE_MAX && !refused; i++) {
        struct task_scope s = task_scope(t);
        err = search_page(t, x.searches, &w, &p, &retry);
        refused = err ? i : 0;
        task_scope_end(t, s);
    }
    ok(err == ERR_RATE && refused >= SEARCH_MINUTE_MAX && retry >= 1 && retry <= 60,
       "after %d it is enough: %s, for %d s", refused, err_name(err), (int)retry);
    is_int(search_page(t, x.searches, &other, &p, &retry), 0, "for that user");
    is_int(search_page(t, x.searches, &admin, &p, &retry), 0, "admins may go on");
    close_node(t, &x);
}

/* --- how much there is --- */

static struct str extents(struct task *t, const struct search_page *p)
{
    struct str s = STR("");
    for (int k = 0; k < ORDER_KINDS; k++) {
        const struct search_extent *x = &p->extents[k];
        struct str one = !x->asked   ? STR("-")
                         : !x->known ? STR("?")
                                     : str_printf(task_arena(t), "%d/%d/%d", (int)x->of.total,
                                                  (int)x->of.by_words, (int)x->of.by_meaning);
        s = STR_JOIN(task_arena(t), s, k ? STR(" ") : STR(""), one);
    }
    return s;
}

static struct str extents_of(struct task *t, struct node_of_test *x, const struct search_wish *w)
{
    struct search_page p;
    int64_t retry;
    check(search_page(t, x->searches, w, &p, &retry) == 0);
    return extents(t, &p);
}

struct asking {
    struct node_of_test *x;
    char got[40];
};

static void ask_beside(struct task *t, void *arg)
{
    struct asking *a = arg;
    struct search_wish w = wish_of(0);
    struct str got = extents_of(t, a->x, &w);
    snprintf(a->got, sizeof a->got, "%.*s", STR_ARG(got));
}

/* As if so much time had passed. */
static void later(struct node_of_test *x, int64_t ms)
{
    x->searches->extents.until_us -= ms * 1000;
}

static void test_extents(struct task *t, void *arg)
{
    (void)arg;
    struct node_of_test x;
    struct str one = STR("NATURE");
    open_node(t, &x);
    struct search_wish w = wish_of(3), admin = wish_of(0);
    is_str(extents_of(t, &x, &w), STR("23/16/10 300/200/9"),
           "posts that are open, and hidden ones of one's own; papers");
    is_str(extents_of(t, &x, &admin), STR("28/22/16 300/200/9"), "admins: those of all");
    w.journals = &one;
    w.journal_count = 1;
    is_str(extents_of(t, &x, &w), STR("- 0/0/1"), "of journals that were asked for: no posts");
    w = wish_of(3);
    w.year_to = 2000;
    is_str(extents_of(t, &x, &w), STR("- 2000/0/0"), "nor with years");
    w = wish_of(3);
    w.kinds[ORDER_PAPER] = false;
    is_str(extents_of(t, &x, &w), STR("23/16/10 -"), "of posts alone");
    is_int(world.counts, 1, "all of it is counted once");
    later(&x, 1500);
    extents_of(t, &x, &w);
    is_int(world.counts, 1, "for two seconds");
    world.counts_err = ERR_UNAVAILABLE;
    later(&x, 500);
    is_str(extents_of(t, &x, &w), STR("? -"), "what cannot be counted is not known, and no error");
    is_int(world.counts, 2, "then it is counted again");

    world.counts_err = 0;
    world.counts_ms = 200;
    later(&x, 2000);
    struct asking beside = {.x = &x};
    check(task_go(&x.group, "beside", ask_beside, &beside) == 0);
    check(task_sleep(t, 10) == 0);
    is_str(extents_of(t, &x, &w), STR("? -"), "while one counts, others do not wait");
    check(task_sleep(t, 600) == 0);
    is_str(str_of(beside.got), STR("28/22/16 300/200/9"), "and it has what it has counted");
    is_int(world.counts, 3, "once");
    later(&x, 8000);
    extents_of(t, &x, &w);
    is_int(world.counts, 3, "what takes long is not counted again for longer");
    later(&x, 60000);
    extents_of(t, &x, &w);
    is_int(world.counts, 4, "but then it is");
    close_node(t, &x);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "search_test");
    store_redis_start(&store, NULL);
    tap_task(test_hidden, NULL, true);
    tap_task(test_stale, NULL, true);
    tap_task(test_filters, NULL, true);
    tap_task(test_degraded, NULL, true);
    tap_task(test_pages, NULL, true);
    tap_task(test_without_redis, NULL, true);
    tap_task(test_like, NULL, true);
    tap_task(test_often, NULL, true);
    tap_task(test_extents, NULL, true);
    store_redis_stop(&store);
    return tap_done();
}
