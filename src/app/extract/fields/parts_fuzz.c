/* Any bytes, cut into parts of any size: nothing is lost, and none is too large. */
#include "app/extract/fields/parts.h"

#include "corpus/prose/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The first byte is the size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct extract_part *parts;
    size_t at = 0;
    if (n == 0)
        return 0;
    struct str text = str_from((const char *)data + 1, n - 1);
    int64_t most = data[0] < EXTRACT_PART_TOKENS_MIN ? EXTRACT_PART_TOKENS_MIN : data[0];
    bool utf8 = str_utf8_valid(text);
    arena_init(&a);
    size_t count = extract_parts(&a, text, most, &parts);
    for (size_t i = 0; i < count; i++) {
        struct str part = str_from(text.p + parts[i].begin, parts[i].end - parts[i].begin);
        check(parts[i].begin == at && parts[i].end > at && parts[i].end <= text.n);
        check(tokens_estimate(part) <= most);
        check(!utf8 || str_utf8_valid(part));
        at = parts[i].end;
    }
    check(at == text.n);
    arena_release(&a);
    return 0;
}
