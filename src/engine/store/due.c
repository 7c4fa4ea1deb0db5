#include "engine/store/due.h"

#include "engine/store/scripts.h"

int due_drop(struct task *t, struct redis *r, struct str times, struct str member,
             int64_t latest_ms, int64_t *dropped)
{
    return SCRIPT_NUMBER(t, r, due_drop, dropped, .times = times, .member = member,
                         .latest = str_int(task_arena(t), latest_ms));
}
