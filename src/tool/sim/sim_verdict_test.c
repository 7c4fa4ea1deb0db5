#include "tool/sim/sim_verdict.h"

#include "base/json.h"
#include "tests/tap.h"
#include "tool/sim/sim_labels.h"

static struct arena arena;

static struct sim_prompt read_prompt(const char *message)
{
    struct sim_prompt p;
    sim_prompt_read(&p, str_of(message));
    return p;
}

static void test_fields(void)
{
    struct sim_prompt p = read_prompt("Judge this paper.\n"
                                      "Question: Which catalysts\n  split water?\n"
                                      "\n"
                                      "Answer in JSON.\n"
                                      "TITLE :Nickel catalysts\r\n"
                                      "doi: 10.1/A\n"
                                      "Abstract: We report\nmore: than this.\n");
    is_str(p.question, STR("Which catalysts\n  split water?"), "a field may have several lines");
    is_str(p.title, STR("Nickel catalysts"), "case, blanks and CR do not matter");
    is_str(p.doi, STR("10.1/A"), "the DOI is a field too");
    is_str(p.abstract, STR("We report\nmore: than this."), "other colons are text");

    p = read_prompt("问题：石墨烯\n标题: 电池\n摘要：无");
    is_str(p.question, STR("石墨烯"), "Chinese label of the question");
    is_str(p.title, STR("电池"), "of the title");
    is_str(p.abstract, STR("无"), "of the abstract");

    p = read_prompt("Title:\n\nQuestions: none\nThe Abstract: no");
    is_str(p.title, STR(""), "an empty field is there");
    is_str(p.question, STR_NULL, "a longer word is no label");
    is_str(p.abstract, STR_NULL, "a label begins its line");
}

static void test_first_counts(void)
{
    struct sim_prompt p = read_prompt("Question: one\nTitle: two\n"
                                      "Abstract: text\nQuestion: other\nAbstract: again\nTitle: x");
    is_str(p.question, STR("one"), "the first question counts");
    is_str(p.title, STR("two"), "the first title counts");
    is_str(p.abstract, STR("text\nQuestion: other\nAbstract: again\nTitle: x"),
           "what an abstract says is its text");
}

static struct str verdict(const struct map *labels, const char *message)
{
    struct sim_prompt p = read_prompt(message);
    struct sim_verdict v;
    if (!sim_verdict(&arena, &p, labels, &v))
        return STR("none");
    struct buf b;
    buf_init(&b);
    sim_verdict_write(&v, &b);
    struct str copy = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return copy;
}

static const struct json *parsed(struct str text)
{
    const struct json *j = NULL;
    return json_parse(&arena, text, &j, NULL) ? NULL : j;
}

static void test_rule(void)
{
    is_str(verdict(NULL, "Question: water splitting\nTitle: Water\nAbstract: splitting"),
           STR("{\"relevant\": true, \"reason\": \"The title mentions 'Water', which the question "
               "asks about.\"}"),
           "found in the title");
    is_str(verdict(NULL, "Question: water splitting\nTitle: None\nAbstract: by splitting it"),
           STR("{\"relevant\": true, \"reason\": \"The abstract mentions 'splitting', which the "
               "question asks about.\"}"),
           "found in the abstract");
    is_str(verdict(NULL, "Question: water splitting\nTitle: None"),
           STR("{\"relevant\": false, \"reason\": \"Neither title nor abstract mentions what the "
               "question asks about.\"}"),
           "found nowhere");
    is_str(verdict(NULL, "Question: water"), STR("none"), "no paper, no verdict");
    is_str(verdict(NULL, "Title: water"), STR("none"), "no question, no verdict");
}

static void test_labels_outrank(void)
{
    const char *why;
    struct map *labels = sim_labels_read(&arena, STR("10.1/no,0\n10.1/yes,1\n"), &why);
    bool relevant = false;
    const char *match = "Question: water\nTitle: water\nDOI: 10.1/NO";
    ok(json_bool(json_get(parsed(verdict(labels, match)), "relevant"), &relevant) && !relevant,
       "a label says no where the words say yes");
    ok(json_bool(json_get(parsed(verdict(labels, "DOI: 10.1/yes")), "relevant"), &relevant) &&
           relevant,
       "a labelled DOI needs nothing else");
    ok(json_bool(json_get(parsed(verdict(labels, "Question: water\nTitle: water\nDOI: 10.1/x")),
                          "relevant"),
                 &relevant) &&
           relevant,
       "other papers go by the words");
    map_free(labels);
}

static size_t characters(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

static void test_long_word(void)
{
    struct str word = STR("a");
    for (int i = 0; i < 100; i++)
        word = str_printf(&arena, "%.*s\xC3\xA9", STR_ARG(word));
    struct str message =
        str_printf(&arena, "Question: %.*s\nTitle: %.*s", STR_ARG(word), STR_ARG(word));
    const struct json *j = parsed(verdict(NULL, message.p));
    struct str reason = json_str(json_get(j, "reason"));
    ok(j && reason.n, "a long word is cut at a character, the reason is still UTF-8");
    ok(characters(reason) <= SIM_REASON_CHARACTERS_MAX, "and short enough");
}

int main(void)
{
    arena_init(&arena);
    test_fields();
    test_first_counts();
    test_rule();
    test_labels_outrank();
    test_long_word();
    arena_release(&arena);
    return tap_done();
}
