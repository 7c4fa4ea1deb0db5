#include "engine/ai/reply.h"

#include "base/bytes16.h"

/* --- one line for people --- */

/* Bytes of a control character, or of one that breaks lines, that s begins with; 0: none. */
static size_t control_at(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c < 0x20 || c == 0x7F)
        return 1;
    if (c == 0xC2 && s.n >= 2 && (unsigned char)s.p[1] < 0xA0)
        return 2;
    return str_starts(s, STR("\u2028")) || str_starts(s, STR("\u2029")) ? 3 : 0;
}

/* Bytes that s begins with and that become a space. */
static size_t blank_at(struct str s)
{
    size_t control = control_at(s);
    return control ? control : s.p[0] == ' ' || str_utf8_step(s) == 0;
}

/* Bytes of ASCII without control characters that s begins with; most are enough. */
static size_t ascii_at(struct str s, size_t most)
{
    size_t end = s.n < most ? s.n : most, n = 0;
    for (; end - n >= 16; n += 16) {
        bytes16 v = bytes16_load(s.p + n);
        uint32_t marks = bytes16_bits(bytes16_within(v, INT8_MIN, 0x1F) | (v == 0x7F));
        if (marks)
            return n + (size_t)__builtin_ctz(marks);
    }
    while (n < end && s.p[n] >= 0x20 && s.p[n] < 0x7F)
        n++;
    return n;
}

struct str ai_line(struct arena *a, struct str s)
{
    while (s.n && blank_at(s))
        s = str_skip(s, blank_at(s));
    char *line = arena_alloc(a, s.n + 1), *end = line;
    for (size_t chars = 0, step; s.n && chars < AI_LINE_CHARS_MAX; s = str_skip(s, step)) {
        size_t ascii = ascii_at(s, AI_LINE_CHARS_MAX - chars);
        if (!ascii && (step = blank_at(s)) > 0) {
            *end++ = ' ';
        } else {
            step = ascii ? ascii : str_utf8_step(s);
            end = mempcpy(end, s.p, step);
        }
        chars += ascii ? ascii : 1;
    }
    while (end > line && end[-1] == ' ')
        end--;
    *end = '\0';
    return str_from(line, (size_t)(end - line));
}

/* --- replies --- */

int64_t ai_reply_tokens(const struct json *reply)
{
    int64_t tokens;
    bool said = json_int(json_get(json_get(reply, "usage"), "total_tokens"), &tokens);
    return said && tokens > 0 && tokens <= AI_TOKENS_MAX ? tokens : -1;
}

const struct json *ai_reply_parse(struct arena *a, struct str body, int64_t *tokens)
{
    const struct json *reply;
    *tokens = -1;
    if (body.n > AI_REPLY_BYTES_MAX || json_parse(a, ai_reply_body(a, body), &reply, NULL))
        return NULL;
    *tokens = ai_reply_tokens(reply);
    return reply;
}

struct str ai_complaint_in(struct arena *a, const struct json *reply)
{
    const struct json *error = json_get(reply, "error");
    struct str text = json_str(json_get(error, "message"));
    if (!text.p)
        text = json_str(error);
    if (!text.p)
        text = json_str(json_get(reply, "message"));
    return text.p ? ai_line(a, text) : STR("");
}

struct str ai_complaint(struct arena *a, struct str body)
{
    int64_t tokens;
    return ai_complaint_in(a, ai_reply_parse(a, body, &tokens));
}
