/* http2_memory.h -- what sessions of nghttp2 allocate: the same few small blocks for every stream.
 *
 * Freed blocks are kept for the next stream, by size and up to a limit, for all sessions together:
 * malloc caches only seven of a size, and here a thousand come and go. */
#ifndef WIRE_HTTP2_MEMORY_H
#define WIRE_HTTP2_MEMORY_H

#include <nghttp2/nghttp2.h>

#define HTTP2_MEMORY_KEPT_MAX (1u << 20) /* bytes; the rest goes back to malloc */

nghttp2_mem *http2_memory(void); /* for nghttp2_session_client_new3 and _server_new3 */
void http2_memory_trim(void);    /* frees what is kept; for when a session has ended */
size_t http2_memory_kept(void);  /* bytes */
#endif
