#include "engine/ai/breaker.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define PROBE_ENDS_MS 60000 /* waits look again, in any case */

void breaker_init(struct breaker *b, const char *service, int64_t *gauge)
{
    *b = (struct breaker){.gauge = gauge, .service = ai_service_words(service)};
    waitq_init(&b->moved);
}

void breaker_trip(struct breaker *b, int64_t now_ms)
{
    if (b->open)
        return;
    b->open = true;
    b->pause_ms = BREAKER_PROBE_MS;
    b->probe_ms = now_ms + b->pause_ms;
    metric_set(b->gauge, 1);
    log_warn("ai",
             "%s does not work, its calls wait and one at a time tries: %s; \"millrace ai test\" "
             "shows more",
             b->service, b->fault.words);
}

/* Calls of the window: all failed, and there are enough of them. */
static bool all_failed(const struct breaker *b, int64_t now_ms)
{
    return b->failures >= BREAKER_CALLS_MIN &&
           (b->successes == 0 || now_ms - b->worked_ms >= BREAKER_WINDOW_MS) &&
           now_ms - b->failed_ms[b->failures % BREAKER_CALLS_MIN] <= BREAKER_WINDOW_MS;
}

static bool all_alike(const struct breaker *b, int64_t now_ms)
{
    return b->alike >= BREAKER_ALIKE ||
           (b->alike >= BREAKER_ALIKE_FEW && now_ms - b->alike_ms >= BREAKER_ALIKE_MS);
}

void breaker_unknown(struct breaker *b, bool probe)
{
    if (!probe)
        return;
    b->probing = false;
    waitq_wake_all(&b->moved);
}

void breaker_failed(struct breaker *b, int64_t now_ms, const char *cause, const char *words,
                    bool probe)
{
    if (b->alike == 0 || strcmp(b->fault.cause, cause) != 0) {
        b->alike = 0;
        b->alike_ms = now_ms;
    }
    b->alike++;
    snprintf(b->fault.cause, sizeof b->fault.cause, "%s", cause);
    snprintf(b->fault.words, sizeof b->fault.words, "%s", words);
    b->failed_at_ms = now_ms;
    if (b->failures == 0)
        b->since_ms = now_ms;
    b->failed_ms[b->failures++ % BREAKER_CALLS_MIN] = now_ms;
    if (!b->open && (all_alike(b, now_ms) || all_failed(b, now_ms)))
        breaker_trip(b, now_ms);
    if (!probe)
        return;
    b->pause_ms = b->pause_ms * 2 < BREAKER_PROBE_MS_MAX ? b->pause_ms * 2 : BREAKER_PROBE_MS_MAX;
    b->probe_ms = now_ms + b->pause_ms;
    breaker_unknown(b, probe);
}

void breaker_worked(struct breaker *b, int64_t now_ms)
{
    b->successes++;
    b->failures = b->alike = 0;
    b->worked_ms = now_ms;
    if (b->open) {
        b->open = false;
        metric_set(b->gauge, 0);
        log_info("ai", "the AI service works again, after %lld s",
                 (long long)(now_ms - b->since_ms) / 1000);
        b->probing = false;
        waitq_wake_all(&b->moved);
    }
}

int breaker_enter(struct task *t, struct breaker *b, bool *probe)
{
    *probe = false;
    while (b->open) {
        int64_t left_ms = b->probe_ms - loop_now_ms(task_loop(t));
        if (!b->probing && left_ms <= 0) {
            b->probing = *probe = true;
            return 0;
        }
        int64_t old = task_deadline(t, b->probing ? PROBE_ENDS_MS : left_ms);
        int err = waitq_wait(t, &b->moved);
        task_deadline_restore(t, old);
        if (err && !(err == ERR_TIMEOUT && task_time_left_ms(t) > 0))
            return err;
    }
    return 0;
}
