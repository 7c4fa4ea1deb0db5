#include "base/buf.h"

#include "tests/tap.h"

static void appending(void)
{
    struct buf b;
    buf_init(&b);
    is_str(buf_str(&b), STR(""), "an empty buffer is an empty string, not an absent one");
    buf_add(&b, NULL, 0);
    ok(!b.p, "adding nothing allocates nothing");
    buf_add_lit(&b, "ab");
    buf_add_str(&b, STR("cd"));
    buf_add_char(&b, 'e');
    buf_printf(&b, "%d", 12);
    is_str(buf_str(&b), STR("abcde12"), "everything lands at the end");
    buf_clear(&b);
    is_int((int64_t)b.len, 0, "clear");
    ok(b.cap > 0, "clear keeps the memory");
    buf_release(&b);
    ok(!b.p && !b.cap, "release");
}

static void integers(void)
{
    static const int64_t values[] = {0, 7, 10, -1, -10, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct buf got, want;
        buf_init(&got);
        buf_init(&want);
        buf_add_int(&got, values[i]);
        buf_printf(&want, "%lld", (long long)values[i]);
        is_str(buf_str(&got), buf_str(&want), "add_int");
        buf_release(&got);
        buf_release(&want);
    }
}

static void long_printf(void)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%0*d", 255, 1);
    is_int((int64_t)b.len, 255, "a printf that just fits");
    buf_clear(&b);
    buf_printf(&b, "%0*d|", 255, 1);
    ok(b.len == 256 && buf_str(&b).p[255] == '|', "a printf that just does not, for its NUL");
    buf_printf(&b, "%0*d", 5000, 2);
    struct str s = buf_str(&b);
    ok(s.n == 5256 && s.p[254] == '1' && s.p[255] == '|' && s.p[5255] == '2', "a long printf");
    buf_release(&b);
}

static void queue(void)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "hello world");
    buf_consume(&b, 6);
    is_str(buf_str(&b), STR("world"), "consume drops from the front");
    buf_consume(&b, 5);
    is_int((int64_t)b.head, 0, "an empty buffer starts at the front again");

    /* A steady queue must stay in order and must not grow. */
    unsigned in = 0, out = 0;
    bool ordered = true;
    for (int round = 0; round < 10000; round++) {
        for (int i = 0; i < 50; i++)
            buf_add_char(&b, (char)in++);
        while (b.len > 30) {
            ordered &= *buf_str(&b).p == (char)out++;
            buf_consume(&b, 1);
        }
    }
    ok(ordered, "what goes in first comes out first");
    ok(b.cap <= 512, "a steady queue does not grow");
    buf_release(&b);
}

static void reserving(void)
{
    struct buf b;
    buf_init(&b);
    ok(buf_reserve(&b, 0) != NULL, "reserving nothing still gives a place");
    memset(buf_reserve(&b, 100000), 'x', 100000);
    ok(buf_room(&b) >= 100000 && b.len == 0, "reserving adds nothing");
    buf_added(&b, 100000);
    is_int((int64_t)b.len, 100000, "added does");
    buf_shrink(&b, 10);
    ok(b.cap >= 100000, "a buffer in use does not shrink");
    buf_clear(&b);
    buf_shrink(&b, 1 << 20);
    ok(b.cap >= 100000, "an empty one within the limit neither");
    buf_shrink(&b, 1000);
    is_int((int64_t)b.cap, 0, "an empty one above the limit does");
    buf_add_lit(&b, "again");
    is_str(buf_str(&b), STR("again"), "and can be used again");
    buf_release(&b);
}

static void base64(void)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"\377\376", "//4="},
                                           {"user:pass", "dXNlcjpwYXNz"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf b;
        buf_init(&b);
        buf_add_base64(&b, pairs[i][0], strlen(pairs[i][0]));
        is_str(buf_str(&b), str_of(pairs[i][1]), "base64 of %zu bytes", strlen(pairs[i][0]));
        buf_release(&b);
    }
}

int main(void)
{
    base64();
    appending();
    integers();
    long_printf();
    queue();
    reserving();
    return tap_done();
}
