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

int main(void)
{
    start_stores();
    tap_task(test_put, NULL, true);
    return stop_stores();
}
