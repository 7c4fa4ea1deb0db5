/* machines.h -- an alert: several machines use stores that are meant for one.
 *
 * Here because neither room knows the other: search says how many machines there are, and watch
 * (alert_source.h) tells. */
#ifndef SERVE_NODE_MACHINES_H
#define SERVE_NODE_MACHINES_H

#include "engine/watch/alert_source.h"

#define MACHINES_PREFIX "vectors:"
alerts_look_fn machines_look; /* arg: struct collections */
#endif
