/* The client against a server that the test plays itself: how it reconnects, and what it does
 * with nonsense. Time is virtual. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/timer.h"
#include "tests/tap.h"
#include "wire/redis.h"

#define INFO_BODY                                                                                  \
    "# Server\r\nrun_id:0123456789012345678901234567890123456789\r\nrole:master\r\nloading:0\r\n"

struct fake {
    char dir[32], path[64], url[80];
    int listener;
    struct group group;
    struct redis *redis;
};

static void fake_listen(struct fake *f)
{
    strcpy(f->dir, "/tmp/millrace-fake-XXXXXX");
    check(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
    snprintf(f->url, sizeof(f->url), "unix:%s", f->path);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    strcpy(addr.sun_path, f->path);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(f->listener >= 0);
    check(bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    check(listen(f->listener, 10) == 0);
}

static void fake_end(struct fake *f)
{
    close(f->listener);
    unlink(f->path);
    rmdir(f->dir);
}

/* The next connection, looked for every millisecond until then; -1: none came. */
static int fake_accept(struct task *t, struct fake *f, int64_t until_ms)
{
    while (loop_now_ms(task_loop(t)) < until_ms) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            return fd;
        check(task_sleep(t, 1) == 0);
    }
    return -1;
}

/* Waits for a command and answers. */
static void fake_answer(struct task *t, int fd, const char *answer)
{
    char said[4096];
    for (int ms = 0; read(fd, said, sizeof(said)) < 0; ms++)
        check(ms < 10000 && task_sleep(t, 1) == 0);
    check(write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer));
}

static void fake_info(struct task *t, int fd, const char *info)
{
    char text[256];
    snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(info), info);
    fake_answer(t, fd, text);
    check(task_sleep(t, 5) == 0);
}

static void fake_greet(struct task *t, int fd)
{
    fake_info(t, fd, INFO_BODY);
}

static void open_fake(struct task *t, struct fake *f, const char *password)
{
    fake_listen(f);
    group_init(&f->group, task_loop(t));
    struct redis_options o = {.url = f->url, .password = password, .name = "hot"};
    f->redis = redis_open(&f->group, &o);
    check(f->redis);
}

static void close_fake(struct task *t, struct fake *f)
{
    redis_close(f->redis);
    check(group_join(t, &f->group) == 0);
    fake_end(f);
}

static int count_of(const struct buf *lines, struct str what)
{
    int n = 0;
    struct str s = buf_str(lines);
    for (ptrdiff_t at; (at = str_find(s, what)) >= 0; n++)
        s = str_from(s.p + at + what.n, s.n - (size_t)at - what.n);
    return n;
}

/* Delays double from 50 ms to 2 s and are shortened by up to a half. */
static void backs_off(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    struct buf lines;
    buf_init(&lines);
    log_capture(&lines);
    open_fake(t, &f, NULL);
    int64_t last_ms = 0, base_ms = 50, shortest = INT64_MAX, longest = 0;
    bool in_range = true;
    for (int i = 0; i < 20; i++) {
        int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 10000);
        check(fd >= 0);
        close(fd);
        int64_t now_ms = loop_now_ms(task_loop(t)), delay_ms = now_ms - last_ms;
        if (i > 0) {
            in_range &= delay_ms >= base_ms / 2 && delay_ms <= base_ms + 3;
            if (base_ms == 2000) {
                shortest = delay_ms < shortest ? delay_ms : shortest;
                longest = delay_ms > longest ? delay_ms : longest;
            }
            base_ms = base_ms * 2 > 2000 ? 2000 : base_ms * 2;
        }
        last_ms = now_ms;
    }
    log_capture(NULL);
    ok(in_range, "each delay is in its range");
    ok(longest - shortest > 200, "and random (%lld to %lld ms)", (long long)shortest,
       (long long)longest);
    is_int(count_of(&lines, STR("hot: not reachable: it hung up before answering INFO")), 1,
           "20 attempts, one line in the log");
    close_fake(t, &f);
    buf_release(&lines);
}

/* A connection that lasted resets the backoff, one that did not does not. */
static void backoff_resets(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    open_fake(t, &f, NULL);
    struct loop *l = task_loop(t);
    int64_t delay_ms[8], lost_ms = 0;
    for (int i = 0; i < 8; i++) {
        int fd = fake_accept(t, &f, loop_now_ms(l) + 10000);
        delay_ms[i] = loop_now_ms(l) - lost_ms;
        fake_greet(t, fd);
        check(task_sleep(t, i == 6 ? 1500 : 10) == 0);
        ok(redis_up(f.redis), "connection %d is up", i);
        close(fd);
        lost_ms = loop_now_ms(l);
    }
    ok(delay_ms[6] >= 800, "six short connections: %lld ms", (long long)delay_ms[6]);
    ok(delay_ms[7] <= 60, "after a long one: %lld ms", (long long)delay_ms[7]);
    close_fake(t, &f);
}

static void knocks_slowly(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    struct buf lines;
    buf_init(&lines);
    log_capture(&lines);
    open_fake(t, &f, "guess");
    int64_t until_ms = loop_now_ms(task_loop(t)) + 60000;
    int attempts = 0, fd;
    while ((fd = fake_accept(t, &f, until_ms)) >= 0) {
        fake_answer(t, fd, "-WRONGPASS invalid password\r\n-NOAUTH Authentication required.\r\n");
        check(task_sleep(t, 5) == 0);
        close(fd);
        attempts++;
    }
    log_capture(NULL);
    ok(attempts >= 11 && attempts <= 25, "%d attempts in a minute", attempts);
    is_int(count_of(&lines, STR("it refused AUTH: WRONGPASS invalid password")), 1, "one log line");
    close_fake(t, &f);
    buf_release(&lines);
}

struct call {
    struct redis *redis;
    int err;
    char error[128];
};

static void make_call(struct task *t, void *arg)
{
    struct call *c = arg;
    c->err = redis_call(t, c->redis, STR_NULL, NULL, STR("PING"));
    snprintf(c->error, sizeof(c->error), "%s", task_error(t));
}

/* The server's answer to PING, the caller's error, and whether the connection stays. */
static void says(struct task *t, const char *answer, int err, bool stays, const char *name)
{
    struct fake f;
    struct call c;
    struct group g;
    struct buf lines;
    buf_init(&lines);
    log_capture(&lines);
    open_fake(t, &f, NULL);
    group_init(&g, task_loop(t));
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_greet(t, fd);
    c = (struct call){.redis = f.redis};
    check(task_go(&g, "call", make_call, &c) == 0);
    fake_answer(t, fd, answer);
    check(task_sleep(t, 10) == 0);
    ok(redis_up(f.redis) == stays, "%s: the connection %s", name, stays ? "stays" : "is dropped");
    close_fake(t, &f);
    check(group_join(t, &g) == 0);
    is_int(c.err, err, "%s: what the caller gets", name);
    log_capture(NULL);
    is_int(count_of(&lines, STR("the server broke the protocol")), stays ? 0 : 1, "%s: logged",
           name);
    close(fd);
    buf_release(&lines);
}

static void nonsense(struct task *t, void *arg)
{
    (void)arg;
    says(t, "+PONG\r\n", 0, true, "a good answer");
    says(t, "hello\r\n", ERR_UNCERTAIN, false, "no RESP");
    says(t, "$999999999999\r\n", ERR_UNCERTAIN, false, "an absurd length");
    says(t, "+PONG\r\n+PONG\r\n", 0, false, "an answer to no command");
    says(t, "$10\r\nabc", ERR_UNCERTAIN, true, "half an answer");
    says(t, "-ERR no such thing\r\n", ERR_REFUSED, true, "an error");
    says(t, "-MISCONF Errors writing to the AOF file: No space left on device\r\n", ERR_UNAVAILABLE,
         true, "a full disk");
    says(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", ERR_UNAVAILABLE, true,
         "no memory");
}

/* A server that is not Redis. */
static void stranger(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    open_fake(t, &f, NULL);
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_answer(t, fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
    check(task_sleep(t, 2) == 0);
    close(fd);
    struct call c = {.redis = f.redis};
    make_call(t, &c);
    is_int(c.err, ERR_UNAVAILABLE, "something that does not speak Redis");
    ok(strstr(c.error, "what answers INFO there does not speak Redis"), "is named: %s", c.error);
    close_fake(t, &f);
}

/* A node of a cluster, seen by its INFO, or by what it answers to a command. */
static void cluster(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    struct group g;
    struct buf lines;
    buf_init(&lines);
    log_capture(&lines);
    open_fake(t, &f, NULL);
    group_init(&g, task_loop(t));
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_info(t, fd, INFO_BODY "# Cluster\r\ncluster_enabled:1\r\n");
    close(fd);
    struct call c = {.redis = f.redis};
    make_call(t, &c);
    is_int(c.err, ERR_UNAVAILABLE, "a cluster is not used");
    ok(strstr(c.error, "it is a Redis Cluster, which millrace cannot use yet"), "is named: %s",
       c.error);
    ok(redis_is_cluster(f.redis), "noted");

    fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 10000);
    fake_info(t, fd, INFO_BODY "# Cluster\r\ncluster_enabled:0\r\n");
    ok(redis_up(f.redis) && !redis_is_cluster(f.redis), "a single one is used");
    check(task_go(&g, "call", make_call, &c) == 0);
    fake_answer(t, fd, "-MOVED 3999 127.0.0.1:6381\r\n");
    check(group_join(t, &g) == 0);
    is_int(c.err, ERR_UNAVAILABLE, "a redirection: not done");
    check(task_sleep(t, 10) == 0);
    ok(!redis_up(f.redis) && redis_is_cluster(f.redis), "the connection is closed");
    close(fd);
    is_int(fake_accept(t, &f, loop_now_ms(task_loop(t)) + 2000), -1, "and not made anew at once");
    log_capture(NULL);
    is_int(count_of(&lines, STR("Redis Cluster, which millrace cannot use yet")), 2,
           "one line for each");
    close_fake(t, &f);
    buf_release(&lines);
}

static const struct redis_script script = {"one", STR("return 1"), false};

static void run_script(struct task *t, void *arg)
{
    struct call *c = arg;
    c->err = redis_script_run(t, c->redis, &script, STR_NULL, 0, 0, NULL, NULL);
}

/* The connection is lost during SCRIPT LOAD: the script surely did not run. */
static void lost_while_telling(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    struct group g;
    open_fake(t, &f, NULL);
    group_init(&g, task_loop(t));
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_greet(t, fd);
    struct call c = {.redis = f.redis};
    check(task_go(&g, "call", run_script, &c) == 0);
    fake_answer(t, fd, "");
    close(fd);
    check(group_join(t, &g) == 0);
    is_int(c.err, ERR_UNAVAILABLE, "lost in the middle of SCRIPT LOAD");

    fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_greet(t, fd);
    check(task_go(&g, "call", run_script, &c) == 0);
    fake_answer(t, fd, "$40\r\n0123456789012345678901234567890123456789\r\n");
    fake_answer(t, fd, "");
    close(fd);
    check(group_join(t, &g) == 0);
    is_int(c.err, ERR_UNCERTAIN, "lost in the middle of EVALSHA");
    close_fake(t, &f);
}

/* A server that stops reading but keeps its side open: no call may wait for a reply. */
static void deaf_server(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    open_fake(t, &f, NULL);
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_greet(t, fd);
    shutdown(fd, SHUT_RD);
    struct call c = {.redis = f.redis};
    int64_t start_ms = loop_now_ms(task_loop(t));
    make_call(t, &c);
    is_int(c.err, ERR_UNAVAILABLE, "what cannot be sent is surely not run");
    ok(loop_now_ms(task_loop(t)) - start_ms < 100, "and fails at once");
    close_fake(t, &f);
    close(fd);
}

static void closing(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    struct group g;
    group_init(&g, task_loop(t));
    open_fake(t, &f, NULL);
    close_fake(t, &f);
    ok(true, "closed before it ran");

    open_fake(t, &f, NULL);
    struct call early = {.redis = f.redis};
    check(task_go(&g, "call", make_call, &early) == 0);
    check(task_sleep(t, 5) == 0);
    close_fake(t, &f);
    check(group_join(t, &g) == 0);
    is_int(early.err, ERR_UNAVAILABLE, "closed while a call waits for the first connection");

    open_fake(t, &f, NULL);
    int fd = fake_accept(t, &f, loop_now_ms(task_loop(t)) + 1000);
    fake_greet(t, fd);
    struct call late = {.redis = f.redis};
    check(task_go(&g, "call", make_call, &late) == 0);
    check(task_sleep(t, 5) == 0);
    group_cancel(&f.group);
    check(group_join(t, &f.group) == 0);
    check(group_join(t, &g) == 0);
    is_int(late.err, ERR_UNCERTAIN, "its group was cancelled while a call waits");
    make_call(t, &late);
    is_int(late.err, ERR_UNAVAILABLE, "the handle can still be asked");
    close_fake(t, &f);
    close(fd);
}

/* Calls wait for the first connection, and not for later ones. */
static void first_wait(struct task *t, void *arg)
{
    (void)arg;
    struct fake f;
    open_fake(t, &f, NULL);
    struct loop *l = task_loop(t);
    struct call c = {.redis = f.redis};
    int64_t start_ms = loop_now_ms(l);
    make_call(t, &c);
    is_int(c.err, ERR_UNAVAILABLE, "no answer from the server");
    is_int(loop_now_ms(l) - start_ms, 2000, "after connect_ms");
    start_ms = loop_now_ms(l);
    make_call(t, &c);
    is_int(c.err, ERR_UNAVAILABLE, "and then");
    is_int(loop_now_ms(l) - start_ms, 0, "at once");
    close_fake(t, &f);
}

int main(void)
{
    tap_task(backs_off, NULL, false);
    tap_task(backoff_resets, NULL, false);
    tap_task(knocks_slowly, NULL, false);
    tap_task(nonsense, NULL, false);
    tap_task(stranger, NULL, false);
    tap_task(cluster, NULL, false);
    tap_task(lost_while_telling, NULL, false);
    tap_task(deaf_server, NULL, false);
    tap_task(closing, NULL, false);
    tap_task(first_wait, NULL, false);
    return tap_done();
}
