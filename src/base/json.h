/* json.h -- strict JSON: a reader into an arena and a writer into a buffer.
 *
 * The reader takes RFC 8259 and nothing more: valid UTF-8, no duplicate names,
 * no lone surrogates, no trailing text, depth at most JSON_DEPTH_MAX. Strings
 * without escapes are borrowed from the text, so the text must outlive the
 * tree. Recursion is bounded by the depth, so a 128 KB stack is plenty. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#define JSON_DEPTH_MAX 64

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_INT,  /* fits an int64_t and has neither fraction nor exponent */
    JSON_REAL, /* every other number */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_FLOATS, /* an array of json_parse_floats */
};

struct json {
    enum json_type type;
    uint32_t count;          /* children of an array or object, numbers of floats */
    struct str key;          /* name of a member; p == NULL in arrays and at the root */
    const struct json *next; /* next sibling */
    union {
        int64_t i;
        double d;
        struct str s;
        const struct json *child; /* first child */
        const float *floats;      /* count of them */
    };
};

struct json_error {
    size_t line, column; /* from 1; columns count characters */
    const char *message; /* a constant that says what was expected */
};

/* 0, or ERR_INVALID with *e filled (e may be NULL) and nothing taken from the arena. */
MUST_CHECK int json_parse(struct arena *a, struct str text, const struct json **out,
                          struct json_error *e);

/* The same for replies that are nothing but vectors: an array of numbers, or of numbers and null,
 * is JSON_FLOATS unless it is empty, with four bytes for each of them instead of a node. null is
 * NaN, and what no float holds is infinite. The last bit may differ from the nearest float. */
MUST_CHECK int json_parse_floats(struct arena *a, struct str text, const struct json **out,
                                 struct json_error *e);

/* The first child; NULL unless j is an array or object that has one. */
static inline const struct json *json_first(const struct json *j)
{
    return j && (j->type == JSON_ARRAY || j->type == JSON_OBJECT) ? j->child : NULL;
}

#define json_each(it, parent) for (const struct json *it = json_first(parent); it; it = it->next)

/* All of these take j == NULL for "absent". */
const struct json *json_get(const struct json *j, const char *name); /* NULL when not there */
struct str json_str(const struct json *j);                           /* STR_NULL unless a string */
bool json_int(const struct json *j, int64_t *out);                   /* false unless JSON_INT */
bool json_bool(const struct json *j, bool *out);
const char *json_type_name(const struct json *j); /* "string", "number", …; "nothing" */

/* Writer. It adds commas, quotes and escapes, and checks the nesting. */
struct json_writer {
    struct buf *out;
    uint64_t started; /* bit per level: something is in it already */
    uint64_t objects; /* bit per level: it is an object */
    int depth;
    bool after_key;
    bool root_done; /* one value per writer */
};

void jw_init(struct json_writer *w, struct buf *out);
void jw_object(struct json_writer *w);
void jw_array(struct json_writer *w);
void jw_end_object(struct json_writer *w);
void jw_end_array(struct json_writer *w);
void jw_key(struct json_writer *w, struct str name);
/* Invalid UTF-8 becomes U+FFFD; p == NULL is null. */
void jw_str(struct json_writer *w, struct str s);
void jw_int(struct json_writer *w, int64_t v);
/* The shortest form that reads back as the same JSON_REAL; what is not finite is null. */
void jw_real(struct json_writer *w, double v);
void jw_bool(struct json_writer *w, bool v);
void jw_null(struct json_writer *w);
void jw_raw(struct json_writer *w, struct str json);       /* a value already written */
void jw_json(struct json_writer *w, const struct json *j); /* a value that was read */

/* Shorthands for members with constant names. */
#define jw_put_str(w, name, v)  (jw_key((w), STR(name)), jw_str((w), (v)))
#define jw_put_int(w, name, v)  (jw_key((w), STR(name)), jw_int((w), (v)))
#define jw_put_bool(w, name, v) (jw_key((w), STR(name)), jw_bool((w), (v)))
#define jw_put_object(w, name)  (jw_key((w), STR(name)), jw_object((w)))
#define jw_put_array(w, name)   (jw_key((w), STR(name)), jw_array((w)))

/* An object by itself: begun in out, a buffer that is new. The end gives its text, in a, and
 * releases the buffer. */
void jw_begin(struct json_writer *w, struct buf *out);
struct str jw_finish(struct json_writer *w, struct arena *a);

/* The escaped form of s, without quotes. */
void json_escape(struct buf *out, struct str s);
/* The same up to the first control character, of what is valid UTF-8; returns the rest of s. */
struct str json_escape_line(struct buf *out, struct str s);
#endif
