#include "app/plan/shape.h"

#include "base/err.h"
#include "tests/tap.h"

/* A week over the end of a February, with one day of rest. */
#define EXERCISE                                                                                   \
    "{\"name\":\"深蹲\",\"sets\":4,\"reps\":12,\"weight\":\"70kg\",\"rest\":\"90s\","            \
    "\"difficulty\":\"medium\"}"
#define TRAINED(date)                                                                              \
    "{\"date\":\"" date "\",\"day_type\":\"strength\",\"focus_area\":\"lower_body\","              \
    "\"exercises\":[" EXERCISE "],\"duration\":60,\"estimated_calories\":350}"
#define RESTED        "{\"date\":\"2026-03-04\",\"day_type\":\"rest\"}"
#define FEBRUARY(day) day("2026-02-26") "," day("2026-02-27") "," day("2026-02-28") ","
#define MARCH(day)    day("2026-03-01") "," day("2026-03-02") "," day("2026-03-03") ","
#define SIX(day)      FEBRUARY(day) MARCH(day)
#define TRAINING_HEAD "{\"name\":\"Eight weeks\",\"difficulty\":\"medium\",\"days\":["
#define TRAINING      TRAINING_HEAD SIX(TRAINED) RESTED "]}"

#define FOOD(name, calories)                                                                       \
    "{\"name\":\"" name "\",\"calories\":" calories ",\"protein\":20.25,\"carbs\":50,\"fat\":9}"
#define TARGET(date)                                                                               \
    "{\"date\":\"" date "\",\"target_calories\":1000,\"target_protein\":80,\"target_carbs\":100,"  \
    "\"target_fat\":40,\"meals\":"
#define NUTRITION_HEAD                                                                             \
    "{\"name\":\"Lean\",\"daily_calories\":1000,\"macro_ratio\":{\"protein\":0.35,\"carbs\":0.4,"  \
    "\"fat\":0.25},\"days\":["
#define BREAKFAST   "\"breakfast\":[" FOOD("oats", "300") "]"
#define LUNCH       "\"lunch\":[" FOOD("rice", "400") "]"
#define DINNER      "\"dinner\":[" FOOD("soup", "300") "]"
#define MEALS       "{" BREAKFAST "," LUNCH "," DINNER ",\"snacks\":[]}"
#define EATEN(date) TARGET(date) MEALS "}"
#define NUTRITION   NUTRITION_HEAD SIX(EATEN) EATEN("2026-03-04") "]}"

static struct plan_frame frame_of(enum plan_kind kind)
{
    return (struct plan_frame){.kind = kind, .start_date = STR("2026-02-26"), .weeks = 1};
}

/* text with the first of from replaced. */
static struct str changed(struct arena *a, struct str text, const char *from, const char *to)
{
    ptrdiff_t at = str_find(text, str_of(from));
    check(at >= 0);
    return STR_JOIN(a, str_from(text.p, (size_t)at), str_of(to),
                    str_skip(text, (size_t)at + strlen(from)));
}

/* A reply that is right but for one thing, and what is said of it. */
struct wrong {
    const char *from, *to, *complaint;
};

#define DAY1  "day 1 (2026-02-26): "
#define EX1   "day 1 (2026-02-26), exercise 1: "
#define WHOLE ": every day from 2026-02-26 to 2026-03-04 must be there once, in order"

static const struct wrong training_wrong[] = {
    {TRAINING, "Here is your plan. Have fun!",
     "the answer has no JSON object: it must be one, and nothing else"},
    {TRAINING, "{\"plan\":[]}", "the JSON object has no \"days\""},
    {TRAINING, TRAINING " or " TRAINING,
     "the answer has 2 plans: it must be one JSON object and nothing else"},
    {"\"rest\"}]}", "\"rest\"}",
     "the JSON object is broken or not complete: in its line 1, column 1334, expected ',' or ']'"},
    {"\"difficulty\":\"medium\",", "\"difficulty\":\"insane\",",
     "\"difficulty\" must be \"easy\", \"medium\" or \"hard\", not \"insane\""},
    {"\"difficulty\":\"medium\",", "",
     "\"difficulty\" must be \"easy\", \"medium\" or \"hard\", not nothing"},
    {"\"name\":\"Eight weeks\",", "",
     "\"name\" must be a text of at most 120 characters, not nothing"},
    {"Eight weeks", " \\n ", "\"name\" must not be empty"},
    {"Eight weeks",
     "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
     "12345678901234567890123456789x",
     "\"name\" must be a text of at most 120 characters, not "
     "\"0123456789012345678901234567890123456789…\""},
    {TRAINING, "{\"name\":\"n\",\"difficulty\":\"easy\",\"days\":{}}",
     "\"days\" must be a list, not object"},
    {"\"days\":[" TRAINED("2026-02-26"), "\"days\":[5",
     "day 1 (2026-02-26): a day must be an "
     "object, not 5"},
    {"\"2026-02-27\"", "\"2026-02-28\"",
     "day 2 (2026-02-27): \"date\" must be \"2026-02-27\", not \"2026-02-28\"" WHOLE},
    {TRAINED("2026-02-28") ",", "",
     "day 3 (2026-02-28): \"date\" must be \"2026-02-28\", not \"2026-03-01\"" WHOLE},
    {TRAINED("2026-02-28"), TRAINED("2026-02-28") "," TRAINED("2026-02-28"),
     "day 4 (2026-03-01): \"date\" must be \"2026-03-01\", not \"2026-02-28\"" WHOLE},
    {"\"2026-02-26\"", "20260226", DAY1 "\"date\" must be \"2026-02-26\", not 20260226" WHOLE},
    {",{\"date\":\"2026-03-04\",\"day_type\":\"rest\"}", "",
     "\"days\" must have 7 days, from 2026-02-26 to 2026-03-04, and has 6"},
    {",\"day_type\":\"rest\"}]", ",\"day_type\":\"rest\"},{}]",
     "\"days\" must have 7 days, from 2026-02-26 to 2026-03-04, and has 8"},
    {"\"day_type\":\"strength\",", "",
     DAY1 "\"day_type\" must be a text of at most 40 characters, not nothing"},
    {"\"strength\"", "\"01234567890123456789012345678901234567890\"",
     DAY1 "\"day_type\" must be a text of at most 40 characters, not "
          "\"0123456789012345678901234567890123456789…\""},
    {"\"focus_area\":\"lower_body\",", "",
     DAY1 "\"focus_area\" must be a text of at most 80 characters, not nothing"},
    {"\"focus_area\":\"lower_body\"", "\"focus_area\":\"\"",
     DAY1 "\"focus_area\" must not be empty"},
    {"\"exercises\":[" EXERCISE "],", "",
     DAY1 "\"exercises\" must be a list of 1 to 20 of them, unless \"day_type\" is \"rest\""},
    {"[" EXERCISE "]", "[]",
     DAY1 "\"exercises\" must be a list of 1 to 20 of them, unless \"day_type\" is \"rest\""},
    {"[" EXERCISE "]", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]",
     DAY1 "\"exercises\" must be a list of 1 to 20 of them, unless \"day_type\" is \"rest\""},
    {"[" EXERCISE "]", "[\"squats\"]", EX1 "it must be an object, not \"squats\""},
    {"\"day_type\":\"rest\"", "\"day_type\":\"Rest\",\"exercises\":[" EXERCISE "]",
     "day 7 (2026-03-04): a day of type \"rest\" must not have exercises"},
    {"\"day_type\":\"rest\"", "\"day_type\":\"rest\",\"duration\":-1",
     "day 7 (2026-03-04): \"duration\" must be an integer from 0 to 1440, not -1"},
    {"\"name\":\"深蹲\",", "",
     EX1 "\"name\" must be a text of at most 120 characters, not nothing"},
    {"深蹲", "", EX1 "\"name\" must not be empty"},
    {"\"sets\":4", "\"sets\":0", EX1 "\"sets\" must be an integer from 1 to 50, not 0"},
    {"\"sets\":4", "\"sets\":51", EX1 "\"sets\" must be an integer from 1 to 50, not 51"},
    {"\"sets\":4", "\"sets\":2.5", EX1 "\"sets\" must be an integer from 1 to 50, not 2.5"},
    {"\"reps\":12", "\"reps\":\"8-12\"",
     EX1 "\"reps\" must be an integer from 1 to 1000, not \"8-12\""},
    {"\"reps\":12", "\"reps\":1001", EX1 "\"reps\" must be an integer from 1 to 1000, not 1001"},
    {"\"reps\":12,", "", EX1 "\"reps\" must be an integer from 1 to 1000, not nothing"},
    {"\"70kg\"", "70", EX1 "\"weight\" must be a text of at most 40 characters, not 70"},
    {"\"90s\"", "[]", EX1 "\"rest\" must be a text of at most 40 characters, not array"},
    {"\"rest\":\"90s\",\"difficulty\":\"medium\"", "\"difficulty\":\"light\"",
     EX1 "\"difficulty\" must be \"easy\", \"medium\" or \"hard\", not \"light\""},
    {"\"duration\":60", "\"duration\":0",
     DAY1 "\"duration\" must be an integer from 1 to 1440, not 0"},
    {"\"duration\":60,", "", DAY1 "\"duration\" must be an integer from 1 to 1440, not nothing"},
    {"\"estimated_calories\":350", "\"estimated_calories\":20001",
     DAY1 "\"estimated_calories\" must be an integer from 0 to 20000, not 20001"},
};

#define FOOD1 "day 1 (2026-02-26), breakfast, food 1: "

static const struct wrong nutrition_wrong[] = {
    {"\"daily_calories\":1000", "\"daily_calories\":0",
     "\"daily_calories\" must be an integer from 1 to 20000, not 0"},
    {"\"daily_calories\":1000", "\"daily_calories\":\"many\"",
     "\"daily_calories\" must be an integer from 1 to 20000, not \"many\""},
    {"\"protein\":0.35,", "", "macro_ratio: \"protein\" must be a number from 0 to 1, not nothing"},
    {"\"protein\":0.35", "\"protein\":35",
     "macro_ratio: \"protein\" must be a number from 0 to 1, not 35"},
    {"\"fat\":0.25", "\"fat\":0.2799",
     "macro_ratio: protein, carbs and fat must add up to 1, not 1.0299"},
    {"\"protein\":0.35", "\"protein\":0.3299",
     "macro_ratio: protein, carbs and fat must add up to 1, not 0.9799"},
    {"\"macro_ratio\":{\"protein\":0.35,\"carbs\":0.4,\"fat\":0.25},", "",
     "macro_ratio: \"protein\" must be a number from 0 to 1, not nothing"},
    {"\"2026-02-27\"", "\"2026-02-30\"",
     "day 2 (2026-02-27): \"date\" must be \"2026-02-27\", not \"2026-02-30\"" WHOLE},
    {"\"target_calories\":1000,", "",
     DAY1 "\"target_calories\" must be a number from 0 to 20000, not nothing"},
    {"\"target_protein\":80", "\"target_protein\":-1",
     DAY1 "\"target_protein\" must be a number from 0 to 5000, not -1"},
    {"\"target_carbs\":100", "\"target_carbs\":1e9",
     DAY1 "\"target_carbs\" must be a number from 0 to 5000, not 1e+09"},
    {"\"target_fat\":40", "\"target_fat\":null",
     DAY1 "\"target_fat\" must be a number from 0 to 5000, not null"},
    {"\"meals\":{", "\"food\":{",
     DAY1 "\"meals\" must be an object with breakfast, lunch, dinner and snacks, not nothing"},
    {"\"snacks\"", "\"supper\"",
     DAY1 "\"meals\" may have breakfast, lunch, dinner and snacks, but not \"supper\""},
    {"\"breakfast\":[" FOOD("oats", "300") "]", "\"breakfast\":\"oats\"",
     "day 1 (2026-02-26), breakfast: it must be a list of at most 20 foods"},
    {"[" FOOD("oats", "300") "]", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]",
     "day 1 (2026-02-26), breakfast: it must be a list of at most 20 foods"},
    {"[" FOOD("oats", "300") "]", "[null]", FOOD1 "it must be an object, not null"},
    {"\"name\":\"oats\",", "",
     FOOD1 "\"name\" must be a text of at most 120 characters, not nothing"},
    {"\"calories\":300", "\"calories\":20001",
     FOOD1 "\"calories\" must be a number from 0 to 20000, not 20001"},
    {"\"protein\":20.25", "\"protein\":\"20g\"",
     FOOD1 "\"protein\" must be a number from 0 to 5000, not \"20g\""},
    {"\"carbs\":50,", "", FOOD1 "\"carbs\" must be a number from 0 to 5000, not nothing"},
    {"\"fat\":9}", "\"fat\":-0.5}", FOOD1 "\"fat\" must be a number from 0 to 5000, not -0.5"},
    {"\"calories\":300", "\"calories\":350.1",
     DAY1 "the calories of the meals add up to 1050.1, and \"target_calories\" is 1000: they may "
          "differ by at most 5 %"},
    {"\"calories\":300", "\"calories\":249.9",
     DAY1 "the calories of the meals add up to 949.9, and \"target_calories\" is 1000: they may "
          "differ by at most 5 %"},
    {"\"target_calories\":1000", "\"target_calories\":0",
     DAY1 "the calories of the meals add up to 1000, and \"target_calories\" is 0: they may differ "
          "by at most 5 %"},
};

static void try_wrong(enum plan_kind kind, struct str right, const struct wrong *w, size_t n)
{
    struct plan_frame f = frame_of(kind);
    for (size_t i = 0; i < n; i++) {
        struct arena a;
        struct plan_shape shape = {.day_count = 99};
        const char *complaint = "";
        arena_init(&a);
        struct str text = changed(&a, right, w[i].from, w[i].to);
        is_int(plan_shape_read(&a, &f, text, &shape, &complaint), ERR_INVALID, "%.60s is refused",
               w[i].to);
        is_str(str_of(complaint), str_of(w[i].complaint), "and it is said why");
        is_int((int64_t)shape.day_count, 99, "nothing else came of it");
        arena_release(&a);
    }
}

static void test_wrong(void)
{
    try_wrong(PLAN_TRAINING, STR(TRAINING), training_wrong,
              sizeof training_wrong / sizeof *training_wrong);
    try_wrong(PLAN_NUTRITION, STR(NUTRITION), nutrition_wrong,
              sizeof nutrition_wrong / sizeof *nutrition_wrong);
}

/* Reads what must be right. */
static struct plan_shape read_right(struct arena *a, enum plan_kind kind, struct str text,
                                    const char *what)
{
    struct plan_frame f = frame_of(kind);
    struct plan_shape shape = {0};
    const char *complaint = "";
    is_int(plan_shape_read(a, &f, text, &shape, &complaint), 0, "%s: %s", what, complaint);
    is_int((int64_t)shape.day_count, 7, "%s: all days", what);
    return shape;
}

static void test_training(void)
{
    struct arena a;
    arena_init(&a);
    struct plan_shape s = read_right(&a, PLAN_TRAINING, STR(TRAINING), "a training");
    is_str(s.name, STR("Eight weeks"), "its name");
    is_str(s.difficulty, STR("medium"), "its difficulty");
    ok(!s.macro_ratio.p && s.daily_calories == 0, "nothing of a nutrition");
    const struct plan_day *d = &s.days[2];
    is_str(d->date, STR("2026-02-28"), "a date");
    is_str(d->json, STR(TRAINED("2026-02-28")), "a day");
    is_str(d->day_type, STR("strength"), "its type");
    is_str(d->focus_area, STR("lower_body"), "its area");
    is_str(d->exercises, STR("[" EXERCISE "]"), "its exercises");
    is_str(d->duration, STR("60"), "its minutes");
    is_str(d->estimated_calories, STR("350"), "its calories");
    ok(!d->meals.p && !d->target_fat.p, "nothing of a nutrition");
    is_str(s.days[6].json,
           STR("{\"date\":\"2026-03-04\",\"day_type\":\"rest\",\"focus_area\":\"\","
               "\"exercises\":[],\"duration\":0,\"estimated_calories\":0}"),
           "a day of rest has all members");
    arena_release(&a);
}

static void test_nutrition(void)
{
    struct arena a;
    arena_init(&a);
    struct plan_shape s = read_right(&a, PLAN_NUTRITION, STR(NUTRITION), "a nutrition");
    is_int(s.daily_calories, 1000, "its calories");
    is_str(s.macro_ratio, STR("{\"protein\":0.35,\"carbs\":0.4,\"fat\":0.25}"), "its ratio");
    ok(!s.difficulty.p, "no difficulty");
    const struct plan_day *d = &s.days[6];
    is_str(d->target_calories, STR("1000"), "calories of a day");
    is_str(d->target_protein, STR("80"), "protein");
    is_str(d->target_carbs, STR("100"), "carbs");
    is_str(d->target_fat, STR("40"), "fat");
    ok(str_starts(d->meals, STR("{\"breakfast\":[{\"name\":\"oats\",\"calories\":300,"
                                "\"protein\":20.3,\"carbs\":50,\"fat\":9}],\"lunch\":[")),
       "meals, with one decimal: %.*s", STR_ARG(d->meals));
    ok(!d->day_type.p && !d->exercises.p, "nothing of a training");
    arena_release(&a);
}

/* What is not a rule, and must not be refused. */
static void test_allowed(void)
{
    static const struct {
        enum plan_kind kind;
        const char *from, *to, *seen; /* in the JSON of the first day */
    } cases[] = {
        {PLAN_TRAINING, "\"difficulty\":\"medium\",", "\"difficulty\":\"Hard\",", ""},
        {PLAN_TRAINING, ",\"weight\":\"70kg\",\"rest\":\"90s\",\"difficulty\":\"medium\"", "",
         "\"weight\":\"\",\"rest\":\"\",\"difficulty\":\"\""},
        {PLAN_TRAINING, "\"sets\":4", "\"sets\":4.0", "\"sets\":4,"},
        {PLAN_TRAINING, "\"sets\":4", "\"sets\":50", "\"sets\":50,"},
        {PLAN_TRAINING, "\"reps\":12", "\"note\":{\"deep\":[1]},\"reps\":1000", "\"reps\":1000,"},
        {PLAN_TRAINING, "\"70kg\"", "null", "\"weight\":\"\""},
        {PLAN_TRAINING, "lower_body", "  legs\\n and\\u0000core ", "\"legs  and core\""},
        {PLAN_NUTRITION, "\"calories\":300", "\"calories\":350", "\"calories\":350"},
        {PLAN_NUTRITION, "\"calories\":300", "\"calories\":250", "\"calories\":250"},
        {PLAN_NUTRITION, "\"fat\":0.25", "\"fat\":0.27", ""},
        {PLAN_NUTRITION, "\"fat\":0.25", "\"fat\":0.23", ""},
        {PLAN_NUTRITION, "\"snacks\":[]", "\"snacks\":null", "\"snacks\":[]"},
        {PLAN_NUTRITION, ",\"snacks\":[]", "", "\"snacks\":[]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena a;
        arena_init(&a);
        bool training = cases[i].kind == PLAN_TRAINING;
        struct str text =
            changed(&a, training ? STR(TRAINING) : STR(NUTRITION), cases[i].from, cases[i].to);
        struct plan_shape s = read_right(&a, cases[i].kind, text, cases[i].to);
        if (s.day_count)
            ok(str_find(s.days[0].json, str_of(cases[i].seen)) >= 0, "%s becomes %s: %.*s",
               cases[i].to, cases[i].seen, STR_ARG(s.days[0].json));
        arena_release(&a);
    }
}

/* The wrappings that models put around an object. */
static void test_wrapped(void)
{
    static const struct {
        const char *what, *text;
    } cases[] = {
        {"a fence", "Here you are:\n```json\n" TRAINING "\n```\nEnjoy {it}!"},
        {"thoughts", "<think>{\"days\":[]} or {\"days\":[1]}?</think>\n" TRAINING},
        {"the end of a thought", "so {\"days\":[]}</think>" TRAINING},
        {"a plan in an object", "{\"training_plan\":" TRAINING "}"},
        {"a brace in prose before it", "{as asked} " TRAINING},
        {"another object before it", "{\"weeks\":1} " TRAINING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena a;
        arena_init(&a);
        (void)read_right(&a, PLAN_TRAINING, str_of(cases[i].text), cases[i].what);
        arena_release(&a);
    }
    struct arena a;
    arena_init(&a);
    struct str odd = changed(&a, STR(TRAINING), "Eight weeks", "</think> {");
    struct plan_shape s = read_right(&a, PLAN_TRAINING, odd, "a tag in a text of the plan");
    is_str(s.name, STR("</think> {"), "stands as it is");
    arena_release(&a);
}

static int read_day(struct arena *a, enum plan_kind kind, const char *text, struct plan_day *out,
                    const char **complaint)
{
    struct plan_frame f = frame_of(kind);
    const struct json *j;
    check(json_parse(a, str_of(text), &j, NULL) == 0);
    return plan_day_read(a, &f, j, out, complaint);
}

/* One day by itself. */
static void test_day(void)
{
    struct arena a;
    struct plan_day d = {.date = STR("before")};
    const char *complaint = "";
    arena_init(&a);
    is_int(read_day(&a, PLAN_TRAINING, TRAINED("2026-03-03"), &d, &complaint), 0, "a day");
    is_str(d.json, STR(TRAINED("2026-03-03")), "as it is");
    is_int(read_day(&a, PLAN_TRAINING, TRAINED("2026-02-25"), &d, &complaint), ERR_INVALID,
           "a day before the plan");
    is_str(str_of(complaint),
           STR("\"date\" must be a date from 2026-02-26 to 2026-03-04, not \"2026-02-25\""), "why");
    is_str(d.date, STR("2026-03-03"), "nothing else came of it");
    is_int(read_day(&a, PLAN_TRAINING, TRAINED("2026-03-05"), &d, &complaint), ERR_INVALID,
           "and after it");
    is_int(read_day(&a, PLAN_TRAINING, TRAINED("2026-02-29"), &d, &complaint), ERR_INVALID,
           "no such day");
    is_int(read_day(&a, PLAN_TRAINING, TRAINED("2026-02-27T00:00:00Z"), &d, &complaint),
           ERR_INVALID, "no date, but a time");
    is_int(read_day(&a, PLAN_TRAINING, "[]", &d, &complaint), ERR_INVALID, "no object");
    is_str(str_of(complaint), STR("a day must be an object, not array"), "why");
    is_int(read_day(&a, PLAN_NUTRITION, TRAINED("2026-03-03"), &d, &complaint), ERR_INVALID,
           "a day of the other kind");
    is_int(read_day(&a, PLAN_NUTRITION, EATEN("2026-03-03"), &d, &complaint), 0, "a day's meals");
    struct plan_frame f = frame_of(PLAN_TRAINING);
    is_str(plan_date(&a, &f, 3), STR("2026-03-01"), "the fourth day");
    arena_release(&a);
}

static void test_longest(void)
{
    struct arena a;
    struct buf b;
    struct plan_shape s = {0};
    struct plan_frame f = {PLAN_TRAINING, STR("2027-12-06"), PLAN_WEEKS_MAX};
    const char *complaint = "";
    arena_init(&a);
    buf_init(&b);
    buf_add_lit(&b, "{\"name\":\"n\",\"difficulty\":\"easy\",\"days\":[");
    for (int i = 0; i < PLAN_DAYS_MAX; i++)
        buf_printf(&b, "%s{\"date\":\"%.*s\",\"day_type\":\"rest\"}", i ? "," : "",
                   STR_ARG(plan_date(&a, &f, i)));
    is_int((int64_t)plan_days_seen(buf_str(&b)), PLAN_DAYS_MAX, "all days are seen");
    buf_add_lit(&b, "]}");
    is_int(plan_shape_read(&a, &f, buf_str(&b), &s, &complaint), 0, "12 weeks: %s", complaint);
    is_int((int64_t)s.day_count, PLAN_DAYS_MAX, "of 84 days");
    is_str(s.days[83].date, STR("2028-02-27"), "up to the last");
    buf_add_lit(&b, "{\"date\":");
    is_int((int64_t)plan_days_seen(buf_str(&b)), PLAN_DAYS_MAX, "more days are not counted");
    buf_release(&b);
    arena_release(&a);
}

static void test_seen(void)
{
    is_int((int64_t)plan_days_seen(STR("")), 0, "nothing yet");
    is_int((int64_t)plan_days_seen(STR("{\"name\":\"n\",\"date\":\"x\",\"da")), 0, "no days yet");
    is_int((int64_t)plan_days_seen(STR("{\"days\":[{\"dat")), 0, "a cut date");
    is_int((int64_t)plan_days_seen(STR("{\"days\":[{\"date\"")), 1, "one");
    is_int((int64_t)plan_days_seen(STR("\"days\":[{\"date\":1},{\"date\":2}]</think>{\"days\":[{"
                                       "\"date\":")),
           1, "those of a thought do not count");
    is_int((int64_t)plan_days_seen(STR(NUTRITION)), 7, "a whole plan");
}

int main(void)
{
    test_training();
    test_nutrition();
    test_wrong();
    test_allowed();
    test_wrapped();
    test_day();
    test_longest();
    test_seen();
    return tap_done();
}
