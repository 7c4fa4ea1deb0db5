/* init_report_private.h -- the data of a report, for the two that write it out. */
#ifndef TOOL_DB_INIT_REPORT_PRIVATE_H
#define TOOL_DB_INIT_REPORT_PRIVATE_H

#include "base/map.h"
#include "tool/db/init_report.h"

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

/* Journals of which entries were read, by name. In a. */
struct init_journal **init_report_journals(struct arena *a, const struct init_report *r,
                                           size_t *count);
/* The most frequent first. In a. */
const struct init_reason **init_report_reasons(struct arena *a, const struct init_report *r,
                                               size_t *count);
#endif
