#include "engine/runs/state.h"

#include "base/check.h"

static const char *const names[RUN_STATES] = {"QUEUED", "RUNNING",   "PAUSED",
                                              "DONE",   "CANCELLED", "FAILED"};

#define NO -1

/* Rows: states. Columns: start, pause, resume, terminate, finish, fail, retry, reopen, requeue. */
static const signed char table[RUN_STATES][RUN_EVENTS] = {
    [RUN_QUEUED] = {RUN_RUNNING, RUN_PAUSED, RUN_QUEUED, RUN_CANCELLED, NO, RUN_FAILED, NO, NO,
                    RUN_QUEUED},
    [RUN_RUNNING] = {RUN_RUNNING, RUN_PAUSED, RUN_RUNNING, RUN_CANCELLED, RUN_DONE, RUN_FAILED, NO,
                     RUN_RUNNING, RUN_RUNNING},
    /* The unit that was in hand when the pause came may have been the last. */
    [RUN_PAUSED] = {NO, RUN_PAUSED, RUN_RUNNING, RUN_CANCELLED, RUN_DONE, NO, NO, NO, RUN_QUEUED},
    [RUN_DONE] = {NO, NO, NO, NO, RUN_DONE, NO, RUN_RUNNING, RUN_RUNNING, NO},
    [RUN_CANCELLED] = {NO, NO, NO, RUN_CANCELLED, NO, NO, NO, NO, NO},
    [RUN_FAILED] = {NO, NO, NO, NO, NO, RUN_FAILED, NO, NO, NO},
};

const char *run_state_name(enum run_state s)
{
    return names[s];
}

bool run_state_parse(struct str name, enum run_state *out)
{
    for (int i = 0; i < RUN_STATES; i++)
        if (str_eq(name, str_of(names[i]))) {
            *out = (enum run_state)i;
            return true;
        }
    return false;
}

bool run_state_after(enum run_state s, enum run_event e, enum run_state *out)
{
    check(s < RUN_STATES && e < RUN_EVENTS);
    if (table[s][e] == NO)
        return false;
    *out = (enum run_state)table[s][e];
    return true;
}

bool run_state_final(enum run_state s)
{
    return s == RUN_DONE || s == RUN_CANCELLED || s == RUN_FAILED;
}

const char *run_reason_code(struct str reason)
{
    static const struct {
        const char *words, *code;
    } known[] = {{RUN_REASON_FUNDS, "funds"},
                 {RUN_REASON_ACCOUNT, "account"},
                 {RUN_REASON_BANNED, "banned"},
                 {RUN_REASON_ADMIN, "admin"},
                 {RUN_REASON_EXPIRED, "expired"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eq(reason, str_of(known[i].words)))
            return known[i].code;
    if (str_starts(reason, STR(RUN_REASON_REFUSED)))
        return "refused";
    if (str_starts(reason, STR(RUN_REASON_UNRECORDED)))
        return "unrecorded";
    return reason.n ? "other" : NULL;
}
