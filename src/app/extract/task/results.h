/* results.h -- the rows of a task as a table: pages, filters, order; and what is changed by hand.
 *
 * Only completed rows show values: those of others are not paid yet, or not all there.
 *
 * A page is found without reading JSON (flags.h): its cost grows with the rows of the task, of
 * which there are at most EXTRACT_DOCUMENTS_MAX, not with their values. A cursor is the place and
 * the sort key of the last row that was shown, so rows that are edited meanwhile are neither shown
 * twice nor left out, unless their own key moves past it.
 *
 * An edit changes one field of one completed row. Always true:
 *   - the row's version goes up with each, and one that names another version changes nothing;
 *   - the same transaction adds a row of extraction_edit, with both values: what the AI said is
 *     `was` of the first one of the field, and an edit back to it brings its quote back, too. */
#ifndef APP_EXTRACT_TASK_RESULTS_H
#define APP_EXTRACT_TASK_RESULTS_H

#include "app/extract/extract.h"
#include "app/extract/fields/template.h"

#define EXTRACT_ROWS_MAX     500 /* of a page */
#define EXTRACT_EDITS_MAX    100 /* of a page */
#define EXTRACT_CURSOR_CHARS 1024

enum extract_filter {
    EXTRACT_ALL,
    EXTRACT_MISSING,
    EXTRACT_UNVERIFIED,
    EXTRACT_DIFFERS,
    EXTRACT_EDITED,
    EXTRACT_ERRORS, /* rows in error */
};
enum extract_order { EXTRACT_BY_PLACE, EXTRACT_BY_TITLE, EXTRACT_BY_FIELD };

struct extract_view {
    enum extract_filter filter;
    ptrdiff_t field; /* that the filter is about, by its place in the template; -1: any */
    enum extract_order order;
    size_t by;         /* the field of EXTRACT_BY_FIELD; rows without a value come last */
    bool descending;   /* equals by their place, ascending */
    struct str cursor; /* p == NULL: the first page */
    int64_t limit;     /* 1 to EXTRACT_ROWS_MAX */
};

/* The last edit of a field whose value is one. */
struct extract_mark {
    struct str field, by;
    int64_t at_ms;
    struct str was; /* JSON: what the AI had found */
};
struct extract_row {
    int64_t number, place, version;
    struct str document_id, doi; /* one of them has p == NULL */
    struct str title, state;
    struct str error, waits; /* p == NULL: none */
    struct str reason;       /* the same by a word of EXTRACT_REASONS */
    bool simulated;
    struct str values; /* JSON as values.h has it; p == NULL: not completed */
    struct extract_mark *marks;
    size_t mark_count;
};
struct extract_rows {
    struct extract_row *list; /* in the task's arena */
    size_t count;
    struct str next; /* cursor; p == NULL: nothing more */
    int64_t total;   /* rows of the filter, on all pages */
};
/* k with its counts. May be shorter than the limit, where rows are very large. ERR_INVALID: the
 * cursor is none of this order. */
MUST_CHECK int extract_rows_read(struct task *t, struct extract *x, const struct extract_task *k,
                                 const struct extract_view *v, struct extract_rows *out);
/* One row, as a page has it. ERR_NOT_FOUND: there is none at this place. */
MUST_CHECK int extract_row_read(struct task *t, struct extract *x, const struct extract_task *k,
                                int64_t place, struct extract_row *out);

/* The fields of a task. */
MUST_CHECK int extract_fields_read(struct task *t, const struct extract_task *k,
                                   struct extract_template *out);

/* The text of a row, piece by piece: as the AI was asked about it, if it was, else as it is now.
 * ERR_NOT_FOUND: no such task, or no such row. ERR_INVALID: the document has no text. */
typedef int extract_text_fn(struct task *t, struct str piece, void *arg);
MUST_CHECK int extract_row_text(struct task *t, struct extract *x, int64_t uid, struct str task_id,
                                int64_t place, extract_text_fn *fn, void *arg);

/* --- edit.c --- */

struct extract_change {
    int64_t uid;
    struct str by; /* name of the user */
    struct str task_id;
    int64_t place, version;
    struct str field;
    const struct json *value; /* null: there is none */
};
struct extract_changed {
    int64_t version;
    struct str value;         /* JSON, as values.h has one field */
    struct extract_mark mark; /* by.p == NULL: it is the AI's value again */
    const char *wrong;        /* of ERR_INVALID: "field" or "value" */
};
/* A value that the row has already changes nothing, and is no error. ERR_NOT_FOUND. ERR_CONFLICT:
 * the row has another version, or is not completed. ERR_INVALID: there is no such field, or the
 * value is not of its type. */
MUST_CHECK int extract_edit(struct task *t, struct extract *x, const struct extract_change *c,
                            struct extract_changed *out);

struct extract_edit {
    int64_t number, version, at_ms; /* version: of the row, after it */
    struct str field, by, was, now; /* was, now: JSON */
};
struct extract_edits {
    struct extract_edit *list; /* the newest first */
    size_t count;
    int64_t next; /* number to go on below; 0: nothing more */
};
MUST_CHECK int extract_edits_read(struct task *t, struct extract *x, int64_t uid,
                                  struct str task_id, int64_t place, int64_t below, int64_t limit,
                                  struct extract_edits *out);
#endif
