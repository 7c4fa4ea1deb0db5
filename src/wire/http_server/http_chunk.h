/* http_chunk.h -- the framing of chunked bodies. Incremental, copies nothing.
 *
 * Chunk extensions and trailers are dropped (RFC 9112, 7.1), but not read loosely: a line ends with
 * CR LF only, and neither byte may stand elsewhere in it, so that no two programs can disagree
 * where the body ends. */
#ifndef WIRE_HTTP_CHUNK_H
#define WIRE_HTTP_CHUNK_H

#include <stdint.h>

#include "base/str.h"

struct http_chunks {
    int state;        /* zero to begin with, like the next two */
    int digits;       /* of the size, so far */
    uint64_t left;    /* bytes of this chunk still to come */
    size_t extra_max; /* bytes of extensions and trailers that may still come; 0: refused */
};

enum http_chunk_verdict { HTTP_CHUNK_MORE, HTTP_CHUNK_DATA, HTTP_CHUNK_END, HTTP_CHUNK_BAD };

/* Reads from in, and says in *used how far.
 * DATA: *data is the next piece of the body, never empty, a part of in (and of *used); call again.
 * MORE: in is used up. END: the body is over. BAD: it is no chunked body. */
enum http_chunk_verdict http_chunk_next(struct http_chunks *c, struct str in, size_t *used,
                                        struct str *data);
#endif
