#include "engine/ai/faults.h"

#include "base/json.h"
#include "base/log.h"
#include "engine/ai/service.h"
#include "loop/task.h"
#include "tests/tap.h"

static struct metrics *metrics;
static struct buf lines;

static int64_t lines_logged(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < buf_str(&lines).n; i++)
        n += buf_str(&lines).p[i] == '\n';
    return n;
}

static bool logged(const char *text)
{
    return str_find(buf_str(&lines), str_of(text)) >= 0;
}

static bool shown(const char *line)
{
    struct buf page;
    buf_init(&page);
    metrics_render(metrics, &page);
    bool found = str_find(buf_str(&page), str_of(line)) >= 0;
    buf_release(&page);
    return found;
}

/* Of a kind, lately; -1: it is not told. */
static int64_t told(struct task *t, const struct ai_faults *f, const char *kind, const char *words)
{
    const struct json *all;
    int64_t count = -1;
    check(json_parse(task_arena(t), ai_faults_json(t, &f, 1), &all, NULL) == 0);
    json_each (x, all)
        if (str_eq(json_str(json_get(x, "kind")), str_of(kind)) &&
            str_eq(json_str(json_get(x, "words")), str_of(words)))
            (void)json_int(json_get(x, "count"), &count);
    return count;
}

static void test(struct task *t, void *arg)
{
    (void)arg;
    struct ai_faults *f = ai_faults_new(metrics, AI_CHAT);
    const struct ai_faults *one = f;
    is_str(ai_faults_json(t, &one, 1), STR("[]"), "nothing has failed");
    for (int i = 0; i < 100; i++)
        ai_faults_note(f, t, "dns", "ai.example: no such host");
    ai_faults_note(f, t, "status_503", "overloaded");
    ai_faults_note(f, t, "status_500", "crashed");
    ai_faults_note(f, t, "status_402", "no money");
    ai_faults_note(f, t, "reply", NULL);
    ai_faults_note(f, t, "from_mars", "what?");
    is_int(told(t, f, "dns", "ai.example: no such host"), 100, "how often, and the last words");
    is_int(told(t, f, "status_5xx", "crashed"), 2, "statuses by their class");
    is_int(told(t, f, "unreadable", ""), 1, "a reply that is unreadable");
    is_int(told(t, f, "other", "what?"), 1, "a kind without a name");
    ok(shown(AI_FAULTS_METRIC "{kind=\"dns\",node=\"0\"} 100") &&
           shown(AI_FAULTS_METRIC "{kind=\"status_4xx\",node=\"0\"} 1") &&
           shown(AI_FAULTS_METRIC "{kind=\"tls\",node=\"0\"} 0"),
       "in the metrics, by kind");
    is_int(lines_logged(), 5, "one line for each kind");
    ok(logged("(dns), 1 since") && logged("ai.example: no such host"), "with the cause");

    check(task_sleep(t, 59000) == 0);
    ai_faults_note(f, t, "dns", "later");
    is_int(lines_logged(), 5, "no second one within the minute");
    check(task_sleep(t, 2000) == 0);
    ai_faults_note(f, t, "dns", "later");
    is_int(lines_logged(), 6, "one after it");
    ok(logged("(dns), 101 since"), "which says how many there were");
    is_int(told(t, f, "dns", "later"), 2, "those of the minute before are forgotten");
    is_int(told(t, f, "status_5xx", "crashed"), -1, "so are other kinds");
    check(task_sleep(t, 70000) == 0);
    is_str(ai_faults_json(t, &one, 1), STR("[]"), "lately nothing has failed");

    struct ai_faults *g = ai_faults_new(metrics, AI_EMBEDDING);
    const struct ai_faults *const all[] = {f, NULL, g};
    ai_faults_note(f, t, "dns", "of the one");
    ai_faults_note(g, t, "dns", "of the other");
    const struct json *both;
    check(json_parse(task_arena(t), ai_faults_json(t, all, 3), &both, NULL) == 0);
    int64_t services = 0;
    json_each (x, both) {
        struct str service = json_str(json_get(x, "service")),
                   words = json_str(json_get(x, "words"));
        services += str_eq(service, STR(AI_CHAT)) && str_eq(words, STR("of the one"));
        services += str_eq(service, STR(AI_EMBEDDING)) && str_eq(words, STR("of the other"));
    }
    is_int(services, 2, "each says of which service it is");
    ai_faults_free(g);
    ai_faults_note(NULL, t, "dns", "not counted"); /* a service without counts */
    ai_faults_free(f);
}

static void is_kind(int err, const char *text, const char *kind)
{
    is_str(str_of(ai_fault_kind(err, text)), str_of(kind), "%d, %s", err, text);
}

/* Texts as the HTTP client makes them; its own tests have the same. */
static void test_kinds(void)
{
    is_kind(ERR_UNAVAILABLE,
            "https://no.invalid:443: cannot find no.invalid: Name or service not "
            "known",
            "dns");
    is_kind(ERR_UNAVAILABLE, "http://127.0.0.1:1: no connection: Connection refused", "refused");
    is_kind(ERR_REFUSED,
            "the AI service cannot be reached: http://127.0.0.1:1: no connection: "
            "Connection refused, after 4 attempts",
            "refused");
    is_kind(ERR_UNAVAILABLE,
            "https://h:443: the proxy p:3128: cannot find p: Name or service not known", "proxy");
    is_kind(ERR_UNAVAILABLE, "https://h:443: the proxy p:3128 refuses CONNECT: 403 No", "proxy");
    is_kind(ERR_UNAVAILABLE, "https://h:443: TLS: SSL certificate problem: certificate has expired",
            "tls");
    is_kind(ERR_UNAVAILABLE, "https://h:443: TLS: Connection refused in time", "tls");
    is_kind(ERR_UNAVAILABLE, "https://h:443: no connection: no answer in time", "timeout");
    is_kind(ERR_UNAVAILABLE, "http://h:80: no connection: Connection timed out", "timeout");
    is_kind(ERR_TIMEOUT, "https://h:443: no reply in time", "timeout");
    is_kind(ERR_UNCERTAIN, "https://h:443: whatever", "cut");
    is_kind(ERR_UNAVAILABLE, "http://h:80: the connection was closed before anything was sent",
            "cut");
    is_kind(ERR_UNAVAILABLE, "http://h:80: new connections end before a reply", "cut");
    is_kind(ERR_PROTO, "http://h:80: the reply is not HTTP: bad status", "unreadable");
    is_kind(ERR_LIMIT, "http://h:80: the reply is too long", "unreadable");
    is_kind(ERR_UNAVAILABLE, "http://h:80: no connection: Network is unreachable", "other");
    is_kind(ERR_BUSY, "", "other");
}

int main(void)
{
    test_kinds();
    buf_init(&lines);
    log_capture(&lines);
    metrics = metrics_open(-1, 1, 0);
    tap_task(test, NULL, false);
    metrics_close(metrics);
    log_capture(NULL);
    buf_release(&lines);
    return tap_done();
}
