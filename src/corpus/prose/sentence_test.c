/* Where sentences begin; each | is such a place, and nowhere else is one. */
#include "corpus/prose/sentence.h"

#include "base/buf.h"
#include "tests/tap.h"

static const char *const cases[] = {
    "One ends. |Another begins",
    "Is it so? |Yes! |Surely.",
    "One ends.  |Two blanks",
    "One ends.\n|Another line",
    "One ends.\r\n|Another line",
    "One ends.\tnot with a small letter",
    "as et al. showed in Fig. 2 and so on",
    "version 1.5 and e.g. this",
    "He said \"no.\" |Another begins",
    "(All of it.) |Then",
    "[All of it.] |Then",
    "A quote. |\"Next\"",
    "He paid 5.00 Euro",
    "一句话。|另一句话，后面",
    "真的吗？|是的！|好；|完",
    "他说：“不。|”|另一句话",
    "（完。|）|后",
    "他说：“『不。|』|”|另",
    "一句话。| 后面",
    "一句话。|\n后面",
    "no stop, no sentence",
    "。|",
    "x. |Été",
    ". |A",
    ".) |A colon: B; C",
};

static void test_places(const char *marked)
{
    struct buf text, got;
    buf_init(&text);
    buf_init(&got);
    for (const char *p = marked; *p; p++)
        if (*p != '|')
            buf_add_char(&text, *p);
    struct str s = buf_str(&text);
    for (size_t i = 0; i < s.n; i++) {
        if (i > 0 && sentence_begins(s, i))
            buf_add_char(&got, '|');
        buf_add_char(&got, s.p[i]);
    }
    struct str want = str_of(marked);
    if (str_ends(want, STR("|"))) /* the end of the text is no place */
        want.n--;
    is_str(buf_str(&got), want, "%s", marked);
    buf_release(&text);
    buf_release(&got);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_places(cases[i]);
    return tap_done();
}
