/* Templates: what is read, what is refused and why, and the ready ones. */
#include "app/extract/fields/template.h"

#include "app/extract/fields/line.h"
#include "tests/tap.h"

static struct arena arena;

static struct str written(const struct extract_template *x)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_template_put(&w, x);
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

static void test_read(void)
{
    struct extract_template x;
    const char *complaint = NULL;
    struct str text =
        STR("[{\"required\": true, \"unit\": \" mg \", \"name\": \"dose\", \"type\": \"number\","
            "  \"instruction\": \"a single\\n dose\", \"choices\": null},"
            " {\"name\": \"design\", \"type\": \"choice\", \"choices\": [\"RCT\", \"cohort\"]},"
            " {\"name\": \"药物\", \"type\": \"list\", \"of\": \"text\", \"required\": false}]");
    if (!ok(extract_template_parse(&arena, text, &x, &complaint) == 0, "a template is read"))
        return;
    is_int((int64_t)x.count, 3, "its fields");
    ok(x.fields[0].type == EXTRACT_NUMBER && x.fields[0].of == EXTRACT_NUMBER &&
           x.fields[0].required && !x.fields[1].required,
       "types and what is required");
    is_str(x.fields[0].unit, STR("mg"), "the unit, trimmed");
    is_str(x.fields[0].instruction, STR("a single dose"), "the instruction, as one line");
    ok(x.fields[2].type == EXTRACT_LIST && x.fields[2].of == EXTRACT_TEXT, "a list of texts");
    is_int((int64_t)x.fields[1].choice_count, 2, "choices");
    is_int(extract_field_find(&x, STR("药物")), 2, "a field is found by its name");
    is_int(extract_field_find(&x, STR("Dose")), -1, "and by no other");
    is_str(written(&x),
           STR("[{\"name\":\"dose\",\"type\":\"number\",\"unit\":\"mg\",\"instruction\":\"a single "
               "dose\",\"required\":true},{\"name\":\"design\",\"type\":\"choice\",\"choices\":"
               "[\"RCT\",\"cohort\"]},{\"name\":\"药物\",\"type\":\"list\",\"of\":\"text\"}]"),
           "it is written in one form");
    struct extract_template again;
    ok(extract_template_parse(&arena, written(&x), &again, &complaint) == 0 &&
           str_eq(written(&again), written(&x)),
       "which is read as the same");
}

static const struct {
    const char *fields, *complaint;
} refused[] = {
    {"{}", "fields must be a list of 1 to 50 fields"},
    {"[]", "fields must be a list of 1 to 50 fields"},
    {"[", "fields are no JSON: in line 1, column 2, expected a value"},
    {"[3]", "field 1: a field must be an object, not 3"},
    {"[{\"type\":\"text\"}]", "field 1: \"name\" is missing"},
    {"[{\"name\":3,\"type\":\"text\"}]", "field 1: \"name\" must be a text, not 3"},
    {"[{\"name\":\" \",\"type\":\"text\"}]", "field 1: \"name\" must not be empty"},
    {"[{\"name\":\"a\\nb\",\"type\":\"text\"}]",
     "field 1: \"name\" must not have control characters"},
    {"[{\"name\":\"a\\u2028b\",\"type\":\"text\"}]",
     "field 1: \"name\" must not have control characters"},
    {"[{\"name\":\"a<<<b\",\"type\":\"text\"}]", "field 1: \"name\" must not have <<<"},
    {"[{\"name\":\"a\"}]", "field 1 (a): \"type\" is missing"},
    {"[{\"name\":\"a\",\"type\":\"float\"}]",
     "field 1 (a): \"type\" must be text, number, integer, boolean, date, choice or list, not "
     "\"float\""},
    {"[{\"name\":\"a\",\"type\":\"list\"}]", "field 1 (a): \"of\" is missing"},
    {"[{\"name\":\"a\",\"type\":\"list\",\"of\":\"list\"}]",
     "field 1 (a): \"of\" must be text, number, integer, boolean, date or choice, not \"list\""},
    {"[{\"name\":\"a\",\"type\":\"text\",\"of\":\"text\"}]",
     "field 1 (a): \"of\" belongs to a list, and the type is text"},
    {"[{\"name\":\"a\",\"type\":\"text\",\"unit\":\"mg\"}]",
     "field 1 (a): \"unit\" belongs to numbers and integers, and the type is text"},
    {"[{\"name\":\"a\",\"type\":\"choice\"}]",
     "field 1 (a): \"choices\" must be a list of 1 to 50 texts"},
    {"[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[]}]",
     "field 1 (a): \"choices\" must be a list of 1 to 50 texts"},
    {"[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[1]}]",
     "field 1 (a): every one of \"choices\" must be a text, not 1"},
    {"[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"\"]}]",
     "field 1 (a): none of \"choices\" may be empty"},
    {"[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"<<<\"]}]",
     "field 1 (a): none of \"choices\" may have <<<"},
    {"[{\"name\":\"a\",\"type\":\"choice\",\"choices\":[\"RCT\",\"rct\"]}]",
     "field 1 (a): \"choices\" has \"rct\" twice; case does not count"},
    {"[{\"name\":\"a\",\"type\":\"text\",\"choices\":[\"x\"]}]",
     "field 1 (a): \"choices\" belongs to a choice, and the type is text"},
    {"[{\"name\":\"a\",\"type\":\"text\",\"required\":1}]",
     "field 1 (a): \"required\" must be true or false, not 1"},
    {"[{\"name\":\"a\",\"type\":\"text\",\"instructions\":\"x\"}]",
     "field 1 (a): there is no member \"instructions\"; a field has name, type, of, instruction, "
     "required, unit and choices"},
    {"[{\"name\":\"Äpfel\",\"type\":\"text\"},{\"name\":\"äpfel\",\"type\":\"text\"}]",
     "field 2 (äpfel): another field has this name; case does not count"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct extract_template x = {.count = 77};
        const char *complaint = "";
        int err = extract_template_parse(&arena, str_of(refused[i].fields), &x, &complaint);
        ok(err == ERR_INVALID && x.count == 77, "refused: %s", refused[i].fields);
        is_str(str_of(complaint), str_of(refused[i].complaint), "and the complaint says why");
    }
}

static struct str repeated(const char *s, size_t n)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < n; i++)
        buf_add_str(&b, str_of(s));
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

static struct str fields_of(size_t count)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < count; i++)
        buf_printf(&b, "%s{\"name\":\"f%zu\",\"type\":\"date\"}", i ? "," : "[", i);
    buf_add_char(&b, ']');
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

/* Which: 0 the name, 1 the instruction, 2 a choice, 3 the number of choices, 4 the unit. */
static struct str field_of_size(int which, size_t n)
{
    struct str s = repeated("量", which == 3 ? 1 : n);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "[{\"name\":\"%.*s\",\"type\":\"%s\"", STR_ARG(which == 0 ? s : STR("a")),
               which == 2 || which == 3 ? "choice" : "number");
    if (which == 1 || which == 4)
        buf_printf(&b, ",\"%s\":\"%.*s\"", which == 1 ? "instruction" : "unit", STR_ARG(s));
    if (which == 2)
        buf_printf(&b, ",\"choices\":[\"%.*s\"]", STR_ARG(s));
    for (size_t i = 0; which == 3 && i < n; i++)
        buf_printf(&b, "%s\"c%zu\"", i ? "," : ",\"choices\":[", i);
    buf_add_str(&b, which == 3 ? STR("]}]") : STR("}]"));
    struct str text = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return text;
}

static void test_limits(void)
{
    static const size_t limits[] = {EXTRACT_NAME_CHARS_MAX, EXTRACT_INSTRUCTION_CHARS_MAX,
                                    EXTRACT_CHOICE_CHARS_MAX, EXTRACT_CHOICES_MAX,
                                    EXTRACT_UNIT_CHARS_MAX};
    struct extract_template x;
    const char *complaint;
    for (int i = 0; i < 5; i++) {
        ok(extract_template_parse(&arena, field_of_size(i, limits[i]), &x, &complaint) == 0,
           "limit %d is allowed", i);
        ok(extract_template_parse(&arena, field_of_size(i, limits[i] + 1), &x, &complaint) ==
               ERR_INVALID,
           "one more is not");
    }
    ok(extract_template_parse(&arena, fields_of(EXTRACT_FIELDS_MAX), &x, &complaint) == 0 &&
           extract_template_parse(&arena, fields_of(EXTRACT_FIELDS_MAX + 1), &x, &complaint) ==
               ERR_INVALID,
       "as many fields as there may be, and no more");
}

static bool fits(const struct extract_ready_text *t, struct extract_template *x)
{
    const char *complaint = "no name";
    bool fine = t->name.n && extract_template_parse(&arena, t->fields, x, &complaint) == 0;
    return ok(fine, "%.*s is a template: %s", STR_ARG(t->name), fine ? "yes" : complaint);
}

/* In both languages the same types, so that results can be compared. */
static void test_ready(void)
{
    static const char *const ids[] = {"pico", "trial", "materials", "benchmark"};
    is_int((int64_t)extract_ready_count, 4, "four templates ship");
    for (size_t i = 0; i < 4; i++) {
        const struct extract_ready *r = extract_ready(str_of(ids[i]));
        struct extract_template en, zh;
        if (!ok(r != NULL, "%s is there", ids[i]) || !fits(&r->en, &en) || !fits(&r->zh, &zh))
            continue;
        bool same = en.count == zh.count;
        for (size_t k = 0; same && k < en.count; k++)
            same = en.fields[k].type == zh.fields[k].type && en.fields[k].of == zh.fields[k].of &&
                   en.fields[k].required == zh.fields[k].required &&
                   en.fields[k].choice_count == zh.fields[k].choice_count;
        ok(same, "its fields are alike in both languages");
    }
    ok(!extract_ready(STR("nothing")), "there is no other");
}

static void test_lines(void)
{
    is_str(line_clean(&arena, STR(" a\t\r\n b\xc2\x85"
                                  "c\u2028 ")),
           STR("a b c"), "one line");
    is_str(line_clean(&arena, STR("â€ é")), STR("â€ é"), "letters of the same first bytes stay");
    is_str(line_clean(&arena, STR("")), STR(""), "nothing");
    is_str(line_folded(&arena, STR("ＲＣＴ Straße")), STR("rct strasse"), "folded");
    is_str(line_folded(&arena, STR("")), STR(""), "nothing, folded");
}

int main(void)
{
    test_read();
    test_refused();
    test_limits();
    test_ready();
    test_lines();
    arena_release(&arena);
    return tap_done();
}
