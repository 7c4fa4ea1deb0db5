/* Permits that expire while a connection is made: no request leaves with one (SCR-9). */
#include "engine/ai/ai_fixture.h"
#include "tests/tap.h"
#include "wire/http_client/http_client_test_front.h"
#include "wire/http_server/http_harness.h"

#define CALLS    30
#define VALID_MS 250  /* at least so long a permit is valid */
#define DELAY_MS 4600 /* of a handshake */

struct world {
    struct site site;
    struct front front;
    struct permits permits;
    struct http_client *client;
    struct ai *ai;
    struct loop *loop;
    int64_t start_us;
    int requests, late, answered;
};

static int64_t number_of(struct str key)
{
    int64_t n = 0;
    check(str_starts(key, STR("Bearer k-")) && str_to_i64(str_skip(key, 9), &n));
    return n;
}

/* The key says which permit it is: each is had once. All were taken at the start, or after the
 * handshake. */
static int handle(struct task *t, struct http_exchange *x, void *ctx)
{
    struct world *w = ctx;
    struct str body;
    int64_t waited_ms = (loop_now_us(w->loop) - w->start_us) / 1000;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    w->requests++;
    w->late += waited_ms > DELAY_MS / 2 && number_of(http_header(x, "Authorization")) <= CALLS;
    return http_reply(t, x, 200, "application/json", STR("{}"));
}

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    (void)t, (void)arg;
    buf_clear(body);
    buf_add_lit(body, "{}");
    *tokens = 1;
    return 0;
}

static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens)
{
    (void)t, (void)arg, (void)body;
    *tokens = 1;
    return 0;
}

static void ask_ai(struct task *t, void *arg)
{
    struct world *w = arg;
    const bool asks = true; /* a job */
    const struct ai_request q = {.write = write_request, .read = read_reply, .asks = &asks};
    struct ai_answer answer;
    struct ai_hand hand = {.busy = false};
    w->answered += ai_ask(t, w->ai, &q, &hand, &answer) == 0;
}

static void test_slow_handshake(struct task *t, void *arg)
{
    (void)arg;
    struct world w = {.permits = {.keys = 10000, .prefix = "k-", .valid_ms = VALID_MS}};
    static const struct http_route routes[] = {{"POST", "/chat/completions", handle, 1000}};
    struct metrics *m = metrics_open(-1, 1, 0);
    site_open_tcp(t, &w.site, (struct http_options){.behind_tls = false}, routes, 1, &w);
    front_open(&w.front, task_loop(t), w.site.port, "http/1.1");
    w.loop = task_loop(t);
    w.client = http_client_new(
        w.loop, &(struct http_client_options){.ca_file = w.front.ca_file, .connect_ms = 10000});
    const char *url = arena_printf(task_arena(t), "https://127.0.0.1:%d", w.front.port);
    w.ai = open_ai(w.client, &w.permits, m, url, 30000);
    w.front.delay_ms = DELAY_MS;
    w.start_us = loop_now_us(w.loop);
    crowd(t, CALLS, ask_ai, &w);
    is_int(w.answered, CALLS, "all are answered");
    is_int(w.requests, CALLS, "with one request each");
    is_int(w.late, 0, "none with a permit from before the handshake");
    is_int(w.permits.unused, w.permits.taken - CALLS, "those were given back");
    ok(w.permits.unused >= CALLS, "each call had one: %d", w.permits.unused);
    is_int(w.permits.settled, CALLS, "the others are settled");
    is_int(w.permits.taken_for_jobs, w.permits.taken, "all are of the jobs' share");
    ai_free(w.ai);
    http_client_free(w.client);
    front_close(t, &w.front);
    site_close(t, &w.site);
    metrics_close(m);
}

int main(void)
{
    tap_task(test_slow_handshake, NULL, false);
    return tap_done();
}
