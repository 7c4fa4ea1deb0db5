#include "loop/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/net.h"
#include "tests/tap.h"

struct pair {
    int fd[2];
    struct watch w[2];
};

static void pair_init(struct pair *p, struct loop *l)
{
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fd) == 0);
    for (int i = 0; i < 2; i++)
        watch_init(&p->w[i], l, p->fd[i]);
}

static void pair_release(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        watch_release(&p->w[i]);
        close(p->fd[i]);
    }
}

#define BIG (4 << 20)

static void write_big(struct task *t, void *arg)
{
    struct pair *p = arg;
    char *big = malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 7 >> 3);
    check(watch_write(t, &p->w[0], big, BIG) == 0);
    free(big);
}

static void test_bulk(struct task *t, void *arg)
{
    (void)arg;
    struct pair p;
    pair_init(&p, task_loop(t));
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "writer", write_big, &p) == 0);
    size_t total = 0, got = 1;
    bool same = true;
    char part[5000];
    while (total < BIG && got > 0) {
        check(watch_read(t, &p.w[1], part, sizeof part, &got) == 0);
        for (size_t i = 0; i < got; i++)
            same = same && part[i] == (char)((total + i) * 7 >> 3);
        total += got;
    }
    is_int((int64_t)total, BIG, "4 MB through a socket that holds less");
    ok(same, "byte for byte");
    check(group_join(t, &g) == 0);
    int64_t old = task_deadline(t, 20);
    is_int(watch_read(t, &p.w[1], part, sizeof part, &got), ERR_TIMEOUT, "reading has a deadline");
    task_deadline_restore(t, old);
    pair_release(&p);
}

static void test_never_read(struct task *t, void *arg)
{
    (void)arg;
    struct pair p;
    pair_init(&p, task_loop(t));
    char *big = calloc(1, BIG);
    int64_t old = task_deadline(t, 50);
    is_int(watch_write(t, &p.w[0], big, BIG), ERR_TIMEOUT, "a far end that never reads");
    task_deadline_restore(t, old);
    free(big);
    pair_release(&p);
}

/* The far end of a Unix socket that reads makes it writable, each time. */
static void test_not_awaited(struct task *t, void *arg)
{
    (void)arg;
    struct pair p;
    char c = 'x';
    pair_init(&p, task_loop(t));
    check(watch_write(t, &p.w[0], &c, 1) == 0);
    check(task_sleep(t, 10) == 0);
    watch_drained(&p.w[0], WATCH_WRITE);
    check(read(p.fd[1], &c, 1) == 1);
    check(task_sleep(t, 10) == 0);
    is_int(p.w[0].ready & WATCH_WRITE, 0, "the loop is not woken for what no task waits for");
    int64_t old = task_deadline(t, 1000);
    is_int(watch_wait(t, &p.w[0], WATCH_WRITE), 0, "a task that waits finds it writable");
    watch_drained(&p.w[0], WATCH_WRITE);
    is_int(watch_wait(t, &p.w[0], WATCH_READ | WATCH_WRITE), 0, "and again");
    task_deadline_restore(t, old);
    pair_release(&p);
}

static int gone_count;

static void write_unread(struct task *t, void *arg)
{
    struct pair *p = arg;
    char *big = calloc(1, BIG);
    (void)task_deadline(t, 5000);
    is_int(watch_write(t, &p->w[0], big, BIG), ERR_CLOSED, "a writer hears of a shutdown");
    free(big);
}

/* Its buffer is full, and stays so: the kernel does not call it writable. */
static void test_shutdown(struct task *t, void *arg)
{
    (void)arg;
    struct pair p;
    struct group g;
    pair_init(&p, task_loop(t));
    group_init(&g, task_loop(t));
    check(task_go(&g, "writer", write_unread, &p) == 0);
    check(task_sleep(t, 50) == 0);
    check(shutdown(p.fd[0], SHUT_RDWR) == 0);
    check(group_join(t, &g) == 0);
    pair_release(&p);
}

static void count_gone(void *arg)
{
    (void)arg;
    gone_count++;
}

static void test_gone(struct task *t, void *arg)
{
    (void)arg;
    struct pair p;
    pair_init(&p, task_loop(t));
    p.w[0].on_gone = count_gone;
    check(watch_write(t, &p.w[1], "last words", 10) == 0);
    watch_release(&p.w[1]);
    shutdown(p.fd[1], SHUT_RDWR);
    check(task_sleep(t, 5) == 0);
    is_int(gone_count, 1, "a hang-up is noticed once, while no task reads");
    ok(p.w[0].gone, "and remembered");
    char part[100];
    size_t got;
    ok(watch_read(t, &p.w[0], part, sizeof part, &got) == 0 && got == 10, "what was sent is read");
    ok(watch_read(t, &p.w[0], part, sizeof part, &got) == 0 && got == 0, "then the end");
    is_int(watch_write(t, &p.w[0], "x", 1), ERR_CLOSED, "writing fails");
    pair_release(&p);
}

static int listen_tcp(char port[8])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    check(bind(fd, (struct sockaddr *)&in, n) == 0 && listen(fd, 8) == 0);
    check(getsockname(fd, (struct sockaddr *)&in, &n) == 0);
    snprintf(port, 8, "%d", ntohs(in.sin_port));
    return fd;
}

/* A reset is not a plain hang-up: libevent does not call it closed. */
static void test_reset(struct task *t, void *arg)
{
    (void)arg;
    char port[8];
    int server = listen_tcp(port), fd;
    is_int(net_connect_tcp(t, "127.0.0.1", port, &fd), 0, "connects to an address");
    int peer = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    check(peer >= 0);
    struct watch w;
    watch_init(&w, task_loop(t), peer);
    w.on_gone = count_gone;
    gone_count = 0;
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    check(task_sleep(t, 20) == 0);
    is_int(gone_count, 1, "a reset is noticed while no task reads");
    watch_release(&w);
    close(peer);

    is_int(net_connect_tcp(t, "localhost", port, &fd), 0, "connects to a name");
    close(fd);
    close(server);
    is_int(net_connect_tcp(t, "127.0.0.1", port, &fd), ERR_UNAVAILABLE,
           "a port without a listener");
    ok(strstr(task_error(t), "Connection refused"), "and says so: %s", task_error(t));
    is_int(net_connect_tcp(t, "no.such.host.invalid", port, &fd), ERR_UNAVAILABLE, "no such name");
}

static void test_unix(struct task *t, void *arg)
{
    (void)arg;
    int fd;
    is_int(net_connect_unix(t, "/nonexistent/socket", &fd), ERR_UNAVAILABLE, "no such socket");
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[199] = '\0';
    is_int(net_connect_unix(t, longer, &fd), ERR_INVALID, "a path that no socket can have");
}

/* The last bytes of a pipe and its end come with one edge. */
static void test_pipe_end(struct task *t, void *arg)
{
    (void)arg;
    int fds[2];
    char part[10];
    size_t got;
    struct watch w;
    check(pipe2(fds, O_NONBLOCK) == 0);
    watch_init(&w, task_loop(t), fds[0]);
    int64_t old = task_deadline(t, 1);
    is_int(watch_read(t, &w, part, sizeof part, &got), ERR_TIMEOUT, "an empty pipe");
    task_deadline_restore(t, old);
    check(write(fds[1], "abc", 3) == 3);
    close(fds[1]);
    task_deadline(t, 2000);
    ok(watch_read(t, &w, part, sizeof part, &got) == 0 && got == 3, "its last bytes");
    ok(watch_read(t, &w, part, sizeof part, &got) == 0 && got == 0, "and its end");
    watch_release(&w);
    close(fds[0]);
}

static int polled;

static void on_poll(void *arg, int fd, int events)
{
    struct poller *p = arg;
    char part[10];
    polled += events == WATCH_READ && read(fd, part, sizeof part) == 3;
    poller_set(p, 0);
}

static void test_poller(struct task *t, void *arg)
{
    (void)arg;
    int fds[2];
    check(pipe2(fds, O_NONBLOCK) == 0);
    struct poller p;
    poller_init(&p, task_loop(t), fds[0], on_poll, &p);
    poller_set(&p, WATCH_READ);
    for (int i = 0; i < 2; i++) {
        check(write(fds[1], "abc", 3) == 3);
        check(task_sleep(t, 10) == 0);
    }
    is_int(polled, 1, "a poller calls back until it is removed");
    poller_release(&p);
    close(fds[0]);
    close(fds[1]);
}

static void on_poll_idly(void *arg, int fd, int events)
{
    (void)fd, (void)events;
    ++*(int *)arg;
}

/* What is ready and stays so must not keep tasks from running. */
static void test_unread(struct task *t, void *arg)
{
    (void)arg;
    int fds[2], seen = 0;
    check(pipe2(fds, O_NONBLOCK) == 0 && write(fds[1], "abc", 3) == 3);
    struct poller p;
    poller_init(&p, task_loop(t), fds[0], on_poll_idly, &seen);
    poller_set(&p, WATCH_READ);
    for (int i = 0; i < 100; i++)
        check(task_yield(t) == 0);
    is_int(seen, 100, "a poller is called once a turn while its bytes are not read");
    poller_release(&p);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    task_fn *const tests[] = {test_bulk,   test_never_read, test_not_awaited, test_shutdown,
                              test_gone,   test_reset,      test_unix,        test_pipe_end,
                              test_poller, test_unread};
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tap_task(tests[i], NULL, true);
    return tap_done();
}
