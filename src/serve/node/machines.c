#include "serve/node/machines.h"

#include "engine/search/collection.h"
#include "loop/task.h"

int machines_look(struct task *t, void *arg, struct alerts_fact **out, size_t *count)
{
    struct arena *a = task_arena(t);
    int64_t machines = collection_machines(arg);
    *count = machines > 1;
    *out = ARENA_NEW(a, struct alerts_fact);
    if (machines > 1)
        **out = (struct alerts_fact){
            .name = STR(MACHINES_PREFIX "machines"),
            .text = str_printf(a,
                               "%lld machines have embedded stores of vectors, each a copy of its "
                               "own: for several machines use Qdrant (vectors.store)",
                               (long long)machines)};
    return 0;
}
