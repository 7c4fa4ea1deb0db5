/* Any reply may come: what is read has all that the header promises. The first byte is the number
 * of texts. */
#include <math.h>
#include <stdlib.h>

#include "engine/ai/embedding_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Near one, but for vectors so small or large that a float of the result is coarse. */
static void check_length(const struct embedding_vector *v, size_t n)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        float scaled = (float)((double)v->v[i] * v->scale);
        check(isfinite(scaled));
        squares += (double)scaled * (double)scaled;
    }
    check(fabs(squares - 1) < 1e-4);
}

static void check_reply(const struct embedding_reply *r, size_t count)
{
    size_t wrong = 0;
    check(r->dimensions <= EMBEDDING_DIMENSIONS_MAX && r->model.p && r->tokens >= -1);
    for (size_t i = 0; i < count; i++) {
        const struct embedding_vector *v = &r->vectors[i];
        check((v->scale != 0) == (v->why == NULL));
        wrong += v->why != NULL;
        if (!v->why)
            check_length(v, r->dimensions);
    }
    check(wrong == r->wrong && (wrong == count || r->dimensions > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *copy = check_memory(malloc(n)); /* of this size: reading on is seen */
    memcpy(copy, data + 1, n - 1);
    struct arena a;
    arena_init(&a);
    struct embedding_reply reply;
    const char *problem = NULL;
    size_t count = data[0] % 8 + 1;
    if (embedding_reply_read(&a, str_from(copy, n - 1), count, &reply, &problem) == 0)
        check_reply(&reply, count);
    else
        check(problem && *problem);
    arena_release(&a);
    free(copy);
    return 0;
}
