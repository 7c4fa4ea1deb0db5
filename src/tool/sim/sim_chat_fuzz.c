/* Any JSON may be asked: what is not refused gets a reply that is JSON, whole or as a stream. */
#include "tool/sim/sim_chat.h"

static void check_json(struct arena *a, struct str text)
{
    const struct json *j;
    check(json_parse(a, text, &j, NULL) == 0);
}

static void check_stream(struct arena *a, struct str rest)
{
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');
        if (line.n == 0 || str_eq(line, STR("data: [DONE]")))
            continue;
        check(str_starts(line, STR("data: ")));
        check_json(a, str_from(line.p + 6, line.n - 6));
    }
}

static void reply(struct arena *a, const struct sim_chat *c, const struct sim_fate *fate)
{
    struct buf content, out;
    buf_init(&content);
    buf_init(&out);
    struct sim_answer answer;
    sim_chat_answer(a, c, NULL, fate, &content, &answer);
    check(answer.tokens <= c->tokens_max);
    sim_chat_write(c, &answer, fate->dice, 1, &out);
    check_json(a, buf_str(&out));
    buf_clear(&out);
    sim_chat_write_stream(c, &answer, fate->dice, 1, &out);
    check_stream(a, buf_str(&out));
    buf_release(&content);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    static struct sim_brief brief; /* of the input before this one, too */
    arena_init(&a);
    const struct json *j;
    struct sim_chat chat;
    const char *why;
    if (json_parse(&a, str_from((const char *)data, size), &j, NULL) == 0 &&
        sim_chat_read(&a, &brief, j, &chat, &why) == 0) {
        reply(&a, &chat, &(struct sim_fate){FAULT_NONE, size});
        reply(&a, &chat, &(struct sim_fate){FAULT_FENCED, size});
        reply(&a, &chat, &(struct sim_fate){FAULT_THINKING, size});
    }
    arena_release(&a);
    return 0;
}
