#include "tool/sim/sim.h"

#include "tool/sim/sim_call.h"
#include "tool/sim/sim_chat.h"
#include "tool/sim/sim_embeddings.h"

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

/* Faults of the verdict's text: there is none here. */
static bool is_of_text(enum sim_fault f)
{
    return f == FAULT_FENCED || f == FAULT_UNREADABLE || f == FAULT_THINKING || f == FAULT_CLIPPED;
}

static int answer_embed(struct task *t, struct sim_call *c, const struct json *body)
{
    struct sim_embeddings e;
    const char *why;
    if (sim_embeddings_read(body, &e, &why))
        return sim_call_refuse(t, c, 400, "invalid_request", why);
    if (is_of_text(c->fate.fault))
        c->fate.fault = FAULT_GARBAGE;
    struct sim_fate own = sim_fault_pick(&c->sim->options.embed_faults, c->number);
    struct buf *out = sim_call_buf(c);
    sim_embeddings_write(task_arena(t), &e, (enum sim_embed_fault)own.fault, own.dice, out);
    struct sim_reply reply = {"application/json", buf_str(out), false};
    return sim_call_deliver(t, c, (struct sim_usage){e.tokens, 0}, &reply);
}

static int post_embed(struct task *t, struct http_exchange *x, void *ctx)
{
    return sim_call_run(t, ctx, x, answer_embed);
}

/* --- the rest --- */

#define OBJECT "\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"millrace\""

static int get_models(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    return http_reply(t, x, 200, "application/json",
                      STR("{\"object\":\"list\",\"data\":["
                          "{\"id\":\"millrace-sim\"," OBJECT
                          "},{\"id\":\"millrace-sim-embedding\"," OBJECT
                          "},{\"id\":\"millrace-sim-embedding-768\"," OBJECT "}]}"));
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
