/* Definitions of variables, and values for them. */
#include <math.h>

#include "app/plan/template_private.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/time.h"

#define DAY_MS     (24LL * 3600 * 1000)
#define DATE_BYTES 10 /* "2026-01-31" */
#define NOT_GIVEN  "not given"

static const char *const types[] = {
    [PLAN_TEXT] = "text", [PLAN_INTEGER] = "integer", [PLAN_NUMBER] = "number",
    [PLAN_DATE] = "date", [PLAN_CHOICE] = "choice",
};
#define TYPE_COUNT (sizeof types / sizeof *types)

/* What every template of a plan has. */
static const struct plan_variable of_plans[] = {
    {.name = {PLAN_START_DATE, sizeof(PLAN_START_DATE) - 1},
     .label = {"First day", sizeof("First day") - 1},
     .type = PLAN_DATE},
    {.name = {PLAN_WEEKS, sizeof(PLAN_WEEKS) - 1},
     .label = {"Weeks", sizeof("Weeks") - 1},
     .type = PLAN_INTEGER,
     .initial = {"4", 1},
     .least = 1,
     .most = PLAN_WEEKS_MAX},
};
#define OF_PLANS (sizeof of_plans / sizeof *of_plans)

bool plan_template_is_plan(struct str category)
{
    return str_eq(category, STR("training")) || str_eq(category, STR("nutrition"));
}

int64_t plan_characters(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

bool plan_name_is(struct str s, size_t most)
{
    bool fits = s.n > 0 && s.n <= most && s.p[0] >= 'a' && s.p[0] <= 'z';
    for (size_t i = 0; fits && i < s.n; i++) {
        char c = s.p[i];
        fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    }
    return fits;
}

/* --- cleaning --- */

static uint32_t code_of(struct str s, size_t bytes)
{
    static const unsigned char head[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)s.p[0] & head[bytes];
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)s.p[i] & 0x3F);
    return code;
}

static bool is_blank(uint32_t c) /* a line of text may end with it, or it moves the next word */
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x2028 ||
           c == 0x2029;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

/* Marks that reorder text, the byte order mark, and the tags of plane 14: people do not see them,
 * an AI does. */
static bool is_hidden(uint32_t c)
{
    return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF ||
           (c >= 0xE0000 && c <= 0xE007F);
}

static void add_cleaned(char *out, size_t *n, struct str s, size_t step, uint32_t code)
{
    if (code == '{' || code == '}') {
        out[(*n)++] = code == '{' ? '(' : ')';
        return;
    }
    memcpy(out + *n, s.p, step);
    *n += step;
}

bool plan_value_clean(struct arena *a, struct str s, struct str *out)
{
    char *text = arena_alloc(a, s.n + 1);
    size_t n = 0, step;
    bool blank = false;
    for (; s.n > 0; s = str_skip(s, step)) {
        step = str_utf8_step(s);
        if (step == 0)
            return false;
        uint32_t code = code_of(s, step);
        if (is_blank(code)) {
            blank = n > 0;
            continue;
        }
        if (is_control(code))
            return false;
        if (is_hidden(code))
            continue;
        if (blank) /* it takes the place of at least one byte */
            text[n++] = ' ';
        blank = false;
        add_cleaned(text, &n, s, step, code);
    }
    text[n] = '\0';
    *out = str_from(text, n);
    return true;
}

/* Of what admins write: it says itself what a value would be. */
static bool is_clean(struct arena *a, struct str s)
{
    struct str cleaned;
    return plan_value_clean(a, s, &cleaned) && str_eq(cleaned, s);
}

/* --- values --- */

static int invalid(const char **why, const char *text)
{
    *why = text;
    return ERR_INVALID;
}

static struct json *new_text(struct arena *a, struct str s)
{
    struct json *j = ARENA_NEW(a, struct json);
    j->type = JSON_STRING;
    j->s = s;
    return j;
}

static int read_text(struct arena *a, const struct plan_variable *v, const struct json *given,
                     struct plan_value *out, const char **why)
{
    struct str s;
    if (given->type != JSON_STRING)
        return invalid(why, "must be a text");
    if (!plan_value_clean(a, given->s, &s))
        return invalid(why, "must not have control characters");
    int64_t n = plan_characters(s);
    if (n == 0 && v->required)
        return invalid(why, "is missing");
    if (n > v->most)
        return invalid(why,
                       arena_printf(a, "must have at most %lld characters", (long long)v->most));
    if (n < v->least)
        return invalid(why,
                       arena_printf(a, "must have at least %lld characters", (long long)v->least));
    *out = (struct plan_value){s.n ? s : STR(NOT_GIVEN), s.n ? new_text(a, s) : NULL};
    return 0;
}

/* Forms and defaults have numbers as texts. */
static const struct json *number_of(struct arena *a, const struct json *given)
{
    const struct json *j = given;
    if (given->type == JSON_STRING && json_parse(a, str_trim(given->s), &j, NULL))
        return NULL;
    return j->type == JSON_INT || j->type == JSON_REAL ? j : NULL;
}

static bool in_range(const struct plan_variable *v, const struct json *j)
{
    if (j->type == JSON_INT)
        return j->i >= v->least && j->i <= v->most;
    return isfinite(j->d) && j->d >= (double)v->least && j->d <= (double)v->most;
}

static int read_number(struct arena *a, const struct plan_variable *v, const struct json *given,
                       struct plan_value *out, const char **why)
{
    const struct json *j = number_of(a, given);
    bool whole = v->type == PLAN_INTEGER;
    if (!j || (whole && j->type != JSON_INT))
        return invalid(why, whole ? "must be a whole number" : "must be a number");
    if (!in_range(v, j))
        return invalid(why, arena_printf(a, "must be from %lld to %lld", (long long)v->least,
                                         (long long)v->most));
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, j);
    *out = (struct plan_value){str_dup(a, buf_str(&b)), j};
    buf_release(&b);
    return 0;
}

static int read_date(struct arena *a, const struct json *given, struct plan_value *out,
                     const char **why)
{
    struct str s = json_str(given);
    int64_t us;
    if (!s.p || s.n != DATE_BYTES || !time_from_iso(s, &us))
        return invalid(why, "must be a date like \"2026-01-31\"");
    *out = (struct plan_value){s, new_text(a, s)};
    return 0;
}

static int read_choice(struct arena *a, const struct plan_variable *v, const struct json *given,
                       struct plan_value *out, const char **why)
{
    struct str s = json_str(given), list = STR("");
    for (size_t i = 0; i < v->choice_count; i++) {
        if (s.p && str_eq(s, v->choices[i])) {
            *out = (struct plan_value){v->choices[i], new_text(a, v->choices[i])};
            return 0;
        }
        list = str_printf(a, "%.*s%s%.*s", STR_ARG(list), i ? ", " : "", STR_ARG(v->choices[i]));
    }
    return invalid(why, arena_printf(a, "must be one of: %.*s", STR_ARG(list)));
}

static int read_given(struct arena *a, const struct plan_variable *v, const struct json *given,
                      struct plan_value *out, const char **why)
{
    switch (v->type) {
    case PLAN_TEXT:
        return read_text(a, v, given, out, why);
    case PLAN_INTEGER:
    case PLAN_NUMBER:
        return read_number(a, v, given, out, why);
    case PLAN_DATE:
        return read_date(a, given, out, why);
    case PLAN_CHOICE:
        return read_choice(a, v, given, out, why);
    }
    check(false);
    return ERR_INTERNAL;
}

static struct str day_after(struct arena *a, int64_t today_ms)
{
    char text[TIME_ISO_BYTES];
    time_iso((today_ms + DAY_MS) * 1000, text);
    return str_dup(a, str_from(text, DATE_BYTES));
}

int plan_value_read(struct arena *a, const struct plan_variable *v, const struct json *given,
                    int64_t today_ms, struct plan_value *out, const char **why)
{
    bool absent = !given || given->type == JSON_NULL ||
                  (given->type == JSON_STRING && str_trim(given->s).n == 0);
    if (!absent)
        return read_given(a, v, given, out, why);
    if (v->required)
        return invalid(why, "is missing");
    struct str initial = v->initial;
    if (!initial.p && v->type == PLAN_DATE && str_eq(v->name, STR(PLAN_START_DATE)))
        initial = day_after(a, today_ms);
    if (initial.p)
        return read_given(a, v, new_text(a, initial), out, why);
    *out = (struct plan_value){STR(NOT_GIVEN), NULL};
    return 0;
}

/* --- definitions --- */

static bool find_type(struct str word, enum plan_variable_type *out)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (str_eq(word, str_of(types[i]))) {
            *out = (enum plan_variable_type)i;
            return true;
        }
    return false;
}

static const char *read_choices(struct arena *a, const struct json *list, struct plan_variable *v)
{
    if (v->type != PLAN_CHOICE)
        return json_first(list) ? "only a choice has choices" : NULL;
    if (!list || list->type != JSON_ARRAY || list->count < 1 || list->count > PLAN_CHOICES_MAX)
        return arena_printf(a, "choices: must be 1 to %d texts", PLAN_CHOICES_MAX);
    struct str *choices = ARENA_ARRAY(a, struct str, list->count);
    json_each (it, list) {
        struct str s = json_str(it);
        if (!s.p || s.n == 0 || plan_characters(s) > PLAN_LABEL_CHARS || !is_clean(a, s))
            return arena_printf(a,
                                "choices: each must be one line of 1 to %d characters, without"
                                " braces",
                                PLAN_LABEL_CHARS);
        for (size_t i = 0; i < v->choice_count; i++)
            if (str_eq(choices[i], s))
                return arena_printf(a, "choices: \"%.*s\" is there twice", STR_ARG(s));
        choices[v->choice_count++] = s;
    }
    v->choices = choices;
    return NULL;
}

static const char *read_limits(struct arena *a, const struct json *j, struct plan_variable *v)
{
    bool text = v->type == PLAN_TEXT, number = v->type == PLAN_INTEGER || v->type == PLAN_NUMBER;
    const struct json *least = json_get(j, "least"), *most = json_get(j, "most");
    int64_t low = text ? 0 : -PLAN_NUMBER_MAX, high = text ? PLAN_VALUE_CHARS : PLAN_NUMBER_MAX;
    if (!text && !number)
        return NULL;
    v->least = low;
    v->most = text ? PLAN_VALUE_CHARS_DEFAULT : high;
    if ((least && least->type != JSON_NULL && !json_int(least, &v->least)) ||
        (most && most->type != JSON_NULL && !json_int(most, &v->most)))
        return "least and most must be whole numbers";
    if (v->least < low || v->most > high || v->least > v->most || (text && v->most < 1))
        return arena_printf(a, "least and most must be from %lld to %lld, and in order",
                            (long long)low, (long long)high);
    return NULL;
}

/* Plans are made for the weeks and from the day that these two say. */
static const char *reserved_problem(const struct plan_variable *v)
{
    for (size_t i = 0; i < OF_PLANS; i++) {
        if (!str_eq(v->name, of_plans[i].name))
            continue;
        if (v->type != of_plans[i].type)
            return of_plans[i].type == PLAN_DATE ? "must be of type date"
                                                 : "must be of type integer";
        if (v->type == PLAN_INTEGER && (v->least < 1 || v->most > PLAN_WEEKS_MAX))
            return "least and most must be from 1 to 12 weeks";
        if (v->type == PLAN_INTEGER && !v->initial.p && !v->required)
            return "must have a default, or be required";
    }
    return NULL;
}

static const char *read_texts(struct arena *a, const struct json *j, struct plan_variable *v)
{
    const struct json *label = json_get(j, "label"), *initial = json_get(j, "default"),
                      *required = json_get(j, "required"), *type = json_get(j, "type");
    if (!find_type(json_str(type), &v->type))
        return "type: must be one of text, integer, number, date, choice";
    v->label = label && label->type == JSON_STRING ? label->s : STR("");
    if (plan_characters(v->label) > PLAN_LABEL_CHARS || !is_clean(a, v->label))
        return arena_printf(a, "label: must be one line of at most %d characters, without braces",
                            PLAN_LABEL_CHARS);
    if (required && required->type != JSON_NULL && !json_bool(required, &v->required))
        return "required: must be true or false";
    if (initial && initial->type == JSON_STRING && initial->s.n > 0)
        v->initial = initial->s;
    else if (initial && initial->type != JSON_NULL && initial->type != JSON_STRING)
        return "default: must be a text";
    return v->initial.p && v->required ? "is required, so its default is never used" : NULL;
}

static const char *read_one(struct arena *a, const struct json *j, bool plan,
                            struct plan_variable *v)
{
    struct plan_value value;
    const char *why = NULL, *inner = NULL;
    if (j->type == JSON_STRING) { /* the short form */
        *v = (struct plan_variable){
            .name = j->s, .label = STR(""), .most = PLAN_VALUE_CHARS_DEFAULT};
    } else {
        v->name = json_str(json_get(j, "name"));
    }
    if (!plan_name_is(v->name, PLAN_VARIABLE_NAME_CHARS))
        return arena_printf(a, "a name must be 1 to %d of a-z, 0-9 and _, and begin with a letter",
                            PLAN_VARIABLE_NAME_CHARS);
    if (j->type != JSON_STRING) {
        why = read_texts(a, j, v);
        if (!why)
            why = read_limits(a, j, v);
        if (!why)
            why = read_choices(a, json_get(j, "choices"), v);
    }
    if (!why && plan)
        why = reserved_problem(v);
    if (!why && v->initial.p && plan_value_read(a, v, new_text(a, v->initial), 0, &value, &inner))
        why = arena_printf(a, "default: %s", inner);
    return why ? arena_printf(a, "%.*s: %s", STR_ARG(v->name), why) : NULL;
}

static bool has(const struct plan_variable *list, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i].name, name))
            return true;
    return false;
}

/* --- definitions, written --- */

static void write_one(struct json_writer *w, const struct plan_variable *v)
{
    jw_object(w);
    jw_put_str(w, "name", v->name);
    jw_put_str(w, "type", str_of(types[v->type]));
    jw_put_str(w, "label", v->label);
    if (v->initial.p)
        jw_put_str(w, "default", v->initial);
    jw_put_bool(w, "required", v->required);
    if (v->type == PLAN_CHOICE) {
        jw_put_array(w, "choices");
        for (size_t i = 0; i < v->choice_count; i++)
            jw_str(w, v->choices[i]);
        jw_end_array(w);
    }
    if (v->type == PLAN_TEXT || v->type == PLAN_INTEGER || v->type == PLAN_NUMBER) {
        jw_put_int(w, "least", v->least);
        jw_put_int(w, "most", v->most);
    }
    jw_end_object(w);
}

static struct str write_all(struct arena *a, const struct plan_variable *list, size_t count)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_array(&w);
    for (size_t i = 0; i < count; i++)
        write_one(&w, &list[i]);
    jw_end_array(&w);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

int plan_variables_read(struct arena *a, const struct json *list, struct plan_template *p,
                        const char **why)
{
    bool plan = plan_template_is_plan(p->category);
    if (!list || list->type != JSON_ARRAY || list->count > PLAN_VARIABLES_MAX)
        return invalid(why, arena_printf(a, "must be an array of at most %d", PLAN_VARIABLES_MAX));
    struct plan_variable *all = ARENA_ARRAY(a, struct plan_variable, list->count + OF_PLANS);
    size_t n = 0;
    json_each (it, list) {
        if (it->type != JSON_OBJECT && it->type != JSON_STRING)
            return invalid(why, "must be an array of objects");
        const char *problem = read_one(a, it, plan, &all[n]);
        if (problem)
            return invalid(why, problem);
        if (has(all, n, all[n].name))
            return invalid(why, arena_printf(a, "%.*s: is there twice", STR_ARG(all[n].name)));
        n++;
    }
    for (size_t i = 0; plan && i < OF_PLANS; i++)
        if (!has(all, n, of_plans[i].name))
            all[n++] = of_plans[i];
    p->variables = all;
    p->variable_count = n;
    p->variables_json = write_all(a, all, n);
    return 0;
}
