#include "corpus/text_out.h"

#include "base/ascii.h"
#include "corpus/text_table.h"

#define SCRIPT_BYTES 32 /* longer scripts are kept as they are */

void text_out_init(struct text_out *o, struct arena *a, size_t cap)
{
    *o = (struct text_out){.arena = a, .p = arena_alloc(a, cap), .cap = cap};
}

void text_put(struct text_out *o, const char *p, size_t n)
{
    if (o->cap - o->len < n) {
        size_t cap = (o->cap + n) * 2;
        o->p = arena_grow(o->arena, o->p, o->cap, cap);
        o->cap = cap;
    }
    if (n)
        memcpy(o->p + o->len, p, n);
    o->len += n;
}

void text_put_z(struct text_out *o, const char *z)
{
    text_put(o, z, strlen(z));
}

void text_put_space(struct text_out *o)
{
    if (o->len && o->p[o->len - 1] != ' ')
        text_put(o, " ", 1);
}

/* Puts s in the place of old_n bytes of the output. */
static void splice(struct text_out *o, size_t at, size_t old_n, struct str s)
{
    check(at + old_n <= o->len);
    size_t tail = o->len - at - old_n;
    if (s.n > old_n)
        text_put(o, s.p, s.n - old_n); /* makes room */
    memmove(o->p + at + s.n, o->p + at + old_n, tail);
    if (s.n)
        memcpy(o->p + at, s.p, s.n);
    o->len = at + s.n + tail;
}

struct str text_out_from(const struct text_out *o, size_t at)
{
    check(at <= o->len);
    return str_from(o->p + at, o->len - at);
}

void text_out_enclose(struct text_out *o, size_t at)
{
    bool word = true;
    for (size_t i = at; i < o->len; i++) {
        char c = o->p[i];
        word = word && (ascii_is_word(c) || c == '.' || (c & 0x80));
    }
    if (word)
        return;
    splice(o, at, 0, STR("("));
    text_put(o, ")", 1);
}

/* The letter an accent makes of base; p == NULL when Unicode has none. */
static struct str composed(const struct text_accent *accent, struct str base)
{
    struct str pairs = str_of(accent->pairs);
    while (pairs.n) {
        struct str letter = str_from(pairs.p, str_utf8_step(pairs));
        pairs = str_skip(pairs, letter.n);
        struct str whole = str_from(pairs.p, str_utf8_step(pairs));
        pairs = str_skip(pairs, whole.n);
        if (str_eq(letter, base))
            return whole;
    }
    return STR_NULL;
}

bool text_out_accent(struct text_out *o, size_t at, char name)
{
    const struct text_accent *accent = text_accent_find(name);
    check(accent); /* every name in command.tsv and text.c is in accent.tsv */
    while (at < o->len && o->p[at] == ' ')
        at++;
    if (at == o->len)
        return false;
    size_t n = str_utf8_step(text_out_from(o, at));
    struct str base = str_from(o->p + at, n);
    if (n == 1 && !ascii_is_letter(*base.p))
        return true;
    if (str_eq(base, STR("ı")))
        base = STR("i");
    else if (str_eq(base, STR("ȷ")))
        base = STR("j");
    struct str whole = composed(accent, base);
    if (whole.p)
        splice(o, at, n, whole);
    else
        splice(o, at + n, 0, str_of(accent->mark));
    return true;
}

/* The raised or lowered form of the character that *s begins with, which is cut off; else NULL. */
static const char *script_character(struct str *s, bool raised)
{
    static const char from[] = "0123456789+-=()ni";
    static const char *const up[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸",
                                     "⁹", "⁺", "⁻", "⁼", "⁽", "⁾", "ⁿ", "ⁱ"};
    static const char *const down[] = {"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇",
                                       "₈", "₉", "₊", "₋", "₌", "₍", "₎"};
    char c = *s->p;
    size_t n = 1;
    if (str_starts(*s, STR("−"))) {
        c = '-';
        n = strlen("−");
    }
    const char *at = c ? strchr(from, c) : NULL;
    if (!at || (!raised && at - from >= (ptrdiff_t)(sizeof(down) / sizeof(down[0]))))
        return NULL;
    *s = str_from(s->p + n, s->n - n);
    return (raised ? up : down)[at - from];
}

bool text_out_shift(struct text_out *o, size_t at, size_t skip, bool raised)
{
    char shifted[3 * SCRIPT_BYTES];
    size_t n = 0;
    struct str s = text_out_from(o, at + skip);
    if (s.n == 0 || s.n > SCRIPT_BYTES)
        return false;
    while (s.n) {
        const char *c = script_character(&s, raised);
        if (!c)
            return false;
        memcpy(shifted + n, c, strlen(c));
        n += strlen(c);
    }
    splice(o, at, o->len - at, str_from(shifted, n));
    return true;
}

/* What reads well without a caret: 5th, x*, x′, and other single signs. */
static bool needs_no_caret(struct str s)
{
    static const char *const words[] = {"th", "st", "nd", "rd", "*", "**", "***"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_eq(s, str_of(words[i])))
            return true;
    return s.n > 1 && str_utf8_step(s) == s.n;
}

void text_out_script(struct text_out *o, size_t at, bool raised)
{
    if (text_out_shift(o, at, 1, raised))
        return;
    struct str s = text_out_from(o, at + 1);
    if (raised && str_eq(s, STR("∘")))
        splice(o, at, o->len - at, STR("°"));
    else if (s.n == 0 || (raised && needs_no_caret(s)))
        splice(o, at, 1, STR(""));
    else
        text_out_enclose(o, at + 1);
}
