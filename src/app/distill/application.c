#include "app/distill/application.h"

#include "app/distill/distill.h"
#include "engine/crew/chunks.h"
#include "engine/crew/judged.h"
#include "engine/setup/node.h"

static int papers(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **out, size_t *count)
{
    return chunks_papers(t, n->redis, n->sql, run, unit, DISTILL_CENTS, out, count);
}

const struct application distill_application = {DISTILL_KIND, chunks_split, papers, judged_open,
                                                judged_paper};
