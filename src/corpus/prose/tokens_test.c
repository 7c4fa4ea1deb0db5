/* Tokens as they are told, character by character, and as they are counted. */
#include "corpus/prose/tokens.h"

#include "base/buf.h"
#include "tests/tap.h"

#define SEEDS 2000

static uint64_t next(uint64_t *state) /* xorshift: the same texts at every run */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *const pieces[] = {
    "x",    "word ",    "é",
    "方",   "法。",     "𝒳",
    "\xff", "\x80\x80", "seventeen letters and some more of them, in ASCII alone "};
#define PIECES (sizeof pieces / sizeof *pieces)

static void text_of(struct buf *b, uint64_t *state)
{
    buf_clear(b);
    uint64_t kinds = 1 + next(state) % PIECES;
    for (size_t i = next(state) % 60; i > 0; i--)
        buf_add_str(b, str_of(pieces[next(state) % kinds]));
}

/* As the header says it. */
static int64_t told(struct str s)
{
    int64_t ascii = 0, more = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        ascii += c < 0x80;
        more += (c >= 0xC0) + (c >= 0xF0);
    }
    return ascii / 3 + more + 1;
}

static void test_estimate(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {{"", 1},  {"ab", 1},   {"abc", 2}, {"abcdef", 3},
                 {"é", 2}, {"方法", 3}, {"𝒳", 3},   {"ab方c", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_int(tokens_estimate(str_of(cases[i].text)), cases[i].want, "tokens of \"%s\"",
               cases[i].text);
    struct buf b;
    size_t wrong = 0;
    buf_init(&b);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        text_of(&b, &state);
        wrong += tokens_estimate(buf_str(&b)) != told(buf_str(&b));
    }
    is_int((int64_t)wrong, 0, "of %d texts each has as many as it is told to have", SEEDS);
    buf_release(&b);
}

int main(void)
{
    test_estimate();
    return tap_done();
}
