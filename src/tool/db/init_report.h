/* init_report.h -- the report of `db init`: printed at its end, and as JSON.
 *
 * Counts every entry exactly once: read = stored + updated + unchanged + duplicate + rejected. */
#ifndef TOOL_DB_INIT_REPORT_H
#define TOOL_DB_INIT_REPORT_H

#include "base/map.h"

#define INIT_PROBLEMS_MAX   10000 /* kept with path and line; more are only counted */
#define INIT_PROBLEMS_SHOWN 20    /* printed at the end */

struct init_counts {
    int64_t read;
    int64_t stored;    /* new */
    int64_t updated;   /* changed since they were stored, or now owned by another file */
    int64_t unchanged; /* stored already */
    int64_t duplicate; /* an earlier entry has the DOI */
    int64_t rejected;  /* with a problem each */
    int64_t made_up;   /* of those accepted: without a DOI */
    int64_t bare;      /* of those accepted: without an abstract */
};

/* The same by index. */
#define INIT_COUNTS (sizeof(struct init_counts) / sizeof(int64_t))
extern const char *const init_count_names[INIT_COUNTS];
static inline int64_t *init_count(struct init_counts *c, size_t i)
{
    return &c->read + i;
}

struct init_totals {
    int64_t files_read, files_unchanged, files_failed;
    int64_t keys_found, keys_new;
    int64_t journals_found, journals_changed; /* rows of InfoList.Paper.csv */
    int64_t tags, tags_changed, pairs, pairs_changed;
    int64_t blocks_changed; /* journal and year */
    int64_t years_changed;  /* journals with other numbers of papers in the catalog */
    int64_t load;           /* its number */
    bool cut_off_before;    /* the load before has not ended: what it changed, it has not said */
    int64_t papers_left;    /* not in their files any more, and still in the corpus */
    int64_t files_unknown;  /* that papers may have left, but how many is not known */
    int64_t papers_kept;    /* missing, but from files with damaged entries */
    int64_t files_kept;     /* those files */
    int64_t papers_withdrawn;
    bool prune_skipped; /* a file could not be read, or changed meanwhile */
    int64_t dictionary; /* number of one that was trained; 0: none was */
    double seconds;
};

struct init_problem {
    struct str path, about;
    const char *reason;
    int64_t line;
    bool lost;
};

struct init_reason {
    const char *text;
    int64_t lost, noted;
};

struct init_journal {
    struct str name;
    struct init_counts counts;
};

struct init_report {
    struct arena arena; /* everything below but the maps */
    struct init_totals totals;
    struct map *journals; /* name: struct init_journal */
    struct map *reasons;  /* text: struct init_reason */
    struct init_problem *problems;
    size_t problem_count, noted_count;
    int64_t left_out; /* problems beyond the limit, or notes beyond theirs */
};

struct init_report *init_report_new(void);
void init_report_free(struct init_report *r);

/* Adds a problem: "Data/NATURE/2024.bib:17: no year (entry smith2024)". line 0: the whole file.
 * reason is a constant, and problems are counted by it; about (may be empty) names the entry. path
 * and about are copied, a long about is cut. lost: something was left out; else it is a note. */
void init_report_problem(struct init_report *r, const char *path, int64_t line, bool lost,
                         const char *reason, struct str about);

/* The numbers of one journal, made when first asked for; valid until the report is freed. */
struct init_counts *init_report_journal(struct init_report *r, struct str journal);

struct init_counts init_report_sum(const struct init_report *r);

/* Journals of which entries were read, by name. In a. */
struct init_journal **init_report_journals(struct arena *a, const struct init_report *r,
                                           size_t *count);
/* The most frequent first. In a. */
const struct init_reason **init_report_reasons(struct arena *a, const struct init_report *r,
                                               size_t *count);

void init_report_print(const struct init_report *r, bool all_journals); /* to standard output */
/* ERR_IO with errno. Written aside and renamed. */
MUST_CHECK int init_report_save(const struct init_report *r, const char *path);
#endif
