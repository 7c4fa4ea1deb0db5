#include <stdlib.h>

#include "engine/ai/reply.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = check_memory(malloc(n ? n : 1)); /* of this size: reading on is seen */
    if (n)
        memcpy(copy, data, n);
    struct arena a;
    arena_init(&a);
    struct str body = str_from(copy, n);
    int64_t tokens;
    const struct json *reply = ai_reply_parse(&a, body, &tokens);
    check(tokens == -1 || (reply && tokens > 0 && tokens <= AI_TOKENS_MAX));
    struct str plain = ai_reply_body(&a, body);
    check(plain.n <= AI_REPLY_BYTES_MAX || plain.n <= body.n);
    check_line(ai_line(&a, body));
    check_line(ai_complaint(&a, body));
    arena_release(&a);
    free(copy);
    return 0;
}
