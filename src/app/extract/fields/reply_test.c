/* Answers of an AI about a document: in which forms they are read, what is complained about, and
 * which quotes are verified. */
#include "app/extract/fields/reply.h"

#include "base/buf.h"
#include "corpus/quote.h"
#include "tests/tap.h"

static struct arena arena;
static struct extract_template all;
static struct quote_text *document;

static const char fields[] =
    "[{\"name\":\"dose\",\"type\":\"number\",\"unit\":\"mg\",\"required\":true},"
    "{\"name\":\"patients\",\"type\":\"integer\"},{\"name\":\"blind\",\"type\":\"boolean\"},"
    "{\"name\":\"begin\",\"type\":\"date\"},"
    "{\"name\":\"design\",\"type\":\"choice\",\"choices\":[\"RCT\",\"cohort\"]},"
    "{\"name\":\"drugs\",\"type\":\"list\",\"of\":\"text\"},"
    "{\"name\":\"sizes\",\"type\":\"list\",\"of\":\"integer\"},"
    "{\"name\":\"summary\",\"type\":\"text\"}]";

static const char text[] =
    "Methods\n\nFrom May 2019 on, 1,204 patients took a single dose of 5.2 mg aspirin or placebo.\n"
    "The study was double-\nblind. Groups had 602 patients each.\n";
#define AT(quote) (strstr(text, quote) - text)

static struct str values_of(const struct extract_values *v)
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

/* The values as stored JSON; NULL with the complaint. */
static const struct json *read_as(const char *reply, bool whole, const char **complaint)
{
    struct extract_reading r = {&all, document, 0, whole};
    struct extract_values v = {0};
    const struct json *j;
    *complaint = NULL;
    int err = extract_reply_read(&arena, &r, str_of(reply), &v, complaint);
    if (err) {
        ok(err == ERR_INVALID && !v.fields && *complaint &&
               strlen(*complaint) <= EXTRACT_COMPLAINT_BYTES_MAX && !strchr(*complaint, '\n'),
           "a complaint of one line");
        return NULL;
    }
    check(json_parse(&arena, values_of(&v), &j, NULL) == 0);
    return j;
}

static struct str field_of(const struct json *j, const char *name)
{
    struct buf b;
    struct json_writer w;
    const struct json *field = json_get(j, name);
    if (!field)
        return STR("");
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, field);
    struct str s = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return s;
}

static void value_is(const char *reply, const char *name, const char *want)
{
    const char *complaint;
    const struct json *j = read_as(reply, false, &complaint);
    is_str(j ? field_of(j, name) : str_of(complaint), str_of(want), "%s", reply);
}

static void complaint_is(const char *reply, const char *want)
{
    const char *complaint;
    read_as(reply, true, &complaint);
    is_str(complaint ? str_of(complaint) : STR("none"), str_of(want), "%s", reply);
}

#define BARE "{\"value\":5.2,\"unit\":\"mg\",\"part\":0,\"verified\":false}"

static void test_forms(void)
{
    value_is("{\"dose\": 5.2}", "dose", BARE);
    value_is("{\"dose\": {\"value\": 5.2}}", "dose", BARE);
    value_is("{\"dose\": {\"value\": 5.2, \"quote\": null}}", "dose", BARE);
    value_is("{\"dose\": [{\"value\": 5.2}]}", "dose", BARE);
    value_is("{\"DOSE\": 5.2, \"other\": 3}", "dose", BARE);
    value_is("{\"fields\": {\"dose\": 5.2}}", "dose", BARE);
    value_is("```json\n{\"dose\": 5.2}\n```", "dose", BARE);
    value_is("Here {it} is:\n{\"dose\": 5.2}\nAnything else?", "dose", BARE);
    value_is("<think>{\"dose\": 3}</think>{\"dose\": 5.2}", "dose", BARE);
    value_is("{\"dose\": {\"value\": 5.2, \"quote\": \"\"}, \"summary\": \"a </think> tag\"}",
             "dose", BARE);
    value_is("{\"dose\": null}", "dose", "{\"value\":null}");
    value_is("{\"dose\": {\"value\": null, \"quote\": null}}", "dose", "{\"value\":null}");
    value_is("{\"dose\": {\"value\": \"N/A\"}}", "dose", "{\"value\":null}");
    value_is("{\"dose\": []}", "dose", "{\"value\":null}");
    value_is("{}", "dose", "{\"value\":null}");
    value_is("{\"drugs\": []}", "drugs", "{\"value\":null}");
    value_is("{\"drugs\": {\"value\": null}}", "drugs", "{\"value\":null}");
    const char *two = "{\"value\":[\"aspirin\",\"placebo\"],\"items\":[{\"value\":\"aspirin\","
                      "\"part\":0,\"verified\":false},{\"value\":\"placebo\",\"part\":0,"
                      "\"verified\":false}],\"verified\":false}";
    value_is("{\"drugs\": [\"aspirin\", \"placebo\", \"Aspirin\"]}", "drugs", two);
    value_is("{\"drugs\": {\"value\": [\"aspirin\", \"placebo\"]}}", "drugs", two);
    value_is("{\"drugs\": [{\"value\": \"aspirin\"}, null, \"placebo\"]}", "drugs", two);
    value_is("{\"drugs\": \"aspirin\"}", "drugs",
             "{\"value\":[\"aspirin\"],\"items\":[{\"value\":\"aspirin\",\"part\":0,\"verified\":"
             "false}],\"verified\":false}");
}

static void test_complaints(void)
{
    complaint_is("no idea", "the answer has no JSON object: it must be one, and nothing else");
    complaint_is("[1]", "the answer has no JSON object: it must be one, and nothing else");
    complaint_is("{\"dose\": ", "the JSON object is broken or not complete: in its line 1, column "
                                "9, expected a value");
    complaint_is("{\"error\": \"x\", \"more\": 1}",
                 "the JSON object has none of the fields: its members must be the fields, by their "
                 "names");
    complaint_is("{\"dose\": 1} or {\"dose\": 2}", "the answer has 2 JSON objects with fields: it "
                                                   "must be one, and nothing else");
    complaint_is("{\"patients\": 3}", "\"dose\" is required, and has no value");
    complaint_is("{\"dose\": null}", "\"dose\" is required, and has no value");
    complaint_is(
        "{\"dose\": \"high\", \"patients\": 1.5, \"blind\": \"perhaps\", \"begin\": "
        "\"soon\", \"design\": \"review\", \"drugs\": [{}], \"summary\": [1, 2]}",
        "\"dose\" must be one number, not \"high\"; \"patients\" must be one whole number, "
        "not 1.5; \"blind\" must be true or false, not \"perhaps\"; \"begin\" must be a "
        "date as YYYY-MM-DD, YYYY-MM or YYYY, not \"soon\"; \"design\" must be one of "
        "\"RCT\", \"cohort\", not \"review\"; \"drugs\" must be an object with \"value\" "
        "and \"quote\"; \"summary\" must be one value, not 2 of them");
    complaint_is("{\"patients\": 1.5}", "\"patients\" must be one whole number, not 1.5; \"dose\" "
                                        "is required, and has no value");
    complaint_is("{\"dose\": {\"value\": 5, \"quote\": 3}}",
                 "\"dose\" has a quote that is no text");
}

/* Many wrong fields, with long names: the complaint stays short. */
static void test_long_complaint(void)
{
    struct extract_template x;
    struct buf f, reply;
    const char *complaint = NULL;
    buf_init(&f);
    buf_init(&reply);
    for (int i = 0; i < EXTRACT_FIELDS_MAX; i++) {
        buf_printf(&f, "%s{\"name\":\"%060d\",\"type\":\"number\"}", i ? "," : "[", i);
        buf_printf(&reply, "%s\"%060d\":\"x\"", i ? "," : "{", i);
    }
    buf_add_char(&f, ']');
    buf_add_char(&reply, '}');
    check(extract_template_parse(&arena, buf_str(&f), &x, &complaint) == 0);
    struct extract_reading r = {&x, NULL, 0, true};
    struct extract_values v;
    ok(extract_reply_read(&arena, &r, buf_str(&reply), &v, &complaint) == ERR_INVALID &&
           strlen(complaint) <= EXTRACT_COMPLAINT_BYTES_MAX,
       "a complaint has a limit");
    ok(strstr(complaint, " more fields are wrong"), "and says that there is more: %s", complaint);
    buf_release(&f);
    buf_release(&reply);
}

static void test_quotes(void)
{
    value_is("{\"dose\": {\"value\": 5.2, \"quote\": \"a single dose of 5.2 mg\"}}", "dose",
             arena_printf(&arena,
                          "{\"value\":5.2,\"unit\":\"mg\",\"original\":\"5.2 mg\",\"quote\":\"a "
                          "single dose of 5.2 mg\","
                          "\"begin\":%td,\"end\":%td,\"part\":0,\"verified\":true}",
                          AT("a single"), AT(" aspirin")));
    value_is("{\"patients\": {\"value\": \"1,204 patients\", \"quote\": \"1,204 patients took\"}}",
             "patients",
             arena_printf(&arena,
                          "{\"value\":1204,\"original\":\"1,204 patients\",\"quote\":\"1,204 "
                          "patients took\",\"begin\":%td,\"end\":%td,\"part\":0,\"verified\":true}",
                          AT("1,204"), AT(" a single")));
    value_is("{\"blind\": {\"value\": true, \"quote\": \"The study was double-blind.\"}}", "blind",
             arena_printf(&arena,
                          "{\"value\":true,\"quote\":\"The study was double-blind.\",\"begin\":%td,"
                          "\"end\":%td,\"part\":0,\"verified\":true}",
                          AT("The study"), AT(". Groups")));
    value_is("{\"dose\": {\"value\": 6, \"quote\": \"a single dose of 5.2 mg\"}}", "dose",
             arena_printf(&arena,
                          "{\"value\":6,\"unit\":\"mg\",\"quote\":\"a single dose of 5.2 mg\","
                          "\"begin\":%td,\"end\":%td,\"part\":0,\"verified\":false}",
                          AT("a single"), AT(" aspirin")));
    value_is("{\"dose\": {\"value\": 6, \"quote\": \"a single dose of 6 mg\"}}", "dose",
             "{\"value\":6,\"unit\":\"mg\",\"quote\":\"a single dose of 6 mg\",\"part\":0,"
             "\"verified\":false}");
    value_is(
        "{\"sizes\": {\"value\": [602, 602, 700], \"quote\": \"602 patients each\"}}", "sizes",
        arena_printf(&arena,
                     "{\"value\":[602,700],\"items\":[{\"value\":602,\"quote\":\"602 patients "
                     "each\",\"begin\":%td,\"end\":%td,\"part\":0,\"verified\":true},{\"value\""
                     ":700,\"quote\":\"602 patients each\",\"begin\":%td,\"end\":%td,\"part\":"
                     "0,\"verified\":false}],\"verified\":false}",
                     AT("602"), AT("each.") + 4, AT("602"), AT("each.") + 4));
}

int main(void)
{
    const char *complaint;
    check(extract_template_parse(&arena, str_of(fields), &all, &complaint) == 0);
    document = quote_text_new(&arena, str_of(text));
    test_forms();
    test_complaints();
    test_long_complaint();
    test_quotes();
    arena_release(&arena);
    return tap_done();
}
