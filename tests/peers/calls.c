/* Calls of the HTTP client for test_peers.py:
 *
 *     peer_calls METHOD URL CA_FILE CALLS AT_ONCE [PROXY]
 *
 * makes so many calls, so many at once, and prints one line of JSON: how many were answered with
 * 200, in which version of HTTP, with how many bytes, and the last error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "wire/http_client.h"

struct calls {
    struct http_client *client;
    const char *method, *url;
    int64_t left, at_once;
    int64_t answered, other, failed, h1, h2, bytes;
    char error[512];
};

static void make_calls(struct task *t, void *arg)
{
    struct calls *c = arg;
    static const struct str headers[] = {{"Content-Type: application/json", 30}};
    bool posts = strcmp(c->method, "POST") == 0;
    while (c->left-- > 0) {
        struct task_scope scope = task_scope(t);
        struct http_call call = {.method = c->method,
                                 .url = c->url,
                                 .headers = headers,
                                 .header_count = 1,
                                 .body = posts ? STR("{\"question\":\"Is it wet?\"}") : STR_NULL};
        struct http_response r;
        task_deadline(t, 10000);
        int err = http_call(t, c->client, &call, &r);
        if (err)
            snprintf(c->error, sizeof c->error, "%s: %s", err_name(err), task_error(t));
        c->failed += err != 0;
        c->answered += !err && r.status == 200;
        c->other += !err && r.status != 200;
        c->h1 += !err && r.http_version == 11;
        c->h2 += !err && r.http_version == 20;
        c->bytes += err ? 0 : (int64_t)r.body.n;
        task_scope_end(t, scope);
    }
}

static void call_all(struct task *t, void *arg)
{
    struct calls *c = arg;
    struct group g;
    group_init(&g, task_loop(t));
    for (int64_t i = 0; i < c->at_once; i++)
        check(task_go(&g, "calls", make_calls, c) == 0);
    check(group_join(t, &g) == 0);
    http_client_free(c->client);
}

static void print(const struct calls *c)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_int(&w, "answered", c->answered);
    jw_put_int(&w, "other", c->other);
    jw_put_int(&w, "failed", c->failed);
    jw_put_int(&w, "h1", c->h1);
    jw_put_int(&w, "h2", c->h2);
    jw_put_int(&w, "bytes", c->bytes);
    jw_put_str(&w, "error", str_of(c->error));
    jw_end_object(&w);
    printf("%.*s\n", STR_ARG(buf_str(&b)));
    buf_release(&b);
}

int main(int argc, char **argv)
{
    struct calls c = {.failed = 0};
    if (argc < 6 || argc > 7 || !str_to_i64(str_of(argv[4]), &c.left) ||
        !str_to_i64(str_of(argv[5]), &c.at_once)) {
        fprintf(stderr, "usage: %s METHOD URL CA_FILE CALLS AT_ONCE [PROXY]\n", argv[0]);
        return 2;
    }
    c.method = argv[1];
    c.url = argv[2];
    struct loop *l = loop_new(NULL);
    c.client = http_client_new(
        l, &(struct http_client_options){.ca_file = argv[3], .proxy = argc > 6 ? argv[6] : NULL});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "all", call_all, &c) == 0);
    loop_run(l);
    loop_free(l);
    print(&c);
    return 0;
}
