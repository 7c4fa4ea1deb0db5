/* extent.h -- how many posts, or papers, searches can find. */
#ifndef APP_EMBED_EXTENT_H
#define APP_EMBED_EXTENT_H

#include <stdint.h>

struct embed_extent {
    int64_t total;                /* that have something to be found by */
    int64_t by_words, by_meaning; /* of those: indexed so far */
};
#endif
