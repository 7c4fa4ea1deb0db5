#include "engine/store/keys.h"

const struct str key_tags = {"sys:tags:info", 13};
const struct str key_journals = {"sys:journals:info", 17};
const struct str key_prices = {"sys:journals:price", 18};
const struct str key_catalog_lock = {"sys:lock:catalog", 16};
const struct str key_billing = {"sys:billing", 11};
const struct str key_audit_lock = {"sys:lock:audit", 14};
const struct str key_audited = {"sys:audited", 11};
const struct str key_drift = {"sys:drift", 9};
const struct str key_expiry = {"sys:expiry", 10};
const struct str key_attempts = {"sys:attempts", 12};
const struct str key_registrations = {"sys:registrations", 17};
const struct str key_keyring = {"sys:keyring", 11};
const struct str key_key_errors = {"sys:keyring:errors", 18};
const struct str key_alerts = {"sys:alerts", 10};
const struct str key_alerts_lock = {"sys:lock:alerts", 15};
const struct str key_cache_run = {"sys:cache_run", 13};
const struct str key_running = {"sys:running", 11};
const struct str key_nodes = {"sys:nodes", 9};
const struct str key_nodes_info = {"sys:nodes:info", 14};
const struct str key_nodes_lost = {"sys:nodes:lost", 14};
const struct str key_news = {"sys:news", 8};
const struct str key_dispatched = {"sys:dispatched", 14};
const struct str key_dispatcher_lock = {"sys:lock:dispatcher", 19};
const struct str key_keeper_lock = {"sys:lock:keeper", 15};
const struct str key_download_queue = {"download_queue", 14};
const struct str key_download_taken = {"download_taken", 14};

/* Names of journals and tags come from outside: they are copied byte for byte, not printed. Nor is
 * anything else that is made for every paper. */
static struct str of_number(struct arena *a, struct str before, int64_t n, struct str after)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, before, str_digits(digits, n), after);
}

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

/* Journals may have colons in them: it is read from its end. */
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

/* A cluster places a key by what it has in braces, or else by all of it. So these two are where
 * the block is that they belong to, and one script may touch all three. */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year)
{
    return STR_JOIN(a, STR("sys:lock:{"), key_block(a, journal, year), STR("}"));
}

struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token)
{
    return STR_JOIN(a, STR("sys:aside:{"), key_block(a, journal, year), STR("}:"), token);
}

struct str key_user_info(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":info"));
}

struct str key_user_sessions(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":session"));
}

struct str key_session(struct arena *a, struct str sid)
{
    return STR_JOIN(a, STR("session:"), sid);
}

struct str key_history(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":history"));
}

struct str key_admin_info(struct arena *a, int64_t uid)
{
    return of_number(a, STR("admin:"), uid, STR(":info"));
}

struct str key_admin_sessions(struct arena *a, int64_t uid)
{
    return of_number(a, STR("admin:"), uid, STR(":session"));
}

struct str key_admin_session(struct arena *a, struct str sid)
{
    return STR_JOIN(a, STR("admin:session:"), sid);
}

struct str key_attempts_of(struct arena *a, const char *realm, const char *what, struct str who)
{
    return STR_JOIN(a, STR("sys:attempts:"), str_of(realm), STR(":"), str_of(what), STR(":"), who);
}

struct str key_balance(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":balance"));
}

struct str key_ledger(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":ledger"));
}

struct str key_billing_queue(struct arena *a, int64_t uid)
{
    return of_number(a, STR("billing_queue:"), uid, STR(""));
}

struct str key_deductions(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":deductions"));
}

/* "query:<uid>:<qid>:<part>" and "task:<uid>:<qid>:<part>" */
static struct str of_run(struct arena *a, const char *kind, int64_t uid, struct str qid,
                         const char *part)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, str_of(kind), str_digits(digits, uid), STR(":"), qid, str_of(part));
}

struct str key_query_status(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "query:", uid, qid, ":status");
}

const struct str key_queue = {"sys:queue", 9};
const struct str key_archive_lock = {"sys:lock:archive", 16};

struct str key_query_info(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "query:", uid, qid, ":info");
}

struct str key_pause_signal(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "query:", uid, qid, ":pause_signal");
}

struct str key_terminate_signal(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "query:", uid, qid, ":terminate_signal");
}

struct str key_pending(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "task:", uid, qid, ":pending_blocks");
}

struct str key_inflight(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "task:", uid, qid, ":inflight");
}

struct str key_result(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "result:", uid, qid, "");
}

struct str key_failed(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "query:", uid, qid, ":failed");
}

struct str key_progress(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "progress:", uid, qid, ":finished_count");
}

struct str key_arrivals(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "result:", uid, qid, ":arrivals");
}

struct str key_relevant(struct arena *a, int64_t uid, struct str qid)
{
    return of_run(a, "result:", uid, qid, ":relevant");
}

struct str key_chunk(struct arena *a, int64_t uid, struct str qid, int64_t n)
{
    return of_run(a, "distill_chunk:", uid, qid, arena_printf(a, ":%lld", (long long)n));
}

struct str key_workers(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":workers"));
}

struct str key_downloads_of(struct arena *a, int64_t uid)
{
    return of_number(a, STR("user:"), uid, STR(":downloads"));
}

struct str key_download_status(struct arena *a, int64_t uid, struct str task)
{
    return of_run(a, "download:", uid, task, ":status");
}

struct str key_download_piece(struct arena *a, int64_t uid, struct str task, int64_t n)
{
    return of_run(a, "download:", uid, task, arena_printf(a, ":file:%lld", (long long)n));
}

struct str key_window(struct arena *a, int64_t api_id)
{
    return of_number(a, STR("sys:window:"), api_id, STR(""));
}

struct str key_api_limit(struct arena *a, int64_t api_id, const char *period)
{
    char digits[STR_INT_BYTES];
    return STR_JOIN(a, STR("api_limit:"), str_digits(digits, api_id), STR(":"), str_of(period));
}
