#include "serve/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/setup/config.h"
#include "tests/tap.h"

#define GIVEN_FD 3

static char dir[] = "/tmp/listener_test.XXXXXX";

static const char *at_path(struct task *t, const char *name)
{
    return arena_printf(task_arena(t), "unix:%s/%s", dir, name);
}

static bool answers(const char *listen_at)
{
    struct sockaddr_storage address;
    socklen_t len;
    check(config_address(str_of(listen_at), &address, &len));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (struct sockaddr *)&address, len) == 0;
    close(fd);
    return connected;
}

static int rights(const char *listen_at)
{
    struct stat st;
    return lstat(config_unix_path(listen_at), &st) < 0 ? -1 : (int)(st.st_mode & 07777);
}

static void refused(struct task *t, const char *listen_at, const char *why)
{
    int fd;
    is_int(listener_open(t, listen_at, 0, &fd), ERR_IO, "refused: %s", listen_at);
    is_str(str_of(task_error(t)),
           str_of(arena_printf(task_arena(t), "cannot listen at %s: %s", listen_at, why)),
           "and why");
}

static void test_path(struct task *t)
{
    const char *at = at_path(t, "http.sock");
    int fd, second;
    umask(0);
    is_int(listener_open(t, at, 0, &fd), 0, "listen at a path");
    umask(022);
    is_int(rights(at), 0600, "nothing but the owner can connect at first");
    is_int(listener_admit(t, at, 0666, getuid(), getgid()), 0, "let others in");
    is_int(rights(at), 0666, "whatever the umask");
    is_str(str_of(listener_url(task_arena(t), fd)), str_of(at), "its name");
    is_str(str_of(listener_pages(at)), STR("https://HOST"), "the pages are where the proxy says");
    ok(answers(at), "clients connect");

    refused(t, at, "Address already in use; choose another with --listen or MILLRACE_LISTEN");
    ok(answers(at), "the first one is not disturbed");
    close(fd);
    is_int(rights(at), 0666, "a process that is killed leaves the file");
    is_int(listener_open(t, at, 0, &second), 0, "which is replaced");
    ok(answers(at), "and clients connect again");
    listener_remove(at);
    is_int(rights(at), -1, "removed");
    close(second);
    is_int(listener_admit(t, at, 0660, getuid(), getgid()), ERR_IO, "rights of nothing");

    const char *file = at_path(t, "file");
    int other = open(config_unix_path(file), O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
    close(other);
    refused(t, file, "Socket operation on non-socket; the file there is not removed");
    is_int(rights(file), 0640, "a file that is no socket stays");
    unlink(config_unix_path(file));
    refused(t, at_path(t, "none/http.sock"), "No such file or directory; make the folder first");
}

static void test_address(struct task *t)
{
    int fd;
    is_int(listener_open(t, "127.0.0.1:0", 0, &fd), 0, "listen at an address");
    const char *url = listener_url(task_arena(t), fd);
    ok(str_starts(str_of(url), STR("http://127.0.0.1:")), "its URL");
    is_str(str_of(listener_pages(url)), str_of(url), "the pages are there, too");
    is_int(listener_admit(t, "127.0.0.1:0", 0600, 0, 0), 0, "rights do not matter");
    listener_remove("127.0.0.1:0");
    close(fd);
}

/* --- socket activation --- */

static void pass(struct task *t, int fd, const char *count, int pid)
{
    check(fd < 0 || dup2(fd, GIVEN_FD) == GIVEN_FD);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_PID", arena_printf(task_arena(t), "%d", pid), 1);
    setenv("LISTEN_FDNAMES", "http", 1);
}

static void is_given(struct task *t, int fd, const char *count, int want_err, const char *why)
{
    int got;
    pass(t, fd, count, (int)getpid());
    is_int(listener_given(t, &got), want_err, "%s", why);
    if (want_err)
        is_str(str_of(task_error(t)), str_of(why), "in these words");
    is_int(got, want_err || !strcmp(count, "0") ? -1 : GIVEN_FD, "the descriptor");
    ok(!getenv("LISTEN_FDS") && !getenv("LISTEN_PID") && !getenv("LISTEN_FDNAMES"),
       "children do not see the variables");
}

static void test_given(struct task *t)
{
    int tcp = socket(AF_INET, SOCK_STREAM, 0), got;
    check(tcp >= 0 && listen(tcp, 1) == 0);
    is_given(t, tcp, "1", 0, "a socket");
    ok(fcntl(GIVEN_FD, F_GETFL) & O_NONBLOCK, "it does not block");
    is_int(fcntl(GIVEN_FD, F_GETFD), FD_CLOEXEC, "and is closed by exec");

    pass(t, -1, "1", (int)getppid());
    ok(listener_given(t, &got) == 0 && got == -1, "sockets for another process");
    ok(!getenv("LISTEN_FDS"), "whose variables go all the same");
    ok(listener_given(t, &got) == 0 && got == -1, "no socket");
    is_given(t, -1, "0", 0, "none");
    is_given(t, -1, "2", ERR_INVALID,
             "LISTEN_FDS is \"2\"; expected is one socket: a socket unit for millrace has one "
             "ListenStream=");
    is_given(t, -1, "x", ERR_INVALID,
             "LISTEN_FDS is \"x\"; expected is one socket: a socket unit for millrace has one "
             "ListenStream=");
    int file = open("/dev/null", O_RDONLY);
    is_given(t, file, "1", ERR_INVALID,
             "the file 3 that the service manager has passed is not a socket");
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    is_given(t, udp, "1", ERR_INVALID,
             "the file 3 that the service manager has passed is not a stream socket; use "
             "ListenStream=");
    int idle = socket(AF_UNIX, SOCK_STREAM, 0);
    is_given(t, idle, "1", ERR_INVALID,
             "the file 3 that the service manager has passed does not listen; use Accept=no");
    int odd = socket(AF_NETLINK, SOCK_RAW, 0);
    is_given(t, odd, "1", ERR_INVALID,
             "the file 3 that the service manager has passed is a socket of another family than "
             "IPv4, IPv6 and unix");
    const int used[] = {tcp, file, udp, idle, odd};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        close(used[i]);
}

static void test_all(struct task *t, void *arg)
{
    (void)arg;
    test_path(t);
    test_address(t);
    test_given(t);
}

int main(void)
{
    check(mkdtemp(dir));
    int reserved = open("/dev/null", O_RDONLY);
    check(dup2(reserved, GIVEN_FD) == GIVEN_FD); /* so that the loop does not use it */
    tap_task(test_all, NULL, true);
    rmdir(dir);
    return tap_done();
}
