/* Input: a body, then, after a NUL, a query. Whatever fits must be what the table says. */
#include <stdint.h>

#include "engine/api/api_private.h"
#include "engine/money/ledger.h"
#include "engine/store/amount.h"
#include "wire/http_server/http_uri.h"

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const struct api_field inner_fields[] = {
    {"x", API_INT, .least = -5, .most = 5},
    {"label", API_TEXT, .optional = true, .most = 5},
    END,
};
static const struct api_field body_fields[] = {
    {"t", API_TEXT, .optional = true, .least = 2, .most = 4},
    {"i", API_INT, .optional = true, .least = -1, .most = 100},
    {"b", API_BOOL, .optional = true},
    {"m", API_MONEY, .optional = true, .least = 1},
    {"k", API_TEXT, .optional = true, .choices = "red|green"},
    {"ts", API_TEXTS, .optional = true, .least = 1, .most = 3, .item_most = 4},
    {"cs", API_COUNTS, .optional = true, .most = 10},
    {"r", API_REAL, .optional = true, .least = -1, .most = 10},
    {"vs", API_VALUES, .optional = true, .most = 3, .item_most = 4},
    {"a", API_ANY, .optional = true, .most = 3, .item_most = 4},
    {"o", API_OBJECT, .optional = true, .fields = inner_fields},
    {"os", API_OBJECTS, .optional = true, .least = 1, .most = 2, .fields = inner_fields},
    END,
};
static const struct api_field query_fields[] = {
    {"t", API_TEXT, .optional = true, .least = 2, .most = 4},
    {"i", API_INT, .optional = true, .least = -1, .most = 100},
    {"b", API_BOOL, .optional = true},
    {"m", API_MONEY, .optional = true, .least = 1},
    {"ts", API_TEXTS, .optional = true, .most = 3, .item_most = 4},
    END,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void told(const struct api_problem *p)
{
    check(p->field && p->message && p->message[0]);
    check(str_utf8_valid(str_of(p->field)) && strlen(p->field) < 256);
}

static void fits_text(struct str s, size_t least_bytes, size_t most_bytes)
{
    check(s.p && s.n >= least_bytes && s.n <= most_bytes && !memchr(s.p, '\0', s.n));
}

static void fits_inner(const struct json *j)
{
    int64_t v;
    check(json_int(json_get(j, "x"), &v) && v >= -5 && v <= 5 && j->count <= 2);
}

static void fits(const struct json *j)
{
    int64_t v;
    if (json_get(j, "t"))
        fits_text(json_str(json_get(j, "t")), 2, 16);
    if (json_get(j, "i"))
        check(json_int(json_get(j, "i"), &v) && v >= -1 && v <= 100);
    if (json_get(j, "m"))
        check(amount_cents(json_str(json_get(j, "m")), &v) && v >= 1);
    json_each (it, json_get(j, "ts"))
        fits_text(json_str(it), 1, 16);
    const struct json *values = json_get(j, "vs");
    check(!values || (values->type == JSON_OBJECT && values->count <= 3));
    json_each (it, values)
        check(it->type == JSON_STRING
                  ? it->s.n <= 16 && !memchr(it->s.p, '\0', it->s.n)
                  : it->type <= JSON_REAL && it->type != JSON_TRUE && it->type != JSON_FALSE);
    json_each (it, json_get(j, "cs"))
        check(json_int(it, &v) && v >= 0 && v <= 10);
    json_each (it, json_get(j, "os"))
        fits_inner(it);
    if (json_get(j, "o"))
        fits_inner(json_get(j, "o"));
}

static void try_body(struct arena *a, struct str text)
{
    const struct json *j;
    struct api_problem p = {NULL, NULL};
    if (json_parse(a, text, &j, NULL) != 0 || j->type != JSON_OBJECT)
        return;
    if (api_check_body(a, body_fields, j, &p) == 0)
        fits(j);
    else
        told(&p);
    if (api_check_body(a, NULL, j, &p) == 0)
        check(j->count == 0);
}

static void try_query(struct arena *a, struct str raw)
{
    const struct api_value *values;
    size_t count, texts = 0;
    struct api_problem p = {NULL, NULL};
    if (api_check_query(a, query_fields, raw, &values, &count, &p) != 0) {
        told(&p);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_text = values[i].field->type == API_TEXT || values[i].field->type == API_TEXTS;
        texts += values[i].field->type == API_TEXTS;
        if (is_text)
            fits_text(values[i].value, 1, 16);
        struct str same;
        check(http_query_find(a, raw, str_of(values[i].field->name), 0, &same));
    }
    check(texts <= 3 && count <= 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str rest = {(const char *)data, size};
    try_body(&a, str_cut(&rest, '\0'));
    if (rest.p)
        try_query(&a, rest);
    arena_release(&a);
    return 0;
}
