#include <stdlib.h>

#include "engine/ai/events.h"
#include "engine/ai/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The reply, in a, of pieces of at most step bytes. False: it is too long. */
static bool read_pieces(struct arena *a, struct str all, size_t step, struct str *body, bool *cut)
{
    struct ai_events e;
    int err = 0;
    ai_events_init(&e);
    while (all.n && !err) {
        size_t n = all.n < step ? all.n : step;
        char *piece = check_memory(malloc(n)); /* of exactly this size: reading on is seen */
        memcpy(piece, all.p, n);
        err = ai_events_add(&e, str_from(piece, n));
        free(piece);
        all = str_skip(all, n);
    }
    *body = ai_events_body(&e, a);
    *cut = ai_events_cut(&e);
    ai_events_release(&e);
    return err == 0;
}

/* However it is cut, the same comes of it. The first byte says how. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    struct arena a;
    struct str whole, pieces, all = str_from((const char *)data + 1, n - 1);
    bool whole_cut, pieces_cut;
    arena_init(&a);
    bool one = read_pieces(&a, all, SIZE_MAX, &whole, &whole_cut);
    bool more = read_pieces(&a, all, 1 + (size_t)data[0] % 16, &pieces, &pieces_cut);
    check(one == more);
    check(!one || (str_eq(whole, pieces) && whole_cut == pieces_cut));
    arena_release(&a);
    return 0;
}
