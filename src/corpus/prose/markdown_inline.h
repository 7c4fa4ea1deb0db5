/* markdown_inline.h -- the text of a paragraph, without its marks. Private to markdown.c. */
#ifndef CORPUS_PROSE_MARKDOWN_INLINE_H
#define CORPUS_PROSE_MARKDOWN_INLINE_H

#include "base/buf.h"

#define MARKDOWN_RUNS 64 /* of backticks; longer ones are text */

struct map;

/* What is reused from paragraph to paragraph. */
struct markdown_inline {
    const struct map *labels;              /* that are defined; NULL: none */
    struct buf stars, lines, waves, links; /* what was opened and not closed yet */
    size_t last_run[MARKDOWN_RUNS]; /* behind the last run of so many backticks; 0: there is none */
};

void markdown_inline_init(struct markdown_inline *m, const struct map *labels);
void markdown_inline_release(struct markdown_inline *m);

/* Appends it; lines of src have no blanks before them. single: all of it on one line. Otherwise no
 * line but the first looks like a heading. What is appended has no blanks at its ends. */
void markdown_inline_add(struct markdown_inline *m, struct str src, bool single, struct buf *out);

/* Appends a text as it is, but for control characters. */
void markdown_verbatim_add(struct str src, struct buf *out);

/* Whether a line would be read as a heading. */
bool markdown_is_like_heading(struct str line);
#endif
