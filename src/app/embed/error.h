/* error.h -- what an error of an embedding means for what was embedded: a post, or some papers. */
#ifndef APP_EMBED_ERROR_H
#define APP_EMBED_ERROR_H

#include "base/err.h"
#include "engine/jobs/jobs.h"

struct task;

/* Why it failed, or what it waits for, by a word: besides those of the engine (jobs.h). */
#define EMBED_NO_SERVICE   "no_embedding_service"
#define EMBED_SERVICE_DOWN "service_down" /* the service, or a store of vectors, does not work */
#define EMBED_REFUSED      "refused"      /* by the service */
#define EMBED_TOO_SLOW     "too_slow"     /* the deadline passed, at every try */
#define EMBED_TOO_LONG     "too_long"     /* more chunks than can be stored at once */
#define EMBED_BAD_ANSWER   "bad_answer"   /* of the service, at every try */
#define EMBED_REASONS                                                                              \
    JOB_REASONS "|" EMBED_NO_SERVICE "|" EMBED_SERVICE_DOWN "|" EMBED_REFUSED "|" EMBED_TOO_SLOW   \
                "|" EMBED_TOO_LONG "|" EMBED_BAD_ANSWER
#define EMBED_NO_SERVICE_TEXT "there is no embedding service: ai.embedding.url is not set"

const char *embed_reason(int err); /* one of those */
/* The error that the job returns. A reply that is no good may be better the next time, and what is
 * not known to be done is done again: ERR_BUSY. Others stay as they are. */
MUST_CHECK int embed_job_error(struct task *t, int err);
#endif
