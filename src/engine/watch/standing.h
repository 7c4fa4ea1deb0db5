/* standing.h -- which runs stand still, and why (SCR-13): collects the facts that the table in
 * engine/runs/reason.c decides by, and those that the time left is told from (pace.h).
 *
 * Facts of the whole (keys, nodes, the AI service, the queue) are read from Redis when a task asks,
 * at most twice a second for all of them; those of a run and its user each time. What is not known
 * is no reason: without Redis a run that wants to work is said to be repaired. */
#ifndef ENGINE_WATCH_STANDING_H
#define ENGINE_WATCH_STANDING_H

#include "engine/runs/run.h"
#include "engine/setup/node.h"

#define STANDING_FRESH_MS 500 /* facts of the whole may be so old */
#define STANDING_RUNS_MAX 100 /* of the queue, and of those that have workers, for the overview */

struct standing;
/* n is borrowed: redis, cache, permits, switches (may be NULL). */
struct standing *standing_new(struct node *n);
void standing_free(struct standing *s);

/* Fills in why and the seconds of each view; those of runs that have ended are left alone. s may be
 * NULL: nothing is told. Never fails: what cannot be read is not told. */
void standing_tell(struct task *t, struct standing *s, const struct run_id *ids,
                   struct run_view *views, size_t count);
/* What would hold a run of this user that was submitted now, and how long it would take. */
void standing_expect(struct task *t, struct standing *s, int64_t uid, int64_t papers,
                     struct run_view *out);

/* Runs that stand for one cause that an operator can mend, and one of them. */
struct standing_group {
    struct reason why;
    int64_t runs;
    struct run_id example;
};
/* All causes, in a, of at most 2 * STANDING_RUNS_MAX runs that want to work. */
MUST_CHECK int standing_groups(struct task *t, struct standing *s, struct arena *a,
                               struct standing_group **out, size_t *count);
#endif
