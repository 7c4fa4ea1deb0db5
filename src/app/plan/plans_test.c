/* Plans on real stores: read, changed, and never old, whatever Redis does. */
#include "app/plan/plan_fixture.h"

static struct world world;
static struct world *const w = &world;
static int64_t uid;

/* A plan as a task would have stored it, with nothing in Redis. */
struct storing {
    struct plan plan;
    struct plan_shape shape;
    bool active;
};

static int store_body(struct task *t, struct sql *c, void *arg)
{
    struct storing *s = arg;
    struct plan_owner o;
    int err = plan_owner_lock(t, c, uid, &o);
    if (!err)
        err = plan_insert(t, c, &s->plan, &s->shape);
    return err || !s->active ? err : plan_owner_activate(t, c, uid, s->plan.kind, s->plan.id, &o);
}

static struct str add_plan(struct task *t, enum plan_kind kind, bool active)
{
    static int64_t number;
    struct arena *a = task_arena(t);
    struct plan_frame f = {kind, STR(START), 2};
    struct storing s = {.active = active};
    shape_of(a, &f, &s.shape);
    s.plan = (struct plan){.kind = kind,
                           .id = plan_id_of_task(a, uid, kind, own_id_new(t, uid)),
                           .uid = uid,
                           .number = ++number,
                           .name = s.shape.name,
                           .start_date = f.start_date,
                           .end_date = plan_date(a, &f, 13),
                           .weeks = 2,
                           .difficulty = s.shape.difficulty,
                           .daily_calories = s.shape.daily_calories,
                           .macro_ratio = s.shape.macro_ratio,
                           .template_id = 1,
                           .template_version = 1,
                           .version = 1,
                           .variables = STR("{\"weeks\":2}")};
    check(sql_tx(t, w->node.sql, store_body, &s) == 0);
    pause_ms(t, 1100); /* its untold change is told */
    return s.plan.id;
}

static void begin(struct task *t)
{
    open_world(t, w);
    uid = add_user(t, w, 1000);
}

static void end(struct task *t)
{
    close_world(t, w);
}

static const struct json *day_with(struct task *t, const char *date, const char *area)
{
    const struct json *j;
    struct str text = str_printf(task_arena(t),
                                 "{\"date\":\"%s\",\"day_type\":\"strength\",\"focus_area\":\"%s\","
                                 "\"exercises\":[{\"name\":\"row\",\"sets\":3,\"reps\":8}],"
                                 "\"duration\":30,\"estimated_calories\":200}",
                                 date, area);
    check(json_parse(task_arena(t), text, &j, NULL) == 0);
    return j;
}

static int put(struct task *t, struct str id, const char *date, int64_t version, const char *area)
{
    struct plan_date d;
    const char *complaint;
    return plan_date_put(t, w->plans, uid, id, str_of(date), version, day_with(t, date, area), &d,
                         &complaint);
}

static struct str area(struct task *t, struct str id, const char *date)
{
    struct plan_date d;
    int err = plan_date_get(t, w->plans, uid, id, str_of(date), &d);
    return err ? str_of(err_name(err)) : d.day.focus_area;
}

static int64_t hits(enum plan_kind k)
{
    return *w->plans->day[k].hits;
}

/* --- reading --- */

static void test_read(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    struct plan x;
    struct plan_date d;
    is_int(plan_get(t, w->plans, uid, id, &x), 0, "a plan is read");
    is_str(x.end_date, STR("2026-03-15"), "to its end");
    ok(x.active && str_starts(x.days, STR("[{\"date\":\"" START "\"")), "active, with its days");
    int64_t loads = *w->plans->plan[PLAN_TRAINING].loads;
    struct str before = str_dup(task_arena(t), x.days);
    is_int(plan_get(t, w->plans, uid, id, &x), 0, "and again");
    is_int(*w->plans->plan[PLAN_TRAINING].loads, loads, "from Redis");
    is_str(x.days, before, "the same");
    is_int(plan_active(t, w->plans, uid, PLAN_TRAINING, &x), 0, "it is the active one");
    is_str(x.id, id, "by its id");
    is_int(plan_active(t, w->plans, uid, PLAN_NUTRITION, &x), ERR_NOT_FOUND, "of its kind alone");
    is_str(area(t, id, START), STR("lower_body"), "a day");
    int64_t seen = hits(PLAN_TRAINING);
    is_int(plan_date_get(t, w->plans, uid, id, STR(START), &d), 0, "and again");
    is_int(hits(PLAN_TRAINING), seen + 1, "from Redis");
    ok(d.version == 1 && str_starts(d.day.exercises, STR("[{\"name\":\"squat\"")), "with all");
    is_str(area(t, id, "2026-03-16"), STR("not_found"), "a day that it does not have");
    is_str(area(t, id, "2026-02-30"), STR("not_found"), "a day that no month has");
    end(t);
}

static void test_foreign(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true), was;
    int64_t other = add_user(t, w, 0);
    struct plan x;
    struct plan_date d;
    const char *complaint;
    check(plan_get(t, w->plans, uid, id, &x) == 0);
    is_int(plan_get(t, w->plans, other, id, &x), ERR_NOT_FOUND, "another user's plan");
    is_int(plan_date_get(t, w->plans, other, id, STR(START), &d), ERR_NOT_FOUND, "a day of it");
    is_int(plan_date_put(t, w->plans, other, id, STR(START), 1, day_with(t, START, "x"), &d,
                         &complaint),
           ERR_NOT_FOUND, "which cannot be changed");
    is_int(plan_activate(t, w->plans, other, id, &was), ERR_NOT_FOUND, "nor activated");
    is_int(plan_delete(t, w->plans, other, id), ERR_NOT_FOUND, "nor deleted");
    /* An id that has the right beginning, and a row that is another user's. */
    struct str forged = plan_id_of_task(task_arena(t), other, PLAN_TRAINING, own_id_new(t, other));
    check(sql_call(t, w->node.sql, NULL, "UPDATE training_plan SET id = ? WHERE id = ?",
                   sql_text(forged), sql_text(id)) == 0);
    check(sql_call(t, w->node.sql, NULL, "UPDATE training_day SET plan_id = ? WHERE plan_id = ?",
                   sql_text(forged), sql_text(id)) == 0);
    sql_do(t, w, "INSERT INTO plan_user (uid, version) VALUES (?, 1)",
           str_int(task_arena(t), other));
    is_int(plan_get(t, w->plans, other, forged, &x), ERR_NOT_FOUND, "the row counts, too");
    is_int(plan_date_get(t, w->plans, other, forged, STR(START), &d), ERR_NOT_FOUND, "of a day");
    is_int(plan_delete(t, w->plans, other, forged), ERR_NOT_FOUND, "of a change");
    end(t);
}

/* --- changing --- */

static void test_put(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    struct plan x;
    struct plan_date d;
    const char *complaint;
    check(plan_get(t, w->plans, uid, id, &x) == 0);
    is_str(area(t, id, START), STR("lower_body"), "as it was made");
    is_int(put(t, id, START, 1, "back"), 0, "a day is changed");
    is_str(area(t, id, START), STR("back"), "and read so");
    is_int(put(t, id, START, 1, "arms"), ERR_CONFLICT, "by a version that is stale: %s",
           task_error(t));
    is_int(put(t, id, "2026-03-16", 1, "arms"), ERR_NOT_FOUND, "a day that it does not have");
    check(plan_get(t, w->plans, uid, id, &x) == 0);
    ok(x.version == 2 && str_find(x.days, STR("\"back\"")) > 0, "the plan has it, too");
    is_int(plan_date_put(t, w->plans, uid, id, STR(START), 2, day_with(t, "2026-03-03", "x"), &d,
                         &complaint),
           ERR_INVALID, "a day of another date");
    const struct json *none;
    check(json_parse(task_arena(t), STR("{\"date\":\"" START "\",\"day_type\":\"strength\"}"),
                     &none, NULL) == 0);
    is_int(plan_date_put(t, w->plans, uid, id, STR(START), 2, none, &d, &complaint), ERR_INVALID,
           "a day without exercises: %s", complaint);
    is_str(area(t, id, START), STR("back"), "change nothing");
    end(t);
}

static void test_activate(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str first = add_plan(t, PLAN_NUTRITION, true),
               second = add_plan(t, PLAN_NUTRITION, false), was;
    struct plan x;
    struct plan_date d;
    check(plan_date_get(t, w->plans, uid, first, STR(START), &d) == 0);
    is_str(
        ask_redis(t, w, STR("HGET"), key_nutrition_day(task_arena(t), uid, STR(START)), "plan_id"),
        first, "the day of the active plan is kept");
    check(plan_date_get(t, w->plans, uid, second, STR(START), &d) == 0);
    is_str(
        ask_redis(t, w, STR("HGET"), key_nutrition_day(task_arena(t), uid, STR(START)), "plan_id"),
        first, "that of another one is not");
    is_int(plan_activate(t, w->plans, uid, second, &was), 0, "the other is activated");
    is_str(was, first, "instead of the first");
    is_int(plan_active(t, w->plans, uid, PLAN_NUTRITION, &x), 0, "so it is");
    is_str(x.id, second, "read");
    check(plan_get(t, w->plans, uid, first, &x) == 0);
    ok(!x.active, "the first is active no more");
    check(plan_date_get(t, w->plans, uid, second, STR(START), &d) == 0);
    is_str(d.plan_id, second, "its day is its own");
    is_int(plan_activate(t, w->plans, uid, second, &was), 0, "again");
    is_str(was, second, "changes nothing");
    is_int(plan_delete(t, w->plans, uid, second), 0, "deleted");
    is_int(plan_active(t, w->plans, uid, PLAN_NUTRITION, &x), ERR_NOT_FOUND, "none is active");
    is_int(plan_get(t, w->plans, uid, second, &x), ERR_NOT_FOUND, "it is gone");
    struct role_turn turn = {.locked = false};
    is_int(plans_sweep_role(t, w->plans, &turn), 0, "swept");
    is_str(ask_redis(t, w, STR("EXISTS"), key_nutrition_plan(task_arena(t), second), NULL),
           STR("0"), "out of Redis");
    is_str(sql_word(t, w, "SELECT COUNT(*) FROM nutrition_day WHERE plan_id = ?", second), STR("0"),
           "and out of MySQL");
    end(t);
}

static void test_pages(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str a = add_plan(t, PLAN_TRAINING, true), b = add_plan(t, PLAN_NUTRITION, true),
               c = add_plan(t, PLAN_TRAINING, false);
    struct plan_page page;
    check(plan_list(t, w->plans, uid, 3, INT64_MAX, 2, &page) == 0);
    ok(page.count == 2 && str_eq(page.list[0].id, c) && str_eq(page.list[1].id, b) && page.next,
       "the newest first, of both kinds");
    check(plan_list(t, w->plans, uid, 3, page.next, 2, &page) == 0);
    ok(page.count == 1 && str_eq(page.list[0].id, a) && !page.next, "then the rest");
    check(plan_list(t, w->plans, uid, 1U << PLAN_NUTRITION, INT64_MAX, 2, &page) == 0);
    ok(page.count == 1 && str_eq(page.list[0].id, b), "or of one kind");
    ok(!page.list[0].days.p && page.list[0].active, "without days");
    end(t);
}

/* --- nothing old comes back --- */

/* A loader has read a day, a change is made, and then it fills Redis. */
static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    struct plan_date d = {.kind = PLAN_TRAINING, .plan_id = id, .day.date = STR(START)};
    struct plan_snapshot at;
    bool active;
    check(plan_date_load(t, w->plans, uid, &d, &active, &at) == 0);
    check(put(t, id, START, 1, "back") == 0);
    struct plan_entry e = plan_date_entry(task_arena(t), uid, &d);
    check(plan_fill(t, w->plans, uid, &at, &e, 1) == 0);
    is_str(area(t, id, START), STR("back"), "what was read before a change is refused");
    end(t);
}

/* Another node has changed a day, and died before it told Redis. */
static void test_outbox(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    is_str(area(t, id, START), STR("lower_body"), "in Redis");
    sql_do(t, w,
           "UPDATE training_day SET day = REPLACE(day, 'lower_body', 'back'),"
           " version = 2 WHERE plan_id = ?",
           id);
    sql_do(t, w, "UPDATE plan_user SET version = version + 1, untold = 1 WHERE uid = ?",
           str_int(task_arena(t), uid));
    pause_ms(t, 1200);
    is_str(area(t, id, START), STR("back"), "the role tells Redis");
    is_str(
        sql_word(t, w, "SELECT untold FROM plan_user WHERE uid = ?", str_int(task_arena(t), uid)),
        STR("0"), "once");
    end(t);
}

static void kill_redis(struct task *t)
{
    store_redis_kill(&store);
    while (redis_up(w->node.redis))
        pause_ms(t, 2);
}

static void revive_redis(struct task *t)
{
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    await_trust(t, w);
}

/* Redis saves, a day is changed, and Redis comes back as it was before. */
static void test_older_redis(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    struct plan x;
    check(plan_get(t, w->plans, uid, id, &x) == 0 && plan_active(t, w->plans, uid, 0, &x) == 0);
    is_str(area(t, id, START), STR("lower_body"), "in Redis, which saves");
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    check(put(t, id, START, 1, "back") == 0);
    pause_ms(t, 1200); /* the outbox is empty: nothing but the fence knows */
    kill_redis(t);
    revive_redis(t);
    is_str(
        ask_redis(t, w, STR("HGET"), key_training_day(task_arena(t), id, STR(START)), "focus_area"),
        STR("lower_body"), "it comes back with the old day");
    is_str(area(t, id, START), STR("back"), "which is not read");
    check(plan_get(t, w->plans, uid, id, &x) == 0);
    ok(str_find(x.days, STR("\"back\"")) > 0, "nor is the old plan");
    end(t);
}

static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true);
    struct plan x;
    struct plan_date d;
    is_str(area(t, id, START), STR("lower_body"), "in Redis");
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    kill_redis(t);
    is_int(plan_get(t, w->plans, uid, id, &x), 0, "without Redis plans are read");
    ok(x.degraded, "and marked");
    is_int(put(t, id, START, 1, "back"), 0, "a day is changed");
    is_int(plan_date_get(t, w->plans, uid, id, STR(START), &d), 0, "and read");
    ok(d.degraded && str_eq(d.day.focus_area, STR("back")), "as it is");
    revive_redis(t);
    is_str(area(t, id, START), STR("back"), "when Redis is back, too");
    end(t);
}

/* The warm-up reads the plans of users who were here lately. */
static void test_warm(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct str id = add_plan(t, PLAN_TRAINING, true), number = str_int(task_arena(t), uid);
    struct str today = plan_today(t);
    struct role_turn turn = {.locked = false};
    sql_do(t, w,
           "UPDATE training_day SET date = UTC_DATE() WHERE date = '" START "' AND plan_id = ?",
           id);
    sql_do(t, w,
           "INSERT INTO session (sid, kind, uid, login_time, last_activity, ip_address,"
           " user_agent) VALUES (UUID(), 'user', ?, UTC_TIMESTAMP(3),"
           " UTC_TIMESTAMP(3) - INTERVAL 8 DAY, '', '')",
           number);
    is_int(plans_warm_role(t, w->plans, &turn), 0, "a warm-up");
    is_str(ask_redis(t, w, STR("EXISTS"), key_training_plan(task_arena(t), id), NULL), STR("0"),
           "passes over users who were not here this week");
    sql_do(t, w, "UPDATE session SET last_activity = UTC_TIMESTAMP(3) WHERE uid = ?", number);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("DEL"), key_plans_warmed) == 0);
    is_int(plans_warm_role(t, w->plans, &turn), 0, "another");
    is_str(ask_redis(t, w, STR("EXISTS"), key_training_plan(task_arena(t), id), NULL), STR("1"),
           "loads the active plan");
    is_str(ask_redis(t, w, STR("EXISTS"), key_training_day(task_arena(t), id, today), NULL),
           STR("1"), "and its day of today");
    is_str(ask_redis(t, w, STR("GET"), key_training_active(task_arena(t), uid), NULL), id,
           "and which one it is");
    end(t);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        test_read,        test_foreign, test_put,         test_activate,      test_pages,
        test_slow_loader, test_outbox,  test_older_redis, test_without_redis, test_warm};
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
