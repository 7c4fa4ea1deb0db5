/* Judging papers: a service that answers what a list says, and a key pool that remembers. */
#include "engine/judge/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/ai/ai_fixture.h"
#include "engine/judge/judge_private.h"
#include "engine/papers/block.h"
#include "engine/setup/config.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define BODY_BYTES (1024 * 1024)

/* A service that gives these answers, one after the other, and the last one for ever. */
struct world {
    const char *const *answers;
    int seen;
    struct buf last;
    struct site site;
    struct http_client *client;
    struct permits permits;
    struct metrics *metrics;
    struct config config;
    struct ai *ai;
    struct judge *judge;
};

static int answer(struct task *t, struct http_exchange *x, void *ctx)
{
    struct world *w = ctx;
    struct str body;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    buf_clear(&w->last);
    buf_add_str(&w->last, body);
    w->seen++;
    struct str text = str_of(w->answers[0]);
    if (w->answers[1])
        w->answers++;
    return http_reply(t, x, 200, "application/json", text);
}

static const struct http_route routes[] = {{"POST", "/chat/completions", answer, BODY_BYTES}};

static void world_open(struct task *t, struct world *w, const char *const *answers)
{
    const char *why;
    *w = (struct world){.answers = answers, .permits = {.keys = 1}};
    buf_init(&w->last);
    w->metrics = metrics_open(-1, 1, 0);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, routes, 1, w);
    const char *url = arena_printf(task_arena(t), "http://127.0.0.1:%d", w->site.port);
    w->ai = open_ai(w->client, &w->permits, w->metrics, url, 15000);
    check(config_parse(task_arena(t), "none", STR_NULL, NULL, &w->config, &why) == 0);
    check(judge_new(task_arena(t), &(struct judge_options){.ai = w->ai, .config = &w->config},
                    &w->judge, &why) == 0);
}

static void world_close(struct task *t, struct world *w)
{
    judge_free(w->judge);
    ai_free(w->ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    metrics_close(w->metrics);
    buf_release(&w->last);
}

#define SAYS(text, tokens)                                                                         \
    "{\"choices\":[{\"message\":{\"content\":\"" text "\"}}],"                                     \
    "\"usage\":{\"total_tokens\":" tokens "}}"
#define NO_VERDICT "{\"choices\":[],\"usage\":{\"total_tokens\":5}}"

/* Instead of the real one: papers are not packed here. */
int block_unpack(struct task *t, struct blocks *b, struct arena *a, struct str packed,
                 struct str *bibtex)
{
    (void)b, (void)a;
    if (str_eq(packed, STR("lost")))
        return task_fail(t, ERR_NOT_FOUND, "there is no such dictionary");
    *bibtex = packed;
    return 0;
}

#define PAPER "@article{x, title = {On mice}, abstract = {We report}, doi = {10.1/x}}"

static int judge_it(struct task *t, struct world *w, struct str packed, struct verdict *out)
{
    const struct judge_question *q =
        judge_question_new(task_arena(t), w->judge, NULL, STR("Mice?"));
    struct ai_hand hand = {.busy = false};
    return judge_paper(t, w->judge, q, STR("10.1/x"), packed, &hand, out);
}

static void test_verdict(struct task *t, void *arg)
{
    (void)arg;
    static const char *const answers[] = {
        NO_VERDICT, SAYS("{\\\"relevant\\\":true,\\\"reason\\\":\\\"mice\\\"}", "42"), NULL};
    struct world w;
    struct verdict v = {.relevant = false};
    world_open(t, &w, answers);
    is_int(judge_it(t, &w, STR(PAPER), &v), 0, "a verdict");
    ok(v.relevant && !v.simulated, "is read");
    is_str(v.reason, STR("mice"), "and its reason");
    is_int(w.seen, 2, "a reply without one is asked for again");
    is_int(w.permits.tokens_used, 47, "both are paid for");
    ok(str_find(buf_str(&w.last), STR("Title: On mice\\n\\nAbstract: We report\\n\\nDOI: 10.1/x")) >
           0,
       "the paper is sent");
    ok(str_find(buf_str(&w.last), STR("Question: Mice?")) > 0, "and the question");
    world_close(t, &w);
}

static void test_no_verdict(struct task *t, void *arg)
{
    (void)arg;
    static const char *const answers[] = {NO_VERDICT, NULL};
    struct world w;
    struct verdict v = {.relevant = true, .reason = STR("as it was")};
    world_open(t, &w, answers);
    is_int(judge_it(t, &w, STR(PAPER), &v), ERR_UNAVAILABLE, "never a verdict");
    is_str(str_of(task_error(t)), STR("the AI service sent a reply without an answer"),
           "what the user is told");
    is_str(v.reason, STR("as it was"), "no verdict is made up");
    world_close(t, &w);
}

/* SCR-18 */
static void test_blank(struct task *t, void *arg)
{
    (void)arg;
    static const char *const answers[] = {SAYS("{\\\"relevant\\\":true}", "42"), NULL};
    static const struct str papers[] = {STR("@article{k, year = 2020}"),
                                        STR("@article{k, title = {}, abstract = { }}")};
    struct world w;
    struct verdict v = {.relevant = true};
    world_open(t, &w, answers);
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++) {
        is_int(judge_it(t, &w, papers[i], &v), 0, "a paper with neither title nor abstract");
        ok(v.not_judged && !v.relevant, "is not judged");
        is_str(v.reason, STR("the paper has neither title nor abstract"), "and it is said why");
    }
    is_int(w.seen + w.permits.taken, 0, "the AI is not asked");
    is_int(judge_it(t, &w, STR("@article{k, title = {Mice}}"), &v), 0, "a title is enough");
    ok(!v.not_judged && v.relevant && w.seen == 1, "to be judged");
    world_close(t, &w);
}

static void test_unreadable(struct task *t, void *arg)
{
    (void)arg;
    static const char *const answers[] = {NO_VERDICT, NULL};
    static const struct {
        struct str packed;
        const char *error;
    } papers[] = {
        {STR_NULL, "the paper is not in the corpus any more"},
        {STR("lost"), "there is no such dictionary"},
        {STR("no BibTeX"), "the paper cannot be read"},
    };
    struct world w;
    world_open(t, &w, answers);
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++) {
        struct verdict v;
        is_int(judge_it(t, &w, papers[i].packed, &v), ERR_PROTO, "%s", papers[i].error);
        is_str(str_of(task_error(t)), str_of(papers[i].error), "is what the user is told");
    }
    is_int(w.seen, 0, "the AI is not asked");
    is_int(w.permits.taken, 0, "and no permit is taken");
    world_close(t, &w);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_reload(struct arena *a, struct config *c)
{
    char path[] = "/tmp/millrace-prompt-XXXXXX";
    const char *why = NULL;
    struct judge *j;
    int fd = mkstemp(path);
    check(fd >= 0 && close(fd) == 0);
    write_file(path, "Old: {{question}}");
    c->ai_prompt_file = path;
    check(judge_new(a, &(struct judge_options){.config = c}, &j, &why) == 0);
    const char *before = arena_strdup(a, judge_prompt_mark(j));
    const struct judge_question *old = judge_question_new(a, j, NULL, STR("Wet?"));
    write_file(path, "New: {{question}}");
    is_int(judge_reload(a, j, &why), 0, "a prompt is read again");
    const struct judge_question *q = judge_question_new(a, j, NULL, STR("Wet?"));
    ok(str_find(q->head, STR("New: Wet?")) > 0, "for questions that are made from now on");
    ok(str_find(old->head, STR("Old: Wet?")) > 0, "others stay as they are");
    const char *mark = arena_strdup(a, judge_prompt_mark(j));
    ok(strlen(mark) == 12 && strcmp(mark, before) != 0, "the two are told apart");
    const struct judge_origin *from = judge_question_origin(q);
    ok(str_eq(from->prompt, STR("New: {{question}}")) && from->digest.n == 64 &&
           str_starts(from->digest, str_of(mark)),
       "a question knows its prompt and the digest");
    is_str(judge_question_origin(old)->prompt, STR("Old: {{question}}"), "also an older one");
    is_str(from->model, str_of(c->ai_model), "and the model");
    struct judge_origin frozen = *judge_question_origin(old);
    frozen.model = STR("other \"1\"");
    q = judge_question_new(a, j, &frozen, STR("Dry?"));
    ok(q && str_find(q->head, STR("Old: Dry?")) > 0 &&
           str_find(q->head, STR("\"model\":\"other \\\"1\\\"\"")) > 0,
       "a prompt and a model of its own");
    is_str(judge_question_origin(q)->model, frozen.model, "which it knows");
    frozen.prompt = STR("Odd: {{question}}");
    ok(!judge_question_new(a, j, &frozen, STR("Dry?")), "a text that is not that of the digest");
    write_file(path, "None");
    is_int(judge_reload(a, j, &why), ERR_INVALID, "one that cannot be used");
    ok(strstr(why, "has no {{question}}") != NULL, "says why");
    check(unlink(path) == 0);
    is_int(judge_reload(a, j, &why), ERR_IO, "one that is gone");
    is_str(str_of(judge_prompt_mark(j)), str_of(mark), "leave the last good one");
    judge_free(j);
}

static void test_new(struct task *t, void *arg)
{
    (void)arg;
    struct arena *a = task_arena(t);
    struct config c;
    const char *why = "";
    struct judge *j = NULL;
    check(config_parse(a, "none", STR_NULL, NULL, &c, &why) == 0);
    c.ai_prompt_file = "/nowhere/prompt.txt";
    is_int(judge_new(a, &(struct judge_options){.config = &c}, &j, &why), ERR_IO, "no prompt file");
    is_str(str_of(why), STR("ai.prompt_file: /nowhere/prompt.txt: No such file or directory"),
           "and why");
    ok(!j, "nothing was made");
    test_reload(a, &c);
}

int main(void)
{
    tap_task(test_new, NULL, false);
    tap_task(test_verdict, NULL, true);
    tap_task(test_no_verdict, NULL, true);
    tap_task(test_blank, NULL, true);
    tap_task(test_unreadable, NULL, true);
    return tap_done();
}
