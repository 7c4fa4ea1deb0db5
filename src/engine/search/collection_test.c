/* Documents that are put, found, tagged and dropped; spaces that follow each other. */
#include "engine/search/collection_fixture.h"

static void test_put(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a, b;
    struct collection_answer got;
    bool building;
    world_open(t, &w);
    node_open(t, &w, &a);
    node_open(t, &w, &b);
    is_int(best_of(t, &a, "apples", &got), 0, "a search where nothing was embedded");
    ok(got.degraded && strcmp(got.reason, COLLECTION_EMPTY) == 0, "says so");
    is_int(put_text(t, &a, 1, 1, "apples and pears"), 0, "a document");
    is_int(put_text(t, &a, 2, 1, "iron and steel"), 0, "another one");
    is_int(best_of(t, &a, "red apples", &got), 1, "is found");
    ok(!got.degraded && got.count == 2, "with the other one behind it");
    is_int(best_of(t, &b, "steel", &got), 2, "another node finds it");
    is_int(put_text(t, &a, 2, 2, "bananas"), 0, "a new version");
    is_int(best_of(t, &b, "bananas", &got), 2, "is found at once");
    is_int((int64_t)got.hits[0].point.version, 2, "with its version");
    is_int((int64_t)got.count, 2, "in place of the former one");
    is_int(put_text(t, &a, 2, 1, "iron and steel"), ERR_CONFLICT, "an earlier version");
    is_int(best_of(t, &b, "bananas", &got), 2, "changes nothing");
    is_int(put_text(t, &a, 2, 2, "cherries"), 0, "the same version again");
    is_int(best_of(t, &b, "cherries", &got), 2, "takes its place");
    is_int(put_text(t, &a, 2, 3, ""), 0, "a document without text");
    is_int(best_of(t, &b, "cherries", &got), 1, "has no points");
    is_int((int64_t)got.count, 1, "but the other one has");
    is_int(collection_drop(t, b.all, COLLECTION_POSTS, (uint64_t[]){1, 2, 3}, 3), 0, "a drop");
    is_int(collection_drop(t, b.all, COLLECTION_POSTS, (uint64_t[]){1}, 1), 0, "is idempotent");
    is_int(best_of(t, &a, "apples", &got), 0, "leaves nothing in the store");
    ok(!got.degraded, "which is whole");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector"), 0, "nor in MySQL");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_owner"), 0, "of anything");
    ok(collection_space(a.all, COLLECTION_POSTS, &building) > 0 && !building, "one space");
    node_close(&a);
    node_close(&b);
    world_close(t, &w);
}

static bool is_degraded(const struct collection_answer *a, const char *reason)
{
    return a->degraded && strcmp(a->reason, reason) == 0;
}

static void test_outcomes(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    struct collection_answer got;
    int64_t space;
    struct str first[] = {STR("granite"), STR("basalt")}, second[] = {STR("oak"), STR("refused")};
    struct collection_document docs[] = {
        {.owner = 1, .version = 1, .chunks = first, .chunk_count = 2},
        {.owner = 2, .version = 1, .chunks = second, .chunk_count = 2},
        {.owner = 3, .version = 1, .chunks = NULL, .chunk_count = 0},
        {.owner = 4, .version = 1, .chunks = &first[1], .chunk_count = 1}};
    struct collection_outcome o[4];
    world_open(t, &w);
    node_open(t, &w, &a);
    is_int(collection_put(t, a.all, COLLECTION_PAPERS, docs, 4, &ai_for_run, o, &space), 0,
           "four documents");
    ok(!o[0].err && !o[2].err && !o[3].err, "three are stored");
    is_int(o[1].err, ERR_REFUSED, "of one a chunk is refused: %s", o[1].why);
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector WHERE owner = 2"), 0,
           "so it has no vector at all");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector"), 3, "the others have theirs");
    struct points_query q = {.k = 5};
    is_int(collection_search(t, a.all, COLLECTION_PAPERS, STR("basalt"), &q, &got), 0, "a search");
    ok(got.count == 3 && got.hits[0].score > 0.99F && got.hits[1].score > 0.99F,
       "finds the part and the paper that say it");
    is_int(best_of(t, &a, "basalt", &got), 0, "which are no posts");
    ok(is_degraded(&got, COLLECTION_EMPTY), "of those there are none");
    q.k = 0;
    is_int(collection_search(t, a.all, COLLECTION_PAPERS, STR("basalt"), &q, &got), ERR_INVALID,
           "a search for nothing");
    q.k = 5;
    is_int(collection_search(t, a.all, COLLECTION_PAPERS, STR(" "), &q, &got), ERR_INVALID,
           "a blank question");
    node_close(&a);
    world_close(t, &w);
}

/* Of three documents the second may not be changed. */
static int second_is_late(struct task *t, struct sql *c, void *arg, bool *may)
{
    int *calls = arg;
    (void)t;
    check(c && may[0] && may[1] && may[2]);
    may[1] = false;
    ++*calls;
    return 0;
}

static void test_fence(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    int64_t space;
    int calls = 0;
    struct str texts[] = {STR("granite"), STR("basalt"), STR("oak")};
    struct collection_document docs[3];
    struct collection_outcome o[3];
    struct collection_fence fence = {second_is_late, &calls};
    uint64_t owners[] = {1, 2, 3};
    for (size_t i = 0; i < 3; i++)
        docs[i] = (struct collection_document){
            .owner = owners[i], .version = 1, .chunks = &texts[i], .chunk_count = 1};
    world_open(t, &w);
    node_open(t, &w, &a);
    is_int(
        collection_put_fenced(t, a.all, COLLECTION_POSTS, docs, 3, &ai_for_run, &fence, o, &space),
        0, "a put with a fence");
    ok(!o[0].err && o[1].err == ERR_CONFLICT && !o[2].err, "that one document does not pass");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector"), 2, "stores the others");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector WHERE owner = 2"), 0, "alone");
    check(collection_put(t, a.all, COLLECTION_POSTS, docs, 3, &ai_for_run, o, &space) == 0);
    is_int(collection_drop_fenced(t, a.all, COLLECTION_POSTS, owners, 3, &fence), 0,
           "a drop with a fence");
    is_int(sql_number(t, &a, "SELECT owner FROM point_vector"), 2, "leaves that document");
    struct collection_answer got;
    is_int(best_of(t, &a, "basalt", &got), 2, "which is found");
    is_int((int64_t)got.count, 1, "alone");
    is_int(calls, 2, "the fence was asked once each");
    node_close(&a);
    world_close(t, &w);
}

/* Puts and drops of one node at once, while it reads how far the log is, again and again: what one
 * of these tasks has read is of before or after the snapshot of another. */
struct busy {
    struct node_of *node;
    uint64_t owner;
    int left; /* tasks that have not ended */
};

static void put_often(struct task *t, void *arg)
{
    struct busy *b = arg;
    uint64_t owner = ++b->owner;
    for (uint64_t i = 1; i <= 15; i++)
        check(put_text(t, b->node, owner, i, "granite") == 0);
    b->left--;
}

static void look_often(struct task *t, void *arg)
{
    struct busy *b = arg;
    while (b->left)
        check(shelf_look(t, shelf_of(b->node->all, COLLECTION_POSTS)) == 0);
}

static void test_busy(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    struct group g;
    struct busy b = {.node = &a, .left = 8};
    world_open(t, &w);
    node_open(t, &w, &a);
    check(put_text(t, &a, 100, 1, "basalt") == 0);
    int64_t before = sql_number(t, &a, "SELECT CAST(SUM(builds) AS SIGNED) FROM vector_store");
    group_init(&g, task_loop(t));
    for (int i = 0; i < 8; i++)
        check(task_go(&g, "put", put_often, &b) == 0);
    for (int i = 0; i < 3; i++)
        check(task_go(&g, "look", look_often, &b) == 0);
    check(group_join(t, &g) == 0);
    is_int(sql_number(t, &a, "SELECT CAST(SUM(builds) AS SIGNED) FROM vector_store"), before,
           "a store that is whole is not made anew");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector"), 9, "all are stored");
    node_close(&a);
    world_close(t, &w);
}

static void test_tags(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a, b;
    struct collection_answer got;
    world_open(t, &w);
    node_open(t, &w, &a);
    node_open(t, &w, &b);
    is_int(put_text(t, &a, 1, 1, "silver"), 0, "a document");
    is_int(put_text(t, &a, 2, 1, "gold"), 0, "another one");
    struct point_filter f = {.without = POINT_HIDDEN};
    struct points_query q = {.k = 5, .filter = &f};
    is_int(collection_tag(t, b.all, COLLECTION_POSTS, 1,
                          (struct point_tags){.flags = POINT_HIDDEN, .year = 1999}, STR("new")),
           0, "is hidden by another node");
    is_int(collection_search(t, a.all, COLLECTION_POSTS, STR("silver"), &q, &got), 0, "a search");
    ok(got.count == 1 && got.hits[0].point.owner == 2, "does not find it");
    is_int(best_of(t, &a, "silver", &got), 1, "without the filter it is there");
    ok(got.hits[0].point.tags.year == 1999, "with its tags");
    is_int(sql_number(t, &a, "SELECT title = 'new' FROM point_owner WHERE owner = 1"), 1,
           "and title");
    is_int(
        collection_tag(t, b.all, COLLECTION_POSTS, 77, (struct point_tags){.flags = 0}, STR_NULL),
        0, "tags of what is not there");
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_owner"), 2, "make nothing");
    is_int(collection_tag(t, b.all, COLLECTION_POSTS, 1, (struct point_tags){.flags = 0}, STR_NULL),
           0, "it is shown again");
    is_int(collection_search(t, a.all, COLLECTION_POSTS, STR("silver"), &q, &got), 0, "a search");
    ok(got.count == 2 && got.hits[0].point.owner == 1, "finds it");
    is_int(sql_number(t, &a, "SELECT title = 'new' FROM point_owner WHERE owner = 1"), 1,
           "the title is as it was");
    node_close(&a);
    node_close(&b);
    world_close(t, &w);
}

static void test_like(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    struct collection_answer got;
    struct points_query q = {.k = 1};
    world_open(t, &w);
    node_open(t, &w, &a);
    is_int(put_text(t, &a, 1, 1, "graphene oxide films"), 0, "a document");
    is_int(put_text(t, &a, 2, 1, "graphene oxide membranes"), 0, "one like it");
    is_int(put_text(t, &a, 3, 1, "whales sing"), 0, "another one");
    int calls = w.service.calls;
    is_int(collection_like(t, a.all, COLLECTION_POSTS, 1, &q, &got), 0, "more like it");
    ok(got.count == 1 && got.hits[0].point.owner == 2 && !got.degraded, "is the one");
    is_int(w.service.calls, calls, "without asking the service");
    is_int(collection_like(t, a.all, COLLECTION_POSTS, 9, &q, &got), ERR_NOT_FOUND,
           "like what is not there");
    is_int(best_of(t, &a, "graphene", &got) < 3, 1, "a question");
    is_int(w.service.calls, calls + 1, "is embedded");
    is_int(best_of(t, &a, "graphene", &got) < 3, 1, "the same");
    is_int(w.service.calls, calls + 1, "is not again");
    node_close(&a);
    world_close(t, &w);
}

/* One reply is not enough to have all embedded again. */
static void test_odd(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    struct collection_answer got;
    world_open(t, &w);
    node_open(t, &w, &a);
    is_int(put_text(t, &a, 1, 1, "granite"), 0, "a document");
    for (int odd = 1; odd <= 2; odd++) {
        w.service.odd = odd;
        is_int(put_text(t, &a, 2, 1, "slate"), ERR_UNAVAILABLE,
               "vectors that lack a number, %d times", odd);
        is_int(sql_number(t, &a, "SELECT COUNT(*) FROM vector_space"), 1, "make no space");
    }
    is_int(put_text(t, &a, 2, 1, "slate"), 0, "the next reply is right");
    is_int(best_of(t, &a, "slate", &got), 2, "and found");
    w.service.odd = 3;
    is_int(put_text(t, &a, 3, 1, "shale"), 0, "what it answers again and again");
    is_int(sql_number(t, &a, "SELECT MAX(dimension) * 100 + MIN(dimension) FROM vector_space"),
           1615, "is a new dimension");
    node_close(&a);
    world_close(t, &w);
}

/* The service, or MySQL, does not answer. */
static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a, none;
    struct collection_answer got;
    struct collection_look look;
    world_open(t, &w);
    node_open(t, &w, &a);
    node_open(t, &w, &none);
    struct collections_options o = none.all->options;
    collections_free(none.all);
    o.embedding = NULL;
    o.ai = NULL;
    none.all = collections_new(&o);
    is_int(put_text(t, &none, 1, 1, "salt"), ERR_UNAVAILABLE, "without a service");
    is_int(best_of(t, &none, "salt", &got), 0, "nothing can be searched");
    ok(is_degraded(&got, COLLECTION_NO_SERVICE), "which is said");
    is_int(collection_look(t, none.all, COLLECTION_POSTS, &look), 0, "a look");
    ok(look.degraded && strcmp(look.reason, COLLECTION_NO_SERVICE) == 0 && !look.model.p, "too");
    is_int(rounds(t, &none), 0, "the role has nothing to do");

    is_int(put_text(t, &a, 1, 1, "salt and pepper"), 0, "a document");
    is_int(best_of(t, &a, "salt", &got), 1, "and a question");
    w.service.away = true;
    int64_t old = task_deadline(t, 600);
    int err = put_text(t, &a, 2, 1, "sugar");
    ok(err == ERR_UNAVAILABLE || err == ERR_TIMEOUT, "the service is away");
    task_deadline_restore(t, old);
    is_int(sql_number(t, &a, "SELECT COUNT(*) FROM point_vector"), 1, "nothing is stored");
    old = task_deadline(t, 600);
    is_int(best_of(t, &a, "pepper", &got), 0, "a new question");
    ok(is_degraded(&got, COLLECTION_NO_ANSWER), "cannot be answered");
    task_deadline_restore(t, old);
    is_int(best_of(t, &a, "salt", &got), 1, "one that was asked lately can");
    ok(!got.degraded, "as ever");
    is_int(collection_look(t, a.all, COLLECTION_POSTS, &look), 0, "a look");
    ok(look.points == 1 && look.dimension == 16 && str_eq(look.model, STR("m1")), "shows it");
    ok(!look.degraded && look.bytes > 0 && !look.building.p, "whole");
    w.service.away = false;

    mariadb_kill(&server);
    is_int(best_of(t, &a, "salt", &got), 1, "MySQL is away: it is found");
    ok(!got.degraded, "as ever");
    is_int(put_text(t, &a, 2, 1, "sugar"), ERR_UNAVAILABLE, "nothing can be put");
    ok(collection_drop(t, a.all, COLLECTION_POSTS, (uint64_t[]){1}, 1) != 0, "or dropped");
    ok(rounds(t, &a) < 0, "and the role complains");
    struct points_query q = {.k = 1};
    is_int(collection_like(t, a.all, COLLECTION_POSTS, 1, &q, &got), 0, "more like it");
    ok(is_degraded(&got, COLLECTION_AWAY), "needs MySQL");
    struct node_of late;
    node_open(t, &w, &late);
    is_int(best_of(t, &late, "salt", &got), 0, "a node that starts now knows nothing");
    ok(is_degraded(&got, COLLECTION_AWAY), "and says so");
    mariadb_restart(&server);
    await_mysql(t, &a);
    await_mysql(t, &late);
    is_int(best_of(t, &late, "salt", &got), 1, "MySQL is back: it does");
    is_int(rounds(t, &a), 0, "the role goes on");
    is_int(put_text(t, &a, 2, 1, "sugar"), 0, "and puts do");
    is_int(best_of(t, &a, "sugar", &got), 2, "which is found");
    node_close(&late);
    node_close(&none);
    node_close(&a);
    world_close(t, &w);
}

int main(void)
{
    start_stores();
    tap_task(test_put, NULL, true);
    tap_task(test_outcomes, NULL, true);
    tap_task(test_fence, NULL, true);
    tap_task(test_busy, NULL, true);
    tap_task(test_tags, NULL, true);
    tap_task(test_like, NULL, true);
    tap_task(test_odd, NULL, true);
    tap_task(test_away, NULL, true);
    return stop_stores();
}
