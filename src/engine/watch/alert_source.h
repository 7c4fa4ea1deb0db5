/* alert_source.h -- what an application finds wrong, for the alerts (alerts.h).
 *
 * Applications are above the engine: what is theirs to judge they hand in as a source, when alerts
 * are made. */
#ifndef ENGINE_WATCH_ALERT_SOURCE_H
#define ENGINE_WATCH_ALERT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct task;

struct alerts_fact {
    struct str name; /* of the episode; begins with the source's prefix */
    struct str text; /* what is wrong, and what to do */
    bool lasts;      /* an episode of this name goes on, but none begins by it */
};
/* What is so now, in the task's arena; on the node that watches, in every round. An error: that is
 * not known, and the source's episodes go on as they were. */
typedef int alerts_look_fn(struct task *t, void *arg, struct alerts_fact **out, size_t *count);
struct alerts_source {
    const char *prefix; /* of the names of its episodes, with a colon */
    alerts_look_fn *look;
    void *arg;
};
#define ALERTS_SOURCES_MAX 8
#define ALERTS_FACTS_MAX   20 /* of one source; a list that is full ends no episode */
#endif
