/* Key and fields of an entry whose ends are known, so that damage stays inside it. */
#include <stdlib.h>

#include "base/ascii.h"
#include "corpus/bibtex_private.h"

static bool drop(struct bibtex *b, const struct cursor *c, const char *at, const char *reason)
{
    bibtex_report_at(b, c, at, reason, c->about, true);
    return false;
}

/* Up to eight letters in lower case, and the length: differs for nearly all names that differ. */
static uint64_t name_sign(struct str name)
{
    uint64_t sign = 0;
    memcpy(&sign, name.p, name.n < 8 ? name.n : 8);
    return (sign | 0x2020202020202020u) + name.n;
}

static struct field *find_field(struct bibtex *b, struct str name, uint64_t sign)
{
    for (size_t i = 0; i < b->field_count; i++)
        if (b->fields[i].sign == sign && str_ieq(b->fields[i].name, name))
            return &b->fields[i];
    return NULL;
}

/* Does a field begin here? Letters, then '='. */
static bool is_field(const char *p, const char *end)
{
    const char *name = p;
    while (p < end && ascii_is_letter(*p))
        p++;
    return p > name && (p = scan_skip_space(p, end)) < end && *p == '=';
}

/* Is there a plain value behind the '='? Keys like "Zmv==" have none. */
static bool has_value(const char *p, const char *end)
{
    p = memchr(p, '=', (size_t)(end - p));
    check(p); /* is_field has seen it */
    p = scan_skip_space(p + 1, end);
    return p < end && (*p == '{' || *p == '"' || ascii_is_digit(*p));
}

/* A key may hold anything but a comma, and may be missing with its comma or without. */
static bool parse_key(struct bibtex *b, struct cursor *c, struct str *key)
{
    const char *p = c->p = scan_skip_space(c->p, c->end);
    *key = str_from(p, 0);
    if (is_field(p, c->end) && has_value(p, c->end)) {
        bibtex_report_at(b, c, p, "no key", *key, false);
        return true;
    }
    while (p < c->end && *p != ',' && *p != '\n' && *p != '\r' && *p != '{' && *p != '"')
        p++;
    const char *key_end = p;
    while (key_end > c->p && scan_is_space(key_end[-1]))
        key_end--;
    *key = c->about = str_from(c->p, (size_t)(key_end - c->p));
    c->p = p = scan_skip_space(p, c->end);
    if (p == c->end)
        return true;
    if (*p == ',') {
        c->p++;
        return true;
    }
    if (!is_field(p, c->end))
        return drop(b, c, p, "no comma after the key");
    bibtex_report_at(b, c, p, "no comma after the key", *key, false);
    return true;
}

static bool add_field(struct bibtex *b, struct cursor *c, const struct field *f)
{
    if (find_field(b, f->name, f->sign)) {
        bibtex_report_at(b, c, f->name.p, "field given twice; the first counts", f->name, false);
        return true;
    }
    if (b->field_count == BIBTEX_FIELDS_MAX)
        return drop(b, c, f->name.p, "too many fields");
    b->fields[b->field_count++] = *f;
    return true;
}

/* Behind a value stands a comma; the name of the next field is accepted too. */
static bool parse_comma(struct bibtex *b, struct cursor *c, struct str name)
{
    c->p = scan_skip_space(c->p, c->end);
    if (c->p == c->end)
        return true;
    if (*c->p == ',') {
        c->p++;
        return true;
    }
    const char *name_end = bibtex_skip_name(c->p, c->end);
    const char *p = scan_skip_space(name_end, c->end);
    if (name_end == c->p || p == c->end || *p != '=')
        return drop(b, c, c->p, "no comma after a field");
    bibtex_report_at(b, c, c->p, "no comma after a field", name, false);
    return true;
}

static bool parse_field(struct bibtex *b, struct cursor *c)
{
    const char *p = bibtex_skip_name(c->p, c->end);
    struct field f = {.name = str_from(c->p, (size_t)(p - c->p))};
    if (f.name.n == 0)
        return drop(b, c, p, "no name where a field should begin");
    f.sign = name_sign(f.name);
    c->p = p = scan_skip_space(p, c->end);
    if (p < c->end && *p == '=') {
        c->p++;
        const char *reason = bibtex_skip_value(b, c, &f);
        if (reason)
            return drop(b, c, f.name.p, reason);
    } else if (p < c->end && *p != ',') {
        return drop(b, c, p, "no '=' after the name of a field");
    }
    if (f.text.n == 0 && !f.simple)
        bibtex_report_at(b, c, f.name.p, "field without a value", f.name, false);
    else if (!add_field(b, c, &f))
        return false;
    return parse_comma(b, c, f.name);
}

/* False when the field is there and too long. */
static bool get(struct bibtex *b, struct str name, struct str *value)
{
    const struct field *f = value->p ? NULL : find_field(b, name, name_sign(name));
    if (!f)
        return true;
    *value = bibtex_expand(b, &b->arena, f, BIBTEX_ENTRY_BYTES_MAX);
    return value->p != NULL;
}

static struct str four_digits(struct str s)
{
    size_t run = 0;
    for (size_t i = 0; i < s.n; i++) {
        run = ascii_is_digit(s.p[i]) ? run + 1 : 0;
        if (run == 4)
            return str_from(s.p + i - 3, 4);
    }
    return STR_NULL;
}

static int by_order(const void *x, const void *y)
{
    const struct bibtex_macro *const *a = x, *const *b = y;
    return ((*a)->order > (*b)->order) - ((*a)->order < (*b)->order);
}

static bool fill(struct bibtex *b, struct bibtex_entry *e)
{
    struct str date = STR_NULL;
    bool fits = get(b, STR("title"), &e->title) && get(b, STR("abstract"), &e->abstract) &&
                get(b, STR("doi"), &e->doi) && get(b, STR("author"), &e->authors) &&
                get(b, STR("journal"), &e->journal) && get(b, STR("journaltitle"), &e->journal) &&
                get(b, STR("booktitle"), &e->booktitle) && get(b, STR("year"), &e->year);
    if (fits && e->year.n == 0) {
        fits = get(b, STR("date"), &date);
        e->year = date.p ? four_digits(date) : e->year;
    }
    /* In order of definition: an @string may be redefined between two that use it. */
    if (b->used_count > 1)
        qsort(b->used, b->used_count, sizeof(b->used[0]), by_order);
    e->macros = b->used;
    e->macro_count = b->used_count;
    return fits;
}

bool bibtex_parse_fields(struct bibtex *b, struct cursor *c, struct str *key)
{
    if (!parse_key(b, c, key))
        return false;
    for (;;) {
        while (c->p < c->end && (scan_is_space(*c->p) || *c->p == ','))
            c->p++;
        if (c->p == c->end)
            return true;
        if (!parse_field(b, c))
            return false;
    }
}

bool bibtex_parse_entry(struct bibtex *b, struct cursor *c, struct bibtex_entry *e)
{
    if (!bibtex_parse_fields(b, c, &e->key))
        return false;
    return fill(b, e) || drop(b, c, c->begin, "a field is too long with its @strings put in");
}

struct str bibtex_field(struct bibtex *b, struct str name)
{
    struct str value = STR_NULL;
    (void)get(b, name, &value);
    return value;
}
