#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/sanitize.h"
#include "tests/tap.h"

static void allocations_are_apart(void)
{
    enum { COUNT = 500 };
    struct arena a;
    arena_init(&a);
    ok(!a.head, "nothing is allocated before it is needed");

    unsigned char *p[COUNT];
    bool aligned = true, intact = true;
    for (int i = 0; i < COUNT; i++) {
        size_t n = (size_t)(i * 37 % 300);
        p[i] = arena_alloc(&a, n);
        aligned &= (uintptr_t)p[i] % 16 == 0;
        memset(p[i], i & 0xFF, n);
    }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < i * 37 % 300; k++)
            intact &= p[i][k] == (i & 0xFF);
    ok(aligned, "every allocation is aligned to 16");
    ok(intact, "no allocation overlaps another");
    ok(arena_alloc(&a, 0) != NULL, "an empty allocation is not NULL");

    size_t large = 1000000;
    memset(arena_alloc(&a, large), 1, large);
    memset(arena_alloc(&a, 8), 1, 8);
    arena_release(&a);
    ok(!a.head && !a.spare, "release leaves nothing");
}

static void zalloc_clears_used_memory(void)
{
    struct arena a;
    arena_init(&a);
    struct arena_mark m = arena_mark(&a);
    memset(arena_alloc(&a, 1000), 0xFF, 1000);
    arena_reset(&a, m);
    const char *p = arena_zalloc(&a, 1000);
    bool zero = true;
    for (int i = 0; i < 1000; i++)
        zero &= p[i] == 0;
    ok(zero, "zalloc clears memory that was used before");
    const int *array = ARENA_ARRAY(&a, int, 100);
    ok(array[0] == 0 && array[99] == 0, "arrays are zeroed");
    arena_release(&a);
}

static void grow(void)
{
    struct arena a;
    arena_init(&a);
    char *p = arena_grow(&a, NULL, 0, 10);
    memcpy(p, "123456789", 10);
    ok(arena_grow(&a, p, 10, 500) == p, "the newest allocation grows in place");
    memset(p + 10, 'x', 490);

    char *other = arena_alloc(&a, 16);
    memset(other, 'o', 16);
    char *q = arena_grow(&a, p, 500, 600);
    ok(q != p && memcmp(q, "123456789", 10) == 0 && q[499] == 'x', "an older one is copied");
    memset(q, 'q', 600);
    ok(other[0] == 'o' && other[15] == 'o', "growing leaves others alone");

    char *r = arena_grow(&a, q, 600, 100000);
    ok(r != q && r[599] == 'q', "growing past the chunk copies");
    memset(r, 'r', 100000);
    arena_release(&a);
}

static void marks_nest(void)
{
    struct arena a;
    arena_init(&a);
    arena_alloc(&a, 100);
    struct arena_mark outer = arena_mark(&a);
    char *first = arena_alloc(&a, 100);
    strcpy(first, "first");
    struct arena_mark inner = arena_mark(&a);
    char *second = arena_alloc(&a, 100);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    arena_reset(&a, inner);
    ok(strcmp(first, "first") == 0, "what is older than the mark stays");
    ok(arena_alloc(&a, 100) == second, "the inner mark gives the same place again");
    arena_reset(&a, outer);
    ok(arena_alloc(&a, 100) == first, "so does the outer one");
    arena_release(&a);
}

/* Under ASan a freed chunk is not handed out again at once, so equal addresses mean: no free. */
static void rounds_reuse_memory(void)
{
    struct arena a;
    arena_init(&a);
    struct arena_mark empty = arena_mark(&a);
    char *p = arena_alloc(&a, 100);
    arena_reset(&a, empty);
    ok(a.spare, "a reset keeps one chunk");
    ok(arena_alloc(&a, 100) == p, "the next round starts in it");

    struct arena_mark m = arena_mark(&a);
    arena_alloc(&a, 3500);
    char *overflow = arena_alloc(&a, 3000);
    bool same = true;
    for (int i = 0; i < 10; i++) {
        arena_reset(&a, m);
        arena_alloc(&a, 3500);
        same &= arena_alloc(&a, 3000) == overflow;
    }
    ok(same, "rounds that need a second chunk get the same one each time");
    arena_release(&a);

    arena_init(&a);
    arena_alloc(&a, 1 << 20);
    arena_reset(&a, (struct arena_mark){0});
    ok(!a.spare, "a large chunk is not kept");
    arena_release(&a);
}

#ifdef WITH_ASAN

static void freed_parts_are_poisoned(void)
{
    struct arena a;
    arena_init(&a);
    arena_alloc(&a, 16);
    struct arena_mark m = arena_mark(&a);
    char *p = arena_alloc(&a, 32);
    ok(!__asan_address_is_poisoned(p + 31), "memory in use is not poisoned");
    ok(__asan_address_is_poisoned(p + 32), "the gap after it is");
    char *far = arena_alloc(&a, 5000);
    arena_reset(&a, m);
    ok(__asan_address_is_poisoned(p), "freed memory is poisoned");
    ok(__asan_address_is_poisoned(far), "in newer chunks too");
    p = arena_grow(&a, arena_alloc(&a, 8), 8, 64);
    ok(!__asan_address_is_poisoned(p + 63), "grown memory is not poisoned");
    arena_release(&a);
}
#endif

static void text(void)
{
    struct arena a;
    arena_init(&a);
    is_str(str_of(arena_strdup(&a, "hello")), STR("hello"), "strdup");
    is_str(str_of(arena_printf(&a, "%d-%s", 7, "x")), STR("7-x"), "printf");
    const char *s = arena_printf(&a, "%s|%0500d", "long", 1);
    ok(strlen(s) == 505 && strncmp(s, "long|000", 8) == 0 && s[504] == '1', "a long printf");
    s = arena_printf(&a, "%0255d", 1);
    ok(strlen(s) == 255 && s[254] == '1', "a printf as long as the first try allows");
    arena_release(&a);
}

int main(void)
{
    allocations_are_apart();
    zalloc_clears_used_memory();
    grow();
    marks_nest();
    rounds_reuse_memory();
#ifdef WITH_ASAN
    freed_parts_are_poisoned();
#endif
    text();
    return tap_done();
}
