#include "app/distill/work.h"

#include "app/distill/distill.h"
#include "engine/setup/node.h"

/* All chunks, also when only failed papers are tried again: which chunk one is in is known by reading it, and
 * the papers of a chunk that have a verdict are passed over. */
static int split(struct task *t, const struct node *n, const struct work_run *run,
                 struct str **units, size_t *count)
{
    (void)n;
    return distill_chunks(t, run, units, count);
}

static int papers(struct task *t, const struct node *n, const struct work_run *run, struct str unit,
                  struct work_paper **out, size_t *count)
{
    return distill_chunk_read(t, n->redis, n->sql, run, unit, out, count);
}

const struct work distill_work = {DISTILL_KIND, split, papers};
