/* Texts that become vectors: a service on the loop that answers by what the texts say, with permits
 * and keys of real stores.
 *
 * The vector of a text is its length and its first byte, scaled. A text with one of these words in
 * it is spoiled: "zero" makes its vector one of zeros, "refused" has the request refused, and
 * "unreadable" breaks the JSON of the reply; "zero once" does so to the first request only. */
#include "engine/ai/embedding.h"

#include <math.h>

#include "engine/ai/ai.h"
#include "engine/ai/permits_fixture.h"
#include "wire/http_client.h"
#include "wire/http_server/http_harness.h"

static const bool asks = true; /* a job that may */

#define BODY_BYTES (8 * 1024 * 1024)
#define CALLS_MAX  400

struct service {
    size_t texts_max, bytes_max; /* of a request; more are 400; 0: any */
    bool no_base64, refuses_all, stalls;
    const char *model;      /* NULL: "m" */
    const char *model_next; /* after the first reply; NULL: the same */
    int64_t delay_ms;
    /* what it has seen */
    int calls, base64, answered, now, most;
    size_t texts[CALLS_MAX]; /* of each request */
    bool once;               /* somebody has been told once */
    struct str last;         /* the last body, in the world's arena */
};

struct world {
    struct node node; /* its permits are those of the chat, and not used */
    struct permits *permits;
    struct arena arena;
    struct service service;
    struct site site;
    struct http_client *client;
    struct ai *ai;
    struct embedding *embedding;
};

/* --- the service --- */

static bool has(struct service *s, struct str text, const char *word)
{
    ptrdiff_t at = str_find(text, str_of(word));
    if (at < 0)
        return false;
    bool once = str_find(text, STR(" once")) > at;
    bool told = once && s->once;
    s->once = s->once || once;
    return !told;
}

static int refuse(struct task *t, struct http_exchange *x, int status, const char *why)
{
    return http_reply(t, x, status, "application/json",
                      str_printf(task_arena(t), "{\"error\":{\"message\":\"%s\"}}", why));
}

static void put_vector(struct service *s, struct str text, bool base64, struct buf *out)
{
    float v[2] = {(float)text.n, (float)(unsigned char)text.p[0]};
    if (has(s, text, "zero"))
        memset(v, 0, sizeof v);
    if (base64) {
        buf_add_char(out, '"');
        buf_add_base64(out, v, sizeof v);
        buf_add_char(out, '"');
        return;
    }
    buf_printf(out, "[%.1f,%.1f]", (double)v[0], (double)v[1]);
}

static const char *refusal(struct service *s, const struct json *input, size_t bytes, bool base64)
{
    if (s->refuses_all)
        return "there is no such model";
    if (s->no_base64 && base64)
        return "encoding_format: unknown";
    if ((s->texts_max && input->count > s->texts_max) || (s->bytes_max && bytes > s->bytes_max))
        return "the input is too long";
    json_each (text, input)
        if (has(s, text->s, "refused"))
            return "this text is not allowed";
    return NULL;
}

static int reply(struct task *t, struct http_exchange *x, struct service *s,
                 const struct json *input, bool base64)
{
    struct buf b;
    buf_init(&b);
    const char *model = s->answered++ && s->model_next ? s->model_next : s->model;
    buf_printf(&b, "{\"model\":\"%s\",\"usage\":{\"total_tokens\":%u},\"data\":[",
               model ? model : "m", input->count);
    size_t i = 0;
    json_each (text, input) {
        if (has(s, text->s, "unreadable"))
            buf_add_char(&b, '!');
        buf_printf(&b, "%s{\"index\":%zu,\"embedding\":", i ? "," : "", i);
        put_vector(s, text->s, base64, &b);
        buf_add_char(&b, '}');
        i++;
    }
    buf_add_lit(&b, "]}");
    int err = http_reply(t, x, 200, "application/json", str_dup(task_arena(t), buf_str(&b)));
    buf_release(&b);
    return err;
}

static int answer(struct task *t, struct http_exchange *x, struct world *w, const struct json *body)
{
    struct service *s = &w->service;
    const struct json *input = json_get(body, "input");
    bool base64 = str_eq(json_str(json_get(body, "encoding_format")), STR("base64"));
    size_t bytes = 0;
    json_each (text, input)
        bytes += text->s.n;
    check(s->calls < CALLS_MAX && input && input->type == JSON_ARRAY);
    s->texts[s->calls++] = input->count;
    s->base64 += base64;
    const char *why = refusal(s, input, bytes, base64);
    if (s->delay_ms && task_sleep(t, s->delay_ms))
        return ERR_CANCELED;
    return why ? refuse(t, x, bytes % 2 ? 400 : 413, why) : reply(t, x, s, input, base64);
}

static int embed(struct task *t, struct http_exchange *x, void *ctx)
{
    struct world *w = ctx;
    struct service *s = &w->service;
    struct str body;
    const struct json *j;
    http_cancel_when_gone(x);
    int err = http_body(t, x, &body);
    if (err)
        return err;
    s->last = str_dup(&w->arena, body);
    check(str_eq(http_header(x, "Authorization"), STR("Bearer sk-embedding-one")));
    check(json_parse(task_arena(t), s->last, &j, NULL) == 0);
    s->now++;
    s->most = s->now > s->most ? s->now : s->most;
    err = s->stalls ? task_sleep(t, 60000) : answer(t, x, w, j);
    s->now--;
    return err;
}

static const struct http_route routes[] = {{"POST", "/v1/embeddings", embed, BODY_BYTES}};

/* --- the world --- */

static struct embedding *make_embedding(struct world *w, const struct embedding_options *o)
{
    struct embedding_options all = *o;
    all.ai = w->ai;
    all.permits = w->permits;
    all.metrics = metrics;
    all.model = all.model ? all.model : "wanted";
    all.batch_texts = all.batch_texts ? all.batch_texts : 8;
    all.batch_tokens = all.batch_tokens ? all.batch_tokens : 10000;
    return embedding_new(&all);
}

static void world_open(struct task *t, struct world *w, const struct embedding_options *o)
{
    *w = (struct world){.embedding = NULL};
    arena_init(&w->arena);
    empty_stores(t);
    make_node(t, &w->node, SLOT_MS);
    w->permits = permits_new(&(struct permits_options){.service = AI_EMBEDDING,
                                                       .redis = w->node.redis,
                                                       .sql = w->node.sql,
                                                       .metrics = metrics,
                                                       .slot_ms = SLOT_MS});
    sql_do(t, &w->node,
           "INSERT INTO api_list (api_key, service, rpm_limit) VALUES ('sk-embedding-one',"
           " 'embedding', 100000)");
    start_permits(&w->node, w->permits);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, routes, 1, w);
    w->ai = ai_new(&(struct ai_options){
        .service = AI_EMBEDDING,
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1", w->site.port),
        .path = AI_EMBEDDING_PATH,
        .timeout_ms = 15000,
        .client = w->client,
        .permits = w->permits,
        .metrics = metrics});
    w->embedding = make_embedding(w, o);
    while (!permits_looked(w->permits))
        pause_ms(t, 2);
}

static void world_close(struct task *t, struct world *w)
{
    embedding_free(w->embedding);
    ai_free(w->ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    group_cancel(&w->node.tasks);
    check(group_join(t, &w->node.tasks) == 0);
    permits_free(w->permits);
    close_node(t, &w->node);
    arena_release(&w->arena);
}

static void ask_again(struct world *w, const struct service *s)
{
    w->service = *s;
}

static bool is_vector_of(const struct embedding_answer *a, size_t i, struct str text)
{
    double x = (double)text.n, y = (double)(unsigned char)text.p[0], length = sqrt(x * x + y * y);
    const float *v = a->items[i].vector;
    return a->dimensions == 2 && v && !a->items[i].err && fabs((double)v[0] - x / length) < 1e-6 &&
           fabs((double)v[1] - y / length) < 1e-6;
}

/* Texts without an error whose vectors are not theirs. */
static int wrong_of(const struct embedding_answer *a, const struct str *texts, size_t count)
{
    int wrong = 0;
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += !a->items[i].err && !is_vector_of(a, i, texts[i]);
        wrong += (a->items[i].err != 0) != (a->items[i].why != NULL);
        failed += a->items[i].err != 0;
    }
    return wrong + (failed != a->failed);
}

static struct str *texts_of(struct task *t, size_t count)
{
    struct str *texts = ARENA_ARRAY(task_arena(t), struct str, count);
    for (size_t i = 0; i < count; i++)
        texts[i] = str_printf(task_arena(t), "%c text number %zu", 'a' + (char)(i % 26), i);
    return texts;
}

/* --- tests --- */

static void test_batches(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    struct str *texts = texts_of(t, 20);
    is_int(embedding_ask(t, w.embedding, texts, 20, &ai_for_run, &a), 0, "20 texts");
    is_int(wrong_of(&a, texts, 20), 0, "have their vectors");
    ok(a.failed == 0 && a.dimensions == 2, "of two dimensions");
    is_str(a.model, STR("m"), "of the model that the reply names");
    is_int(a.tokens, 20, "for so many tokens");
    is_int(a.calls, 3, "in three calls");
    is_int(w.service.calls, 3, "which have come");
    is_int((int64_t)(w.service.texts[0] + w.service.texts[1] + w.service.texts[2]), 20,
           "with each text once");
    is_int(w.service.base64, 3, "asking for base64");
    ok(str_starts(w.service.last,
                  STR("{\"model\":\"wanted\",\"encoding_format\":\"base64\",\"input\":[\"")),
       "the request: %.80s", w.service.last.p);
    ask_again(&w, &(struct service){.delay_ms = 50});
    texts = texts_of(t, 80);
    is_int(embedding_ask(t, w.embedding, texts, 80, &asks, &a), 0, "80 texts");
    is_int(wrong_of(&a, texts, 80), 0, "have theirs");
    is_int(w.service.most, EMBEDDING_BATCHES_MAX, "in so many calls at once");
    is_int(embedding_ask(t, w.embedding, texts, 0, &ai_for_run, &a), 0, "no text at all");
    is_int(a.calls, 0, "is no call");
    struct str odd[] = {STR("\"quotes\" \\ and\n\x01"), STR("石墨烯"), STR("bad \xFF byte")};
    ask_again(&w, &(struct service){.calls = 0});
    is_int(embedding_ask(t, w.embedding, odd, 3, &ai_for_run, &a), 0, "odd texts");
    ok(is_vector_of(&a, 0, odd[0]) && is_vector_of(&a, 1, odd[1]), "arrive as they are");
    world_close(t, &w);
}

static void test_tokens(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.batch_tokens = 100});
    struct str texts[12];
    for (size_t i = 0; i < 12; i++) { /* 31 tokens each, and one of more than a batch */
        size_t n = i == 5 ? 600 : 90;
        char *text = memset(arena_alloc(task_arena(t), n), 'a' + (char)i, n);
        texts[i] = str_from(text, n);
    }
    is_int(embedding_ask(t, w.embedding, texts, 12, &ai_for_run, &a), 0, "long texts");
    is_int(wrong_of(&a, texts, 12), 0, "have their vectors");
    size_t most = 0, alone = 0;
    for (int i = 0; i < w.service.calls; i++) {
        most = w.service.texts[i] > most ? w.service.texts[i] : most;
        alone += w.service.texts[i] == 1;
    }
    is_int((int64_t)most, 3, "three of them fit into a batch");
    ok(alone >= 1 && w.service.calls <= 6, "the longest goes alone (%d calls)", w.service.calls);
    world_close(t, &w);
}

static void test_own_errors(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    struct str *texts = texts_of(t, 8);
    texts[0] = STR("");
    texts[2] = STR(" \n\t ");
    size_t n = EMBEDDING_TEXT_BYTES_MAX + 1;
    texts[4] = str_from(memset(arena_alloc(task_arena(t), n), 'x', n), n);
    texts[6] = STR("this is refused");
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0,
           "some texts cannot be embedded");
    is_int(wrong_of(&a, texts, 8), 0, "the others are");
    ok(a.items[0].err == ERR_INVALID && a.items[2].err == ERR_INVALID, "blank ones: %s",
       a.items[0].why);
    is_int(a.items[4].err, ERR_LIMIT, "one that is too long: %s", a.items[4].why);
    is_int(a.items[6].err, ERR_REFUSED, "one that the service refuses: %s", a.items[6].why);
    ok(strstr(a.items[6].why, "this text is not allowed"), "in its words");
    is_int((int64_t)a.failed, 4, "no more than these");
    world_close(t, &w);
}

static void test_halves(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    struct buf log;
    world_open(t, &w, &(struct embedding_options){.batch_texts = 32});
    w.service.texts_max = 8;
    struct str *texts = texts_of(t, 32);
    is_int(embedding_ask(t, w.embedding, texts, 1, &ai_for_run, &a), 0, "one text");
    buf_init(&log);
    log_setup(LOG_WARN, LOG_TEXT, "test");
    log_capture(&log);
    is_int(embedding_ask(t, w.embedding, texts, 32, &ai_for_run, &a), 0,
           "batches that are too long");
    log_capture(NULL);
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    is_int(wrong_of(&a, texts, 32), 0, "are halved");
    ok(str_find(buf_str(&log), STR("at most 8 from now on")) > 0, "which is logged: %.*s",
       STR_ARG(buf_str(&log)));
    buf_release(&log);
    int before = w.service.calls;
    is_int(embedding_ask(t, w.embedding, texts, 32, &ai_for_run, &a), 0, "the next ones");
    is_int(w.service.calls - before, 4, "are short enough from the beginning");
    ask_again(&w, &(struct service){.bytes_max = 200});
    texts[3] = STR("this one is refused");
    is_int(embedding_ask(t, w.embedding, texts, 32, &ai_for_run, &a), 0, "one is refused");
    is_int(wrong_of(&a, texts, 32), 0, "the others are embedded");
    ok(a.failed == 1 && a.items[3].err == ERR_REFUSED, "and it has the error");
    world_close(t, &w);
}

static void test_numbers(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    w.service.no_base64 = true;
    struct str *texts = texts_of(t, 8);
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0, "a service without base64");
    is_int(wrong_of(&a, texts, 8), 0, "gives numbers");
    is_int(w.service.calls, 2, "after one refusal");
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0, "the next call");
    ok(w.service.calls == 3 && w.service.base64 == 1, "remembers it");
    ok(str_starts(w.service.last, STR("{\"model\":\"wanted\",\"input\":[")), "the request: %.60s",
       w.service.last.p);
    embedding_free(w.embedding);
    w.embedding = make_embedding(
        &w, &(struct embedding_options){.dimensions = 2,
                                        .params = "{\"encoding_format\": \"float\", \"user\": 1,"
                                                  " \"dimensions\": null}"});
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0, "members of the settings");
    ok(str_starts(w.service.last, STR("{\"model\":\"wanted\",\"encoding_format\":\"float\","
                                      "\"user\":1,\"input\":[")),
       "replace those of millrace: %.90s", w.service.last.p);
    ask_again(&w, &(struct service){.texts_max = 4});
    embedding_free(w.embedding);
    w.embedding = make_embedding(&w, &(struct embedding_options){.params = ""});
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0,
           "a first batch that is too long");
    is_int(wrong_of(&a, texts, 8), 0, "is halved");
    w.service.texts_max = 0;
    int before = w.service.base64;
    is_int(embedding_ask(t, w.embedding, texts, 4, &ai_for_run, &a), 0, "and the next call");
    ok(w.service.base64 == before + 1, "asks for base64 again: it was not to blame");
    world_close(t, &w);
}

static void test_refuses_all(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.batch_texts = 64});
    w.service.refuses_all = true;
    struct str *texts = texts_of(t, 256);
    is_int(embedding_ask(t, w.embedding, texts, 256, &ai_for_run, &a), ERR_REFUSED,
           "a service that refuses everything");
    ok(strstr(task_error(t), "there is no such model"), "in its words: %s", task_error(t));
    ok(w.service.calls < 50, "is not asked about each text (%d calls)", w.service.calls);
    world_close(t, &w);
}

static void test_bad_vectors(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    struct str *texts = texts_of(t, 8);
    texts[2] = STR("zero");
    texts[5] = STR("zero once");
    is_int(embedding_ask(t, w.embedding, texts, 8, &ai_for_run, &a), 0, "vectors of zeros");
    is_int(wrong_of(&a, texts, 8), 0, "the others are taken");
    ok(a.failed == 1 && a.items[2].err == ERR_PROTO, "one stays bad: %s", a.items[2].why);
    is_int((int64_t)w.service.texts[1], 2, "bad ones alone are asked for again");
    is_int(w.service.calls, 3, "and at most twice");
    texts[2] = STR("unreadable once");
    ask_again(&w, &(struct service){.calls = 0});
    is_int(embedding_ask(t, w.embedding, texts, 4, &ai_for_run, &a), 0, "a reply that is no JSON");
    is_int(wrong_of(&a, texts, 4), 0, "is asked for again");
    is_int(w.service.calls, 2, "as a whole");
    world_close(t, &w);
}

static void test_changes(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    w.service.model_next = "other";
    struct str *texts = texts_of(t, 20);
    is_int(embedding_ask(t, w.embedding, texts, 20, &ai_for_run, &a), ERR_CONFLICT,
           "another model between two batches");
    is_int(embedding_ask(t, w.embedding, texts, 20, &ai_for_run, &a), 0, "asked again");
    is_str(a.model, STR("other"), "all are of the new one");
    embedding_free(w.embedding);
    w.embedding = make_embedding(&w, &(struct embedding_options){.dimensions = 3});
    int64_t old = task_deadline(t, 60000);
    is_int(embedding_ask(t, w.embedding, texts, 2, &ai_for_run, &a), ERR_UNAVAILABLE,
           "other dimensions than the settings say");
    task_deadline_restore(t, old);
    ok(strstr(task_error(t), "vectors of 2 numbers instead of 3"), "are named: %s", task_error(t));
    ok(str_find(w.service.last, STR("\"dimensions\":3")) > 0, "and asked for");
    world_close(t, &w);
}

static void test_ends(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct embedding_answer a;
    world_open(t, &w, &(struct embedding_options){.params = ""});
    w.service.stalls = true;
    struct str *texts = texts_of(t, 80);
    int64_t old = task_deadline(t, 300), began = loop_now_ms(task_loop(t));
    is_int(embedding_ask(t, w.embedding, texts, 80, &ai_for_run, &a), ERR_TIMEOUT,
           "the deadline of the task");
    task_deadline_restore(t, old);
    ok(loop_now_ms(task_loop(t)) - began < 3000, "ends all of its calls");
    for (int i = 0; w.service.now && i < 1000; i++)
        pause_ms(t, 2);
    is_int(w.service.now, 0, "none is under way");
    sql_do(t, &w.node, "UPDATE api_list SET is_active = 0");
    while (!permits_none(w.permits))
        pause_ms(t, 5);
    is_int(embedding_ask(t, w.embedding, texts, 1, &ai_for_run, &a), ERR_UNAVAILABLE,
           "without a key it does not wait");
    world_close(t, &w);
}

int main(void)
{
    start_stores();
    tap_task(test_batches, NULL, true);
    tap_task(test_tokens, NULL, true);
    tap_task(test_own_errors, NULL, true);
    tap_task(test_halves, NULL, true);
    tap_task(test_numbers, NULL, true);
    tap_task(test_refuses_all, NULL, true);
    tap_task(test_bad_vectors, NULL, true);
    tap_task(test_changes, NULL, true);
    tap_task(test_ends, NULL, true);
    return stop_stores();
}
