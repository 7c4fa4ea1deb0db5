/* Fields that the simulated AI finds: what the server asks is answered by the rule, the server
 * reads it, and faults come on demand. */
#include "tool/sim/sim_extract.h"

#include "app/extract/fields/prompt.h"
#include "app/extract/fields/reply.h"
#include "corpus/quote.h"
#include "engine/judge/prompt.h"
#include "tests/tap.h"
#include "tool/sim/sim_chat.h"

#define DOCUMENTS 400

static struct arena arena;
static struct sim_brief brief;
static struct extract_template all;

static const char fields[] =
    "[{\"name\":\"Dose\",\"type\":\"number\",\"unit\":\"mg\",\"required\":true},"
    "{\"name\":\"patients\",\"type\":\"integer\"},{\"name\":\"Blind\",\"type\":\"boolean\"},"
    "{\"name\":\"Start\",\"type\":\"date\"},{\"name\":\"design\",\"type\":\"choice\",\"choices\":"
    "[\"RCT\",\"Cohort\"]},{\"name\":\"Drugs\",\"type\":\"list\",\"of\":\"text\"},"
    "{\"name\":\"结论\",\"type\":\"text\"}]";

static const char document[] =
    "Question: what is it?\nTitle: A study\nOverdose was seen.\n\nThe dose was high at first. Then "
    "the dose was 5.2 mg. Patients: 1,204; blind: yes\nStart is May 2019. The design was cohort.\n"
    "Drugs: aspirin, placebo and water.\n结论：有效。其他。\n";

/* The answer to what the server asks. */
static struct str answer_of(struct str text, bool json_schema, const char *complaint,
                            const struct sim_extract_faults *faults)
{
    struct prompt_model m = {.name = "m", .max_tokens = 4000};
    struct extract_asked p = {text, 1, 1, complaint};
    struct buf request, content;
    const struct json *j;
    struct sim_chat chat;
    struct sim_answer answer;
    const char *why;
    buf_init(&request);
    buf_init(&content);
    extract_prompt_write(extract_question(&arena, &all, &m, json_schema), &p, &request);
    check(json_parse(&arena, str_dup(&arena, buf_str(&request)), &j, NULL) == 0);
    check(sim_chat_read(&arena, &brief, j, &chat, &why) == 0);
    chat.extract_faults = *faults;
    sim_chat_answer(&arena, &chat, NULL, &(struct sim_fate){FAULT_NONE, 0}, &content, &answer);
    struct str out = str_dup(&arena, answer.content);
    buf_release(&request);
    buf_release(&content);
    return out;
}

static const struct sim_extract_faults never = {0};

static void test_right(void)
{
    is_str(answer_of(str_of(document), false, NULL, &never),
           STR("{\"Dose\":{\"value\":\"5.2 mg\",\"quote\":\"Then the dose was 5.2 mg\"},"
               "\"patients\":{\"value\":\"1,204\",\"quote\":\"Patients: 1,204\"},"
               "\"Blind\":{\"value\":\"yes\",\"quote\":\"blind: yes\"},"
               "\"Start\":{\"value\":\"May 2019\",\"quote\":\"Start is May 2019\"},"
               "\"design\":{\"value\":\"cohort\",\"quote\":\"The design was cohort\"},"
               "\"Drugs\":[{\"value\":\"aspirin\",\"quote\":\"Drugs: aspirin, placebo and water\"},"
               "{\"value\":\"placebo\",\"quote\":\"Drugs: aspirin, placebo and water\"},"
               "{\"value\":\"water\",\"quote\":\"Drugs: aspirin, placebo and water\"}],"
               "\"结论\":{\"value\":\"有效\",\"quote\":\"结论：有效\"}}"),
           "fields by the rule, as they stand");
    ok(str_starts(answer_of(str_of(document), true, NULL, &never),
                  STR("{\"Dose\":{\"value\":5.2,\"quote\":\"Then the dose was 5.2 mg\"},"
                      "\"patients\":{\"value\":1204,")),
       "typed where a schema is asked for");
    is_str(answer_of(STR("Nothing."), false, NULL, &never),
           STR("{\"Dose\":{\"value\":null,\"quote\":null},\"patients\":{\"value\":null,\"quote\":"
               "null},\"Blind\":{\"value\":null,\"quote\":null},\"Start\":{\"value\":null,"
               "\"quote\":null},\"design\":{\"value\":null,\"quote\":null},\"Drugs\":[],\"结论\":{"
               "\"value\":null,\"quote\":null}}"),
           "what is not there is null");
}

/* 0: the server takes it, with all quotes verified; 1: it takes it, and they are not; 2: it
 * complains. */
static int outcome(struct str text, struct str answer, const char **complaint)
{
    struct extract_reading r = {&all, quote_text_new(&arena, text), 0, true};
    struct extract_values v;
    bool verified = true;
    if (extract_reply_read(&arena, &r, answer, &v, complaint))
        return 2;
    for (size_t i = 0; i < all.count; i++)
        for (size_t k = 0; k < v.fields[i].count; k++)
            verified = verified && v.fields[i].items[k].verified;
    return verified ? 0 : 1;
}

static void test_kinds(void)
{
    static const struct {
        const char *kind;
        int outcome, later; /* after a complaint */
        const char *complaint;
    } cases[] = {
        {"types", 2, 0, "\"Dose\" must be one number, not \"none of what was asked for\"; "},
        {"missing", 2, 0, "\"Dose\" is required, and has no value"},
        {"quotes", 1, 0, ""},
        {"prose", 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_extract_faults f = {.rate = 1};
        const char *complaint = "";
        struct str bad, text = str_of(document);
        ok(sim_extract_kinds(str_of(cases[i].kind), &f.kinds, &bad), "%s", cases[i].kind);
        struct str wrong = answer_of(text, i % 2, NULL, &f);
        is_int(outcome(text, wrong, &complaint), cases[i].outcome, "what the server makes of it");
        ok(str_starts(str_of(complaint), str_of(cases[i].complaint)), "complaint: %s", complaint);
        ok(!str_eq(wrong, answer_of(text, i % 2, NULL, &never)), "it is not the right answer");
        ok(str_eq(answer_of(text, i % 2, "wrong", &f), answer_of(text, i % 2, NULL, &never)),
           "which comes after a complaint");
        f.stays = true;
        ok(str_eq(answer_of(text, i % 2, "wrong", &f), wrong), "unless it stays wrong");
    }
    struct str bad = STR("");
    unsigned kinds = 77;
    ok(!sim_extract_kinds(STR("types, no"), &kinds, &bad) && kinds == 77 && str_eq(bad, STR("no")),
       "there is no other kind");
}

static void test_share(void)
{
    const struct sim_extract_faults half = {.rate = 0.5}, two = {0.5, false, 1u << EXTRACT_QUOTES};
    int counts[EXTRACT_FAULTS] = {0}, odd = 0;
    struct sim_extract x = {.fields = all};
    for (int i = 0; i < DOCUMENTS; i++) {
        struct str user = str_printf(&arena, "<<<DOCUMENT\nCase %d\nDOCUMENT<<<", i);
        check(sim_extract_read(&arena, STR("Extract: x\n{\"name\":\"a\",\"type\":\"text\"}"), user,
                               &x));
        counts[sim_extract_fault(&x, &half)]++;
        odd += sim_extract_fault(&x, &never) != EXTRACT_RIGHT;
        enum sim_extract_fault fault = sim_extract_fault(&x, &two);
        odd += fault != (sim_extract_fault(&x, &half) ? EXTRACT_QUOTES : EXTRACT_RIGHT);
        uint64_t hash = x.hash;
        user = str_printf(&arena, "%.*s\nComplaint: x", STR_ARG(user));
        check(sim_extract_read(&arena, STR("Extract: x\n{\"name\":\"a\",\"type\":\"text\"}"), user,
                               &x));
        odd += x.hash != hash || !x.complained;
    }
    is_int(odd, 0, "which are wrong depends on fields and document alone");
    ok(counts[EXTRACT_RIGHT] > DOCUMENTS / 3 && counts[EXTRACT_RIGHT] < 2 * DOCUMENTS / 3,
       "about half: %d", counts[EXTRACT_RIGHT]);
    for (int i = EXTRACT_TYPES; i < EXTRACT_FAULTS; i++)
        ok(counts[i] > DOCUMENTS / 20, "every kind: %d", counts[i]);
}

static void test_none(void)
{
    struct sim_extract x;
    struct str system = STR("Extract: x\n{\"name\":\"a\",\"type\":\"text\"}"),
               user = STR("<<<DOCUMENT\nText\nDOCUMENT<<<");
    ok(sim_extract_read(&arena, system, user, &x), "fields of a document are asked for");
    ok(!sim_extract_read(&arena, STR("Judge.\n{\"name\":\"a\",\"type\":\"text\"}"), user, &x) &&
           !sim_extract_read(&arena, STR("Extract: x\n{\"name\":\"a\"}"), user, &x) &&
           !sim_extract_read(&arena, STR("Extract: x"), user, &x) &&
           !sim_extract_read(&arena, system, STR("<<<DOCUMENT\nText"), &x) &&
           !sim_extract_read(&arena, system, STR("Text"), &x),
       "not without fields or document");
}

int main(void)
{
    const char *complaint;
    check(extract_template_parse(&arena, str_of(fields), &all, &complaint) == 0);
    test_right();
    test_kinds();
    test_share();
    test_none();
    sim_brief_release(&brief);
    arena_release(&arena);
    return tap_done();
}
