#include "tool/sim/sim_plan.h"

#include "base/json.h"
#include "base/time.h"
#include "tool/sim/sim_verdict.h"
#include "tool/sim/sim_words.h"

#define DAY_US     (INT64_C(24) * 3600 * 1000 * 1000)
#define DATE_CHARS 10
#define LENGTH(a)  (sizeof(a) / sizeof *(a))

/* --- the prompt --- */

/* The text behind a label at the beginning of a line, of the first such line; p == NULL: none. */
static struct str field(struct str message, struct str label)
{
    while (message.p) {
        struct str line = str_cut(&message, '\n');
        size_t n = sim_label_bytes(line, label);
        if (n)
            return sim_trim(str_skip(line, n));
    }
    return STR_NULL;
}

bool sim_plan_read(struct str message, struct sim_plan *out)
{
    struct str kind = field(message, STR("plan")), start = field(message, STR("start date"));
    struct sim_plan p = {.nutrition = str_ieq(kind, STR("nutrition"))};
    if (!p.nutrition && !str_ieq(kind, STR("training")))
        return false;
    if (start.n != DATE_CHARS || !time_from_iso(start, &p.start_us))
        return false;
    if (!str_to_i64(field(message, STR("weeks")), &p.weeks) || p.weeks < 1 ||
        p.weeks > SIM_PLAN_WEEKS_MAX)
        return false;
    p.hash = sim_word_hash(message, 0);
    p.complained = field(message, STR("complaint")).p != NULL;
    *out = p;
    return true;
}

enum sim_plan_fault sim_plan_fault(const struct sim_plan *p, const struct sim_plan_faults *f)
{
    double chance = (double)(p->hash >> 11) * 0x1p-53; /* 0 to 1, 1 excluded */
    if (chance >= f->rate || (p->complained && !f->stays))
        return PLAN_RIGHT;
    return (enum sim_plan_fault)(PLAN_GAP + p->hash % 3);
}

/* --- training --- */

static const struct exercise {
    const char *name;
    int sets, reps;
    const char *weight, *rest, *difficulty;
} exercises[] = {
    {"Squat", 4, 12, "70kg", "90s", "medium"},
    {"Lunge", 3, 10, "20kg", "60s", "medium"},
    {"Deadlift", 4, 8, "80kg", "120s", "hard"},
    {"Bench press", 4, 10, "50kg", "90s", "medium"},
    {"Pull-up", 3, 8, "body weight", "90s", "hard"},
    {"Row", 3, 12, "40kg", "60s", "easy"},
    {"Plank", 3, 45, "body weight", "45s", "easy"},
    {"Easy run", 1, 30, "", "", "easy"},
};

/* A week; focus NULL is a day of rest. */
static const struct {
    const char *type, *focus;
    int minutes, calories;
} week[] = {
    {"strength", "lower_body", 60, 350},
    {"cardio", "endurance", 40, 400},
    {"strength", "upper_body", 60, 320},
    {"rest", NULL, 0, 0},
    {"strength", "full_body", 70, 420},
    {"mobility", "core", 30, 150},
    {"rest", NULL, 0, 0},
};

static void write_exercises(struct json_writer *w, uint64_t dice, bool wrong)
{
    for (size_t i = 0; i < 4; i++) {
        const struct exercise *x = &exercises[(dice + 3 * i) % LENGTH(exercises)];
        jw_object(w);
        jw_put_str(w, "name", str_of(x->name));
        jw_put_int(w, "sets", wrong && i == 0 ? 0 : x->sets);
        jw_put_int(w, "reps", x->reps);
        jw_put_str(w, "weight", str_of(x->weight));
        jw_put_str(w, "rest", str_of(x->rest));
        jw_put_str(w, "difficulty", str_of(x->difficulty));
        jw_end_object(w);
    }
}

static void write_training(struct json_writer *w, const struct sim_plan *p, int64_t day, bool wrong)
{
    size_t i = (size_t)day % LENGTH(week);
    jw_put_str(w, "day_type", str_of(week[i].type));
    jw_put_str(w, "focus_area", str_of(week[i].focus ? week[i].focus : ""));
    jw_put_array(w, "exercises");
    if (week[i].focus)
        write_exercises(w, p->hash % LENGTH(exercises) + (uint64_t)day, wrong);
    jw_end_array(w);
    jw_put_int(w, "duration", week[i].minutes);
    jw_put_int(w, "estimated_calories", week[i].calories);
}

/* --- nutrition --- */

static const struct {
    const char *meal, *foods[4];
    int percent; /* of the day's calories, in two foods */
} meals[] = {
    {"breakfast", {"Oats with milk", "Boiled egg", "Congee", "Yoghurt"}, 25},
    {"lunch", {"Rice with chicken", "Green salad", "Tofu with noodles", "Lentil soup"}, 35},
    {"dinner", {"Steamed fish", "Vegetables", "Omelette", "Wholegrain bread"}, 30},
    {"snacks", {"Apple", "Almonds", "Banana", "Cottage cheese"}, 10},
};

static int64_t calories_of(const struct sim_plan *p)
{
    return 1600 + 200 * (int64_t)(p->hash % 5);
}

/* A gram has 4, 4 and 9 calories. */
static void write_macros(struct json_writer *w, int64_t calories, bool target)
{
    jw_key(w, target ? STR("target_calories") : STR("calories"));
    jw_int(w, calories);
    jw_key(w, target ? STR("target_protein") : STR("protein"));
    jw_int(w, calories * 35 / 400);
    jw_key(w, target ? STR("target_carbs") : STR("carbs"));
    jw_int(w, calories * 40 / 400);
    jw_key(w, target ? STR("target_fat") : STR("fat"));
    jw_int(w, calories * 25 / 900);
}

static void write_food(struct json_writer *w, const char *name, int64_t calories)
{
    jw_object(w);
    jw_put_str(w, "name", str_of(name));
    write_macros(w, calories, false);
    jw_end_object(w);
}

static void write_nutrition(struct json_writer *w, const struct sim_plan *p, int64_t day,
                            bool wrong)
{
    int64_t calories = calories_of(p);
    write_macros(w, calories, true);
    jw_put_object(w, "meals");
    for (size_t i = 0; i < LENGTH(meals); i++) {
        int64_t part = calories * meals[i].percent / 100, first = part * 7 / 10;
        size_t at = (size_t)((p->hash + (uint64_t)day) % 2) * 2;
        jw_key(w, str_of(meals[i].meal));
        jw_array(w);
        write_food(w, meals[i].foods[at], wrong ? 2 * first : first);
        write_food(w, meals[i].foods[at + 1], part - first);
        jw_end_array(w);
    }
    jw_end_object(w);
}

/* --- all of it --- */

static void write_head(struct json_writer *w, const struct sim_plan *p)
{
    if (!p->nutrition) {
        jw_put_str(w, "name", STR("Simulated training"));
        jw_put_str(w, "difficulty", STR("medium"));
        return;
    }
    jw_put_str(w, "name", STR("Simulated nutrition"));
    jw_put_int(w, "daily_calories", calories_of(p));
    jw_put_object(w, "macro_ratio");
    jw_key(w, STR("protein"));
    jw_real(w, 0.35);
    jw_key(w, STR("carbs"));
    jw_real(w, 0.4);
    jw_key(w, STR("fat"));
    jw_real(w, 0.25);
    jw_end_object(w);
}

/* The day in the middle is the one that is missing or wrong. It is none of rest. */
static void write_days(struct json_writer *w, const struct sim_plan *p, enum sim_plan_fault fault)
{
    int64_t days = 7 * p->weeks, odd = days / 14 * 7 + 2;
    for (int64_t i = 0; i < days; i++) {
        char iso[TIME_ISO_BYTES];
        if (i == odd && fault == PLAN_GAP)
            continue;
        time_iso(p->start_us + i * DAY_US, iso);
        jw_object(w);
        jw_put_str(w, "date", str_from(iso, DATE_CHARS));
        if (p->nutrition)
            write_nutrition(w, p, i, i == odd && fault == PLAN_SUM);
        else
            write_training(w, p, i, i == odd && fault == PLAN_SUM);
        jw_end_object(w);
    }
}

void sim_plan_write(const struct sim_plan *p, enum sim_plan_fault fault, struct buf *out)
{
    struct json_writer w;
    if (fault == PLAN_PROSE) {
        buf_add_lit(out, "Gladly! Before I make a plan, what does your usual week look like?");
        return;
    }
    jw_init(&w, out);
    jw_object(&w);
    write_head(&w, p);
    jw_put_array(&w, "days");
    write_days(&w, p, fault);
    jw_end_array(&w);
    jw_end_object(&w);
}
