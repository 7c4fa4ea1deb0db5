/* listener.h -- the listening socket that all nodes accept from: opened here at an address or a
 * path, or passed by a service manager (socket activation, sd_listen_fds(3)). */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include <sys/types.h>

#include "loop/task.h"

/* Listens at a valid "listen" setting. While it is in use, retries for up to retry_ms: nodes of a
 * supervisor that was killed may still hold it. At a path, a socket that no process listens on is
 * replaced; only the caller's user can connect until listener_admit. ERR_IO. */
MUST_CHECK int listener_open(struct task *t, const char *listen, int64_t retry_ms, int *fd);
/* Sets rights and, as root, owner of a socket at a path; does nothing for an address. ERR_IO. */
MUST_CHECK int listener_admit(struct task *t, const char *listen, mode_t mode, uid_t uid,
                              gid_t gid);
/* Removes the socket at a path; does nothing for an address. */
void listener_remove(const char *listen);

/* The socket that a service manager has passed to this process, made fit to be used; *fd is -1 if
 * there is none. Removes LISTEN_FDS and the like from the environment. ERR_INVALID: it cannot be
 * used. */
MUST_CHECK int listener_given(struct task *t, int *fd);

/* "http://127.0.0.1:8080": the URL for a browser on this machine; or "unix:/path". */
const char *listener_url(struct arena *a, int fd);
/* Where the pages are: the same, or a placeholder where only a proxy can say. */
const char *listener_pages(const char *url);
#endif
