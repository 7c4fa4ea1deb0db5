/* Plans of the simulated AI: what the server accepts, faults on demand, and streams. */
#include "tool/sim/sim_plan.h"

#include "app/plan/shape.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/reply.h"
#include "tests/tap.h"
#include "tool/sim/sim.h"
#include "wire/http_server/http_harness.h"

#define PROMPTS    300
#define LATENCY_MS 400
#define CROWD      40

static struct arena arena;

static struct str prompt_of(const char *kind, int64_t weeks, int64_t number)
{
    return str_printf(&arena,
                      "Make a plan, please; case %lld.\n\nPlan: %s\nStart date: 2027-12-20\n"
                      "Weeks: %lld\n\nAnswer with JSON.",
                      (long long)number, kind, (long long)weeks);
}

static struct sim_plan plan_of(const char *kind, int64_t weeks, int64_t number)
{
    struct sim_plan p = {0};
    ok(sim_plan_read(prompt_of(kind, weeks, number), &p), "a %s of %lld weeks is asked for", kind,
       (long long)weeks);
    return p;
}

static void test_prompt(void)
{
    struct sim_plan p = plan_of("Nutrition", 3, 1);
    ok(p.nutrition && p.weeks == 3 && !p.complained, "as it says");
    ok(!plan_of("training", 1, 1).nutrition, "or a training");
    ok(sim_plan_read(STR("PLAN : training\r\nweeks：2\r\nStart date: 2026-02-28\r\nComplaint: no"),
                     &p) &&
           p.complained,
       "in another spelling, with a complaint");
    static const char *const others[] = {
        "Plan: travel\nStart date: 2026-01-01\nWeeks: 1",
        "Plan: training\nStart date: 2026-02-30\nWeeks: 1",
        "Plan: training\nStart date: 2026-02-20T00:00:00Z\nWeeks: 1",
        "Plan: training\nStart date: 2026-01-01\nWeeks: 0",
        "Plan: training\nStart date: 2026-01-01\nWeeks: 53",
        "Plan: training\nStart date: 2026-01-01\nWeeks: four",
        "Plan: training\nWeeks: 4",
        "My Plan: training\nStart date: 2026-01-01\nWeeks: 4",
        "",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ok(!sim_plan_read(str_of(others[i]), &p), "asks for no plan: %s", others[i]);
}

/* Reads a text as the server does. */
static int read_back(struct str text, bool nutrition, int64_t weeks, const char **complaint)
{
    struct plan_shape shape;
    struct plan_frame f = {.kind = nutrition ? PLAN_NUTRITION : PLAN_TRAINING,
                           .start_date = STR("2027-12-20"),
                           .weeks = weeks};
    *complaint = "";
    return plan_shape_read(&arena, &f, text, &shape, complaint);
}

static struct str written(const struct sim_plan *p, enum sim_plan_fault fault)
{
    struct buf out;
    buf_init(&out);
    sim_plan_write(p, fault, &out);
    struct str text = str_dup(&arena, buf_str(&out));
    buf_release(&out);
    return text;
}

static void test_right(void)
{
    const char *complaint;
    for (int64_t weeks = 1; weeks <= PLAN_WEEKS_MAX; weeks++)
        for (int kind = 0; kind < 2; kind++) {
            struct sim_plan p = plan_of(kind ? "nutrition" : "training", weeks, weeks);
            struct str text = written(&p, PLAN_RIGHT);
            int err = read_back(text, kind, weeks, &complaint);
            is_int(err, 0, "the server takes it: %s", complaint);
            is_str(written(&p, PLAN_RIGHT), text, "the same again");
        }
    struct sim_plan one = plan_of("nutrition", 1, 1), other = plan_of("nutrition", 1, 3);
    ok(!str_eq(written(&one, PLAN_RIGHT), written(&other, PLAN_RIGHT)), "others get other plans");
}

static void test_wrong(void)
{
    static const struct {
        bool nutrition;
        enum sim_plan_fault fault;
        const char *complaint; /* begins so */
    } cases[] = {
        {false, PLAN_GAP, "day 10 (2027-12-29): \"date\" must be \"2027-12-29\", not"},
        {true, PLAN_GAP, "day 10 (2027-12-29): \"date\" must be \"2027-12-29\", not"},
        {false, PLAN_SUM, "day 10 (2027-12-29), exercise 1: \"sets\" must be an integer"},
        {true, PLAN_SUM, "day 10 (2027-12-29): the calories of the meals add up to"},
        {false, PLAN_PROSE, "the answer has no JSON object"},
        {true, PLAN_PROSE, "the answer has no JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_plan p = plan_of(cases[i].nutrition ? "nutrition" : "training", 2, 1);
        const char *complaint;
        int err = read_back(written(&p, cases[i].fault), cases[i].nutrition, 2, &complaint);
        ok(err == ERR_INVALID && str_starts(str_of(complaint), str_of(cases[i].complaint)),
           "fault %d: %s", (int)cases[i].fault, complaint);
    }
}

static void test_share(void)
{
    const struct sim_plan_faults never = {0, true}, half = {0.5, false}, always = {1, true};
    int faults[4] = {0}, wrong = 0;
    for (int i = 0; i < PROMPTS; i++) {
        struct sim_plan p = {0};
        check(sim_plan_read(prompt_of("training", 1, i), &p));
        faults[sim_plan_fault(&p, &half)]++;
        wrong += sim_plan_fault(&p, &never) != PLAN_RIGHT;
        wrong += sim_plan_fault(&p, &always) == PLAN_RIGHT;
        wrong += sim_plan_fault(&p, &half) != sim_plan_fault(&p, &half);
        p.complained = true;
        wrong += sim_plan_fault(&p, &half) != PLAN_RIGHT;
        wrong += sim_plan_fault(&p, &always) == PLAN_RIGHT;
    }
    is_int(wrong, 0, "none, all, always the same, right after a complaint unless they stay wrong");
    ok(faults[PLAN_RIGHT] > PROMPTS / 3 && faults[PLAN_RIGHT] < 2 * PROMPTS / 3, "about half: %d",
       faults[PLAN_RIGHT]);
    for (int f = PLAN_GAP; f <= PLAN_PROSE; f++)
        ok(faults[f] > PROMPTS / 12, "every kind: %d", faults[f]);
}

/* --- asked for by the engine --- */

struct asked {
    const char *messages; /* JSON */
    struct str text;
    int seen;
    size_t days_seen; /* before the last piece */
    bool shrank;
};

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    const struct asked *a = arg;
    (void)t;
    buf_clear(body);
    buf_printf(body, "{\"model\":\"m\",\"messages\":%s}", a->messages);
    *tokens = 20000;
    return 0;
}

static int read_answer(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    struct asked *a = arg;
    const char *problem;
    struct str text = ai_reply_text(task_arena(t), body, tokens_used, &problem);
    if (!text.p)
        return task_fail(t, ERR_PROTO, "%s", problem);
    a->text = str_dup(&arena, text);
    return 0;
}

static void see(void *arg, struct str text)
{
    struct asked *a = arg;
    size_t days = plan_days_seen(text);
    a->seen++;
    a->shrank = a->shrank || days < a->days_seen;
    a->days_seen = days;
}

struct world {
    struct sim sim;
    struct site site;
    struct http_client *client;
    struct permits permits;
    struct metrics *metrics;
    struct ai *ai;
};

static void world_open(struct task *t, struct world *w, struct sim_options options)
{
    *w = (struct world){.permits = {.keys = 1}, .metrics = metrics_open(-1, 1, 0)};
    w->sim.options = options;
    sim_stats_init(&w->sim.stats);
    waitq_init(&w->sim.quit);
    buf_init(&w->sim.content);
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, NULL, 0, NULL);
    sim_routes(w->site.server, &w->sim);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1", w->site.port);
    w->ai = open_ai(w->client, &w->permits, w->metrics, url, 2000);
}

static void world_close(struct task *t, struct world *w)
{
    ai_free(w->ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    sim_stats_release(&w->sim.stats);
    sim_brief_release(&w->sim.brief);
    buf_release(&w->sim.content);
    metrics_close(w->metrics);
}

static struct asked ask_for(struct task *t, struct world *w, const char *messages, bool stream)
{
    struct asked a = {.messages = messages, .text = STR("")};
    struct ai_request q = {
        .write = write_request, .read = read_answer, .arg = &a, .asks = &ai_for_run};
    struct ai_hand hand = {.busy = false};
    struct ai_answer answer;
    q.seen = stream ? see : NULL;
    is_int(ai_ask(t, w->ai, &q, &hand, &answer), 0, "an answer%s %s", stream ? ", as a stream" : "",
           task_error(t));
    return a;
}

#define PROMPT "Plan: nutrition\\nStart date: 2027-12-20\\nWeeks: 4"
#define ASKED  "[{\"role\":\"user\",\"content\":\"" PROMPT "\"}]"
#define COMPLAINED                                                                                 \
    "[{\"role\":\"user\",\"content\":\"" PROMPT "\"},{\"role\":\"assistant\",\"content\":\"no\"}," \
    "{\"role\":\"user\",\"content\":\"The answer has no JSON object.\"}]"

static void test_stream(struct task *t, void *arg)
{
    struct world w;
    const char *complaint;
    (void)arg;
    world_open(t, &w, (struct sim_options){.latency_ms = LATENCY_MS});
    struct asked whole = ask_for(t, &w, ASKED, false);
    int err = read_back(whole.text, true, 4, &complaint);
    is_int(err, 0, "a plan: %s", complaint);
    int64_t start_ms = loop_now_ms(task_loop(t));
    struct asked a = ask_for(t, &w, ASKED, true);
    int64_t took_ms = loop_now_ms(task_loop(t)) - start_ms;
    ok(took_ms >= LATENCY_MS - 50, "takes its time: %lld ms", (long long)took_ms);
    is_str(a.text, whole.text, "the same plan");
    ok(a.seen >= 10, "seen in parts: %d", a.seen);
    is_int((int64_t)a.days_seen, 28, "all its days");
    ok(!a.shrank, "more and more of them");
    is_int(w.permits.tokens_used % 2, 0, "with the same tokens");
    world_close(t, &w);
}

static void test_faults(struct task *t, void *arg)
{
    struct world w;
    const char *complaint;
    (void)arg;
    world_open(t, &w, (struct sim_options){.plan_faults = {.rate = 1}});
    int err = read_back(ask_for(t, &w, ASKED, true).text, true, 4, &complaint);
    is_int(err, ERR_INVALID, "a wrong plan: %s", complaint);
    err = read_back(ask_for(t, &w, COMPLAINED, true).text, true, 4, &complaint);
    is_int(err, 0, "a right one after a complaint: %s", complaint);
    world_close(t, &w);
    world_open(t, &w, (struct sim_options){.plan_faults = {.rate = 1, .stays = true}});
    err = read_back(ask_for(t, &w, COMPLAINED, true).text, true, 4, &complaint);
    is_int(err, ERR_INVALID, "or a wrong one for ever: %s", complaint);
    world_close(t, &w);
}

struct crowd {
    struct world *w;
    int right, wrong;
};

static void ask_one(struct task *t, void *arg)
{
    struct crowd *c = arg;
    struct asked a = {.messages = ASKED, .text = STR("")};
    const struct ai_request q = {
        .write = write_request, .read = read_answer, .arg = &a, .seen = see, .asks = &ai_for_run};
    struct ai_hand hand = {.busy = false};
    struct ai_answer answer;
    const char *complaint;
    while (ai_ask(t, c->w->ai, &q, &hand, &answer))
        ;
    /* Words instead of a plan are no fault of the service: they are complained of. */
    if (read_back(a.text, true, 4, &complaint) == 0)
        c->right++;
    else
        c->wrong += !str_starts(a.text, STR("I would have to"));
}

/* Every other fault of the simulator, for every third request. */
static void test_other_faults(struct task *t, void *arg)
{
    struct world w;
    struct group g;
    (void)arg;
    world_open(t, &w,
               (struct sim_options){.stall_ms = 20000,
                                    .retry_after_s = 1,
                                    .faults = {.rate = 0.33, .kinds = SIM_FAULTS_ALL, .seed = 7}});
    struct crowd c = {.w = &w};
    group_init(&g, task_loop(t));
    for (int i = 0; i < CROWD; i++)
        check(task_go(&g, "ask", ask_one, &c) == 0);
    check(group_join(t, &g) == 0);
    is_int(c.wrong, 0, "no fault spoils a plan");
    ok(c.right >= CROWD * 3 / 4, "nearly all get one: %d of %d", c.right, CROWD);
    is_int(w.permits.taken, w.permits.settled, "every permit is settled");
    world_close(t, &w);
}

int main(void)
{
    arena_init(&arena);
    test_prompt();
    test_right();
    test_wrong();
    test_share();
    tap_task(test_stream, NULL, true);
    tap_task(test_faults, NULL, true);
    tap_task(test_other_faults, NULL, true);
    arena_release(&arena);
    return tap_done();
}
