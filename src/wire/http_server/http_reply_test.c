/* Mistakes of a handler stop the process: those tests run in child processes that must abort. And
 * what it may do to the headers. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

static int silent(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)t, (void)x, (void)ctx;
    return 0;
}

static int twice(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int err = http_reply(t, x, 200, NULL, STR(""));
    return err ? err : http_reply(t, x, 200, NULL, STR(""));
}

static int endless(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_stream_begin(t, x, 200, "text/plain");
}

static int splitting(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_set_header(x, "X-Name", STR("a\r\nSet-Cookie: b"));
    return http_reply(t, x, 200, NULL, STR(""));
}

static int framing(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_set_header(x, "content-Length", STR("5"));
    return http_reply(t, x, 200, NULL, STR(""));
}

static int unheard_of(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 299, NULL, STR(""));
}

static int empty_with_body(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 204, NULL, STR("x"));
}

static int fine(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, NULL, STR(""));
}

static int patient(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_set_header(x, "Retry-After", STR("30"));
    return task_fail(t, ERR_RATE, "slower");
}

static int own_policy(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_set_header(x, "Content-Security-Policy", STR("default-src 'none'"));
    return http_reply(t, x, 200, "text/html", STR(""));
}

static int body_error(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? http_reply_error(t, x, err, "mine") : fine(t, x, ctx);
}

static void call(struct task *t, void *handler)
{
    struct http_route route = {"GET", "/", *(http_handler **)handler, 0};
    struct site s;
    site_open(t, &s, (struct http_options){.metrics = NULL}, &route, 1, NULL);
    (void)ask(t, &s, STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    site_close(t, &s);
}

/* In a child process, with its output hidden. */
static bool stops_in(task_fn *fn, void *arg)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        check(null >= 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2);
        tap_task(fn, arg, false);
        _exit(0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static bool stops(http_handler *handler)
{
    return stops_in(call, &handler);
}

static void two_routes_for_one(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route same[] = {{"GET", "/a/:b", fine, 0}, {"GET", "/a/:c", fine, 0}};
    struct site s;
    site_open(t, &s, (struct http_options){.metrics = NULL}, same, 2, NULL);
    site_close(t, &s);
}

static void headers(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route routes[] = {
        {"GET", "/patient", patient, 0},
        {"GET", "/policy", own_policy, 0},
        {"POST", "/body", body_error, 10},
    };
    struct site s;
    site_open(t, &s, (struct http_options){.metrics = NULL}, routes, 3, NULL);
    struct reply r = ask(t, &s, STR("GET /patient HTTP/1.1\r\nHost: h\r\n\r\n"));
    ok(r.status == 429 && str_eq(reply_header(&r, "retry-after"), STR("30")),
       "the handler knows when to come back");
    r = ask(t, &s, STR("GET /policy HTTP/1.1\r\nHost: h\r\n\r\n"));
    is_str(reply_header(&r, "content-security-policy"), STR("default-src 'none'"),
           "and has a policy of its own");
    r = ask(t, &s, STR("POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx"));
    ok(r.status == 400 && !reply_has(&r, "mine"), "but a broken body is the client's fault");
    site_close(t, &s);
}

int main(void)
{
    ok(!stops(fine), "a handler that replies goes on");
    ok(stops(silent), "one that says nothing is stopped");
    ok(stops(twice), "one that replies twice");
    ok(stops(endless), "one that does not end its stream");
    ok(stops(splitting), "one that puts two headers into one");
    ok(stops(framing), "one that sets the length itself");
    ok(stops(unheard_of), "one with an unknown status");
    ok(stops(empty_with_body), "one with a body where there is none");
    ok(stops_in(two_routes_for_one, NULL), "two routes for the same path");
    tap_task(headers, NULL, false);
    return tap_done();
}
