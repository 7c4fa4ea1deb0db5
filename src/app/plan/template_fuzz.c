/* Any bytes as definitions, text and values, each after a zero byte. What is taken keeps the
 * promises of template.h: as many lines as the template has, and no place that a value made. */
#include <stdint.h>

#include "app/plan/template_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(struct str s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == c;
    return n;
}

static void fill(struct arena *a, const struct plan_template *p, struct str values)
{
    const struct json *object = NULL, *again;
    const char *why = NULL;
    struct str prompt, full;
    if (json_parse(a, values, &object, NULL))
        object = NULL;
    if (plan_text_fill(a, p, object, 0, &prompt, &full, &why)) {
        check(why && *why && str_utf8_valid(str_of(why)));
        return;
    }
    check(prompt.n <= PLAN_PROMPT_BYTES_MAX && str_utf8_valid(prompt));
    check(count(prompt, '\n') == count(p->text, '\n'));
    check(str_find(prompt, STR("{{")) < 0 && count(prompt, '{') <= count(p->text, '{'));
    check(json_parse(a, full, &again, NULL) == 0 && again->count == p->variable_count);
    if (plan_template_is_plan(p->category)) /* "Plan: training" is a line of the template */
        check(str_find(prompt, str_printf(a, "Plan: %.*s", STR_ARG(p->category))) >= 0);
    /* What was taken is taken again, and changes nothing. */
    struct str second, same;
    check(plan_text_fill(a, p, again, 0, &second, &same, &why) == 0);
    check(str_eq(prompt, second) && str_eq(full, same));
}

static void try_all(struct arena *a, struct str category, struct str input)
{
    const char *why = NULL;
    struct str rest = input;
    struct plan_template p = {.category = category, .name = STR("x"), .subcategory = STR("")};
    p.variables_json = str_cut(&rest, '\0');
    p.text = rest.p ? str_cut(&rest, '\0') : STR("");
    if (plan_template_parse(a, &p, &why)) {
        check(why && *why);
        return;
    }
    /* The definitions as they are stored are read back as they were. */
    struct plan_template q = p;
    check(plan_template_parse(a, &q, &why) == 0 && str_eq(p.variables_json, q.variables_json));
    fill(a, &p, rest.p ? rest : STR("{}"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct str input = str_from((const char *)data, size), cleaned;
    arena_init(&a);
    try_all(&a, STR("training"), input);
    try_all(&a, STR("other"), input);
    if (plan_value_clean(&a, input, &cleaned)) {
        struct str again;
        check(cleaned.n <= input.n && count(cleaned, '{') == 0 && count(cleaned, '\n') == 0);
        check(plan_value_clean(&a, cleaned, &again) && str_eq(cleaned, again));
    }
    arena_release(&a);
    return 0;
}
