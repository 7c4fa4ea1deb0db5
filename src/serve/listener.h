/* listener.h -- the listening socket that all nodes accept from. */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include "loop/task.h"

/* Listens at a valid "listen" setting. While the port is in use, retries for up to retry_ms: nodes
 * of a supervisor that was killed may still hold it. ERR_IO. */
MUST_CHECK int listener_open(struct task *t, const char *listen, int64_t retry_ms, int *fd);

/* "http://127.0.0.1:8080": the URL for a browser on this machine. */
const char *listener_url(struct arena *a, int fd);
#endif
