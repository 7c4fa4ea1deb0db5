/* simulator.h -- the simulated AI as a child: `millrace sim` on a loopback port of its own.
 *
 * The port is chosen once and stays the same over restarts of the simulator and over reloads: nodes
 * have it in their settings. */
#ifndef SERVE_SIMULATOR_H
#define SERVE_SIMULATOR_H

#include "serve/child.h"

struct simulator {
    struct supervision *shared;
    bool stop;    /* set by the owner: end it */
    int port;     /* 0 until it listens; set from the handover after a reload */
    int failures; /* failed starts in a row */
    struct child child;
};

/* Starts its task in g, which adopts the running process pid if that is not 0. */
MUST_CHECK int simulator_go(struct simulator *s, struct group *g, pid_t pid);
#endif
