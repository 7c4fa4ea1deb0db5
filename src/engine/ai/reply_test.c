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

int main(void)
{
    arena_init(&arena);
    test_complaints();
    test_tokens();
    arena_release(&arena);
    return tap_done();
}
