/* parts.h -- cuts a long document into parts that a model takes.
 *
 * Always true:
 *   - the parts cover the text, in order, without gaps: the first begins at 0, each begins where
 *     the one before it ends, the last ends with the text;
 *   - none has more than tokens_max tokens, as they are estimated (corpus/prose/tokens.h);
 *   - no character is cut in two, where the text is UTF-8;
 *   - a part ends at the best place within the later half of what would fit: before a heading, of a
 *     section rather than of a subsection; else after an empty line or the end of a page; a
 *     sentence; a line; a word. Only a text without any of them is cut between two characters.
 *
 * Headings are lines of Markdown ("## Methods", "Methods" over "-----"), and lines like those of
 * pdftotext: "2 Methods", "2.1. Data", "III. RESULTS", "Abstract", "REFERENCES", 二、方法,
 * 第二章 结果. */
#ifndef APP_EXTRACT_FIELDS_PARTS_H
#define APP_EXTRACT_FIELDS_PARTS_H

#include "base/str.h"

#define EXTRACT_PART_TOKENS_MIN 16 /* less than this is taken for it */

struct extract_part {
    size_t begin, end; /* bytes of the text */
};

/* Returns how many; an empty text has none. Linear in the text. */
size_t extract_parts(struct arena *a, struct str text, int64_t tokens_max,
                     struct extract_part **out);
#endif
