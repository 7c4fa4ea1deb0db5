/* Requests larger than the socket buffer, so that they wait with a part unsent. */
#include <signal.h>

#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_front.h"

struct site {
    struct peer peer;
    struct front front;
    bool tls;
    struct http_client *client;
    size_t begun; /* calls */
};

static void open_site(struct site *f, struct task *t, bool tls)
{
    struct http_client_options o = {.reply_bytes_max = 30 << 20};
    f->begun = 0;
    f->tls = tls;
    peer_open(&f->peer, task_loop(t));
    if (tls) {
        front_open_for_peer(&f->front, task_loop(t), &f->peer);
        o.ca_file = f->front.ca_file;
    }
    f->client = http_client_new(task_loop(t), &o);
}

static void close_site(struct site *f, struct task *t)
{
    is_int((int64_t)f->client->in_flight, 0, "no call is left");
    http_client_free(f->client);
    if (f->tls)
        front_close(t, &f->front);
    peer_close(t, &f->peer);
}

static int post(struct site *f, struct task *t, const char *path)
{
    struct http_response r;
    struct http_call c = {.url = peer_url(t, &f->peer, path), .body = STR("x")};
    return http_call(t, f->client, &c, &r);
}

static void call_large(struct task *t, void *arg)
{
    struct site *f = arg;
    size_t n = 12 << 20;
    char *text = memset(arena_zalloc(task_arena(t), n + 1), 'a' + (int)f->begun++, n);
    memcpy(text, "X-Long: ", 8);
    struct str header = str_from(text, n);
    struct http_call c = {.url = peer_url(t, &f->peer, "/echo-all"),
                          .headers = &header,
                          .header_count = 1,
                          .body = header};
    struct http_response r;
    is_int(http_call(t, f->client, &c, &r), 0, "12 MB of headers and of a body");
    ok(str_find(r.body, header) > 0, "the header came whole");
    ok(str_ends(r.body, header), "and the body");
}

static void test_large_requests(struct task *t, void *arg)
{
    struct site f;
    open_site(&f, t, arg != NULL);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 3; i++)
        check(task_go(&g, "call", call_large, &f) == 0);
    check(group_join(t, &g) == 0);
    is_int(post(&f, t, "/ok"), 0, "the next call");
    is_int((int64_t)f.peer.accepted, 3, "takes one of their connections");
    close_site(&f, t);
}

/* All bodies are made in one buffer, which a call may use only until it waits. */
#define MADE_BYTES (12 << 20)
static char made[MADE_BYTES];

static int make_body(struct task *t, void *arg, struct str *out)
{
    const char *letter = arg;
    if (!*letter)
        return task_fail(t, ERR_PROTO, "there is nothing to say");
    *out = str_from(memset(made, *letter, MADE_BYTES), MADE_BYTES);
    return 0;
}

static void call_made(struct task *t, void *arg)
{
    struct site *f = arg;
    char letter = (char)('a' + (int)f->begun++);
    struct http_call c = {
        .url = peer_url(t, &f->peer, "/echo-all"), .body_fn = make_body, .arg = &letter};
    struct http_response r;
    is_int(http_call(t, f->client, &c, &r), 0, "a body that is made when it is sent");
    size_t n = 0;
    while (n < r.body.n && r.body.p[r.body.n - 1 - n] == letter)
        n++;
    is_int((int64_t)n, MADE_BYTES, "comes whole");
}

static void test_made_bodies(struct task *t, void *arg)
{
    struct site f;
    open_site(&f, t, arg != NULL);
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 3; i++)
        check(task_go(&g, "call", call_made, &f) == 0);
    check(group_join(t, &g) == 0);
    struct http_call c = {
        .url = peer_url(t, &f.peer, "/ok"), .body_fn = make_body, .arg = (void *)(uintptr_t) ""};
    struct http_response r;
    size_t before = f.peer.requests;
    is_int(http_call(t, f.client, &c, &r), ERR_PROTO, "one that cannot be made");
    is_int(post(&f, t, "/ok"), 0, "the next call");
    is_int((int64_t)(f.peer.requests - before), 1, "is the only one that was sent");
    close_site(&f, t);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    tap_task(test_large_requests, NULL, true);
    tap_task(test_large_requests, made, true);
    tap_task(test_made_bodies, NULL, true);
    tap_task(test_made_bodies, made, true);
    return tap_done();
}
