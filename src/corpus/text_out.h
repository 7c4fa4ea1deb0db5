/* text_out.h -- the plain text being written, and edits of what was written last: an argument is
 * rendered first, then its result is accented, raised or enclosed. For text.c and charset.c.
 *
 * Always true: valid UTF-8, provided that what is put is. */
#ifndef CORPUS_TEXT_OUT_H
#define CORPUS_TEXT_OUT_H

#include "base/str.h"

struct text_out {
    struct arena *arena;
    char *p;
    size_t len, cap;
};

void text_out_init(struct text_out *o, struct arena *a, size_t cap);
struct str text_out_from(const struct text_out *o, size_t at); /* until the next put */

void text_put(struct text_out *o, const char *p, size_t n);
void text_put_z(struct text_out *o, const char *z);
void text_put_space(struct text_out *o); /* unless there is one, or nothing yet */

/* Accents the first letter from at on; signs that are not letters lose the accent. False when
 * nothing but spaces is there. */
bool text_out_accent(struct text_out *o, size_t at, char name);

/* Puts what stands from at on into parentheses, unless it is one word: x and α can stand behind a
 * slash or a root as they are, x+1 cannot. */
void text_out_enclose(struct text_out *o, size_t at);

/* Replaces skip bytes at at and all that follows by the raised or lowered form of what follows.
 * False, and nothing changed, when a character has no such form. */
bool text_out_shift(struct text_out *o, size_t at, size_t skip, bool raised);

/* From at on stand ^ or _ and a script. The script is raised or lowered if it can be, else it
 * keeps the sign where that is needed to read it. */
void text_out_script(struct text_out *o, size_t at, bool raised);
#endif
