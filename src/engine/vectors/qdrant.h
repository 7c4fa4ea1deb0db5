/* qdrant.h -- a collection of a Qdrant server as a store of points, over its REST API.
 *
 * A space of a collection is a collection of the server, named "<collection>_<space>"; the name
 * without the number is an alias, which publish moves in one step. The server drops the alias with
 * the collection that it means: publish again after create.
 *
 * A point's id is a UUID made of owner and part, so a point that is stored again takes the place of
 * the former one. Its payload has, for the store itself: owner and version (decimal digits in a
 * string: numbers beyond 2^53 are rounded by many programs), chunkIndex (the part), flags (the
 * numbers of the bits that are set, as filters need them), journal and year; and for other programs
 * that read the server: title and chunkText, of posts postId and hide ("1": the first flag is set,
 * else "0"), of papers doi.
 *
 * put is several requests: points are upserted, some megabytes at a time; then one deletes all
 * points of the owners that are not among the new ones. So
 *   - no search returns two points of one id, and the points of an owner are never all missing;
 *   - in between, and after a call that failed, a search may return new points of an owner together
 *     with former ones, of parts that are not replaced yet or do not exist any more. The caller
 *     compares point.version with its row, and passes over points of another version;
 *   - a repeat brings what was left undone. Two puts of one owner at a time may leave points of
 *     either: the caller lets one job at a time work on an owner. So may a request that is done
 *     only after its caller gave up, and after a later change of the same owner.
 *
 * settle does nothing: each change was answered after the server had applied it, and written it to
 * its log. What a power failure takes from that is the server's to say (a few seconds, by default);
 * a caller that finds fewer points than its rows name makes the store anew.
 *
 * Errors are those of points.h, but never ERR_PROTO: a reply that cannot be read tells nothing of
 * the points, so it is ERR_UNAVAILABLE of what reads, and ERR_UNCERTAIN of what writes. Likewise
 * all that ends a request after it may have been done (timeout, lost connection, 5xx).
 * ERR_UNAVAILABLE, too: the server refuses the key; a 404 that does not come from Qdrant.
 * ERR_REFUSED: other refusals (400, 413, …), since what was passed has been checked before. */
#ifndef ENGINE_VECTORS_QDRANT_H
#define ENGINE_VECTORS_QDRANT_H

#include "engine/vectors/points.h"

#define QDRANT_HIDDEN 1u /* the flag that is "hide" of a post */

struct http_client;

struct qdrant_options {
    struct http_client *client; /* borrowed */
    const char *url;            /* "https://host:6333"; these are copied */
    const char *api_key;        /* "": none */
    const char *collection;     /* "blog_posts", "papers": letters, digits, '_' and '-' */
    int64_t space;              /* number */
    bool papers;                /* which payload */
    int64_t timeout_ms;         /* of one request */
};
/* NULL: the URL or the key is none; *why, a constant, says what is wrong. Ends by its ops->free,
 * when no call is under way. */
struct points_store *qdrant_new(const struct qdrant_options *o, const char **why);
#endif
