/* Any bytes: plain text comes of them, without control characters or blanks at the ends of lines,
 * and it can be cut into chunks. */
#include "corpus/prose/markdown.h"

#include "base/check.h"
#include "corpus/prose/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct str markdown = str_from(n ? (const char *)data : "", n);
    arena_init(&a);
    struct str plain = markdown_plain(&a, markdown);
    check(plain.n <= 2 * n);
    check(!str_utf8_valid(markdown) || str_utf8_valid(plain));
    for (size_t i = 0; i < plain.n; i++) {
        char c = plain.p[i];
        check((unsigned char)c >= ' ' || c == '\n' || c == '\t');
        check(c != ' ' || (i + 1 < plain.n && plain.p[i + 1] != '\n'));
        check(i < 2 || c != '\n' || plain.p[i - 1] != '\n' || plain.p[i - 2] != '\n');
    }
    struct split s;
    struct split_chunk c;
    split_init(&s, plain, (struct split_limits){20, 5});
    while (split_next(&s, &c))
        check(c.end > c.begin);
    arena_release(&a);
    return 0;
}
