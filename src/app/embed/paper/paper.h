/* paper.h -- papers as points: which are indexed, and what an owner's number stands for (EMB-5).
 *
 * Owns the tables embedding_unit and embedding_paper. The owner of a paper's points and words is a
 * hash of its DOI (collection_paper_owner); embedding_paper has the DOI of each owner that is
 * indexed, its journal and year, and the digest of what was indexed.
 *
 * A unit is the papers of a journal and year, or a slice of them: about PAPER_UNIT of them, those
 * with owner % slices == slice. It is a row of embedding_unit, and the promise of a job (queue
 * "papers", engine/jobs/jobs.h). Nothing but rows tells of work: jobs_soon_role pushes them, so a
 * command line without Redis can ask for it, too (want.c).
 *
 *   1. papers_want has units made, or a later version of them: their state is pending.
 *   2. The job (work.c) reads the papers of its unit, title and abstract, and what embedding_paper
 *      says of them and of others of its unit.
 *   3. What has left goes: its row says so, then points go, then words and the row together.
 *   4. What is new or changed gets words and a row with its digest, and space 0, together. So each
 *      owner that has points or words has a row.
 *   5. Papers without vectors of the space of today are embedded, in full batches of the service
 *      that begin and end where they may within units (put.c): most years of a journal have fewer
 *      papers than a batch has room for. When all of up to PAPER_PUT chunks of a unit are stored,
 *      their rows name that space.
 *   6. The row of the unit gets its counts, and is completed by the engine. What it was made of
 *      (digest) is the block's as it was before the papers were read: what changes later is found.
 *
 * Always true, whatever dies when:
 *   - a job that is done again, by the same or another node, repeats no call for papers whose rows
 *     say that they are done, and ends with the same rows, words and points;
 *   - a paper that changes its journal or year is taken over by its new unit, unless the old one is
 *     removing it just then: the new one waits for that;
 *   - a job that was overtaken (its node stood still, the unit was worked on in a later version)
 *     changes no vectors of papers whose rows say otherwise by now: the change looks at the rows,
 *     and locks them (collection_fence). What it has stored of others it finds afterwards: their
 *     rows lose the space, and the unit is queued again;
 *   - papers with neither title nor abstract are not indexed.
 * When the embedding service is away units wait, say so, and lose no try. Words do not wait. */
#ifndef APP_EMBED_PAPER_PAPER_H
#define APP_EMBED_PAPER_PAPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/embed/error.h"
#include "app/embed/extent.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/jobs/jobs.h"
#include "engine/store/role.h"

struct admin_deed;
struct node;
struct papers;
struct sql_pool;
struct task;

#define PAPER_QUEUE          "papers"
#define PAPER_PRIORITY       10
#define PAPER_UNIT           1000 /* papers; a unit that grows to twice as many is cut anew */
#define PAPER_SLICES_MAX     1000
#define PAPER_PUT            256 /* chunks that a unit brings at a time */
#define PAPER_CHUNK_TOKENS   500 /* as of posts: most papers are one chunk */
#define PAPER_OVERLAP_TOKENS 100
#define PAPER_CHUNKS_MAX     16 /* of a paper: what is behind them is found by words alone */
#define PAPER_SPACE_EACH_MS  2000
#define PAPER_NEWS_EACH_MS   5000

/* Borrows n, whose jobs, blocks, collections and config it uses; adds the queue. */
struct papers *papers_new(struct node *n);
void papers_free(struct papers *p);

/* --- for searches --- */

struct paper_row {
    uint64_t owner;
    struct str doi, journal;
    struct str title, text; /* plain text: title and abstract; p == NULL: it has none */
    int64_t year;
};
#define PAPER_ROWS_MAX 1000 /* in one question */

/* The papers of these owners that are in the corpus, in the order of owners: *found of them, in
 * rows, which has room for count. Owners that are not known, or whose paper has left, are left out.
 * Texts are in the task's arena. ERR_UNAVAILABLE, ERR_BUSY: a store does not answer. */
MUST_CHECK int paper_rows(struct task *t, const struct node *n, const uint64_t *owners,
                          size_t count, struct paper_row *rows, size_t *found);

struct papers_filter {
    const struct str *journals; /* none: of any */
    size_t count;               /* at most PAPERS_JOURNALS_MAX */
    int64_t year_from, year_to; /* 0: any */
};
/* How many of these papers can be found. */
MUST_CHECK int papers_extent(struct task *t, struct sql_pool *sql, const struct papers_filter *f,
                             struct embed_extent *out);

/* --- what is wanted; MySQL is enough --- */

enum papers_which {
    PAPERS_JOURNALS, /* all papers of these */
    PAPERS_ALL,
    PAPERS_CHANGED, /* of journals that are indexed: what the corpus has otherwise by now */
    PAPERS_FAILED,  /* units */
};
struct papers_wish {
    enum papers_which which;
    const struct str *journals; /* each once */
    size_t count;
    const struct admin_deed *by; /* noted with each journal; NULL: nothing is */
};
#define PAPERS_JOURNALS_MAX 1000 /* of a wish */
struct papers_wanted {
    int64_t units, papers; /* that are queued by this; papers: about */
    struct str unknown;    /* a journal without papers; p == NULL: none is */
};
/* Units that wait already, or are in work on the same papers, are left as they are. ERR_NOT_FOUND:
 * out->unknown; nothing is queued then. Idempotent; after another error some journals are done. */
MUST_CHECK int papers_want(struct task *t, struct sql_pool *sql, const struct papers_wish *w,
                           struct papers_wanted *out);

/* --- how far it is --- */

struct papers_look {
    int64_t total;   /* papers of the corpus */
    int64_t indexed; /* found by their words; embedded: by meaning, too */
    int64_t embedded;
    int64_t bare;    /* neither title nor abstract: not indexed */
    int64_t refused; /* the service gave no vector for them */
    int64_t units_pending, units_working, units_failed;
    int64_t papers_left; /* of units that are pending or in work, about */
    int64_t papers_done; /* of the others */
};
MUST_CHECK int papers_look(struct task *t, struct sql_pool *sql, struct papers_look *out);

struct paper_journal {
    struct str journal;
    int64_t papers, indexed, embedded, refused;
    int64_t units_waiting, units_failed; /* waiting: or in work */
    bool changed;                        /* the corpus has other papers than were indexed */
    struct str error, reason;            /* of one of its units; p == NULL: none */
};
/* In the order of their names, those after `after` whose name has q in it. */
MUST_CHECK int papers_journals(struct task *t, struct sql_pool *sql, struct str q, struct str after,
                               int64_t limit, struct paper_journal **out, size_t *count);

/* --- background roles, with a lock; arg: a struct papers --- */

role_fn papers_space_role; /* vectors of a former model are made anew, every PAPER_SPACE_EACH_MS */
role_fn papers_news_role;  /* what a load has changed, every PAPER_NEWS_EACH_MS */
#endif
