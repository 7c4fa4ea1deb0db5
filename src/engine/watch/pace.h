/* pace.h -- how long a run will take, as a range: from workers, latency and permits, not from how
 * an earlier run went. */
#ifndef ENGINE_WATCH_PACE_H
#define ENGINE_WATCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace_facts {
    int64_t papers;                       /* that are left */
    int64_t workers_min, workers_max;     /* that the run has, or will have */
    int64_t workers_others;               /* of other runs, which use the same permits */
    int64_t latency_us, tokens;           /* of a call, on average */
    int64_t requests_limit, tokens_limit; /* of a minute, over all usable keys */
};

/* Seconds. False: not known, because no call was made yet or none may be made. */
bool pace_range(const struct pace_facts *f, int64_t *least, int64_t *most);
#endif
