/* split.h -- cuts a text into chunks, each of which is embedded as one vector.
 *
 * The text is as markdown.h and text.h give it: a heading is a line "## Methods", an empty line
 * stands between paragraphs, an item of a list or a row of a table is a line. Any bytes are taken.
 *
 * Always true:
 *   - every character that is not blank is in a chunk; chunks come in order, do not begin or end
 *     with a blank, and none is empty;
 *   - none has more than tokens_max tokens, as they are estimated (tokens.h);
 *   - a chunk begins with the end of the one before: with at most overlap_tokens of what stands
 *     before what is new in it, blanks included. So a character is in two chunks at most;
 *   - it ends at the best place within the later half of what could be new in it: before a heading,
 *     of a section rather than of a subsection; else between paragraphs; lines; sentences; words;
 *     and only in a text without any of them between two characters. Of equal places the last one
 *     counts. A line behind a heading is no better than any line;
 *   - it begins likewise at the best place within the earlier half of what may overlap; of equal
 *     places at the first one. If not even a word begins there, then within the later half;
 *   - no character of UTF-8 is cut, and no base is cut off its combining marks, unless there are
 *     more than SPLIT_MARKS_MAX of them.
 *
 * Time is linear, and no memory is needed. The text is borrowed. */
#ifndef CORPUS_PROSE_SPLIT_H
#define CORPUS_PROSE_SPLIT_H

#include "base/str.h"

#define SPLIT_TOKENS_MIN        16 /* of tokens_max; less is taken for it */
#define SPLIT_TOKENS_MAX        1000000000
#define SPLIT_LEVELS            6   /* of headings */
#define SPLIT_HEADING_BYTES_MAX 256 /* of a path; the rest of a heading is left out */
#define SPLIT_MARKS_MAX         32

struct split_limits {
    int64_t tokens_max;
    int64_t overlap_tokens; /* at most a quarter of tokens_max; more is taken for it */
};

struct split_chunk {
    size_t begin, end; /* bytes of the text */
    size_t fresh; /* what stands before it was in the chunk before, too; begin <= fresh < end */
};

struct split {
    struct str text;
    struct split_limits limits;
    size_t fresh, end; /* of the chunk before */
    size_t told;       /* headings behind the line ends before here are in path */
    struct str path[SPLIT_LEVELS];
};

void split_init(struct split *s, struct str text, struct split_limits limits);

/* False: there is no more. */
bool split_next(struct split *s, struct split_chunk *out);

/* The headings over what is new in the chunk that came last, without their marks, from the
 * outermost one; also a heading with which that begins. Returns how many. They are parts of the
 * text. */
size_t split_path(const struct split *s, struct str out[SPLIT_LEVELS]);
#endif
