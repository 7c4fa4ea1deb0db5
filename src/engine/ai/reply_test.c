#include <zlib.h>

#include "base/buf.h"
#include "engine/ai/reply.h"
#include "tests/tap.h"

static struct arena arena;

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

static void test_complaints(void)
{
    is_str(ai_complaint(&arena, STR("{\"error\": {\"message\": \"no such\\nmodel \"}}")),
           STR("no such model"), "what OpenAI says");
    is_str(ai_complaint(&arena, STR("{\"error\": \"no such model\"}")), STR("no such model"),
           "an error that is text");
    is_str(ai_complaint(&arena, STR("{\"message\": \"no such model\"}")), STR("no such model"),
           "only a message");
    is_str(ai_complaint(&arena, STR("{\"error\": {\"message\": 5}}")), STR(""), "a number");
    is_str(ai_complaint(&arena, STR("<html>")), STR(""), "no JSON");
    is_str(ai_complaint(&arena, STR("{\"error\": [\"a\"]}")), STR(""), "a list");
    struct str body = str_printf(&arena, "{\"error\": \"%.*s\"}", STR_ARG(repeated("é", 1000)));
    is_str(ai_complaint(&arena, body), repeated("é", AI_LINE_CHARS_MAX), "a long one is cut");
}

static void test_tokens(void)
{
    static const struct {
        const char *usage;
        int64_t tokens;
    } cases[] = {{"42", 42}, {"0", -1}, {"-3", -1}, {"1000001", -1}, {"\"42\"", -1}};
    int64_t tokens = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str body =
            str_printf(&arena, " {\"usage\": {\"total_tokens\": %s}}\n", cases[i].usage);
        ok(ai_reply_parse(&arena, body, &tokens), "tokens: %s", cases[i].usage);
        is_int(tokens, cases[i].tokens, "as they are believed");
    }
    ok(!ai_reply_parse(&arena, STR("<html>"), &tokens) && tokens == -1, "no JSON");
    ok(ai_reply_parse(&arena, STR("{}"), &tokens) && tokens == -1, "no usage");
}

/* --- wrappings --- */

#define JSON "{\"answer\":\"mice\",\"usage\":{\"total_tokens\":42}}"
/* The same, by gzip. */
static const char gzipped[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\xcc\x2b\x2e\x4f\x2d\x52\xb2\x52\xca\xcd"
    "\x4c\x4e\x55\xd2\x51\x2a\x2d\x4e\x4c\x4f\x55\xb2\xaa\x56\x2a\xc9\x2f\x49\xcc\x89\x2f\xc9\xcf"
    "\x4e\xcd\x2b\x56\xb2\x32\x31\xaa\xad\x05\x00\x52\xcb\xea\x3b\x2d\x00\x00\x00";

static void is_read(struct str body, const char *what)
{
    int64_t tokens;
    const struct json *reply = ai_reply_parse(&arena, body, &tokens);
    is_str(json_str(json_get(reply, "answer")), STR("mice"), "%s", what);
    is_int(tokens, 42, "and its tokens");
}

/* As much as a reply may be, and as much again, by gzip: it must not be inflated. */
static struct str large_gzip(size_t n)
{
    char *zeros = arena_alloc(&arena, n), *packed = arena_alloc(&arena, n);
    memset(zeros, ' ', n);
    z_stream z = {.next_in = (Bytef *)zeros,
                  .avail_in = (uInt)n,
                  .next_out = (Bytef *)packed,
                  .avail_out = (uInt)n};
    check(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    check(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
    return str_from(packed, n - z.avail_out);
}

static void test_wrappings(void)
{
    struct str whole = str_from(gzipped, sizeof gzipped - 1);
    is_read(STR(JSON), "plain");
    is_read(STR("\xEF\xBB\xBF" JSON), "behind a byte order mark");
    is_read(whole, "by gzip");
    is_read(STR("event: message\ndata: {\"choices\":[{\"message\":{}}],\"answer\":\"mice\","
                "\"usage\":{\"total_tokens\":42}}\n\ndata: [DONE]\n\n"),
            "a whole reply in one event");
    int64_t tokens;
    for (size_t n = 2; n < whole.n; n += 7)
        ok(!ai_reply_parse(&arena, str_from(whole.p, n), &tokens), "gzip, cut after %zu bytes", n);
    struct str large = large_gzip(2 * AI_REPLY_BYTES_MAX);
    is_int((int64_t)ai_reply_body(&arena, large).n, (int64_t)large.n, "gzip of too much");
    is_int((int64_t)ai_reply_body(&arena, large_gzip(AI_REPLY_BYTES_MAX)).n, AI_REPLY_BYTES_MAX,
           "gzip of as much as is allowed");
}

/* Pieces of a stream, with the usage at its end. */
static void test_events(void)
{
    int64_t tokens;
    const struct json *reply = ai_reply_parse(
        &arena,
        STR("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n"
            "data: {\"choices\":[{\"delta\":{\"reasoning\":\"Hm.\"}}]}\r\n\r\n"
            "data: {\"choices\":[{\"delta\":{\"content\":\"mi\"}}]}\r\n\r\n"
            "data: {\"choices\":[{\"delta\":{\"content\":\"ce\"},\"finish_reason\":\"stop\"}]}\r\n"
            "\r\ndata: {\"choices\":[],\"usage\":{\"total_tokens\":42}}\r\n\r\n"
            "data: [DONE]\r\n\r\n"),
        &tokens);
    const struct json *choice = json_first(json_get(reply, "choices"));
    const struct json *message = json_get(choice, "message");
    is_str(json_str(json_get(message, "content")), STR("mice"), "pieces of an answer");
    is_str(json_str(json_get(message, "reasoning_content")), STR("Hm."), "and of a thought");
    is_str(json_str(json_get(choice, "finish_reason")), STR("stop"), "how it ended");
    is_int(tokens, 42, "and its tokens");
    is_str(ai_complaint(&arena, STR("data: {\"error\":{\"message\":\"busy\"}}\n\n")), STR("busy"),
           "an error as an event");
}

/* What is left of a reply, or what is wrong with it. */
static void test_text(void)
{
    static const struct {
        const char *choice, *text, *problem;
    } cases[] = {
        {"\"message\":{\"content\":\" mice \"}", "mice", NULL},
        {"\"message\":{\"content\":\"<think>rats?</think>\\nmice\"}", "mice", NULL},
        {"\"message\":{\"content\":[{\"type\":\"thinking\",\"text\":\"Hm\"},"
         "{\"type\":\"text\",\"text\":\"mi\"},{\"text\":\"ce\"}]}",
         "mice", NULL},
        {"\"message\":{\"content\":null,\"reasoning_content\":\"{\\\"a\\\":1}\"}", "{\"a\":1}",
         NULL},
        {"\"message\":{\"content\":\"\",\"reasoning\":\"Hm.\"}", NULL, "thoughts, but no answer"},
        {"\"message\":{\"content\":\"{\\\"a\\\":\\\"</think>\\\"}\"}", "{\"a\":\"</think>\"}",
         NULL},
        {"\"message\":{\"content\":\"```\\n{</think>}```\"}", "```\n{</think>}```", NULL},
        {"\"message\":{\"content\":\"{x}</think>{y}\"}", "{y}", NULL},
        {"\"message\":{\"content\":\"<think>Hm\"}", NULL, "thoughts, but no answer"},
        {"\"message\":{\"content\":\"mi\"},\"finish_reason\":\"length\"", NULL,
         "an answer that was cut off at its limit of tokens (ai.max_tokens)"},
        {"\"message\":{\"content\":\"mi\"},\"finish_reason\":\"content_filter\"", NULL,
         "no answer: its content filter stopped it"},
        {"\"message\":{\"refusal\":\"No.\"}", NULL, "a refusal: No."},
        {"\"message\":{}", NULL, "a reply without an answer"},
    };
    const char *problem;
    int64_t tokens;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str body = str_printf(&arena, "{\"choices\":[{%s}],\"usage\":{\"total_tokens\":7}}",
                                     cases[i].choice);
        is_str(ai_reply_text(&arena, body, &tokens, &problem), str_of(cases[i].text),
               "the text of %s", cases[i].choice);
        is_str(str_of(problem), str_of(cases[i].problem), "what is wrong with it");
        is_int(tokens, 7, "its tokens");
    }
    ok(!ai_reply_text(&arena, STR("<html>"), &tokens, &problem).p, "no JSON");
    is_str(str_of(problem), STR("a reply that is no JSON"), "is said to be so");
    ok(!ai_reply_text(&arena, STR("{\"error\":\"busy\"}"), &tokens, &problem).p, "an error");
    is_str(str_of(problem), STR("an error instead of an answer: busy"), "in its words");
}

static void test_objects(void)
{
    struct ai_objects o = {.rest = STR("{no} and {\"a\":{\"b\":1}}, {\"c\":2} or {\"d\":")};
    const struct json *first = ai_object_next(&arena, &o), *second = ai_object_next(&arena, &o);
    ok(json_get(json_get(first, "a"), "b") && json_get(second, "c"), "objects in prose, in order");
    ok(!ai_object_next(&arena, &o) && o.found == 2, "and no more");
    ok(o.broken && o.error.line == 1 && o.error.column == 2, "what was before them is broken");
    o = (struct ai_objects){.rest = STR("{\"a\":1} {no}")};
    ok(ai_object_next(&arena, &o) && !ai_object_next(&arena, &o) && !o.broken, "not behind them");
    is_str(str_of(ai_shown(&arena, &(struct json){.type = JSON_STRING, .s = STR("a\n b")})),
           STR("\"a  b\""), "a text is shown as one line");
    is_str(str_of(ai_shown(&arena, NULL)), STR("nothing"), "and nothing as such");
}

int main(void)
{
    arena_init(&arena);
    test_complaints();
    test_tokens();
    test_wrappings();
    test_events();
    test_text();
    test_objects();
    arena_release(&arena);
    return tap_done();
}
