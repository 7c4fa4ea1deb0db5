/* screen.h -- between the files of this application. */
#ifndef APP_SCREEN_SCREEN_H
#define APP_SCREEN_SCREEN_H

#include "engine/api/api.h"
#include "engine/runs/results.h"
#include "engine/runs/run.h"

api_handler screen_events; /* events.c */

/* results.c, with what it takes and answers */
api_handler screen_results;
extern const struct api_field screen_results_query[];
extern const struct api_field screen_results_reply[];
void screen_put_result(struct json_writer *w, const struct result_row *row, struct str title);

/* BibTeX of papers. A store that is away degrades the answer, which goes out without them. */
MUST_CHECK int screen_pick(struct task *t, struct api_call *c, struct block_pick *wants,
                           size_t count);

/* Rows of a table of fields: of one result. */
#define SCREEN_RESULT_MARKS                                                                        \
    {"not_judged", API_BOOL,                                                                       \
     .about = "the paper has neither title nor abstract, and the AI was not asked"},               \
        {"withdrawn", API_BOOL,                                                                    \
         .about = "the paper had left the corpus, and the AI was not asked"},                      \
    {                                                                                              \
        "simulated", API_BOOL, .about = "a verdict of the simulated AI, which means nothing"       \
    }

/* scope.c */
api_handler screen_scope;
extern const struct api_field screen_scope_reply[];

/* paper.c */
api_handler screen_paper;
extern const struct api_field screen_paper_query[];
extern const struct api_field screen_paper_reply[];
#endif
