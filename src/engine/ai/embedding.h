/* embedding.h -- texts as vectors, by the embedding service.
 *
 * A call goes through four steps:
 *   1. Texts that no service takes (blank, too long) get their errors. The others are put into
 *      batches, in their order, of as many texts and tokens as the settings allow.
 *   2. Each batch is one request (ai.h: permits, retries, breaker); some are under way at once.
 *   3. The reply is read and checked as a whole (embedding_reply.h). One that cannot be read is
 *      asked for again. Of one that can be read, good vectors are taken, scaled to length one, and
 *      texts whose vectors are bad are asked for again, at most EMBEDDING_TRIES times.
 *   4. A batch that the service refuses, as too long or for one of its texts, is halved, down to
 *      single ones: what is refused alone is that text's own error, and the others go on. If both
 *      halves of a refused batch work, batches have no more texts than those from then on.
 *      A service that refuses EMBEDDING_REFUSED_MAX texts alone and has answered none refuses all.
 *
 * Vectors are asked for in base64, which is half as long as numbers and read in a quarter of the
 * time. The first refusal of a service that has not answered yet is tried once more without that,
 * and what works is remembered; ai.embedding.params decides it, if it has encoding_format.
 *
 * Always true: the vectors of a call are all of one model and of one dimension. */
#ifndef ENGINE_AI_EMBEDDING_H
#define ENGINE_AI_EMBEDDING_H

#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"

struct ai;
struct embedding;
struct permits;
struct sem;
struct task;

#define EMBEDDING_TEXTS_MAX      4096 /* of a call */
#define EMBEDDING_TEXT_BYTES_MAX (256 * 1024)
#define EMBEDDING_BATCHES_MAX    4 /* of a call, under way at once */
#define EMBEDDING_TRIES          3
#define EMBEDDING_REFUSED_MAX    4

struct embedding_options {
    struct ai *ai;           /* this and the next two borrowed */
    struct permits *permits; /* of the same service; may be NULL */
    struct metrics *metrics;
    const char *model;  /* copied */
    const char *params; /* members of the request, as endpoint.h has them; copied. NULL: none */
    int64_t dimensions; /* that are asked for, and expected; 0: as many as the model has */
    int64_t batch_texts, batch_tokens;
    bool other_model; /* than that of the settings, which the service need not have: ai.h */
};
/* NULL: ai is, there is no such service. */
struct embedding *embedding_new(const struct embedding_options *o);
void embedding_free(struct embedding *e);

/* Appends the request for one text as a call would send it, for numbers. NULLs are fine for what is
 * borrowed. */
void embedding_write(struct arena *a, const struct embedding_options *o, struct str text,
                     struct buf *out);

struct embedding_item {  /* of one text */
    const float *vector; /* of length one; NULL: there is none, */
    int err;             /* because of this: */
    const char *why;     /* for users */
};

struct embedding_answer {
    struct str model;  /* by the name that the reply gives it; of the settings, if it gives none */
    size_t dimensions; /* 0: there is no vector */
    struct embedding_item *items; /* one for each text */
    size_t failed;                /* of them */
    int64_t tokens, calls;        /* of the calls that were answered; all, without attempts */
};

/* Asks for count texts. 0: each has a vector, or an error of its own: ERR_INVALID (it is blank),
 * ERR_LIMIT (it is longer than any service takes), ERR_REFUSED, ERR_PROTO (no usable vector). Other
 * errors are those of all texts: ERR_CANCELED, ERR_TIMEOUT and ERR_UNAVAILABLE as ai_ask has them;
 * ERR_REFUSED: the service refuses all; ERR_CONFLICT: it has changed its model meanwhile, ask
 * again. asks as in ai.h. Everything in *out is in the task's arena; texts are borrowed until the
 * return. */
MUST_CHECK int embedding_ask(struct task *t, struct embedding *e, const struct str *texts,
                             size_t count, const bool *asks, struct embedding_answer *out);
/* The same, with no more requests under way at once than calls has permits, over all that share
 * it. */
MUST_CHECK int embedding_ask_within(struct task *t, struct embedding *e, const struct str *texts,
                                    size_t count, const bool *asks, struct sem *calls,
                                    struct embedding_answer *out);
#endif
