/* text_html.h -- HTML, JATS and MathML tags, and entities. For text.c and doi.c. */
#ifndef CORPUS_TEXT_HTML_H
#define CORPUS_TEXT_HTML_H

#include "corpus/text_table.h"

#define HTML_ENTITY_BYTES_MAX 8

struct html_tag {
    enum text_tag_kind kind;
    bool closes; /* </i> */
};

/* s begins behind the opening bracket and the tag ends with close. Returns how many bytes of s it
 * takes; 0 when that is no known tag, as in "p < 0.05". Looks at a bounded part of s. */
size_t html_tag(struct str s, struct str close, struct html_tag *out);

/* s begins with an ampersand. Returns how many bytes of s the entity takes and writes what it
 * stands for (nothing for a soft hyphen); 0 when it is none. Escaped twice counts as once. */
size_t html_entity(struct str s, char out[HTML_ENTITY_BYTES_MAX], size_t *out_n);
#endif
