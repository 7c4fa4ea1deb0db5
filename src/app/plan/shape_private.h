/* shape_private.h -- reading members of objects, with complaints that say where. */
#ifndef APP_PLAN_SHAPE_PRIVATE_H
#define APP_PLAN_SHAPE_PRIVATE_H

#include "app/plan/shape.h"

struct reader {
    struct arena *a;
    const struct plan_frame *frame;
    const char *where; /* "day 3 (2026-01-03), exercise 2"; "": the whole */
    const char **complaint;
};

/* Sets the complaint, behind where, and returns ERR_INVALID. */
MUST_CHECK int reader_fail(const struct reader *r, const char *fmt, ...) PRINTF(2, 3);
/* The reader of a part. */
struct reader reader_in(const struct reader *r, const char *fmt, ...) PRINTF(2, 3);
/* A value as complaints quote it; NULL is "nothing". */
const char *reader_shown(const struct reader *r, const struct json *j);

/* One line of least to most characters; with least 0 it may be missing or null, and is "". */
MUST_CHECK int reader_text(const struct reader *r, const struct json *object, const char *name,
                           size_t least, size_t most, struct str *out);

struct number {
    const char *name;
    int64_t least, most;
    int64_t scale; /* 1: an integer; 10: one decimal is kept */
    bool optional; /* missing or null is 0 */
};
/* *out is the value times the scale. */
MUST_CHECK int reader_number(const struct reader *r, const struct json *object,
                             const struct number *n, int64_t *out);

/* A day that must be this one, if date.p; else one of the frame. */
MUST_CHECK int plan_day_read_at(const struct reader *r, struct str date, const struct json *day,
                                struct plan_day *out);
/* One of easy, medium, hard; with optional it may be missing, and is "". */
MUST_CHECK int plan_difficulty_read(const struct reader *r, const struct json *object,
                                    bool optional, struct str *out);
#endif
