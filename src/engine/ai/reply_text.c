/* The text of a model: out of a message, without thoughts, and the objects in it. */
#include "engine/ai/reply.h"

#define SHOWN_CHARS_MAX 40 /* of a text in a complaint */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* --- messages --- */

/* A part of the answer; parts of other types are thoughts. */
static struct str text_of_part(const struct json *part)
{
    struct str type = json_str(json_get(part, "type"));
    bool text = !type.p || str_eq(type, STR("text")) || str_eq(type, STR("output_text"));
    return text ? json_str(json_get(part, "text")) : STR_NULL;
}

/* A string, or a list of parts. */
struct str ai_message_text(struct arena *a, const struct json *message)
{
    const struct json *content = json_get(message, "content");
    if (!content || content->type != JSON_ARRAY)
        return str_trim_if(json_str(content), is_space);
    struct str *parts = ARENA_ARRAY(a, struct str, content->count);
    size_t n = 0;
    json_each (part, content) {
        struct str text = text_of_part(part);
        if (text.n)
            parts[n++] = text;
    }
    return str_trim_if(n == 1 ? parts[0] : str_join(a, n, parts), is_space);
}

struct str ai_message_thoughts(const struct json *message)
{
    struct str s = json_str(json_get(message, "reasoning_content"));
    return str_trim_if(s.n ? s : json_str(json_get(message, "reasoning")), is_space);
}

/* --- thoughts and objects in a text --- */

/* Tags around thoughts, which are not the answer. Some models are made to begin with a thought:
 * their text has only the closing tag. */
static const struct {
    struct str open, close;
} thoughts[] = {
    {STR("<think>"), STR("</think>")},
    {STR("<thinking>"), STR("</thinking>")},
    {STR("<thought>"), STR("</thought>")},
    {STR("<reasoning>"), STR("</reasoning>")},
    {STR("◁think▷"), STR("◁/think▷")},
    {STR("<|channel|>analysis"), STR("<|channel|>final<|message|>")},
};
#define THOUGHTS (sizeof thoughts / sizeof *thoughts)

static struct str after_last(struct str text, struct str tag)
{
    ptrdiff_t at;
    while ((at = str_find(text, tag)) >= 0)
        text = str_skip(text, (size_t)at + tag.n);
    return text;
}

/* One object, or one fence, and nothing else: tags in it are text that the answer quotes. */
static bool is_bare(struct str text)
{
    return (str_starts(text, STR("{")) && ai_object_bytes(text) == text.n) ||
           (str_starts(text, STR("```")) && str_ends(text, STR("```")));
}

struct str ai_skip_thoughts(struct str text)
{
    bool thinks = false;
    struct str answer = text;
    if (is_bare(text))
        return text;
    for (size_t i = 0; i < THOUGHTS; i++) {
        thinks = thinks || str_starts(text, thoughts[i].open);
        answer = after_last(answer, thoughts[i].close);
    }
    return thinks && answer.n == text.n ? STR("") : str_trim_if(answer, is_space);
}

size_t ai_object_bytes(struct str s)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (quoted && s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            quoted = !quoted;
        else if (!quoted && s.p[i] == '{')
            depth++;
        else if (!quoted && s.p[i] == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

const struct json *ai_object_next(struct arena *a, struct ai_objects *o)
{
    while (o->tried++ < AI_OBJECTS_TRIED_MAX && o->rest.n) {
        const struct json *j;
        struct json_error e;
        const char *brace = memchr(o->rest.p, '{', o->rest.n);
        if (!brace)
            break;
        struct str text = str_skip(o->rest, (size_t)(brace - o->rest.p));
        size_t n = ai_object_bytes(text);
        if (json_parse(a, str_from(text.p, n ? n : text.n), &j, &e) == 0) {
            o->rest = str_skip(text, n);
            o->found++;
            return j;
        }
        if (!o->broken && !o->found)
            o->error = e;
        o->broken = o->broken || !o->found;
        o->rest = str_skip(text, 1);
    }
    return NULL;
}

const char *ai_shown(struct arena *a, const struct json *j)
{
    int64_t i;
    if (json_int(j, &i))
        return arena_printf(a, "%lld", (long long)i);
    if (j && j->type == JSON_REAL)
        return arena_printf(a, "%g", j->d);
    if (!j || j->type != JSON_STRING)
        return json_type_name(j);
    struct str line = ai_line(a, j->s);
    size_t n = 0;
    for (size_t count = 0; n < line.n && count < SHOWN_CHARS_MAX; count++)
        n += str_utf8_step(str_skip(line, n));
    return arena_printf(a, "\"%.*s%s\"", (int)n, line.p, n < line.n ? "…" : "");
}

/* --- what is wrong with a reply --- */

/* text: of the message; answer: the same without thoughts. */
static const char *problem_with(struct arena *a, const struct json *reply, struct str text,
                                struct str answer)
{
    const struct json *choice = json_first(json_get(reply, "choices"));
    const struct json *message = json_get(choice, "message");
    struct str finish = json_str(json_get(choice, "finish_reason"));
    struct str refusal = ai_line(a, json_str(json_get(message, "refusal")));
    struct str words = ai_complaint_in(a, reply);
    if (!reply)
        return "a reply that is no JSON";
    if (words.n)
        return arena_printf(a, "an error instead of an answer: %.*s", STR_ARG(words));
    if (str_eq(finish, STR("length")))
        return "an answer that was cut off at its limit of tokens (ai.max_tokens)";
    if (str_eq(finish, STR("content_filter")))
        return "no answer: its content filter stopped it";
    if (refusal.n)
        return arena_printf(a, "a refusal: %.*s", STR_ARG(refusal));
    if (answer.n)
        return NULL;
    return text.n || json_first(json_get(message, "content")) || ai_message_thoughts(message).n
               ? "thoughts, but no answer"
               : "a reply without an answer";
}

static const struct json *message_of(const struct json *reply)
{
    return json_get(json_first(json_get(reply, "choices")), "message");
}

const char *ai_reply_problem(struct arena *a, const struct json *reply)
{
    struct str text = ai_message_text(a, message_of(reply));
    return problem_with(a, reply, text, ai_skip_thoughts(text));
}

/* Servers that take every text for a thought put the whole answer there. */
struct str ai_reply_text_in(struct arena *a, const struct json *reply, const char **problem)
{
    const struct json *message = message_of(reply);
    struct str text = ai_message_text(a, message), answer = ai_skip_thoughts(text);
    struct str thought = ai_message_thoughts(message);
    *problem = problem_with(a, reply, text, answer);
    if (*problem && !answer.n && thought.n && ai_object_bytes(thought) == thought.n) {
        *problem = NULL;
        answer = thought;
    }
    return *problem ? STR_NULL : answer;
}

struct str ai_reply_text(struct arena *a, struct str body, int64_t *tokens, const char **problem)
{
    return ai_reply_text_in(a, ai_reply_parse(a, body, tokens), problem);
}
