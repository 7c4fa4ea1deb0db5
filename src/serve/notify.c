#include "serve/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

#define SOCKET        "NOTIFY_SOCKET"
#define WATCHDOG      "WATCHDOG_USEC"
#define WATCHDOG_PID  "WATCHDOG_PID"
#define MESSAGE_BYTES 1024

/* "/path" or "@name" in the abstract namespace, which has a NUL in place of the @. */
static bool parse_address(const char *text, struct sockaddr_un *out, socklen_t *len)
{
    size_t n = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || n < 2 || n >= sizeof out->sun_path)
        return false;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, text, n);
    if (text[0] == '@')
        out->sun_path[0] = '\0';
    /* The length of an abstract name counts: a NUL at its end would be another name. */
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (text[0] == '/'));
    return true;
}

static int64_t watchdog_of(const struct notify *n)
{
    int64_t usec, pid;
    if (!n->watchdog_usec)
        return 0;
    if (n->watchdog_pid && (!str_to_i64(str_of(n->watchdog_pid), &pid) || pid != getpid()))
        return 0; /* meant for another process */
    if (str_to_i64(str_of(n->watchdog_usec), &usec) && usec >= 1000)
        return usec / 1000;
    log_warn("serve", WATCHDOG " is \"%s\", which is no time of at least 1000 µs; no watchdog",
             n->watchdog_usec);
    return 0;
}

static const char *take(struct arena *a, const char *name)
{
    const char *value = getenv(name);
    return value && *value ? arena_strdup(a, value) : NULL;
}

void notify_take(struct notify *n, struct arena *a)
{
    *n = (struct notify){.fd = -1,
                         .socket = take(a, SOCKET),
                         .watchdog_usec = take(a, WATCHDOG),
                         .watchdog_pid = take(a, WATCHDOG_PID)};
    notify_hide();
    if (!n->socket)
        return;
    if (!parse_address(n->socket, &n->to, &n->to_len)) {
        log_warn("serve",
                 SOCKET
                 " is \"%s\", which is no path and no @name; the service manager is not told",
                 n->socket);
        return;
    }
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->fd < 0)
        log_warn("serve", "the service manager is not told: socket: %s", strerror(errno));
    else
        n->watchdog_ms = watchdog_of(n);
}

static void put_back(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
}

void notify_show(const struct notify *n)
{
    put_back(SOCKET, n->socket);
    put_back(WATCHDOG, n->watchdog_usec);
    put_back(WATCHDOG_PID, n->watchdog_pid);
}

void notify_hide(void)
{
    unsetenv(SOCKET);
    unsetenv(WATCHDOG);
    unsetenv(WATCHDOG_PID);
}

void notify_send(const struct notify *n, const char *fmt, ...)
{
    if (n->fd < 0)
        return;
    char text[MESSAGE_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t bytes = len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    if (sendto(n->fd, text, bytes, MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->to_len) < 0)
        log_debug("serve", "the service manager does not take messages: %s", strerror(errno));
}

void notify_close(struct notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}
