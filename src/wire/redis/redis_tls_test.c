/* rediss:// against a real server. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/sync.h"
#include "tests/tap.h"
#include "wire/redis/redis_harness.h"
#include "wire/tls/tls_test_certs.h"

#define LARGE_BYTES (8 << 20)
#define CROWD       200
#define CALLS       50

static char dir[] = "/tmp/redis_tls_test.XXXXXX";
static char cert_path[64], key_path[64], other_path[64], port[8];
static const char *const over_tls[] = {"--tls-port",
                                       port,
                                       "--tls-cert-file",
                                       cert_path,
                                       "--tls-key-file",
                                       key_path,
                                       "--tls-auth-clients",
                                       "no",
                                       "--requirepass",
                                       "secret",
                                       NULL};

static const char *url(struct task *t, const char *at, const char *ca)
{
    return arena_printf(task_arena(t), "rediss://:secret@127.0.0.1:%s/2?ca=%s", at, ca);
}

/* --- */

struct crowd {
    struct redis *redis;
    int done;
};

static void ask(struct task *t, void *arg)
{
    struct crowd *k = arg;
    for (int i = 0; i < CALLS; i++) {
        struct task_scope scope = task_scope(t);
        const struct redis_reply *reply;
        struct str text = str_printf(task_arena(t), "%d-%d", k->done, i);
        if (redis_call(t, k->redis, STR_NULL, &reply, STR("ECHO"), text) == 0)
            k->done += str_eq(reply->str, text);
        task_scope_end(t, scope);
    }
}

static void ask_together(struct task *t, struct redis *r)
{
    struct crowd k = {.redis = r};
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < CROWD; i++)
        check(task_go(&g, "ask", ask, &k) == 0);
    check(group_join(t, &g) == 0);
    is_int(k.done, CROWD * CALLS, "many tasks share the connection");
}

static void test_calls(struct task *t, void *arg)
{
    struct fixture *f = arg;
    const struct redis_reply *reply;
    open_with(t, f, (struct redis_options){.url = url(t, port, cert_path)});
    is_int(redis_call(t, f->redis, STR("k"), &reply, STR("SET"), STR("k"), STR("v")), 0, "SET %s",
           task_error(t));
    is_int(redis_call(t, f->redis, STR("k"), &reply, STR("GET"), STR("k")), 0, "GET");
    is_str(reply->str, STR("v"), "what was set");
    char *large = malloc(LARGE_BYTES);
    check(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i * 2654435761u >> 20);
    struct str text = str_from(large, LARGE_BYTES);
    is_int(redis_call(t, f->redis, STR("k"), &reply, STR("ECHO"), text), 0, "8 MB");
    is_str(reply->str, text, "there and back");
    free(large);
    ask_together(t, f->redis);
    close_redis(t, f);
}

static void test_return(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){.url = url(t, port, cert_path)});
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0);
    store_redis_kill(&f->store);
    int err = redis_call(t, f->redis, STR_NULL, NULL, STR("PING"));
    ok(err == ERR_UNCERTAIN || err == ERR_UNAVAILABLE, "the server is gone: %s", err_name(err));
    unlink(f->store.socket_path);
    store_redis_spawn(&f->store, over_tls);
    store_redis_await(&f->store);
    for (int i = 0; i < 100 && !redis_up(f->redis); i++)
        check(task_sleep(t, 100) == 0);
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), 0, "and comes back");
    close_redis(t, f);
}

static void expect_down(struct task *t, struct fixture *f, const char *at, const char *ca,
                        const char *why)
{
    struct buf said;
    buf_init(&said);
    log_capture(&said);
    open_with(t, f, (struct redis_options){.url = url(t, at, ca), .connect_ms = 1000});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE, "refused");
    for (int i = 0; i < 250 && str_find(buf_str(&said), str_of(why)) < 0; i++)
        check(task_sleep(t, 20) == 0); /* the attempt to connect ends about when the call does */
    close_redis(t, f);
    log_capture(NULL);
    ok(str_find(buf_str(&said), str_of(why)) >= 0, "%s: %.*s", why, STR_ARG(buf_str(&said)));
    ok(str_find(buf_str(&said), STR("secret")) < 0, "without the password");
    buf_release(&said);
}

static void test_refused(struct task *t, void *arg)
{
    struct fixture *f = arg;
    expect_down(t, f, port, other_path, "TLS: its certificate is self-signed");
    expect_down(t, f, port, "/nonexistent/ca.pem", "/nonexistent/ca.pem cannot be read");
    char plain[8];
    snprintf(plain, sizeof plain, "%d", f->store.port);
    expect_down(t, f, plain, cert_path, "not reachable");
}

static void choose_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    close(fd);
    snprintf(port, sizeof port, "%d", ntohs(a.sin_port));
}

static void make_files(void)
{
    check(mkdtemp(dir));
    snprintf(cert_path, sizeof cert_path, "%s/redis.crt", dir);
    snprintf(key_path, sizeof key_path, "%s/redis.key", dir);
    snprintf(other_path, sizeof other_path, "%s/other.crt", dir);
    struct test_cert_spec spec = {.name = "redis", .san = "IP:127.0.0.1", .authority = true};
    struct test_cert cert = test_cert_make(&spec), other = test_cert_make(&spec);
    test_cert_save(&cert, cert_path);
    test_key_save(&cert, key_path);
    test_cert_save(&other, other_path);
    test_cert_free(&cert);
    test_cert_free(&other);
}

int main(void)
{
    make_files();
    choose_port();
    with_server(test_calls, over_tls);
    with_server(test_return, over_tls);
    with_server(test_refused, over_tls);
    unlink(cert_path);
    unlink(key_path);
    unlink(other_path);
    rmdir(dir);
    return tap_done();
}
