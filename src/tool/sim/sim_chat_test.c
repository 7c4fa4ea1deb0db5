#include "tool/sim/sim_chat.h"

#include "base/err.h"
#include "tests/tap.h"

static struct arena arena;
static struct sim_brief brief;

static const struct json *parse(struct str text)
{
    const struct json *j = NULL;
    check(json_parse(&arena, text, &j, NULL) == 0);
    return j;
}

static struct sim_chat read_chat(const char *text)
{
    struct sim_chat c = {.model = STR_NULL};
    const char *why = "";
    int err = sim_chat_read(&arena, &brief, parse(str_of(text)), &c, &why);
    ok(err == 0, "read %.40s %s", text, why);
    return c;
}

static void is_wrong(const char *text, const char *part)
{
    struct sim_chat c;
    const char *why = "";
    int err = sim_chat_read(&arena, &brief, parse(str_of(text)), &c, &why);
    ok(err == ERR_INVALID && strstr(why, part), "refused: %s (%s)", text, why);
}

static void test_read(void)
{
    struct sim_chat c = read_chat(
        "{\"model\": \"m\", \"messages\": ["
        "{\"role\": \"system\", \"content\": \"Judge.\\nQuestion: water\\nTitle: not this\"},"
        "{\"role\": \"user\", \"content\": \"Title: old\"},"
        "{\"role\": \"assistant\", \"content\": null},"
        "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Title: new\\n\"},"
        "{\"type\": \"image_url\"}, {\"type\": \"text\", \"text\": \"Question: fire\"}]}],"
        "\"max_tokens\": 5, \"stream\": true, \"stream_options\": {\"include_usage\": true}}");
    is_str(c.prompt.question, STR("water"), "the system message's question counts first");
    is_str(c.prompt.title, STR("new"), "the paper is in the last user message");
    is_str(c.asked, STR("Title: new\nQuestion: fire"), "parts are joined");
    is_int(c.prompt_tokens, 10 + 3 + 7, "tokens of all messages");
    is_int(c.tokens_max, 5, "max_tokens");
    ok(c.stream && c.usage_in_stream && !c.wants_json, "options");
}

static struct str asked_about(const char *system, const char *user)
{
    struct sim_chat c = read_chat(str_printf(&arena,
                                             "{\"model\": \"m\", \"messages\": ["
                                             "{\"role\": \"system\", \"content\": \"%s\"},"
                                             "{\"role\": \"user\", \"content\": \"%s\"}]}",
                                             system, user)
                                      .p);
    struct sim_verdict v = {.word = STR_NULL};
    is_int(c.prompt_tokens, sim_tokens(str_of(system)) + sim_tokens(c.asked), "its tokens");
    return sim_verdict(&arena, &c.prompt, NULL, &v) && v.relevant ? v.word : STR("-");
}

static void test_brief(void)
{
    is_str(asked_about("Question: water", "Title: fire, water"), STR("water"), "a brief");
    is_str(asked_about("Question: water", "Title: Water"), STR("Water"), "the same once more");
    is_str(asked_about("Question: fire", "Title: fire, water"), STR("fire"), "another one");
    is_str(asked_about("Question: water", "Title: fire, water"), STR("water"), "the first again");
    is_str(asked_about("Judge.", "Question: fire, Title: water"), STR("-"), "one without question");
    is_str(asked_about("Judge.", "Question: fire\\nTitle: fire"), STR("fire"),
           "then it is the user who asks");
    is_str(asked_about("Question: water", "Title: fire"), STR("-"),
           "what was asked before is gone");
}

static void test_wrong(void)
{
    is_wrong("[]", "object");
    is_wrong("{\"messages\": []}", "model");
    is_wrong("{\"model\": \"m\"}", "messages");
    is_wrong("{\"model\": \"m\", \"messages\": []}", "messages");
    is_wrong("{\"model\": \"m\", \"messages\": [7]}", "role");
    is_wrong("{\"model\": \"m\", \"messages\": [{\"role\": \"boss\", \"content\": \"\"}]}", "role");
    is_wrong("{\"model\": \"m\", \"messages\": [{\"role\": \"user\"}]}", "content");
    const char *options[] = {"\"stream\": 1", "\"max_tokens\": 0", "\"max_tokens\": \"9\"",
                             "\"n\": 2", "\"stream_options\": {\"include_usage\": 0}"};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct str text = str_printf(
            &arena,
            "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"\"}], %s}",
            options[i]);
        is_wrong(text.p, "must be");
    }
}

static const char paper[] =
    "{\"model\": \"m\\\"x\", \"messages\": [{\"role\": \"user\", \"content\": "
    "\"Question: 石墨烯\\nTitle: 石墨\"}]}";

static struct str content_of(struct str reply)
{
    const struct json *choices = json_get(parse(reply), "choices");
    return json_str(json_get(json_get(json_first(choices), "message"), "content"));
}

static void test_reply(void)
{
    struct buf content, out;
    buf_init(&content);
    buf_init(&out);
    struct sim_chat c = read_chat(paper);
    struct sim_answer answer;
    sim_chat_answer(&arena, &c, NULL, &(struct sim_fate){0}, &content, &answer);
    sim_chat_write(&c, &answer, 0xABC, 1700000000, &out);
    const struct json *j = parse(buf_str(&out));
    is_str(json_str(json_get(j, "id")), STR("chatcmpl-0000000000000abc"), "the id is the number");
    is_str(json_str(json_get(j, "model")), STR("m\"x"), "the model comes back");
    is_str(content_of(buf_str(&out)), answer.content, "the content is escaped");
    bool relevant = false;
    ok(json_bool(json_get(parse(answer.content), "relevant"), &relevant) && relevant,
       "and is JSON itself");
    int64_t prompt = 0, completion = 0, total = 0;
    const struct json *usage = json_get(j, "usage");
    ok(json_int(json_get(usage, "prompt_tokens"), &prompt) &&
           json_int(json_get(usage, "completion_tokens"), &completion) &&
           json_int(json_get(usage, "total_tokens"), &total),
       "usage is there");
    is_int(prompt, c.prompt_tokens, "prompt tokens");
    is_int(completion, answer.tokens, "completion tokens");
    is_int(total, prompt + completion, "total tokens");
    buf_release(&content);
    buf_release(&out);
}

static void test_stream(void)
{
    struct buf content, out, joined;
    buf_init(&content);
    buf_init(&out);
    buf_init(&joined);
    struct sim_chat c = read_chat(paper);
    c.usage_in_stream = true;
    struct sim_answer answer;
    sim_chat_answer(&arena, &c, NULL, &(struct sim_fate){0}, &content, &answer);
    sim_chat_write_stream(&c, &answer, 1, 1700000000, &out);
    struct str rest = buf_str(&out), last = STR_NULL;
    int events = 0, with_usage = 0, ends = 0;
    while (rest.n) {
        struct str event = str_cut(&rest, '\n');
        check(str_starts(event, STR("data: ")) && str_cut(&rest, '\n').n == 0);
        last = str_from(event.p + 6, event.n - 6);
        events++;
        if (str_eq(last, STR("[DONE]")))
            continue;
        const struct json *j = parse(last);
        const struct json *choice = json_first(json_get(j, "choices"));
        buf_add_str(&joined, json_str(json_get(json_get(choice, "delta"), "content")));
        with_usage += json_get(j, "usage") != NULL;
        ends += str_eq(json_str(json_get(choice, "finish_reason")), STR("stop"));
    }
    is_str(buf_str(&joined), answer.content, "the pieces make the content");
    is_str(last, STR("[DONE]"), "the end is told");
    is_int(with_usage, 1, "usage comes once");
    is_int(ends, 1, "the reason comes once");
    ok(events > 5, "in several events");
    buf_release(&content);
    buf_release(&out);
    buf_release(&joined);
}

static struct str answer_to(const char *text, enum sim_fault fault, uint64_t dice,
                            struct sim_answer *answer)
{
    struct buf content;
    buf_init(&content);
    struct sim_chat c = read_chat(text);
    sim_chat_answer(&arena, &c, NULL, &(struct sim_fate){fault, dice}, &content, answer);
    struct str copy = str_dup(&arena, answer->content);
    buf_release(&content);
    return copy;
}

static void test_answers(void)
{
    struct sim_answer a;
    struct str plain = answer_to(paper, FAULT_NONE, 0, &a);
    struct str fenced = answer_to(paper, FAULT_FENCED, 1, &a);
    ok(str_starts(fenced, STR("```json\n")) && str_find(fenced, plain) > 0,
       "fenced, still readable");
    struct str wrapped = answer_to(paper, FAULT_FENCED, 0, &a);
    ok(!str_starts(wrapped, STR("`")) && str_find(wrapped, plain) > 0, "or wrapped in words");
    struct str bad = answer_to(paper, FAULT_UNREADABLE, 0, &a);
    ok(str_find(bad, STR("relevant")) < 0 && str_find(bad, STR("{")) < 0, "unreadable");

    for (uint64_t shape = 0; shape < 4; shape++) {
        struct str thinking = answer_to(paper, FAULT_THINKING, shape, &a);
        ok(str_ends(thinking, plain) && (a.thoughts.p != NULL) == (shape >= 2) &&
               str_starts(thinking, STR("<think>")) == (shape == 0) && a.parts == (shape == 3),
           "thoughts before the answer, shape %d", (int)shape);
    }
    ok(answer_to(paper, FAULT_CLIPPED, 0, &a).n == 0 && a.thoughts.p && a.cut_short,
       "thoughts only, and cut off");

    const char *hello =
        "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi \\\"you\\\"\"}]}";
    is_str(answer_to(hello, FAULT_NONE, 0, &a), STR("You asked: Hi \"you\""),
           "anything else is echoed");
    const char *as_json =
        "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi \\\"you\\\"\"}],"
        "\"response_format\": {\"type\": \"json_object\"}}";
    is_str(json_str(json_get(parse(answer_to(as_json, FAULT_NONE, 0, &a)), "text")),
           STR("You asked: Hi \"you\""), "as JSON if that is wanted");
}

static void test_cut_short(void)
{
    struct sim_answer a;
    const char *small = "{\"model\": \"m\", \"max_completion_tokens\": 4, \"messages\": "
                        "[{\"role\": \"user\", \"content\": \"石墨烯石墨烯\"}]}";
    is_str(answer_to(small, FAULT_NONE, 0, &a), STR("You asked: 石"),
           "max_tokens cuts at a character");
    ok(a.cut_short && a.tokens == 4, "and says so");
    const char *large = "{\"model\": \"m\", \"max_tokens\": 9, \"messages\": "
                        "[{\"role\": \"user\", \"content\": \"石墨烯石墨烯\"}]}";
    answer_to(large, FAULT_NONE, 0, &a);
    ok(!a.cut_short && a.tokens == 9, "what just fits is whole");
}

int main(void)
{
    arena_init(&arena);
    test_read();
    test_brief();
    test_wrong();
    test_reply();
    test_stream();
    test_answers();
    test_cut_short();
    sim_brief_release(&brief);
    arena_release(&arena);
    return tap_done();
}
