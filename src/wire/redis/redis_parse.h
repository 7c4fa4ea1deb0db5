/* redis_parse.h -- the bytes of a Redis reply (RESP2): found first, built afterwards.
 *
 * A large reply arrives in hundreds of pieces. redis_scan() goes over them as they come,
 * looks at headers only and never at a byte twice (but for the line it was cut off in), so
 * that nothing has been built when a connection breaks or a waiter leaves. Once the reply is
 * complete its size is known exactly and redis_build() makes one allocation of it. */
#ifndef WIRE_REDIS_PARSE_H
#define WIRE_REDIS_PARSE_H

#include "base/str.h"
#include "wire/redis.h"

#define REDIS_DEPTH_MAX 8                   /* arrays in arrays */
#define REDIS_BULK_MAX  (512 * 1024 * 1024) /* bytes of one string: the server's own limit */
#define REDIS_NODES_MAX (1 << 24)           /* values in one reply, arrays included */
#define REDIS_REPLY_MAX (1024 * 1024 * 1024)
#define REDIS_LINE_MAX  65536 /* bytes of a status or an error */

struct redis_scan {
    size_t pos;   /* bytes known to be well-formed; the reply's length once it is complete */
    size_t seen;  /* no line ends before here */
    size_t nodes; /* values met */
    size_t depth;
    int64_t left[REDIS_DEPTH_MAX]; /* items still to come, per array */
};

void redis_scan_init(struct redis_scan *s);

/* in: the reply from its first byte on, as far as it has arrived. 1: it is complete and s->pos
 * bytes long; 0: call again when there is more; ERR_PROTO: this is not RESP2 or too large. */
MUST_CHECK int redis_scan(struct redis_scan *s, struct str in);

/* The complete reply at p, copied into a. */
const struct redis_reply *redis_build(struct arena *a, const struct redis_scan *s, const char *p);
#endif
