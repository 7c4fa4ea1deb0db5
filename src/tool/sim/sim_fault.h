/* sim_fault.h -- the fault of a request, chosen by the seed and the request's number.
 *
 * The same seed and the same number always give the same fault and the same delay, independent of
 * all other requests. */
#ifndef TOOL_SIM_FAULT_H
#define TOOL_SIM_FAULT_H

#include "base/str.h"

enum sim_fault {
    FAULT_NONE,
    FAULT_LIMITED,    /* 429 with Retry-After */
    FAULT_ERROR,      /* 500 */
    FAULT_OVERLOADED, /* 503 */
    FAULT_TIMEOUT,    /* nothing for a long time, then the connection is cut */
    FAULT_CUT,        /* cut, before or in the middle of the reply */
    FAULT_GARBAGE,    /* 200 with a body that is not JSON */
    FAULT_TRICKLE,    /* the right reply, a few bytes at a time */
    FAULT_FENCED,     /* the right verdict wrapped in other text; still readable */
    FAULT_UNREADABLE, /* a well-formed reply without a verdict in it */
    FAULT_THINKING,   /* the right verdict behind thoughts, in one of their shapes; readable */
    FAULT_CLIPPED,    /* thoughts only: cut off at the limit of tokens */
    FAULT_WRAPPED,    /* the right reply with status 201, a byte order mark, or by gzip; readable */
    FAULT_COUNT,
};

struct sim_faults {
    double rate;    /* 0 to 1 */
    uint32_t kinds; /* a bit per enum sim_fault */
    uint64_t seed;
};

#define SIM_FAULTS_ALL (((1u << FAULT_COUNT) - 1) & ~(1u << FAULT_NONE))

const char *sim_fault_name(enum sim_fault f); /* "429", "500", "timeout" …; "none" */
/* "429,timeout,cut" or "all". False when a name is unknown; *bad is that name. */
bool sim_fault_kinds(struct str list, uint32_t *kinds, struct str *bad);

struct sim_fate { /* of one request */
    enum sim_fault fault;
    uint64_t dice; /* random bits for all other choices */
};
struct sim_fate sim_fault_pick(const struct sim_faults *f, uint64_t number);

/* base_ms plus 0 to jitter_ms. */
int64_t sim_fault_delay_ms(const struct sim_fate *fate, int64_t base_ms, int64_t jitter_ms);
#endif
