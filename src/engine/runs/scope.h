/* scope.h -- what a run was about and what it was judged by, to be shown and exported (SCR-15).
 *
 * Owns query_judge, prompt_text and query_log.simulated. What is asked about which papers at which
 * price is frozen at submission, in search_params. Model and prompt are settings of the server,
 * which may change while a run goes on: so a row says which were used, and from when. It is written
 * before the first verdict of that model, prompt and kind of AI is recorded. A run is simulated as
 * soon as one of its verdicts is, and stays so; which verdicts are, each of them says. */
#ifndef ENGINE_RUNS_SCOPE_H
#define ENGINE_RUNS_SCOPE_H

#include "engine/runs/row.h"

struct scope_judge {
    struct str model, prompt, digest; /* digest: of prompt, SHA-256 in hexadecimal */
    bool simulated;
    int64_t since_ms; /* its first verdict */
};
/* Idempotent. since_ms is not read. */
MUST_CHECK int scope_note_judge(struct task *t, const struct runs *r, struct run_id id,
                                const struct scope_judge *j);

struct scope {
    struct run_row row;
    const struct json *params; /* search_params; NULL: they cannot be read */
    struct scope_judge *judges;
    size_t judge_count;
    struct run_row original; /* what is distilled; qid p == NULL: nothing, or it is gone */
};
/* In the task's arena. ERR_NOT_FOUND: the user has no such run. */
MUST_CHECK int scope_read(struct task *t, const struct runs *r, struct run_id id,
                          struct scope *out);
#endif
