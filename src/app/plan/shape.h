/* shape.h -- what a plan must look like: reads what the AI answers, and a day that a user changes.
 *
 * What comes out is normalised: members that are not known are left out, optional ones are there,
 * texts are one line each, numbers have at most one decimal. Reading it again gives the same.
 *
 * training: {"name", "difficulty": easy|medium|hard, "days": [{"date", "day_type", "focus_area",
 *   "exercises": [{"name", "sets", "reps", "weight", "rest", "difficulty"}], "duration",
 *   "estimated_calories"}]}. A day of type "rest" has no exercises, and needs but its date; any
 *   other has 1 to 20. weight, rest and difficulty of an exercise may be missing.
 * nutrition: {"name", "daily_calories", "macro_ratio": {"protein", "carbs", "fat"}, "days":
 *   [{"date", "target_calories", "target_protein", "target_carbs", "target_fat", "meals":
 *   {"breakfast": [{"name", "calories", "protein", "carbs", "fat"}], "lunch", "dinner",
 *   "snacks"}}]}. The ratios add up to 1, the calories of a day's foods to its target.
 * Both: every day of the frame, once, in order. */
#ifndef APP_PLAN_SHAPE_H
#define APP_PLAN_SHAPE_H

#include "base/json.h"

#define PLAN_WEEKS_MAX      12
#define PLAN_DAYS_MAX       (7 * PLAN_WEEKS_MAX)
#define PLAN_NAME_CHARS_MAX 120 /* of a plan */
#define PLAN_TYPE_CHARS_MAX 40  /* day_type */
#define PLAN_AREA_CHARS_MAX 80  /* focus_area */
#define PLAN_ITEM_CHARS_MAX 120 /* name of an exercise or a food */
#define PLAN_NOTE_CHARS_MAX 40  /* weight, rest */
#define PLAN_ITEMS_MAX      20  /* exercises of a day, foods of a meal */
#define PLAN_SETS_MAX       50
#define PLAN_REPS_MAX       1000
#define PLAN_MINUTES_MAX    1440 /* duration */
#define PLAN_CALORIES_MAX   20000
#define PLAN_GRAMS_MAX      5000

enum plan_kind { PLAN_TRAINING, PLAN_NUTRITION };

/* Which days a plan has: 7 * weeks, from start_date ("2026-01-31", a date that exists). */
struct plan_frame {
    enum plan_kind kind;
    struct str start_date;
    int64_t weeks; /* 1 to PLAN_WEEKS_MAX */
};
/* Of day i, counted from 0. */
#define PLAN_DATE_BYTES 11
struct str plan_date(struct arena *a, const struct plan_frame *f, int64_t i);

struct plan_day {
    struct str date;
    struct str json; /* the day as an object, with its date */
    /* Its members by themselves, as the cache has them. Lists and objects are JSON, numbers are in
     * decimal. Those of the other kind have p == NULL. */
    struct str day_type, focus_area, exercises, duration, estimated_calories;
    struct str target_calories, target_protein, target_carbs, target_fat, meals;
};

struct plan_shape {
    struct str name;
    struct str difficulty;  /* of a training; else p == NULL */
    int64_t daily_calories; /* of a nutrition, as its macro_ratio, which is JSON; else 0, NULL */
    struct str macro_ratio;
    struct plan_day *days;
    size_t day_count; /* 7 * weeks */
};

/* The text of a model: thoughts, fences and prose around its one object are passed over.
 * ERR_INVALID: *complaint, in a, says in one English sentence what is wrong and where, for the AI
 * and the user. Everything is in a, or borrowed from text. */
MUST_CHECK int plan_shape_read(struct arena *a, const struct plan_frame *f, struct str text,
                               struct plan_shape *out, const char **complaint);
/* One day, of any date in the frame. Errors as above. */
MUST_CHECK int plan_day_read(struct arena *a, const struct plan_frame *f, const struct json *day,
                             struct plan_day *out, const char **complaint);
/* How many days a text has that is still coming in: cheap, for progress. A day counts from its date
 * on; not more than PLAN_DAYS_MAX. */
size_t plan_days_seen(struct str text_so_far);
#endif
