/* Minutes, days and months of limits, on a clock that the test sets (tests/redis_model.h). */
#include "base/time.h"
#include "engine/store/scripts.h"
#include "tests/redis_model.h"
#include "tests/tap.h"

static struct redis_model *model;
static struct arena arena;

static void at(const char *iso)
{
    int64_t us;
    check(time_from_iso(str_of(iso), &us));
    redis_model_clock(model, us / 1000);
}

/* Limits: two in a minute, three in a day, four in a month. */
static const struct redis_reply *count(int64_t jobs, int64_t taken_s)
{
    struct str argv[] = {
        STR("limits"), STR("k"), str_int(&arena, jobs), str_int(&arena, taken_s), STR("2"),
        STR("3"),      STR("4")};
    return redis_model_script(model, &arena, &script_limit_count.redis, 1,
                              sizeof argv / sizeof *argv, argv);
}

static int64_t item(const struct redis_reply *r, size_t i)
{
    return r->items[i]->integer;
}

static struct str ends(const struct redis_reply *r, size_t period)
{
    char text[TIME_ISO_BYTES];
    time_iso(item(r, 2 + 2 * period + 1) * 1000000, text);
    return str_dup(&arena, str_from(text, 19));
}

/* Full is 1 for the minute, 2 for the day, 3 for the month; 0: taken. */
static void test_turns(void)
{
    const struct {
        const char *when;
        int64_t full;
    } steps[] = {
        {"2026-01-31T23:58:00.000Z", 0}, {"2026-01-31T23:58:59.999Z", 0},
        {"2026-01-31T23:58:59.999Z", 1}, {"2026-01-31T23:59:00.000Z", 0},
        {"2026-01-31T23:59:59.000Z", 2}, {"2026-02-01T00:00:00.000Z", 0}, /* all three are new */
        {"2026-02-01T00:00:01.000Z", 0}, {"2026-02-02T00:00:00.000Z", 0},
        {"2026-02-02T00:00:01.000Z", 0}, {"2026-02-02T00:00:02.000Z", 3}, /* and minute: 2 of 2 */
        {"2026-02-28T23:59:59.000Z", 3}, {"2026-03-01T00:00:00.000Z", 0},
    };
    redis_model_clear(model, 1);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        at(steps[i].when);
        is_int(item(count(1, 0), 0), steps[i].full, "%s", steps[i].when);
    }
}

static void test_ends(void)
{
    const struct {
        const char *now, *minute, *day, *month;
    } rows[] = {
        {"2026-01-31T12:34:56.000Z", "2026-01-31T12:35:00", "2026-02-01T00:00:00",
         "2026-02-01T00:00:00"},
        {"2026-02-01T00:00:00.000Z", "2026-02-01T00:01:00", "2026-02-02T00:00:00",
         "2026-03-01T00:00:00"},
        {"2028-02-28T23:59:59.000Z", "2028-02-29T00:00:00", "2028-02-29T00:00:00",
         "2028-03-01T00:00:00"},
        {"2026-04-30T01:00:00.000Z", "2026-04-30T01:01:00", "2026-05-01T00:00:00",
         "2026-05-01T00:00:00"},
        {"2026-12-31T23:59:00.000Z", "2027-01-01T00:00:00", "2027-01-01T00:00:00",
         "2027-01-01T00:00:00"},
        {"2100-02-15T00:00:30.000Z", "2100-02-15T00:01:00", "2100-02-16T00:00:00",
         "2100-03-01T00:00:00"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at(rows[i].now);
        const struct redis_reply *r = count(0, 0);
        is_str(ends(r, 0), str_of(rows[i].minute), "%s: its minute ends", rows[i].now);
        is_str(ends(r, 1), str_of(rows[i].day), "%s: its day", rows[i].now);
        is_str(ends(r, 2), str_of(rows[i].month), "%s: its month", rows[i].now);
    }
}

/* What is given back in a later minute leaves the day and the month, and not the new minute. */
static void test_return(void)
{
    redis_model_clear(model, 2);
    at("2026-01-31T10:00:59.000Z");
    int64_t taken_s = item(count(1, 0), 1);
    at("2026-01-31T10:01:00.000Z");
    check(item(count(1, 0), 0) == 0);
    const struct redis_reply *r = count(-1, taken_s);
    is_int(item(r, 2), 1, "the minute keeps its own");
    is_int(item(r, 4), 1, "the day has one less");
    is_int(item(r, 6), 1, "and so has the month");
    at("2026-02-01T00:00:00.000Z");
    check(item(count(1, 0), 0) == 0);
    r = count(-1, taken_s);
    is_int(item(r, 4), 1, "another day keeps its own");
    is_int(item(r, 6), 1, "and another month");
    r = count(-5, taken_s + 86400);
    is_int(item(r, 6), 0, "never below none");
}

int main(void)
{
    arena_init(&arena);
    model = redis_model_new();
    test_turns();
    test_ends();
    test_return();
    redis_model_free(model);
    arena_release(&arena);
    return tap_done();
}
