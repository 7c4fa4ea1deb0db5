#include "engine/search/often.h"

#include "base/map.h"
#include "loop/loop.h"
#include "loop/task.h"

#define MINUTE_MS 60000

void often_release(struct often *o)
{
    map_free(o->counts);
    o->counts = NULL;
}

int often_count(struct task *t, struct often *o, int64_t uid, int64_t most, const char *what,
                int64_t *retry_after_s)
{
    char key[STR_INT_BYTES];
    int64_t now = loop_wall_ms(task_loop(t)), minute = now / MINUTE_MS, n = 0;
    if (!o->counts || o->minute != minute) {
        map_free(o->counts);
        o->counts = map_new();
        o->minute = minute;
    }
    struct str user = str_digits(key, uid);
    (void)map_get_int(o->counts, user, &n);
    if (n >= most) {
        if (retry_after_s)
            *retry_after_s = MINUTE_MS / 1000 - now / 1000 % 60;
        return task_fail(t, ERR_RATE, "%lld %s in a minute are the most there can be",
                         (long long)most, what);
    }
    map_set_int(o->counts, user, n + 1);
    return 0;
}
