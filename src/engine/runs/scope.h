/* scope.h -- what a run was about and what it was judged by, to be shown and exported (SCR-15).
 *
 * Owns query_judge, prompt_text and query_log.simulated. What is asked about which papers at which
 * price is frozen at submission, in search_params, and so are the model and the digest of the
 * prompt, whose text is in prompt_text before the run is there: later settings do not change how a
 * run is judged (SCR-1). Runs that were submitted before have neither, and are judged as the
 * settings of the moment say; and whether the AI is a simulated one is not known before it answers.
 * So a row says which were used, and from when. It is written before the first verdict of that
 * model, prompt and kind of AI is recorded. A run is simulated as soon as one of its verdicts is,
 * and stays so; which verdicts are, each of them says. */
#ifndef ENGINE_RUNS_SCOPE_H
#define ENGINE_RUNS_SCOPE_H

#include "engine/runs/row.h"

/* How a run is judged that is submitted now; in the task's arena. NULL: r has no judge. */
const struct judge_origin *scope_judge_now(struct task *t, const struct runs *r);
/* Member "judge" of search_params. from may be NULL: none. */
void scope_put_judge(struct json_writer *j, const struct judge_origin *from);
/* Its model and digest, borrowed from params. False: the run was submitted before there was one. */
bool scope_frozen(const struct json *params, struct judge_origin *out);
/* Writes the text of a prompt, or finds that it is there. Idempotent. */
MUST_CHECK int scope_keep_prompt(struct task *t, struct sql_pool *sql,
                                 const struct judge_origin *from);
/* ERR_NOT_FOUND: there is none with this digest. */
MUST_CHECK int scope_find_prompt(struct task *t, struct sql_pool *sql, struct str digest,
                                 struct str *text);

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
