#include "tool/sim/sim.h"

#include "tool/sim/sim_call.h"
#include "tool/sim/sim_chat.h"
#include "tool/sim/sim_embed.h"
#include "tool/sim/sim_words.h"

/* --- chat completions --- */

static struct sim_reply write_chat(struct task *t, struct sim_call *c, const struct sim_chat *chat,
                                   const struct sim_answer *answer)
{
    struct buf *out = sim_call_buf(c);
    int64_t now_s = loop_wall_ms(task_loop(t)) / 1000;
    if (chat->stream)
        sim_chat_write_stream(chat, answer, c->number, now_s, out);
    else
        sim_chat_write(chat, answer, c->number, now_s, out);
    const char *type = chat->stream ? "text/event-stream" : "application/json";
    return (struct sim_reply){type, buf_str(out), chat->stream};
}

static int answer_chat(struct task *t, struct sim_call *c, const struct json *body)
{
    struct sim_chat chat;
    struct sim_answer answer;
    const char *why;
    if (sim_chat_read(task_arena(t), &c->sim->brief, body, &chat, &why))
        return sim_call_refuse(t, c, 400, "invalid_request", why);
    chat.plan_faults = c->sim->options.plan_faults;
    chat.extract_faults = c->sim->options.extract_faults;
    sim_chat_answer(task_arena(t), &chat, c->sim->labels, &c->fate, &c->sim->content, &answer);
    struct sim_reply reply = write_chat(t, c, &chat, &answer);
    return sim_call_deliver(t, c, (struct sim_usage){chat.prompt_tokens, answer.tokens}, &reply);
}

static int post_chat(struct task *t, struct http_exchange *x, void *ctx)
{
    return sim_call_run(t, ctx, x, answer_chat);
}

/* --- embeddings --- */

struct embed {
    struct str model;
    const struct json *first; /* of the inputs: siblings, all strings */
    size_t count;
    size_t dimensions;
    bool base64;
};

static const char *read_input(const struct json *input, struct embed *e)
{
    bool one = input && input->type == JSON_STRING;
    if (!one && (!input || input->type != JSON_ARRAY || input->count == 0))
        return "input must be a string or an array of strings";
    e->first = one ? input : json_first(input);
    e->count = one ? 1 : input->count;
    if (e->count > SIM_EMBED_INPUTS_MAX)
        return "input has too many strings";
    size_t left = e->count;
    for (const struct json *s = e->first; left--; s = s->next)
        if (json_str(s).n == 0)
            return "each input must be a string that is not empty";
    return NULL;
}

/* NULL when all is well, else what is wrong. */
static const char *read_embed(const struct json *body, struct embed *e)
{
    e->model = json_str(json_get(body, "model"));
    if (e->model.n == 0)
        return "you must provide a model parameter";
    int64_t dimensions = SIM_DIMENSIONS_DEFAULT;
    const struct json *wanted = json_get(body, "dimensions");
    if (wanted &&
        (!json_int(wanted, &dimensions) || dimensions < 1 || dimensions > SIM_DIMENSIONS_MAX))
        return "dimensions must be an integer from 1 to 4096";
    e->dimensions = (size_t)dimensions;
    struct str format = json_str(json_get(body, "encoding_format"));
    e->base64 = str_eq(format, STR("base64"));
    if (format.p && !e->base64 && !str_eq(format, STR("float")))
        return "encoding_format must be float or base64";
    const char *why = read_input(json_get(body, "input"), e);
    if (!why && e->count * e->dimensions > SIM_EMBED_NUMBERS_MAX)
        return "input has too many strings for so many dimensions";
    return why;
}

static int64_t count_tokens(const struct embed *e)
{
    int64_t tokens = 0;
    size_t left = e->count;
    for (const struct json *s = e->first; left--; s = s->next)
        tokens += sim_tokens(s->s);
    return tokens;
}

static void write_vectors(struct arena *a, const struct embed *e, struct buf *out)
{
    float *v = arena_alloc(a, e->dimensions * sizeof(*v));
    const struct json *s = e->first;
    for (size_t i = 0; i < e->count; i++, s = s->next) {
        sim_embed(s->s, v, e->dimensions);
        buf_printf(out, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "",
                   i);
        if (e->base64)
            sim_embed_write_base64(v, e->dimensions, out);
        else
            sim_embed_write(v, e->dimensions, out);
        buf_add_char(out, '}');
    }
}

static struct sim_reply write_embed(struct task *t, struct sim_call *c, const struct embed *e,
                                    int64_t tokens)
{
    struct buf *out = sim_call_buf(c);
    buf_add_lit(out, "{\"object\":\"list\",\"data\":[");
    write_vectors(task_arena(t), e, out);
    buf_add_lit(out, "],\"model\":\"");
    json_escape(out, e->model);
    buf_printf(out, "\",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
               (long long)tokens, (long long)tokens);
    return (struct sim_reply){"application/json", buf_str(out), false};
}

static int answer_embed(struct task *t, struct sim_call *c, const struct json *body)
{
    struct embed e;
    const char *why = read_embed(body, &e);
    if (why)
        return sim_call_refuse(t, c, 400, "invalid_request", why);
    /* Faults of the verdict's text: there is none here. */
    if (c->fate.fault == FAULT_FENCED || c->fate.fault == FAULT_UNREADABLE ||
        c->fate.fault == FAULT_THINKING || c->fate.fault == FAULT_CLIPPED)
        c->fate.fault = FAULT_GARBAGE;
    int64_t tokens = count_tokens(&e);
    struct sim_reply reply = write_embed(t, c, &e, tokens);
    return sim_call_deliver(t, c, (struct sim_usage){tokens, 0}, &reply);
}

static int post_embed(struct task *t, struct http_exchange *x, void *ctx)
{
    return sim_call_run(t, ctx, x, answer_embed);
}

/* --- the rest --- */

static int get_models(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "application/json",
                      STR("{\"object\":\"list\",\"data\":["
                          "{\"id\":\"millrace-sim\",\"object\":\"model\",\"created\":1700000000,"
                          "\"owned_by\":\"millrace\"},"
                          "{\"id\":\"millrace-sim-embedding\",\"object\":\"model\","
                          "\"created\":1700000000,\"owned_by\":\"millrace\"}]}"));
}

static int get_health(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "application/json", STR("{\"status\":\"ok\"}"));
}

static int get_stats(struct task *t, struct http_exchange *x, void *ctx)
{
    const struct sim *s = ctx;
    struct json_writer w;
    http_json(x, &w);
    sim_stats_write(&s->stats, &w);
    return http_reply_json(t, x, 200);
}

static int reset_stats(struct task *t, struct http_exchange *x, void *ctx)
{
    struct sim *s = ctx;
    sim_stats_reset(&s->stats);
    return get_stats(t, x, ctx);
}

static const struct http_route routes[] = {
    {"POST", "/v1/chat/completions", post_chat, SIM_BODY_BYTES_MAX},
    {"POST", "/v1/embeddings", post_embed, SIM_BODY_BYTES_MAX},
    {"GET", "/v1/models", get_models, 0},
    {"GET", "/healthz", get_health, 0},
    {"GET", "/stats", get_stats, 0},
    {"POST", "/stats/reset", reset_stats, 1024},
};

void sim_routes(struct http_server *server, struct sim *s)
{
    http_server_add(server, routes, sizeof(routes) / sizeof(routes[0]), s);
}
