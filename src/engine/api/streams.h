/* streams.h -- event streams of a user: STREAMS_MAX at a time, over all nodes.
 *
 * Each holds a lease in Redis, so that those of a node that died are not counted for long. While
 * Redis does not answer none is counted. */
#ifndef ENGINE_API_STREAMS_H
#define ENGINE_API_STREAMS_H

#include "engine/api/api.h"

#define STREAMS_MAX     20
#define STREAM_LEASE_MS 10000
#define STREAM_RENEW_MS 3000
#define STREAM_ID_BYTES 33

struct api_stream {
    int64_t uid, renewed_ms;
    char id[STREAM_ID_BYTES];
};
/* ERR_RATE: the user has STREAMS_MAX open. */
MUST_CHECK int api_stream_open(struct task *t, struct api_call *c, struct api_stream *out);
void api_stream_keep(struct task *t, const struct node *n, struct api_stream *s); /* often */
void api_stream_close(struct task *t, const struct node *n, const struct api_stream *s);
#endif
