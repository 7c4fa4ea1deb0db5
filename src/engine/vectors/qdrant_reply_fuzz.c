/* Any reply may come: what is read has all that the header promises. The first byte is the number
 * of hits that were asked for. */
#include <math.h>
#include <stdlib.h>

#include "engine/vectors/qdrant_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_hits(const struct point_hit *hits, size_t count, size_t k)
{
    check(count <= k);
    for (size_t i = 0; i < count; i++) {
        check(isfinite(hits[i].score) && (i == 0 || hits[i - 1].score >= hits[i].score));
        for (size_t j = 0; j < i; j++)
            check(hits[i].point.owner != hits[j].point.owner ||
                  hits[i].point.part != hits[j].point.part);
    }
}

static void check_words(struct str words)
{
    check(words.n <= QDRANT_WORDS_MAX);
    for (size_t i = 0; i < words.n; i++)
        check((unsigned char)words.p[i] >= ' ' && words.p[i] != 0x7F);
    check(str_utf8_valid(words));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *copy = check_memory(malloc(n)); /* of this size: reading on is seen */
    memcpy(copy, data + 1, n - 1);
    struct str body = str_from(copy, n - 1);
    struct arena a;
    struct qdrant_info info;
    struct point_hit hits[8];
    size_t k = data[0] % 8 + 1, count;
    uint64_t number;
    bool yes;
    const char *problem = NULL;
    arena_init(&a);
    check_words(qdrant_reply_error(&a, body));
    if (qdrant_reply_hits(&a, body, k, hits, &count, &problem) == 0)
        check_hits(hits, count, k);
    else
        check(problem && *problem);
    if (qdrant_reply_info(&a, body, &info, &problem) == 0)
        check(info.dimension <= POINTS_DIMENSION_MAX);
    int fine = qdrant_reply_change(&a, body, &yes, &problem) == 0;
    fine += qdrant_reply_switch(&a, body, &yes, &problem) == 0;
    fine += qdrant_reply_count(&a, body, &number, &problem) == 0;
    check(fine <= 2); /* an object may have a status and a count */
    arena_release(&a);
    free(copy);
    return 0;
}
