/* record.h -- rows and hashes as structs, by a table of columns.
 *
 * A kind of record is a struct and a table that says, column by column, what it is called in MySQL
 * and in Redis, and which member of the struct it fills. SELECTs, fields of a hash and structs are
 * made from that one table, so that their order cannot differ. Nothing here waits. */
#ifndef ENGINE_STORE_RECORD_H
#define ENGINE_STORE_RECORD_H

#include <stddef.h>

#include "engine/store/script.h"
#include "wire/sql.h"

enum record_type {
    RECORD_END,  /* the last row of a table */
    RECORD_TEXT, /* struct str; NULL: p == NULL */
    RECORD_INT,  /* int64_t; NULL: 0. Redis has none below 0 */
    RECORD_TIME, /* int64_t: ms since 1970. Redis keeps seconds, as other programs know them */
    RECORD_FLAG, /* bool: one of two words; in MySQL that, or a number */
};

struct record_column {
    const char *field; /* of the hash in Redis; NULL: not kept there */
    const char *sql;   /* NULL: as the field */
    enum record_type type;
    size_t at;            /* offsetof in the struct */
    const char *words[2]; /* of RECORD_FLAG: false, true */
};

struct record_kind {
    const char *from; /* "user_info" */
    const struct record_column *columns;
    size_t size; /* of the struct */
};

/* "SELECT uid, username FROM user_info <rest>". */
const char *record_select(struct arena *a, const struct record_kind *k, const char *rest);
/* Reads a row of such a SELECT. Other members of *out stay as they are; texts are borrowed from the
 * row. */
void record_take(const struct record_kind *k, const struct sql_value *row, void *out);

/* A field of the reply to HGETALL; p == NULL: there is none. */
struct str record_value(const struct redis_reply *hash, const char *field);
/* Reads the whole reply; texts are borrowed from it. False: a field is missing, or its value does
 * not have its type; *out is undefined then. */
bool record_read(const struct record_kind *k, const struct redis_reply *hash, void *out);
/* field, value, field, value, ... */
struct script_list record_write(struct arena *a, const struct record_kind *k, const void *record);

/* With its texts, into out, which is of k->size. */
void record_copy(struct arena *a, const struct record_kind *k, const void *record, void *out);
#endif
