#include "engine/people/attempts_local.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "engine/people/attempts.h"

#define TALLY_ROOM     4    /* attempts of a new subject; then twice as many */
#define SWEEP_AGAIN_MS 1000 /* a full table is not searched at every attempt */

struct tally {
    size_t count, room;
    int64_t at_ms[]; /* oldest first */
};

struct attempts_local {
    struct map *tallies;
    int64_t swept_ms;
};

struct attempts_local *attempts_local_new(void)
{
    struct attempts_local *l = check_memory(calloc(1, sizeof *l));
    l->tallies = map_new();
    return l;
}

void attempts_local_free(struct attempts_local *l)
{
    struct str subject;
    void *tally;
    for (size_t at = 0; map_next(l->tallies, &at, &subject, &tally);)
        free(tally);
    map_free(l->tallies);
    free(l);
}

static void drop(struct attempts_local *l, struct str subject)
{
    free(map_del(l->tallies, subject));
}

static void forget_old(struct tally *y, struct attempts_now n)
{
    size_t old = 0;
    while (old < y->count && y->at_ms[old] <= n.now_ms - n.window_ms)
        old++;
    y->count -= old;
    memmove(y->at_ms, y->at_ms + old, y->count * sizeof y->at_ms[0]);
}

void attempts_local_sweep(struct attempts_local *l, struct attempts_now n)
{
    struct map *kept = map_new(); /* a map must not change while it is read */
    struct str subject;
    void *value;
    for (size_t at = 0; map_next(l->tallies, &at, &subject, &value);) {
        struct tally *y = value;
        forget_old(y, n);
        if (y->count)
            map_set(kept, subject, y);
        else
            free(y);
    }
    map_free(l->tallies);
    l->tallies = kept;
    l->swept_ms = n.now_ms;
}

static bool has_room(struct attempts_local *l, size_t more, struct attempts_now n)
{
    if (map_count(l->tallies) + more > ATTEMPTS_LOCAL_MAX &&
        n.now_ms - l->swept_ms >= SWEEP_AGAIN_MS)
        attempts_local_sweep(l, n);
    return map_count(l->tallies) + more <= ATTEMPTS_LOCAL_MAX;
}

static void add(struct attempts_local *l, struct str subject, int64_t now_ms)
{
    struct tally *y = map_get(l->tallies, subject);
    size_t count = y ? y->count : 0;
    if (!y || count == y->room) {
        size_t room = count ? 2 * count : TALLY_ROOM;
        y = check_memory(realloc(y, sizeof *y + room * sizeof y->at_ms[0]));
        y->room = room;
        map_set(l->tallies, subject, y);
    }
    y->at_ms[count] = now_ms;
    y->count = count + 1;
}

/* As attempts_take.lua has it. */
static int64_t wait_of(const struct tally *y, int64_t limit, struct attempts_now n)
{
    size_t most = (size_t)(limit < 0 ? -limit : limit);
    if (y->count < most)
        return 0;
    if (limit > 0)
        return y->at_ms[y->count - most] + n.window_ms - n.now_ms;
    int64_t delay = ATTEMPTS_SLOW_MS;
    for (size_t i = most; i < y->count && delay < ATTEMPTS_SLOW_MOST_MS; i++)
        delay *= 2;
    delay = delay < ATTEMPTS_SLOW_MOST_MS ? delay : ATTEMPTS_SLOW_MOST_MS;
    return y->at_ms[y->count - 1] + delay - n.now_ms;
}

int attempts_local_take(struct attempts_local *l, const struct str *subjects, const int64_t *limits,
                        size_t count, struct attempts_now n, int64_t *wait_ms)
{
    int64_t wait = 0;
    for (size_t i = 0; i < count; i++) {
        struct tally *y = map_get(l->tallies, subjects[i]);
        if (!y)
            continue;
        forget_old(y, n);
        int64_t until = wait_of(y, limits[i], n);
        wait = until > wait ? until : wait;
    }
    if (wait == 0 && !has_room(l, count, n))
        return ERR_BUSY;
    for (size_t i = 0; wait == 0 && i < count; i++)
        add(l, subjects[i], n.now_ms);
    *wait_ms = wait;
    return 0;
}

void attempts_local_return(struct attempts_local *l, const struct str *subjects, size_t count,
                           bool right)
{
    if (right)
        drop(l, subjects[0]);
    for (size_t i = 0; i < count; i++) {
        struct tally *y = map_get(l->tallies, subjects[i]);
        if (y && (y->count == 0 || --y->count == 0))
            drop(l, subjects[i]);
    }
}
