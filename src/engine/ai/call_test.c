/* One call to a service that differs from OpenAI's own: address, headers, the key's header. And who
 * may ask. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/ai/ai_fixture.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define BODY_BYTES 65536

static int look(struct task *t, struct http_exchange *x, void *ctx)
{
    struct buf *seen = ctx;
    struct str body;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    buf_printf(seen, "%.*s?%.*s|%.*s|%.*s", STR_ARG(http_path(x)), STR_ARG(http_query_string(x)),
               STR_ARG(http_header(x, "api-key")), STR_ARG(http_header(x, "X-Team")));
    buf_add_str(seen, http_header(x, "Authorization").p ? STR("|bearer") : STR(""));
    return http_reply(t, x, 200, "application/json", body);
}

static int give_body(struct task *t, void *arg, struct str *out)
{
    (void)t, (void)arg;
    *out = STR("{}");
    return 0;
}

/* As Azure has it. */
static void test_differs(struct task *t, void *arg)
{
    (void)arg;
    static const struct http_route here[] = {{"POST", "/d/x/chat/completions", look, BODY_BYTES}};
    struct site site;
    struct buf seen;
    struct http_response r;
    buf_init(&seen);
    struct metrics *m = metrics_open(-1, 1, 0);
    struct http_client *client =
        http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &site, (struct http_options){.behind_tls = false}, here, 1, &seen);
    struct ai *ai = ai_new(&(struct ai_options){
        .service = AI_CHAT,
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/d/x?api-version=1", site.port),
        .path = AI_CHAT_PATH,
        .headers = "{\"X-Team\": \"mice\"}",
        .key_header = "api-key",
        .timeout_ms = 15000,
        .client = client,
        .metrics = m});
    is_int(ai_call(t, ai, STR("k-1"), give_body, NULL, &r), 0, "a call");
    is_int(r.status, 200, "to the right path");
    is_str(buf_str(&seen), STR("/d/x/chat/completions?api-version=1|k-1|mice"),
           "with its query, the key alone in its header, and more headers");
    ai_free(ai);
    http_client_free(client);
    site_close(t, &site);
    metrics_close(m);
    buf_release(&seen);
}

static void test_new(struct task *t, void *arg)
{
    (void)t, (void)arg;
    struct metrics *m = metrics_open(-1, 1, 0);
    ok(!open_ai(NULL, NULL, m, "", 1000), "no address, no service");
    metrics_close(m);
}

/* In a child, which must abort before it asks. */
static bool aborts(struct task *t, struct ai *ai, const bool *asks)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        struct ai_hand hand = {.busy = false};
        struct ai_answer answer;
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        _exit(ai_ask(t, ai, &(struct ai_request){.asks = asks}, &hand, &answer));
    }
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_asks(struct task *t, void *arg)
{
    (void)arg;
    const bool asks = false;
    struct metrics *m = metrics_open(-1, 1, 0);
    struct ai *ai = open_ai(NULL, NULL, m, "http://127.0.0.1:9", 1000);
    ok(aborts(t, ai, &asks), "a job that asks without its claim stops the process");
    ok(aborts(t, ai, NULL), "so does a call of which it is not said whose it is");
    ai_free(ai);
    metrics_close(m);
}

int main(void)
{
    tap_task(test_asks, NULL, true);
    tap_task(test_new, NULL, false);
    tap_task(test_differs, NULL, true);
    return tap_done();
}
