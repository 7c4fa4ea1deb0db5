/* Memory of sessions: kept for the next, up to a limit. */
#include "wire/http2/http2_memory.h"

#include <stdint.h>
#include <string.h>

#include "tests/tap.h"

#define BLOCKS 4000

static void *take(size_t n)
{
    return http2_memory()->malloc(n, NULL);
}

static void give(void *p)
{
    http2_memory()->free(p, NULL);
}

static void test_kept(void)
{
    char *first = take(100), *second = take(100);
    memset(first, 'a', 100);
    memset(second, 'b', 100);
    ok(first != second && first[99] == 'a', "blocks are apart");
    ok((uintptr_t)first % 16 == 0, "and hold whatever one puts there");
    give(first);
    ok(http2_memory_kept() >= 100, "what is given back is kept");
    char *other = take(1000), *again = take(120);
    ok(other != first && again == first, "for the next of about that size");
    is_int((int64_t)http2_memory_kept(), 0, "which takes it out");
    give(other);
    is_int((int64_t)http2_memory_kept(), 0, "large ones are not kept");
    give(again);
    give(second);
    give(NULL);
    http2_memory_trim();
    is_int((int64_t)http2_memory_kept(), 0, "a trim leaves nothing");
}

static void test_limit(void)
{
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = take(512);
    for (size_t i = 0; i < BLOCKS; i++)
        give(blocks[i]);
    is_int((int64_t)http2_memory_kept(), HTTP2_MEMORY_KEPT_MAX, "so much is kept, and no more");
    http2_memory_trim();
}

static void test_sizes(void)
{
    nghttp2_mem *m = http2_memory();
    bool zeroed = true, same = true;
    for (size_t n = 0; n < 1500; n++) {
        char *p = take(n);
        memset(p, 'x', n);
        give(p);
        p = m->calloc(n, 1, NULL);
        for (size_t i = 0; i < n; i++)
            zeroed = zeroed && p[i] == 0;
        memset(p, 'y', n);
        p = m->realloc(p, n * 2, NULL);
        for (size_t i = 0; i < n; i++)
            same = same && p[i] == 'y';
        memset(p, 'z', n * 2);
        give(p);
    }
    ok(zeroed, "calloc gives zeroes, also of what was used before");
    ok(same, "what grows keeps what it holds");
    ok(!m->calloc(SIZE_MAX / 2, 4, NULL) && !m->malloc(SIZE_MAX, NULL), "too much is refused");
    char *p = m->realloc(NULL, 10, NULL);
    ok(p && m->realloc(p, 5, NULL) == p, "what shrinks stays");
    give(p);
    http2_memory_trim();
}

int main(void)
{
    test_kept();
    test_limit();
    test_sizes();
    return tap_done();
}
