#include "engine/crew/claims.h"

#include <inttypes.h>

#include "engine/people/user.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

int claims_make(struct task *t, const struct claimant *c, int64_t uid, bool jobs,
                struct claim *list, size_t count, int64_t *permission)
{
    struct arena *a = task_arena(t);
    struct user u = {.permission = 0};
    int err = user_get(t, c->cache, uid, &u);
    if (err && err != ERR_NOT_FOUND)
        return err;
    *permission = u.banned ? 0 : u.permission;
    size_t members = c->members->count, words = 0; /* now: they may change while this waits */
    struct str *word = ARENA_ARRAY(a, struct str, members + 3 * count);
    const struct redis_reply *r;
    for (size_t i = 0; i < members; i++)
        word[words++] = str_printf(a, "%016" PRIx64, c->members->list[i].incarnation);
    for (size_t i = 0; i < count; i++) {
        word[words++] = list[i].what;
        word[words++] = str_int(a, list[i].has);
        word[words++] = str_int(a, list[i].wants);
    }
    err = SCRIPT(t, c->redis, workers_claim, &r, .workers = key_workers(a, uid),
                 .permission = str_int(a, *permission),
                 .node = str_printf(a, "%016" PRIx64, c->incarnation),
                 .part = jobs ? STR("jobs") : STR("runs"),
                 .node_count = str_int(a, (int64_t)members), .nodes_and_claims = {word, words});
    if (!err && (r->type != REDIS_ARRAY || r->count != count))
        err = task_fail(t, ERR_PROTO, "script workers_claim returned something else");
    for (size_t i = 0; !err && i < count; i++)
        list[i].granted = r->items[i]->integer;
    return err;
}
