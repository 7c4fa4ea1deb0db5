/* qdrant.h -- a collection of a Qdrant server as a store of points, over its REST API.
 *
 * A space of a collection is a collection of the server, named "<collection>_<space>"; the name
 * without the number is an alias, which publish moves in one step. Payloads are those of other
 * programs that read the server: postId, chunkIndex, chunkText, title, hide; of papers doi, title,
 * chunkText, journal, year. */
#ifndef ENGINE_VECTORS_QDRANT_H
#define ENGINE_VECTORS_QDRANT_H

#include "engine/vectors/points.h"

struct http_client;

struct qdrant_options {
    struct http_client *client; /* borrowed */
    const char *url;            /* these are copied */
    const char *api_key;        /* "": none */
    const char *collection;     /* "blog_posts", "papers" */
    int64_t space;              /* number */
    bool papers;                /* which payload */
    int64_t timeout_ms;         /* of one call */
};
/* NULL: the URL is none, *why says what is wrong. Ends by its ops->free, when no call is under
 * way. */
struct points_store *qdrant_new(const struct qdrant_options *o, const char **why);
#endif
