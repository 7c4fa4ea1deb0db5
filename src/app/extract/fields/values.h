/* values.h -- what was found for the fields of a template in a document; as it is stored, sent by
 * the API and changed by hand.
 *
 * Stored as JSON, one member for each field, by its name, in the order of the template:
 *
 *   {"dose": {"value": 5.2, "unit": "mg", "original": "5.2 mg", "quote": "…", "begin": 120,
 *             "end": 140, "part": 0, "verified": true, "differs": [{"value": …, "quote": …, …}]},
 *    "drugs": {"value": ["A", "B"], "items": [{"value": "A", "quote": …}, …], "verified": false},
 *    "design": {"value": null}}
 *
 * begin and end are byte offsets in the text of the document, and absent where the quote was not
 * found. original is the value as it was written, by the AI or, of a number that is verified, in
 * the quote; it is there if it differs from the value. Dates are "YYYY-MM-DD", "YYYY-MM" or "YYYY".
 * A value that was changed by hand has "edited": true, and no quote; a list that had more items
 * than are kept has "more": true.
 *
 * Always true: what extract_values_put writes, extract_values_read reads as the same. */
#ifndef APP_EXTRACT_FIELDS_VALUES_H
#define APP_EXTRACT_FIELDS_VALUES_H

#include "app/extract/fields/template.h"

#define EXTRACT_VALUE_BYTES_MAX     8192
#define EXTRACT_QUOTE_BYTES_MAX     8192
#define EXTRACT_ITEMS_MAX           500 /* of a list, over all parts */
#define EXTRACT_COMPLAINT_BYTES_MAX 1500

struct extract_value {
    /* By the type of the field (of the items, in a list); the others are 0. */
    struct str text; /* of a text, a choice as the template spells it, a date */
    double number;
    int64_t integer;
    bool boolean;

    struct str original; /* as it was written; p == NULL: like the value */
    struct str quote;    /* p == NULL: none */
    bool found;          /* the quote is in the document, */
    size_t begin, end;   /* there; else 0 */
    bool verified;       /* found, and it has the number, if the value is one */
    size_t part;         /* from 0 */
};

/* Of one field. */
struct extract_found {
    const struct extract_value *items; /* a list has any number, others 0 or 1; 0: not found */
    size_t count;
    const struct extract_value *differs; /* other values, of other parts; never of a list */
    size_t differ_count;
    bool more;   /* of a list: there were more than EXTRACT_ITEMS_MAX */
    bool edited; /* by hand */
};

struct extract_values {
    struct extract_found *fields; /* as many as the template has */
};

/* None found, of any field. */
void extract_values_init(struct arena *a, const struct extract_template *x,
                         struct extract_values *out);
/* Adds the values of the next part. Those that differ are kept in differs, in order; shown is the
 * first whose quote is verified, else the first. Lists are united, in order, without repeats.
 * into and part may share memory with what comes out, and must outlive it. */
void extract_values_merge(struct arena *a, const struct extract_template *x,
                          struct extract_values *into, const struct extract_values *part);
/* The name of the first required field without a value; p == NULL: all have one. */
struct str extract_values_missing(const struct extract_template *x, const struct extract_values *v);

/* Writes the object above. */
void extract_values_put(struct json_writer *w, const struct extract_template *x,
                        const struct extract_values *v);
/* The object that is one field's. */
void extract_found_put(struct json_writer *w, const struct extract_field *f,
                       const struct extract_found *v);
/* Of stored JSON; fields that it lacks are not found, members that are no field are left out.
 * ERR_INVALID: this was not stored. Borrows text, the rest is in a. */
MUST_CHECK int extract_values_read(struct arena *a, const struct extract_template *x,
                                   struct str text, struct extract_values *out);

/* A value that a user gives for a field: JSON of its type, or text that can be read as it ("5.2
 * mg"); of a list an array; null: none. It has no quote and is marked as edited. ERR_INVALID:
 * *complaint, in a. */
MUST_CHECK int extract_value_given(struct arena *a, const struct extract_field *f,
                                   const struct json *value, struct extract_found *out,
                                   const char **complaint);
/* Whether two values of a field are the same; texts but for case and blanks. */
bool extract_value_eq(const struct extract_field *f, const struct extract_value *a,
                      const struct extract_value *b);
/* A value as text, for files: "5.2", "true", "2020-05". */
struct str extract_value_text(struct arena *a, const struct extract_field *f,
                              const struct extract_value *v);

/* --- value.c: one value, of JSON from outside --- */

/* Reads one item of a field: value (text, number …, original). ERR_INVALID: *problem, in a,
 * completes "dose: must be …". j is not null. */
MUST_CHECK int extract_value_read(struct arena *a, const struct extract_field *f,
                                  const struct json *j, struct extract_value *out,
                                  const char **problem);
/* Whether it says that there is no value: null, "", and unless it is a text, "n/a", 未报告 … */
bool extract_value_is_none(const struct extract_field *f, const struct json *j);
/* A number as a text has it, with the unit if that follows: "1,204", "5.2 mg". p == NULL: it is not
 * there. Borrows text. */
struct str extract_number_written(struct str text, double value, struct str unit);
void extract_value_put(struct json_writer *w, const struct extract_field *f,
                       const struct extract_value *v);
#endif
