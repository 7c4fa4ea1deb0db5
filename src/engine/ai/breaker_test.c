/* A service that does not work: no request fails for it, and it is not asked in vain. */
#include "base/log.h"
#include "engine/ai/ai_fixture.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define RESERVED   100 /* tokens of a request */
#define BODY_BYTES 1024

#define WORKERS   60
#define OUTAGE_MS 1500

/* A service that answers with `status` (0: cuts) until `until_ms`, and to "poison" always. */
struct outage {
    int64_t until_ms;
    int status;
    int calls, in_vain, answered, own, refused;
    int64_t first_ms; /* after the outage: its first answer */
    struct ai *ai;
    struct permits keys;
    bool ends;
};

static int serve_outage(struct task *t, struct http_exchange *x, void *ctx)
{
    struct outage *o = ctx;
    struct str body;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    int64_t now_ms = loop_now_ms(task_loop(t));
    bool poison = str_eq(body, STR("poison")), down = now_ms < o->until_ms;
    o->calls++;
    o->in_vain += down;
    if (poison || (down && o->status))
        return http_reply(t, x, poison ? 500 : o->status, "application/json",
                          STR("{\"error\":{\"message\":\"no\"}}"));
    if (down) {
        http_abort(x);
        return 0;
    }
    if (!o->first_ms)
        o->first_ms = now_ms;
    err = task_sleep(t, 20);
    return err ? err : http_reply(t, x, 200, "application/json", STR("fine"));
}

static int write_text(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    (void)t;
    buf_clear(body);
    buf_add_str(body, str_of(arg));
    *tokens = RESERVED;
    return 0;
}

static int read_text(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    (void)arg, (void)tokens_used;
    return str_eq(body, STR("fine")) ? 0 : task_fail(t, ERR_PROTO, "no text");
}

static int ask_text(struct task *t, struct outage *o, const char *text, struct ai_hand *hand)
{
    struct ai_answer answer;
    return ai_ask(t, o->ai,
                  &(struct ai_request){.write = write_text,
                                       .read = read_text,
                                       .arg = (void *)(uintptr_t)text,
                                       .asks = &ai_for_run},
                  hand, &answer);
}

/* As a worker does: what is put off is asked again. */
static void work(struct task *t, void *arg)
{
    struct outage *o = arg;
    for (int i = 0; i < 5; i++) {
        struct ai_hand hand = {.busy = false};
        int err;
        while ((err = ask_text(t, o, "good", &hand)) == ERR_UNAVAILABLE)
            o->refused++;
        o->answered += err == 0;
        o->own += err == ERR_PROTO;
    }
}

static void open_outage(struct task *t, struct outage *o, struct site *site,
                        struct http_client **client, struct metrics *m)
{
    static const struct http_route routes_of[] = {
        {"POST", "/chat/completions", serve_outage, BODY_BYTES}};
    o->keys = (struct permits){.keys = 1};
    *client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, site, (struct http_options){.behind_tls = false}, routes_of, 1, o);
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d", site->port);
    o->ai = open_ai(*client, &o->keys, m, url, 15000);
}

static void close_outage(struct task *t, struct outage *o, struct site *site,
                         struct http_client *client)
{
    ai_free(o->ai);
    http_client_free(client);
    site_close(t, site);
}

/* Each kind of fault: no request fails for it, few are sent in vain, and work goes on soon. */
static void test_outage(struct task *t, void *arg)
{
    struct outage o = {.status = *(const int *)arg};
    struct metrics *m = metrics_open(-1, 1, 0);
    struct http_client *client;
    struct site site;
    struct group g;
    open_outage(t, &o, &site, &client, m);
    o.until_ms = loop_now_ms(task_loop(t)) + OUTAGE_MS;
    group_init(&g, task_loop(t));
    for (int i = 0; i < WORKERS; i++)
        check(task_go(&g, "work", work, &o) == 0);
    check(task_sleep(t, OUTAGE_MS / 2) == 0);
    struct ai_state s = ai_state(o.ai, loop_now_ms(task_loop(t)));
    ok(s.open && *s.fault->cause && *s.fault->words, "%d: it is seen that the service is down: %s",
       o.status, s.fault->words);
    check(group_join(t, &g) == 0);
    is_int(o.answered, 5 * WORKERS, "%d: all is answered in the end", o.status);
    is_int(o.own, 0, "%d: no request is held to be the cause", o.status);
    ok(o.in_vain <= 2 * WORKERS, "%d: %d calls in vain for %d workers", o.status, o.in_vain,
       WORKERS);
    ok(o.first_ms - o.until_ms < 3000, "%d: %lld ms after its return work goes on", o.status,
       (long long)(o.first_ms - o.until_ms));
    ok(!ai_state(o.ai, loop_now_ms(task_loop(t))).open, "%d: and that is seen, too", o.status);
    close_outage(t, &o, &site, client);
    metrics_close(m);
}

static void go_on(struct task *t, void *arg)
{
    struct outage *o = arg;
    struct ai_hand hand = {.busy = false};
    while (!o->ends)
        check(ask_text(t, o, "good", &hand) == 0);
}

/* One request that the service cannot answer, while it answers others. */
static void test_poison(struct task *t, void *arg)
{
    (void)arg;
    struct outage o = {.status = 500};
    struct metrics *m = metrics_open(-1, 1, 0);
    struct http_client *client;
    struct site site;
    struct group g;
    struct ai_hand hand = {.busy = false};
    open_outage(t, &o, &site, &client, m);
    group_init(&g, task_loop(t));
    check(task_go(&g, "good", go_on, &o) == 0);
    is_int(ask_text(t, &o, "poison", &hand), ERR_PROTO, "a request that fails alone is the cause");
    ok(!ai_state(o.ai, loop_now_ms(task_loop(t))).open, "others are not held up");
    o.ends = true;
    check(group_join(t, &g) == 0);
    is_int(ask_text(t, &o, "poison", &hand), ERR_UNAVAILABLE, "without others it is the service");
    ok(ai_state(o.ai, loop_now_ms(task_loop(t))).open, "which is not asked in vain");
    int64_t began_ms = loop_now_ms(task_loop(t));
    is_int(ask_text(t, &o, "good", &hand), 0, "but tried with the next request");
    ok(loop_now_ms(task_loop(t)) - began_ms < 1000, "soon");
    hand = (struct ai_hand){.leaves = true};
    int calls = o.calls;
    is_int(ask_text(t, &o, "poison", &hand), ERR_CANCELED, "one that leaves is not tried again");
    is_int(o.calls - calls, 1, "not once");
    close_outage(t, &o, &site, client);
    metrics_close(m);
}

static const int kinds[] = {0, 402, 404, 429, 500, 503, 307};
#define KINDS (sizeof kinds / sizeof *kinds)

static void test_outages(struct task *t, void *arg)
{
    (void)arg;
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < KINDS; i++)
        check(task_go(&g, "outage", test_outage, (void *)(uintptr_t)&kinds[i]) == 0);
    check(group_join(t, &g) == 0);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    tap_task(test_outages, NULL, true);
    tap_task(test_poison, NULL, true);
    return tap_done();
}
