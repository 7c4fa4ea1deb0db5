/* Values: typed, compared, merged over parts, stored and read back. */
#include "app/extract/fields/values.h"

#include "tests/tap.h"

static struct arena arena;
static struct extract_template all;

static const char fields[] =
    "[{\"name\":\"text\",\"type\":\"text\"},{\"name\":\"number\",\"type\":\"number\",\"unit\":"
    "\"mg\"},{\"name\":\"integer\",\"type\":\"integer\",\"required\":true},{\"name\":\"boolean\","
    "\"type\":\"boolean\"},{\"name\":\"date\",\"type\":\"date\"},{\"name\":\"choice\",\"type\":"
    "\"choice\",\"choices\":[\"RCT\",\"Kohorte Ä\",\"2\"]},{\"name\":\"list\",\"type\":\"list\","
    "\"of\":\"text\"}]";

static const struct extract_field *field(const char *name)
{
    return &all.fields[extract_field_find(&all, str_of(name))];
}

static const struct json *json_of(const char *text)
{
    const struct json *j;
    check(json_parse(&arena, str_of(text), &j, NULL) == 0);
    return j;
}

/* --- one value --- */

static const struct {
    const char *field, *given, *text, *original; /* text NULL: original is the problem */
} cases[] = {
    {"text", "\" some\\n text \"", "some text", NULL},
    {"text", "2019", "2019", NULL},
    {"text", "1.5", "1.5", NULL},
    {"text", "true", NULL, "must be a text, not boolean"},
    {"text", "{}", NULL, "must be a text, not object"},
    {"number", "5.2", "5.2", NULL},
    {"number", "5", "5", NULL},
    {"number", "-0.0", "0", NULL},
    {"number", "\"5.2\"", "5.2", NULL},
    {"number", "\"5.2 mg\"", "5.2", "5.2 mg"},
    {"number", "\"1,234\"", "1234", "1,234"},
    {"number", "\"1.2×10³\"", "1200", "1.2×10³"},
    {"number", "\"< 0.001\"", "0.001", "< 0.001"},
    {"number", "\"5.2 ± 0.3 mg\"", "5.2", "5.2 ± 0.3 mg"},
    {"number", "\"5-10 mg\"", NULL, "must be one number, not \"5-10 mg\""},
    {"number", "\"5 to 10\"", NULL, "must be one number, not \"5 to 10\""},
    {"number", "\"5, 10 and 20\"", NULL, "must be one number, not \"5, 10 and 20\""},
    {"number", "\"3/10\"", NULL, "must be one number, not \"3/10\""},
    {"number", "\"high\"", NULL, "must be one number, not \"high\""},
    {"number", "true", NULL, "must be one number, not boolean"},
    {"integer", "120", "120", NULL},
    {"integer", "120.0", "120", NULL},
    {"integer", "\"1,204 patients\"", "1204", "1,204 patients"},
    {"integer", "5.5", NULL, "must be one whole number, not 5.5"},
    {"integer", "\"5.5\"", NULL, "must be one whole number, not \"5.5\""},
    {"integer", "1e300", NULL, "must be one whole number, not 1e+300"},
    {"integer", "9223372036854775807", "9223372036854775807", NULL},
    {"boolean", "true", "true", NULL},
    {"boolean", "\"Yes\"", "true", "Yes"},
    {"boolean", "\"no\"", "false", "no"},
    {"boolean", "\"是\"", "true", "是"},
    {"boolean", "\"否\"", "false", "否"},
    {"boolean", "\"maybe\"", NULL, "must be true or false, not \"maybe\""},
    {"boolean", "1", NULL, "must be true or false, not 1"},
    {"date", "\"17 May 2020\"", "2020-05-17", "17 May 2020"},
    {"date", "2020", "2020", NULL},
    {"date", "\"2020-05\"", "2020-05", NULL},
    {"date", "\"2020-02-30\"", NULL,
     "must be a date as YYYY-MM-DD, YYYY-MM or YYYY, not \"2020-02-30\""},
    {"date", "\"3/4/2020\"", NULL, "must be a date as YYYY-MM-DD: \"3/4/2020\" has two meanings"},
    {"choice", "\"RCT\"", "RCT", NULL},
    {"choice", "\"rct\"", "RCT", "rct"},
    {"choice", "\"KOHORTE ä\"", "Kohorte Ä", "KOHORTE ä"},
    {"choice", "2", "2", NULL},
    {"choice", "\"cohort\"", NULL, "must be one of \"RCT\", \"Kohorte Ä\", \"2\", not \"cohort\""},
};

static void test_types(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct extract_value v = {.begin = 7};
        const char *problem = "";
        const struct extract_field *f = field(cases[i].field);
        int err = extract_value_read(&arena, f, json_of(cases[i].given), &v, &problem);
        if (!cases[i].text) {
            ok(err == ERR_INVALID && v.begin == 7, "%s: %s", cases[i].field, cases[i].given);
            is_str(str_of(problem), str_of(cases[i].original), "is refused");
            continue;
        }
        ok(err == 0, "%s: %s %s", cases[i].field, cases[i].given, problem);
        is_str(extract_value_text(&arena, f, &v), str_of(cases[i].text), "is read");
        is_str(v.original, str_of(cases[i].original), "with the original, if it differs");
    }
    char *large = arena_alloc(&arena, EXTRACT_VALUE_BYTES_MAX + 4);
    memset(large, 'x', EXTRACT_VALUE_BYTES_MAX + 1);
    struct extract_value v;
    const char *problem;
    ok(extract_value_read(
           &arena, field("text"),
           &(struct json){.type = JSON_STRING, .s = {large, EXTRACT_VALUE_BYTES_MAX + 1}}, &v,
           &problem) == ERR_INVALID,
       "a text has a limit");
    ok(extract_value_is_none(field("number"), json_of("\"N/A\"")) &&
           extract_value_is_none(field("text"), json_of("\" \\n\"")) &&
           !extract_value_is_none(field("text"), json_of("\"none\"")) &&
           !extract_value_is_none(field("number"), json_of("0")),
       "what says that there is no value");
}

static void test_written(void)
{
    static const struct {
        const char *text;
        double value;
        const char *unit, *want;
    } numbers[] = {
        {"a single dose of 5.2 mg a day", 5.2, "mg", "5.2 mg"},
        {"a single dose of 5.2mg", 5.2, "mg", "5.2mg"},
        {"a single dose of 5.2 mg/kg", 5.2, "mg", "5.2 mg"},
        {"a single dose of 5.2 mgs", 5.2, "mg", "5.2"},
        {"3 groups had 1,204 patients", 1204, "", "1,204"},
        {"of 1.2 × 10³ cells", 1200, "", "1.2 × 10³"},
        {"Temperature was\n−3 °C", -3, "°C", "−3 °C"},
        {"共 1,204 例", 1204, "例", "1,204 例"},
        {"with many, many words before it, so many that it is more than enough, it was 7 mg", 7,
         "mg", "7 mg"},
        {"three", 3, "", NULL},
        {"7 of 8", 3, "", NULL},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        is_str(extract_number_written(str_of(numbers[i].text), numbers[i].value,
                                      str_of(numbers[i].unit)),
               str_of(numbers[i].want), "%s", numbers[i].text);
}

/* --- parts --- */

struct one {
    const char *value; /* JSON; NULL: none */
    const char *quote;
    bool verified;
};

static struct extract_value value_of(const char *name, struct one given, size_t part)
{
    struct extract_value v;
    const char *problem;
    check(extract_value_read(&arena, field(name), json_of(given.value), &v, &problem) == 0);
    v.quote = str_of(given.quote);
    v.verified = v.found = given.verified;
    v.begin = given.verified ? 10 * part : 0;
    v.end = given.verified ? 10 * part + 5 : 0;
    v.part = part;
    return v;
}

static struct extract_values part_of(const char *name, const struct one *given, size_t count,
                                     size_t part)
{
    struct extract_values v;
    extract_values_init(&arena, &all, &v);
    struct extract_value *items = ARENA_ARRAY(&arena, struct extract_value, count);
    struct extract_found *found = &v.fields[extract_field_find(&all, str_of(name))];
    for (size_t i = 0; i < count && given[i].value; i++)
        items[found->count++] = value_of(name, given[i], part);
    found->items = items;
    return v;
}

static struct str stored(const struct extract_values *v)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_values_put(&w, &all, v);
    struct str s = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return s;
}

/* Reads it back, and compares what is written then. Returns the field's object. */
static const struct json *shown(const struct extract_values *v, const char *name)
{
    struct extract_values again;
    struct str text = stored(v);
    const struct json *j = json_of(str_z(&arena, text));
    ok(extract_values_read(&arena, &all, text, &again) == 0 && str_eq(stored(&again), text),
       "what was stored is read back as the same");
    return json_get(j, name);
}

static struct str text_of(const struct json *j)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, j);
    struct str s = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static void merge(struct extract_values *into, const char *name, const struct one *given,
                  size_t count, size_t part)
{
    struct extract_values v = part_of(name, given, count, part);
    extract_values_merge(&arena, &all, into, &v);
}

static void test_merge(void)
{
    struct extract_values v;
    extract_values_init(&arena, &all, &v);
    merge(&v, "number", &(struct one){NULL, NULL, false}, 1, 0);
    is_str(text_of(shown(&v, "number")), STR("{\"value\":null}"), "nothing in the first part");
    merge(&v, "number", &(struct one){"5", "q1", false}, 1, 1);
    merge(&v, "number", &(struct one){"6", "q2", true}, 1, 2);
    merge(&v, "number", &(struct one){"7", "q3", true}, 1, 3);
    merge(&v, "number", &(struct one){"\"5 mg\"", "q4", true}, 1, 4);
    merge(&v, "number", &(struct one){"6", "q5", false}, 1, 5);
    is_str(text_of(shown(&v, "number")),
           STR("{\"value\":6,\"unit\":\"mg\",\"quote\":\"q2\",\"begin\":20,\"end\":25,\"part\":2,"
               "\"verified\":true,\"differs\":[{\"value\":5,\"original\":\"5 mg\",\"quote\":\"q4\","
               "\"begin\":40,\"end\":45,\"part\":4,\"verified\":true},{\"value\":7,\"quote\":"
               "\"q3\",\"begin\":30,\"end\":35,\"part\":3,\"verified\":true}]}"),
           "shown is the first that is verified; all are kept, once, with the best evidence");

    extract_values_init(&arena, &all, &v);
    merge(&v, "text", &(struct one){"\"a\"", NULL, false}, 1, 0);
    merge(&v, "text", &(struct one){"\"b\"", NULL, false}, 1, 1);
    merge(&v, "text", &(struct one){"\"A\"", "q", true}, 1, 2);
    is_str(text_of(shown(&v, "text")),
           STR("{\"value\":\"A\",\"quote\":\"q\",\"begin\":20,\"end\":25,\"part\":2,\"verified\":"
               "true,\"differs\":[{\"value\":\"b\",\"part\":1,\"verified\":false}]}"),
           "the first of all if none is verified; case does not make a difference");
}

static void test_lists(void)
{
    struct extract_values v;
    extract_values_init(&arena, &all, &v);
    const struct one first[] = {{"\"A\"", "qa", true}, {"\"B\"", "qb", false}};
    const struct one later[] = {{"\"C\"", "qc", true}, {"\"b\"", "qd", true}};
    merge(&v, "list", first, 2, 0);
    merge(&v, "list", later, 2, 1);
    const struct json *j = shown(&v, "list");
    is_str(text_of(json_get(j, "value")), STR("[\"A\",\"b\",\"C\"]"),
           "lists are united in order, without repeats");
    is_str(text_of(json_get(j, "verified")), STR("true"), "and verified if all items are");
    is_int(json_get(j, "items")->count, 3, "with the evidence of each");
    for (size_t part = 2; part < 2 + EXTRACT_ITEMS_MAX; part++) {
        struct one more = {arena_printf(&arena, "\"item %zu\"", part), NULL, false};
        merge(&v, "list", &more, 1, part);
    }
    j = shown(&v, "list");
    is_int(json_get(j, "items")->count, EXTRACT_ITEMS_MAX, "a list has a limit");
    is_str(text_of(json_get(j, "more")), STR("true"), "and says that there were more");
}

/* --- what was stored --- */

static void test_stored(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"number\":5}",
        "{\"number\":{}}",
        "{\"number\":{\"value\":\"high\"}}",
        "{\"number\":{\"value\":5,\"begin\":-1,\"end\":2}}",
        "{\"number\":{\"value\":5,\"begin\":3,\"end\":2}}",
        "{\"number\":{\"value\":5,\"begin\":3}}",
        "{\"number\":{\"value\":5,\"differs\":[{}]}}",
        "{\"list\":{\"value\":[\"a\"],\"items\":3}}",
        "{\"integer\":{\"value\":1.5}}",
    };
    struct extract_values v = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(extract_values_read(&arena, &all, str_of(bad[i]), &v) == ERR_INVALID && !v.fields,
           "this was not stored: %s", bad[i]);
    ok(extract_values_read(&arena, &all, STR("{\"gone\":{\"value\":1}}"), &v) == 0,
       "a field of another version is left out");
    is_str(extract_values_missing(&all, &v), STR("integer"), "the required one is missing");
    merge(&v, "integer", &(struct one){"5", NULL, false}, 1, 0);
    ok(!extract_values_missing(&all, &v).p, "and then it is not");
}

/* --- by hand --- */

static struct str given(const char *name, const char *value)
{
    struct extract_values v;
    const char *complaint = "";
    extract_values_init(&arena, &all, &v);
    struct extract_found *found = &v.fields[extract_field_find(&all, str_of(name))];
    found->count = 99;
    int err = extract_value_given(&arena, field(name), json_of(value), found, &complaint);
    if (!err)
        return text_of(shown(&v, name));
    ok(err == ERR_INVALID && found->count == 99, "%s: %s changes nothing", name, value);
    return str_of(complaint);
}

static void test_given(void)
{
    is_str(given("number", "\"7 mg\""),
           STR("{\"value\":7,\"unit\":\"mg\",\"original\":\"7 mg\",\"part\":0,\"verified\":false,"
               "\"edited\":true}"),
           "a value by hand");
    is_str(given("number", "null"), STR("{\"value\":null,\"edited\":true}"), "none by hand");
    is_str(given("number", "\"x\""), STR("number: must be one number, not \"x\""), "a wrong one");
    is_str(given("text", "[\"x\"]"), STR("text: must be a text, not array"), "a list is no text");
    is_str(given("list", "[\"a\",null,\"b\"]"),
           STR("{\"value\":[\"a\",\"b\"],\"items\":[{\"value\":\"a\",\"part\":0,\"verified\":false}"
               ",{\"value\":\"b\",\"part\":0,\"verified\":false}],\"verified\":false,\"edited\":"
               "true}"),
           "a list by hand");
    is_str(given("list", "\"a\""),
           STR("{\"value\":[\"a\"],\"items\":[{\"value\":\"a\",\"part\":0,\"verified\":false}],"
               "\"verified\":false,\"edited\":true}"),
           "of one");
    is_str(given("list", "[true]"), STR("list: must be a text, not boolean"), "a wrong item");
}

int main(void)
{
    const char *complaint;
    check(extract_template_parse(&arena, str_of(fields), &all, &complaint) == 0);
    test_types();
    test_written();
    test_merge();
    test_lists();
    test_stored();
    test_given();
    arena_release(&arena);
    return tap_done();
}
