#include "tool/db/split_name.h"

#include "tests/tap.h"

static struct arena arena;

static void becomes(struct str from, struct str want, const char *name)
{
    is_str(split_name(&arena, from), want, name);
}

static void test_names(void)
{
    becomes(STR("Nature"), STR("Nature"), "a plain name");
    becomes(STR("{Physical Review} \\& {C}o"), STR("Physical Review & Co"), "LaTeX");
    becomes(STR("Zeitschrift f{\\\"u}r Physik"), STR("Zeitschrift f\xC3\xBCr Physik"), "an accent");
    becomes(STR("Zeitschrift f\xFCr Physik"), STR("Zeitschrift f\xC3\xBCr Physik"), "Latin-1");
    becomes(STR("  A \t B\n  C "), STR("A B C"), "blanks");
    becomes(STR("\xE4\xB8\xAD\xE6\x96\x87"), STR("\xE4\xB8\xAD\xE6\x96\x87"), "Chinese");
}

static void test_unsafe(void)
{
    becomes(STR("../../etc/passwd"), STR("-..-etc-passwd"), "a path");
    becomes(STR("/etc"), STR("-etc"), "a path from the root");
    becomes(STR(".."), STR(""), "the folder above");
    becomes(STR(". . hidden"), STR("hidden"), "a hidden name");
    becomes(STR("a\x01"
                "b\x7F"
                "c\xC2\x85"
                "d"),
            STR("a b c d"), "control characters");
    becomes(STR(""), STR(""), "nothing");
    becomes(STR("{}"), STR(""), "nothing but braces");
}

static void test_long(void)
{
    char text[600];
    memset(text, 'x', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 3)
        memcpy(text + i, "\xE4\xB8\xAD", i + 3 <= sizeof text ? 3 : 0);
    struct str one = split_name(&arena, str_from(text, 598));
    text[597 - 3] = 'y';
    struct str other = split_name(&arena, str_from(text, 595));
    ok(one.n <= SPLIT_NAME_BYTES_MAX && str_utf8_valid(one), "a long name is cut, not in a letter");
    ok(one.n > 150, "and not more than it has to be");
    ok(other.n <= SPLIT_NAME_BYTES_MAX && !str_eq(one, other), "two that begin alike stay apart");
    text[200] = '\0';
    memset(text, 'x', 200);
    is_int((int64_t)split_name(&arena, str_from(text, 200)).n, 200, "one that just fits is kept");
}

static void test_fold(void)
{
    is_str(split_fold(&arena, STR("NATURE Physics")), split_fold(&arena, STR("Nature physics")),
           "names that differ in case only");
}

int main(void)
{
    arena_init(&arena);
    test_names();
    test_unsafe();
    test_long();
    test_fold();
    arena_release(&arena);
    return tap_done();
}
