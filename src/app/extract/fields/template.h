/* template.h -- the fields that a task asks for: their types, and what the AI is told of each.
 *
 * The fields are a JSON array, as the API takes and gives it, and as it is frozen in a task:
 *
 *   [{"name": "dose", "type": "number", "unit": "mg", "instruction": "…", "required": true},
 *    {"name": "design", "type": "choice", "choices": ["RCT", "cohort"]},
 *    {"name": "drugs", "type": "list", "of": "text"}]
 *
 * type is one of text, number, integer, boolean, date, choice, list; of is the type of a list's
 * items, any of the others, and unit (of numbers and integers) and choices describe the items then.
 * instruction, unit, required and choices of other types may be missing or null. Members of another
 * name are refused: a misspelt one would be lost.
 *
 * Always true of a template that was read: every text is one line of valid UTF-8 without control
 * characters, trimmed; names and choices have no "<<<", which borders the document in a prompt;
 * names differ in more than case; extract_template_put writes JSON that is read as the same
 * template. */
#ifndef APP_EXTRACT_FIELDS_TEMPLATE_H
#define APP_EXTRACT_FIELDS_TEMPLATE_H

#include "base/err.h"
#include "base/json.h"

#define EXTRACT_FIELDS_MAX            50
#define EXTRACT_NAME_CHARS_MAX        64 /* of a field */
#define EXTRACT_INSTRUCTION_CHARS_MAX 2000
#define EXTRACT_UNIT_CHARS_MAX        64
#define EXTRACT_CHOICES_MAX           50
#define EXTRACT_CHOICE_CHARS_MAX      200

enum extract_type {
    EXTRACT_TEXT,
    EXTRACT_NUMBER,
    EXTRACT_INTEGER,
    EXTRACT_BOOLEAN,
    EXTRACT_DATE,
    EXTRACT_CHOICE,
    EXTRACT_LIST,
};
/* "text", "number", … */
const char *extract_type_name(enum extract_type type);

struct extract_field {
    struct str name;
    struct str instruction, unit; /* n == 0: none */
    enum extract_type type;
    enum extract_type of; /* of the items of a list; of any other field its type */
    bool required;
    const struct str *choices; /* of a choice, or of a list of choices */
    size_t choice_count;
};

struct extract_template {
    const struct extract_field *fields;
    size_t count; /* 1 to EXTRACT_FIELDS_MAX */
};

/* Everything is in a, or borrowed from fields. ERR_INVALID: *complaint, in a, is one English
 * sentence that names the field and what is wrong with it. */
MUST_CHECK int extract_template_read(struct arena *a, const struct json *fields,
                                     struct extract_template *out, const char **complaint);
/* The same of JSON text that was stored. */
MUST_CHECK int extract_template_parse(struct arena *a, struct str fields,
                                      struct extract_template *out, const char **complaint);
/* The canonical array: members in one order, those that say nothing left out. */
void extract_template_put(struct json_writer *w, const struct extract_template *x);
void extract_field_put(struct json_writer *w, const struct extract_field *f);
/* The place of a field; -1: there is none of that name. */
ptrdiff_t extract_field_find(const struct extract_template *x, struct str name);

/* Ready templates, which ship with the program (ready/ *.json) and are copied to be edited. */
struct extract_ready_text {
    struct str name;
    struct str fields; /* JSON, as extract_template_parse reads it */
};
struct extract_ready {
    struct str id; /* a word: "pico" */
    struct extract_ready_text en, zh;
};
extern const struct extract_ready extract_ready_table[];
extern const size_t extract_ready_count;
const struct extract_ready *extract_ready(struct str id); /* NULL: there is none */
#endif
