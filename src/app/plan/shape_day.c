#include <stdlib.h>

#include "app/plan/shape_private.h"
#include "base/err.h"
#include "base/time.h"

#define DAY_US          (INT64_C(24) * 3600 * 1000 * 1000)
#define TENTHS          10
#define CALORIES_DIFFER 20 /* the sum of a day may differ from its target by one part in … */
#define DATE_CHARS      (PLAN_DATE_BYTES - 1)

/* --- dates --- */

static bool is_date(struct str s, int64_t *wall_us)
{
    return s.n == DATE_CHARS && time_from_iso(s, wall_us);
}

struct str plan_date(struct arena *a, const struct plan_frame *f, int64_t i)
{
    int64_t start;
    char iso[TIME_ISO_BYTES];
    check(is_date(f->start_date, &start));
    time_iso(start + i * DAY_US, iso);
    return str_dup(a, str_from(iso, DATE_CHARS));
}

/* Dates of this form are in order as texts are. */
static int read_date(const struct reader *r, struct str want, const struct json *day,
                     struct str *out)
{
    const struct json *j = json_get(day, "date");
    struct str date = json_str(j), first = plan_date(r->a, r->frame, 0),
               last = plan_date(r->a, r->frame, 7 * r->frame->weeks - 1);
    int64_t us;
    if (want.p && !str_eq(date, want))
        return reader_fail(r,
                           "\"date\" must be \"%.*s\", not %s: every day from %.*s to %.*s must be "
                           "there once, in order",
                           STR_ARG(want), reader_shown(r, j), STR_ARG(first), STR_ARG(last));
    if (!is_date(date, &us) || str_compare(date, first) < 0 || str_compare(date, last) > 0)
        return reader_fail(r, "\"date\" must be a date from %.*s to %.*s, not %s", STR_ARG(first),
                           STR_ARG(last), reader_shown(r, j));
    *out = date;
    return 0;
}

/* --- numbers with a decimal --- */

static void put_tenths(struct json_writer *w, const char *name, int64_t tenths)
{
    jw_key(w, str_of(name));
    if (tenths % TENTHS)
        jw_real(w, (double)tenths / TENTHS);
    else
        jw_int(w, tenths / TENTHS);
}

static struct str shown_tenths(struct arena *a, int64_t tenths)
{
    long long whole = tenths / TENTHS, rest = tenths % TENTHS;
    return rest ? str_printf(a, "%lld.%lld", whole, rest) : str_int(a, whole);
}

/* --- training --- */

int plan_difficulty_read(const struct reader *r, const struct json *object, bool optional,
                         struct str *out)
{
    static const struct str levels[] = {STR("easy"), STR("medium"), STR("hard")};
    const struct json *j = json_get(object, "difficulty");
    struct str s;
    if (reader_text(r, object, "difficulty", !optional, PLAN_TYPE_CHARS_MAX, &s) == 0) {
        *out = str_lower(r->a, s);
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            if (str_eq(*out, levels[i]) || (optional && s.n == 0))
                return 0;
    }
    return reader_fail(r, "\"difficulty\" must be \"easy\", \"medium\" or \"hard\", not %s",
                       reader_shown(r, j));
}

static int read_exercise(const struct reader *r, const struct json *j, struct json_writer *w)
{
    struct str name, weight, rest, difficulty;
    int64_t sets, reps;
    int err = reader_text(r, j, "name", 1, PLAN_ITEM_CHARS_MAX, &name);
    if (!err)
        err = reader_number(r, j, &(struct number){"sets", 1, PLAN_SETS_MAX, 1, false}, &sets);
    if (!err)
        err = reader_number(r, j, &(struct number){"reps", 1, PLAN_REPS_MAX, 1, false}, &reps);
    if (!err)
        err = reader_text(r, j, "weight", 0, PLAN_NOTE_CHARS_MAX, &weight);
    if (!err)
        err = reader_text(r, j, "rest", 0, PLAN_NOTE_CHARS_MAX, &rest);
    if (!err)
        err = plan_difficulty_read(r, j, true, &difficulty);
    if (err)
        return err;
    jw_object(w);
    jw_put_str(w, "name", name);
    jw_put_int(w, "sets", sets);
    jw_put_int(w, "reps", reps);
    jw_put_str(w, "weight", weight);
    jw_put_str(w, "rest", rest);
    jw_put_str(w, "difficulty", difficulty);
    jw_end_object(w);
    return 0;
}

/* A list of objects: what says what they are, read_one reads one and writes it. At most
 * PLAN_ITEMS_MAX. *out is JSON. */
static int read_list(const struct reader *r, const struct json *list, const char *what,
                     int (*read_one)(const struct reader *r, const struct json *j,
                                     struct json_writer *w),
                     struct str *out)
{
    struct buf b;
    struct json_writer w;
    int n = 0, err = 0;
    buf_init(&b);
    jw_init(&w, &b);
    jw_array(&w);
    json_each (j, list) {
        struct reader one = reader_in(r, "%s %d", what, ++n);
        err = j->type != JSON_OBJECT
                  ? reader_fail(&one, "it must be an object, not %s", reader_shown(&one, j))
                  : read_one(&one, j, &w);
        if (err)
            break;
    }
    if (!err) {
        jw_end_array(&w);
        *out = str_dup(r->a, buf_str(&b));
    }
    buf_release(&b);
    return err;
}

static int read_exercises(const struct reader *r, const struct json *day, bool rest,
                          struct str *out)
{
    const struct json *list = json_get(day, "exercises");
    bool absent = !list || list->type == JSON_NULL;
    if (rest && !absent && (list->type != JSON_ARRAY || list->count))
        return reader_fail(r, "a day of type \"rest\" must not have exercises");
    if (!rest &&
        (absent || list->type != JSON_ARRAY || list->count == 0 || list->count > PLAN_ITEMS_MAX))
        return reader_fail(r,
                           "\"exercises\" must be a list of 1 to %d of them, unless "
                           "\"day_type\" is \"rest\"",
                           PLAN_ITEMS_MAX);
    return read_list(r, absent ? NULL : list, "exercise", read_exercise, out);
}

static int read_training(const struct reader *r, const struct json *day, struct plan_day *out)
{
    struct str type;
    int64_t minutes, calories;
    int err = reader_text(r, day, "day_type", 1, PLAN_TYPE_CHARS_MAX, &type);
    if (err)
        return err;
    out->day_type = str_lower(r->a, type);
    bool rest = str_eq(out->day_type, STR("rest"));
    const struct number duration = {"duration", !rest, PLAN_MINUTES_MAX, 1, rest},
                        burnt = {"estimated_calories", 0, PLAN_CALORIES_MAX, 1, rest};
    err = reader_text(r, day, "focus_area", !rest, PLAN_AREA_CHARS_MAX, &out->focus_area);
    if (!err)
        err = read_exercises(r, day, rest, &out->exercises);
    if (!err)
        err = reader_number(r, day, &duration, &minutes);
    if (!err)
        err = reader_number(r, day, &burnt, &calories);
    if (err)
        return err;
    out->duration = str_int(r->a, minutes);
    out->estimated_calories = str_int(r->a, calories);

    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_begin(&w, &b);
    jw_put_str(&w, "date", out->date);
    jw_put_str(&w, "day_type", out->day_type);
    jw_put_str(&w, "focus_area", out->focus_area);
    jw_key(&w, STR("exercises"));
    jw_raw(&w, out->exercises);
    jw_put_int(&w, "duration", minutes);
    jw_put_int(&w, "estimated_calories", calories);
    out->json = jw_finish(&w, r->a);
    return 0;
}

/* --- nutrition --- */

static const char *const meal_names[] = {"breakfast", "lunch", "dinner", "snacks"};
#define MEALS (sizeof meal_names / sizeof *meal_names)

static const struct number food_numbers[] = {
    {"calories", 0, PLAN_CALORIES_MAX, TENTHS, false},
    {"protein", 0, PLAN_GRAMS_MAX, TENTHS, false},
    {"carbs", 0, PLAN_GRAMS_MAX, TENTHS, false},
    {"fat", 0, PLAN_GRAMS_MAX, TENTHS, false},
};
static const struct number target_numbers[] = {
    {"target_calories", 0, PLAN_CALORIES_MAX, TENTHS, false},
    {"target_protein", 0, PLAN_GRAMS_MAX, TENTHS, false},
    {"target_carbs", 0, PLAN_GRAMS_MAX, TENTHS, false},
    {"target_fat", 0, PLAN_GRAMS_MAX, TENTHS, false},
};
#define NUTRIENTS (sizeof food_numbers / sizeof *food_numbers)

static int read_food(const struct reader *r, const struct json *j, struct json_writer *w)
{
    struct str name;
    int64_t tenths[NUTRIENTS];
    int err = reader_text(r, j, "name", 1, PLAN_ITEM_CHARS_MAX, &name);
    for (size_t i = 0; i < NUTRIENTS && !err; i++)
        err = reader_number(r, j, &food_numbers[i], &tenths[i]);
    if (err)
        return err;
    jw_object(w);
    jw_put_str(w, "name", name);
    for (size_t i = 0; i < NUTRIENTS; i++)
        put_tenths(w, food_numbers[i].name, tenths[i]);
    jw_end_object(w);
    return 0;
}

/* The calories of a meal that read_food has accepted, in tenths. */
static int64_t calories_of(const struct reader *r, const struct json *list)
{
    int64_t sum = 0, tenths;
    json_each (food, list)
        if (reader_number(r, food, &food_numbers[0], &tenths) == 0)
            sum += tenths;
    return sum;
}

static int read_meal(const struct reader *r, const struct json *meals, const char *name,
                     struct json_writer *w, int64_t *calories)
{
    const struct json *list = json_get(meals, name);
    struct reader meal = reader_in(r, "%s", name);
    bool absent = !list || list->type == JSON_NULL;
    struct str foods;
    if (!absent && (list->type != JSON_ARRAY || list->count > PLAN_ITEMS_MAX))
        return reader_fail(&meal, "it must be a list of at most %d foods", PLAN_ITEMS_MAX);
    int err = read_list(&meal, absent ? NULL : list, "food", read_food, &foods);
    if (err)
        return err;
    jw_key(w, str_of(name));
    jw_raw(w, foods);
    *calories += calories_of(&meal, list);
    return 0;
}

/* A meal of another name would be lost, and its calories with it. */
static int check_meal_names(const struct reader *r, const struct json *meals)
{
    if (!meals || meals->type != JSON_OBJECT)
        return reader_fail(r,
                           "\"meals\" must be an object with breakfast, lunch, dinner and "
                           "snacks, not %s",
                           reader_shown(r, meals));
    json_each (j, meals) {
        bool known = false;
        for (size_t i = 0; i < MEALS; i++)
            known = known || str_eq(j->key, str_of(meal_names[i]));
        if (!known)
            return reader_fail(r,
                               "\"meals\" may have breakfast, lunch, dinner and snacks, but not %s",
                               reader_shown(r, &(struct json){.type = JSON_STRING, .s = j->key}));
    }
    return 0;
}

static int read_meals(const struct reader *r, const struct json *day, int64_t target,
                      struct str *out)
{
    const struct json *meals = json_get(day, "meals");
    int64_t sum = 0;
    int err = check_meal_names(r, meals);
    if (err)
        return err;
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_begin(&w, &b);
    for (size_t i = 0; i < MEALS && !err; i++)
        err = read_meal(r, meals, meal_names[i], &w, &sum);
    if (err) {
        buf_release(&b);
        return err;
    }
    *out = jw_finish(&w, r->a);
    if (llabs(sum - target) * CALORIES_DIFFER > target)
        return reader_fail(r,
                           "the calories of the meals add up to %.*s, and \"target_calories\" is "
                           "%.*s: they may differ by at most 5 %%",
                           STR_ARG(shown_tenths(r->a, sum)), STR_ARG(shown_tenths(r->a, target)));
    return 0;
}

static int read_nutrition(const struct reader *r, const struct json *day, struct plan_day *out)
{
    int64_t tenths[NUTRIENTS];
    int err = 0;
    for (size_t i = 0; i < NUTRIENTS && !err; i++)
        err = reader_number(r, day, &target_numbers[i], &tenths[i]);
    if (!err)
        err = read_meals(r, day, tenths[0], &out->meals);
    if (err)
        return err;
    out->target_calories = shown_tenths(r->a, tenths[0]);
    out->target_protein = shown_tenths(r->a, tenths[1]);
    out->target_carbs = shown_tenths(r->a, tenths[2]);
    out->target_fat = shown_tenths(r->a, tenths[3]);

    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_begin(&w, &b);
    jw_put_str(&w, "date", out->date);
    for (size_t i = 0; i < NUTRIENTS; i++)
        put_tenths(&w, target_numbers[i].name, tenths[i]);
    jw_key(&w, STR("meals"));
    jw_raw(&w, out->meals);
    out->json = jw_finish(&w, r->a);
    return 0;
}

/* --- a day --- */

int plan_day_read_at(const struct reader *r, struct str date, const struct json *day,
                     struct plan_day *out)
{
    struct plan_day d = {0};
    if (!day || day->type != JSON_OBJECT)
        return reader_fail(r, "a day must be an object, not %s", reader_shown(r, day));
    int err = read_date(r, date, day, &d.date);
    if (!err)
        err = r->frame->kind == PLAN_TRAINING ? read_training(r, day, &d)
                                              : read_nutrition(r, day, &d);
    if (!err)
        *out = d;
    return err;
}

int plan_day_read(struct arena *a, const struct plan_frame *f, const struct json *day,
                  struct plan_day *out, const char **complaint)
{
    struct reader r = {.a = a, .frame = f, .where = "", .complaint = complaint};
    return plan_day_read_at(&r, STR_NULL, day, out);
}
