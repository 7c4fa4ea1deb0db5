/* chunks.h -- split and papers of applications whose runs name their papers one by one
 * (engine/chosen/frozen.h). */
#ifndef ENGINE_CREW_CHUNKS_H
#define ENGINE_CREW_CHUNKS_H

#include "engine/crew/application.h"

struct redis;
struct sql_pool;

/* All chunks, also when only failed papers are tried again: the chunk of a paper is known only by
 * reading it, and papers of a chunk that have a verdict are skipped. */
MUST_CHECK int chunks_split(struct task *t, const struct node *n, const struct app_run *run,
                            struct str **units, size_t *count);
/* A paper costs so many cents for each point of its journal. */
MUST_CHECK int chunks_papers(struct task *t, struct redis *redis, struct sql_pool *sql,
                             const struct app_run *run, struct str unit, int64_t cents,
                             struct app_paper **papers, size_t *count);
#endif
