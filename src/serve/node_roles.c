/* Every background role of a node, in one table (engine/store/role.h). */
#include "engine/crew/dispatcher.h"
#include "engine/runs/keeper.h"
#include "engine/setup/node.h"
#include "engine/store/keys.h"
#include "serve/node_engine.h"

void node_roles_start(struct node_engine *e)
{
    struct node *n = e->node;
    const struct role table[] = {
        {.name = "ledger",
         .round = ledger_role,
         .arg = n->ledger,
         .each_ms = 200,
         .each_ms_max = 5000,
         .complaint = "money is not carried between the stores"},
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
        {.name = "archive",
         .round = archive_role,
         .arg = &e->archive,
         .each_ms = 2000,
         .lock = &key_archive_lock,
         .lock_ms = 30000,
         .complaint = "runs that have ended are not archived: their results stay in Redis alone",
         .elsewhere = archive_elsewhere},
        {.name = "sweeper",
         .round = sweeper_role,
         .arg = &e->sweeper,
         .each_ms = 10000,
         .complaint = "users cannot be evicted from Redis: its memory will grow"},
        {.name = "audit",
         .round = audit_role,
         .arg = &e->audit,
         .each_ms = 5000,
         .lock = &key_audit_lock,
         .lock_ms = 60000,
         .complaint = "money is not audited",
         .elsewhere = audit_elsewhere},
        {.name = "audit-age",
         .round = audit_age_role,
         .arg = &e->audit,
         .each_ms = 5000,
         .complaint = "the age of the last audit is not known"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        roles_go(e->roles, n->group, &table[i]);
}
