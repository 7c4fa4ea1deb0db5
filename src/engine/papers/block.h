/* block.h -- the papers of one journal and year in Redis, as meta:<Journal>:<Year>.
 *
 * A hash: DOI -> BibTeX packed with a dictionary, and one field BLOCK_HEADER -> "<papers> <digest>
 * <as of> <changed>", see struct block_version. How one comes to be:
 *
 *   1. a task misses it, or finds that its header differs from corpus_block;
 *   2. it takes the lock of this block, or waits for the holder (singleflight over all nodes);
 *   3. it looks again: the block may have been built meanwhile;
 *   4. it reads corpus_block first and paperinfo after that, by its index, so that the header never
 *      claims more than the papers hold; and corpus_block.load_no after both, so that no paper is
 *      newer than what the header says of changes;
 *   5. it packs them on helper threads and fills a key aside, with a time to live;
 *   6. a script checks the lock's token and the number of fields, and renames the key into place.
 *
 * Always true:
 *   - a block that can be seen is whole: its header's count is the number of its papers, and one
 *     where it is not counts as missing;
 *   - one build of it runs at a time over all nodes; when a builder dies, its lock expires after
 *     BLOCK_LOCK_MS and another task builds;
 *   - its TTL is seven days from its last use, shortened at random by up to a tenth, so that blocks
 *     filled together do not expire together;
 *   - values packed with an older dictionary stay readable: table zstd_dictionary keeps all of
 *     them, and one that is not known yet is fetched when it is met. */
#ifndef ENGINE_PAPERS_BLOCK_H
#define ENGINE_PAPERS_BLOCK_H

#include "base/metrics.h"
#include "wire/redis.h"
#include "wire/sql.h"

struct blocks;

#define BLOCK_HEADER  "block" /* no DOI looks like this */
#define BLOCK_TTL_MS  (7LL * 24 * 3600 * 1000)
#define BLOCK_LOCK_MS 30000

struct blocks_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct metrics *metrics; /* hits, misses, blocks and papers built */
};
struct blocks *blocks_new(const struct blocks_options *o);
void blocks_free(struct blocks *b);

struct block_version {
    int64_t papers,
        digest;      /* as in table corpus_block: with both the same, it has the same papers */
    int64_t as_of;   /* the papers are no older than the end of this load; -1: not known */
    int64_t changed; /* no load after this one has changed which papers these are */
};

/* --- frozen sets (SCR-1) ---
 *
 * A run is over the papers that there were at the end of one load. Papers come and leave while it
 * waits and works; table corpus_change tells which, so the papers of a block at the end of load L
 * follow from those of any later moment. What is read before those changes, and is as of L or
 * later, has no paper whose coming is not among them. While nothing has changed since L, the header
 * says so, and MySQL is not asked. */

struct block_paper {
    struct str doi;
    struct str packed;
};

struct block {
    struct block_version version;
    size_t count;
    const struct block_paper *papers; /* in no order */
};

/* The block, in the task's arena, from Redis or else rebuilt; its TTL starts anew.
 * ERR_NOT_FOUND: there are no papers of that journal and year. */
MUST_CHECK int block_fetch(struct task *t, struct blocks *b, struct str journal, int64_t year,
                           struct block *out);

/* The DOIs that a block had at the end of that load, in no order, none if it had no papers. A block
 * that a later load has made must not be asked for: blocks_list does not name it. */
MUST_CHECK int block_dois(struct task *t, struct blocks *b, struct str journal, int64_t year,
                          int64_t load, struct str **dois, size_t *count);
/* BibTeX of a paper, in a. Waits only for a dictionary it has not seen.
 * ERR_NOT_FOUND: that dictionary is not in MySQL. ERR_PROTO: the value is damaged. */
MUST_CHECK int block_unpack(struct task *t, struct blocks *b, struct arena *a, struct str packed,
                            struct str *bibtex);

/* Papers of any blocks, in one round trip. The TTL of these blocks starts anew; those that are
 * missing are built. A paper that is not in its block is looked for in MySQL, by its DOI: it may be
 * in another one by now, or newer than the block. packed, bibtex: in the task's arena; p == NULL:
 * there is no such paper. */
struct block_pick {
    struct str journal;
    int64_t year;
    struct str doi;
    struct str packed, bibtex;
};
/* After an error those that were found are filled in, too. */
MUST_CHECK int blocks_pick(struct task *t, struct blocks *b, struct block_pick *wants,
                           size_t count);
/* The same without unpacking them, for callers that need the text later. */
MUST_CHECK int blocks_pick_packed(struct task *t, struct blocks *b, struct block_pick *wants,
                                  size_t count);

/* Builds the block from MySQL unless Redis has it in this version already; force: even then.
 * Returns when Redis has it, from this build or another node's. *built (may be NULL): from this
 * one. ERR_NOT_FOUND: there are no papers; a block left in Redis is removed. */
MUST_CHECK int block_refresh(struct task *t, struct blocks *b, struct str journal, int64_t year,
                             bool force, bool *built);

/* Many blocks in one round trip: fresh[i] tells whether Redis has block i in this version, or if it
 * has no papers, whether Redis has none. One that is fresh is marked as being of version.as_of. */
struct block_name {
    struct str journal;
    int64_t year;
    struct block_version version;
};
#define BLOCKS_LOOK_MAX 5000 /* more would fill the pipeline that all tasks of the node share */
MUST_CHECK int blocks_look(struct task *t, struct blocks *b, const struct block_name *names,
                           size_t count, bool *fresh);

struct blocks_choice {
    const struct str *journals;
    size_t journal_count;
    int64_t year_from, year_to;
    int64_t load;
};
/* All blocks of these journals and years that had papers at the end of that load, from MySQL, in
 * the task's arena. Of version only papers is filled in: how many they were. */
MUST_CHECK int blocks_list(struct task *t, struct blocks *b, const struct blocks_choice *choice,
                           struct block_name **out, size_t *count);

/* Reads the newest dictionary from MySQL: every later build packs with it. The first build of a
 * process calls this itself. */
MUST_CHECK int blocks_learn(struct task *t, struct blocks *b);
#endif
