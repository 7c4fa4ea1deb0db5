/* embedding_reply.h -- what an embedding service answers: vectors, each of them checked. */
#ifndef ENGINE_AI_EMBEDDING_REPLY_H
#define ENGINE_AI_EMBEDDING_REPLY_H

#include "base/err.h"
#include "base/str.h"

#define EMBEDDING_REPLY_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define EMBEDDING_DIMENSIONS_MAX  8192

struct embedding_vector {
    const float *v;  /* as the service gave it; NULL: it gave none */
    double scale;    /* makes its length one; 0: it has none, */
    const char *why; /* because of this, a constant that completes "the service sent …" */
};

struct embedding_reply {
    struct str model; /* as the service calls it; "": it does not say */
    int64_t tokens;   /* -1: it does not say */
    size_t dimensions, wrong;
    struct embedding_vector *vectors; /* as many as there were texts, in their order */
};

/* Reads a reply about count texts: numbers or base64, in whatever order; lives in a and in body.
 * All vectors have the same dimensions, and there is one for each text; those that are not finite,
 * nothing but zeros, or null are marked, and counted in wrong. ERR_PROTO: anything else is wrong;
 * *problem, in a, completes "the service sent …". */
MUST_CHECK int embedding_reply_read(struct arena *a, struct str body, size_t count,
                                    struct embedding_reply *out, const char **problem);
#endif
