/* What else the bench makes up: wire/sql.h for the rows of query_log, users, the load of a balance,
 * blocks, the rate that is left, and an application. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/ai/permits.h"
#include "engine/crew/heart_fixture.h"
#include "engine/people/admin_log.h"
#include "engine/people/switches.h"
#include "engine/people/user.h"
#include "engine/runs/reserve.h"
#include "engine/store/keys.h"

#define SQL_MS 4

/* --- wire/sql.h --- */

static struct sql_value time_or_null(int64_t ms)
{
    return ms ? sql_int(ms) : sql_null();
}

/* RUN_ROW_COLUMNS */
static void row_cells(struct task *t, const struct heart_run *r, struct sql_rows *out)
{
    const struct sql_value cells[] = {sql_int(r->uid),
                                      sql_text(str_of(r->qid)),
                                      sql_text(str_of(run_state_name(r->state))),
                                      sql_int(r->changed_ms),
                                      sql_int(r->created_ms),
                                      time_or_null(r->started_ms),
                                      time_or_null(r->ended_ms),
                                      sql_text(str_dup(task_arena(t), str_of(r->reason))),
                                      sql_text(str_of(HEART_PARAMS)),
                                      sql_null(),
                                      sql_int(0),
                                      sql_int(r->units * r->unit_papers),
                                      sql_int(0),
                                      sql_int(0),
                                      sql_int(0),
                                      sql_int(0),
                                      sql_int(0),
                                      sql_int(0),
                                      sql_null()};
    *out = (struct sql_rows){.count = 1, .columns = sizeof cells / sizeof *cells};
    struct sql_value *copy = ARENA_ARRAY(task_arena(t), struct sql_value, out->columns);
    memcpy(copy, cells, sizeof cells);
    out->cells = copy;
}

/* What the keeper reads. */
static void brief_cells(struct task *t, struct heart_world *w, struct str after,
                        struct sql_rows *out)
{
    enum { COLUMNS = 5 };
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, COLUMNS * HEART_RUNS);
    *out = (struct sql_rows){.columns = COLUMNS, .cells = cells};
    for (size_t i = 0; i < w->run_count; i++) {
        const struct heart_run *r = &w->runs[i];
        struct sql_value *c = cells + COLUMNS * out->count;
        if (after.n && strcmp(r->qid, after.p) <= 0)
            continue;
        c[0] = sql_int(r->uid);
        c[1] = sql_text(str_of(r->qid));
        c[2] = sql_text(str_of(run_state_name(r->state)));
        c[3] = sql_int(r->changed_ms);
        c[4] = sql_int(r->ended_ms != 0);
        out->count++;
    }
}

static void update_row(struct task *t, struct heart_run *r, const struct sql_value *argv)
{
    int64_t now_ms = loop_wall_ms(task_loop(t));
    check(run_state_parse(argv[0].s, &r->state));
    snprintf(r->reason, sizeof r->reason, "%.*s", STR_ARG(argv[1].s));
    r->changed_ms = now_ms > r->changed_ms ? now_ms : r->changed_ms + 1;
    if (r->state == RUN_RUNNING && !r->started_ms)
        r->started_ms = now_ms;
    if (run_state_final(r->state))
        r->ended_ms = now_ms;
}

static bool has(const char *statement, const char *part)
{
    return strstr(statement, part) != NULL;
}

/* The few statements of run.c and keeper.c. */
static int execute(struct task *t, struct heart_world *w, const char *statement,
                   const struct sql_value *argv, struct sql_rows *out)
{
    struct sql_rows unseen;
    out = out ? out : &unseen;
    *out = (struct sql_rows){.count = 0};
    if (has(statement, "UPDATE query_log SET status = ?")) {
        update_row(t, heart_run_of(w, argv[4].s), argv);
    } else if (has(statement, "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE query_id = ?")) {
        const struct heart_run *r = heart_run_of(w, argv[0].s);
        if (r)
            row_cells(t, r, out);
    } else if (has(statement, "SELECT uid, query_id, status,")) {
        brief_cells(t, w, argv[0].s, out);
    } else if (has(statement, "SELECT banned FROM user_info")) {
        static const struct sql_value no = {.type = SQL_INT, .i = 0};
        *out = (struct sql_rows){.count = 1, .columns = 1, .cells = &no};
    } else { /* the sweep: nothing is older than seven days, and no user is banned */
        bool sweep = has(statement, "status = 'PAUSED' AND changed_at <") ||
                     has(statement, "FROM query_log JOIN user_info USING (uid)");
        if (!sweep)
            fprintf(stderr, "the bench has no answer to: %s\n", statement);
        check(sweep);
    }
    return 0;
}

/* Draws the faults of a statement. Returns 0, or an error without executing it. *after: an error to
 * return although it was executed. */
static int travel(struct task *t, struct heart_world *w, int *after)
{
    *after = heart_chance(w, w->sql_faults) ? ERR_UNCERTAIN : 0;
    if (task_canceled(t))
        return ERR_CANCELED;
    if (heart_chance(w, w->sql_faults))
        return task_fail(t, ERR_UNAVAILABLE, "MySQL is away");
    int err = task_sleep(t, heart_random(w, 0, SQL_MS));
    if (!err && heart_chance(w, w->sql_faults))
        err = task_fail(t, ERR_UNCERTAIN, "MySQL was lost");
    return err;
}

int sql_argv(struct task *t, struct sql_pool *p, const char *statement, size_t argc,
             const struct sql_value *argv, struct sql_rows *out)
{
    (void)argc;
    int after, err = travel(t, p->world, &after);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* these only read */
    return execute(t, p->world, statement, argv, out);
}

int sql_on_argv(struct task *t, struct sql *c, const char *statement, size_t argc,
                const struct sql_value *argv, struct sql_rows *out)
{
    (void)argc;
    return execute(t, ((struct sql_pool *)(void *)c)->world, statement, argv, out);
}

/* The body never waits, so the transaction is isolated. */
int sql_tx(struct task *t, struct sql_pool *p,
           int (*body)(struct task *t, struct sql *c, void *arg), void *arg)
{
    int after, err = travel(t, p->world, &after);
    if (!err)
        err = body(t, (struct sql *)(void *)p, arg);
    return !err && after ? task_fail(t, after, "MySQL was lost") : err;
}

int admin_audit_add(struct task *t, struct sql *c, const struct admin_deed *d)
{
    (void)t, (void)c, (void)d;
    check(!"no admin is at work here");
    return 0;
}

/* --- users and their money --- */

bool switch_on(const struct switches *s, enum switch_name n)
{
    (void)s, (void)n;
    return true;
}

int switch_read(struct task *t, struct sql *c, enum switch_name n, bool *on)
{
    (void)t, (void)c, (void)n;
    *on = true;
    return 0;
}

bool cache_trusts_redis(const struct cache *c)
{
    (void)c;
    return true;
}

void cache_touch(struct task *t, struct cache *c, int64_t uid)
{
    (void)t, (void)c, (void)uid;
}

/* The cache is the world. */
int user_get(struct task *t, struct cache *c, int64_t uid, struct user *out)
{
    struct heart_world *w = (struct heart_world *)(void *)c;
    if (heart_chance(w, w->sql_faults))
        return task_fail(t, ERR_UNAVAILABLE, "MySQL is away");
    *out = (struct user){.uid = uid, .permission = w->users[uid - 1].permission};
    return 0;
}

/* Puts what is left into Redis, as ledger_load.lua does, and says that it is of this run. */
int ledger_bench_load(struct task *t, struct redis *r, struct cache *c, int64_t uid, int64_t *cents)
{
    struct heart_world *w = (struct heart_world *)(void *)c;
    const struct heart_user *u = &w->users[uid - 1];
    struct arena *a = &w->scratch;
    if (!r->up || r->dead)
        return task_fail(t, ERR_UNAVAILABLE, "Redis is away");
    struct arena_mark mark = arena_mark(a);
    redis_model_clock(w->model, loop_wall_ms(w->loop));
    *cents = u->deposited - u->spent;
    redis_model_call(w->model, a, STR("SET"), key_balance(a, uid), str_int(a, *cents));
    redis_model_call(w->model, a, STR("HSET"), key_ledger(a, uid), STR("run"),
                     redis_model_run_id(w->model));
    arena_reset(a, mark);
    return 0;
}

/* A user there has money enough, or a run that says so itself. */
int run_reserve_retry(struct task *t, const struct runs *r, struct sql *c,
                      const struct run_row *row, bool *loaded)
{
    (void)t, (void)r, (void)c, (void)row;
    *loaded = true;
    return 0;
}

/* --- papers and rate --- */

static const char bibtex[] = "@article{x, title = {A title}, abstract = {What it is about.}}";

int blocks_pick_packed(struct task *t, struct blocks *b, struct block_pick *wants, size_t count)
{
    struct heart_world *w = (struct heart_world *)(void *)b;
    if (heart_chance(w, w->redis_faults))
        return task_fail(t, ERR_UNAVAILABLE, "Redis is away");
    for (size_t i = 0; i < count; i++)
        wants[i].packed = str_of(bibtex);
    return task_sleep(t, heart_random(w, 0, SQL_MS));
}

int block_unpack(struct task *t, struct blocks *b, struct arena *a, struct str packed,
                 struct str *out)
{
    (void)t, (void)b, (void)a;
    *out = packed;
    return 0;
}

int permits_load(struct task *t, struct permits *k, struct permits_load *out)
{
    (void)t;
    const struct heart_world *w = (const struct heart_world *)(const void *)k; /* as the cache */
    *out = (struct permits_load){.requests_limit = w->requests_limit,
                                 .requests_used = w->jobs_requests,
                                 .jobs_requests = w->jobs_requests,
                                 .jobs_share = 20,
                                 .tokens_limit = 1000 * w->requests_limit};
    return 0;
}

/* --- an application --- */

static const struct heart_world *world_of(const struct node *n)
{
    return (const struct heart_world *)(const void *)n->cache;
}

static int split(struct task *t, const struct node *n, const struct app_run *run,
                 struct str **units, size_t *count)
{
    const struct heart_run *r = heart_run_of((struct heart_world *)world_of(n), run->id.qid);
    *count = (size_t)r->units;
    *units = ARENA_ARRAY(task_arena(t), struct str, *count);
    for (size_t i = 0; i < *count; i++)
        (*units)[i] = str_printf(task_arena(t), "u%zu", i);
    return 0;
}

static int papers(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **out, size_t *count)
{
    const struct heart_run *r = heart_run_of((struct heart_world *)world_of(n), run->id.qid);
    int64_t number = 0;
    check(str_to_i64(str_from(unit.p + 1, unit.n - 1), &number));
    *count = (size_t)r->unit_papers;
    *out = ARENA_ARRAY(task_arena(t), struct app_paper, *count);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] =
            (struct app_paper){.doi = str_printf(task_arena(t), "10.5/%s.%lld", r->qid,
                                                 (long long)number * r->unit_papers + (long long)i),
                               .journal = STR("J"),
                               .year = 2020,
                               .cents = r->cents};
    return 0;
}

static const void *open_run(struct arena *a, const struct node *n, const struct app_run *run)
{
    (void)a, (void)n, (void)run;
    return NULL;
}

static const struct application heart_application = {"heart", split, papers, open_run, heart_judge};
const struct application *const heart_applications[] = {&heart_application, NULL};
