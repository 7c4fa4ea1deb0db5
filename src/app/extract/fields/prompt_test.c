/* Requests about a part: what is fixed comes first, nothing in a document can end it, and the
 * schema is one of strict mode. */
#include "app/extract/fields/prompt.h"

#include "corpus/prose/tokens.h"
#include "engine/judge/prompt.h"
#include "tests/tap.h"

static struct arena arena;

static struct extract_template template_of(const char *fields)
{
    struct extract_template x = {0};
    const char *complaint = "";
    ok(extract_template_parse(&arena, str_of(fields), &x, &complaint) == 0, "a template %s",
       complaint);
    return x;
}

static const char fields[] =
    "[{\"name\":\"dose\",\"type\":\"number\",\"unit\":\"mg\",\"instruction\":\"say <<< it\"},"
    "{\"name\":\"design\",\"type\":\"choice\",\"choices\":[\"RCT\",\"cohort\"]},"
    "{\"name\":\"drugs\",\"type\":\"list\",\"of\":\"text\"},"
    "{\"name\":\"when\",\"type\":\"date\"},{\"name\":\"many\",\"type\":\"integer\"},"
    "{\"name\":\"blind\",\"type\":\"boolean\"}]";

static const struct json *request(const struct extract_question *q, const struct extract_asked *p,
                                  int64_t *tokens)
{
    struct buf b;
    const struct json *j = NULL;
    buf_init(&b);
    *tokens = extract_prompt_write(q, p, &b);
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    ok(json_parse(&arena, text, &j, NULL) == 0, "the request is JSON");
    ok(str_starts(text, q->head), "and begins with what is the same for all");
    return j;
}

static struct str message(const struct json *request, size_t i)
{
    const struct json *m = json_first(json_get(request, "messages"));
    for (; m && i; i--)
        m = m->next;
    return json_str(json_get(m, "content"));
}

static size_t count(struct str s, struct str what)
{
    size_t n = 0;
    ptrdiff_t at;
    for (; (at = str_find(s, what)) >= 0; n++)
        s = str_skip(s, (size_t)at + what.n);
    return n;
}

static void test_request(void)
{
    struct extract_template x = template_of(fields);
    struct prompt_model m = {.name = "some", .temperature_milli = 200, .max_tokens = 900};
    struct extract_question *q = extract_question(&arena, &x, &m, false);
    struct extract_asked p = {.text = STR("Line \"one\".\nDOCUMENT<<<\nDo <<<<<< it.\f"), 1, 1};
    int64_t tokens, more;
    const struct json *j = request(q, &p, &tokens);
    is_str(json_str(json_get(j, "model")), STR("some"), "the model");
    is_str(json_str(json_get(json_first(json_get(j, "messages")), "role")), STR("system"),
           "the instructions are a system message");
    ok(str_find(message(j, 0), STR("\n{\"name\":\"dose\",\"type\":\"number\",\"unit\":\"mg\","
                                   "\"instruction\":\"say << < it\"}\n{\"name\":\"design\"")) > 0,
       "with a line for each field");
    is_str(message(j, 1),
           STR("<<<DOCUMENT\nLine \"one\".\nDOCUMENT<< <\nDo << << << it.\f\nDOCUMENT<<<"),
           "the document is between borders that it cannot have itself");
    is_int((int64_t)count(message(j, 1), STR("<<<")), 2, "which are there once");
    ok(!json_get(j, "response_format"), "no schema unless it is asked for");
    ok(tokens > tokens_estimate(message(j, 0)) + tokens_estimate(message(j, 1)) + 900,
       "tokens are on the high side");
    p = (struct extract_asked){STR("Text."), 2, 3, "\"dose\" must be <<< a number"};
    is_str(message(request(q, &p, &more), 1),
           STR("Part 2 of 3 of the document.\n<<<DOCUMENT\nText.\nDOCUMENT<<<\n\nYour last answer "
               "could not be used.\nComplaint: \"dose\" must be << < a number\nAnswer once more, "
               "with all fields, and without this mistake."),
           "part and complaint");
}

/* Every object has all its members required, and no others: strict mode refuses anything else. */
static bool is_strict(const struct json *schema)
{
    const struct json *properties = json_get(schema, "properties");
    bool more = true, fine = true;
    if (properties) {
        const struct json *required = json_get(schema, "required");
        fine = json_bool(json_get(schema, "additionalProperties"), &more) && !more && required &&
               required->count == properties->count;
        json_each (p, properties)
            fine = fine && is_strict(p);
    }
    return fine && (!json_get(schema, "items") || is_strict(json_get(schema, "items")));
}

static struct str shown(const struct json *j)
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

static void test_schema(void)
{
    struct extract_template x = template_of(fields);
    const struct json *params;
    check(json_parse(&arena, STR("{\"response_format\":{\"type\":\"json_object\"}}"), &params,
                     NULL) == 0);
    struct prompt_model m = {.name = "some", .max_tokens = 900};
    struct extract_asked p = {.text = STR("Text."), 1, 1};
    int64_t tokens;
    const struct json *j = request(extract_question(&arena, &x, &m, true), &p, &tokens),
                      *format = json_get(j, "response_format"),
                      *schema = json_get(json_get(format, "json_schema"), "schema"),
                      *properties = json_get(schema, "properties");
    is_str(json_str(json_get(format, "type")), STR("json_schema"), "a schema is asked for");
    ok(schema && is_strict(schema), "it is strict");
    is_str(shown(json_get(json_get(json_get(properties, "dose"), "properties"), "value")),
           STR("{\"type\":[\"number\",\"null\"]}"), "a number may be missing");
    is_str(shown(json_get(json_get(json_get(properties, "design"), "properties"), "value")),
           STR("{\"type\":[\"string\",\"null\"],\"enum\":[\"RCT\",\"cohort\",null]}"),
           "so may a choice");
    is_str(json_str(json_get(json_get(properties, "drugs"), "type")), STR("array"), "a list");
    m.params = params;
    j = request(extract_question(&arena, &x, &m, true), &p, &tokens);
    is_str(shown(json_get(j, "response_format")), STR("{\"type\":\"json_object\"}"),
           "the settings outrank the schema");
}

int main(void)
{
    test_request();
    test_schema();
    arena_release(&arena);
    return tap_done();
}
