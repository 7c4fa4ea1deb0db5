#include "corpus/prose/sentence.h"

#include "base/ascii.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\n';
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool ends_with_one_of(struct str s, const struct str *marks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_ends(s, marks[i]))
            return true;
    return false;
}

/* Behind the full stop of a Chinese sentence. */
static bool is_after_stop(struct str before)
{
    static const struct str stops[] = {STR("。"), STR("！"), STR("？"), STR("；")};
    static const struct str closing[] = {STR("”"), STR("」"), STR("』"), STR("）"), STR("’")};
    for (int i = 0; i < 2 && ends_with_one_of(before, closing, 5); i++)
        before.n -= STR("”").n;
    return ends_with_one_of(before, stops, 4);
}

static bool is_after_point(struct str before, char next)
{
    if (before.n == 0 || !is_blank(before.p[before.n - 1]) || ascii_is_digit(next) ||
        (next >= 'a' && next <= 'z') || next == ' ' || next == '\n')
        return false;
    size_t n = before.n - 1;
    while (n > 0 && before.n - n < 4 && is_blank(before.p[n - 1]))
        n--;
    while (n > 0 && before.n - n < 8 && is_one_of(before.p[n - 1], "\"')]"))
        n--;
    return n > 0 && is_one_of(before.p[n - 1], ".!?");
}

bool sentence_begins(struct str text, size_t at)
{
    struct str before = str_from(text.p, at);
    return is_after_point(before, text.p[at]) ||
           ((unsigned char)text.p[at - 1] >= 0x80 && is_after_stop(before));
}
