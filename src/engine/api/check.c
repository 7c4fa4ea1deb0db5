/* Values from outside against the table of their route. */
#include <inttypes.h>

#include "base/err.h"
#include "base/nearest.h"
#include "engine/api/api_private.h"
#include "engine/money/ledger.h"
#include "engine/store/amount.h"
#include "wire/http_server/http_uri.h"

#define NAME_BYTES_SHOWN 64 /* of an unknown member, in the message about it */

/* Where a value stands: the member of an object, or the nth of an array. */
struct place {
    const struct place *in; /* NULL: the body or the query itself */
    struct str name;
    size_t nth; /* without a name */
};

struct checker {
    struct arena *arena;
    struct api_problem *problem;
};

static bool members_fit(const struct checker *c, const struct place *at,
                        const struct api_field *fields, const struct json *j);

static const struct api_field no_fields[] = {{0}};

const struct api_field *api_field_find(const struct api_field *fields, struct str name)
{
    for (const struct api_field *f = fields; f && f->name; f++)
        if (str_eq(str_of(f->name), name))
            return f;
    return NULL;
}

/* --- what is wrong, and where --- */

static struct str shown(struct str name)
{
    struct str s = str_from(name.p, 0);
    while (s.n < name.n && s.n < NAME_BYTES_SHOWN)
        s.n += str_utf8_step(str_from(name.p + s.n, name.n - s.n));
    return s;
}

static const char *path(struct arena *a, const struct place *at)
{
    if (!at->name.p)
        return arena_printf(a, "%s[%zu]", path(a, at->in), at->nth);
    struct str name = shown(at->name);
    if (!at->in)
        return str_z(a, name);
    return arena_printf(a, "%s.%.*s", path(a, at->in), STR_ARG(name));
}

static bool wrong(const struct checker *c, const struct place *at, const char *message)
{
    *c->problem = (struct api_problem){path(c->arena, at), message};
    return false;
}

static const char *unknown(struct arena *a, const struct api_field *fields, struct str name)
{
    struct nearest n = nearest_to(name);
    for (const struct api_field *f = fields; f->name; f++)
        nearest_try(&n, f->name);
    const char *near = nearest_name(&n);
    return near ? arena_printf(a, "is not known here; did you mean \"%s\"?", near)
                : "is not known here";
}

/* "must have 3 to 32 characters"; NULL when n is right. */
static const char *amount_problem(struct arena *a, int64_t n, int64_t least, int64_t most,
                                  const char *what)
{
    if (n >= least && n <= most)
        return NULL;
    if (least == most)
        return arena_printf(a, "must have %" PRId64 " %s", least, what);
    if (least == 0)
        return arena_printf(a, "must have at most %" PRId64 " %s", most, what);
    return arena_printf(a, "must have %" PRId64 " to %" PRId64 " %s", least, most, what);
}

/* --- single values --- */

static int64_t characters(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80; /* the first byte of each */
    return n;
}

static const char *choice_problem(struct arena *a, const char *choices, struct str s)
{
    struct str rest = str_of(choices), list = STR("");
    while (rest.p) {
        struct str choice = str_cut(&rest, '|');
        if (str_eq(choice, s))
            return NULL;
        list = str_printf(a, "%.*s%s%.*s", STR_ARG(list), list.n ? ", " : "", STR_ARG(choice));
    }
    return arena_printf(a, "must be one of: %.*s", STR_ARG(list));
}

static const char *text_problem(struct arena *a, const struct api_field *f, struct str s,
                                int64_t least, int64_t most)
{
    if (f->choices)
        return choice_problem(a, f->choices, s);
    if (s.n && memchr(s.p, '\0', s.n))
        return "must not have NUL characters";
    return amount_problem(a, characters(s), least, most, "characters");
}

static const char *int_problem(struct arena *a, const struct api_field *f, int64_t v)
{
    if (v >= f->least && v <= f->most)
        return NULL;
    return arena_printf(a, "must be from %" PRId64 " to %" PRId64, f->least, f->most);
}

static const char *real_problem(struct arena *a, const struct api_field *f, const struct json *j)
{
    double v = j->type == JSON_INT ? (double)j->i : j->d;
    if (v >= (double)f->least && v <= (double)f->most)
        return NULL;
    return arena_printf(a, "must be from %" PRId64 " to %" PRId64, f->least, f->most);
}

static const char *money_problem(struct arena *a, const struct api_field *f, struct str s)
{
    int64_t cents, most = f->most ? f->most : AMOUNT_CENTS_MAX;
    if (!amount_cents(s, &cents))
        return "must be an amount like \"240.00\"";
    if (cents >= f->least && cents <= most)
        return NULL;
    struct str low = amount_decimal(a, f->least), high = amount_decimal(a, most);
    return arena_printf(a, "must be from %.*s to %.*s", STR_ARG(low), STR_ARG(high));
}

/* --- the body --- */

static bool counts_fit(const struct checker *c, const struct place *at, const struct api_field *f,
                       const struct json *j)
{
    json_each (it, j) {
        struct place member = {.in = at, .name = it->key};
        const char *why =
            it->type == JSON_INT ? int_problem(c->arena, f, it->i) : "must be an integer";
        if (why)
            return wrong(c, &member, why);
    }
    return true;
}

static const char *member_problem(struct arena *a, const struct api_field *f, const struct json *j)
{
    if (j->type == JSON_STRING)
        return text_problem(a, f, j->s, 0, f->item_most);
    bool fits = j->type == JSON_INT || j->type == JSON_REAL || j->type == JSON_NULL;
    return fits ? NULL : "must be a text, a number or null";
}

static const char *any_problem(struct arena *a, const struct api_field *f, const struct json *j)
{
    if (j->type == JSON_STRING)
        return text_problem(a, f, j->s, 0, f->item_most);
    if (j->type == JSON_OBJECT || j->type == JSON_ARRAY)
        return "must be a text, a number, true, false or null";
    return NULL;
}

/* One such value, or an array of them. */
static bool any_fits(const struct checker *c, const struct place *at, const struct api_field *f,
                     const struct json *j)
{
    bool list = j->type == JSON_ARRAY;
    const char *why = list ? amount_problem(c->arena, j->count, 0, f->most, "items")
                           : any_problem(c->arena, f, j);
    struct place item = {.in = at};
    for (const struct json *it = list ? json_first(j) : NULL; it && !why; it = it->next) {
        why = any_problem(c->arena, f, it);
        if (why)
            return wrong(c, &item, why);
        item.nth++;
    }
    return why ? wrong(c, at, why) : true;
}

static bool any_members_fit(const struct checker *c, const struct place *at,
                            const struct api_field *f, const struct json *j)
{
    const char *why = amount_problem(c->arena, j->count, f->least, f->most, "members");
    if (why)
        return wrong(c, at, why);
    json_each (it, j) {
        struct place member = {.in = at, .name = it->key};
        why = member_problem(c->arena, f, it);
        if (why)
            return wrong(c, &member, why);
    }
    return true;
}

/* An array of texts or of objects. */
static bool items_fit(const struct checker *c, const struct place *at, const struct api_field *f,
                      const struct json *j)
{
    bool texts = f->type == API_TEXTS;
    const char *why = amount_problem(c->arena, j->count, f->least, f->most, "items");
    if (why)
        return wrong(c, at, why);
    struct place item = {.in = at};
    json_each (it, j) {
        if (it->type != (texts ? JSON_STRING : JSON_OBJECT))
            return wrong(c, &item, texts ? "must be a text" : "must be an object");
        why = texts ? text_problem(c->arena, f, it->s, 1, f->item_most) : NULL;
        if (why)
            return wrong(c, &item, why);
        if (!texts && !members_fit(c, &item, f->fields, it))
            return false;
        item.nth++;
    }
    return true;
}

/* What JSON has to look like for a type; NULL: it does. */
static const char *form_problem(enum api_type type, enum json_type got)
{
    switch (type) {
    case API_TEXT:
        return got == JSON_STRING ? NULL : "must be a text";
    case API_INT:
        return got == JSON_INT ? NULL : "must be an integer";
    case API_REAL:
        return got == JSON_INT || got == JSON_REAL ? NULL : "must be a number";
    case API_BOOL:
        return got == JSON_TRUE || got == JSON_FALSE ? NULL : "must be true or false";
    case API_MONEY:
        return got == JSON_STRING ? NULL : "must be an amount in quotes, like \"240.00\"";
    case API_TEXTS:
        return got == JSON_ARRAY ? NULL : "must be an array of texts";
    case API_COUNTS:
        return got == JSON_OBJECT ? NULL : "must be an object of integers";
    case API_VALUES:
    case API_OBJECT:
        return got == JSON_OBJECT ? NULL : "must be an object";
    case API_OBJECTS:
        return got == JSON_ARRAY ? NULL : "must be an array of objects";
    case API_ANY:
        return NULL;
    case API_INTS:
    case API_TIME:
    case API_MEMBERS:
        break;
    }
    check(false); /* only replies have these */
    return NULL;
}

static bool value_fits(const struct checker *c, const struct place *at, const struct api_field *f,
                       const struct json *j)
{
    if (f->nullable && j->type == JSON_NULL)
        return true;
    const char *why = form_problem(f->type, j->type);
    if (why)
        return wrong(c, at, why);
    if (f->type == API_TEXTS || f->type == API_OBJECTS)
        return items_fit(c, at, f, j);
    if (f->type == API_COUNTS)
        return counts_fit(c, at, f, j);
    if (f->type == API_VALUES)
        return any_members_fit(c, at, f, j);
    if (f->type == API_ANY)
        return any_fits(c, at, f, j);
    if (f->type == API_OBJECT)
        return members_fit(c, at, f->fields, j);
    if (f->type == API_TEXT)
        why = text_problem(c->arena, f, j->s, f->least, f->most);
    else if (f->type == API_INT)
        why = int_problem(c->arena, f, j->i);
    else if (f->type == API_REAL)
        why = real_problem(c->arena, f, j);
    else if (f->type == API_MONEY)
        why = money_problem(c->arena, f, j->s);
    return why ? wrong(c, at, why) : true;
}

/* Unknown members first: one of them may be the missing one, misspelt. */
static bool members_fit(const struct checker *c, const struct place *at,
                        const struct api_field *fields, const struct json *j)
{
    json_each (it, j) {
        struct place member = {.in = at, .name = it->key};
        if (!api_field_find(fields, it->key))
            return wrong(c, &member, unknown(c->arena, fields, it->key));
    }
    for (const struct api_field *f = fields; f->name; f++) {
        struct place member = {.in = at, .name = str_of(f->name)};
        const struct json *value = json_get(j, f->name);
        if (!value && !f->optional)
            return wrong(c, &member, "is missing");
        if (value && !value_fits(c, &member, f, value))
            return false;
    }
    return true;
}

int api_check_body(struct arena *a, const struct api_field *fields, const struct json *body,
                   struct api_problem *p)
{
    struct checker c = {a, p};
    return members_fit(&c, NULL, fields ? fields : no_fields, body) ? 0 : ERR_INVALID;
}

/* --- the query and the path --- */

bool api_check_bool(struct str word, bool *out)
{
    bool yes = str_eq(word, STR("1")) || str_eq(word, STR("true"));
    if (!yes && !str_eq(word, STR("0")) && !str_eq(word, STR("false")))
        return false;
    *out = yes;
    return true;
}

static const char *word_problem(struct arena *a, const struct api_field *f, struct str s)
{
    int64_t v;
    bool yes;
    if (f->type == API_INT)
        return str_to_i64(s, &v) ? int_problem(a, f, v) : "must be an integer";
    if (f->type == API_BOOL)
        return api_check_bool(s, &yes) ? NULL : "must be 1 or 0";
    if (f->type == API_MONEY)
        return money_problem(a, f, s);
    if (f->type == API_TEXTS)
        return text_problem(a, f, s, 1, f->item_most);
    return text_problem(a, f, s, f->least, f->most);
}

struct words {
    const struct api_field *fields;
    int64_t counts[API_FIELDS_MAX]; /* of each field */
    struct api_value *values;
    size_t count;
};

static bool take_word(const struct checker *c, struct words *w, struct str name, struct str value)
{
    struct place at = {.name = name};
    const struct api_field *f = api_field_find(w->fields, name);
    if (!f)
        return wrong(c, &at, unknown(c->arena, w->fields, name));
    int64_t n = ++w->counts[f - w->fields];
    if (f->type != API_TEXTS && n > 1)
        return wrong(c, &at, "is given twice");
    const char *why = f->type == API_TEXTS && n > f->most
                          ? amount_problem(c->arena, n, f->least, f->most, "items")
                          : word_problem(c->arena, f, value);
    if (why)
        return wrong(c, &at, why);
    size_t bytes = w->count * sizeof(*w->values);
    w->values = arena_grow(c->arena, w->values, bytes, bytes + sizeof(*w->values));
    w->values[w->count++] = (struct api_value){f, value};
    return true;
}

static bool take_words(const struct checker *c, struct words *w, struct str raw)
{
    while (raw.p) {
        struct str value = str_cut(&raw, '&');
        if (value.n == 0)
            continue;
        struct str name = str_cut(&value, '=');
        if (!value.p)
            value = STR("");
        struct place whole = {.name = STR("query")};
        if (!http_uri_decode(c->arena, name, true, &name) ||
            !http_uri_decode(c->arena, value, true, &value))
            return wrong(c, &whole, "cannot be decoded");
        if (!take_word(c, w, name, value))
            return false;
    }
    return true;
}

int api_check_query(struct arena *a, const struct api_field *fields, struct str raw,
                    const struct api_value **out, size_t *count, struct api_problem *p)
{
    struct checker c = {a, p};
    struct words w = {.fields = fields ? fields : no_fields};
    if (!take_words(&c, &w, raw))
        return ERR_INVALID;
    for (const struct api_field *f = w.fields; f->name; f++) {
        struct place at = {.name = str_of(f->name)};
        int64_t n = w.counts[f - w.fields];
        const char *why = n == 0 && !f->optional ? "is missing" : NULL;
        if (n > 0 && f->type == API_TEXTS)
            why = amount_problem(a, n, f->least, f->most, "items");
        if (why) {
            (void)wrong(&c, &at, why);
            return ERR_INVALID;
        }
    }
    *out = w.values;
    *count = w.count;
    return 0;
}

const char *api_check_path(struct arena *a, struct str value)
{
    return amount_problem(a, characters(value), 1, API_PATH_PARAM_CHARS_MAX, "characters");
}

/* --- the table itself --- */

static bool limits_sound(const struct api_field *f)
{
    bool bounded = f->least <= f->most && f->most > 0;
    switch (f->type) {
    case API_TEXT:
        return f->choices || bounded;
    case API_INT:
    case API_REAL:
    case API_COUNTS:
        return f->least < f->most;
    case API_TEXTS:
    case API_VALUES:
    case API_ANY:
        return bounded && (f->choices || f->item_most > 0);
    case API_OBJECTS:
        return bounded;
    case API_INTS:
    case API_TIME:
    case API_MEMBERS:
        return false; /* only replies have these */
    default:
        return true;
    }
}

/* The value in the struct of a reply is of the type that put.c reads. */
static bool place_sound(const struct api_field *f)
{
    static const size_t sizes[] = {
        [API_TEXT] = sizeof(struct str), [API_INT] = sizeof(int64_t),  [API_BOOL] = sizeof(bool),
        [API_MONEY] = sizeof(int64_t),   [API_TIME] = sizeof(int64_t), [API_MEMBERS] = 0,
    };
    if (f->bytes == 0 || f->type == API_OBJECT)
        return true;
    return f->type == API_INTS ? f->bytes % sizeof(int64_t) == 0 : f->bytes == sizes[f->type];
}

static void check_fields(const struct api_field *fields, bool request)
{
    size_t n = 0;
    for (const struct api_field *f = fields; f && f->name; f++, n++) {
        bool nested = f->type == API_OBJECT || f->type == API_OBJECTS || f->type == API_MEMBERS;
        check(api_field_find(fields, str_of(f->name)) == f); /* else it is there twice */
        check(request ? limits_sound(f) && !f->bytes : place_sound(f));
        check(nested == (f->fields != NULL));
        check_fields(f->fields, request);
    }
    check(n <= API_FIELDS_MAX);
}

static bool may_be_parameter(enum api_type t)
{
    return t == API_TEXT || t == API_INT || t == API_BOOL || t == API_MONEY || t == API_TEXTS;
}

void api_check_route(const struct api_route *r)
{
    check(r->summary && r->path && !strchr(r->path, '*'));
    check(str_starts(str_of(r->path), STR("/api/")) == (r->handler != NULL));
    bool get = strcmp(r->method, "GET") == 0, admin = r->access >= API_ADMIN;
    check((!r->body && !r->upload) || !get);
    check(!r->body || !r->upload);
    check(r->access == API_PUBLIC || admin == str_starts(str_of(r->path), STR("/api/admin/")));
    check((!admin && r->access != API_EITHER) || get || r->audit);
    check(!r->media || !r->reply);
    check_fields(r->query, true);
    check_fields(r->body, true);
    check_fields(r->reply, false);
    for (const struct api_field *f = r->query; f && f->name; f++) {
        check(may_be_parameter(f->type));
        check(!api_field_find(r->body, str_of(f->name))); /* api_text could mean either */
    }
    check(!api_field_find(r->reply, STR("success")) && !api_field_find(r->reply, STR("degraded")));
}
