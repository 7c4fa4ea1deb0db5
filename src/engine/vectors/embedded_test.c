#include "engine/vectors/embedded.h"

#include "engine/vectors/index_fixture.h"
#include "loop/task.h"
#include "tests/tap.h"

#define DIMENSION 16
#define TASKS     8

static struct fixture fixture;
static int done, wrong;

static int put_one(struct task *t, struct points_store *s, uint64_t owner)
{
    float v[DIMENSION];
    struct point p = {.owner = owner, .version = 1};
    struct points_change c = {
        .space = {"made-up", DIMENSION}, .points = &p, .vectors = v, .count = 1};
    topic_vector(owner, DIMENSION, v);
    return s->ops->put(t, s, &c);
}

static int nearest(struct task *t, struct points_store *s, uint64_t owner, struct point_hit *hit,
                   struct points_answer *answer)
{
    float v[DIMENSION];
    struct points_query q = {.space = {"made-up", DIMENSION}, .vector = v, .k = 1};
    topic_vector(owner, DIMENSION, v);
    return s->ops->search(t, s, &q, hit, answer);
}

struct one {
    struct points_store *store;
    uint64_t number;
};

static void put_and_search(struct task *t, void *arg)
{
    struct one *o = arg;
    struct point_hit hit;
    struct points_answer answer;
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t owner = o->number * 100 + i;
        wrong += put_one(t, o->store, owner) != 0;
        wrong += nearest(t, o->store, owner, &hit, &answer) != 0 || hit.point.owner != owner;
    }
    done++;
}

static void test_store(struct task *t, void *arg)
{
    (void)arg;
    struct points_store *s = embedded_new(fixture.path);
    struct point_hit hit;
    struct points_answer answer;
    is_int(nearest(t, s, 1, &hit, &answer), ERR_NOT_FOUND, "a search in what is not there");
    ok(strstr(task_error(t), "no such index") != NULL, "has its text: %s", task_error(t));
    is_int(put_one(t, s, 1), ERR_NOT_FOUND, "a change makes no index: it may have been lost");
    fixture_create(&fixture, DIMENSION, 64);
    is_int(put_one(t, s, 1), 0, "once it is made, the same store puts");
    is_int(nearest(t, s, 1, &hit, &answer), 0, "and finds");
    is_int((int64_t)hit.point.owner, 1, "what was put");

    struct one ones[TASKS];
    struct group g;
    group_init(&g, task_loop(t));
    for (uint64_t i = 0; i < TASKS; i++) {
        ones[i] = (struct one){s, i + 1};
        check(task_go(&g, "put", put_and_search, &ones[i]) == 0);
    }
    is_int(group_join(t, &g), 0, "%d tasks at a time", TASKS);
    ok(done == TASKS && wrong == 0, "each finds what it has put");
    is_int(s->ops->tag(t, s, 101, (struct point_tags){.year = 1990}, STR_NULL), 0, "tags");
    is_int(nearest(t, s, 101, &hit, &answer), 0, "change");
    is_int(hit.point.tags.year, 1990, "at once");
    is_int(s->ops->settle(t, s), 0, "and are written to the disk");
    s->ops->free(s);
}

int main(void)
{
    fixture_begin(&fixture);
    tap_task(test_store, NULL, true);
    fixture_end(&fixture);
    return tap_done();
}
