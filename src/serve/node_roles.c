/* Every background role of a node, in one table (engine/store/role.h). */
#include "engine/crew/dispatcher.h"
#include "engine/runs/keeper.h"
#include "engine/setup/node.h"
#include "engine/store/keys.h"
#include "serve/node_engine_private.h"

void node_roles_start(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "dispatcher",
         .round = dispatcher_role,
         .arg = e->dispatcher,
         .each_ms = 200,
         .lock = &key_dispatcher_lock,
         .lock_ms = 3000,
         .complaint = "no runs are dispatched: runs wait in the queue"},
        {.name = "keeper",
         .round = keeper_role,
         .arg = &e->runs,
         .each_ms = 2000,
         .lock = &key_keeper_lock,
         .lock_ms = 10000,
         .complaint = "runs are not reconciled with MySQL"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        roles_go(e->roles, n->group, &table[i]);
}
