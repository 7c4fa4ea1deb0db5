#include "engine/watch/pace.h"

#define SECOND_US   1000000.0
#define UNIT_PAPERS 100   /* about: the last unit has one worker */
#define OVERHEAD_US 20000 /* of a paper, besides its call: to fetch and to record it */
#define SLACK       1.25  /* calls that are made again */

static double least_of(double x, double y)
{
    return x < y ? x : y;
}

/* Papers a second that the permits allow. */
static double permitted(const struct pace_facts *f)
{
    double requests = (double)f->requests_limit / 60;
    double tokens = f->tokens > 0 ? (double)f->tokens_limit / 60 / (double)f->tokens : requests;
    return least_of(requests, tokens);
}

/* At best the run has all permits and all of its workers to the end; at worst it shares the permits
 * by the number of workers, and its last unit is one worker's. */
bool pace_range(const struct pace_facts *f, int64_t *least, int64_t *most)
{
    double permits = permitted(f), papers = (double)f->papers;
    if (f->papers < 0 || f->workers_min < 1 || f->latency_us <= 0 || permits <= 0)
        return false;
    double few = (double)f->workers_min, many = (double)f->workers_max;
    double call_s = (double)f->latency_us / SECOND_US;
    double paper_s = (double)(f->latency_us + OVERHEAD_US) / SECOND_US;
    double best = least_of(many / call_s, permits);
    double worst = least_of(few / paper_s, permits * few / (few + (double)f->workers_others));
    double tail_s = least_of(papers, UNIT_PAPERS) * paper_s * (few - 1) / few;
    *least = (int64_t)(papers / best);
    *most = (int64_t)(papers * SLACK / worst + tail_s) + 1;
    return true;
}
