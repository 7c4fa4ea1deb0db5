#include "app/plan/routes.h"

#include <inttypes.h>

#include "app/plan/plans.h"
#include "app/plan/template.h"
#include "app/plan/template_routes.h"
#include "engine/api/limit.h"
#include "engine/api/run.h"

#define KIND_FIELD  "kind", API_TEXT, .choices = PLAN_KINDS, .about = "of the plan"
#define GRAMS(text) API_REAL, .optional = true, .most = PLAN_GRAMS_MAX, .about = text

/* --- days --- */

static const struct api_field exercise_fields[] = {
    {"name", API_TEXT, .least = 1, .most = PLAN_ITEM_CHARS_MAX, .about = "of the exercise"},
    {"sets", API_INT, .least = 1, .most = PLAN_SETS_MAX, .about = "how often it is begun"},
    {"reps", API_INT, .least = 1, .most = PLAN_REPS_MAX, .about = "repeats in each set"},
    {"weight", API_TEXT, .optional = true, .most = PLAN_NOTE_CHARS_MAX, .about = "like 70kg"},
    {"rest", API_TEXT, .optional = true, .most = PLAN_NOTE_CHARS_MAX, .about = "like 90s"},
    {"difficulty", API_TEXT, .optional = true, .most = PLAN_NOTE_CHARS_MAX,
     .about = "easy, medium or hard"},
    API_END,
};
static const struct api_field food_fields[] = {
    {"name", API_TEXT, .least = 1, .most = PLAN_ITEM_CHARS_MAX, .about = "of the food"},
    {"calories", API_REAL, .most = PLAN_CALORIES_MAX, .about = "in kcal"},
    {"protein", GRAMS("in grams")},
    {"carbs", GRAMS("in grams")},
    {"fat", GRAMS("in grams")},
    API_END,
};
#define FOODS API_OBJECTS, .optional = true, .most = PLAN_ITEMS_MAX, .fields = food_fields
static const struct api_field meals_fields[] = {
    {"breakfast", FOODS, .about = "foods"},
    {"lunch", FOODS, .about = "foods"},
    {"dinner", FOODS, .about = "foods"},
    {"snacks", FOODS, .about = "foods"},
    API_END,
};
/* Of both kinds: the rest are absent. */
#define DAY_FIELDS                                                                                 \
    {"date", API_TEXT, .least = 10, .most = 10, .about = "of the day"},                            \
        {"day_type", API_TEXT, .optional = true, .most = PLAN_TYPE_CHARS_MAX,                      \
         .about = "of a training: what is trained, or rest"},                                      \
        {"focus_area", API_TEXT, .optional = true, .most = PLAN_AREA_CHARS_MAX,                    \
         .about = "of a training"},                                                                \
        {"exercises",                                                                              \
         API_OBJECTS,                                                                              \
         .optional = true,                                                                         \
         .most = PLAN_ITEMS_MAX,                                                                   \
         .about = "of a training",                                                                 \
         .fields = exercise_fields},                                                               \
        {"duration", API_INT, .optional = true, .most = PLAN_MINUTES_MAX,                          \
         .about = "of a training, in minutes"},                                                    \
        {"estimated_calories", API_INT, .optional = true, .most = PLAN_CALORIES_MAX,               \
         .about = "of a training, in kcal"},                                                       \
        {"target_calories", API_REAL, .optional = true, .most = PLAN_CALORIES_MAX,                 \
         .about = "of a nutrition, in kcal; its meals add up to them"},                            \
        {"target_protein", GRAMS("of a nutrition, in grams")},                                     \
        {"target_carbs", GRAMS("of a nutrition, in grams")},                                       \
        {"target_fat", GRAMS("of a nutrition, in grams")},                                         \
    {                                                                                              \
        "meals", API_OBJECT, .optional = true, .about = "of a nutrition", .fields = meals_fields   \
    }
static const struct api_field day_fields[] = {DAY_FIELDS, API_END};
static const struct api_field listed_day_fields[] = {
    DAY_FIELDS,
    {"version", API_INT, .about = "of the day: a change of it names this"},
    API_END,
};

static void put_text(struct json_writer *w, const char *name, struct str s)
{
    if (s.p) {
        jw_key(w, str_of(name));
        jw_str(w, s);
    }
}

static void put_raw(struct json_writer *w, const char *name, struct str json)
{
    if (json.p) {
        jw_key(w, str_of(name));
        jw_raw(w, json);
    }
}

static void put_date(struct api_call *c, struct json_writer *w, const struct plan_date *d)
{
    const struct plan_day *day = &d->day;
    c->degraded |= d->degraded;
    jw_put_str(w, "plan_id", d->plan_id);
    jw_put_str(w, "kind", str_of(plan_kind_name(d->kind)));
    jw_put_int(w, "version", d->version);
    jw_put_object(w, "day");
    jw_put_str(w, "date", day->date);
    put_text(w, "day_type", day->day_type);
    put_text(w, "focus_area", day->focus_area);
    put_raw(w, "exercises", day->exercises);
    put_raw(w, "duration", day->duration);
    put_raw(w, "estimated_calories", day->estimated_calories);
    put_raw(w, "target_calories", day->target_calories);
    put_raw(w, "target_protein", day->target_protein);
    put_raw(w, "target_carbs", day->target_carbs);
    put_raw(w, "target_fat", day->target_fat);
    put_raw(w, "meals", day->meals);
    jw_end_object(w);
}

static int show_day(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_date d;
    int err = plan_date_get(t, c->node->plans, c->session.uid, http_param(c->x, "plan_id"),
                            http_param(c->x, "date"), &d);
    if (!err)
        put_date(c, w, &d);
    return err;
}

static int put_day(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_date d;
    int64_t version = 0;
    const char *complaint = NULL;
    (void)api_int(c, "version", &version);
    int err =
        plan_date_put(t, c->node->plans, c->session.uid, http_param(c->x, "plan_id"),
                      http_param(c->x, "date"), version, json_get(c->body, "day"), &d, &complaint);
    if (err == ERR_INVALID && complaint)
        return api_refuse(t, c, "day", "%s", complaint);
    if (!err)
        put_date(c, w, &d);
    return err;
}

static const struct api_field day_reply[] = {
    {"plan_id", API_TEXT, .most = PLAN_ID_CHARS, .about = "of the plan"},
    {KIND_FIELD},
    {"version", API_INT, .about = "of the day: a change of it names this"},
    {"day", API_OBJECT, .about = "with the members of its kind", .fields = day_fields},
    API_END,
};
static const struct api_field day_body[] = {
    {"version", API_INT, .least = 1, .most = INT64_MAX, .about = "that the day has"},
    {"day", API_OBJECT, .about = "all of it, as it is shown", .fields = day_fields},
    API_END,
};

/* --- plans --- */

#define AT(member) API_AT(struct plan, member)
#define PLAN_FIELDS                                                                                \
    {"plan_id", API_TEXT, AT(id), .most = PLAN_ID_CHARS, .about = "of the plan"}, {KIND_FIELD},    \
        {"name", API_TEXT, AT(name), .most = PLAN_NAME_CHARS_MAX, .about = "by the AI"},           \
        {"start_date", API_TEXT, AT(start_date), .most = 10, .about = "its first day"},            \
        {"end_date", API_TEXT, AT(end_date), .most = 10, .about = "its last day"},                 \
        {"total_weeks", API_INT, AT(weeks), .most = PLAN_WEEKS_MAX, .about = "that it has"},       \
        {"difficulty",     API_TEXT,   AT(difficulty),                                             \
         .optional = true, .most = 32, .about = "of a training: easy, medium, hard"},              \
        {"daily_calories",                                                                         \
         API_INT,                                                                                  \
         AT(daily_calories),                                                                       \
         .optional = true,                                                                         \
         .least = 1,                                                                               \
         .most = PLAN_CALORIES_MAX,                                                                \
         .about = "of a nutrition, in kcal"},                                                      \
        {"macro_ratio", API_VALUES, .optional = true, .most = 3,                                   \
         .about = "of a nutrition: shares of protein, carbs and fat"},                             \
        {"template_id", API_INT, AT(template_id), .about = "that it was made from"},               \
        {"template_version", API_INT, AT(template_version), .about = "likewise"},                  \
        {"variables", API_VALUES, .about = "what the template was filled with"},                   \
        {"simulated", API_BOOL, AT(simulated), .about = "the AI was the simulated one"},           \
        {"active", API_BOOL, AT(active), .about = "one plan of a kind is"},                        \
        {"version", API_INT, AT(version), .about = "counts the changes of its days"},              \
        {"created_at", API_TIME, AT(created_ms), .about = "when it was made"},                     \
    {                                                                                              \
        "changed_at", API_TIME, AT(changed_ms), .about = "when a day was last changed"             \
    }
static const struct api_field plan_fields[] = {PLAN_FIELDS, API_END};
static const struct api_field whole_plan_fields[] = {
    PLAN_FIELDS,
    {"days", API_OBJECTS, .most = PLAN_DAYS_MAX, .about = "all of them, in order",
     .fields = listed_day_fields},
    API_END,
};

static void put_plan(struct task *t, struct api_call *c, struct json_writer *w,
                     const struct plan *x)
{
    c->degraded |= x->degraded;
    jw_object(w);
    api_put_fields(t, w, plan_fields, x);
    jw_put_str(w, "kind", str_of(plan_kind_name(x->kind)));
    put_raw(w, "macro_ratio", x->macro_ratio);
    put_raw(w, "variables", x->variables);
    put_raw(w, "days", x->days);
    jw_end_object(w);
}

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan x;
    int err = plan_get(t, c->node->plans, c->session.uid, http_param(c->x, "plan_id"), &x);
    if (err)
        return err;
    jw_key(w, STR("plan"));
    put_plan(t, c, w, &x);
    return 0;
}

static int show_active(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan x;
    enum plan_kind kind;
    check(plan_kind_read(api_text(c, "kind"), &kind)); /* as the table says */
    int err = plan_active(t, c->node->plans, c->session.uid, kind, &x);
    if (err)
        return err;
    jw_key(w, STR("plan"));
    put_plan(t, c, w, &x);
    return 0;
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str cursor = api_text(c, "cursor"), kind = api_text(c, "kind");
    int64_t below = INT64_MAX, limit = 20;
    enum plan_kind only = PLAN_TRAINING;
    unsigned kinds = 1U << PLAN_TRAINING | 1U << PLAN_NUTRITION;
    struct plan_page page;
    if (cursor.p && (!str_to_i64(cursor, &below) || below < 1))
        return api_refuse(t, c, "cursor", "is no cursor of this list");
    if (kind.p && plan_kind_read(kind, &only))
        kinds = 1U << only;
    (void)api_int(c, "limit", &limit);
    int err = plan_list(t, c->node->plans, c->session.uid, kinds, below, limit, &page);
    if (err)
        return err;
    jw_put_array(w, "plans");
    for (size_t i = 0; i < page.count; i++)
        put_plan(t, c, w, &page.list[i]);
    jw_end_array(w);
    jw_key(w, STR("next"));
    jw_str(w, page.next ? str_int(task_arena(t), page.next) : STR_NULL);
    return 0;
}

static int activate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str was, id = http_param(c->x, "plan_id");
    int err = plan_activate(t, c->node->plans, c->session.uid, id, &was);
    if (err)
        return err;
    jw_put_str(w, "plan_id", id);
    jw_put_str(w, "was", was);
    return 0;
}

static int delete (struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return plan_delete(t, c->node->plans, c->session.uid, http_param(c->x, "plan_id"));
}

/* --- making them --- */

/* A variable that is wrong is named: "weeks: must be from 1 to 12". */
static int refuse_variable(struct task *t, struct api_call *c)
{
    struct str text = str_dup(task_arena(t), str_of(task_error(t))), name = str_cut(&text, ':');
    return text.p ? api_refuse(t, c, str_printf(task_arena(t), "variables.%.*s", STR_ARG(name)).p,
                               "%.*s", STR_ARG(str_trim(text)))
                  : api_refuse(t, c, "variables", "%.*s", STR_ARG(name));
}

/* Counted before it is promised, and given back if that fails; a repeat is not counted. */
static int submit_new(struct task *t, struct api_call *c, const struct plan_wish *wish,
                      struct str *id)
{
    struct limit_taken taken;
    bool repeated = false;
    int err = api_limit_take(
        t, c, wish->kind == PLAN_TRAINING ? LIMIT_TRAINING_PLAN : LIMIT_NUTRITION_PLAN, 1, &taken);
    if (err)
        return err;
    err = plan_task_submit(t, c->node->plans, wish, id, &repeated);
    if ((err && err != ERR_UNCERTAIN) || repeated)
        limit_return(t, c->node->limits, &taken);
    return err == ERR_INVALID ? refuse_variable(t, c) : err;
}

static int submit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_wish wish = {.uid = c->session.uid, .variables = api_values(c, "variables")};
    struct str id = STR_NULL;
    check(plan_kind_read(api_text(c, "kind"), &wish.kind)); /* as the table says */
    (void)api_int(c, "template", &wish.template_id);
    int err = api_request_id(t, c, &wish.request_id);
    if (!err)
        err = plan_task_repeated(t, c->node->plans, &wish, &id);
    if (!err && !id.p)
        err = submit_new(t, c, &wish, &id);
    if (!err)
        jw_put_str(w, "task_id", id);
    return err;
}

#undef AT
#define AT(member) API_AT(struct plan_task, member)
static const struct api_field task_fields[] = {
    {"task_id", API_TEXT, AT(id), .most = PLAN_ID_CHARS, .about = "of the task"},
    {KIND_FIELD},
    {"status", API_TEXT, AT(status), .choices = "generating|completed|failed|cancelled",
     .about = "completed: the plan is there, and paid for"},
    {"progress", API_INT, AT(progress), .most = 100, .about = "per cent"},
    {"plan_id", API_TEXT, AT(plan_id), .optional = true, .most = PLAN_ID_CHARS,
     .about = "the plan, once it is completed"},
    {"message", API_TEXT, AT(message), .optional = true, .most = 1000,
     .about = "why it failed, or what it waits for"},
    {"reason_code", API_TEXT, AT(reason), .optional = true, .choices = PLAN_REASONS,
     .about = "the same by a word; cancelled has no message"},
    {"cost", API_MONEY, .optional = true, .about = "paid when it is completed, else nothing"},
    {"created_at", API_TIME, AT(created_ms), .about = "when it was submitted"},
    API_END,
};

static void put_task(struct task *t, struct api_call *c, struct json_writer *w,
                     const struct plan_task *x)
{
    c->degraded |= x->degraded;
    api_put_fields(t, w, task_fields, x);
    jw_put_str(w, "kind", str_of(plan_kind_name(x->kind)));
    if (x->cents >= 0)
        jw_put_str(w, "cost", amount_decimal(task_arena(t), x->cents));
}

static int show_task(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_task x;
    int err =
        plan_task_get(t, c->node->plans, c->session.uid, http_param(c->x, "generation_id"), &x);
    if (!err)
        put_task(t, c, w, &x);
    return err;
}

static int list_tasks(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_task *all;
    size_t count;
    int err = plan_task_list(t, c->node->plans, c->session.uid, &all, &count);
    if (err)
        return err;
    jw_put_array(w, "tasks");
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        put_task(t, c, w, &all[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int cancel(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_task x;
    int err =
        plan_task_cancel(t, c->node->plans, c->session.uid, http_param(c->x, "generation_id"), &x);
    if (!err)
        put_task(t, c, w, &x);
    return err;
}

/* --- the table --- */

static const struct api_field submit_body[] = {
    {KIND_FIELD},
    {"template", API_INT, .optional = true, .least = 1, .most = INT64_MAX,
     .about = "id of a template of the kind; the default if absent"},
    {"variables", API_VALUES, .optional = true, .most = PLAN_VARIABLES_MAX,
     .item_most = PLAN_VALUE_CHARS, .about = "values of the template's variables, by name"},
    {API_REQUEST_ID_FIELD},
    API_END,
};
static const struct api_field submit_reply[] = {
    {"task_id", API_TEXT, .most = PLAN_ID_CHARS, .about = "of the task that makes the plan"},
    API_END,
};
static const struct api_field list_query[] = {
    {"kind", API_TEXT, .optional = true, .choices = PLAN_KINDS, .about = "both if absent"},
    {"limit", API_INT, .optional = true, .least = 1, .most = PLAN_PAGE_MAX,
     .about = "plans on a page; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 20,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"plans", API_OBJECTS, .about = "newest first, without their days", .fields = plan_fields},
    {"next", API_TEXT, .optional = true, .most = 20,
     .about = "cursor of the next page; null: none"},
    API_END,
};
static const struct api_field active_query[] = {{KIND_FIELD}, API_END};
static const struct api_field plan_reply[] = {
    {"plan", API_OBJECT, .about = "with its days", .fields = whole_plan_fields},
    API_END,
};
static const struct api_field activate_reply[] = {
    {"plan_id", API_TEXT, .most = PLAN_ID_CHARS, .about = "that is active now"},
    {"was", API_TEXT, .optional = true, .most = PLAN_ID_CHARS, .about = "that was active before"},
    API_END,
};
static const struct api_field tasks_reply[] = {
    {"tasks", API_OBJECTS, .about = "that have not ended, oldest first", .fields = task_fields},
    API_END,
};

const struct api_route plan_routes[] = {
    {"POST", "/api/plans", API_USER, submit, "Have a plan made", .body = submit_body,
     .reply = submit_reply, .status = 202},
    {"GET", "/api/plans", API_USER, list, "Your plans", .query = list_query, .reply = list_reply},
    {"GET", "/api/plans/active", API_USER, show_active, "The active plan of a kind",
     .query = active_query, .reply = plan_reply},
    {"GET", "/api/plans/:plan_id", API_USER, show, "One plan, with its days", .reply = plan_reply},
    {"DELETE", "/api/plans/:plan_id", API_USER, delete, "Delete a plan", .reply = NULL},
    {"POST", "/api/plans/:plan_id/activate", API_USER, activate,
     "Make a plan the active one of its kind", .reply = activate_reply},
    {"GET", "/api/plans/:plan_id/days/:date", API_USER, show_day, "One day of a plan",
     .reply = day_reply},
    {"PUT", "/api/plans/:plan_id/days/:date", API_USER, put_day, "Change a day of a plan",
     .body = day_body, .reply = day_reply},
    {"GET", "/api/generation", API_USER, list_tasks, "Plans that are being made",
     .reply = tasks_reply},
    {"GET", "/api/generation/:generation_id", API_USER, show_task,
     "How far the making of a plan is", .reply = task_fields},
    {"DELETE", "/api/generation/:generation_id", API_USER, cancel, "Stop the making of a plan",
     .reply = task_fields},
    {"GET", "/api/plan_templates", API_USER, plan_templates_show, "What plans can be made of",
     .query = plan_templates_query, .reply = plan_templates_reply},
    {.method = NULL},
};
