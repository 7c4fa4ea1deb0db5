/* frozen.h -- runs whose papers are named one by one: distillations, and screenings of the papers
 * that are nearest to a text (SCR-1, DIS-3).
 *
 * Such papers are written to distill_paper in the transaction that writes the run's row (member
 * `also` of run_enter), with numbers from 0 on. So they stay the same whatever happens to the
 * corpus, to the index they came from, or to Redis. A unit is a chunk of them: a hundred, or fewer,
 * so that each of the user's workers has one. A chunk in Redis is a copy that may expire any time.
 * How many papers there are, and how many to a chunk, is frozen in search_params: "papers",
 * "chunk". */
#ifndef ENGINE_RUNS_FROZEN_H
#define ENGINE_RUNS_FROZEN_H

#include "engine/runs/run.h"

#define FROZEN_CHUNK_PAPERS 100
#define FROZEN_CHUNK_TTL_MS (7LL * 24 * 3600 * 1000)

struct frozen_paper {
    struct str doi, journal;
    int64_t year;
    int64_t price; /* points, as frozen in search_params; only frozen_read fills it in */
};

/* --- at the submission --- */

/* Papers to a chunk: so few that each of the user's workers has one (DIS-1). */
MUST_CHECK int frozen_chunk_size(struct task *t, struct sql_pool *sql, int64_t uid, int64_t papers,
                                 int64_t *out);
/* Members "papers" and "chunk" of search_params. */
void frozen_put(struct json_writer *j, int64_t papers, int64_t chunk);
/* Writes papers of a run, in their order; for `also` of run_enter. */
MUST_CHECK int frozen_write(struct task *t, struct sql *c, struct str qid,
                            const struct frozen_paper *papers, size_t count);

/* --- afterwards --- */

struct frozen {
    struct run_id id;
    const struct json *params; /* borrowed */
    int64_t papers, chunk;
};
/* ERR_INVALID: the parameters are of a run of another kind. */
MUST_CHECK int frozen_open(struct task *t, struct run_id id, const struct json *params,
                           struct frozen *out);
/* Names of its chunks, which are those of the run's units; in the task's arena. */
void frozen_units(struct task *t, const struct frozen *f, struct str **names, size_t *count);
/* The papers of one: from Redis, else from MySQL, which fills Redis again. ERR_PROTO: it is no
 * chunk of this run, or MySQL lacks papers. */
MUST_CHECK int frozen_read(struct task *t, struct redis *redis, struct sql_pool *sql,
                           const struct frozen *f, struct str name, struct frozen_paper **papers,
                           size_t *count);
#endif
