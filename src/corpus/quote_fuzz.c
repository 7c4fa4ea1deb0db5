/* A quote, a newline, a document. A place that is found lies between characters, and what stands
 * there has the quote in it. */
#include "corpus/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether no character of valid UTF-8 goes over i. */
static bool is_between(struct str s, size_t i)
{
    size_t back = i < 3 ? i : 3;
    for (size_t k = 1; k <= back; k++)
        if (str_utf8_step(str_skip(s, i - k)) > k)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str document = str_from(size ? (const char *)data : "", size);
    struct str quote = str_cut(&document, '\n');
    if (!document.p)
        document = quote; /* most of such are found */
    struct quote_place at, again;
    if (quote_find(quote_text_new(&a, document), quote, &at)) {
        check(at.begin < at.end && at.end <= document.n);
        check(is_between(document, at.begin) && is_between(document, at.end));
        struct str part = str_from(document.p + at.begin, at.end - at.begin);
        check(quote_find(quote_text_new(&a, part), quote, &again));
        check(again.begin == 0 && again.end <= part.n);
    }
    arena_release(&a);
    return 0;
}
