#include "engine/store/cluster.h"

#include "base/map.h"

/* Two that share a slot by chance take turns needlessly, in one transaction in a thousand. */
#define SLOTS 1024

/* The same on all nodes. */
static const uint8_t key[16] = "cluster turns";

int cluster_turn(struct task *t, struct sql *c, const char *what, int64_t id)
{
    if (!sql_is_galera(c))
        return 0;
    struct str name = str_printf(task_arena(t), "%s:%lld", what, (long long)id);
    return sql_on(t, c, NULL,
                  "INSERT INTO cluster_turn (slot, taken) VALUES (?, 1)"
                  " ON DUPLICATE KEY UPDATE taken = taken + 1",
                  sql_int((int64_t)(siphash(key, name) % SLOTS)));
}

int cluster_turn_part(struct task *t, struct sql *c, const char *what)
{
    return cluster_turn(t, c, what, (int64_t)(loop_random(task_loop(t)) % CLUSTER_PARTS));
}

int cluster_turn_all(struct task *t, struct sql *c, const char *what)
{
    int err = 0;
    for (int64_t i = 0; i < CLUSTER_PARTS && !err; i++)
        err = cluster_turn(t, c, what, i);
    return err;
}
