/* qdrant_request.h -- what a store of points asks of a Qdrant server, as JSON.
 *
 * Nothing here waits: long bodies are written on helper threads. */
#ifndef ENGINE_VECTORS_QDRANT_REQUEST_H
#define ENGINE_VECTORS_QDRANT_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "engine/vectors/points.h"

#define QDRANT_ID_BYTES      37                        /* with the NUL */
#define QDRANT_REQUEST_BYTES ((size_t)8 * 1024 * 1024) /* of points, about; servers take 32 MB */
#define QDRANT_TEXT_BYTES    ((size_t)64 * 1024)       /* of a payload; longer ones are cut */

/* A UUID of version 8, whose digits are those of owner and part. */
void qdrant_id(uint64_t owner, uint32_t part, char out[QDRANT_ID_BYTES]);

/* Payload fields that filters ask for, and their types; the server keeps an index of each. */
struct qdrant_field {
    const char *name, *type;
};
#define QDRANT_FIELDS 4
extern const struct qdrant_field qdrant_fields[QDRANT_FIELDS];

void qdrant_write_create(const struct points_space *space, struct buf *out);
void qdrant_write_field(const struct qdrant_field *f, struct buf *out);
void qdrant_write_alias(const char *alias, const char *collection, struct buf *out);
/* The points from `from` on, as many as fit into a request; returns the first that does not. */
size_t qdrant_write_points(const struct points_change *c, bool papers, size_t from,
                           struct buf *out);
/* All points of the owners that a change names, but its own. */
void qdrant_write_delete(const struct points_change *c, struct buf *out);
void qdrant_write_tag(uint64_t owner, struct point_tags tags, struct str title, bool papers,
                      struct buf *out);
void qdrant_write_query(const struct points_query *q, struct buf *out);

/* What was passed: ERR_INVALID or ERR_LIMIT with a constant in *why. What is written above has been
 * checked. */
MUST_CHECK int qdrant_check_change(const struct points_change *c, const char **why);
MUST_CHECK int qdrant_check_query(const struct points_query *q, const char **why);
#endif
