#include "tool/ai/ai_ask.h"

#include <stdio.h>

#include "base/log.h"
#include "corpus/prose/tokens.h"
#include "engine/ai/ai.h"
#include "engine/ai/embedding.h"
#include "engine/ai/embedding_reply.h"
#include "engine/ai/faults.h"
#include "engine/ai/reply.h"
#include "engine/judge/verdict.h"
#include "engine/setup/endpoint.h"
#include "wire/http_client.h"

#define QUESTION        "Which catalysts split water?"
#define SHOWN_BYTES_MAX 4096 /* of a reply */

/* What a service is called by. */
struct callee {
    const char *service, *path, *url, *headers, *key_header;
};

struct asking {
    const struct config *config;
    struct callee callee;
    const struct ai_key *key;
    struct ai *ai;
    struct str body;
    int64_t reserved;
    struct http_response reply;
};

static struct callee chat_of(const struct config *c)
{
    return (struct callee){AI_CHAT, AI_CHAT_PATH, c->ai_url, c->ai_headers, c->ai_key_header};
}

static struct callee embedding_of(const struct config *c)
{
    return (struct callee){AI_EMBEDDING, AI_EMBEDDING_PATH, c->ai_embedding_url,
                           c->ai_embedding_headers, c->ai_embedding_key_header};
}

/* --- what is shown --- */

/* s without the key, wherever it stands. */
static struct str masked(struct arena *a, struct str s, struct str key)
{
    struct buf b;
    ptrdiff_t at;
    buf_init(&b);
    while (key.n && (at = str_find(s, key)) >= 0) {
        buf_add_str(&b, str_from(s.p, (size_t)at));
        buf_add_lit(&b, "***");
        s = str_skip(s, (size_t)at + key.n);
    }
    buf_add_str(&b, s);
    struct str out = str_dup(a, buf_str(&b));
    buf_release(&b);
    return out;
}

/* The beginning, without bytes that a terminal would obey. */
static void print_text(struct str s)
{
    size_t n = s.n < SHOWN_BYTES_MAX ? s.n : SHOWN_BYTES_MAX;
    printf("          ");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n')
            printf("\n          ");
        else
            putchar((c < 0x20 && c != '\t') || c == 0x7F ? '?' : c);
    }
    printf("%s\n", n < s.n ? " …" : "");
}

static void print_request(struct task *t, const struct asking *q)
{
    struct arena *a = task_arena(t);
    size_t count;
    struct str *headers = endpoint_headers(a, q->callee.headers, &count);
    const char *ignored;
    const char *proxy = endpoint_proxy(a, q->config->ai_proxy, q->callee.url, &ignored);
    if (proxy)
        printf("proxy     %s\n", proxy);
    printf("request   POST %s\n          Content-Type: application/json\n", ai_url(q->ai));
    printf("          %.*s\n", STR_ARG(endpoint_key_line(a, q->callee.key_header, STR("***"))));
    for (size_t i = 0; i < count; i++) {
        struct str name = str_cut(&headers[i], ':');
        printf("          %.*s: ***\n", STR_ARG(name));
    }
    print_text(q->body);
}

static void print_reply(struct task *t, const struct asking *q, int64_t took_us)
{
    const struct http_response *r = &q->reply;
    printf("reply     status %d after %.3f s", r->status, (double)took_us / 1e6);
    if (r->content_type.p)
        printf(", %.*s", STR_ARG(ai_line(task_arena(t), r->content_type)));
    printf("\n");
    if (r->body.n)
        print_text(masked(task_arena(t), ai_reply_body(task_arena(t), r->body), q->key->key));
}

/* --- what is wrong --- */

/* The settings of embeddings have names of their own where advice names those of the chat. */
static const char *advised(struct arena *a, const struct asking *q, const char *advice)
{
    static const char *const own[] = {"ai.url", "ai.model", "ai.params", "ai.key_header"};
    for (size_t i = 0; !ai_is_chat(q->callee.service) && i < sizeof own / sizeof *own; i++) {
        const char *at = strstr(advice, own[i]);
        if (at)
            advice = arena_printf(a, "%.*sai.embedding.%s", (int)(at - advice), advice,
                                  at + strlen("ai."));
    }
    return advice;
}

static const struct {
    const char *kind, *meaning, *advice;
} faults[] = {
    {"proxy", "the proxy does not let the call through", ""}, /* see proxy_advice */
    {"dns", "DNS knows no such host",
     "Check the host of ai.url, and the resolver of this machine."},
    {"refused", "nothing listens at that address", "Check host and port of ai.url."},
    {"tls", "TLS failed",
     "A certificate of your own authority is trusted if ai.ca_file has that of the authority; an "
     "expired one, or one for another name, must be replaced at the service."},
    {"timeout", "there was no answer in time", "ai.timeout_ms says how long one call may take."},
    {"cut", "the connection was lost", "A proxy or the service ended it; try again."},
    {"unreadable", "what came back is no HTTP reply", "Check the port of ai.url."},
    {"other", "the call failed", "Check ai.url, and the network of this machine."},
};

/* The first of which the text has the words; the last one has all. */
static const struct {
    const char *said, *advice;
} proxy_advice[] = {
    {"cannot find ", "Check the name of the proxy, and the resolver of this machine."},
    {"wants a user", "Write them into the address: http://user:password@host:port."},
    {"refuses the user",
     "Check both; @, /, : and % in them are written %40, %2F, %3A and %25. Only "
     "Basic is spoken, not NTLM or Negotiate."},
    {"refuses CONNECT", "The proxy must allow CONNECT to host and port of ai.url; many allow "
                        "port 443 only."},
    {"in HTTP", "Check host and port of the proxy: it must be one for HTTP, without TLS."},
    {"", "Check host and port of the proxy, and that it runs."},
};

static const char *proxy_fault_advice(struct arena *a, const char *text)
{
    size_t i = 0;
    while (!strstr(text, proxy_advice[i].said))
        i++;
    return arena_printf(a,
                        "%s It is named by ai.proxy or, if that is empty, by HTTPS_PROXY (for "
                        "http:// services http_proxy) in the environment; NO_PROXY and \"none\" as "
                        "ai.proxy go without.",
                        proxy_advice[i].advice);
}

static const char *fault_of(struct task *t, const struct asking *q, int err)
{
    struct arena *a = task_arena(t);
    const char *text = arena_strdup(a, task_error(t)), *kind = ai_fault_kind(err, text);
    size_t i = 0;
    while (strcmp(faults[i].kind, kind) != 0)
        i++;
    const char *advice =
        strcmp(kind, "proxy") == 0 ? proxy_fault_advice(a, text) : faults[i].advice;
    return arena_printf(a, "%s: %s. %s", faults[i].meaning, text, advised(a, q, advice));
}

static const struct {
    int status;
    const char *meaning, *advice;
} statuses[] = {
    {400, "the service refuses the request",
     "If it dislikes a member of the body, ai.params replaces or removes it."},
    {401, "the service refuses the key", "Check the key, and ai.key_header."},
    {402, "the service wants to be paid", "Check the account that the key belongs to."},
    {403, "the service refuses the key", "Check the key, and what it may be used for."},
    {404, "the service does not know the model or the address", "Check ai.model and ai.url."},
    {405, "the service does not know the address", "Check ai.url."},
    {408, "the service took too long", "Try again."},
    {422, "the service refuses the request",
     "If it dislikes a member of the body, ai.params replaces or removes it."},
    {429, "the service has a limit that is reached", "Check its limits, and those of the key."},
};

static const char *status_problem(struct task *t, const struct asking *q)
{
    struct arena *a = task_arena(t);
    const struct http_response *r = &q->reply;
    const char *meaning = "the service answers with an error", *advice = "Ask its operators.";
    if (r->status / 100 == 3)
        return arena_printf(a,
                            "the service redirects (status %d) to %.*s. Redirects are not "
                            "followed: %s.",
                            r->status, STR_ARG(ai_redirect_target(t, r)),
                            advised(a, q, "set ai.url to the address that answers"));
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == r->status) {
            meaning = statuses[i].meaning;
            advice = statuses[i].advice;
        }
    struct str words = masked(a, ai_complaint(a, r->body), q->key->key);
    return arena_printf(a, "%s (status %d): %.*s. %s", meaning, r->status,
                        STR_ARG(words.n ? words : STR("it does not say why")),
                        advised(a, q, advice));
}

static void print_tokens(const struct asking *q, int64_t tokens)
{
    if (tokens < 0)
        printf("tokens    not told; %lld are reserved for such a call\n", (long long)q->reserved);
    else
        printf("tokens    %lld; %lld are reserved for such a call\n", (long long)tokens,
               (long long)q->reserved);
}

static const char *vector_problem(struct task *t, const struct asking *q)
{
    struct arena *a = task_arena(t);
    struct embedding_reply r;
    const char *problem = NULL;
    if (embedding_reply_read(a, q->reply.body, 1, &r, &problem) == 0)
        problem = r.vectors[0].why;
    if (problem)
        return arena_printf(a, "the service sent %.*s.",
                            STR_ARG(masked(a, str_of(problem), q->key->key)));
    int64_t wanted = q->config->ai_embedding_dimensions;
    if (wanted && (size_t)wanted != r.dimensions)
        return arena_printf(a,
                            "the service sent a vector of %zu numbers, and ai.embedding.dimensions "
                            "is %lld.",
                            r.dimensions, (long long)wanted);
    printf("vector    %zu numbers\n", r.dimensions);
    print_tokens(q, r.tokens);
    return NULL;
}

static const char *verdict_problem(struct task *t, const struct asking *q)
{
    struct arena *a = task_arena(t);
    struct verdict_reply v;
    verdict_read(a, q->reply.body, &v);
    if (!v.readable)
        return arena_printf(a, "the service sent %.*s.",
                            STR_ARG(masked(a, str_of(v.problem), q->key->key)));
    printf("verdict   %s: %.*s\n", v.relevant ? "relevant" : "not relevant", STR_ARG(v.reason));
    print_tokens(q, v.tokens);
    return NULL;
}

/* --- asking --- */

static int give_body(struct task *t, void *arg, struct str *out)
{
    (void)t;
    *out = ((const struct asking *)arg)->body;
    return 0;
}

static const char *ask(struct task *t, struct asking *q)
{
    int64_t start_us = loop_now_us(task_loop(t));
    print_request(t, q);
    fflush(stdout);
    int err = ai_call(t, q->ai, q->key->key, give_body, q, &q->reply);
    if (err == ERR_INVALID)
        return advised(task_arena(t), q,
                       "ai.url or the key cannot be sent: one of them has a character that may "
                       "not be there.");
    if (err)
        return fault_of(t, q, err);
    print_reply(t, q, loop_now_us(task_loop(t)) - start_us);
    if (q->reply.status / 100 != 2)
        return status_problem(t, q);
    return ai_is_chat(q->callee.service) ? verdict_problem(t, q) : vector_problem(t, q);
}

static struct str write_body(struct task *t, const struct config *c, const struct prompt *prompt,
                             const struct prompt_paper *paper, int64_t *reserved)
{
    struct prompt_model model = {.name = c->ai_model,
                                 .temperature_milli = c->ai_temperature_milli,
                                 .max_tokens = c->ai_max_tokens,
                                 .params = endpoint_params(task_arena(t), c->ai_params)};
    struct buf b;
    buf_init(&b);
    *reserved =
        prompt_write(prompt_question(task_arena(t), prompt, &model, STR(QUESTION)), paper, &b);
    struct str body = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return body;
}

static const char *call(struct task *t, struct asking *q)
{
    const struct config *c = q->config;
    struct metrics *metrics = metrics_open(-1, 1, 0);
    struct http_client *client =
        http_client_new(task_loop(t), &(struct http_client_options){.ca_file = c->ai_ca_file,
                                                                    .cert_file = c->ai_cert_file,
                                                                    .key_file = c->ai_key_file,
                                                                    .proxy = c->ai_proxy,
                                                                    .plain_h2 = true});
    q->ai = ai_new(&(struct ai_options){.service = q->callee.service,
                                        .url = q->callee.url,
                                        .path = q->callee.path,
                                        .headers = q->callee.headers,
                                        .key_header = q->callee.key_header,
                                        .timeout_ms = c->ai_timeout_ms,
                                        .client = client,
                                        .metrics = metrics});
    const char *why = ask(t, q);
    ai_free(q->ai);
    http_client_free(client);
    metrics_close(metrics);
    return why;
}

const char *ai_ask_once(struct task *t, const struct db *d, const struct ai_key *key,
                        const struct prompt_paper *paper)
{
    const struct config *c = &d->config;
    struct asking q = {.config = c, .callee = chat_of(c), .key = key};
    struct prompt prompt;
    const char *why;
    if (prompt_load(task_arena(t), c->ai_prompt_file, &prompt, &why))
        return why;
    q.body = write_body(t, c, &prompt, paper, &q.reserved);
    return call(t, &q);
}

const char *ai_embed_once(struct task *t, const struct db *d, const struct ai_key *key,
                          const struct prompt_paper *paper)
{
    const struct config *c = &d->config;
    struct asking q = {.config = c, .callee = embedding_of(c), .key = key};
    struct buf b;
    buf_init(&b);
    embedding_write(task_arena(t),
                    &(struct embedding_options){.model = c->ai_embedding_model,
                                                .params = c->ai_embedding_params,
                                                .dimensions = c->ai_embedding_dimensions},
                    paper->title, &b);
    q.body = str_dup(task_arena(t), buf_str(&b));
    q.reserved = tokens_estimate(paper->title);
    buf_release(&b);
    return call(t, &q);
}
