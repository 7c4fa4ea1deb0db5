/* bibtex_private.h -- shared by the parts of the BibTeX reader.
 *
 *   bibtex.c        where an entry begins and ends, and where reading goes on after damage
 *   bibtex_entry.c  key and fields of an entry whose ends are known
 *   bibtex_value.c  values: pieces, @strings, white space */
#ifndef CORPUS_BIBTEX_PRIVATE_H
#define CORPUS_BIBTEX_PRIVATE_H

#include "base/map.h"
#include "corpus/bibtex.h"
#include "corpus/bibtex_scan.h"

struct field {
    struct str name;
    struct str text; /* simple: between the delimiters; else the whole expression */
    bool simple;     /* one piece in quotes or braces */
    uint64_t sign;   /* equal for names that are equal but for case; mostly differs otherwise */
};

/* A stretch of the window that is being taken apart. */
struct cursor {
    const char *p, *end;
    const char *begin; /* of the entry, on line */
    uint64_t line;
    struct str about; /* for reports: the key, once it is known */
};

enum mode {
    BETWEEN,    /* looking for the next entry */
    FRAMING,    /* looking for the end of one */
    RECOVERING, /* after damage: looking for an entry at the beginning of a line */
};

struct bibtex {
    bibtex_report *report;
    void *report_arg;

    /* Places are offsets in the window; bibtex_next moves them when bytes are used up. */
    enum mode mode;
    size_t at;        /* scanned up to here */
    size_t start;     /* FRAMING: the '@'; RECOVERING: nothing before it is looked at */
    size_t body;      /* FRAMING: behind the opening brace */
    size_t head_at;   /* FRAMING a comment: first entry seen inside; 0 for none */
    unsigned depth;   /* FRAMING: open braces within the entry */
    bool quoted;      /* FRAMING in parentheses: inside quotes */
    char open;        /* '{' or '(' */
    bool after_entry; /* BETWEEN: an entry has just ended */
    struct str type;
    size_t line_at; /* line is the number of the line this is on */
    uint64_t line;

    struct arena arena; /* values of the current entry */
    struct field fields[BIBTEX_FIELDS_MAX];
    size_t field_count;
    const struct bibtex_macro **used;
    size_t used_count, used_cap;
    uint64_t serial; /* of the entry or @string being read */

    struct map *macros; /* lower-case name: struct bibtex_macro */
    struct arena macro_arena;
    size_t macro_count, macro_bytes; /* all definitions, also repeated ones */
};

void bibtex_report_at(struct bibtex *b, const struct cursor *c, const char *at, const char *reason,
                      struct str about, bool dropped);

/* bibtex_entry.c: false when it was dropped, which has been reported. c stands behind the opening
 * brace and ends before the closing one. */
bool bibtex_parse_entry(struct bibtex *b, struct cursor *c, struct bibtex_entry *e);
/* The same, but no value is put together. */
bool bibtex_parse_fields(struct bibtex *b, struct cursor *c, struct str *key);
bool bibtex_parse_macro(struct bibtex *b, struct cursor *c, struct str raw);

static inline bool bibtex_is_name(char c)
{
    static const bool others[256] = {
        ['\t' ... '\r'] = true, [' '] = true, [','] = true, ['='] = true,
        ['{'] = true,           ['}'] = true, ['"'] = true, ['#'] = true,
    };
    return !others[(unsigned char)c];
}

static inline const char *bibtex_skip_name(const char *p, const char *end)
{
    while (p < end && bibtex_is_name(*p))
        p++;
    return p;
}

/* bibtex_value.c: steps over a value, filling text and simple of *f and noting which @strings it
 * uses. NULL, or why it cannot be read; then c stands where the trouble is. */
const char *bibtex_skip_value(struct bibtex *b, struct cursor *c, struct field *f);
/* STR_NULL when it would be longer than max. */
struct str bibtex_expand(struct bibtex *b, struct arena *a, const struct field *f, size_t max);
#endif
