/* One order out of several. */
#include "app/embed/search/order.h"

#include "tests/tap.h"

static void test_fused(void)
{
    struct arena a;
    struct order o;
    arena_init(&a);
    order_init(&o, &a, 4);
    const uint64_t points[] = {10, 11, 10, 12, 13}, words[] = {12, 20, 11}, papers[] = {10, 30};
    for (size_t i = 0; i < 5; i++)
        order_add_point(&o, ORDER_POST, i, points[i], 100 + i, (uint32_t)i);
    for (size_t i = 0; i < 3; i++)
        order_add_words(&o, ORDER_POST, i, words[i]);
    for (size_t i = 0; i < 2; i++)
        order_add_words(&o, ORDER_PAPER, i, papers[i]);
    order_make(&o);
    is_int((int64_t)o.count, 7, "each once: a paper is no post of the same number");
    ok(o.hits[0].owner == 12 && o.hits[1].owner == 11, "what both lists have comes first");
    ok(o.hits[0].by_meaning && o.hits[0].by_words && o.hits[0].part == 3 &&
           o.hits[0].version == 103,
       "with its point");
    ok(o.hits[2].owner == 10 && o.hits[2].kind == ORDER_POST && o.hits[2].part == 0 &&
           o.hits[3].owner == 10 && o.hits[3].kind == ORDER_PAPER,
       "then what is first in one, posts before papers");
    ok(o.hits[2].score == 1.0 / 61 && !o.hits[2].by_words, "its best point counts alone");
    ok(o.hits[0].score == 1.0 / 64 + 1.0 / 61, "places of all lists count");
    ok(o.hits[6].owner == 13 && o.hits[6].score == 1.0 / 65, "the last");
    for (size_t i = 1; i < o.count; i++)
        if (o.hits[i - 1].score < o.hits[i].score)
            ok(false, "the best come first");
    arena_release(&a);
}

static void test_full(void)
{
    struct arena a;
    struct order o;
    arena_init(&a);
    order_init(&o, &a, 3);
    for (size_t i = 0; i < ORDER_HITS_MAX; i++) {
        order_add_point(&o, ORDER_PAPER, i, i, 0, 0);
        order_add_words(&o, ORDER_PAPER, i, ORDER_HITS_MAX + i);
        order_add_words(&o, ORDER_POST, i, UINT64_MAX - i);
    }
    is_int((int64_t)o.count, 3 * ORDER_HITS_MAX, "as many as there can be");
    order_make(&o);
    is_int((int64_t)o.count, ORDER_HITS_MAX, "so many stay");
    size_t best = 0;
    for (size_t i = 0; i < o.count; i++)
        best += o.hits[i].score > 1.0 / (61 + ORDER_HITS_MAX / 3.0);
    ok(best >= ORDER_HITS_MAX - 3, "the best ones: %zu", best);
    order_init(&o, &a, 1);
    order_make(&o);
    is_int((int64_t)o.count, 0, "or none");
    arena_release(&a);
}

int main(void)
{
    test_fused();
    test_full();
    return tap_done();
}
