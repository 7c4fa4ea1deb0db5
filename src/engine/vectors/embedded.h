/* embedded.h -- an index as a store of points: tasks call it, helper threads do the work.
 *
 * One per collection and node. It opens the index at its first call, and again if it could not; it
 * never makes one: an index that is missing is one that was lost (index_create). */
#ifndef ENGINE_VECTORS_EMBEDDED_H
#define ENGINE_VECTORS_EMBEDDED_H

#include "engine/vectors/points.h"

#define EMBEDDED_WAIT_MS 2000 /* for the turn of a writer */

/* Ends by its ops->free, when no call is under way. */
struct points_store *embedded_new(const char *path); /* copied */
#endif
