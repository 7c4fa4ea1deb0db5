/* alerts.h -- tells operators what is wrong: by a webhook, and in the log.
 *
 * What is watched: keys that the AI service refused ("key:<number>"), records on their way to MySQL
 * ("billing"), money that is not where it belongs ("drift"), users whose runs paused themselves
 * because their verdicts cannot be recorded ("verdicts:<uid>"), the stores ("redis", "mysql"), a
 * MySQL that takes no changes ("read_only"), unsafe settings ("settings:redis", "settings:mysql"),
 * nodes without a heartbeat ("node:<id>"), queues of jobs whose oldest has waited for long
 * ("queue:<name>") or of whose jobs most fail ("failing:<name>"), runs that stand still for
 * longer than a minute for a cause that can be mended ("standing:<reason code>", one for each
 * cause; engine/runs/reason.h), and what applications find themselves (struct alerts_source).
 *
 * Each is an episode: one message when it begins, one when it is over, however many nodes there are
 * and whichever of them die meanwhile. Delivery is at least once; each message has an id, the same
 * in every repeat and for the end of the episode, by which a receiver drops what it has already.
 *   1. The node that has a lock in Redis watches. While Redis is away every node watches: they
 *      agree by what is noted in MySQL, so that their messages have the same ids. With both stores
 *      away each node that watched goes on by itself.
 *   2. The episodes are noted in MySQL (setting alerts.episodes) and in Redis, with a number that
 *      counts changes. A node that begins to watch takes the newest note it can read; so that a
 *      store is down is known to the other one. In MySQL a note replaces older ones only.
 *   3. An episode is noted before its message is sent, and again afterwards: a node that dies in
 *      between has its message repeated, never lost.
 *   4. A message that cannot be delivered is tried again with backoff until it is, or the episode
 *      is over; an end is told only if the beginning was, or may have been: a webhook that took it
 *      and was too slow to say so would wait for the end for ever.
 *
 * The message is a POST of {"id", "event": "begun" | "ended", "alert", "text", "since", "at",
 * "seconds"}; any status from 200 to 299 is a receipt. */
#ifndef ENGINE_WATCH_ALERTS_H
#define ENGINE_WATCH_ALERTS_H

#include "engine/store/role.h"
#include "engine/watch/alert_source.h"
#include "engine/watch/overview.h"

#define ALERTS_MAX 64 /* episodes at once; more have to wait */

struct alerts;
struct alerts_options {
    struct node *node;         /* borrowed: redis, sql, members, incarnation, metrics */
    struct overview *overview; /* borrowed */
    const char *url;           /* "": the log only. A secret. */
    const char *ca_file;       /* certificates it is checked by; NULL or "": the system's */
    int64_t records_max;       /* more that wait for MySQL are an alert */
    int64_t store_ms;          /* a store may be away for so long; 0: 3000 */
    int64_t records_ms;        /* and so long may too many wait; 0: 10000 */
    int64_t standing_ms;       /* runs may stand still for so long; 0: 60000 */
    int64_t queue_ms;          /* a job may wait for so long; 0: 600000 */
    const struct alerts_source *sources; /* of applications; borrowed */
    size_t source_count;
};
struct alerts *alerts_new(const struct alerts_options *o);
void alerts_free(struct alerts *a); /* after its task */

/* Those that are not over, as the watcher has noted them, in a. */
MUST_CHECK int alerts_list(struct task *t, const struct node *n, struct arena *a,
                           struct overview_alert **out, size_t *count);

/* arg: a struct alerts, on every node. */
role_fn alerts_role;
/* After that role has ended: lets go of the lock, so that another node watches at once. */
void alerts_part(struct task *t, struct alerts *a);
#endif
