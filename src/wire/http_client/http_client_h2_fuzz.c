/* Any bytes of a server to a client with calls on it: the client survives, every call ends, and
 * says only what http_client.h allows. The first byte of the input: bit 0, the bytes follow the
 * settings that a server of HTTP/2 begins with; bit 1, they come in pieces. A client that takes
 * them for HTTP/1.1 gets the same bytes on its next connections. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/http_client/http_client_private.h"

#define SETTINGS    "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\144" /* a hundred calls at once */
#define BYTES_MAX   4096
#define PIECE_BYTES 7
#define REPLY_MAX   1000
#define CALLS       4

struct far_end {
    struct str bytes; /* after the first */
    bool greets, in_pieces;
    struct group group;
    struct watch listener;
    int port;
};

/* --- the server --- */

static void listen_on(struct far_end *f, struct loop *l)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 16) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    f->port = ntohs(a.sin_port);
    watch_init(&f->listener, l, fd);
    group_init(&f->group, l);
}

static int send_all(struct task *t, const struct far_end *f, struct watch *w)
{
    struct str left = f->bytes;
    int err = f->greets ? watch_write(t, w, SETTINGS, sizeof SETTINGS - 1) : 0;
    while (!err && left.n > 0) {
        size_t n = f->in_pieces && left.n > PIECE_BYTES ? PIECE_BYTES : left.n;
        err = watch_write(t, w, left.p, n);
        left = str_skip(left, n);
        if (!err && f->in_pieces)
            err = task_yield(t);
    }
    return err;
}

/* Requests are on their way, some milliseconds old, when the connection ends. */
static int serve(struct task *t, const struct far_end *f, struct watch *w)
{
    char request[BYTES_MAX];
    size_t got = 1;
    int err = watch_read(t, w, request, sizeof request, &got);
    if (!err && got > 0)
        err = send_all(t, f, w);
    return err ? err : task_sleep(t, 5);
}

static void run_server(struct task *t, void *arg)
{
    struct far_end *f = arg;
    for (;;) {
        int fd = accept4(f->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            watch_drained(&f->listener, WATCH_READ);
            if (watch_wait(t, &f->listener, WATCH_READ))
                return;
            continue;
        }
        struct watch w;
        watch_init(&w, task_loop(t), fd);
        int err = serve(t, f, &w);
        (void)err; /* the connection ends in any case */
        watch_release(&w);
        close(fd);
    }
}

/* --- the client --- */

struct ask {
    struct http_client *client;
    const char *url;
    int number;
    size_t taken; /* of a reply in pieces */
};

static int take_piece(void *arg, struct str piece)
{
    struct ask *a = arg;
    a->taken += piece.n;
    return a->taken > REPLY_MAX / 2 ? ERR_CONFLICT : 0;
}

static void ask(struct task *t, void *arg)
{
    struct ask *a = arg;
    struct http_response r = {.status = 0};
    struct http_call call = {.url = a->url,
                             .body = a->number % 2 ? STR("a body") : STR_NULL,
                             .on_piece = a->number == 2 ? take_piece : NULL,
                             .arg = a,
                             .reply_bytes_max = REPLY_MAX};
    task_deadline(t, 1000 + 100 * a->number);
    int err = http_call(t, a->client, &call, &r);
    if (!err)
        check(r.status >= 100 && r.status <= 999 && r.body.n <= REPLY_MAX &&
              r.retry_after_ms >= -1 && a->taken <= REPLY_MAX);
    check(err == 0 || err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN || err == ERR_PROTO ||
          err == ERR_LIMIT || err == ERR_TIMEOUT || (err == ERR_CONFLICT && a->number == 2));
}

static void call_all(struct task *t, void *arg)
{
    struct far_end *f = arg;
    struct loop *l = task_loop(t);
    struct http_client_options o = {.plain_h2 = true, .connect_ms = 50, .ping_ms = 100};
    struct http_client *client = http_client_new(l, &o);
    struct group calls;
    struct ask asks[CALLS];
    char url[64];
    listen_on(f, l);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", f->port);
    check(task_go(&f->group, "server", run_server, f) == 0);
    group_init(&calls, l);
    for (int i = 0; i < CALLS; i++) {
        asks[i] = (struct ask){client, url, i, 0};
        check(task_go(&calls, "call", ask, &asks[i]) == 0);
    }
    check(group_join(t, &calls) == 0);
    group_cancel(&f->group);
    check(group_join(t, &f->group) == 0);
    watch_release(&f->listener);
    close(f->listener.fd);
    http_client_free(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    log_setup(LOG_ERROR, LOG_TEXT, "fuzz");
    signal(SIGPIPE, SIG_IGN); /* the server writes to clients that have gone */
    if (n == 0)
        return 0;
    struct far_end f = {.greets = data[0] & 1, .in_pieces = data[0] & 2};
    f.bytes = str_from((const char *)data + 1, n <= BYTES_MAX ? n - 1 : BYTES_MAX - 1);
    struct loop *l = loop_new(&(struct loop_options){.virtual_time = true, .seed = 1});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "fuzz", call_all, &f) == 0);
    loop_run(l);
    loop_free(l);
    return 0;
}
