/* sample_progress.h -- how far the work is: a bar on a terminal, a line now and then elsewhere. */
#ifndef TOOL_SAMPLE_PROGRESS_H
#define TOOL_SAMPLE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct sample_progress {
    struct loop *loop; /* borrowed, for its clock */
    int64_t total;     /* papers */
    int64_t begun_us, shown_us;
    bool terminal, drawn;
};

void sample_progress_init(struct sample_progress *p, struct loop *l, int64_t total);
/* Call it as often as you like: it reads the clock and mostly returns. */
void sample_progress_show(struct sample_progress *p, int64_t papers, int64_t bytes);
void sample_progress_end(struct sample_progress *p); /* wipes the bar */
double sample_progress_seconds(const struct sample_progress *p);
#endif
