#include "engine/store/keys.h"

/* A cluster places a key by its hash tag, the part of its name in braces: keys that one script
 * touches have the same. In front, where bytes from outside follow: only the first braces count. */
static bool tagged;

#define FIXED(X)                                                                                   \
    X(key_tags, "tags:info")                                                                       \
    X(key_journals, "journals:info")                                                               \
    X(key_prices, "journals:price")                                                                \
    X(key_bare, "journals:bare")                                                                   \
    X(key_catalog, "catalog")                                                                      \
    X(key_catalog_lock, "lock:catalog")                                                            \
    X(key_billing, "billing")                                                                      \
    X(key_audit_lock, "lock:audit")                                                                \
    X(key_audited, "audited")                                                                      \
    X(key_drift, "drift")                                                                          \
    X(key_expiry, "expiry")                                                                        \
    X(key_attempts, "attempts")                                                                    \
    X(key_registrations, "registrations")                                                          \
    X(key_key_errors, "keyring:errors")                                                            \
    X(key_alerts, "alerts")                                                                        \
    X(key_alerts_lock, "lock:alerts")                                                              \
    X(key_cache_run, "cache_run")                                                                  \
    X(key_queue, "queue")                                                                          \
    X(key_archive_lock, "lock:archive")                                                            \
    X(key_running, "running")                                                                      \
    X(key_nodes, "nodes")                                                                          \
    X(key_nodes_info, "nodes:info")                                                                \
    X(key_nodes_lost, "nodes:lost")                                                                \
    X(key_owed, "owed")                                                                            \
    X(key_news, "news")                                                                            \
    X(key_dispatched, "dispatched")                                                                \
    X(key_dispatcher_lock, "lock:dispatcher")                                                      \
    X(key_keeper_lock, "lock:keeper")                                                              \
    X(key_jobs_lock, "lock:jobs")                                                                  \
    X(key_jobs_soon_lock, "lock:jobs-soon")                                                        \
    X(key_jobs_paid_lock, "lock:jobs_paid")                                                        \
    X(key_pools, "pools")                                                                          \
    X(key_pools_lock, "lock:pools")                                                                \
    X(key_documents_lock, "lock:documents")                                                        \
    X(key_plans_lock, "lock:plans")                                                                \
    X(key_extract_lock, "lock:extract")                                                            \
    X(key_post_tags_lock, "lock:post_tags")                                                        \
    X(key_post_space_lock, "lock:post_space")                                                      \
    X(key_paper_space_lock, "lock:paper_space")                                                    \
    X(key_paper_news_lock, "lock:paper_news")                                                      \
    X(key_hooks_lock, "lock:hooks")                                                                \
    X(key_plans_warm_lock, "lock:plans_warm")                                                      \
    X(key_plans_warmed, "plans_warmed")

#define DEFINE(name, rest) struct str name = {"sys:" rest, sizeof("sys:" rest) - 1};
FIXED(DEFINE)
struct str key_template_categories = {"template:categories", sizeof("template:categories") - 1};

void keys_on_cluster(bool on)
{
    tagged = on;
#define TAG(name, rest) name = on ? STR("{sys}:" rest) : STR("sys:" rest);
    FIXED(TAG)
    key_template_categories = on ? STR("{sys}:template:categories") : STR("template:categories");
}

bool keys_are_on_cluster(void)
{
    return tagged;
}

/* Of keys without an owner. */
static struct str sys(void)
{
    return tagged ? STR("{sys}:") : STR("sys:");
}

/* The same of keys whose names do not begin with it on a single Redis. */
static struct str unowned(void)
{
    return tagged ? STR("{sys}:") : STR("");
}

/* What a tag is written between. */
static struct str opening(void)
{
    return tagged ? STR("{") : STR("");
}

static struct str closing(void)
{
    return tagged ? STR("}") : STR("");
}

/* Names of journals and tags come from outside: they are copied byte for byte, not formatted. Keys
 * that are made for every paper are not formatted either, to save time. */
static struct str of_number(struct arena *a, struct str before, int64_t n, struct str after)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, before, opening(), str_digits(digits, n), closing(), after);
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
OF_NUMBER(key_training_active, "training_plan:", ":active")
OF_NUMBER(key_nutrition_active, "nutrition_plan:", ":active")
OF_NUMBER(key_plans, "user:", ":plans")
OF_NUMBER(key_pending_tasks, "user:", ":pending_tasks")

struct str key_window(struct arena *a, int64_t api_id)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, sys(), STR("window:"), str_digits(digits, api_id));
}

struct str key_tag_journals(struct arena *a, struct str tag)
{
    return STR_JOIN(a, sys(), STR("tag_journals:"), tag);
}

struct str key_year_numbers(struct arena *a, struct str journal)
{
    return STR_JOIN(a, unowned(), STR("contentlist_year_number:"), journal);
}

struct str key_block_name(struct arena *a, struct str journal, int64_t year)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("meta:"), journal, STR(":"), str_digits(digits, year));
}

/* All of it in braces, as in the names of lock and aside: a journal may have braces in its name. */
struct str key_block(struct arena *a, struct str journal, int64_t year)
{
    struct str name = key_block_name(a, journal, year);
    return tagged ? STR_JOIN(a, STR("{"), name, STR("}")) : name;
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

/* In the slot of the block that they belong to: one script may touch all three. */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year)
{
    return STR_JOIN(a, STR("sys:lock:{"), key_block_name(a, journal, year), STR("}"));
}

struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token)
{
    return STR_JOIN(a, STR("sys:aside:{"), key_block_name(a, journal, year), STR("}:"), token);
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
    return STR_JOIN(a, sys(), STR("attempts:"), str_of(realm), STR(":"), str_of(what), STR(":"),
                    who);
}

/* "query:<uid>:<qid>:<part>" and "task:<uid>:<qid>:<part>" */
static struct str of_run(struct arena *a, const char *kind, int64_t uid, struct str qid,
                         const char *part)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, str_of(kind), opening(), str_digits(digits, uid), closing(), STR(":"), qid,
                    str_of(part));
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
    return STR_JOIN(a, of_number(a, STR("user:"), uid, STR(":search:")), id);
}

struct str key_download_piece(struct arena *a, int64_t uid, struct str task, int64_t n)
{
    return of_run(a, "download:", uid, task, arena_printf(a, ":file:%lld", (long long)n));
}

/* Downloads had a queue of this name before all others. */
struct str key_jobs(struct arena *a, const char *queue)
{
    return strcmp(queue, "download") == 0 && !tagged
               ? STR("download_queue")
               : STR_JOIN(a, STR("jobs:"), opening(), str_of(queue), closing());
}

struct str key_jobs_part(struct arena *a, const char *queue, const char *part)
{
    return STR_JOIN(a, STR("jobs:"), opening(), str_of(queue), closing(), STR(":"), str_of(part));
}

/* "<type>:pool:<group>" */
struct str key_pool(struct arena *a, const char *type, int64_t group)
{
    return STR_JOIN(a, str_of(type), of_number(a, STR(":pool:"), group, STR("")));
}

struct str key_pool_filling(struct arena *a, const char *type, int64_t group)
{
    return STR_JOIN(a, key_pool(a, type, group), STR(":filling"));
}

struct str key_template(struct arena *a, struct str category, int64_t id)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, unowned(), STR("template:"), category, STR(":"), str_digits(digits, id));
}

struct str key_template_default(struct arena *a, struct str category)
{
    return STR_JOIN(a, unowned(), STR("template:"), category, STR(":default"));
}

/* The braces were there before clusters. */
struct str key_pool_state(struct arena *a, const char *type, int64_t group)
{
    struct str list = key_pool(a, type, group);
    return tagged ? STR_JOIN(a, STR("sys:pool:"), list)
                  : STR_JOIN(a, STR("sys:pool:{"), list, STR("}"));
}

struct str key_pool_request(struct arena *a, const char *type, int64_t group, int64_t uid,
                            struct str request)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, key_pool_state(a, type, group), STR(":request:"), str_digits(digits, uid),
                    STR(":"), request);
}

/* Ids of plans and tasks begin with the uid and a hyphen. */
static struct str of_id(struct arena *a, struct str before, struct str id)
{
    struct str rest = id, uid = str_cut(&rest, '-');
    return STR_JOIN(a, before, opening(), uid, closing(), str_skip(id, uid.n));
}

#define OF_ID(name, before)                                                                        \
    struct str name(struct arena *a, struct str id)                                                \
    {                                                                                              \
        return of_id(a, STR(before), id);                                                          \
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
    return STR_JOIN(a, of_number(a, STR("daily_nutrition:"), uid, STR(":")), date);
}

struct str key_permits(struct arena *a, const char *service)
{
    bool chat = strcmp(service, "chat") == 0;
    return STR_JOIN(a, sys(), STR("keyring"), chat ? STR("") : STR(":service:"),
                    chat ? STR("") : str_of(service));
}

struct str key_api_limit(struct arena *a, int64_t api_id, const char *period)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, unowned(), STR("api_limit:"), str_digits(digits, api_id), STR(":"),
                    str_of(period));
}
