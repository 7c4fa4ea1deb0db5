/* heart_schedule.h -- schedules of the bench, each from a seed. See heart_fixture.h. */
#ifndef ENGINE_CREW_HEART_SCHEDULE_H
#define ENGINE_CREW_HEART_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct redis_model;

struct heart_schedule {
    struct redis_model *model;
    char problem[256];            /* of the last one; "": none */
    int64_t virtual_ms, ai_calls; /* of all so far */
};

/* False: an invariant did not hold; problem says which, and when. The same seed gives the same
 * schedule. */
bool heart_schedule_run(struct heart_schedule *s, uint64_t seed);
#endif
