/* choice.h -- journals and years, as several routes take them. */
#ifndef ENGINE_API_CHOICE_H
#define ENGINE_API_CHOICE_H

#include "corpus/paper.h"
#include "engine/api/api.h"
#include "engine/runs/run.h"

#define API_CHOICE_BYTES_MAX (1024 * 1024) /* of a body with all journals there can be */

/* In the braces of rows of a table of fields. */
#define API_YEARS .least = PAPER_YEAR_MIN, .most = PAPER_YEAR_MAX
#define API_JOURNALS_FIELD                                                                         \
    "journals", API_TEXTS,                                                                         \
        .optional = true, .least = 1, .most = CATALOG_JOURNALS_MAX,                                \
        .item_most = PAPER_NAME_BYTES_MAX,                                                         \
        .about = "short names, each once; may be absent beside nearest: all of them"
#define API_YEAR_FROM_FIELD "year_from", API_INT, API_YEARS, .about = "the first year"
#define API_YEAR_TO_FIELD   "year_to", API_INT, API_YEARS, .about = "the last year, included"

/* Instead of all papers of the choice, those of it that are nearest to a text. */
#define API_NEAREST_FIELD                                                                          \
    "nearest", API_OBJECT,                                                                         \
        .optional = true, .fields = api_nearest_fields,                                            \
        .about = "only the papers nearest to a text, of these journals and years"
extern const struct api_field api_nearest_fields[];

/* What a body with these fields says. ERR_INVALID: refused already, with the field named. */
struct api_choice {
    struct catalog_choice choice; /* journal_count 0: all journals, beside nearest alone */
    struct run_nearest nearest;   /* text.p == NULL: it was not sent */
};
MUST_CHECK int api_choice(struct task *t, struct api_call *c, struct api_choice *out);
/* ERR_INVALID: there is no such journal. */
MUST_CHECK int api_choice_unknown(struct task *t, struct api_call *c, struct str journal);
#endif
