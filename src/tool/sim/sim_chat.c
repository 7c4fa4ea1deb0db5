#include "tool/sim/sim_chat.h"

#include "base/err.h"

#define ECHO_BYTES_MAX  200
#define PIECE_BYTES_MAX 16 /* of the content, per event of a stream */

static int wrong(const char **why, const char *message)
{
    *why = message;
    return ERR_INVALID;
}

/* --- the brief --- */

void sim_brief_release(struct sim_brief *b)
{
    buf_release(&b->text);
    arena_release(&b->arena);
}

static void read_brief(struct sim_brief *b, struct str message)
{
    if (str_eq(buf_str(&b->text), message))
        return;
    buf_clear(&b->text);
    buf_add_str(&b->text, message);
    arena_reset(&b->arena, (struct arena_mark){0});
    struct sim_prompt p;
    sim_prompt_read(&p, buf_str(&b->text));
    b->tokens = sim_tokens(message);
    b->question = p.question;
    if (b->question.p)
        sim_word_set_init(&b->arena, &b->words, b->question);
}

/* --- reading --- */

/* Content is a string or a list of parts, of which the text ones count. */
static bool read_content(struct arena *a, const struct json *content, struct str *out)
{
    if (content && content->type == JSON_STRING) {
        *out = content->s;
        return true;
    }
    if (!content || content->type != JSON_ARRAY)
        return false;
    char *text = NULL;
    size_t n = 0;
    json_each (part, content) {
        struct str piece = json_str(json_get(part, "text"));
        if (piece.n == 0)
            continue;
        text = arena_grow(a, text, n, n + piece.n);
        memcpy(text + n, piece.p, piece.n);
        n += piece.n;
    }
    *out = text ? str_from(text, n) : STR("");
    return true;
}

static bool is_system(struct str role)
{
    return str_eq(role, STR("system")) || str_eq(role, STR("developer"));
}

static bool is_other(struct str role)
{
    return str_eq(role, STR("assistant")) || str_eq(role, STR("tool"));
}

static void read_system(struct sim_brief *brief, struct str content, struct sim_chat *out)
{
    read_brief(brief, content);
    out->prompt_tokens += brief->tokens;
    out->prompt.question = brief->question;
    out->prompt.words = &brief->words;
}

static int read_message(struct arena *a, struct sim_brief *brief, const struct json *m,
                        struct sim_chat *out, const char **why)
{
    struct str role = json_str(json_get(m, "role"));
    bool user = str_eq(role, STR("user"));
    if (!user && !is_system(role) && !is_other(role))
        return wrong(why, "each message needs a role: system, developer, user, assistant or tool");
    struct str content = STR("");
    if (!read_content(a, json_get(m, "content"), &content) && !is_other(role))
        return wrong(why, "each message needs a content: a string or an array of parts");
    if (is_system(role) && !out->prompt.question.p)
        read_system(brief, content, out);
    else
        out->prompt_tokens += sim_tokens(content);
    if (user)
        out->asked = content;
    return 0;
}

static int read_messages(struct arena *a, struct sim_brief *brief, const struct json *messages,
                         struct sim_chat *out, const char **why)
{
    if (!messages || messages->type != JSON_ARRAY || messages->count == 0)
        return wrong(why, "messages must be an array with at least one message");
    json_each (m, messages) {
        int err = read_message(a, brief, m, out, why);
        if (err)
            return err;
    }
    struct sim_prompt fixed = out->prompt;
    sim_prompt_read(&out->prompt, out->asked);
    if (fixed.question.p) {
        out->prompt.question = fixed.question;
        out->prompt.words = fixed.words;
    }
    return 0;
}

static int read_tokens_max(const struct json *body, struct sim_chat *out, const char **why)
{
    const struct json *max = json_get(body, "max_completion_tokens");
    if (!max)
        max = json_get(body, "max_tokens");
    out->tokens_max = INT64_MAX;
    if (!max || max->type == JSON_NULL)
        return 0;
    if (!json_int(max, &out->tokens_max) || out->tokens_max < 1)
        return wrong(why, "max_tokens must be an integer of at least 1");
    return 0;
}

/* False when the member is there but no boolean. An absent one leaves *out alone. */
static bool read_flag(const struct json *j, bool *out)
{
    return !j || j->type == JSON_NULL || json_bool(j, out);
}

static int read_options(const struct json *body, struct sim_chat *out, const char **why)
{
    if (!read_flag(json_get(body, "stream"), &out->stream))
        return wrong(why, "stream must be true or false");
    const struct json *usage = json_get(json_get(body, "stream_options"), "include_usage");
    if (!read_flag(usage, &out->usage_in_stream))
        return wrong(why, "stream_options.include_usage must be true or false");
    int64_t n = 1;
    const struct json *choices = json_get(body, "n");
    if (choices && choices->type != JSON_NULL && (!json_int(choices, &n) || n != 1))
        return wrong(why, "n must be 1: this server gives one choice");
    struct str format = json_str(json_get(json_get(body, "response_format"), "type"));
    out->wants_json = str_starts(format, STR("json_"));
    return read_tokens_max(body, out, why);
}

int sim_chat_read(struct arena *a, struct sim_brief *brief, const struct json *body,
                  struct sim_chat *out, const char **why)
{
    struct sim_chat c = {.asked = STR(""), .messages = json_get(body, "messages")};
    if (!body || body->type != JSON_OBJECT)
        return wrong(why, "the body must be a JSON object");
    c.model = json_str(json_get(body, "model"));
    if (c.model.n == 0)
        return wrong(why, "you must provide a model parameter");
    int err = read_messages(a, brief, c.messages, &c, why);
    if (!err)
        err = read_options(body, &c, why);
    if (!err)
        *out = c;
    return err;
}

/* --- answering --- */

static void add_echo(const struct sim_chat *c, struct buf *into)
{
    struct str asked = sim_clip(c->asked, ECHO_BYTES_MAX);
    buf_add_str(into, c->wants_json ? STR("{\"text\": \"You asked: ") : STR("You asked: "));
    if (c->wants_json)
        json_escape(into, asked);
    else
        buf_add_str(into, asked);
    if (c->wants_json)
        buf_add_lit(into, "\"}");
}

/* What is in into, in other text. */
static void fence_in(struct arena *a, const struct sim_fate *fate, struct buf *into)
{
    bool fence = fate->dice & 1;
    struct str answer = str_dup(a, buf_str(into));
    buf_clear(into);
    buf_add_str(into, fence ? STR("```json\n") : STR("Here is my assessment:\n\n"));
    buf_add_str(into, answer);
    buf_add_str(into, fence ? STR("\n```") : STR("\n\nTell me if you need more detail."));
}

/* The plan that the first message with one asks for. What is said after it is a complaint. */
static bool find_plan(struct arena *a, const struct sim_chat *c, struct sim_plan *out)
{
    bool found = false;
    json_each (m, c->messages) {
        struct str content;
        if (found)
            out->complained = true;
        else if (!is_other(json_str(json_get(m, "role"))) &&
                 read_content(a, json_get(m, "content"), &content))
            found = sim_plan_read(content, out);
    }
    return found;
}

/* The fields that the first message asks for, of the document in the last user message. A longer
 * conversation has a complaint in it. */
static bool find_extract(struct arena *a, const struct sim_chat *c, struct sim_extract *out)
{
    const struct json *first = json_first(c->messages);
    struct str system;
    if (!is_system(json_str(json_get(first, "role"))) ||
        !read_content(a, json_get(first, "content"), &system) ||
        !sim_extract_read(a, system, c->asked, out))
        return false;
    out->complained = out->complained || c->messages->count > 2;
    out->typed = c->wants_json;
    return true;
}

#define THOUGHTS "Is it {\"relevant\": true} or {\"relevant\": false}? Let me see."

/* One of the shapes in which models think, into out and before what is in into. */
static void think(struct arena *a, const struct sim_fate *fate, struct buf *into,
                  struct sim_answer *out)
{
    struct str answer = str_dup(a, buf_str(into));
    unsigned shape = (unsigned)(fate->dice & 3);
    out->parts = shape == 3;
    if (shape >= 2) {
        out->thoughts = STR(THOUGHTS);
        return;
    }
    buf_clear(into);
    buf_add_str(into, shape == 0 ? STR("<think>") : STR("")); /* some templates open it */
    buf_add_lit(into, THOUGHTS "\n</think>\n\n");
    buf_add_str(into, answer);
}

static void add_answer(struct arena *a, const struct sim_chat *c, const struct map *labels,
                       const struct sim_fate *fate, struct buf *into)
{
    struct sim_verdict v;
    struct sim_plan plan;
    struct sim_extract extract;
    if (fate->fault == FAULT_UNREADABLE)
        buf_add_lit(into, "I would have to read the whole paper before I could say anything.");
    else if (find_extract(a, c, &extract))
        sim_extract_write(a, &extract, sim_extract_fault(&extract, &c->extract_faults), into);
    else if (sim_verdict(a, &c->prompt, labels, &v))
        sim_verdict_write(&v, into);
    else if (find_plan(a, c, &plan))
        sim_plan_write(&plan, sim_plan_fault(&plan, &c->plan_faults), into);
    else
        return add_echo(c, into);
    if (fate->fault == FAULT_FENCED)
        fence_in(a, fate, into);
}

/* The longest beginning of the content within most tokens. */
static struct str clip_tokens(struct str content, int64_t most)
{
    size_t fits = 0, too_long = content.n;
    while (fits + 1 < too_long) {
        size_t n = fits + (too_long - fits) / 2;
        if (sim_tokens(sim_clip(content, n)) <= most)
            fits = n;
        else
            too_long = n;
    }
    return sim_clip(content, fits);
}

void sim_chat_answer(struct arena *a, const struct sim_chat *c, const struct map *labels,
                     const struct sim_fate *fate, struct buf *into, struct sim_answer *out)
{
    *out = (struct sim_answer){.thoughts = STR_NULL};
    buf_clear(into);
    if (fate->fault == FAULT_CLIPPED)
        out->thoughts = STR(THOUGHTS);
    else
        add_answer(a, c, labels, fate, into);
    if (fate->fault == FAULT_THINKING)
        think(a, fate, into, out);
    out->content = buf_str(into);
    out->tokens = sim_tokens(out->content);
    out->cut_short = out->tokens > c->tokens_max || fate->fault == FAULT_CLIPPED;
    if (out->tokens > c->tokens_max) {
        out->content = clip_tokens(out->content, c->tokens_max);
        out->tokens = sim_tokens(out->content);
    }
}

/* --- writing --- */

/* All that comes before the choices. */
static void add_head(const struct sim_chat *c, uint64_t number, int64_t created, const char *object,
                     struct buf *out)
{
    buf_printf(out, "{\"id\":\"chatcmpl-%016llx\",\"object\":\"%s\",\"created\":%lld,\"model\":\"",
               (unsigned long long)number, object, (long long)created);
    json_escape(out, c->model);
    buf_add_lit(out, "\",\"system_fingerprint\":\"" SIM_FINGERPRINT "\",\"choices\":[");
}

/* The usage, which is the last member. */
static void add_usage(const struct sim_chat *c, const struct sim_answer *answer, struct buf *out)
{
    buf_printf(out,
               ",\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,"
               "\"total_tokens\":%lld}}",
               (long long)c->prompt_tokens, (long long)answer->tokens,
               (long long)(c->prompt_tokens + answer->tokens));
}

static struct str finish_reason(const struct sim_answer *answer)
{
    return answer->cut_short ? STR("\"length\"") : STR("\"stop\"");
}

static void add_quoted(struct buf *out, struct str s)
{
    buf_add_char(out, '"');
    json_escape(out, s);
    buf_add_char(out, '"');
}

static void add_message(const struct sim_answer *answer, struct buf *out)
{
    if (answer->parts) {
        buf_add_lit(out, "\"content\":[{\"type\":\"thinking\",\"thinking\":");
        add_quoted(out, answer->thoughts);
        buf_add_lit(out, "},{\"type\":\"text\",\"text\":");
        add_quoted(out, answer->content);
        buf_add_lit(out, "}]");
        return;
    }
    if (answer->thoughts.p) {
        buf_add_lit(out, "\"reasoning_content\":");
        add_quoted(out, answer->thoughts);
        buf_add_char(out, ',');
    }
    buf_add_lit(out, "\"content\":");
    if (answer->content.n || !answer->thoughts.p)
        add_quoted(out, answer->content);
    else
        buf_add_lit(out, "null");
}

void sim_chat_write(const struct sim_chat *c, const struct sim_answer *answer, uint64_t number,
                    int64_t created, struct buf *out)
{
    add_head(c, number, created, "chat.completion", out);
    buf_add_lit(out, "{\"index\":0,\"message\":{\"role\":\"assistant\",");
    add_message(answer, out);
    buf_add_lit(out, ",\"refusal\":null},\"logprobs\":null,\"finish_reason\":");
    buf_add_str(out, finish_reason(answer));
    buf_add_lit(out, "}]");
    add_usage(c, answer, out);
}

struct stream {
    const struct sim_chat *chat;
    uint64_t number;
    int64_t created;
    struct buf *out;
};

static void begin_event(const struct stream *s)
{
    buf_add_lit(s->out, "data: ");
    add_head(s->chat, s->number, s->created, "chat.completion.chunk", s->out);
}

/* role is for the first piece, piece.p == NULL for the last. */
static void add_event(const struct stream *s, bool role, struct str piece, struct str finish)
{
    begin_event(s);
    buf_add_lit(s->out, "{\"index\":0,\"delta\":{");
    if (role)
        buf_add_lit(s->out, "\"role\":\"assistant\",");
    if (piece.p) {
        buf_add_lit(s->out, "\"content\":\"");
        json_escape(s->out, piece);
        buf_add_char(s->out, '"');
    }
    buf_printf(s->out, "},\"finish_reason\":%.*s}]}\n\n", STR_ARG(finish));
}

void sim_chat_write_stream(const struct sim_chat *c, const struct sim_answer *answer,
                           uint64_t number, int64_t created, struct buf *out)
{
    struct stream s = {c, number, created, out};
    add_event(&s, true, STR(""), STR("null"));
    struct str rest = answer->content;
    while (rest.n) {
        struct str piece = sim_clip(rest, PIECE_BYTES_MAX);
        add_event(&s, false, piece, STR("null"));
        rest = str_skip(rest, piece.n);
    }
    add_event(&s, false, STR_NULL, finish_reason(answer));
    if (c->usage_in_stream) {
        begin_event(&s);
        buf_add_char(out, ']');
        add_usage(c, answer, out);
        buf_add_lit(out, "\n\n");
    }
    buf_add_lit(out, "data: [DONE]\n\n");
}
