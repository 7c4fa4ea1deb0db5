/* The test is the service manager: it has a datagram socket, and reads what is sent to it. */
#include "serve/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "tests/tap.h"

static char dir[] = "/tmp/notify_test.XXXXXX";
static struct arena arena;

/* A socket at a path, or at @name. */
static int manager_at(const char *where)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(where);
    memcpy(a.sun_path, where, n);
    if (where[0] == '@')
        a.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(fd >= 0);
    check(bind(fd, (struct sockaddr *)&a,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) == 0);
    return fd;
}

static struct str received(int fd)
{
    static char text[2048];
    ssize_t n = recv(fd, text, sizeof text, 0);
    return n < 0 ? STR("(nothing)") : str_from(text, (size_t)n);
}

static struct notify take(const char *socket_at, const char *usec, const char *pid)
{
    struct notify n;
    notify_hide();
    if (socket_at)
        setenv("NOTIFY_SOCKET", socket_at, 1);
    if (usec)
        setenv("WATCHDOG_USEC", usec, 1);
    if (pid)
        setenv("WATCHDOG_PID", pid, 1);
    notify_take(&n, &arena);
    return n;
}

static void test_send(const char *where, const char *kind)
{
    int fd = manager_at(where);
    struct notify n = take(where, NULL, NULL);
    notify_send(&n, "READY=1\nSTATUS=%d nodes", 2);
    is_str(received(fd), STR("READY=1\nSTATUS=2 nodes"), "%s: a message of two lines", kind);
    is_str(received(fd), STR("(nothing)"), "%s: in one datagram", kind);
    is_int(n.watchdog_ms, 0, "%s: no watchdog", kind);

    char long_text[4000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    notify_send(&n, "STATUS=%s", long_text);
    is_int((int64_t)received(fd).n, 1023, "%s: a long one is cut", kind);

    for (int i = 0; i < 10000; i++) /* more than the socket holds */
        notify_send(&n, "WATCHDOG=1");
    ok(true, "%s: a manager that does not read is not waited for", kind);
    close(fd);
    notify_send(&n, "WATCHDOG=1");
    ok(true, "%s: nor is one that has gone", kind);
    notify_close(&n);
}

static void test_environment(void)
{
    char self[16];
    snprintf(self, sizeof self, "%d", (int)getpid());
    struct notify n = take("@millrace-none", "90000000", self);
    ok(!getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"),
       "children do not see the variables");
    is_int(n.watchdog_ms, 90000, "watchdog");
    notify_show(&n);
    is_str(str_of(getenv("NOTIFY_SOCKET")), STR("@millrace-none"), "the next program does");
    is_str(str_of(getenv("WATCHDOG_USEC")), STR("90000000"), "and its watchdog");
    is_str(str_of(getenv("WATCHDOG_PID")), str_of(self), "and the pid");
    notify_close(&n);

    n = take("@millrace-none", "90000000", NULL);
    is_int(n.watchdog_ms, 90000, "a watchdog without a pid");
    notify_close(&n);
    n = take("@millrace-none", "90000000", "1");
    is_int(n.watchdog_ms, 0, "a watchdog of another process");
    notify_close(&n);
    const char *const wrong[] = {"soon", "-1", "0", "999", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        n = take("@millrace-none", wrong[i], NULL);
        is_int(n.watchdog_ms, 0, "a watchdog of \"%s\"", wrong[i]);
        notify_close(&n);
    }
}

static void test_no_manager(void)
{
    char long_path[200];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    const char *const wrong[] = {NULL, "", "relative", "@", "/", "vsock:2:1", long_path};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct notify n = take(wrong[i], "90000000", NULL);
        notify_send(&n, "READY=1");
        ok(n.fd == -1 && n.watchdog_ms == 0, "no manager at \"%s\"",
           wrong[i] ? wrong[i] : "(not set)");
        notify_close(&n);
    }
}

int main(void)
{
    arena_init(&arena);
    check(mkdtemp(dir));
    char path[64];
    snprintf(path, sizeof path, "%s/notify", dir);
    test_send(path, "a path");
    char name[64];
    snprintf(name, sizeof name, "@millrace-test-%d", (int)getpid());
    test_send(name, "an abstract name");
    test_environment();
    test_no_manager();
    unlink(path);
    rmdir(dir);
    arena_release(&arena);
    return tap_done();
}
