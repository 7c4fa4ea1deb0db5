/* sim_labels.h -- given verdicts, by DOI.
 *
 * CSV lines `doi,1` (relevant) or `doi,0`. Empty lines and lines that begin with
 * `#` are skipped, so is a heading whose first column is `doi`. DOIs are compared
 * without regard to case, as the DOI handbook asks; one with a comma is quoted. */
#ifndef TOOL_SIM_LABELS_H
#define TOOL_SIM_LABELS_H

#include "base/map.h"

/* From DOIs to verdicts; NULL when a line is wrong, with `line N: …` in *why (in a). */
struct map *sim_labels_read(struct arena *a, struct str text, const char **why);
/* False when the DOI has no label. a is for a copy of the DOI. */
bool sim_labels_get(struct arena *a, const struct map *labels, struct str doi, bool *relevant);
#endif
