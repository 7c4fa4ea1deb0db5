#include "app/extract/fields/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "app/extract/fields/line.h"
#include "corpus/number.h"
#include "corpus/quote.h"
#include "engine/ai/reply.h"

#define REST_BYTES 64 /* of a complaint, kept for what says how many fields are left out */

_Static_assert(EXTRACT_FIELDS_MAX <= 64, "a bit for each field");

struct reader {
    struct arena *a;
    const struct extract_reading *reading;
    size_t expected; /* the field that the next member will be, if the AI keeps the order */
    /* The complaint so far, one part for each field. */
    char *complaint;
    size_t n;
    int left_out;
    uint64_t wrong; /* a bit per field that is in it */
    /* The quote that was looked for last: items of a list share one. */
    struct str quote;
    struct quote_place place;
    bool found;
};

/* --- complaints --- */

static void complain(struct reader *r, const struct extract_field *f, const char *fmt, ...)
    PRINTF(3, 4);
static void complain(struct reader *r, const struct extract_field *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(r->a, fmt, ap);
    va_end(ap);
    struct str part = str_printf(r->a, "%s\"%.*s\" %s", r->n ? "; " : "", STR_ARG(f->name), what);
    r->wrong |= UINT64_C(1) << (f - r->reading->template->fields);
    if (!r->complaint)
        r->complaint = arena_alloc(r->a, EXTRACT_COMPLAINT_BYTES_MAX + 1);
    if (r->n + part.n + REST_BYTES > EXTRACT_COMPLAINT_BYTES_MAX) {
        r->left_out++;
        return;
    }
    memcpy(r->complaint + r->n, part.p, part.n);
    r->n += part.n;
}

static int finish(struct reader *r, const char **complaint)
{
    if (!r->complaint)
        return 0;
    if (r->left_out)
        r->n += (size_t)snprintf(r->complaint + r->n, REST_BYTES, "; and %d more fields are wrong",
                                 r->left_out);
    r->complaint[r->n] = '\0';
    *complaint = r->complaint;
    return ERR_INVALID;
}

/* --- quotes --- */

static void look_for(struct reader *r, struct str quote)
{
    if (r->quote.p == quote.p && r->quote.n == quote.n)
        return;
    r->quote = quote;
    r->found = quote_find(r->reading->document, quote, &r->place);
}

/* A number of JSON says nothing of how the document writes it: the quote does. */
static void keep_original(struct reader *r, const struct extract_field *f, struct extract_value *v)
{
    double number = f->of == EXTRACT_INTEGER ? (double)v->integer : v->number;
    if (!v->verified || v->original.p || (f->of != EXTRACT_NUMBER && f->of != EXTRACT_INTEGER))
        return;
    struct str written = extract_number_written(v->quote, number, f->unit);
    if (written.p)
        written = line_clean(r->a, written);
    if (written.p && !str_eq(written, extract_value_text(r->a, f, v)))
        v->original = written;
}

static void verify(struct reader *r, const struct extract_field *f, struct extract_value *v)
{
    if (!r->reading->document || !v->quote.p)
        return;
    look_for(r, v->quote);
    v->found = r->found;
    v->begin = r->found ? r->place.begin : 0;
    v->end = r->found ? r->place.end : 0;
    v->verified = r->found && (f->of != EXTRACT_NUMBER || number_in(v->quote, v->number)) &&
                  (f->of != EXTRACT_INTEGER || number_in(v->quote, (double)v->integer));
    keep_original(r, f, v);
}

/* p == NULL: none. False: it is no quote, and that is complained about. */
static bool read_quote(struct reader *r, const struct extract_field *f, const struct json *j,
                       struct str *out)
{
    *out = STR_NULL;
    if (!j || j->type == JSON_NULL)
        return true;
    if (j->type != JSON_STRING)
        complain(r, f, "has a quote that is no text");
    else if (j->s.n > EXTRACT_QUOTE_BYTES_MAX)
        complain(r, f, "has a quote of %zu bytes; give the sentence that says it", j->s.n);
    else
        *out = j->s.n ? j->s : STR_NULL;
    return j->type == JSON_STRING && j->s.n <= EXTRACT_QUOTE_BYTES_MAX;
}

/* --- values --- */

/* Adds one value to items. False: it is wrong, and that is complained about. */
static bool add_value(struct reader *r, const struct extract_field *f, const struct json *value,
                      const struct json *quoted, struct extract_value *items, size_t *count)
{
    const char *problem;
    struct extract_value *v = &items[*count];
    struct str quote;
    if (extract_value_is_none(f, value))
        return true;
    if (extract_value_read(r->a, f, value, v, &problem)) {
        complain(r, f, "%s", problem);
        return false;
    }
    if (!read_quote(r, f, quoted, &quote))
        return false;
    v->quote = quote;
    v->part = r->reading->part;
    verify(r, f, v);
    for (size_t i = 0; i < *count; i++)
        if (extract_value_eq(f, &items[i], v)) {
            if (v->verified && !items[i].verified)
                items[i] = *v;
            return true;
        }
    ++*count;
    return true;
}

/* {"value": …, "quote": …}, or a value by itself. */
static bool add_item(struct reader *r, const struct extract_field *f, const struct json *j,
                     struct extract_value *items, size_t *count)
{
    if (j->type != JSON_OBJECT)
        return add_value(r, f, j, NULL, items, count);
    const struct json *value = json_get(j, "value");
    if (!value)
        complain(r, f, "must be an object with \"value\" and \"quote\"");
    return value && add_value(r, f, value, json_get(j, "quote"), items, count);
}

static void read_items(struct reader *r, const struct extract_field *f, const struct json *list,
                       const struct json *quote, struct extract_found *out)
{
    size_t most = list->count < EXTRACT_ITEMS_MAX ? list->count : EXTRACT_ITEMS_MAX;
    struct extract_value *items = arena_alloc(r->a, most * sizeof *items);
    size_t seen = 0;
    json_each (j, list) {
        if (seen++ == most)
            break;
        if (!(j->type == JSON_OBJECT ? add_item(r, f, j, items, &out->count)
                                     : add_value(r, f, j, quote, items, &out->count)))
            return;
    }
    out->items = items;
    out->more = list->count > most;
}

static void read_list(struct reader *r, const struct extract_field *f, const struct json *j,
                      struct extract_found *out)
{
    const struct json *value = json_get(j, "value");
    if (j->type == JSON_ARRAY)
        return read_items(r, f, j, NULL, out);
    if (value && value->type == JSON_ARRAY)
        return read_items(r, f, value, json_get(j, "quote"), out);
    read_items(r, f, &(struct json){.type = JSON_ARRAY, .count = 1, .child = j}, NULL, out);
}

static void read_single(struct reader *r, const struct extract_field *f, const struct json *j,
                        struct extract_found *out)
{
    if (j->type == JSON_ARRAY && j->count > 1)
        return complain(r, f, "must be one value, not %u of them", j->count);
    if (j->type == JSON_ARRAY)
        j = json_first(j);
    if (!j)
        return;
    struct extract_value *one = arena_alloc(r->a, sizeof *one);
    out->items = one;
    add_item(r, f, j, one, &out->count);
}

/* --- members --- */

/* The field of a member; -1: none. Exact names first, then those in another case. */
static ptrdiff_t field_of(struct reader *r, struct str key)
{
    const struct extract_template *x = r->reading->template;
    if (r->expected < x->count && str_eq(x->fields[r->expected].name, key))
        return (ptrdiff_t)r->expected;
    ptrdiff_t i = extract_field_find(x, key);
    for (size_t k = 0; i < 0 && k < x->count; k++)
        if (str_ieq(x->fields[k].name, str_trim(key)))
            i = (ptrdiff_t)k;
    return i;
}

static void read_members(struct reader *r, const struct json *object, struct extract_values *v)
{
    const struct extract_template *x = r->reading->template;
    json_each (j, object) {
        ptrdiff_t i = field_of(r, j->key);
        if (i < 0 || v->fields[i].count)
            continue;
        r->expected = (size_t)i + 1;
        if (j->type == JSON_NULL)
            continue;
        if (x->fields[i].type == EXTRACT_LIST)
            read_list(r, &x->fields[i], j, &v->fields[i]);
        else
            read_single(r, &x->fields[i], j, &v->fields[i]);
    }
}

static void check_required(struct reader *r, const struct extract_values *v)
{
    const struct extract_template *x = r->reading->template;
    for (size_t i = 0; r->reading->whole && i < x->count; i++)
        if (x->fields[i].required && v->fields[i].count == 0 && !(r->wrong >> i & 1))
            complain(r, &x->fields[i], "is required, and has no value");
}

/* --- the object in the text --- */

/* The object with fields of the template, or an object whose only member is one; NULL: none of it
 * is a field. */
static const struct json *fields_in(struct reader *r, const struct json *j)
{
    for (int depth = 0; depth < 2 && j && j->type == JSON_OBJECT; depth++) {
        json_each (member, j)
            if (field_of(r, member->key) >= 0)
                return j;
        j = j->count == 1 ? j->child : NULL;
    }
    return NULL;
}

static const struct json *find_in_prose(struct reader *r, struct str text, struct ai_objects *o,
                                        int *answers)
{
    const struct json *j, *found = NULL, *last = NULL, *empty = NULL;
    o->rest = ai_skip_thoughts(text);
    while ((j = ai_object_next(r->a, o))) {
        found = fields_in(r, j);
        last = found ? found : last;
        *answers += found != NULL;
        empty = j->type == JSON_OBJECT && j->count == 0 ? j : empty;
    }
    return last ? last : empty;
}

static int find_object(struct reader *r, struct str text, const struct json **out,
                       const char **complaint)
{
    const struct json *whole = NULL;
    struct ai_objects o = {.rest = STR("")};
    int answers = 0;
    if (json_parse(r->a, text, &whole, NULL) == 0 && whole->type == JSON_OBJECT) {
        *out = whole->count ? fields_in(r, whole) : whole;
        o.found = 1;
    } else {
        *out = find_in_prose(r, text, &o, &answers);
    }
    if (answers > 1)
        *complaint = arena_printf(r->a,
                                  "the answer has %d JSON objects with fields: it must be "
                                  "one, and nothing else",
                                  answers);
    else if (*out)
        return 0;
    else if (o.broken)
        *complaint = arena_printf(r->a,
                                  "the JSON object is broken or not complete: in its line %zu, "
                                  "column %zu, %s",
                                  o.error.line, o.error.column, o.error.message);
    else if (o.found)
        *complaint = "the JSON object has none of the fields: its members must be the fields, by "
                     "their names";
    else
        *complaint = "the answer has no JSON object: it must be one, and nothing else";
    return ERR_INVALID;
}

int extract_reply_read(struct arena *a, const struct extract_reading *r, struct str text,
                       struct extract_values *out, const char **complaint)
{
    struct reader reader = {.a = a, .reading = r};
    const struct json *object;
    struct extract_values v;
    int err = find_object(&reader, text, &object, complaint);
    if (err)
        return err;
    extract_values_init(a, r->template, &v);
    reader.expected = 0;
    read_members(&reader, object, &v);
    check_required(&reader, &v);
    err = finish(&reader, complaint);
    if (!err)
        *out = v;
    return err;
}
