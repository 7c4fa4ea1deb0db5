#include "engine/runs/reason.h"

#include "base/check.h"

/* With work waiting at least 97 % of a limit are used (SCR-9); half of it is given at once, the
 * rest is paced. */
#define FULL_PERCENT 97
#define FREE_PERCENT 50

/* --- the rows --- */

static bool works(const struct reason_facts *f)
{
    return f->state == RUN_QUEUED || f->state == RUN_RUNNING;
}

static bool is_stopped(const struct reason_facts *f, struct reason *out)
{
    (void)out;
    return f->banned;
}

static bool is_repaired(const struct reason_facts *f, struct reason *out)
{
    if (f->repairing)
        out->cause = str_of(f->repairing);
    return f->repairing != NULL;
}

/* Runs that were started before go on. */
static bool is_held(const struct reason_facts *f, struct reason *out)
{
    (void)out;
    return f->state == RUN_QUEUED && f->new_runs_off;
}

static bool is_drained(const struct reason_facts *f, struct reason *out)
{
    out->nodes = f->nodes;
    return f->nodes > 0 && f->nodes_taking == 0;
}

static bool has_no_permission(const struct reason_facts *f, struct reason *out)
{
    (void)out;
    return f->permission == 0;
}

static bool has_no_key(const struct reason_facts *f, struct reason *out)
{
    const struct reason_keys *k = &f->keys;
    if (!k->known || k->usable > 0 || k->resting > 0)
        return false;
    out->keys = k->listed;
    out->cause = k->listed == 0            ? STR("none")
                 : k->refused == k->listed ? STR("refused")
                 : k->off == k->listed     ? STR("off")
                 : k->capped == k->listed  ? STR("capped")
                                           : STR("mixed");
    out->until_ms = k->capped ? k->cap_until_ms : 0;
    return true;
}

static bool keys_rest(const struct reason_facts *f, struct reason *out)
{
    const struct reason_keys *k = &f->keys;
    out->keys = k->resting;
    out->until_ms = k->rest_until_ms;
    return k->known && k->usable == 0 && k->resting > 0;
}

static bool is_down(const struct reason_facts *f, struct reason *out)
{
    out->since_ms = f->down_since_ms;
    out->cause = f->down_cause;
    out->words = f->down_words;
    return f->down;
}

/* A run that was resumed is RUNNING, and in the queue again. */
static bool is_queued(const struct reason_facts *f, struct reason *out)
{
    out->position = f->position;
    out->of = f->of;
    out->permission = f->permission;
    out->others = f->others;
    return f->workers == 0 &&
           (f->state == RUN_QUEUED || f->position > 0 || f->others >= f->permission);
}

static bool is_full(int64_t used, int64_t limit, bool wanted)
{
    return limit > 0 &&
           (used >= limit * FULL_PERCENT / 100 || (wanted && used >= limit * FREE_PERCENT / 100));
}

static bool is_limited(const struct reason_facts *f, struct reason *out)
{
    bool wanted = f->demand > f->requests_limit;
    out->limit = f->requests_limit;
    return f->workers > 0 && (is_full(f->requests_used, f->requests_limit, wanted) ||
                              is_full(f->tokens_used, f->tokens_limit, false));
}

/* After "<what>: " come the words of the ledger, or of the AI service. */
static bool paused_as(const struct reason_facts *f, const char *code, struct reason *out)
{
    const char *its = f->state == RUN_PAUSED ? run_reason_code(f->row) : NULL;
    struct str rest = f->row;
    (void)str_cut(&rest, ':');
    if (rest.p)
        out->words = str_trim(rest);
    return its && str_eq(str_of(its), str_of(code));
}

static bool lacks_funds(const struct reason_facts *f, struct reason *out)
{
    return paused_as(f, "funds", out);
}

static bool needs_operator(const struct reason_facts *f, struct reason *out)
{
    return paused_as(f, "account", out);
}

static bool is_unrecorded(const struct reason_facts *f, struct reason *out)
{
    return paused_as(f, "unrecorded", out);
}

static bool is_refused(const struct reason_facts *f, struct reason *out)
{
    return paused_as(f, "refused", out);
}

/* --- the table: the first row that holds is the reason --- */

static const struct row {
    enum reason_code code;
    const char *word;
    bool paused; /* of runs that paused themselves, not of those that want to work */
    bool mendable, moves;
    bool (*holds)(const struct reason_facts *f, struct reason *out);
} table[] = {
    {REASON_ACCOUNT_STOPPED, "account_stopped", .mendable = true, .holds = is_stopped},
    {REASON_REPAIRING, "repairing", .mendable = true, .holds = is_repaired},
    {REASON_NEW_RUNS_OFF, "new_runs_off", .mendable = true, .holds = is_held},
    {REASON_DRAINED, "drained", .mendable = true, .holds = is_drained},
    {REASON_NO_PERMISSION, "no_permission", .mendable = true, .holds = has_no_permission},
    /* What is known of the keys says more than that calls fail. */
    {REASON_NO_KEY, "no_key", .mendable = true, .holds = has_no_key},
    {REASON_KEYS_RESTING, "keys_resting", .mendable = true, .holds = keys_rest},
    {REASON_SERVICE_DOWN, "service_down", .mendable = true, .holds = is_down},
    {REASON_QUEUED, "queued", .holds = is_queued},
    {REASON_RATE_LIMIT, "rate_limit", .moves = true, .holds = is_limited},
    {REASON_FUNDS, "funds", .paused = true, .holds = lacks_funds},
    {REASON_ACCOUNT, "account", .paused = true, .mendable = true, .holds = needs_operator},
    {REASON_UNRECORDED, "unrecorded", .paused = true, .mendable = true, .holds = is_unrecorded},
    {REASON_REFUSED, "refused", .paused = true, .mendable = true, .holds = is_refused},
};
#define ROWS (sizeof table / sizeof *table)

struct reason reason_of(const struct reason_facts *f)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct reason r = {.code = table[i].code};
        bool applies = table[i].paused ? f->state == RUN_PAUSED : works(f);
        if (applies && table[i].holds(f, &r))
            return r;
    }
    return (struct reason){.code = REASON_NONE};
}

static const struct row *row_of(enum reason_code code)
{
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].code == code)
            return &table[i];
    return NULL;
}

const char *reason_word(enum reason_code code)
{
    return code == REASON_NONE ? NULL : row_of(code)->word;
}

bool reason_mendable(enum reason_code code)
{
    return code != REASON_NONE && row_of(code)->mendable;
}

bool reason_moves(enum reason_code code)
{
    return code == REASON_NONE || row_of(code)->moves;
}

bool reason_same(const struct reason *a, const struct reason *b)
{
    return a->code == b->code && a->position == b->position && a->of == b->of &&
           a->others == b->others && a->permission == b->permission && a->nodes == b->nodes &&
           a->keys == b->keys && a->limit == b->limit && a->since_ms == b->since_ms &&
           a->until_ms == b->until_ms && str_eq(a->cause, b->cause) && str_eq(a->words, b->words);
}

/* --- words --- */

static struct str key_text(const struct reason *r)
{
    static const struct {
        const char *cause, *text;
    } all[] = {{"none", "there is no key of the AI service"},
               {"refused", "the AI service has refused all of its keys"},
               {"off", "all keys of the AI service are switched off"},
               {"capped", "all keys of the AI service have reached a cap"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (str_eq(r->cause, str_of(all[i].cause)))
            return str_of(all[i].text);
    return STR("no key of the AI service can be used: they are refused, off or capped");
}

struct str reason_text(struct arena *a, const struct reason *r)
{
    switch (r->code) {
    case REASON_ACCOUNT_STOPPED:
        return STR("the account is stopped");
    case REASON_REPAIRING:
        return str_printf(a, "what a restart has lost is being repaired (%.*s)", STR_ARG(r->cause));
    case REASON_NEW_RUNS_OFF:
        return STR("new runs are switched off");
    case REASON_DRAINED:
        return str_printf(a, "all %lld nodes are drained", (long long)r->nodes);
    case REASON_NO_PERMISSION:
        return STR("the user's permission is 0");
    case REASON_NO_KEY:
        return key_text(r);
    case REASON_KEYS_RESTING:
        return STR("all keys rest, as the AI service asked for");
    case REASON_SERVICE_DOWN:
        return str_printf(a, "the AI service is down (%.*s)%s%.*s", STR_ARG(r->cause),
                          r->words.n ? ": " : "", STR_ARG(r->words));
    case REASON_QUEUED:
        return r->position ? str_printf(a, "number %lld of %lld in the queue",
                                        (long long)r->position, (long long)r->of)
                           : STR("waits for the user's other runs");
    case REASON_RATE_LIMIT:
        return STR("waits for the rate limit of the AI service");
    case REASON_FUNDS:
        return STR(RUN_REASON_FUNDS);
    case REASON_ACCOUNT:
        return STR(RUN_REASON_ACCOUNT);
    case REASON_UNRECORDED:
    case REASON_REFUSED:
        return str_printf(a, "%s: %.*s",
                          r->code == REASON_REFUSED ? RUN_REASON_REFUSED : RUN_REASON_UNRECORDED,
                          STR_ARG(r->words));
    case REASON_NONE:
    case REASON_CODES:
        break;
    }
    return STR("");
}
