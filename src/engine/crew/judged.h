/* judged.h -- open and judge of applications whose papers are relevant to a question, or not. */
#ifndef ENGINE_CREW_JUDGED_H
#define ENGINE_CREW_JUDGED_H

#include "engine/crew/application.h"

/* The member "question" of search_params, and how it is judged. */
const void *judged_open(struct arena *a, const struct node *n, const struct app_run *run);
int judged_paper(struct task *t, const struct node *n, const void *opened,
                 const struct app_paper *paper, struct str packed, struct ai_hand *hand,
                 struct result *out);
#endif
