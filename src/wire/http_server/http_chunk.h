/* http_chunk.h -- the framing of chunked bodies. Incremental, copies nothing.
 *
 * Chunk extensions and trailers are refused: clients of an API do not send them, and programs
 * disagree about them. */
#ifndef WIRE_HTTP_CHUNK_H
#define WIRE_HTTP_CHUNK_H

#include <stdint.h>

#include "base/str.h"

struct http_chunks {
    int state;     /* zero to begin with, like the rest */
    int digits;    /* of the size, so far */
    uint64_t left; /* bytes of this chunk still to come */
};

enum http_chunk_verdict { HTTP_CHUNK_MORE, HTTP_CHUNK_DATA, HTTP_CHUNK_END, HTTP_CHUNK_BAD };

/* Reads from in, and says in *used how far.
 * DATA: *data is the next piece of the body, never empty, a part of in (and of *used); call again.
 * MORE: in is used up. END: the body is over. BAD: it is no chunked body. */
enum http_chunk_verdict http_chunk_next(struct http_chunks *c, struct str in, size_t *used,
                                        struct str *data);
#endif
