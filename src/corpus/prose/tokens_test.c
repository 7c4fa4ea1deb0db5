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

static bool is_as_told(struct str s, int64_t most)
{
    (void)most;
    return tokens_estimate(s) == told(s);
}

static int64_t count_wrong(bool (*holds)(struct str s, int64_t most))
{
    int64_t wrong = 0;
    struct buf b;
    buf_init(&b);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        text_of(&b, &state);
        wrong += !holds(buf_str(&b), (int64_t)(next(&state) % 160));
    }
    buf_release(&b);
    return wrong;
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
    is_int(count_wrong(is_as_told), 0, "of %d texts each has as many as it is told to have", SEEDS);
}

/* --- what fits --- */

static bool is_inner(struct str s, size_t at)
{
    return at < s.n && ((unsigned char)s.p[at] & 0xC0) == 0x80;
}

/* The longest beginning, and end, one byte after the other. */
static bool fits_as_told(struct str s, int64_t most)
{
    size_t n = s.n, from = 0;
    while (n > 0 && (is_inner(s, n) || told(str_from(s.p, n)) > most))
        n--;
    while (from < s.n && ((from > 0 && is_inner(s, from)) || told(str_skip(s, from)) > most))
        from++;
    return tokens_fit(s, most) == n && tokens_fit_end(s, most) == s.n - from;
}

static void test_fit(void)
{
    is_int(count_wrong(fits_as_told), 0, "of %d texts what fits is as long as can be", SEEDS);
    is_int((int64_t)tokens_fit(STR("abc"), 0), 0, "nothing has no token");
    is_int((int64_t)tokens_fit(STR("abcdef"), 2), 5, "two tokens are five bytes of ASCII");
    is_int((int64_t)tokens_fit(STR("方法"), 2), 3, "or a Chinese character");
    is_int((int64_t)tokens_fit_end(STR("方𝒳"), 3), 4, "or, with one more, a mathematical one");
    is_int((int64_t)tokens_fit_end(STR("方𝒳"), 2), 0, "which is not cut");
}

int main(void)
{
    test_estimate();
    test_fit();
    return tap_done();
}
