/* Names of keys: on a single Redis as they have always been, on a cluster with a hash tag that
 * keeps together what one script touches. */
#include "engine/store/keys.h"

#include "engine/store/scripts.h"
#include "tests/tap.h"
#include "wire/redis/redis_slot.h"

static struct arena arena, *a = &arena;

#define Q STR("q7")

/* Expressions, made anew in each mode. */
#define NAMES(X)                                                                                   \
    X(key_tags, "sys:tags:info", "{sys}:tags:info")                                                \
    X(key_prices, "sys:journals:price", "{sys}:journals:price")                                    \
    X(key_catalog_lock, "sys:lock:catalog", "{sys}:lock:catalog")                                  \
    X(key_queue, "sys:queue", "{sys}:queue")                                                       \
    X(key_nodes_lost, "sys:nodes:lost", "{sys}:nodes:lost")                                        \
    X(key_template_categories, "template:categories", "{sys}:template:categories")                 \
    X(key_tag_journals(a, STR("T{x}")), "sys:tag_journals:T{x}", "{sys}:tag_journals:T{x}")        \
    X(key_year_numbers(a, STR("J{x}")), "contentlist_year_number:J{x}",                            \
      "{sys}:contentlist_year_number:J{x}")                                                        \
    X(key_block_name(a, STR("J: K"), 2024), "meta:J: K:2024", "meta:J: K:2024")                    \
    X(key_block(a, STR("J: K"), 2024), "meta:J: K:2024", "{meta:J: K:2024}")                       \
    X(key_block_lock(a, STR("J"), 2024), "sys:lock:{meta:J:2024}", "sys:lock:{meta:J:2024}")       \
    X(key_block_aside(a, STR("J"), 2024, STR("t")), "sys:aside:{meta:J:2024}:t",                   \
      "sys:aside:{meta:J:2024}:t")                                                                 \
    X(key_user_info(a, 42), "user:42:info", "user:{42}:info")                                      \
    X(key_user_sessions(a, 42), "user:42:session", "user:{42}:session")                            \
    X(key_session(a, STR("s")), "session:s", "session:s")                                          \
    X(key_history(a, 42), "user:42:history", "user:{42}:history")                                  \
    X(key_unfinished(a, 42), "user:42:unfinished", "user:{42}:unfinished")                         \
    X(key_streams(a, 42), "user:42:streams", "user:{42}:streams")                                  \
    X(key_admin_info(a, 1), "admin:1:info", "admin:{1}:info")                                      \
    X(key_admin_sessions(a, 1), "admin:1:session", "admin:{1}:session")                            \
    X(key_admin_session(a, STR("s")), "admin:session:s", "admin:session:s")                        \
    X(key_attempts_of(a, "user", "name", STR("{}")), "sys:attempts:user:name:{}",                  \
      "{sys}:attempts:user:name:{}")                                                               \
    X(key_balance(a, 42), "user:42:balance", "user:{42}:balance")                                  \
    X(key_ledger(a, 42), "user:42:ledger", "user:{42}:ledger")                                     \
    X(key_billing_queue(a, 42), "billing_queue:42", "billing_queue:{42}")                          \
    X(key_deductions(a, 42), "user:42:deductions", "user:{42}:deductions")                         \
    X(key_aside(a, 42), "user:42:aside", "user:{42}:aside")                                        \
    X(key_query_status(a, 42, Q), "query:42:q7:status", "query:{42}:q7:status")                    \
    X(key_query_info(a, 42, Q), "query:42:q7:info", "query:{42}:q7:info")                          \
    X(key_pause_signal(a, 42, Q), "query:42:q7:pause_signal", "query:{42}:q7:pause_signal")        \
    X(key_terminate_signal(a, 42, Q), "query:42:q7:terminate_signal",                              \
      "query:{42}:q7:terminate_signal")                                                            \
    X(key_pending(a, 42, Q), "task:42:q7:pending_blocks", "task:{42}:q7:pending_blocks")           \
    X(key_inflight(a, 42, Q), "task:42:q7:inflight", "task:{42}:q7:inflight")                      \
    X(key_vain(a, 42, Q), "task:42:q7:vain", "task:{42}:q7:vain")                                  \
    X(key_result(a, 42, Q), "result:42:q7", "result:{42}:q7")                                      \
    X(key_failed(a, 42, Q), "query:42:q7:failed", "query:{42}:q7:failed")                          \
    X(key_progress(a, 42, Q), "progress:42:q7:finished_count", "progress:{42}:q7:finished_count")  \
    X(key_arrivals(a, 42, Q), "result:42:q7:arrivals", "result:{42}:q7:arrivals")                  \
    X(key_relevant(a, 42, Q), "result:42:q7:relevant", "result:{42}:q7:relevant")                  \
    X(key_chunk(a, 42, Q, 3), "distill_chunk:42:q7:3", "distill_chunk:{42}:q7:3")                  \
    X(key_workers(a, 42), "user:42:workers", "user:{42}:workers")                                  \
    X(key_downloads_of(a, 42), "user:42:downloads", "user:{42}:downloads")                         \
    X(key_download_status(a, 42, Q), "download:42:q7:status", "download:{42}:q7:status")           \
    X(key_download_piece(a, 42, Q, 1), "download:42:q7:file:1", "download:{42}:q7:file:1")         \
    X(key_search(a, 42, Q), "user:42:search:q7", "user:{42}:search:q7")                            \
    X(key_jobs(a, "download"), "download_queue", "jobs:{download}")                                \
    X(key_jobs(a, "plan"), "jobs:plan", "jobs:{plan}")                                             \
    X(key_jobs_part(a, "plan", "leases"), "jobs:plan:leases", "jobs:{plan}:leases")                \
    X(key_user_limits(a, 42), "user:42:limits", "user:{42}:limits")                                \
    X(key_pool(a, "titles", 7), "titles:pool:7", "titles:pool:{7}")                                \
    X(key_pool_filling(a, "titles", 7), "titles:pool:7:filling", "titles:pool:{7}:filling")        \
    X(key_pool_state(a, "titles", 7), "sys:pool:{titles:pool:7}", "sys:pool:titles:pool:{7}")      \
    X(key_pool_request(a, "titles", 7, 42, Q), "sys:pool:{titles:pool:7}:request:42:q7",           \
      "sys:pool:titles:pool:{7}:request:42:q7")                                                    \
    X(key_template(a, STR("{c}"), 3), "template:{c}:3", "{sys}:template:{c}:3")                    \
    X(key_template_default(a, STR("c")), "template:c:default", "{sys}:template:c:default")         \
    X(key_training_plan(a, STR("42-ab")), "training_plan:42-ab", "training_plan:{42}-ab")          \
    X(key_nutrition_plan(a, STR("42-ab")), "nutrition_plan:42-ab", "nutrition_plan:{42}-ab")       \
    X(key_training_active(a, 42), "training_plan:42:active", "training_plan:{42}:active")          \
    X(key_nutrition_active(a, 42), "nutrition_plan:42:active", "nutrition_plan:{42}:active")       \
    X(key_training_day(a, STR("42-ab"), STR("d")), "training_plan:42-ab:schedule:d",               \
      "training_plan:{42}-ab:schedule:d")                                                          \
    X(key_nutrition_day(a, 42, STR("d")), "daily_nutrition:42:d", "daily_nutrition:{42}:d")        \
    X(key_plans(a, 42), "user:42:plans", "user:{42}:plans")                                        \
    X(key_generation_task(a, STR("42-ab")), "generation_task:42-ab", "generation_task:{42}-ab")    \
    X(key_pending_tasks(a, 42), "user:42:pending_tasks", "user:{42}:pending_tasks")                \
    X(key_permits(a, "chat"), "sys:keyring", "{sys}:keyring")                                      \
    X(key_permits(a, "embed"), "sys:keyring:service:embed", "{sys}:keyring:service:embed")         \
    X(key_key_errors, "sys:keyring:errors", "{sys}:keyring:errors")                                \
    X(key_window(a, 9), "sys:window:9", "{sys}:window:9")                                          \
    X(key_api_limit(a, 9, "day"), "api_limit:9:day", "{sys}:api_limit:9:day")

static void names(void)
{
#define SINGLE(made, single, cluster) is_str(made, STR(single), "%s", single);
    NAMES(SINGLE)
    keys_on_cluster(true);
    ok(keys_are_on_cluster(), "on a cluster");
#define CLUSTER(made, single, cluster) is_str(made, STR(cluster), "%s", cluster);
    NAMES(CLUSTER)
    keys_on_cluster(false);
    NAMES(SINGLE)
}

/* Journals with braces, as hostile as they get. */
static void blocks(void)
{
    struct str odd = str_from("A:{}\0b%s", 8);
    is_str(key_block(a, odd, -1), str_from("meta:A:{}\0b%s:-1", 16), "byte for byte");
    static const char *const journals[] = {"A{b}c", "{", "}", "{}", "}{", "a}b{c}"};
    keys_on_cluster(true);
    for (size_t i = 0; i < sizeof journals / sizeof *journals; i++) {
        struct str j = str_of(journals[i]), tag = redis_hash_tag(key_block(a, j, 2024));
        ok(tag.n > 0 && str_eq(tag, redis_hash_tag(key_block_lock(a, j, 2024))) &&
               str_eq(tag, redis_hash_tag(key_block_aside(a, j, 2024, STR("t")))),
           "lock and aside of journal %s are where its block is", journals[i]);
    }
    keys_on_cluster(false);
}

/* --- what each script touches --- */

#define KEYS_MAX 16

struct row {
    const char *script, *tag; /* tag NULL: its keys are in two groups yet */
    struct str keys[KEYS_MAX];
};

static void check_row(const struct row *r)
{
    size_t n = 0;
    bool same = true;
    struct str first = redis_hash_tag(r->keys[0]);
    for (; n < KEYS_MAX && r->keys[n].p; n++)
        same &= str_eq(redis_hash_tag(r->keys[n]), first);
    if (r->tag)
        ok(same && str_eq(first, str_of(r->tag)), "script %s: %zu keys of {%s}", r->script, n,
           r->tag);
    else
        ok(!same, "script %s: its keys are in two groups", r->script);
}

#define RUN(script, ...)                                                                           \
    {                                                                                              \
        script, "42",                                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SYS(script, ...)                                                                           \
    {                                                                                              \
        script, "sys",                                                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define STATUS    key_query_status(a, 42, Q)
#define PENDING   key_pending(a, 42, Q)
#define INFLIGHT  key_inflight(a, 42, Q)
#define VAIN      key_vain(a, 42, Q)
#define PAUSE     key_pause_signal(a, 42, Q)
#define TERMINATE key_terminate_signal(a, 42, Q)
#define LEDGER    key_balance(a, 42), key_ledger(a, 42), key_billing_queue(a, 42)
#define RESULTS                                                                                    \
    key_result(a, 42, Q), STATUS, key_progress(a, 42, Q), key_failed(a, 42, Q),                    \
        key_arrivals(a, 42, Q), key_relevant(a, 42, Q)
#define JOBS(part)  key_jobs_part(a, "plan", part)
#define PLANS       key_plans(a, 42), key_training_active(a, 42), key_nutrition_active(a, 42)
#define POOL        key_pool(a, "titles", 7)
#define POOL_STATE  key_pool_state(a, "titles", 7)
#define POOL_ASK    key_pool_request(a, "titles", 7, 42, Q)
#define ID          STR("42-ab")
#define ATTEMPT     key_attempts_of(a, "user", "pair", STR("x{y}z"))
#define STATUS_FILE key_download_status(a, 42, Q)

static struct str seen[128];
static size_t seen_count;

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check(seen_count < sizeof seen / sizeof *seen);
        seen[seen_count++] = str_of(rows[i].script);
        check_row(&rows[i]);
    }
}

static void scripts_of_users(void)
{
    const struct row rows[] = {
        RUN("download_begin", STATUS_FILE),
        RUN("download_fail", STATUS_FILE),
        RUN("download_finish", STATUS_FILE, key_downloads_of(a, 42)),
        RUN("download_save", STATUS_FILE, key_download_piece(a, 42, Q, 1)),
        RUN("plan_fill", PLANS, key_training_plan(a, ID), key_training_day(a, ID, Q),
            key_nutrition_plan(a, ID), key_nutrition_day(a, 42, Q)),
        RUN("plan_progress", key_generation_task(a, ID), key_pending_tasks(a, 42)),
        RUN("plan_tell", PLANS, key_training_day(a, ID, Q), key_nutrition_day(a, 42, Q)),
        RUN("stream_open", key_streams(a, 42)),
        RUN("workers_claim", key_workers(a, 42)),
        RUN("limit_count", key_user_limits(a, 42)),
        RUN("sweep_user", key_user_info(a, 42), key_history(a, 42)),
        RUN("cache_changed", key_user_info(a, 42)),
        RUN("cache_fill", key_user_info(a, 42)),
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void scripts_of_runs_and_money(void)
{
    const struct row rows[] = {
        RUN("chunk_put", key_chunk(a, 42, Q, 1)),
        RUN("audit_costs", key_ledger(a, 42), key_billing_queue(a, 42), STATUS),
        RUN("audit_look", LEDGER, key_aside(a, 42)),
        RUN("charge", LEDGER, RESULTS),
        RUN("ledger_apply", LEDGER),
        RUN("ledger_aside", LEDGER, key_aside(a, 42)),
        RUN("ledger_deduct", LEDGER, key_deductions(a, 42)),
        RUN("ledger_let_go", LEDGER, key_deductions(a, 42)),
        RUN("ledger_load", LEDGER, key_aside(a, 42)),
        RUN("ledger_restore", RESULTS),
        RUN("ledger_trim", LEDGER, key_deductions(a, 42)),
        RUN("spendable", LEDGER, key_workers(a, 42), STATUS),
        RUN("run_expire", STATUS, PENDING, INFLIGHT, VAIN, RESULTS, key_query_info(a, 42, Q)),
        RUN("run_halt", STATUS, PAUSE, TERMINATE, PENDING, INFLIGHT, VAIN),
        RUN("run_recall", RESULTS),
        RUN("run_settle", STATUS),
        RUN("run_tell", key_query_info(a, 42, Q), STATUS, PAUSE, TERMINATE, PENDING, INFLIGHT, VAIN,
            key_unfinished(a, 42), key_failed(a, 42, Q)),
        RUN("unit_finish", STATUS, INFLIGHT),
        RUN("unit_give_back", STATUS, PENDING, INFLIGHT, VAIN),
        RUN("unit_take", STATUS, TERMINATE, PAUSE, PENDING, INFLIGHT, VAIN),
        RUN("units_put", STATUS, PENDING),
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void scripts_without_owner(void)
{
    const struct row rows[] = {
        SYS("template_put", key_template(a, Q, 1), key_template_default(a, Q),
            key_template_categories),
        SYS("permits_lease", key_permits(a, "chat"), key_window(a, 1), key_api_limit(a, 1, "day")),
        SYS("permits_load", key_permits(a, "embed"), key_window(a, 1)),
        SYS("permits_rest", key_window(a, 1), key_key_errors),
        SYS("node_beat", key_nodes, key_nodes_info, key_nodes_lost),
        SYS("run_admit", key_queue, key_running),
        SYS("catalog_replace", key_catalog_lock, key_catalog, key_tags, key_journals, key_prices,
            key_bare, key_tag_journals(a, Q), key_year_numbers(a, Q)),
        SYS("attempts_return", key_attempts, ATTEMPT),
        SYS("attempts_sweep", key_registrations, ATTEMPT),
        SYS("attempts_take", key_attempts, ATTEMPT),
        SYS("attempts_unlock", key_attempts, ATTEMPT),
        SYS("run_line_up", key_queue, key_running),
        SYS("due_drop", key_expiry),
        SYS("lock_drop", key_jobs_lock),
        SYS("lock_keep", key_jobs_lock),
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void scripts_of_others(void)
{
    const struct row rows[] = {
        {"pool_asked", "7", {POOL_STATE, POOL_ASK}},
        {"pool_begin", "7", {POOL, POOL_STATE}},
        {"pool_limit", "7", {POOL_STATE}},
        {"pool_look", "7", {POOL, POOL_STATE}},
        {"pool_pop", "7", {POOL, POOL_STATE, POOL_ASK}},
        {"pool_push", "7", {POOL, POOL_STATE}},
        {"pool_settle", "7", {POOL_STATE, POOL}},
        {"pool_unasked", "7", {POOL_ASK}},
        {"jobs_again",
         "plan",
         {key_jobs(a, "plan"), JOBS("delays"), JOBS("leases"), JOBS("info"), JOBS("held"),
          JOBS("probes"), JOBS("state"), JOBS("aside"), JOBS("wake")}},
        {"jobs_done",
         "plan",
         {key_jobs(a, "plan"), JOBS("leases"), JOBS("info"), JOBS("users"), JOBS("probes"),
          JOBS("state")}},
        {"jobs_filled", "plan", {JOBS("state")}},
        {"jobs_keep", "plan", {JOBS("leases"), JOBS("info")}},
        {"jobs_push",
         "plan",
         {key_jobs(a, "plan"), JOBS("delays"), JOBS("info"), JOBS("users"), JOBS("aside"),
          JOBS("wake")}},
        {"jobs_take",
         "plan",
         {key_jobs(a, "plan"), JOBS("delays"), JOBS("leases"), JOBS("info"), JOBS("held"),
          JOBS("probes"), JOBS("aside"), JOBS("state")}},
        {"block_commit",
         "meta:J:1",
         {key_block_lock(a, STR("J"), 1), key_block_aside(a, STR("J"), 1, Q),
          key_block(a, STR("J"), 1)}},
        {"block_confirm", "meta:J:1", {key_block(a, STR("J"), 1)}},
        {"session_end", NULL, {key_user_sessions(a, 42), key_session(a, Q)}},
        {"session_fill", NULL, {key_session(a, Q), key_user_sessions(a, 42), key_user_info(a, 42)}},
        {"session_renew", NULL, {key_session(a, Q), key_user_sessions(a, 42)}},
        {"session_forget", "session:q7", {key_session(a, Q)}},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void scripts(void)
{
    keys_on_cluster(true);
    scripts_of_users();
    scripts_of_runs_and_money();
    scripts_without_owner();
    scripts_of_others();
    size_t all = 0;
    for (; scripts_all[all]; all++) {
        size_t i = 0;
        while (i < seen_count && !str_eq(seen[i], str_of(scripts_all[all]->redis.name)))
            i++;
        ok(i < seen_count, "script %s was looked at", scripts_all[all]->redis.name);
    }
    is_int((int64_t)seen_count, (int64_t)all, "each once");
    keys_on_cluster(false);
}

int main(void)
{
    arena_init(a);
    names();
    blocks();
    scripts();
    arena_release(a);
    return tap_done();
}
