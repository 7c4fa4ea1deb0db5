/* One Redis read, answered as small JSON: bench_http_redis PORT REDIS_SOCKET serves until SIGTERM.
 * One node's parts: the loop, the HTTP server, the Redis connection. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "wire/http_server.h"
#include "wire/redis.h"

struct bench {
    struct redis *redis;
    struct http_server *server;
    int fd;
};

static int read_one(struct task *t, struct http_exchange *x, void *ctx)
{
    struct bench *b = ctx;
    const struct redis_reply *r;
    int err = redis_call(t, b->redis, STR("bench"), &r, STR("GET"), STR("bench"));
    if (err)
        return err;
    struct json_writer w;
    http_json(x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", true);
    jw_put_str(&w, "value", r->str);
    jw_end_object(&w);
    return http_reply_json(t, x, 200);
}

static const struct http_route routes[] = {{"GET", "/read", read_one, 0}};

static void serve(struct task *t, void *arg)
{
    struct bench *b = arg;
    check(http_server_run(t, b->server, b->fd) == 0);
    redis_close(b->redis);
}

static void on_term(void *arg)
{
    http_server_drain(arg);
}

static int listen_at(int64_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(bind(fd, (struct sockaddr *)&in, sizeof in) == 0 && listen(fd, 1024) == 0);
    return fd;
}

int main(int argc, char **argv)
{
    int64_t port;
    if (argc != 3 || !str_to_i64(str_of(argv[1]), &port)) {
        fprintf(stderr, "usage: %s PORT REDIS_SOCKET\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    char url[256];
    snprintf(url, sizeof url, "unix:%s", argv[2]);
    struct metrics *m = metrics_open(-1, 1, 0);
    struct bench b = {
        .redis = redis_open(&g, &(struct redis_options){.url = url, .name = "hot", .metrics = m}),
        .server =
            http_server_new(l, &(struct http_options){.limits = http_limits_default, .metrics = m}),
        .fd = listen_at(port),
    };
    http_server_add(b.server, routes, 1, &b);
    loop_on_signal(l, SIGTERM, on_term, b.server);
    check(task_go(&g, "serve", serve, &b) == 0);
    loop_run(l);
    http_server_free(b.server);
    loop_free(l);
    metrics_close(m);
    return 0;
}
