/* notify.h -- tells the service manager how the server is: the protocol of sd_notify(3), which is a
 * datagram of lines NAME=value to the socket that NOTIFY_SOCKET names.
 *
 * Always true:
 *   - without NOTIFY_SOCKET nothing is sent, and nothing fails;
 *   - a message never waits: a manager whose socket is full misses it;
 *   - children do not see the variables: mariadbd would report itself as the service;
 *   - MAINPID is never sent, because a reload keeps the process (serve/handover.h). */
#ifndef SERVE_NOTIFY_H
#define SERVE_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/check.h"

struct notify {
    int fd; /* -1: no manager */
    struct sockaddr_un to;
    socklen_t to_len;
    int64_t watchdog_ms; /* the manager restarts the service after so long without WATCHDOG=1; 0: it
                            does not watch */
    const char *socket, *watchdog_usec, *watchdog_pid; /* as they were; NULL: not set */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment. A
 * value that cannot be used is logged, and counts as not set. */
void notify_take(struct notify *n, struct arena *a);
/* Puts them back, for the program that replaces this one; notify_hide removes them again. */
void notify_show(const struct notify *n);
void notify_hide(void);

/* One message; its lines are separated by newlines. */
void notify_send(const struct notify *n, const char *fmt, ...) PRINTF(2, 3);
void notify_close(struct notify *n);
#endif
