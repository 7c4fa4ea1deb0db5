#include <stdlib.h>

#include "base/json.h"
#include "engine/ai/reply.h"
#include "engine/judge/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_line(struct str line)
{
    size_t chars = 0;
    check(str_utf8_valid(line));
    for (size_t i = 0; i < line.n; i++) {
        check((unsigned char)line.p[i] >= 0x20);
        chars += ((unsigned char)line.p[i] & 0xC0) != 0x80;
    }
    check(chars <= AI_LINE_CHARS_MAX);
    check(line.n == 0 || (line.p[0] != ' ' && line.p[line.n - 1] != ' '));
}

static struct verdict_reply read_reply(struct arena *a, struct str body)
{
    struct verdict_reply r;
    verdict_read(a, body, &r);
    check(r.reason.p && (r.readable || (!r.relevant && r.reason.n == 0)));
    check(!r.problem == r.readable);
    if (r.problem)
        check(!strpbrk(r.problem, "\r\n") && str_utf8_valid(str_of(r.problem)));
    check(r.tokens == -1 || (r.tokens > 0 && r.tokens <= AI_TOKENS_MAX));
    check_line(r.reason);
    return r;
}

/* A text of a model, in a reply as it should be. */
static struct verdict_reply read_content(struct arena *a, struct str content)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "{\"choices\":[{\"message\":{\"content\":\"");
    json_escape(&b, content);
    buf_add_lit(&b, "\"}}]}");
    struct str body = str_dup(a, buf_str(&b));
    buf_release(&b);
    return read_reply(a, body);
}

/* A first byte of 'b' makes the rest a whole body, any other the words of a model. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *copy = check_memory(malloc(n)); /* of exactly this size: reading on is seen */
    memcpy(copy, data, n);
    struct str text = str_from(copy + 1, n - 1);
    struct arena a;
    arena_init(&a);
    if (copy[0] == 'b') {
        (void)read_reply(&a, text);
    } else {
        (void)read_content(&a, text);
        /* A denial never counts for a yes. */
        struct str denied = str_printf(&a, "not relevant. %.*s", STR_ARG(text));
        struct str reason;
        check(words_read(denied, &reason) != WORD_YES);
    }
    arena_release(&a);
    free(copy);
    return 0;
}
