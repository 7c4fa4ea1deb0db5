/* sample_text.h -- titles and abstracts from sentences with slots. */
#ifndef TOOL_SAMPLE_TEXT_H
#define TOOL_SAMPLE_TEXT_H

#include "base/buf.h"
#include "tool/sample/sample_random.h"
#include "tool/sample/sample_words.h"

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
