#include "engine/store/keys.h"

#define KEY(name, text) const struct str name = {text, sizeof(text) - 1};

KEY(key_tags, "sys:tags:info")
KEY(key_journals, "sys:journals:info")
KEY(key_prices, "sys:journals:price")
KEY(key_bare, "sys:journals:bare")
KEY(key_catalog, "sys:catalog")
KEY(key_catalog_lock, "sys:lock:catalog")
KEY(key_billing, "sys:billing")
KEY(key_audit_lock, "sys:lock:audit")
KEY(key_audited, "sys:audited")
KEY(key_drift, "sys:drift")
KEY(key_expiry, "sys:expiry")
KEY(key_attempts, "sys:attempts")
KEY(key_registrations, "sys:registrations")
KEY(key_key_errors, "sys:keyring:errors")
KEY(key_alerts, "sys:alerts")
KEY(key_alerts_lock, "sys:lock:alerts")
KEY(key_cache_run, "sys:cache_run")
KEY(key_queue, "sys:queue")
KEY(key_archive_lock, "sys:lock:archive")
KEY(key_running, "sys:running")
KEY(key_nodes, "sys:nodes")
KEY(key_nodes_info, "sys:nodes:info")
KEY(key_nodes_lost, "sys:nodes:lost")
KEY(key_owed, "sys:owed")
KEY(key_news, "sys:news")
KEY(key_dispatched, "sys:dispatched")
KEY(key_dispatcher_lock, "sys:lock:dispatcher")
KEY(key_keeper_lock, "sys:lock:keeper")
KEY(key_jobs_lock, "sys:lock:jobs")
KEY(key_jobs_soon_lock, "sys:lock:jobs-soon")
KEY(key_jobs_paid_lock, "sys:lock:jobs_paid")
KEY(key_template_categories, "template:categories")
KEY(key_pools, "sys:pools")
KEY(key_pools_lock, "sys:lock:pools")
KEY(key_documents_lock, "sys:lock:documents")
KEY(key_plans_lock, "sys:lock:plans")
KEY(key_extract_lock, "sys:lock:extract")
KEY(key_post_tags_lock, "sys:lock:post_tags")
KEY(key_post_space_lock, "sys:lock:post_space")
KEY(key_paper_space_lock, "sys:lock:paper_space")
KEY(key_paper_news_lock, "sys:lock:paper_news")
KEY(key_hooks_lock, "sys:lock:hooks")
KEY(key_plans_warm_lock, "sys:lock:plans_warm")
KEY(key_plans_warmed, "sys:plans_warmed")

/* Names of journals and tags come from outside: they are copied byte for byte, not formatted. Keys
 * that are made for every paper are not formatted either, to save time. */
static struct str of_number(struct arena *a, struct str before, int64_t n, struct str after)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, before, str_digits(digits, n), after);
}

#define OF_NUMBER(name, before, after)                                                             \
    struct str name(struct arena *a, int64_t n)                                                    \
    {                                                                                              \
        return of_number(a, STR(before), n, STR(after));                                           \
    }

OF_NUMBER(key_user_info, "user:", ":info")
OF_NUMBER(key_user_sessions, "user:", ":session")
OF_NUMBER(key_history, "user:", ":history")
OF_NUMBER(key_unfinished, "user:", ":unfinished")
OF_NUMBER(key_streams, "user:", ":streams")
OF_NUMBER(key_admin_info, "admin:", ":info")
OF_NUMBER(key_admin_sessions, "admin:", ":session")
OF_NUMBER(key_balance, "user:", ":balance")
OF_NUMBER(key_ledger, "user:", ":ledger")
OF_NUMBER(key_billing_queue, "billing_queue:", "")
OF_NUMBER(key_deductions, "user:", ":deductions")
OF_NUMBER(key_aside, "user:", ":aside")
OF_NUMBER(key_workers, "user:", ":workers")
OF_NUMBER(key_downloads_of, "user:", ":downloads")
OF_NUMBER(key_user_limits, "user:", ":limits")
OF_NUMBER(key_window, "sys:window:", "")
OF_NUMBER(key_training_active, "training_plan:", ":active")
OF_NUMBER(key_nutrition_active, "nutrition_plan:", ":active")
OF_NUMBER(key_plans, "user:", ":plans")
OF_NUMBER(key_pending_tasks, "user:", ":pending_tasks")

struct str key_tag_journals(struct arena *a, struct str tag)
{
    return STR_JOIN(a, STR("sys:tag_journals:"), tag);
}

struct str key_year_numbers(struct arena *a, struct str journal)
{
    return STR_JOIN(a, STR("contentlist_year_number:"), journal);
}

struct str key_block(struct arena *a, struct str journal, int64_t year)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("meta:"), journal, STR(":"), str_digits(digits, year));
}

/* Journals may have colons in them: the name is read from its end. */
bool key_block_read(struct str name, struct str *journal, int64_t *year, struct str *slice)
{
    struct str prefix = STR("meta:");
    size_t at = name.n;
    while (at > 0 && name.p[at - 1] != ':')
        at--;
    if (!str_starts(name, prefix) || at <= prefix.n)
        return false;
    struct str rest = str_from(name.p + at, name.n - at), number = str_cut(&rest, '#');
    int64_t found;
    if (!str_to_i64(number, &found))
        return false;
    *journal = str_from(name.p + prefix.n, at - 1 - prefix.n);
    *year = found;
    *slice = rest;
    return true;
}

/* A cluster hashes the part of a key in braces, or else all of it. So these two are in the slot of
 * the block that they belong to, and one script may touch all three. */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year)
{
    return STR_JOIN(a, STR("sys:lock:{"), key_block(a, journal, year), STR("}"));
}

struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token)
{
    return STR_JOIN(a, STR("sys:aside:{"), key_block(a, journal, year), STR("}:"), token);
}

struct str key_session(struct arena *a, struct str sid)
{
    return STR_JOIN(a, STR("session:"), sid);
}

struct str key_admin_session(struct arena *a, struct str sid)
{
    return STR_JOIN(a, STR("admin:session:"), sid);
}

struct str key_attempts_of(struct arena *a, const char *realm, const char *what, struct str who)
{
    return STR_JOIN(a, STR("sys:attempts:"), str_of(realm), STR(":"), str_of(what), STR(":"), who);
}

/* "query:<uid>:<qid>:<part>" and "task:<uid>:<qid>:<part>" */
static struct str of_run(struct arena *a, const char *kind, int64_t uid, struct str qid,
                         const char *part)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, str_of(kind), str_digits(digits, uid), STR(":"), qid, str_of(part));
}

#define OF_RUN(name, kind, part)                                                                   \
    struct str name(struct arena *a, int64_t uid, struct str id)                                   \
    {                                                                                              \
        return of_run(a, kind, uid, id, part);                                                     \
    }

OF_RUN(key_query_status, "query:", ":status")
OF_RUN(key_query_info, "query:", ":info")
OF_RUN(key_pause_signal, "query:", ":pause_signal")
OF_RUN(key_terminate_signal, "query:", ":terminate_signal")
OF_RUN(key_pending, "task:", ":pending_blocks")
OF_RUN(key_inflight, "task:", ":inflight")
OF_RUN(key_vain, "task:", ":vain")
OF_RUN(key_result, "result:", "")
OF_RUN(key_failed, "query:", ":failed")
OF_RUN(key_progress, "progress:", ":finished_count")
OF_RUN(key_arrivals, "result:", ":arrivals")
OF_RUN(key_relevant, "result:", ":relevant")
OF_RUN(key_download_status, "download:", ":status")

struct str key_chunk(struct arena *a, int64_t uid, struct str qid, int64_t n)
{
    return of_run(a, "distill_chunk:", uid, qid, arena_printf(a, ":%lld", (long long)n));
}

struct str key_search(struct arena *a, int64_t uid, struct str id)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("user:"), str_digits(digits, uid), STR(":search:"), id);
}

struct str key_download_piece(struct arena *a, int64_t uid, struct str task, int64_t n)
{
    return of_run(a, "download:", uid, task, arena_printf(a, ":file:%lld", (long long)n));
}

/* Downloads had a queue of this name before all others. */
struct str key_jobs(struct arena *a, const char *queue)
{
    return strcmp(queue, "download") == 0 ? STR("download_queue")
                                          : STR_JOIN(a, STR("jobs:"), str_of(queue));
}

struct str key_jobs_part(struct arena *a, const char *queue, const char *part)
{
    return STR_JOIN(a, STR("jobs:"), str_of(queue), STR(":"), str_of(part));
}

/* "<type>:pool:<group>" */
struct str key_pool(struct arena *a, const char *type, int64_t group)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, str_of(type), STR(":pool:"), str_digits(digits, group));
}

struct str key_pool_filling(struct arena *a, const char *type, int64_t group)
{
    return STR_JOIN(a, key_pool(a, type, group), STR(":filling"));
}

struct str key_template(struct arena *a, struct str category, int64_t id)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("template:"), category, STR(":"), str_digits(digits, id));
}

struct str key_template_default(struct arena *a, struct str category)
{
    return STR_JOIN(a, STR("template:"), category, STR(":default"));
}

/* In the slot of the list, like the keys of a block. */
struct str key_pool_state(struct arena *a, const char *type, int64_t group)
{
    return STR_JOIN(a, STR("sys:pool:{"), key_pool(a, type, group), STR("}"));
}

struct str key_pool_request(struct arena *a, const char *type, int64_t group, int64_t uid,
                            struct str request)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, key_pool_state(a, type, group), STR(":request:"), str_digits(digits, uid),
                    STR(":"), request);
}

/* Ids of plans and tasks begin with the uid. */
#define OF_ID(name, before)                                                                        \
    struct str name(struct arena *a, struct str id)                                                \
    {                                                                                              \
        return STR_JOIN(a, STR(before), id);                                                       \
    }

OF_ID(key_training_plan, "training_plan:")
OF_ID(key_nutrition_plan, "nutrition_plan:")
OF_ID(key_generation_task, "generation_task:")

struct str key_training_day(struct arena *a, struct str id, struct str date)
{
    return STR_JOIN(a, key_training_plan(a, id), STR(":schedule:"), date);
}

struct str key_nutrition_day(struct arena *a, int64_t uid, struct str date)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("daily_nutrition:"), str_digits(digits, uid), STR(":"), date);
}

struct str key_permits(struct arena *a, const char *service)
{
    return strcmp(service, "chat") == 0 ? STR("sys:keyring")
                                        : str_printf(a, "sys:keyring:service:%s", service);
}

struct str key_api_limit(struct arena *a, int64_t api_id, const char *period)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("api_limit:"), str_digits(digits, api_id), STR(":"), str_of(period));
}
