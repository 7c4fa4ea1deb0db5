/* sim_labels.h -- verdicts given beforehand, by DOI.
 *
 * CSV lines `doi,1` (relevant) or `doi,0`. Empty lines and lines that begin with
 * `#` are skipped, so is a heading whose first column is `doi`. DOIs are compared
 * without regard to case, as the DOI handbook asks; one with a comma is quoted. */
#ifndef TOOL_SIM_LABELS_H
#define TOOL_SIM_LABELS_H

#include "base/str.h"

struct sim_labels;

/* Reads the text; NULL when a line is wrong, with `line N: …` in *why (in a). */
struct sim_labels *sim_labels_new(struct arena *a, struct str text, const char **why);
void sim_labels_free(struct sim_labels *l);
size_t sim_labels_count(const struct sim_labels *l);
/* False when the DOI has no label. a is for a copy of the DOI. */
bool sim_labels_get(struct arena *a, const struct sim_labels *l, struct str doi, bool *relevant);
#endif
