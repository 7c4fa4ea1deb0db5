/* qdrant_reply.h -- what a Qdrant server answers: every field is checked, whatever it sends. */
#ifndef ENGINE_VECTORS_QDRANT_REPLY_H
#define ENGINE_VECTORS_QDRANT_REPLY_H

#include "base/err.h"
#include "base/str.h"
#include "engine/vectors/points.h"

#define QDRANT_REPLY_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define QDRANT_HIT_BYTES_MAX   512 /* besides, for each hit that was asked for */
#define QDRANT_WORDS_MAX       300

/* What the server says is wrong, in its words, printable, in a; n == 0: the reply is not one of
 * Qdrant's. */
struct str qdrant_reply_error(struct arena *a, struct str body);

/* All of these return 0, or ERR_PROTO with *problem, in a or a constant, which completes "the
 * server sent …". */

/* Of a change: *done: it has been applied, not just queued. */
MUST_CHECK int qdrant_reply_change(struct arena *a, struct str body, bool *done,
                                   const char **problem);
/* Of what is answered by true or false. */
MUST_CHECK int qdrant_reply_switch(struct arena *a, struct str body, bool *yes,
                                   const char **problem);
MUST_CHECK int qdrant_reply_count(struct arena *a, struct str body, uint64_t *count,
                                  const char **problem);

struct qdrant_info {  /* of a collection */
    size_t dimension; /* 0: vectors of another kind than ours */
    struct str model; /* p == NULL: it does not say */
    bool indexed;     /* all fields that filters ask for */
};
MUST_CHECK int qdrant_reply_info(struct arena *a, struct str body, struct qdrant_info *out,
                                 const char **problem);

/* The best first, and each id once. hits has room for k. *count: how many are left when points of
 * other programs, without our payload, are passed over. *problem is a constant. */
MUST_CHECK int qdrant_reply_hits(struct arena *a, struct str body, size_t k, struct point_hit *hits,
                                 size_t *count, const char **problem);
#endif
