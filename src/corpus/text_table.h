/* text_table.h -- what LaTeX commands, accents, HTML entities and tags mean. Private to text.c.
 * The rows are the .tsv files of tables/, sorted by name, which is the first member of a row. */
#ifndef CORPUS_TEXT_TABLE_H
#define CORPUS_TEXT_TABLE_H

#include "base/str.h"

#define TEXT_TAG_BYTES_MAX 16

enum text_kind {
    TEXT_LETTER,   /* a character of running text; swallows the spaces behind its name */
    TEXT_SYMBOL,   /* a sign or name of a formula; spaces behind it stay */
    TEXT_SPACE,    /* white space */
    TEXT_ACCENT,   /* out[0] names the accent of its argument */
    TEXT_WRAP,     /* out, then the argument, in parentheses unless it is one word */
    TEXT_DROP,     /* gone with its argument */
    TEXT_DROP_TWO, /* gone with two arguments */
    TEXT_SECOND,   /* the second of two arguments stays */
    TEXT_FRACTION, /* a/b */
    TEXT_RAISED,   /* superscript */
    TEXT_LOWERED,  /* subscript */
    TEXT_VERBATIM, /* the argument is an address: ~ and _ mean themselves */
};

extern const struct text_command {
    struct str name;
    enum text_kind kind;
    const char *out;
} text_command_table[];
extern const size_t text_command_count;

extern const struct text_entity {
    struct str name;
    const char *out;
} text_entity_table[];
extern const size_t text_entity_count;

extern const struct text_accent {
    struct str name;   /* as in \' or \v */
    const char *mark;  /* the combining character */
    const char *pairs; /* letter, accented letter, letter, … */
} text_accent_table[];
extern const size_t text_accent_count;

enum text_tag_kind { TAG_INLINE, TAG_BLOCK, TAG_SUP, TAG_SUB };

extern const struct text_tag {
    struct str name;
    enum text_tag_kind kind;
} text_tag_table[];
extern const size_t text_tag_count;

/* NULL when the name is not known. Tag names compare without case. */
const struct text_command *text_command_find(struct str name);
const struct text_entity *text_entity_find(struct str name);
const struct text_accent *text_accent_find(char name);
const struct text_tag *text_tag_find(struct str name);
#endif
