/* extract.h -- tasks of extraction: the fields of a template, out of many documents (EXT-1 to
 * EXT-3).
 *
 * Owns the tables extraction_task, extraction_result and extraction_edit. A task has one template
 * and 1 to EXTRACT_DOCUMENTS_MAX documents, each of which is a row of extraction_result and a job
 * of queue "extract". Ids of tasks are "<uid>-<random>", of rows (and their jobs)
 * "<task id>.<place>", places from 1: an id of another user is ERR_NOT_FOUND, by its beginning and
 * once more by the row.
 *
 *   1. Submit (submit.c): template with its version, model and price are frozen. One transaction
 *      writes the task, its rows, and what they will cost (job_reserve). The jobs are pushed after
 *      the answer; those that Redis has not heard of are found by jobs_refill_role.
 *   2. Work (work.c), for each row by itself: the text of the document is cut into parts; the AI is
 *      asked about each, and its reply checked (reply.h); a wrong one is asked for again with the
 *      complaint, at most EXTRACT_ASKS_MAX times in all for a part. The values are kept in the row
 *      after each part; the statement that keeps the last one says that the payment begins
 *      (paying). Documents that are at the same step on a node share statements (rows.c).
 *   3. Pay: job_pay by the row's id. Then the row is completed, and what was reserved is free.
 *   4. Close (close.c): at least every ten seconds one node looks whether an open task has neither
 *      pending nor extracting rows, and completes it; the same transaction writes what its webhook
 *      is told (engine/people/hooks.h).
 *
 * Always true, whatever dies when:
 *   - a job writes its own row and nothing else; progress is counted from the rows, so it cannot be
 *     wrong for long. Only submit, close, cancel and retry write the row of the task;
 *   - a document is paid at most once (by the row's id), and only after its values were kept: what
 *     ends in error or is cancelled has cost nothing, and what is completed is paid;
 *   - what was kept is not asked again: a job that died goes on with the first part of its document
 *     whose values its row does not have, or pays;
 *   - a row has either paying or an end: a cancellation and a payment exclude each other in one
 *     statement each. Rows whose payment has begun are finished after a cancellation;
 *   - a task is closed once: by an UPDATE that finds it processing. A retry opens it again, and its
 *     next closing is told with another id.
 * When the AI is away, or money or permission is lacking, rows wait, say so, and lose no try.
 * Errors that may pass are tried again, at most extract.tries times; all others end the row.
 *
 * version of a row: a job works on one version only. A retry, a cancellation and an edit by hand
 * add one. Rows are edited only when they are completed, so no job reads what an edit wrote. */
#ifndef APP_EXTRACT_EXTRACT_H
#define APP_EXTRACT_EXTRACT_H

#include "app/extract/pdf.h"
#include "base/json.h"
#include "engine/jobs/jobs.h"
#include "engine/setup/node.h"
#include "engine/store/role.h"
#include "wire/sql.h"

struct extract;

#define EXTRACT_QUEUE         "extract"
#define EXTRACT_DOCUMENTS_MAX 10000
#define EXTRACT_PLACES        16384 /* extraction_result.number is task * this + place */
#define EXTRACT_TASKS_MAX     100   /* of one user that are open */
#define EXTRACT_ASKS_MAX      3     /* about a part: the first one, and twice with the complaint */
#define EXTRACT_REQUEST_CHARS 64
#define EXTRACT_NAME_CHARS    200
#define EXTRACT_WEBHOOK_CHARS 2000
#define EXTRACT_PAGE_MAX      100
#define EXTRACT_CLOSE_EACH_MS 1000
#define EXTRACT_CLOSE_ROUNDS  8 /* in so many every open task is looked at */

/* Borrows n, whose jobs, ledger, runs, ai, blocks and config it uses; adds the queue. */
struct extract *extract_new(struct node *n);
void extract_free(struct extract *x);

int extract_no_task(struct task *t); /* ERR_NOT_FOUND, with its text */
int extract_no_row(struct task *t);  /* likewise */

/* --- submitting --- */

struct extract_wish {
    int64_t uid;
    struct str template_id, language; /* language: of a ready template; p == NULL: English */
    const struct str *document_ids;   /* of documents; else papers of a run: */
    size_t document_count;
    struct str query_id;    /* p == NULL: documents */
    const struct str *dois; /* of the run, that were picked; none: all that are relevant */
    size_t doi_count;
    struct str name, project_id, request_id, webhook; /* p == NULL: not given */
};
struct extract_offer {
    int64_t documents, cents; /* cents: of all */
};
/* What it would cost. ERR_NOT_FOUND names what is not there; ERR_CONFLICT: the run has not ended,
 * or is not archived yet, or has no relevant papers. */
MUST_CHECK int extract_estimate(struct task *t, struct extract *x, const struct extract_wish *w,
                                struct extract_offer *out);
struct extract_submitted {
    struct str id;             /* all in the task's arena */
    struct str webhook_secret; /* p == NULL: there is no webhook */
    int64_t total;
    bool repeated; /* the same request has submitted it before: nothing was done now */
};
/* *out->id.p == NULL: the request has submitted nothing so far. ERR_CONFLICT: its request_id has
 * submitted another task. */
MUST_CHECK int extract_repeated(struct task *t, struct extract *x, const struct extract_wish *w,
                                struct extract_submitted *out);
/* ERR_FUNDS, ERR_FORBIDDEN, ERR_UNAVAILABLE, ERR_UNCERTAIN: as promise_make. ERR_RATE:
 * EXTRACT_TASKS_MAX are open. ERR_INVALID, ERR_NOT_FOUND, ERR_CONFLICT: as above. */
MUST_CHECK int extract_submit(struct task *t, struct extract *x, const struct extract_wish *w,
                              struct extract_submitted *out);

/* Why a row failed, or what it waits for, by a word: besides those of the engine (jobs.h), and what
 * is wrong with a document (pdf.h). */
#define EXTRACT_NO_KEY        "no_key"        /* the AI service has no active key */
#define EXTRACT_SERVICE_DOWN  "service_down"  /* the AI service does not work */
#define EXTRACT_REFUSED       "refused"       /* the AI service refuses the request */
#define EXTRACT_TOO_SLOW      "too_slow"      /* the deadline passed, at every try */
#define EXTRACT_BAD_ANSWER    "bad_answer"    /* no answer fitted the template */
#define EXTRACT_FIELD_MISSING "field_missing" /* a required field is in no part */
#define EXTRACT_PAPER_GONE    "paper_gone"    /* not in the corpus any more */
#define EXTRACT_PAPER_DAMAGED "paper_damaged"
#define EXTRACT_DOCUMENT_GONE "document_gone"
#define EXTRACT_REASONS                                                                            \
    JOB_REASONS "|" PDF_REASONS "|" EXTRACT_NO_KEY "|" EXTRACT_SERVICE_DOWN "|" EXTRACT_REFUSED    \
                "|" EXTRACT_TOO_SLOW "|" EXTRACT_BAD_ANSWER "|" EXTRACT_FIELD_MISSING              \
                "|" EXTRACT_PAPER_GONE "|" EXTRACT_PAPER_DAMAGED "|" EXTRACT_DOCUMENT_GONE         \
                "|" PDF_READER

/* --- tasks, as their users see them --- */

/* Counted from the rows. */
struct extract_counts {
    int64_t pending, extracting, completed, errors, cancelled;
};
struct extract_task {
    int64_t number, uid;
    struct str id, name, status; /* processing, completed, cancelled */
    struct str project_id, query_id, template_id, template_name; /* p == NULL: none */
    int64_t template_version;
    struct str fields; /* JSON, frozen */
    int64_t total, cents;
    struct str model, webhook;
    int64_t created_ms, completed_ms; /* completed_ms: 0: not yet */
    struct extract_counts counts;
    struct str waits;  /* what its rows wait for; p == NULL: nothing */
    struct str reason; /* the same by a word of EXTRACT_REASONS */
    bool simulated;    /* values of it are of the simulated AI */
};
/* The first without its counts and waits. ERR_NOT_FOUND: the user has no such task. */
MUST_CHECK int extract_task_find(struct task *t, struct extract *x, int64_t uid, struct str id,
                                 struct extract_task *out);
MUST_CHECK int extract_task_get(struct task *t, struct extract *x, int64_t uid, struct str id,
                                struct extract_task *out);
struct extract_page {
    struct extract_task *list; /* the newest first; without fields */
    size_t count;
    int64_t next; /* number to go on below; 0: nothing more */
};
MUST_CHECK int extract_task_list(struct task *t, struct extract *x, int64_t uid, int64_t below,
                                 int64_t limit, struct extract_page *out);
/* Rows that no payment has begun for are cancelled, their money is free. ERR_CONFLICT: it is not
 * processing. *out as extract_task_get. */
MUST_CHECK int extract_task_cancel(struct task *t, struct extract *x, int64_t uid, struct str id,
                                   struct extract_task *out);
/* Rows in error are pending again, their money is reserved again, and the task is open: errors as
 * extract_submit. ERR_CONFLICT: there are none, or the task was cancelled. */
MUST_CHECK int extract_task_retry(struct task *t, struct extract *x, int64_t uid, struct str id,
                                  struct extract_task *out);
/* The same with one row. ERR_NOT_FOUND: there is none at this place. ERR_CONFLICT: it is not in
 * error, or the task was cancelled. */
MUST_CHECK int extract_row_retry(struct task *t, struct extract *x, int64_t uid, struct str id,
                                 int64_t place, struct extract_task *out);

/* --- the aggregator; arg: a struct extract. With a lock, every EXTRACT_CLOSE_EACH_MS --- */

role_fn extract_close_role;
#endif
