/* markdown.h -- Markdown as plain text, in the form that split.h cuts.
 *
 * What becomes of it:
 *   - a heading (# Title, or underlined) is a line "# Title", of its level; no other line begins
 *     like one: a comment of a script has a blank before it;
 *   - an empty line stands between headings, paragraphs, lists, tables and pieces of code; what is
 *     quoted is like all else. The lines of a paragraph are joined, Chinese ones without a blank;
 *   - an item of a list is a line "- text" or "3. text", wherever it is nested; a row of a table is
 *     a line with tabs between its cells; a line of code is a line;
 *   - emphasis, links, images and code between backticks are their text, addresses in <> are the
 *     address, references to footnotes are gone, and a footnote is a paragraph;
 *   - front matter, comments, scripts, style sheets, definitions of links and rules are gone, and
 *     so are the tags of HTML, but not what is between them; what is no tag of HTML stays;
 *   - escapes and entities are the character; control characters are blanks.
 *
 * CommonMark and the tables, task lists, footnotes and ~~ of GitHub are read, with these liberties:
 * ** counts beside Chinese punctuation; * _ and ~~ may be interleaved; what is HTML by its place
 * alone is read as Markdown. Whatever is not understood is kept as it stands.
 *
 * Time is linear, there is no recursion. The result is valid UTF-8 if the input is, has no blank
 * at the end of a line and at most one empty line in a row, and lives in a. */
#ifndef CORPUS_PROSE_MARKDOWN_H
#define CORPUS_PROSE_MARKDOWN_H

#include "base/str.h"

struct str markdown_plain(struct arena *a, struct str markdown);
#endif
