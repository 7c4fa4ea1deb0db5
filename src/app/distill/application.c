#include "app/distill/application.h"

#include "app/distill/distill.h"
#include "engine/crew/judged.h"
#include "engine/setup/node.h"

/* All chunks, also when only failed papers are tried again: the chunk of a paper is known only by
 * reading it, and papers of a chunk that have a verdict are skipped. */
static int split(struct task *t, const struct node *n, const struct app_run *run,
                 struct str **units, size_t *count)
{
    (void)n;
    return distill_chunks(t, run, units, count);
}

static int papers(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **out, size_t *count)
{
    return distill_chunk_read(t, n->redis, n->sql, run, unit, out, count);
}

const struct application distill_application = {DISTILL_KIND, split, papers, judged_open,
                                                judged_paper};
