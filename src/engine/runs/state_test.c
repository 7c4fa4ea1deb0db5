#include "engine/runs/state.h"

#include "tests/tap.h"

#define X -1

int main(void)
{
    static const int want[RUN_STATES][RUN_EVENTS] = {
        /* start, pause, resume, terminate, finish, fail, retry, reopen, requeue */
        {RUN_RUNNING, RUN_PAUSED, RUN_QUEUED, RUN_CANCELLED, X, RUN_FAILED, X, X, RUN_QUEUED},
        {RUN_RUNNING, RUN_PAUSED, RUN_RUNNING, RUN_CANCELLED, RUN_DONE, RUN_FAILED, X, RUN_RUNNING,
         RUN_RUNNING},
        {X, RUN_PAUSED, RUN_RUNNING, RUN_CANCELLED, RUN_DONE, X, X, X, RUN_QUEUED},
        {X, X, X, X, RUN_DONE, X, RUN_RUNNING, RUN_RUNNING, X},
        {X, X, X, RUN_CANCELLED, X, X, X, X, X},
        {X, X, X, X, X, RUN_FAILED, X, X, X},
    };
    for (int s = 0; s < RUN_STATES; s++) {
        enum run_state parsed;
        const char *name = run_state_name((enum run_state)s);
        ok(run_state_parse(str_of(name), &parsed) && (int)parsed == s, "%s reads back", name);
        for (int e = 0; e < RUN_EVENTS; e++) {
            enum run_state to = RUN_QUEUED;
            bool allowed = run_state_after((enum run_state)s, (enum run_event)e, &to);
            is_int(allowed ? (int)to : X, want[s][e], "%s, event %d", name, e);
        }
    }
    enum run_state none;
    ok(!run_state_parse(STR("queued"), &none) && !run_state_parse(STR(""), &none), "no state");
    ok(run_state_final(RUN_DONE) && run_state_final(RUN_CANCELLED) && run_state_final(RUN_FAILED),
       "final ones");
    ok(!run_state_final(RUN_QUEUED) && !run_state_final(RUN_RUNNING) &&
           !run_state_final(RUN_PAUSED),
       "others are not");
    is_str(str_of(run_reason_code(STR(RUN_REASON_FUNDS))), STR("funds"), "why it was paused");
    is_str(str_of(run_reason_code(STR(RUN_REASON_EXPIRED))), STR("expired"), "or ended");
    is_str(str_of(run_reason_code(STR(RUN_REASON_UNRECORDED ": not JSON"))), STR("unrecorded"),
           "with what the ledger says");
    is_str(str_of(run_reason_code(STR("no such journal"))), STR("other"), "or has failed");
    ok(!run_reason_code(STR("")) && !run_reason_code(STR_NULL), "or none of these");
    return tap_done();
}
