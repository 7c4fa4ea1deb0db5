/* rows.h -- the texts of a file that is imported, in pieces: CSV with a header, or JSON lines.
 *
 * A CSV file names its columns in its first row; the text is in the column "text", or in the one
 * that is called as in MySQL ("title", "content"). A line of JSON is a string, or an object with a
 * member of such a name. What is no such row, or no text that can be stored, is reported with its
 * line, and reading goes on behind it. */
#ifndef APP_POOL_ROWS_H
#define APP_POOL_ROWS_H

#include "app/pool/type.h"
#include "corpus/csv.h"

enum pool_format { POOL_CSV, POOL_JSONL };
#define POOL_FORMATS "csv|jsonl"

/* Where a file goes on: of the first piece all 0. */
struct pool_place {
    int64_t line;           /* the piece begins on it; 0: it is the first one */
    size_t columns, column; /* of CSV, once the header was read */
};

struct pool_rows {
    const struct pool_type *type;
    enum pool_format format;
    struct str text; /* borrowed */
    bool last;       /* no piece follows */
    size_t at;       /* what comes before it was read */
    struct pool_place place;
    const char *error; /* of the last call that failed */
    struct csv csv;
};

/* ERR_INVALID: there is no header, or no column with texts in it; error says why. */
MUST_CHECK int pool_rows_open(struct pool_rows *r, struct arena *a, const struct pool_type *type,
                              enum pool_format format, const struct pool_place *place,
                              struct str text, bool last);
/* The next text, in the piece or in a. ERR_NOT_FOUND: the piece has ended; the next one begins at
 * r->at of this one, at r->place. ERR_INVALID: the row on *line is no good, and is passed over. */
MUST_CHECK int pool_rows_next(struct pool_rows *r, struct arena *a, struct str *out, int64_t *line);
#endif
