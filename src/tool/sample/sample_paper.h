/* sample_paper.h -- one made-up paper: its theme, title and abstract, and the BibTeX entry. */
#ifndef TOOL_SAMPLE_PAPER_H
#define TOOL_SAMPLE_PAPER_H

#include <stdint.h>

#include "base/buf.h"
#include "tool/sample/sample_random.h"
#include "tool/sample/sample_words.h"

#define SAMPLE_NO_DOI_ONE_IN 200

/* An abstract in English has this many words, as split at blanks. */
#define SAMPLE_ABSTRACT_WORDS_MIN 120
#define SAMPLE_ABSTRACT_WORDS_MAX 250

/* Appends entry number `serial` (from 1) of that journal and year. What it says comes from r. */
void sample_paper(struct buf *b, struct sample_random *r, const struct sample_journal *j, int year,
                  int64_t serial);

/* --- sample_text.c: titles and abstracts from sentences with slots --- */

/* What one paper is about; drawn once, so that title and abstract agree. */
struct sample_theme {
    struct sample_random *random;
    const struct sample_sentences *sentences;
    bool chinese;
    const char *subject, *factors[2], *outcomes[2], *methods[2], *material;
};

struct sample_theme sample_theme(struct sample_random *r, const struct sample_journal *j);
void sample_title(struct buf *b, const struct sample_theme *t);
void sample_abstract(struct buf *b, const struct sample_theme *t);

const char *sample_pick(struct sample_random *r, const char *const *list);
#endif
