/* markdown_line.h -- what a line of Markdown is, by itself. Private to markdown.c. A line comes
 * without its end, and, unless it is told otherwise, without blanks before it. */
#ifndef CORPUS_PROSE_MARKDOWN_LINE_H
#define CORPUS_PROSE_MARKDOWN_LINE_H

#include "base/str.h"

#define MARKDOWN_LABEL_BYTES_MAX 999

static inline bool line_is_blank_char(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the blanks before a line off, and returns how many columns they are. */
size_t line_indent(struct str *line);

int line_heading(struct str line, struct str *title); /* the level; 0: none */
int line_underline(struct str line);                  /* the level of the heading above; 0: none */
bool line_is_rule(struct str line);

struct line_fence {
    char c;
    size_t n; /* of them; 0: no fence */
};
struct line_fence line_fence(struct str line);
bool line_closes(struct str line, struct line_fence f);

struct line_item {
    struct str number; /* n == 0: a bullet */
    size_t n;          /* bytes of the mark and of the blanks behind it, of which it is */
    size_t columns;    /* so wide */
};
bool line_item(struct str line, struct line_item *out);

/* "| --- | :-: |". Returns how many columns it has; 0: it is none. */
size_t line_delimiters(struct str line);
size_t line_cells(struct str line);
/* Takes the first cell off a row. False: there is no more. */
bool line_cell(struct str *row, struct str *cell);
struct str line_row(struct str line); /* without the bars at its ends */

/* "[label]: address" or "[^label]: text". *rest is what follows the colon. */
bool line_definition(struct str line, struct str *label, struct str *rest);

/* A label as it is compared: in small letters, blanks as one. Returns its length; 0: it is none. */
size_t line_label(struct str label, char out[MARKDOWN_LABEL_BYTES_MAX]);
#endif
