#include "engine/watch/overview.h"

bool overview_well(const struct overview_data *d)
{
    bool refused = false;
    for (size_t i = 0; i < d->key_count; i++)
        refused |= d->keys[i].refused;
    return d->redis.up && d->mysql.up && d->alert_count == 0 && d->standing_known &&
           d->standing_count == 0 && d->fault_count == 0 && !refused;
}
