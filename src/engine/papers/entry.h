/* entry.h -- one paper of the corpus by its DOI alone, and what its entry says. */
#ifndef ENGINE_PAPERS_ENTRY_H
#define ENGINE_PAPERS_ENTRY_H

#include "corpus/paper.h"

struct sql_pool;
struct task;

struct entry {
    struct str doi, journal; /* as the corpus has them */
    int64_t year;
    struct str bibtex; /* the entry, with the @strings it needs */
    struct paper_fields fields;
};

/* As MySQL has it, in the task's arena. doi: as people write it, an address too.
 * ERR_NOT_FOUND: there is no such paper. ERR_UNAVAILABLE: MySQL does not answer. */
MUST_CHECK int entry_find(struct task *t, struct sql_pool *sql, struct str doi, struct entry *out);
/* What BibTeX says, in the task's arena; nothing (p == NULL) if it has no entry. */
struct paper_fields entry_fields(struct task *t, struct str bibtex);
#endif
