/* Two services with keys of their own, on real stores: chat and embeddings. */
#include "engine/ai/ai.h"
#include "engine/ai/permits_fixture.h"
#include "engine/ai/reply.h"
#include "wire/http_client.h"
#include "wire/http_server/http_harness.h"

#define BODY_BYTES 65536
#define ASKED      20 /* of each service */

/* What a service has seen. */
struct seen {
    struct buf keys; /* the Authorization headers, one after the other */
    int requests;
    bool refuses; /* every key */
};

struct world {
    struct node node; /* its permits are those of the chat */
    struct permits *embedding_permits;
    struct seen chat, embedding;
    struct site site;
    struct http_client *client;
    struct ai *chat_ai, *embedding_ai;
};

static int see(struct task *t, struct http_exchange *x, struct seen *s, struct str reply)
{
    struct str body, key = http_header(x, "Authorization");
    int err = http_body(t, x, &body);
    if (err)
        return err;
    s->requests++;
    buf_add_str(&s->keys, key);
    buf_add_char(&s->keys, '\n');
    return http_reply(t, x, s->refuses ? 401 : 200, "application/json", reply);
}

static int chat(struct task *t, struct http_exchange *x, void *ctx)
{
    return see(t, x, &((struct world *)ctx)->chat, STR("{\"usage\":{\"total_tokens\":3}}"));
}

static int embed(struct task *t, struct http_exchange *x, void *ctx)
{
    return see(t, x, &((struct world *)ctx)->embedding,
               STR("{\"data\":[{\"embedding\":[4,-1]}],\"usage\":{\"total_tokens\":7}}"));
}

static const struct http_route routes[] = {
    {"POST", "/v1/chat/completions", chat, BODY_BYTES},
    {"POST", "/v1/embeddings", embed, BODY_BYTES},
};

static void add_service_key(struct task *t, struct node *n, const char *key, const char *service)
{
    check(sql_call(t, n->sql, NULL, "INSERT INTO api_list (api_key, service) VALUES (?, ?)",
                   sql_text(str_of(key)), sql_text(str_of(service))) == 0);
}

static struct ai *open_service(struct task *t, struct world *w, const char *service,
                               const char *path, struct permits *permits)
{
    return ai_new(&(struct ai_options){
        .service = service,
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1", w->site.port),
        .path = path,
        .timeout_ms = 15000,
        .client = w->client,
        .permits = permits,
        .metrics = metrics});
}

static void world_open(struct task *t, struct world *w)
{
    *w = (struct world){.chat = {.requests = 0}};
    buf_init(&w->chat.keys);
    buf_init(&w->embedding.keys);
    empty_stores(t);
    make_node(t, &w->node, SLOT_MS);
    w->embedding_permits = permits_new(&(struct permits_options){.service = AI_EMBEDDING,
                                                                 .redis = w->node.redis,
                                                                 .sql = w->node.sql,
                                                                 .metrics = metrics,
                                                                 .slot_ms = SLOT_MS});
    add_service_key(t, &w->node, "sk-chat-one", "chat");
    add_service_key(t, &w->node, "sk-embedding-one", "embedding");
    add_service_key(t, &w->node, "sk-chat-two", "chat");
    start_permits(&w->node, w->node.permits);
    start_permits(&w->node, w->embedding_permits);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, routes, 2, w);
    w->chat_ai = open_service(t, w, AI_CHAT, AI_CHAT_PATH, w->node.permits);
    w->embedding_ai = open_service(t, w, AI_EMBEDDING, AI_EMBEDDING_PATH, w->embedding_permits);
}

static void world_close(struct task *t, struct world *w)
{
    ai_free(w->chat_ai);
    ai_free(w->embedding_ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    group_cancel(&w->node.tasks);
    check(group_join(t, &w->node.tasks) == 0);
    permits_free(w->embedding_permits);
    close_node(t, &w->node);
    buf_release(&w->chat.keys);
    buf_release(&w->embedding.keys);
}

static int write_request(struct task *t, void *arg, struct buf *body, int64_t *tokens)
{
    (void)t, (void)arg;
    buf_clear(body);
    buf_add_lit(body, "{\"input\":\"mice\"}");
    *tokens = 100;
    return 0;
}

static int read_reply(struct task *t, void *arg, struct str body, int64_t *tokens_used)
{
    int64_t *first = arg;
    const struct json *j = ai_reply_parse(task_arena(t), body, tokens_used);
    const struct json *vector = json_get(json_first(json_get(j, "data")), "embedding");
    if (first && !json_int(json_first(vector), first))
        return task_fail(t, ERR_PROTO, "a reply without a vector");
    return 0;
}

static int ask_service(struct task *t, struct ai *ai, int64_t *first, struct ai_answer *out)
{
    struct ai_hand hand = {.busy = false};
    return ai_ask(
        t, ai,
        &(struct ai_request){
            .write = write_request, .read = read_reply, .arg = first, .asks = &ai_for_run},
        &hand, out);
}

static bool exists(struct task *t, struct node *n, struct str key)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, STR("EXISTS"), key) == 0);
    return r->integer == 1;
}

static void test_keys(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct ai_answer answer;
    int64_t first = 0;
    world_open(t, &w);
    for (int i = 0; i < ASKED; i++) {
        check(ask_service(t, w.chat_ai, NULL, &answer) == 0);
        check(ask_service(t, w.embedding_ai, &first, &answer) == 0);
    }
    ok(first == 4, "a vector comes back");
    is_int(answer.tokens, 7, "and what it has cost");
    is_int(w.chat.requests, ASKED, "chats");
    is_int(w.embedding.requests, ASKED, "embeddings");
    ok(str_find(buf_str(&w.embedding.keys), STR("sk-embedding-one")) > 0, "with a key of theirs");
    ok(str_find(buf_str(&w.embedding.keys), STR("sk-chat")) < 0, "never with one of the chat");
    ok(str_find(buf_str(&w.chat.keys), STR("sk-chat")) > 0, "the chat with its own");
    ok(str_find(buf_str(&w.chat.keys), STR("sk-embedding")) < 0, "and never with one of them");
    ok(exists(t, &w.node, STR("sys:keyring")) &&
           exists(t, &w.node, STR("sys:keyring:service:embedding")),
       "each has a ring of its own");
    is_int(sql_number(t, &w.node, "SELECT COUNT(*) FROM setting WHERE name LIKE 'keyring.begun%'"),
           2, "that was begun on its own");
    world_close(t, &w);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct ai_answer answer;
    world_open(t, &w);
    w.embedding.refuses = true;
    int64_t old = task_deadline(t, 1500);
    is_int(ask_service(t, w.embedding_ai, NULL, &answer), ERR_TIMEOUT,
           "its only key is refused: it waits for another one");
    task_deadline_restore(t, old);
    ok(str_find(buf_str(&w.embedding.keys), STR("sk-chat")) < 0, "no other key is tried");
    is_int(ask_service(t, w.chat_ai, NULL, &answer), 0, "the chat goes on");
    is_int(sql_number(t, &w.node, "SELECT COUNT(*) FROM api_list WHERE is_active"), 2,
           "and keeps its keys");
    world_close(t, &w);
}

int main(void)
{
    start_stores();
    struct buf log; /* keys are refused on purpose */
    buf_init(&log);
    log_capture(&log);
    tap_task(test_keys, NULL, true);
    tap_task(test_refused, NULL, true);
    log_capture(NULL);
    ok(str_find(buf_str(&log), STR("sk-embedding-one")) < 0, "no key is logged");
    buf_release(&log);
    return stop_stores();
}
