/* quote_fold.h -- text without the differences that quote.h looks past, piece by piece, with where
 * each piece comes from. For quote.c.
 *
 * Always true: a piece has no more bytes than the character it comes from, so folded text is never
 * longer than the text. What is folded depends on a text from the place on only, so folding may
 * begin anew at the begin of any piece. */
#ifndef CORPUS_QUOTE_FOLD_H
#define CORPUS_QUOTE_FOLD_H

#include "base/str.h"

struct quote_fold {
    struct str text; /* borrowed */
    size_t at;
    size_t dash, dash_end; /* a dash that waits for what follows; none when they are equal */
};

struct quote_piece {
    char p[4];
    size_t n;          /* at least 1 */
    size_t begin, end; /* the character in the text */
};

/* QUOTE_BAD stands for a byte that is not UTF-8: no byte of folded text is the same. */
#define QUOTE_BAD '\xff'

bool quote_fold_next(struct quote_fold *f, struct quote_piece *out); /* false: the text has ended */
/* The next pieces that are one byte of ASCII each, at most so many, into out: several times as
 * fast. Returns how many those are; 0 where something else comes next, or a dash waits. */
size_t quote_fold_ascii(struct quote_fold *f, char *out, size_t most);
/* The same for the next QUOTE_FOLD_BLOCK bytes of the text, or up to what is no plain ASCII; faster
 * still. out has room for as many bytes as the text has left. */
#define QUOTE_FOLD_BLOCK 16
size_t quote_fold_block(struct quote_fold *f, char *out);

/* Whether a character, not folded, adds to the one before it, as an accent does. */
bool quote_is_mark(uint32_t code);
#endif
