/* run.h -- runs, as users and admins are shown them. */
#ifndef ENGINE_API_RUN_H
#define ENGINE_API_RUN_H

#include "engine/api/api.h"
#include "engine/runs/history.h"
#include "engine/runs/reserve.h"

#define API_RUN_STATES "QUEUED|RUNNING|PAUSED|DONE|CANCELLED|FAILED"

/* In the braces of rows of a table of fields, of a route that lists runs. */
#define API_RUNS_LIMIT_FIELD(text)                                                                 \
    "limit", API_INT, .optional = true, .least = 1, .most = HISTORY_LIMIT_MAX,                     \
                      .about = "runs on a page; " text " if absent"
#define API_RUNS_CURSOR_FIELD                                                                      \
    "cursor", API_TEXT, .optional = true, .least = 1, .most = 128,                                 \
                        .about = "next of the page before"
/* Of one that submits or makes something; api_request_id reads it, p == NULL: none was sent. */
#define API_REQUEST_ID_FIELD                                                                       \
    "request_id", API_TEXT, .optional = true, .least = 1, .most = LEDGER_REQUEST_BYTES_MAX,        \
                            .about = "visible ASCII, of the client's choice: the same again "      \
                                     "does nothing more, and answers with what the first one made"
MUST_CHECK int api_request_id(struct task *t, struct api_call *c, struct str *out);
/* What a user can still spend: rows of a table of fields, and members of the object that w is
 * in. */
#define API_RESERVE_FIELDS                                                                         \
    {"reserved", API_MONEY, .optional = true,                                                      \
     .about = "of the balance: what runs that are not finished may still cost; null: not known, "  \
              "a store does not answer"},                                                          \
    {                                                                                              \
        "free", API_MONEY, .optional = true,                                                       \
                           .about = "the balance less that: what a new run may cost"               \
    }
void api_put_reserve(struct task *t, struct json_writer *w, const struct reserve *r);
/* The same beside an estimate of so many cents. */
#define API_FREE_FIELDS                                                                            \
    {"free", API_MONEY, .optional = true,                                                          \
     .about = "what a new run may cost: the balance less what unfinished runs may still cost; "    \
              "null: not known now"},                                                              \
    {                                                                                              \
        "suffices", API_BOOL, .optional = true, .about = "that is at least the cost"               \
    }
MUST_CHECK int api_put_free(struct task *t, struct api_call *c, struct json_writer *w,
                            int64_t cents);
/* Why a run does not move: rows of a table of fields, and members of the object that w is in. */
#define API_REASON_FIELDS(code_text)                                                               \
    {"reason_code", API_TEXT, .optional = true, .choices = RUN_REASON_CODES, .about = code_text},  \
    {                                                                                              \
        "reason_facts", API_OBJECT, .optional = true, .about = "what there is to say about it",    \
                                    .fields = api_reason_fields                                    \
    }
extern const struct api_field api_reason_fields[];
void api_put_reason(struct json_writer *w, const char *code, const struct reason *r);
/* seconds_left_min and seconds_left_max: null if they are not known. */
void api_put_seconds(struct json_writer *w, const char *least, const char *most,
                     const struct run_view *v);

extern const struct api_field api_run_fields[];  /* of one run */
extern const struct api_field api_runs_reply[];  /* queries, next */
extern const struct api_field api_state_reply[]; /* state */

/* The handler of a route with these: a user's runs, newest first. */
MUST_CHECK int api_list_runs(struct task *t, struct api_call *c, struct json_writer *w, int64_t uid,
                             int64_t limit_default);

/* Member "nearest" of the object that w is in, and its fields; chosen: names of journals, NULL:
 * none are told. */
void api_put_nearest(struct json_writer *w, const struct run_nearest *n, int64_t found,
                     const struct json *chosen);
extern const struct api_field api_nearest_of_run[];

/* Members of the object that w is in: all of a run, or only state and numbers. */
void api_put_run(struct task *t, struct json_writer *w, struct str qid, const struct run_view *v);
void api_put_progress(struct task *t, struct json_writer *w, const struct run_view *v);
#endif
