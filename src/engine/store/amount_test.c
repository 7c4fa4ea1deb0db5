/* Amounts as people write them. */
#include "engine/store/amount.h"
#include "tests/tap.h"

static const struct {
    const char *text;
    int64_t cents; /* -1: refused */
} table[] = {
    {"0", 0},
    {"0.00", 0},
    {"0.01", 1},
    {"0.1", 10},
    {"5", 500},
    {"1.5", 150},
    {"1.05", 105},
    {"240.00", 24000},
    {"90076.00", 9007600},
    {"999999999.99", AMOUNT_CENTS_MAX},
    {"1000000000", -1},
    {"1000000000.00", -1},
    {"99999999999", -1},
    {"9999999999999999999999", -1},
    {"", -1},
    {".", -1},
    {"1.", -1},
    {".5", -1},
    {"0.001", -1},
    {"1.000", -1},
    {"01.00", -1},
    {"00", -1},
    {"-5", -1},
    {"-0", -1},
    {"+5", -1},
    {"1e3", -1},
    {"1E3", -1},
    {"0x10", -1},
    {" 1", -1},
    {"1 ", -1},
    {"1\n", -1},
    {"1. 5", -1},
    {"1,50", -1},
    {"1,000.00", -1},
    {"1.2.3", -1},
    {"1..2", -1},
    {"inf", -1},
    {"nan", -1},
    {"\xd9\xa1", -1},        /* an Arabic one */
    {"\xef\xbc\x91.00", -1}, /* a wide one */
    {"1\xef\xbc\x8e"
     "00",
     -1}, /* a wide point */
};

static void test_read(void)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int64_t cents = -7;
        bool fine = amount_cents(str_of(table[i].text), &cents);
        if (table[i].cents < 0)
            ok(!fine && cents == -7, "\"%.*s\" is no amount", (int)strcspn(table[i].text, "\n"),
               table[i].text);
        else
            ok(fine && cents == table[i].cents, "\"%s\" is %lld cents", table[i].text,
               (long long)table[i].cents);
    }
    int64_t cents = -7;
    ok(!amount_cents(STR_NULL, &cents) && !amount_cents(str_from("1\0", 2), &cents) && cents == -7,
       "nor is nothing, nor a NUL");
}

static void test_write(void)
{
    struct arena a;
    arena_init(&a);
    is_str(amount_decimal(&a, 24000), STR("240.00"), "written with two decimals");
    is_str(amount_decimal(&a, 5), STR("0.05"), "below one");
    is_str(amount_decimal(&a, -5), STR("-0.05"), "below zero, for the search for an error");
    is_str(amount_decimal(&a, 99999999999999), STR("999999999999.99"), "as large as the column");
    is_str(amount_decimal(&a, INT64_MIN), STR("-92233720368547758.08"), "as small as can be");
    int64_t back = -1, wrong = 0;
    for (int64_t cents = 0; cents <= AMOUNT_CENTS_MAX; cents = cents * 3 + 1) {
        struct arena_mark m = arena_mark(&a);
        wrong += !amount_cents(amount_decimal(&a, cents), &back) || back != cents;
        arena_reset(&a, m);
    }
    is_int(wrong, 0, "and read back as the same");
    arena_release(&a);
}

int main(void)
{
    test_read();
    test_write();
    return tap_done();
}
