#include "base/json.h"
#include "engine/ai/reply.h"
#include "engine/judge/verdict.h"
#include "tests/tap.h"

static struct arena arena;

enum want { YES, NO, UNREADABLE };
static const char *const want_names[] = {"relevant", "not relevant", "unreadable"};

static enum want outcome_of(const struct verdict_reply *r)
{
    if (!r->readable)
        return UNREADABLE;
    return r->relevant ? YES : NO;
}

/* A reply whose model says so. */
static struct str reply_with(struct str content, const char *finish)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_str(&w, "id", STR("chatcmpl-1"));
    jw_key(&w, STR("choices"));
    jw_array(&w);
    jw_object(&w);
    jw_put_int(&w, "index", 0);
    jw_key(&w, STR("message"));
    jw_object(&w);
    jw_put_str(&w, "role", STR("assistant"));
    jw_put_str(&w, "content", content);
    jw_end_object(&w);
    jw_put_str(&w, "finish_reason", str_of(finish));
    jw_end_object(&w);
    jw_end_array(&w);
    jw_key(&w, STR("usage"));
    jw_object(&w);
    jw_put_int(&w, "total_tokens", 123);
    jw_end_object(&w);
    jw_end_object(&w);
    struct str reply = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return reply;
}

/* The simulated AI says in each reply who it is. */
static void test_simulated(void)
{
    static const char *const names[] = {"millrace-sim", "fp_44709d6fcb", ""};
    for (size_t i = 0; i < 3; i++) {
        struct verdict_reply r;
        verdict_read(&arena,
                     str_printf(&arena,
                                "{\"system_fingerprint\":\"%s\",\"choices\":[{\"message\":"
                                "{\"content\":\"{\\\"relevant\\\": true}\"}}]}",
                                names[i]),
                     &r);
        ok(r.readable && r.simulated == (i == 0), "fingerprint \"%s\"", names[i]);
    }
}

static struct verdict_reply read_content(struct str content)
{
    struct verdict_reply r;
    verdict_read(&arena, reply_with(content, "stop"), &r);
    return r;
}

static const struct {
    const char *content;
    enum want want;
    const char *reason; /* NULL: whatever */
} replies[] = {
    /* as asked for */
    {"{\"relevant\": true, \"reason\": \"It is about mice.\"}", YES, "It is about mice."},
    {"{\"relevant\": false, \"reason\": \"\"}", NO, ""},
    {"{\"relevant\":false}", NO, ""},
    {" \n{\"reason\": \"讨论了催化剂\", \"relevant\": true}\n", YES, "讨论了催化剂"},
    {"{\"relevant\": true, \"reason\": null}", YES, ""},
    {"{\"relevant\": true, \"reason\": [\"a\"]}", YES, ""},
    {"{\"relevant\": true, \"reason\": \"braces } in { strings\"}", YES, "braces } in { strings"},
    {"{\"relevant\": false, \"reason\": \"it says \\\"relevant\\\": true\"}", NO,
     "it says \"relevant\": true"},
    {"{\"relevant\": true, \"reason\": \"a\\nb\\u0000c\\u007fd\\u2028e\"}", YES, "a b c d e"},
    {"{\"relevant\": true, \"reason\": \"  \\t spaces \\n\"}", YES, "spaces"},
    {"{\"relevant\": true, \"confidence\": 0.9, \"reason\": \"x\"}", YES, "x"},
    {"{\"Relevant\": true, \"Reason\": \"x\"}", YES, "x"},
    /* other values */
    {"{\"relevant\": \"yes\"}", YES, ""},
    {"{\"relevant\": \"No\"}", NO, ""},
    {"{\"relevant\": \"是\"}", YES, ""},
    {"{\"relevant\": \"否\"}", NO, ""},
    {"{\"relevant\": 1}", YES, ""},
    {"{\"relevant\": 0}", NO, ""},
    {"{\"relevant\": \"true\"}", YES, ""},
    {"{\"relevant\": \"False\"}", NO, ""},
    {"{\"relevant\": \"not relevant\"}", NO, ""},
    {"{\"relevant\": \"irrelevant\"}", NO, ""},
    {"{\"relevant\": \"不相关\"}", NO, ""},
    {"{\"relevant\": \"maybe\"}", UNREADABLE, NULL},
    {"{\"relevant\": \"relevant or not\"}", UNREADABLE, NULL},
    {"{\"relevant\": null}", UNREADABLE, NULL},
    {"{\"relevant\": 2}", UNREADABLE, NULL},
    {"{\"relevant\": 0.5}", UNREADABLE, NULL},
    {"{\"relevant\": {}}", UNREADABLE, NULL},
    {"{\"relevant\": true, \"Relevant\": false}", UNREADABLE, NULL},
    {"{\"irrelevant\": true}", UNREADABLE, NULL},
    {"{\"answer\": true}", YES, NULL},
    {"{}", UNREADABLE, NULL},
    {"[]", UNREADABLE, NULL},
    /* fences */
    {"```json\n{\"relevant\": true, \"reason\": \"r\"}\n```", YES, "r"},
    {"```\n{\"relevant\": false, \"reason\": \"r\"}\n```", NO, "r"},
    {"```JSON {\"relevant\": true}```", YES, ""},
    {"Here you are:\n```json\n{\"relevant\": true, \"reason\": \"r\"}\n```\nAnything else?", YES,
     "r"},
    {"```json\n{\"relevant\": true, \"reason\": \"r\"}", YES, "r"},
    {"I was asked for {\"relevant\": false}:\n```json\n{\"relevant\": true}\n```", YES, ""},
    {"```json\n{\"relevant\": true, \"reason\": \"has ``` in it\"}\n```", YES, "has ``` in it"},
    {"```json\n{\"relevant\": true}\n```\n```json\n{\"relevant\": false}\n```", UNREADABLE, NULL},
    {"```json\n```", UNREADABLE, NULL},
    /* prose around it */
    {"Sure! {\"relevant\": true, \"reason\": \"r\"} Hope that helps.", YES, "r"},
    {"For mice \"relevant\": false, here {\"relevant\": true, \"reason\": \"a } b\"}", YES,
     "a } b"},
    {"{sic} {\"relevant\": false, \"reason\": \"r\"}", NO, "r"},
    {"{\"result\": {\"relevant\": true, \"reason\": \"r\"}}", YES, "r"},
    {"[{\"relevant\": false, \"reason\": \"r\"}]", NO, "r"},
    {"{{\"relevant\": true}}", YES, ""},
    {"{\"relevant\": true} or rather {\"relevant\": false}", UNREADABLE, NULL},
    {"{\"relevant\": true}{\"relevant\": true, \"reason\": \"twice\"}", YES, ""},
    {"<think>{\"relevant\": true}? No, mice.</think>\n{\"relevant\": false, \"reason\": \"r\"}", NO,
     "r"},
    {"<think>Yes. Is it? {\"relevant\": true}", UNREADABLE, NULL},
    {"Is it? {\"relevant\": true} No.\n</think>\n\n{\"relevant\": false, \"reason\": \"r\"}", NO,
     "r"},
    {"<think>a</think>Yes.<think>b</think>\n{\"relevant\": false}", NO, ""},
    {"<thinking>Yes.</thinking>{\"relevant\": false}", NO, ""},
    {"◁think▷Yes.◁/think▷{\"relevant\": false}", NO, ""},
    {"<|channel|>analysis<|message|>Yes.<|end|><|start|>assistant<|channel|>final<|message|>"
     "{\"relevant\": false}",
     NO, ""},
    {"{\"relevant\": true} </think>", UNREADABLE, NULL},
    {"{\"relevant\": true, \"reason\": \"it is about </think> tags\"}", YES,
     "it is about </think> tags"},
    /* nearly JSON */
    {"{“relevant”: true, “reason”: “curly”}", YES, "curly"},
    {"{“relevant”： “否”}", NO, ""},
    {"{'relevant': True, 'reason': 'it is Python'}", YES, "it is Python"},
    {"{'relevant': False}", NO, ""},
    {"{\"relevant\": true, \"reason\": \"trailing comma\",}", YES, "trailing comma"},
    {"{\"relevant\": false, \"reason\": \"raw\nnewline\"}", NO, "raw newline"},
    {"{\"relevant\": true, \"reason\": \"says \"quoted\" things\"}", YES, "says \"quoted\" things"},
    {"{\"relevant\": true, \"relevant\": false}", UNREADABLE, NULL},
    {"{\"irrelevant\": true,}", UNREADABLE, NULL},
    /* cut short */
    {"{\"relevant\": true, \"reason\": \"The paper descr", YES, "The paper descr"},
    {"{\"relevant\": false,", NO, ""},
    {"{\"relevant\": fal", UNREADABLE, NULL},
    {"{\"relevant\": tru", UNREADABLE, NULL},
    {"{\"relevant\": \"no", UNREADABLE, NULL},
    {"{\"relevant\": 1", UNREADABLE, NULL},
    {"{\"relevant\":", UNREADABLE, NULL},
    {"{\"reason\": \"it is not relev", UNREADABLE, NULL},
    {"```json\n{\"relevant\": true, \"rea", YES, ""},
    /* words */
    {"Yes", YES, ""},
    {"no", NO, ""},
    {"YES.", YES, ""},
    {"No, it is about mice.", NO, "it is about mice."},
    {"**Yes** – it is.", YES, NULL},
    {"\"yes\"", YES, ""},
    {"true", YES, ""},
    {"False", NO, ""},
    {"Relevant.", YES, ""},
    {"Relevant because it is about mice.", YES, NULL},
    {"Not relevant", NO, ""},
    {"Not relevant. The paper is about mice.", NO, "The paper is about mice."},
    {"NOT RELEVANT: other field", NO, "other field"},
    {"not-relevant", NO, ""},
    {"Irrelevant!", NO, ""},
    {"是", YES, ""},
    {"是的，讨论了催化剂。", YES, "讨论了催化剂。"},
    {"否。", NO, ""},
    {"相关，因为讨论了催化剂", YES, "因为讨论了催化剂"},
    {"不相关", NO, ""},
    {"不相关。研究对象不同", NO, "研究对象不同"},
    {"The abstract is about mice.\n\nAnswer: no", NO, ""},
    {"Let me see.\nFinal ANSWER: **Not relevant**", NO, ""},
    {"**Verdict**: Relevant", YES, ""},
    {"verdict: irrelevant", NO, ""},
    {"该研究讨论了电解水。结论：相关", YES, ""},
    {"该研究讨论了小鼠。结论： 不相关。", NO, ""},
    {"是否相关：否", NO, ""},
    {"Relevant: no", NO, ""},
    {"Relevant? Yes.", YES, ""},
    {"**Relevant:** Yes\n**Reason:** It is about mice.", YES, "It is about mice."},
    {"**Relevant:** No\n\n**Reason:** It is about cats.", NO, "It is about cats."},
    {"Relevant: yes / Reason: mice", YES, "mice"},
    {"**Relevant:** Yes / **Reason:** mice", YES, "mice"},
    {"Relevant: yes / no", UNREADABLE, NULL},
    {"**Verdict**: Not relevant\n- *Explanation*: cats", NO, "cats"},
    {"是否相关：是\n理由：讨论了催化剂", YES, "讨论了催化剂"},
    {"Yes. The unreason: none", YES, "The unreason: none"},
    {"{\"relevant\": true, \"reason\": \"r\"}\n\nI judged by the abstract: no doubt.", YES, "r"},
    /* words that are no verdicts */
    {"", UNREADABLE, NULL},
    {"   \n", UNREADABLE, NULL},
    {"No doubt this is relevant", UNREADABLE, NULL},
    {"Not only relevant but central", UNREADABLE, NULL},
    {"not **relevant**", UNREADABLE, NULL},
    {"not\nrelevant", UNREADABLE, NULL},
    {"Irrelevant: no", UNREADABLE, NULL},
    {"Not relevant? No.", UNREADABLE, NULL},
    {"Not sure.", UNREADABLE, NULL},
    {"Relevant papers would be about mice.", UNREADABLE, NULL},
    {"Yes and no", UNREADABLE, NULL},
    {"Yes/No", UNREADABLE, NULL},
    {"Yes, this is not relevant.", UNREADABLE, NULL},
    {"Yes.\nVerdict: no", UNREADABLE, NULL},
    {"Answer: yes\nAnswer: no", UNREADABLE, NULL},
    {"Nobel prizes were won", UNREADABLE, NULL},
    {"Yesterday", UNREADABLE, NULL},
    {"relevance: high", UNREADABLE, NULL},
    {"是否相关难以判断", UNREADABLE, NULL},
    {"否则不相关", UNREADABLE, NULL},
    {"相关性：低", UNREADABLE, NULL},
    {"不确定", UNREADABLE, NULL},
    {"I cannot help with that.", UNREADABLE, NULL},
    {"The answer", UNREADABLE, NULL},
    {"answer:", UNREADABLE, NULL},
    {"{", UNREADABLE, NULL},
    {"}", UNREADABLE, NULL},
    {"\"", UNREADABLE, NULL},
};

/* On one line, for a test's name. */
static const char *shown(struct str content)
{
    struct buf b;
    buf_init(&b);
    json_escape(&b, content);
    const char *line = str_z(&arena, buf_str(&b));
    buf_release(&b);
    return line;
}

static void test_table(void)
{
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct str content = str_of(replies[i].content);
        struct verdict_reply r = read_content(content);
        is_str(str_of(want_names[outcome_of(&r)]), str_of(want_names[replies[i].want]), "%s",
               shown(content));
        if (replies[i].reason)
            is_str(r.reason, str_of(replies[i].reason), "and the reason");
        is_int(r.tokens, 123, "and the tokens");
    }
}

static const struct {
    const char *body;
    enum want want;
    int64_t tokens;
} bodies[] = {
    {"", UNREADABLE, -1},
    {"<html>It works</html>", UNREADABLE, -1},
    {"null", UNREADABLE, -1},
    {"[]", UNREADABLE, -1},
    {"{}", UNREADABLE, -1},
    {"{\"choices\": [], \"usage\": {\"total_tokens\": 5}}", UNREADABLE, 5},
    {"{\"choices\": {}}", UNREADABLE, -1},
    {"{\"choices\": [null]}", UNREADABLE, -1},
    {"{\"choices\": [\"yes\"]}", UNREADABLE, -1},
    {"{\"choices\": [{\"message\": null}]}", UNREADABLE, -1},
    {"{\"choices\": [{\"message\": {\"content\": null, \"refusal\": \"yes\"}}]}", UNREADABLE, -1},
    {"{\"choices\": [{\"message\": {\"content\": 1}}]}", UNREADABLE, -1},
    {"{\"choices\": [{\"message\": {\"content\": []}}]}", UNREADABLE, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}]}", YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": [{\"type\": \"text\", \"text\": \"no\"}]}}]}", NO,
     -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": null}", YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"total_tokens\": -7}}",
     YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"total_tokens\": 0}}",
     YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"total_tokens\": "
     "99999999}}",
     YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"total_tokens\": 1.5}}",
     YES, -1},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}], \"usage\": {\"total_tokens\": "
     "1000000}}",
     YES, 1000000},
    {"{\"choices\": [{\"message\": {\"content\": \"yes\"}}]", UNREADABLE, -1},
};

static void test_bodies(void)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct verdict_reply r;
        verdict_read(&arena, str_of(bodies[i].body), &r);
        ok(outcome_of(&r) == bodies[i].want, "%s is %s", bodies[i].body,
           want_names[bodies[i].want]);
        is_int(r.tokens, bodies[i].tokens, "and its tokens");
    }
}

/* --- shapes of thinking models, and why there is no verdict --- */

#define MESSAGE(finish, message)                                                                   \
    "{\"choices\": [{\"finish_reason\": \"" finish "\", \"message\": {" message "}}]}"
#define THOUGHT "{\\\"relevant\\\": true}? No."
#define ANSWER  "{\\\"relevant\\\": false, \\\"reason\\\": \\\"r\\\"}"

static const struct {
    const char *body;
    enum want want;
    const char *problem; /* NULL: there is none */
} shapes[] = {
    {MESSAGE("stop", "\"reasoning_content\": \"" THOUGHT "\", \"content\": \"" ANSWER "\""), NO,
     NULL},
    {MESSAGE("stop", "\"reasoning\": \"" THOUGHT "\", \"content\": \"" ANSWER "\""), NO, NULL},
    {MESSAGE("stop",
             "\"content\": [{\"type\": \"thinking\", \"thinking\": [{\"type\": \"text\", "
             "\"text\": \"" THOUGHT "\"}]}, {\"type\": \"text\", \"text\": \"" ANSWER "\"}]"),
     NO, NULL},
    {MESSAGE("stop", "\"content\": [{\"type\": \"reasoning\", \"text\": \"" THOUGHT
                     "\"}, {\"text\": \"{\\\"relevant\\\":\"}, {\"type\": \"text\", \"text\": "
                     "\"false}\"}]"),
     NO, NULL},
    {MESSAGE("stop", "\"content\": null, \"reasoning_content\": \" " ANSWER "\\n\""), NO, NULL},
    {MESSAGE("stop", "\"content\": null, \"reasoning_content\": \"" THOUGHT "\""), UNREADABLE,
     "thoughts, but no answer"},
    {MESSAGE("stop", "\"content\": \"\", \"reasoning\": \"yes\""), UNREADABLE,
     "thoughts, but no answer"},
    {MESSAGE("stop", "\"content\": [{\"type\": \"thinking\", \"thinking\": \"yes\"}]"), UNREADABLE,
     "thoughts, but no answer"},
    {MESSAGE("stop", "\"content\": \"<think>" THOUGHT "\""), UNREADABLE, "thoughts, but no answer"},
    {MESSAGE("length", "\"content\": \"<think>" THOUGHT "\""), UNREADABLE,
     "an answer that was cut off at its limit of tokens (ai.max_tokens)"},
    {MESSAGE("length", "\"content\": null, \"reasoning_content\": \"" THOUGHT "\""), UNREADABLE,
     "an answer that was cut off at its limit of tokens (ai.max_tokens)"},
    {MESSAGE("length", "\"content\": \"{\\\"relevant\\\": fal\""), UNREADABLE,
     "an answer that was cut off at its limit of tokens (ai.max_tokens)"},
    {MESSAGE("length", "\"content\": \"{\\\"relevant\\\": false, \\\"reason\\\": \\\"It\""), NO,
     NULL},
    {MESSAGE("content_filter", "\"content\": \"\""), UNREADABLE,
     "no answer: its content filter stopped it"},
    {MESSAGE("stop", "\"content\": null, \"refusal\": \"I\\nwill not\""), UNREADABLE,
     "a refusal: I will not"},
    {MESSAGE("stop", "\"content\": null"), UNREADABLE, "a reply without an answer"},
    {MESSAGE("stop", "\"content\": \"Mice.\""), UNREADABLE, "a reply that has no verdict in it"},
    {"{\"error\": {\"message\": \"no such model\"}}", UNREADABLE,
     "an error instead of an answer: no such model"},
    {"<html>It works</html>", UNREADABLE, "a reply that is no JSON"},
    {"\xEF\xBB\xBF" MESSAGE("stop", "\"content\": \"" ANSWER "\""), NO, NULL},
    {": ping\n\ndata: {\"choices\": [{\"delta\": {\"reasoning_content\": \"yes\"}}]}\r\n\r\n"
     "data:{\"choices\": [{\"delta\": {\"content\": \"{\\\"relevant\\\":\"}}]}\n\n"
     "data: {\"choices\": [{\"delta\": {\"content\": \" false}\"}, \"finish_reason\": "
     "\"stop\"}]}\n\n"
     "data: [DONE]\n\n",
     NO, NULL},
    {"data: {\"choices\": [{\"delta\": {\"content\": \"{\\\"rel\"}, \"finish_reason\": "
     "\"length\"}]}\n\ndata: [DONE]\n\n",
     UNREADABLE, "an answer that was cut off at its limit of tokens (ai.max_tokens)"},
    {"event: error\ndata: {\"error\": {\"message\": \"overloaded\"}}\n\n", UNREADABLE,
     "an error instead of an answer: overloaded"},
    {"data: nonsense\n\n", UNREADABLE, "a reply that is no JSON"},
};

static void test_shapes(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct verdict_reply r;
        struct str body = str_of(shapes[i].body);
        verdict_read(&arena, body, &r);
        is_str(str_of(want_names[outcome_of(&r)]), str_of(want_names[shapes[i].want]), "%s",
               shown(body));
        is_str(r.problem ? str_of(r.problem) : STR_NULL,
               shapes[i].problem ? str_of(shapes[i].problem) : STR_NULL, "and what is told");
    }
}

static struct str repeated(const char *text, size_t n)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < n; i++)
        buf_add_str(&b, str_of(text));
    struct str s = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static void test_long(void)
{
    struct str braces = repeated("{", VERDICT_CONTENT_BYTES_MAX), said = repeated("very ", 5000);
    is_int(outcome_of(&(struct verdict_reply[]){read_content(braces)}[0]), UNREADABLE,
           "braces only");
    struct str quotes = repeated("\"relevant\":", VERDICT_CONTENT_BYTES_MAX / 11);
    is_int(outcome_of(&(struct verdict_reply[]){read_content(quotes)}[0]), UNREADABLE,
           "names only");
    struct verdict_reply r =
        read_content(str_printf(&arena, "%.*s {\"relevant\": true}", STR_ARG(said)));
    is_int(outcome_of(&r), YES, "after 25 KB of prose");
    r = read_content(
        str_printf(&arena, "yes. %.*s", STR_ARG(repeated("a", VERDICT_CONTENT_BYTES_MAX))));
    is_int(outcome_of(&r), UNREADABLE, "too long to be looked at");
    r = read_content(str_printf(&arena, "{\"relevant\":true,\"reason\":\"%.*s\"}",
                                STR_ARG(repeated("很", 300))));
    is_str(r.reason, repeated("很", AI_LINE_CHARS_MAX), "a reason is cut between characters");
    r = read_content(str_printf(&arena, "{\"relevant\":true,\"reason\":\"%.*s\"}",
                                STR_ARG(repeated("😀", AI_LINE_CHARS_MAX))));
    is_str(r.reason, repeated("😀", AI_LINE_CHARS_MAX), "and stays whole up to the limit");
    verdict_read(&arena, reply_with(STR("{\"relevant\": true, \"reason\": \"cut"), "length"), &r);
    is_int(outcome_of(&r), YES, "finish_reason length after the verdict");
    verdict_read(&arena, reply_with(STR("{\"reason\": \"yes"), "length"), &r);
    is_int(outcome_of(&r), UNREADABLE, "finish_reason length before it");
}

int main(void)
{
    arena_init(&arena);
    test_simulated();
    test_table();
    test_bodies();
    test_shapes();
    test_long();
    arena_release(&arena);
    return tap_done();
}
