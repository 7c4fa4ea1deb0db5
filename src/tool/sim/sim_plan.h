/* sim_plan.h -- plans, as the simulated AI makes them: training or nutrition, by the day.
 *
 * sim.h has the format of prompts. The same prompt always gets the same plan, and the same fault:
 * which prompts get one, and of which kind, depends on their text alone. */
#ifndef TOOL_SIM_PLAN_H
#define TOOL_SIM_PLAN_H

#include "base/buf.h"
#include "base/str.h"

struct sim_plan { /* what a prompt asks for */
    bool nutrition;
    int64_t start_us; /* of its first day */
    int64_t weeks;    /* 1 to SIM_PLAN_WEEKS_MAX */
    uint64_t hash;    /* of the prompt */
    bool complained;  /* the conversation goes on after it, or it has a complaint */
};

#define SIM_PLAN_WEEKS_MAX 52

/* False: the message asks for no plan. */
bool sim_plan_read(struct str message, struct sim_plan *out);

struct sim_plan_faults {
    double rate; /* of plans that are wrong, 0 to 1 */
    bool stays;  /* also after a complaint */
};

enum sim_plan_fault {
    PLAN_RIGHT,
    PLAN_GAP,   /* a day is missing */
    PLAN_SUM,   /* the meals do not add up; of a training: an exercise of no sets */
    PLAN_PROSE, /* words instead of a plan */
};
enum sim_plan_fault sim_plan_fault(const struct sim_plan *p, const struct sim_plan_faults *f);

/* The plan as JSON, or as what the fault makes of it; appends. */
void sim_plan_write(const struct sim_plan *p, enum sim_plan_fault fault, struct buf *out);
#endif
