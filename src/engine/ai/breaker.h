/* breaker.h -- whether a service works, as this node sees it: a circuit breaker (SCR-12).
 *
 * It opens when none of the calls that ended in the last BREAKER_WINDOW_MS succeeded, if there were
 * BREAKER_CALLS_MIN; when the last BREAKER_ALIKE failed for the same cause, or the last few did for
 * BREAKER_ALIKE_MS; and when a caller has tried in vain for its part (breaker_trip). While it is
 * open, callers wait, and one of them at a time tries, with backoff up to BREAKER_PROBE_MS_MAX. The
 * first success closes it. */
#ifndef ENGINE_AI_BREAKER_H
#define ENGINE_AI_BREAKER_H

#include "engine/ai/ai.h"
#include "loop/sync.h"

#define BREAKER_WINDOW_MS    10000
#define BREAKER_CALLS_MIN    10
#define BREAKER_ALIKE        20
#define BREAKER_ALIKE_FEW    4
#define BREAKER_ALIKE_MS     500
#define BREAKER_PROBE_MS     250
#define BREAKER_PROBE_MS_MAX 4000 /* a service that has returned is noticed so soon */

struct breaker {
    struct ai_fault fault;                /* the last one */
    size_t alike;                         /* how many failed like it, in a row, */
    int64_t alike_ms;                     /* and since when */
    int64_t failed_ms[BREAKER_CALLS_MIN]; /* ring: when the last ones failed */
    uint64_t failures, successes;         /* failures: since the last success */
    bool open, probing;
    int64_t since_ms;     /* of the first failure after the last success */
    int64_t worked_ms;    /* the last success */
    int64_t failed_at_ms; /* the last failure */
    int64_t probe_ms;     /* the next probe: not before; */
    int64_t pause_ms;     /* after that one fails: for so long */
    struct waitq moved;   /* it was closed, or a probe has ended */
    int64_t *gauge;       /* 1: open */
    const char *service;  /* as the log calls it */
};

/* service is a name of service.h. */
void breaker_init(struct breaker *b, const char *service, int64_t *gauge);
/* Waits while it is open. *probe: the caller is the one that tries; it must call one of the next
 * three. ERR_CANCELED, ERR_TIMEOUT. */
MUST_CHECK int breaker_enter(struct task *t, struct breaker *b, bool *probe);
void breaker_worked(struct breaker *b, int64_t now_ms);
void breaker_failed(struct breaker *b, int64_t now_ms, const char *cause, const char *words,
                    bool probe);
void breaker_unknown(struct breaker *b, bool probe); /* the call was given up */
/* Opens it: a caller has failed again and again, and no call has succeeded meanwhile. */
void breaker_trip(struct breaker *b, int64_t now_ms);
#endif
