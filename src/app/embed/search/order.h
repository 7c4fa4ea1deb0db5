/* order.h -- one order of hits out of several: reciprocal rank fusion.
 *
 * What was found by meaning and what was found by words have scores that cannot be compared; their
 * places can. A hit gets 1 / (60 + its place) from each list that it is in, so what two lists have
 * in front comes before what one has. */
#ifndef APP_EMBED_SEARCH_ORDER_H
#define APP_EMBED_SEARCH_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define ORDER_HITS_MAX 1000 /* that can be paged through */
#define ORDER_K        60

enum order_kind { ORDER_POST, ORDER_PAPER, ORDER_KINDS };

struct order_hit {
    uint64_t owner;
    uint64_t version; /* of the content that its best point was made of; posts */
    double score;
    uint32_t part; /* of the text: the best point; 0 if it was found by words alone */
    uint8_t kind;
    bool by_meaning, by_words;
};

struct order {
    struct order_hit *hits; /* the best first, once the order is made */
    size_t count;
    size_t most;     /* there is room for */
    uint32_t *table; /* by owner: a place in hits, plus 1; 0: free */
    size_t mask;
};

/* Room for what so many lists of ORDER_HITS_MAX may have. */
void order_init(struct order *o, struct arena *a, size_t lists);
/* The next of a list, which is at place 0, 1, 2 … of it. Of the same owner only the first counts,
 * though the place goes on. */
void order_add_point(struct order *o, enum order_kind kind, size_t place, uint64_t owner,
                     uint64_t version, uint32_t part);
void order_add_words(struct order *o, enum order_kind kind, size_t place, uint64_t owner);
/* Makes the order; the first ORDER_HITS_MAX stay. Those that are alike in the order of kinds and
 * owners: the same lists give the same order. */
void order_make(struct order *o);
#endif
