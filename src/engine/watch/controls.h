/* controls.h -- what admins tell nodes, besides the switches: to take no work, to read the prompt
 * again.
 *
 * Rows of table setting, which every node reads twice a second (switches.h): effective within a
 * second, and kept over restarts.
 *   - "drained:<id>" is true: the node in that slot takes no work. Workers stop after the paper in
 *     hand, and the other nodes take their runs over; it still answers requests.
 *   - "prompts": whenever its version changes, every node reads ai.prompt_file again. A file that
 *     cannot be used is refused where the admin asked for it; another node that cannot use its own
 *     says so in the log, and keeps what it had. The overview shows a fingerprint for each node.
 *
 * A node's id is that of its slot: host, folder of its data, number among the nodes there. A node
 * that is restarted in the slot reuses it, also after a reload: for a moment there are two then. */
#ifndef ENGINE_WATCH_CONTROLS_H
#define ENGINE_WATCH_CONTROLS_H

#include "engine/people/admin_log.h"
#include "engine/setup/node.h"

#define CONTROL_ID_CHARS_MAX 48 /* "host-3fa2-0"; longer names of hosts are cut */

/* In a. */
const char *control_node_id(struct arena *a, const char *host, const char *data_dir, int place);

struct controls;
/* n is borrowed: switches, sql, ai (may be NULL), id; sets drained. */
struct controls *controls_new(struct node *n);
void controls_free(struct controls *c);

/* Both are noted with `by` in the same transaction; target, before and after are filled in. */

/* ERR_NOT_FOUND: no node with this id lives, and none was ever drained. */
MUST_CHECK int control_drain(struct task *t, struct controls *c, struct str id, bool drained,
                             const struct admin_deed *by);
/* Here at once, elsewhere within a second. ERR_INVALID: the file cannot be used, and task_error
 * says why; nothing was changed anywhere. After other errors this node may have it, and the others
 * not. */
MUST_CHECK int control_reload(struct task *t, struct controls *c, const struct admin_deed *by);
#endif
