#include "app/extract/task/flags.h"

#include "tests/tap.h"

static struct str key_of(struct arena *a, enum extract_type of, struct extract_value v)
{
    struct extract_field f = {.name = STR("x"), .type = of, .of = of};
    struct extract_template x = {&f, 1};
    struct extract_found found = {.items = &v, .count = 1};
    struct extract_values values = {&found};
    struct extract_flags flags;
    extract_flags_of(a, &x, &values, &flags);
    return flags.sort_keys;
}

static void test_numbers(struct arena *a)
{
    static const double sorted[] = {-1e300, -5.5, -5.25, -1e-300, 0, 1e-300, 0.5, 2, 10, 1e300};
    struct str before = STR("");
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++) {
        struct str key = key_of(a, EXTRACT_NUMBER, (struct extract_value){.number = sorted[i]});
        ok(str_compare(before, key) < 0 && key.n == 17, "%g in its place", sorted[i]);
        before = key;
    }
    is_str(key_of(a, EXTRACT_NUMBER, (struct extract_value){.number = -0.0}),
           key_of(a, EXTRACT_NUMBER, (struct extract_value){.number = 0}), "minus zero is zero");
    ok(str_compare(key_of(a, EXTRACT_INTEGER, (struct extract_value){.integer = -2}),
                   key_of(a, EXTRACT_INTEGER, (struct extract_value){.integer = 1})) < 0,
       "integers alike");
}

static void test_texts(struct arena *a)
{
    struct str wide = STR("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
                          "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad");
    struct str five = STR_JOIN(a, wide, wide, wide, wide, wide);
    struct str key = key_of(a, EXTRACT_TEXT, (struct extract_value){.text = five});
    is_int((int64_t)key.n, EXTRACT_KEY_CHARS * 3 + 1, "a long text is cut between characters");
    is_str(key_of(a, EXTRACT_TEXT, (struct extract_value){.text = STR(" a\nb ")}), STR("a b\n"),
           "and on one line");
    is_str(key_of(a, EXTRACT_DATE, (struct extract_value){.text = STR("2020-05")}),
           STR("2020-05\n"), "a date as it is");
    is_str(key_of(a, EXTRACT_BOOLEAN, (struct extract_value){.boolean = true}), STR("1\n"), "yes");
}

/* In the order of their bits. */
enum { TRUE_QUOTE, NONE, NO_QUOTE, ONE_BAD, TWO_SAY, BY_HAND, EMPTIED };

static void test_bits(struct arena *a)
{
    struct extract_field fields[7];
    const struct extract_value good = {.text = STR("a"), .verified = true};
    const struct extract_value bad = {.text = STR("b")};
    const struct extract_value list[] = {good, bad};
    struct extract_found found[7] = {
        [TRUE_QUOTE] = {.items = &good, .count = 1},
        [NO_QUOTE] = {.items = &bad, .count = 1},
        [ONE_BAD] = {.items = list, .count = 2},
        [TWO_SAY] = {.items = &good, .count = 1, .differs = &bad, .differ_count = 1},
        [BY_HAND] = {.items = &bad, .count = 1, .edited = true},
        [EMPTIED] = {.edited = true},
    };
    for (size_t i = 0; i < 7; i++)
        fields[i] = (struct extract_field){.name = STR("x"), .type = EXTRACT_TEXT};
    fields[ONE_BAD].type = EXTRACT_LIST;
    struct extract_template x = {fields, 7};
    struct extract_values v = {found};
    struct extract_flags f;
    extract_flags_of(a, &x, &v, &f);
    is_int(f.missing, 1 << NONE | 1 << EMPTIED, "missing");
    is_int(f.unverified, 1 << NO_QUOTE | 1 << ONE_BAD, "unverified");
    is_int(f.differs, 1 << TWO_SAY, "differs");
    is_int(f.edited, 1 << BY_HAND | 1 << EMPTIED, "edited");
    is_str(f.sort_keys, STR("a\n\nb\na\na\nb\n\n"), "a line for each");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    test_numbers(&a);
    test_texts(&a);
    test_bits(&a);
    arena_release(&a);
    return tap_done();
}
