/* extract_private.h -- what the files of tasks know of each other.
 *
 *   extract.c      what a node holds; which rows are jobs
 *   submit.c       a task is promised
 *   picked.c       which papers of a run it is about
 *   source.c       the text of a document or a paper
 *   work.c         a document is worked on
 *   rows.c         rows of documents that are at the same step, by one statement
 *   frozen.c       what is the same for all documents of a task
 *   ask.c          what the AI is asked, and what it answers
 *   close.c        the aggregator
 *   tasks.c        tasks as users see them; cancelling, trying again
 *   task_routes.c  the same over HTTP; task_events.c: as a stream of events */
#ifndef APP_EXTRACT_TASK_EXTRACT_PRIVATE_H
#define APP_EXTRACT_TASK_EXTRACT_PRIVATE_H

#include "app/extract/extract.h"
#include "app/extract/fields/reply.h"
#include "app/extract/task/flags.h"
#include "engine/jobs/jobs.h"
#include "engine/runs/units.h"
#include "loop/gather.h"

struct bibtex;

/* What the AI has to answer: about one part of a document. */
struct extract_query {
    const struct extract_question *question;
    struct extract_reading reading;
    struct str part; /* its text */
    size_t count;    /* of the parts */
    struct str model;
    struct str complaint; /* about the last answer; p == NULL: there was none */
    const bool *asks;     /* of the job: it may ask now */
};
struct extract_answer {
    struct extract_values values;
    int64_t tokens;
    bool simulated;
    const char *complaint; /* NULL: the values fit the template */
    const char *reason;    /* of an error, by a word of EXTRACT_REASONS; NULL: as its code says */
};

/* How far the aggregator is with its look at open tasks. */
struct extract_look {
    int64_t after; /* number of a task */
    size_t page, seen;
};

#define EXTRACT_FILES_MAX     16 /* being made while they are sent, on a node */
#define EXTRACT_FILES_OF_USER 2

struct extract {
    struct node *node;
    int64_t files[EXTRACT_FILES_MAX]; /* uids whose file is being made; 0: free */
    struct job_kind kind;
    struct bibtex *reader; /* of papers */
    struct extract_look look;
    struct gather reads, keeps, papers; /* rows, and papers of runs, many by one call */
    struct list frozen;                 /* struct extract_frozen, the last used one at the end */
    size_t frozen_count;
    int64_t *completed, *asks, *wrong, *closed;
    /* For tests: another AI, and a node that dies after a step (other than 0). */
    int (*ask)(struct task *t, struct extract *x, const struct extract_query *q,
               struct extract_answer *out);
    int (*dies)(struct task *t, const char *after);
};

/* --- extract.c --- */

extern const struct job_rows extract_job_rows;
/* The first and the last number that rows of a task have. */
#define EXTRACT_FIRST(task) ((task)*EXTRACT_PLACES)
#define EXTRACT_LAST(task)  ((task)*EXTRACT_PLACES + EXTRACT_PLACES - 1)
/* Pushes rows that are pending, by their numbers. When Redis does not answer, jobs_refill_role
 * finds them; so only ERR_CANCELED. */
MUST_CHECK int extract_push(struct task *t, struct extract *x, int64_t first, int64_t last);

/* --- picked.c --- */

struct extract_paper {
    struct str doi, block_key;
};
/* The papers of a run that w names, in the task's arena; at most EXTRACT_DOCUMENTS_MAX. */
MUST_CHECK int extract_papers(struct task *t, struct extract *x, const struct extract_wish *w,
                              struct extract_paper **out, size_t *count);

/* --- source.c --- */

struct extract_source {
    struct str document_id;    /* p == NULL: a paper */
    struct str doi, block_key; /* of a paper */
    struct str text, title;    /* title: of a paper; p == NULL: it has none */
    const char *reason;        /* of an error, by a word of EXTRACT_REASONS; NULL: JOB_OTHER */
};
/* Fills in text and title, in the task's arena. ERR_INVALID, ERR_NOT_FOUND: the document's fault,
 * for good, with a sentence for the user. */
MUST_CHECK int extract_source_read(struct task *t, struct extract *x, int64_t uid,
                                   struct extract_source *s);

/* Papers that are wanted at the same time are read by one call. */
void extract_source_init(struct extract *x);

/* --- frozen.c --- */

/* What a task has frozen, parsed. Lives while it has users. */
struct extract_frozen {
    struct list link;
    int64_t number; /* of the task */
    int users;
    struct arena arena;
    struct str model;
    struct extract_template template;
    struct extract_question *question;
    const char *problem; /* why the template cannot be read; NULL: it can */
};
/* NULL: it is not here; extract_frozen_load brings it, if there is such a task. */
struct extract_frozen *extract_frozen_get(struct extract *x, int64_t number);
void extract_frozen_put(struct extract_frozen *f); /* NULL: nothing */
/* Of these tasks, what is not here; one statement at most. */
MUST_CHECK int extract_frozen_load(struct task *t, struct extract *x, const int64_t *numbers,
                                   size_t count);
void extract_frozen_release(struct extract *x); /* all of them, without users */

/* --- rows.c --- */

void extract_rows_init(struct extract *x);

/* A row as a job finds it; its texts are in the task's arena. */
struct extract_job_row {
    bool open; /* else it has ended, or is in another version, and the rest is empty */
    int64_t number;
    struct extract_source source;  /* without text and title */
    struct extract_frozen *frozen; /* to be put back */
    struct str complaint, kept;
    int64_t cents, asks, parts, parts_done, tokens;
    bool simulated;
};
MUST_CHECK int extract_job_read(struct task *t, struct extract *x, const struct job *j,
                                struct extract_job_row *out);

/* All values of a document, and the number of the payment that begins now. */
struct extract_kept {
    int64_t number;                 /* of the row */
    struct str result, text, title; /* title: p == NULL: it stays as it is */
    int64_t parts, tokens, token;
    bool simulated;
    struct extract_flags flags;
};
/* *done is false: the row has ended, or is in another version, and stays as it is. */
MUST_CHECK int extract_job_keep(struct task *t, struct extract *x, const struct job *j,
                                const struct extract_kept *kept, bool *done);

/* --- work.c, ask.c --- */

job_fn extract_work;
/* The AI of the settings. Errors as ai_ask; what is wrong with an answer is a complaint. */
MUST_CHECK int extract_ask(struct task *t, struct extract *x, const struct extract_query *q,
                           struct extract_answer *out);
#endif
