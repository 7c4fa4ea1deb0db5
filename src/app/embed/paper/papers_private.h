/* papers_private.h -- what the files of papers know of each other.
 *
 *   papers.c  what a node holds; the kind of its jobs
 *   rows.c    papers that were found, for searches
 *   read.c    the papers of a unit, out of blocks
 *   want.c    units are queued; MySQL alone
 *   work.c    a job, from its row to its end
 *   put.c     its papers get vectors, in full batches with those of other units
 *   write.c   its steps that change rows of papers
 *   space.c   a new model, and what loads have changed: the roles
 *   look.c    how far it is */
#ifndef APP_EMBED_PAPER_PAPERS_PRIVATE_H
#define APP_EMBED_PAPER_PAPERS_PRIVATE_H

#include "app/embed/paper/paper.h"
#include "engine/search/collection.h"
#include "engine/search/words.h"
#include "engine/setup/node.h"
#include "loop/sync.h"
#include "wire/sql.h"

#define PAPER_OPEN    "('pending', 'working')"
#define PAPER_LARGE   256  /* papers: few units of more are in memory at once */
#define PAPER_LEAVING (-1) /* embedding_paper.version: its points and words are being removed */

struct paper_puts {            /* put.c */
    struct list line;          /* struct bringing: papers that are to be put, in their order */
    int64_t since_ms;          /* when the line began, or some of it were taken */
    size_t coming;             /* units that are being read */
    size_t putters, under_way; /* under_way: of them, in a put */
    bool looks;                /* one of them looks at the line, or is about to */
    struct waitq news;
};

struct papers {
    struct node *node;
    struct job_kind kind;
    struct paper_puts puts;
    struct sem large; /* units of more than PAPER_LARGE papers in memory */
    int64_t *embedded, *chunks, *worded, *dropped, *refused, *overtaken;
    int64_t load_seen; /* the last load whose changes are queued; -1: none yet */
    /* For tests: other collections, and a node that dies after a step (other than 0). */
    bool service; /* there is an embedding service */
    int (*put)(struct task *t, struct collections *c, enum collection which,
               const struct collection_document *docs, size_t count, const bool *asks,
               const struct collection_fence *fence, struct collection_outcome *outcomes,
               int64_t *space);
    int (*drop)(struct task *t, struct collections *c, enum collection which,
                const uint64_t *owners, size_t count, const struct collection_fence *fence);
    int64_t (*space)(const struct collections *c, enum collection which, bool *building);
    int (*complete)(struct task *t, struct collections *c, enum collection which, int64_t space);
    int (*dies)(struct task *t, const char *after);
};

/* --- read.c --- */

struct paper_doc { /* a paper of the corpus; texts are in the task's arena */
    uint64_t owner;
    struct str doi, title, text;
    int64_t digest; /* of title and text */
    struct str *chunks;
    size_t chunk_count;
    /* What embedding_paper says of it (work.c). */
    bool known; /* words and row are of this digest, journal and year */
    int64_t space;
};
struct paper_unit {
    struct str journal;
    int64_t year, slice, slices;
};
/* Those of a unit that have a title or an abstract, by owner, ascending; *bare: the others. None if
 * the block is gone. */
MUST_CHECK int paper_read_unit(struct task *t, const struct node *n, const struct paper_unit *u,
                               struct paper_doc **docs, size_t *count, int64_t *bare);
/* Title and abstract of some BibTeX each, of pieces that a helper thread reads. */
struct paper_text {
    struct str bibtex, title, text; /* p == NULL: it has none */
};
MUST_CHECK int paper_read_texts(struct task *t, struct paper_text *list, size_t count);

/* --- write.c --- */

struct paper_work { /* a job */
    struct papers *papers;
    const struct job *job;
    bool final; /* nothing is left to do */
    struct paper_unit unit;
    bool large;
    int64_t digest; /* of the block */
    int64_t space;  /* that all its vectors are of */
    struct paper_doc *docs;
    size_t count;
    int64_t bare;
    struct point_tags tags;
};
#define PAPER_OF_THIS " WHERE id = ? AND version = ? AND state IN " PAPER_OPEN

int paper_dies(struct task *t, const struct paper_work *w, const char *step);
/* In a transaction: w->final: the unit is not in this version any more, or has ended. Locks it. */
MUST_CHECK int paper_work_check(struct task *t, struct sql *c, struct paper_work *w);
/* Rows of this unit, and of its papers, against the papers: docs[].known, docs[].space; owners that
 * have left, ascending. ERR_UNAVAILABLE: another unit is removing one of its papers. */
MUST_CHECK int paper_compare(struct task *t, struct paper_work *w, uint64_t **gone, size_t *count);
MUST_CHECK int paper_remove(struct task *t, struct paper_work *w, const uint64_t *gone,
                            size_t count);
/* Words and rows of papers that are not known. */
MUST_CHECK int paper_write_words(struct task *t, struct paper_work *w);
/* The papers list[0..count) have vectors of this space. */
MUST_CHECK int paper_write_space(struct task *t, struct paper_work *w,
                                 struct paper_doc *const *list, size_t count, int64_t space);

/* A paper as it was read: its vectors may be changed while its row says the same; it is locked. */
struct paper_as_read {
    const struct paper_unit *unit;
    uint64_t owner;
    int64_t version; /* digest, or PAPER_LEAVING */
};
struct papers_as_read { /* the arg of paper_fence_may */
    const struct paper_as_read *list;
    size_t count;
};
MUST_CHECK int paper_fence_may(struct task *t, struct sql *c, void *arg, bool *may);

/* --- put.c --- */

void paper_puts_init(struct papers *p);
/* A unit is being read, and will bring papers; it has them, or there are none. */
void paper_comes(struct papers *p);
void paper_came(struct papers *p);
/* Vectors for those papers of a unit that have none of the space of today, and their rows. */
MUST_CHECK int paper_put_all(struct task *t, struct paper_work *w);

/* --- papers.c, work.c --- */

extern const struct job_rows paper_job_rows;
job_fn paper_work_on;
#endif
