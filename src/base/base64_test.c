#include "base/base64.h"

#include <stdlib.h>

#include "base/buf.h"
#include "tests/tap.h"

/* Copies of exactly that size: to read or write on is seen. */
static bool decodes(struct str text, struct str want)
{
    size_t n = base64_bytes(text);
    char *copy = check_memory(malloc(text.n + !text.n)), *out = check_memory(malloc(n + !n));
    memcpy(copy, text.p, text.n);
    bool right = base64_decode(str_from(copy, text.n), out) && str_eq(str_from(out, n), want);
    free(copy);
    free(out);
    return right;
}

static void test_right(void)
{
    ok(decodes(STR(""), STR("")), "nothing");
    ok(decodes(STR("AACAPw=="), STR("\0\0\x80?")), "one float");
    ok(decodes(STR("+/+/"), STR("\xFB\xFF\xBF")), "plus and slash");
    char bytes[300];
    int wrong = 0;
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        buf_clear(&b);
        buf_add_base64(&b, bytes, n);
        wrong += !decodes(buf_str(&b), str_from(bytes, n));
    }
    is_int(wrong, 0, "what buf_add_base64 writes, in all lengths");
    buf_release(&b);
}

static void test_wrong(void)
{
    static const char *const texts[] = {
        "A",    "AA",   "AAA",      "AAAAA", "A===",  "====", "=AAA",    "AA=A",
        "AB==", "AAB=", "AA==AAAA", "AA A",  "AA\nA", "AA-_", "A\x80==", "\xFF\xFF\xFF\xFF"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct str text = str_of(texts[i]);
        char *out = check_memory(malloc(base64_bytes(text) + 1));
        ok(!base64_decode(text, out), "no base64: number %d", (int)i);
        free(out);
    }
}

int main(void)
{
    test_right();
    test_wrong();
    return tap_done();
}
