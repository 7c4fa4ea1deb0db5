/* warm.h -- fills Redis from MySQL: the catalog first, then every block that is missing or out of
 * date. `millrace db warm` does it once; a node does it when it starts, and again when Redis was
 * restarted. Several may do it at once: each block is built by one of them. */
#ifndef ENGINE_PAPERS_WARM_H
#define ENGINE_PAPERS_WARM_H

#include "engine/papers/block.h"
#include "engine/papers/catalog.h"

enum warm_state { WARM_WAITING, WARM_CATALOG, WARM_BLOCKS, WARM_DONE, WARM_FAILED };

/* Other tasks read it while warm_run fills it. */
struct warm_progress {
    enum warm_state state;
    bool catalog_loaded; /* once true, it stays so: the keys have no TTL */
    struct catalog_size catalog;
    int64_t blocks, blocks_ready; /* all there are; in Redis and up to date */
    int64_t papers, papers_ready;
    int64_t blocks_built, papers_built; /* by this process */
    char problem[256];                  /* WARM_FAILED: why */
};

struct warm_options {
    struct redis *redis;
    struct sql_pool *sql;
    struct blocks *blocks;
    size_t tasks;     /* blocks built at the same time */
    bool rebuild_all; /* also those that are up to date */
};

/* Fills *p from the start; on an error p->state is WARM_FAILED and p->problem tells why. */
MUST_CHECK int warm_run(struct task *t, const struct warm_options *o, struct warm_progress *p);

const char *
warm_state_name(enum warm_state s); /* "waiting", "catalog", "blocks", "done", "failed" */
#endif
