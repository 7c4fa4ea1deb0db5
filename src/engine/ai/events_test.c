/* Replies that come in pieces. */
#include "engine/ai/events.h"

#include "engine/ai/reply.h"
#include "tests/tap.h"

static struct arena arena;

/* Takes all in pieces of step bytes. */
static int take(struct ai_events *e, struct str all, size_t step)
{
    int err = 0;
    for (size_t i = 0; i < all.n && !err; i += step)
        err = ai_events_add(e, str_from(all.p + i, all.n - i < step ? all.n - i : step));
    return err;
}

static struct str body_of(struct str all, size_t step, bool *cut)
{
    struct ai_events e;
    ai_events_init(&e);
    is_int(take(&e, all, step), 0, "pieces of %zu bytes are taken", step);
    struct str body = ai_events_body(&e, &arena);
    *cut = ai_events_cut(&e);
    ai_events_release(&e);
    return body;
}

#define EVENT(delta) "data: {\"choices\":[{\"delta\":{" delta "}}]}\r\n\r\n"
static const char stream[] = ": waiting\n\nevent: x\n" EVENT(
    "\"role\":\"assistant\",\"content\":\"\"") EVENT("\"reasoning\":\"Hm.\"")
    EVENT("\"content\":\"深\"") EVENT(
        "\"content\":\"蹲 \\u00e9\"") "data: "
                                      "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],"
                                      "\"system_fingerprint\":\"fp\",\"error\":null}\n\n"
                                      "data:{\"choices\":[],\"usage\":{\"total_tokens\":42}}"
                                      "\n\ndata: [DONE]\n\n";
#define JOINED                                                                                     \
    "{\"system_fingerprint\":\"fp\",\"choices\":[{\"message\":{\"content\":\"深蹲 é\","         \
    "\"reasoning_content\":\"Hm.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":42}}"

/* Cut within lines and characters alike. */
static void test_cuts(void)
{
    bool cut;
    for (size_t step = 1; step < sizeof stream; step += step < 9 ? 1 : 97) {
        is_str(body_of(str_of(stream), step, &cut), STR(JOINED), "a stream in pieces of %zu", step);
        ok(!cut, "it is complete");
    }
    is_str(ai_reply_body(&arena, str_of(stream)), STR(JOINED), "and as a body that is no stream");
}

static void test_forms(void)
{
    static const struct {
        const char *what, *in, *out;
        bool cut;
    } cases[] = {
        {"one JSON body", "{\"a\":\n1}\n", "{\"a\":\n1}\n", false},
        {"a body that is no JSON", "<html>\n\n</html>", "<html>\n\n</html>", false},
        {"nothing", "", "", false},
        {"blank lines", "\r\n \n", "", false},
        {"a byte order mark, then events",
         "\xEF\xBB\xBF" EVENT("\"content\":\"a\"") "data: [DONE]\n",
         "{\"choices\":[{\"message\":{\"content\":\"a\",\"reasoning_content\":\"\"},"
         "\"finish_reason\":null}],\"usage\":{\"total_tokens\":0}}",
         false},
        {"no end", EVENT("\"content\":\"a\""),
         "{\"choices\":[{\"message\":{\"content\":\"a\",\"reasoning_content\":\"\"},"
         "\"finish_reason\":null}],\"usage\":{\"total_tokens\":0}}",
         true},
        {"an end within an event", EVENT("\"content\":\"a\"") "data: {\"choi",
         "{\"choices\":[{\"message\":{\"content\":\"a\",\"reasoning_content\":\"\"},"
         "\"finish_reason\":null}],\"usage\":{\"total_tokens\":0}}",
         true},
        {"nothing but comments", ": wait\n\n: wait\n\n", "", true},
        {"one line without an end", "data: {\"error\":{\"message\":\"busy\"}}",
         "{\"error\":{\"message\":\"busy\"}}", false},
        {"an error within the text",
         EVENT("\"content\":\"a\"") "data: {\"error\":{\"message\":\"busy\"}}\n\ndata: [DONE]\n\n",
         "{\"error\":{\"message\":\"busy\"}}", false},
        {"an event that is damaged",
         EVENT("\"content\":\"a\"") "data: {\"choices\":[{\"del\n\n" EVENT(
             "\"content\":\"c\"") "data: [DONE]\n\n",
         "{\"choices\":[{\"del", false},
        {"a whole reply in an event",
         "data: {\"choices\":[{\"message\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
         "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step < 30; step += 7) {
            bool cut;
            is_str(body_of(str_of(cases[i].in), step, &cut), str_of(cases[i].out), "%s",
                   cases[i].what);
            is_int(cut, cases[i].cut, "%s: cut or not", cases[i].what);
        }
}

/* The text is there as soon as its event has ended. */
static void test_so_far(void)
{
    struct ai_events e;
    ai_events_init(&e);
    is_int(take(&e,
                STR(EVENT("\"content\":\"mi\"") "data: {\"choices\":[{\"delta\":{\"content\":"
                                                "\"ce\"}}]}"),
                5),
           0, "one event, and a line that has not ended");
    is_str(buf_str(&e.content), STR("mi"), "the text of the one");
    is_int(ai_events_add(&e, STR("\n")), 0, "its end");
    is_str(buf_str(&e.content), STR("mice"), "and of the other");
    is_int((int64_t)e.count, 2, "two events");
    is_int(ai_events_add(&e, STR(": wait\n\n")), 0, "a comment");
    is_int((int64_t)e.count, 2, "is no event");
    ai_events_release(&e);
}

/* Of what must not grow: a body, a line, the text. */
static void test_limits(void)
{
    struct str large =
        str_from(memset(arena_alloc(&arena, AI_REPLY_BYTES_MAX), 'a', AI_REPLY_BYTES_MAX),
                 AI_REPLY_BYTES_MAX);
    struct ai_events e;
    ai_events_init(&e);
    is_int(ai_events_add(&e, large), 0, "a body as long as is allowed");
    is_int(ai_events_add(&e, STR("a")), ERR_LIMIT, "and longer");
    ai_events_release(&e);

    ai_events_init(&e);
    is_int(ai_events_add(&e, STR(": \ndata: ")), 0, "the beginning of a line");
    is_int(ai_events_add(&e, large), ERR_LIMIT, "a line that is too long");
    ai_events_release(&e);

    struct str half = str_printf(&arena, EVENT("\"content\":\"%.*s\""),
                                 STR_ARG(str_from(large.p, AI_REPLY_BYTES_MAX / 2)));
    ai_events_init(&e);
    is_int(ai_events_add(&e, half), 0, "half of the text");
    is_int(ai_events_add(&e, half), 0, "all of the text");
    is_int(ai_events_add(&e, STR(EVENT("\"content\":\"a\""))), ERR_LIMIT, "and more");
    ai_events_release(&e);
}

int main(void)
{
    arena_init(&arena);
    test_cuts();
    test_forms();
    test_so_far();
    test_limits();
    arena_release(&arena);
    return tap_done();
}
