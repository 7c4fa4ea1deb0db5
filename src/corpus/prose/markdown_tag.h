/* markdown_tag.h -- HTML within Markdown. Private to markdown.c. Strings begin behind the "<". */
#ifndef CORPUS_PROSE_MARKDOWN_TAG_H
#define CORPUS_PROSE_MARKDOWN_TAG_H

#include "base/str.h"

enum markdown_tag {
    MARKDOWN_TAG_TEXT,    /* none */
    MARKDOWN_TAG_NOTHING, /* as <b>; nothing takes its place */
    MARKDOWN_TAG_BLANK,   /* as <td> */
    MARKDOWN_TAG_LINE,    /* as <br> */
    MARKDOWN_TAG_BLOCK,   /* as <p> */
    MARKDOWN_TAG_ADDRESS, /* <https://example.org>, <jane@example.org> */
};

/* Bytes up to the end of a tag whose name is one of HTML, or of an address; 0: it is neither. */
size_t markdown_tag(struct str s, enum markdown_tag *kind);

/* Bytes up to the end of what is not shown: a comment, an instruction, a script, a style sheet; 0:
 * it is none, or has no end. *endless is a set of those that have no end in the rest of a text: 0
 * where a text begins. So they are not looked for again and again. */
size_t markdown_hidden(struct str s, unsigned *endless);
#endif
