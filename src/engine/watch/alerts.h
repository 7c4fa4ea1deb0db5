/* alerts.h -- tells people what they must know: by a webhook, and in the log.
 *
 * What is watched: keys that the AI service refused ("key:<number>"), records on their way to MySQL
 * ("billing"), money that is not where it belongs ("drift"), users whose runs paused themselves because
 * their verdicts cannot be recorded ("verdicts:<uid>"), the stores ("redis", "mysql"), nodes that fell
 * silent ("node:<id>").
 *
 * Each is an episode: one message when it begins, one when it is over, however many nodes there are and whichever of them die
 * meanwhile. So one node at a time watches, and what it has told is kept where its successor finds it:
 *   1. Who watches has a lease in MySQL (setting alerts.watch). While MySQL is away, nobody can take that: who has it goes on, and
 *      holds a lock in Redis; others may take the lock after a while. With both away, who watched goes on by itself.
 *   2. The episodes are kept in MySQL (setting alerts.episodes) and in Redis, with a number that counts changes: a store
 *      that was away has the older ones. A new watcher takes the newest it can read. So that a store is down is known to
 *      the other one.
 *   3. An episode is noted before its message is sent, and again afterwards. A watcher that dies between has its message sent
 *      twice, never not at all.
 *   4. A message that cannot be delivered is tried again, with longer and longer pauses, until it is or the episode is over; an end
 *      is told only if the beginning was.
 *
 * The message is a POST of {"event": "begun" | "ended", "alert", "text", "since", "at", "seconds"}; any status from 200 to
 * 299 is a receipt. */
#ifndef ENGINE_WATCH_ALERTS_H
#define ENGINE_WATCH_ALERTS_H

#include "engine/watch/overview.h"

#define ALERTS_MAX 64 /* episodes at once; more have to wait */

struct alerts;
struct alerts_options {
    struct node *node;         /* borrowed: redis, sql, members, incarnation, metrics */
    struct overview *overview; /* borrowed */
    const char *url;           /* "": the log only. A secret. */
    const char *ca_file;       /* who may vouch for it; NULL or "": the system's certificates */
    int64_t records_max;       /* more that wait for MySQL are an alert */
    int64_t each_ms;           /* 0: 1000 */
    int64_t store_ms;          /* a store may be away for so long; 0: 3000 */
    int64_t records_ms;        /* and so long may too many wait; 0: 10000 */
};
struct alerts *alerts_new(const struct alerts_options *o);
void alerts_free(struct alerts *a); /* after its task */

/* Those that are not over, as the watcher has noted them, in a. */
MUST_CHECK int alerts_list(struct task *t, const struct node *n, struct arena *a,
                           struct overview_alert **out, size_t *count);

/* For ever. A task_fn with a struct alerts. Any number of nodes may run it, one watches. */
void alerts_task(struct task *t, void *arg);
/* After that task has ended: somebody else may watch at once. Nothing is lost if it cannot be said. */
void alerts_part(struct task *t, struct alerts *a);
#endif
