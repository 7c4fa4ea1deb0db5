#include "app/plan/plans_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "base/time.h"
#include "engine/setup/config.h"
#include "engine/store/keys.h"

#define LEASE_MS   2400 /* a third of it: how long one that was cancelled is worked on at most */
#define TRIES_MAX  5
#define BACKOFF_MS 2000
#define QUEUE_MAX  100000
#define DAY_US     (24LL * 3600 * 1000000)
#define DATE_CHARS 10

/* --- kinds --- */

#define AT(member)     .at = offsetof(struct plan, member)
#define MS(column)     "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define FLAG_WORDS     .words = {"0", "1"}
#define ACTIVE(column) "u." column " IS NOT NULL AND u." column " = x.id"
#define COLUMNS_OF_ALL                                                                             \
    {"id", "x.id", RECORD_TEXT, AT(id)}, {"user_id", "x.uid", RECORD_INT, AT(uid)},                \
        {"number", "x.number", RECORD_INT, AT(number)}, {"name", "x.name", RECORD_TEXT, AT(name)}, \
        {"start_date", "x.start_date", RECORD_TEXT, AT(start_date)},                               \
        {"end_date", "x.end_date", RECORD_TEXT, AT(end_date)},                                     \
        {"total_weeks", "x.total_weeks", RECORD_INT, AT(weeks)},                                   \
        {"template_id", "x.template_id", RECORD_INT, AT(template_id)},                             \
        {"template_version", "x.template_version", RECORD_INT, AT(template_version)},              \
        {"variables", "x.variables", RECORD_TEXT, AT(variables)},                                  \
        {"simulated", "x.simulated", RECORD_FLAG, AT(simulated), FLAG_WORDS},                      \
        {"version", "x.version", RECORD_INT, AT(version)},                                         \
        {"created_at", MS("x.created_at"), RECORD_TIME, AT(created_ms)},                           \
        {"changed_at", MS("x.changed_at"), RECORD_TIME, AT(changed_ms)},                           \
        {"plan_data", "NULL", RECORD_TEXT, AT(days)},                                              \
    {                                                                                              \
        NULL, "u.version", RECORD_INT, AT(seen)                                                    \
    }

static const struct record_column training_columns[] = {
    COLUMNS_OF_ALL,
    {"difficulty", "x.difficulty", RECORD_TEXT, AT(difficulty)},
    {"active", ACTIVE("training"), RECORD_FLAG, AT(active), FLAG_WORDS},
    {.type = RECORD_END},
};
static const struct record_column nutrition_columns[] = {
    COLUMNS_OF_ALL,
    {"daily_calories", "x.daily_calories", RECORD_INT, AT(daily_calories)},
    {"macro_ratio", "x.macro_ratio", RECORD_TEXT, AT(macro_ratio)},
    {"active", ACTIVE("nutrition"), RECORD_FLAG, AT(active), FLAG_WORDS},
    {.type = RECORD_END},
};

#define DAY_AT(member) offsetof(struct plan_day, member)
#define FROM(table)    table " x JOIN plan_user u ON u.uid = x.uid"
const struct plan_type plan_types[PLAN_KIND_COUNT] = {
    [PLAN_TRAINING] = {.name = "training",
                       .plans = "training_plan",
                       .days = "training_day",
                       .plan_metric = "training_plan",
                       .day_metric = "training_day",
                       .record = {FROM("training_plan"), training_columns, sizeof(struct plan)},
                       .key = key_training_plan,
                       .active_key = key_training_active,
                       .fields = {"day_type", "focus_area", "exercises", "duration",
                                  "estimated_calories"},
                       .at = {DAY_AT(day_type), DAY_AT(focus_area), DAY_AT(exercises),
                              DAY_AT(duration), DAY_AT(estimated_calories)},
                       .text = {true, true, false, false, false}},
    [PLAN_NUTRITION] = {.name = "nutrition",
                        .plans = "nutrition_plan",
                        .days = "nutrition_day",
                        .plan_metric = "nutrition_plan",
                        .day_metric = "nutrition_day",
                        .record = {FROM("nutrition_plan"), nutrition_columns, sizeof(struct plan)},
                        .plan_ms = NUTRITION_PLAN_MS,
                        .key = key_nutrition_plan,
                        .active_key = key_nutrition_active,
                        .fields = {"target_calories", "target_protein", "target_carbs",
                                   "target_fat", "meals"},
                        .at = {DAY_AT(target_calories), DAY_AT(target_protein),
                               DAY_AT(target_carbs), DAY_AT(target_fat), DAY_AT(meals)}},
};

const char *plan_kind_name(enum plan_kind k)
{
    return plan_types[k].name;
}

bool plan_kind_read(struct str name, enum plan_kind *out)
{
    for (size_t i = 0; i < PLAN_KIND_COUNT; i++)
        if (str_eq(name, str_of(plan_types[i].name))) {
            *out = (enum plan_kind)i;
            return true;
        }
    return false;
}

/* --- the whole --- */

struct plans *plans_new(struct node *n)
{
    struct plans *p = check_memory(calloc(1, sizeof *p));
    struct metrics *m = n->metrics;
    p->node = n;
    p->ask = plan_ask;
    for (size_t i = 0; i < PLAN_KIND_COUNT; i++) {
        p->plan[i] = cache_counts_new(m, plan_types[i].plan_metric);
        p->day[i] = cache_counts_new(m, plan_types[i].day_metric);
    }
    p->active = cache_counts_new(m, "active_plan");
    p->completed =
        metric(m, METRIC_COUNTER, "millrace_plans_made_total", "", "Plans that were made.");
    p->asks = metric(m, METRIC_COUNTER, "millrace_plans_replies_total", "",
                     "Replies of the AI that were to be plans.");
    p->wrong = metric(m, METRIC_COUNTER, "millrace_plans_wrong_replies_total", "",
                      "Of them, those that did not have the shape of one.");
    p->store_seconds = histogram_new(m, "millrace_plan_store_seconds",
                                     "Writing a plan to MySQL and Redis, once it is paid.");
    p->kind = (struct job_kind){.name = PLAN_QUEUE,
                                .concurrency = n->config->plan_concurrency,
                                .lease_ms = LEASE_MS,
                                .deadline_ms = n->config->plan_deadline_ms,
                                .tries_max = TRIES_MAX,
                                .backoff_ms = BACKOFF_MS,
                                .calls_ai = true,
                                .all_max = QUEUE_MAX,
                                .rows = &plan_job_rows,
                                .work = plan_work};
    jobs_add(n->jobs, &p->kind, p);
    return p;
}

void plans_free(struct plans *p)
{
    if (!p)
        return;
    histogram_free(p->store_seconds);
    free(p);
}

/* --- ids and dates --- */

bool plan_id_is(struct str id, int64_t uid, enum plan_kind *kind)
{
    struct str rest = own_id_rest(id, uid);
    if (!rest.p || rest.n == 0 || !hex_is(str_skip(rest, 1), OWN_ID_RANDOM_CHARS))
        return false;
    for (size_t i = 0; i < PLAN_KIND_COUNT; i++)
        if (rest.p[0] == plan_types[i].name[0]) {
            *kind = (enum plan_kind)i;
            return true;
        }
    return false;
}

struct str plan_id_of_task(struct arena *a, int64_t uid, enum plan_kind kind, struct str task_id)
{
    struct str random = str_skip(task_id, task_id.n - OWN_ID_RANDOM_CHARS);
    return str_printf(a, "%" PRId64 "-%c%.*s", uid, plan_types[kind].name[0], STR_ARG(random));
}

int plan_none(struct task *t)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no such plan");
}

/* time_iso of what was read is the same text: a 31st of April is read as a 1st of May. */
bool plan_date_is(struct str s)
{
    int64_t us;
    char text[TIME_ISO_BYTES];
    if (s.n != DATE_CHARS || !time_from_iso(s, &us))
        return false;
    time_iso(us, text);
    return memcmp(text, s.p, DATE_CHARS) == 0;
}

bool plan_frame_has(const struct plan_frame *f, struct str date)
{
    int64_t first, day;
    return plan_date_is(date) && time_from_iso(f->start_date, &first) &&
           time_from_iso(date, &day) && day >= first && day < first + f->weeks * 7 * DAY_US;
}

struct str plan_today(struct task *t)
{
    char text[TIME_ISO_BYTES];
    time_iso(loop_wall_ms(task_loop(t)) * 1000, text);
    return str_dup(task_arena(t), str_from(text, DATE_CHARS));
}
