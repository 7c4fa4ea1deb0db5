#include "app/extract/fields/template.h"

#include <stdarg.h>

#include "app/extract/fields/line.h"
#include "engine/ai/reply.h"

#define BORDER "<<<" /* of the document in a prompt */

static const char *const types[] = {
    [EXTRACT_TEXT] = "text",       [EXTRACT_NUMBER] = "number", [EXTRACT_INTEGER] = "integer",
    [EXTRACT_BOOLEAN] = "boolean", [EXTRACT_DATE] = "date",     [EXTRACT_CHOICE] = "choice",
    [EXTRACT_LIST] = "list",
};
#define TYPES (sizeof types / sizeof *types)

const char *extract_type_name(enum extract_type type)
{
    return types[type];
}

/* --- reading --- */

struct reader {
    struct arena *a;
    const char *where; /* "field 3 (dose)" */
    const char **complaint;
};

static int fail(const struct reader *r, const char *fmt, ...) PRINTF(2, 3);
static int fail(const struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *r->complaint = arena_printf(r->a, "%s: %s", r->where, arena_vprintf(r->a, fmt, ap));
    va_end(ap);
    return ERR_INVALID;
}

static bool is_absent(const struct json *j)
{
    return !j || j->type == JSON_NULL;
}

/* A text that may be missing, as one line of at most most characters. */
static int read_line(const struct reader *r, const struct json *field, const char *name,
                     size_t most, struct str *out)
{
    const struct json *j = json_get(field, name);
    *out = STR("");
    if (is_absent(j))
        return 0;
    if (j->type != JSON_STRING)
        return fail(r, "\"%s\" must be a text, not %s", name, ai_shown(r->a, j));
    *out = line_clean(r->a, j->s);
    size_t chars = line_chars(*out);
    if (chars > most)
        return fail(r, "\"%s\" has %zu characters; it may have %zu at most", name, chars, most);
    return 0;
}

static int read_name(const struct reader *r, const struct json *field, struct str *out)
{
    const struct json *j = json_get(field, "name");
    if (is_absent(j))
        return fail(r, "\"name\" is missing");
    if (j->type == JSON_STRING && line_has_control(j->s))
        return fail(r, "\"name\" must not have control characters");
    int err = read_line(r, field, "name", EXTRACT_NAME_CHARS_MAX, out);
    if (!err && out->n == 0)
        return fail(r, "\"name\" must not be empty");
    if (!err && str_find(*out, STR(BORDER)) >= 0)
        return fail(r, "\"name\" must not have " BORDER);
    return err;
}

static int read_type(const struct reader *r, const struct json *j, const char *member, size_t count,
                     enum extract_type *out)
{
    struct str s = json_str(j);
    for (size_t i = 0; i < count; i++)
        if (str_eq(s, str_of(types[i]))) {
            *out = (enum extract_type)i;
            return 0;
        }
    if (is_absent(j))
        return fail(r, "\"%s\" is missing", member);
    return fail(r, "\"%s\" must be text, number, integer, boolean, date%s, not %s", member,
                count == TYPES ? ", choice or list" : " or choice", ai_shown(r->a, j));
}

static int read_types(const struct reader *r, const struct json *field, struct extract_field *f)
{
    const struct json *of = json_get(field, "of");
    int err = read_type(r, json_get(field, "type"), "type", TYPES, &f->type);
    if (err)
        return err;
    if (f->type == EXTRACT_LIST)
        return read_type(r, of, "of", EXTRACT_LIST, &f->of);
    f->of = f->type;
    return is_absent(of) ? 0
                         : fail(r, "\"of\" belongs to a list, and the type is %s", types[f->type]);
}

static int read_unit(const struct reader *r, const struct json *field, struct extract_field *f)
{
    int err = read_line(r, field, "unit", EXTRACT_UNIT_CHARS_MAX, &f->unit);
    if (!err && f->unit.n && f->of != EXTRACT_NUMBER && f->of != EXTRACT_INTEGER)
        return fail(r, "\"unit\" belongs to numbers and integers, and the type is %s",
                    types[f->of]);
    return err;
}

static bool has_folded(struct arena *a, const struct str *folded, size_t count, struct str s)
{
    struct str fold = line_folded(a, s);
    for (size_t i = 0; i < count; i++)
        if (str_eq(folded[i], fold))
            return true;
    return false;
}

static int read_choice(const struct reader *r, const struct json *j, struct str *out)
{
    struct str s = json_str(j);
    if (!s.p)
        return fail(r, "every one of \"choices\" must be a text, not %s", ai_shown(r->a, j));
    *out = line_clean(r->a, s);
    if (out->n == 0)
        return fail(r, "none of \"choices\" may be empty");
    if (line_chars(*out) > EXTRACT_CHOICE_CHARS_MAX)
        return fail(r, "every one of \"choices\" may have %d characters at most: %s",
                    EXTRACT_CHOICE_CHARS_MAX, ai_shown(r->a, j));
    if (str_find(*out, STR(BORDER)) >= 0)
        return fail(r, "none of \"choices\" may have " BORDER);
    return 0;
}

static int read_choice_list(const struct reader *r, const struct json *list,
                            struct extract_field *f)
{
    struct str *choices = ARENA_ARRAY(r->a, struct str, list->count),
               *folded = ARENA_ARRAY(r->a, struct str, list->count);
    json_each (j, list) {
        struct str *choice = &choices[f->choice_count];
        int err = read_choice(r, j, choice);
        if (err)
            return err;
        if (has_folded(r->a, folded, f->choice_count, *choice))
            return fail(r, "\"choices\" has %s twice; case does not count", ai_shown(r->a, j));
        folded[f->choice_count++] = line_folded(r->a, *choice);
    }
    f->choices = choices;
    return 0;
}

static int read_choices(const struct reader *r, const struct json *field, struct extract_field *f)
{
    const struct json *list = json_get(field, "choices");
    if (f->of != EXTRACT_CHOICE)
        return is_absent(list) || (list->type == JSON_ARRAY && list->count == 0)
                   ? 0
                   : fail(r, "\"choices\" belongs to a choice, and the type is %s", types[f->of]);
    if (is_absent(list) || list->type != JSON_ARRAY || list->count == 0 ||
        list->count > EXTRACT_CHOICES_MAX)
        return fail(r, "\"choices\" must be a list of 1 to %d texts", EXTRACT_CHOICES_MAX);
    return read_choice_list(r, list, f);
}

static int check_members(const struct reader *r, const struct json *field)
{
    static const char *const known[] = {"name",     "type", "of",     "instruction",
                                        "required", "unit", "choices"};
    json_each (j, field) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known = is_known || str_eq(j->key, str_of(known[i]));
        if (!is_known)
            return fail(r,
                        "there is no member %s; a field has name, type, of, instruction, "
                        "required, unit and choices",
                        ai_shown(r->a, &(struct json){.type = JSON_STRING, .s = j->key}));
    }
    return 0;
}

static int read_required(const struct reader *r, const struct json *field, bool *out)
{
    const struct json *j = json_get(field, "required");
    if (is_absent(j) || json_bool(j, out))
        return 0;
    return fail(r, "\"required\" must be true or false, not %s", ai_shown(r->a, j));
}

static int read_field(struct reader *r, const struct json *j, struct extract_field *f)
{
    if (j->type != JSON_OBJECT)
        return fail(r, "a field must be an object, not %s", ai_shown(r->a, j));
    int err = read_name(r, j, &f->name);
    if (err)
        return err;
    r->where = arena_printf(r->a, "%s (%.*s)", r->where, STR_ARG(f->name));
    err = check_members(r, j);
    if (!err)
        err = read_types(r, j, f);
    if (!err)
        err = read_line(r, j, "instruction", EXTRACT_INSTRUCTION_CHARS_MAX, &f->instruction);
    if (!err)
        err = read_required(r, j, &f->required);
    if (!err)
        err = read_unit(r, j, f);
    return err ? err : read_choices(r, j, f);
}

static int read_fields(struct arena *a, const struct json *list, struct extract_template *x,
                       const char **complaint)
{
    struct extract_field *fields = ARENA_ARRAY(a, struct extract_field, list->count);
    struct str *folded = ARENA_ARRAY(a, struct str, list->count);
    json_each (j, list) {
        struct reader r = {a, arena_printf(a, "field %zu", x->count + 1), complaint};
        struct extract_field *f = &fields[x->count];
        int err = read_field(&r, j, f);
        if (err)
            return err;
        if (has_folded(a, folded, x->count, f->name))
            return fail(&r, "another field has this name; case does not count");
        folded[x->count++] = line_folded(a, f->name);
    }
    x->fields = fields;
    return 0;
}

int extract_template_read(struct arena *a, const struct json *fields, struct extract_template *out,
                          const char **complaint)
{
    struct extract_template x = {0};
    if (!fields || fields->type != JSON_ARRAY || fields->count == 0 ||
        fields->count > EXTRACT_FIELDS_MAX) {
        *complaint = arena_printf(a, "fields must be a list of 1 to %d fields", EXTRACT_FIELDS_MAX);
        return ERR_INVALID;
    }
    int err = read_fields(a, fields, &x, complaint);
    if (!err)
        *out = x;
    return err;
}

int extract_template_parse(struct arena *a, struct str fields, struct extract_template *out,
                           const char **complaint)
{
    const struct json *j;
    struct json_error e;
    if (json_parse(a, fields, &j, &e) == 0)
        return extract_template_read(a, j, out, complaint);
    *complaint = arena_printf(a, "fields are no JSON: in line %zu, column %zu, %s", e.line,
                              e.column, e.message);
    return ERR_INVALID;
}

ptrdiff_t extract_field_find(const struct extract_template *x, struct str name)
{
    for (size_t i = 0; i < x->count; i++)
        if (str_eq(x->fields[i].name, name))
            return (ptrdiff_t)i;
    return -1;
}

/* --- writing --- */

void extract_field_put(struct json_writer *w, const struct extract_field *f)
{
    jw_object(w);
    jw_put_str(w, "name", f->name);
    jw_put_str(w, "type", str_of(types[f->type]));
    if (f->type == EXTRACT_LIST)
        jw_put_str(w, "of", str_of(types[f->of]));
    if (f->unit.n)
        jw_put_str(w, "unit", f->unit);
    if (f->choice_count) {
        jw_put_array(w, "choices");
        for (size_t i = 0; i < f->choice_count; i++)
            jw_str(w, f->choices[i]);
        jw_end_array(w);
    }
    if (f->instruction.n)
        jw_put_str(w, "instruction", f->instruction);
    if (f->required)
        jw_put_bool(w, "required", true);
    jw_end_object(w);
}

void extract_template_put(struct json_writer *w, const struct extract_template *x)
{
    jw_array(w);
    for (size_t i = 0; i < x->count; i++)
        extract_field_put(w, &x->fields[i]);
    jw_end_array(w);
}

/* --- ready ones --- */

const struct extract_ready *extract_ready(struct str id)
{
    for (size_t i = 0; i < extract_ready_count; i++)
        if (str_eq(extract_ready_table[i].id, id))
            return &extract_ready_table[i];
    return NULL;
}
