#include "engine/crew/chunks.h"

#include "engine/chosen/frozen.h"

int chunks_split(struct task *t, const struct node *n, const struct app_run *run,
                 struct str **units, size_t *count)
{
    (void)n;
    struct frozen f;
    int err = frozen_open(t, run->id, run->params, &f);
    if (!err)
        frozen_units(t, &f, units, count);
    return err;
}

int chunks_papers(struct task *t, struct redis *redis, struct sql_pool *sql,
                  const struct app_run *run, struct str unit, int64_t cents,
                  struct app_paper **papers, size_t *count)
{
    struct frozen f;
    struct frozen_paper *named;
    size_t found;
    int err = frozen_open(t, run->id, run->params, &f);
    if (!err)
        err = frozen_read(t, redis, sql, &f, unit, &named, &found);
    if (err)
        return err;
    struct app_paper *out = ARENA_ARRAY(task_arena(t), struct app_paper, found);
    for (size_t i = 0; i < found; i++)
        out[i] = (struct app_paper){named[i].doi, named[i].journal, named[i].year,
                                    named[i].price * cents};
    *papers = out;
    *count = found;
    return 0;
}
