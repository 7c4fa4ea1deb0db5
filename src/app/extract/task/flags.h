/* flags.h -- what a table of results is filtered and sorted by, written beside the values of a row.
 *
 * A page of a task with 10,000 rows is found without reading any JSON: the columns missing,
 * unverified, differs and edited of extraction_result have a bit for each field, by its place in
 * the template, and sort_keys has a line for each. All of them follow from the values: whatever
 * writes result writes them in the same statement. */
#ifndef APP_EXTRACT_TASK_FLAGS_H
#define APP_EXTRACT_TASK_FLAGS_H

#include "app/extract/fields/values.h"

#define EXTRACT_KEY_CHARS 40 /* of a text, by which it is sorted */

/* int64_t, for MySQL: a template has fewer than 63 fields. */
struct extract_flags {
    int64_t missing;      /* the field has no value */
    int64_t unverified;   /* it has one, not edited, and a quote that is not in the document or has
                             another number, or none */
    int64_t differs;      /* parts of the document say different things, and none was chosen */
    int64_t edited;       /* by hand */
    struct str sort_keys; /* lines, each ends with a newline; as texts they sort as the values do:
                             numbers are 16 digits; an empty one: no value; of a list its first */
};
/* The first most characters of s, or all of it. */
struct str extract_first_chars(struct str s, size_t most);
void extract_flags_of(struct arena *a, const struct extract_template *x,
                      const struct extract_values *v, struct extract_flags *out);
#endif
