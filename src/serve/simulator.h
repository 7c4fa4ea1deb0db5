/* simulator.h -- the simulated AI as a child: `millrace sim` on a loopback port of its own.
 *
 * The port is found once and stays the same, also when the simulator is restarted and over
 * reloads: nodes know it. */
#ifndef SERVE_SIMULATOR_H
#define SERVE_SIMULATOR_H

#include "serve/child.h"

struct simulator {
    struct supervision *shared;
    bool stop;    /* set by the owner: end it */
    int port;     /* 0 until it listens; given after a reload */
    int failures; /* in a row: starts that came to nothing */
    struct child child;
};

/* Starts its task in g, which takes over the running process pid if that is not 0. */
MUST_CHECK int simulator_go(struct simulator *s, struct group *g, pid_t pid);
#endif
