/* snippet.h -- a few lines of a text that show why it was found. */
#ifndef APP_EMBED_SEARCH_SNIPPET_H
#define APP_EMBED_SEARCH_SNIPPET_H

#include "base/str.h"

#define SNIPPET_CHARS_MAX 300
#define SNIPPET_MARKS_MAX 40
#define SNIPPET_WORDS_MAX 100 /* of a question */

/* The words of a question, each once. */
struct snippet_words {
    struct str words[SNIPPET_WORDS_MAX];
    size_t count;
};
void snippet_words(struct snippet_words *w, struct arena *a, struct str question);
/* Whether a text has one of them. */
bool snippet_has(const struct snippet_words *w, struct str text);

struct snippet_mark {
    int64_t begin, end; /* in characters of the snippet: Unicode code points */
};
struct snippet {
    struct str text;
    struct snippet_mark marks[SNIPPET_MARKS_MAX]; /* what the question asks for; in order */
    size_t mark_count;
};

/* Of a text, as markdown.h and paper.h give it, in a: at most SNIPPET_CHARS_MAX characters around
 * the place with most of the words, of whole sentences if they fit; its beginning if it has none.
 * Blanks and lines are single blanks, marks of headings are gone; "…" stands where a sentence is
 * cut. Any bytes are taken; what is no UTF-8 becomes U+FFFD. */
struct snippet snippet_of(struct arena *a, struct str text, const struct snippet_words *w);
#endif
