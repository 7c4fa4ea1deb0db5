/* progress.h -- progress of a long command: a bar on a terminal, a line every two seconds
 * elsewhere.
 *
 *     [#########---------------]  38%  380000 papers  21034 papers/s  27 s left
 *
 * Everything goes to standard error. */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct progress {
    struct loop *loop;   /* borrowed, for its clock */
    const char *command; /* "db init": begins each line that is not a bar */
    const char *noun;    /* "papers" */
    int64_t total;       /* of `done` below: bytes or papers; 0: not known */
    int64_t begun_us, shown_us;
    bool terminal, drawn;
};

void progress_init(struct progress *p, struct loop *l, const char *command, const char *noun,
                   int64_t total);
/* May be called for every item: it reads the clock and mostly returns. done is the share of total,
 * count the number of the noun so far. */
void progress_show(struct progress *p, int64_t done, int64_t count);
void progress_end(struct progress *p); /* wipes the bar */
double progress_seconds(const struct progress *p);
#endif
