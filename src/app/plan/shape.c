#include "app/plan/shape.h"

#include <stdlib.h>

#include "app/plan/shape_private.h"
#include "base/err.h"
#include "engine/ai/reply.h"

#define RATIO_SCALE   10000
#define RATIO_DIFFERS 200 /* in 1 / RATIO_SCALE, from 1 */

/* --- the object in the text --- */

/* A plan, or an object whose only member is one. */
static const struct json *plan_in(const struct json *j)
{
    if (j->type != JSON_OBJECT)
        return NULL;
    if (j->count == 1 && j->child->type == JSON_OBJECT)
        j = j->child;
    return json_get(j, "days") ? j : NULL;
}

/* The plans of a text; *plan is the last. */
static int find_plans(struct arena *a, struct ai_objects *o, const struct json **plan)
{
    const struct json *j, *found;
    int plans = 0;
    while ((j = ai_object_next(a, o)))
        if ((found = plan_in(j))) {
            *plan = found;
            plans++;
        }
    return plans;
}

static int find_plan(const struct reader *r, struct str text, const struct json **out)
{
    struct ai_objects o = {.rest = STR("")};
    const struct json *whole;
    int plans = 0;
    *out = NULL;
    if (json_parse(r->a, text, &whole, NULL) == 0) { /* whatever its texts look like */
        *out = plan_in(whole);
        plans = *out ? 1 : 0;
        o.found = whole->type == JSON_OBJECT;
    } else {
        o.rest = ai_skip_thoughts(text);
        plans = find_plans(r->a, &o, out);
    }
    if (plans == 1)
        return 0;
    if (plans > 1)
        return reader_fail(
            r, "the answer has %d plans: it must be one JSON object and nothing else", plans);
    if (o.broken)
        return reader_fail(r,
                           "the JSON object is broken or not complete: in its line %zu, column "
                           "%zu, %s",
                           o.error.line, o.error.column, o.error.message);
    if (o.found)
        return reader_fail(r, "the JSON object has no \"days\"");
    return reader_fail(r, "the answer has no JSON object: it must be one, and nothing else");
}

/* --- the plan --- */

static int read_ratio(const struct reader *r, const struct json *plan, struct str *out)
{
    static const char *const names[] = {"protein", "carbs", "fat"};
    const struct json *ratio = json_get(plan, "macro_ratio");
    struct reader in = reader_in(r, "macro_ratio");
    int64_t parts[3], sum = 0;
    for (size_t i = 0; i < 3; i++) {
        int err = reader_number(&in, ratio, &(struct number){names[i], 0, 1, RATIO_SCALE, false},
                                &parts[i]);
        if (err)
            return err;
        sum += parts[i];
    }
    if (llabs(sum - RATIO_SCALE) > RATIO_DIFFERS)
        return reader_fail(&in, "protein, carbs and fat must add up to 1, not %g",
                           (double)sum / RATIO_SCALE);
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_begin(&w, &b);
    for (size_t i = 0; i < 3; i++) {
        jw_key(&w, str_of(names[i]));
        jw_real(&w, (double)parts[i] / RATIO_SCALE);
    }
    *out = jw_finish(&w, r->a);
    return 0;
}

static int read_head(const struct reader *r, const struct json *plan, struct plan_shape *out)
{
    const struct number calories = {"daily_calories", 1, PLAN_CALORIES_MAX, 1, false};
    int err = reader_text(r, plan, "name", 1, PLAN_NAME_CHARS_MAX, &out->name);
    if (err)
        return err;
    if (r->frame->kind == PLAN_TRAINING)
        return plan_difficulty_read(r, plan, false, &out->difficulty);
    err = reader_number(r, plan, &calories, &out->daily_calories);
    return err ? err : read_ratio(r, plan, &out->macro_ratio);
}

static int read_days(const struct reader *r, const struct json *plan, struct plan_shape *out)
{
    const struct json *days = json_get(plan, "days");
    size_t want = (size_t)(7 * r->frame->weeks);
    if (days->type != JSON_ARRAY)
        return reader_fail(r, "\"days\" must be a list, not %s", reader_shown(r, days));
    out->days = ARENA_ARRAY(r->a, struct plan_day, want);
    json_each (day, days) {
        if (out->day_count == want)
            break;
        struct str date = plan_date(r->a, r->frame, (int64_t)out->day_count);
        struct reader one = reader_in(r, "day %zu (%.*s)", out->day_count + 1, STR_ARG(date));
        int err = plan_day_read_at(&one, date, day, &out->days[out->day_count]);
        if (err)
            return err;
        out->day_count++;
    }
    if (days->count != want)
        return reader_fail(r, "\"days\" must have %zu days, from %.*s to %.*s, and has %u", want,
                           STR_ARG(plan_date(r->a, r->frame, 0)),
                           STR_ARG(plan_date(r->a, r->frame, (int64_t)want - 1)), days->count);
    return 0;
}

int plan_shape_read(struct arena *a, const struct plan_frame *f, struct str text,
                    struct plan_shape *out, const char **complaint)
{
    struct reader r = {.a = a, .frame = f, .where = "", .complaint = complaint};
    struct plan_shape shape = {0};
    const struct json *plan;
    check(f->weeks >= 1 && f->weeks <= PLAN_WEEKS_MAX);
    int err = find_plan(&r, text, &plan);
    if (!err)
        err = read_head(&r, plan, &shape);
    if (!err)
        err = read_days(&r, plan, &shape);
    if (!err)
        *out = shape;
    return err;
}

/* --- while it comes in --- */

static struct str after(struct str text, struct str name, bool *found)
{
    ptrdiff_t at = str_find(text, name);
    *found = at >= 0;
    return at < 0 ? text : str_skip(text, (size_t)at + name.n);
}

/* Behind the last "days", since thoughts and drafts may have some. */
size_t plan_days_seen(struct str text)
{
    size_t days = 0;
    bool found = false, any = false;
    do {
        any = any || found;
        text = after(text, STR("\"days\""), &found);
    } while (found);
    if (!any)
        return 0;
    while (days < PLAN_DAYS_MAX) {
        text = after(text, STR("\"date\""), &found);
        if (!found)
            break;
        days++;
    }
    return days;
}
