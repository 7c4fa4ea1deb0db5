/* Any bytes after the preface of HTTP/2: the server survives, and every connection ends. */
#include <stdint.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/http_server/http_harness.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static int echo(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    return err ? err : http_reply(t, x, 200, "text/plain", body);
}

static int slow(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    http_cancel_when_gone(x);
    int err = http_stream_begin(t, x, 200, "text/plain");
    for (int i = 0; i < 3 && !err; i++) {
        err = http_stream_write(t, x, STR("piece"));
        if (!err)
            err = task_sleep(t, 10);
    }
    return err ? err : http_stream_end(t, x);
}

static const struct http_route routes[] = {
    {"POST", "/", echo, 1000},
    {"GET", "/", slow, 0},
};

static void feed(struct task *t, void *arg)
{
    const struct str *bytes = arg;
    struct site s;
    struct client c;
    site_open(t, &s, (struct http_options){.http2 = true}, routes, 2, NULL);
    client_open(t, &s, &c);
    client_send(t, &c, STR(PREFACE));
    client_send(t, &c, *bytes);
    check(task_sleep(t, 15) == 0); /* while slow handlers run */
    client_close(&c);
    check(task_sleep(t, 1000) == 0);
    check(http_server_connections(s.server) == 0);
    site_close(t, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    log_setup(LOG_ERROR, LOG_TEXT, "fuzz");
    struct str bytes = str_from((const char *)data, n < 4096 ? n : 4096);
    struct loop *l = loop_new(&(struct loop_options){.virtual_time = true, .seed = 1});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "fuzz", feed, &bytes) == 0);
    loop_run(l);
    loop_free(l);
    return 0;
}
