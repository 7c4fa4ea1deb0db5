/* What the service manager is told, and when:
 *
 *   starting    STATUS; and, while the supervisor lives, that it needs more time: a MariaDB may be
 *               repaired for minutes, and a MySQL elsewhere may be away
 *   ready       READY=1 when /readyz of every node would say 200
 *   reloading   RELOADING=1, which ends with READY=1: of the new program, or of this one if the
 *               reload was refused
 *   stopping    STOPPING=1; and more time, because drain_ms may be long
 *
 * WATCHDOG=1 stops when this process hangs, or when no node has served for the time that the
 * manager has set. A node that hangs is replaced by the fleet. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "serve/supervisor_private.h"

#define TICK_MS      10000
#define MORE_TIME    "EXTEND_TIMEOUT_USEC=60000000" /* several ticks */
#define STATUS_BYTES 400

void supervisor_tell(struct supervisor *s, enum phase phase, const char *fmt, ...)
{
    char status[STATUS_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(status, sizeof status, fmt, ap);
    va_end(ap);
    status[strcspn(status, "\n")] = '\0'; /* the rest would be lines of the protocol */

    s->phase = phase;
    if (phase == PHASE_READY)
        notify_send(&s->notify, "READY=1\nSTATUS=%s", status);
    else if (phase == PHASE_RELOADING)
        notify_send(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%lld\n" MORE_TIME "\nSTATUS=%s",
                    (long long)loop_now_us(s->shared.loop), status);
    else
        notify_send(&s->notify, "%s" MORE_TIME "\nSTATUS=%s",
                    phase == PHASE_STOPPING ? "STOPPING=1\n" : "", status);
}

static bool is_well(const struct supervisor *s)
{
    return s->phase != PHASE_READY || fleet_ready(&s->fleet) > 0 || fleet_old(&s->fleet) > 0;
}

static void beat(struct task *t, void *arg)
{
    struct supervisor *s = arg;
    int64_t half_ms = s->notify.watchdog_ms / 2;
    int64_t each_ms = half_ms && half_ms < TICK_MS ? half_ms : TICK_MS;
    while (!s->ended) {
        if (half_ms && is_well(s))
            notify_send(&s->notify, "WATCHDOG=1");
        if (s->phase != PHASE_READY)
            notify_send(&s->notify, MORE_TIME);
        supervision_pause(t, &s->shared, each_ms, &s->ended);
    }
}

void supervisor_beat_go(struct supervisor *s, struct group *g)
{
    if (s->notify.fd >= 0)
        check(task_go(g, "beat", beat, s) == 0);
}
