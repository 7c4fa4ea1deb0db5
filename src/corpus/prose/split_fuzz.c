/* Any bytes, cut into chunks of any size: nothing is lost, none is too large. */
#include "corpus/prose/split.h"

#include "base/check.h"
#include "corpus/prose/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void check_path(const struct split *s, struct str text)
{
    struct str path[SPLIT_LEVELS];
    size_t n = split_path(s, path);
    check(n <= SPLIT_LEVELS);
    for (size_t i = 0; i < n; i++)
        check(path[i].p >= text.p && path[i].p + path[i].n <= text.p + text.n && path[i].n > 0);
}

static void check_chunk(struct str text, struct split_limits l, const struct split_chunk *c,
                        bool utf8)
{
    check(c->begin <= c->fresh && c->fresh < c->end && c->end <= text.n);
    struct str chunk = str_from(text.p + c->begin, c->end - c->begin);
    struct str again = str_from(chunk.p, c->fresh - c->begin);
    check(!is_blank(chunk.p[0]) && !is_blank(chunk.p[chunk.n - 1]));
    check(!is_blank(text.p[c->fresh]));
    check(tokens_estimate(chunk) <= l.tokens_max);
    check(again.n == 0 || tokens_estimate(again) <= l.overlap_tokens);
    check(!utf8 || str_utf8_valid(chunk));
}

/* The first two bytes are the limits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    struct split_limits l = {SPLIT_TOKENS_MIN + data[0] % 128, 0};
    l.overlap_tokens = data[1] % (l.tokens_max / 4 + 1);
    struct str text = str_from((const char *)data + 2, n - 2);
    bool utf8 = str_utf8_valid(text);
    struct split s;
    struct split_chunk c;
    size_t past = 0, before = 0;
    split_init(&s, text, l);
    for (bool first = true; split_next(&s, &c); first = false) {
        check_chunk(text, l, &c, utf8);
        check_path(&s, text);
        check(c.begin >= before && (first || c.begin > 0)); /* in two chunks at most */
        for (; past < c.fresh; past++)
            check(is_blank(text.p[past]));
        past = c.end;
        before = c.fresh;
    }
    for (; past < n - 2; past++)
        check(is_blank(text.p[past]));
    return 0;
}
