/* The text of a template: its places, and what is put there. */
#include "app/plan/template_private.h"
#include "base/err.h"

#define OPEN  "{{"
#define CLOSE "}}"

/* Cuts the text in front of the next place off *rest, and the name in the place. name->p == NULL:
 * there is no further place. False: what begins with "{{" is none. */
static bool next_place(struct str *rest, struct str *before, struct str *name)
{
    ptrdiff_t at = str_find(*rest, STR(OPEN));
    *name = STR_NULL;
    *before = at < 0 ? *rest : str_from(rest->p, (size_t)at);
    *rest = str_skip(*rest, before->n);
    if (at < 0)
        return true;
    struct str inner = str_skip(*rest, strlen(OPEN));
    ptrdiff_t end = str_find(inner, STR(CLOSE));
    if (end < 0)
        return false;
    *name = str_from(inner.p, (size_t)end);
    *rest = str_skip(inner, (size_t)end + strlen(CLOSE));
    return plan_name_is(*name, PLAN_VARIABLE_NAME_CHARS);
}

static ptrdiff_t find_variable(const struct plan_template *p, struct str name)
{
    for (size_t i = 0; i < p->variable_count; i++)
        if (str_eq(p->variables[i].name, name))
            return (ptrdiff_t)i;
    return -1;
}

/* --- what is wrong with a text --- */

static int64_t line_of(struct str text, const char *at)
{
    int64_t line = 1;
    for (const char *p = text.p; p < at; p++)
        line += *p == '\n';
    return line;
}

static const char *bytes_problem(struct arena *a, struct str text)
{
    if (!str_utf8_valid(text))
        return "is not UTF-8 text";
    if (text.n == 0 || plan_characters(text) > PLAN_TEMPLATE_CHARS)
        return arena_printf(a, "must have 1 to %d characters", PLAN_TEMPLATE_CHARS);
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7F)
            return arena_printf(a, "line %lld has a control character",
                                (long long)line_of(text, text.p + i));
    }
    return NULL;
}

static const char *places_problem(struct arena *a, const struct plan_template *p)
{
    struct str rest = p->text, before, name;
    for (size_t n = 0;; n++) {
        if (!next_place(&rest, &before, &name))
            return arena_printf(a,
                                "line %lld: " OPEN " must be followed by the name of a variable"
                                " and " CLOSE,
                                (long long)line_of(p->text, before.p + before.n));
        if (!name.p)
            return NULL;
        if (find_variable(p, name) < 0)
            return arena_printf(a, "line %lld: there is no variable \"%.*s\"",
                                (long long)line_of(p->text, name.p), STR_ARG(name));
        if (n >= PLAN_TEMPLATE_PLACES)
            return arena_printf(a, "has more than %d variables in it", PLAN_TEMPLATE_PLACES);
    }
}

/* Whether a line has a value in it that says neither the first day nor the weeks. */
static bool has_other_place(struct str line)
{
    struct str before, name;
    while (next_place(&line, &before, &name) && name.p)
        if (!str_eq(name, STR(PLAN_START_DATE)) && !str_eq(name, STR(PLAN_WEEKS)))
            return true;
    return false;
}

/* The lines that say what is wanted come first: a value behind them cannot be taken for one. */
static const char *head_problem(struct arena *a, const struct plan_template *p)
{
    const struct str wanted[] = {
        STR_JOIN(a, STR("Plan: "), p->category),
        STR("Start date: " OPEN PLAN_START_DATE CLOSE),
        STR("Weeks: " OPEN PLAN_WEEKS CLOSE),
    };
    bool found[sizeof wanted / sizeof *wanted] = {false};
    struct str rest = p->text;
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        if (has_other_place(line))
            break;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            found[i] = found[i] || str_eq(str_trim(line), wanted[i]);
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!found[i])
            return arena_printf(a, "must have a line \"%.*s\" before all other variables",
                                STR_ARG(wanted[i]));
    return NULL;
}

const char *plan_text_problem(struct arena *a, const struct plan_template *p)
{
    const char *why = bytes_problem(a, p->text);
    if (!why)
        why = places_problem(a, p);
    if (!why && plan_template_is_plan(p->category))
        why = head_problem(a, p);
    return why;
}

/* --- filling --- */

static int invalid(const char **why, const char *text)
{
    *why = text;
    return ERR_INVALID;
}

static int read_values(struct arena *a, const struct plan_template *p, const struct json *values,
                       int64_t today_ms, struct plan_value *out, const char **why)
{
    if (values && values->type != JSON_OBJECT)
        return invalid(why, "variables: must be an object");
    json_each (it, values)
        if (find_variable(p, it->key) < 0)
            return invalid(why, arena_printf(a, "%.*s: there is no such variable",
                                             (int)(it->key.n > 64 ? 0 : it->key.n), it->key.p));
    for (size_t i = 0; i < p->variable_count; i++) {
        const struct plan_variable *v = &p->variables[i];
        const char *problem = NULL;
        const struct json *given = json_get(values, str_z(a, v->name));
        if (plan_value_read(a, v, given, today_ms, &out[i], &problem))
            return invalid(why, arena_printf(a, "%.*s: %s", STR_ARG(v->name), problem));
    }
    return 0;
}

static struct str write_full(struct arena *a, const struct plan_template *p,
                             const struct plan_value *values)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    for (size_t i = 0; i < p->variable_count; i++) {
        jw_key(&w, p->variables[i].name);
        if (values[i].is)
            jw_json(&w, values[i].is);
        else
            jw_null(&w);
    }
    return jw_finish(&w, a);
}

/* The text is read once, from the front: what was put in is behind by then. */
static int write_prompt(const struct plan_template *p, const struct plan_value *values,
                        struct buf *out, const char **why)
{
    struct str rest = p->text, before, name;
    do {
        if (!next_place(&rest, &before, &name))
            return invalid(why, "the template has a place that cannot be read");
        buf_add_str(out, before);
        ptrdiff_t at = name.p ? find_variable(p, name) : 0;
        if (at < 0)
            return invalid(why, "the template has a place without a variable");
        if (name.p)
            buf_add_str(out, values[at].shown);
        if (out->len > PLAN_PROMPT_BYTES_MAX)
            return invalid(why, "variables: the prompt would be too long");
    } while (name.p);
    return 0;
}

int plan_text_fill(struct arena *a, const struct plan_template *p, const struct json *values,
                   int64_t today_ms, struct str *prompt, struct str *full, const char **why)
{
    struct plan_value *filled = ARENA_ARRAY(a, struct plan_value, p->variable_count);
    int err = read_values(a, p, values, today_ms, filled, why);
    if (err)
        return err;
    struct buf b;
    buf_init(&b);
    err = write_prompt(p, filled, &b, why);
    if (!err) {
        *prompt = str_dup(a, buf_str(&b));
        *full = write_full(a, p, filled);
    }
    buf_release(&b);
    return err;
}

int plan_template_fill(struct task *t, const struct plan_template *p, const struct json *variables,
                       struct str *prompt, struct str *full)
{
    const char *why = "";
    int64_t now_ms = loop_wall_ms(task_loop(t));
    int err = plan_text_fill(task_arena(t), p, variables, now_ms, prompt, full, &why);
    return err ? task_fail(t, err, "%s", why) : 0;
}
