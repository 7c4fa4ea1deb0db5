/* One value, of JSON from outside: its type, what was meant by it, and how it is written. */
#include <math.h>

#include "app/extract/fields/date.h"
#include "app/extract/fields/line.h"
#include "app/extract/fields/values.h"
#include "base/ascii.h"
#include "corpus/number.h"
#include "engine/ai/reply.h"

#define EXACT_MAX         0x1p53 /* integers up to here are exact as doubles */
#define SAME_NUMBER       1e-9   /* relative, as number_in has it */
#define NUMBER_BYTES_MAX  64     /* of a number as it is written */
#define CHOICES_BYTES_MAX 400    /* of a complaint */

static int wrong(const char **problem, const char *text)
{
    *problem = text;
    return ERR_INVALID;
}

/* --- numbers --- */

/* Behind a number: the beginning of another one makes a range, a ratio or a list. */
static bool has_second(struct str rest)
{
    static const struct str between[] = {STR("-"),  STR("–"),  STR("—"),  STR("−"),   STR("~"),
                                         STR("～"), STR("to"), STR("or"), STR("and"), STR("至"),
                                         STR("到"), STR("/"),  STR(":"),  STR(","),   STR(";"),
                                         STR("、"), STR("，")};
    rest = str_trim(rest);
    for (size_t i = 0; i < sizeof between / sizeof *between; i++)
        if (str_starts(rest, between[i])) {
            rest = str_trim(str_skip(rest, between[i].n));
            return rest.n && (ascii_is_digit(rest.p[0]) || rest.p[0] == '.' || rest.p[0] == '-');
        }
    return false;
}

static bool number_of(const struct json *j, double *out)
{
    struct str rest;
    if (j->type == JSON_INT || j->type == JSON_REAL) {
        *out = j->type == JSON_INT ? (double)j->i : j->d;
        return true;
    }
    return j->type == JSON_STRING && number_read(j->s, out, &rest) && !has_second(rest);
}

static int read_number(struct arena *a, const struct json *j, struct extract_value *out,
                       const char **problem)
{
    if (!number_of(j, &out->number))
        return wrong(problem, arena_printf(a, "must be one number, not %s", ai_shown(a, j)));
    out->number += 0.0; /* no minus zero */
    return 0;
}

static int read_integer(struct arena *a, const struct json *j, struct extract_value *out,
                        const char **problem)
{
    double d;
    if (json_int(j, &out->integer))
        return 0;
    if (!number_of(j, &d) || d != floor(d) || fabs(d) > EXACT_MAX)
        return wrong(problem, arena_printf(a, "must be one whole number, not %s", ai_shown(a, j)));
    out->integer = (int64_t)d;
    return 0;
}

static bool is_exact(double d)
{
    return d == floor(d) && fabs(d) < EXACT_MAX;
}

/* The number that ends where rest begins, without words before it. p == NULL: it is too long. */
static struct str number_text(struct str text, double value, struct str rest)
{
    size_t end = (size_t)(rest.p - text.p), begin = 0;
    for (size_t i = end > NUMBER_BYTES_MAX ? end - NUMBER_BYTES_MAX : 1; i < end; i++) {
        struct str behind;
        double d;
        if (text.p[i - 1] != ' ' && text.p[i - 1] != '\n')
            continue;
        if (!number_read(str_skip(text, i), &d, &behind) || d != value || behind.p != rest.p)
            break;
        begin = i;
    }
    bool fits = end - begin <= NUMBER_BYTES_MAX;
    return fits ? str_from(text.p + begin, end - begin) : STR_NULL;
}

struct str extract_number_written(struct str text, double value, struct str unit)
{
    struct str rest;
    double d;
    for (; number_read(text, &d, &rest); text = rest) {
        if (fabs(d - value) > SAME_NUMBER * fabs(value))
            continue;
        struct str number = number_text(text, d, rest), after = str_trim(rest);
        size_t n = (size_t)(after.p - rest.p) + unit.n;
        bool has_unit = unit.n && str_starts(after, unit) &&
                        (after.n == unit.n || !ascii_is_word(after.p[unit.n]));
        return number.p ? str_from(number.p, number.n + (has_unit ? n : 0)) : STR_NULL;
    }
    return STR_NULL;
}

/* --- texts --- */

/* Numbers, too, where a text is wanted: an AI gives the year of a study as one. */
static struct str text_of(struct arena *a, const struct json *j)
{
    if (j->type == JSON_STRING)
        return line_clean(a, j->s);
    if (j->type == JSON_INT)
        return str_int(a, j->i);
    if (j->type != JSON_REAL)
        return STR_NULL;
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, j);
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

static int read_text(struct arena *a, const struct json *j, struct extract_value *out,
                     const char **problem)
{
    out->text = text_of(a, j);
    return out->text.p ? 0
                       : wrong(problem, arena_printf(a, "must be a text, not %s", ai_shown(a, j)));
}

static int read_boolean(struct arena *a, const struct json *j, struct extract_value *out,
                        const char **problem)
{
    static const struct {
        struct str word;
        bool value;
    } words[] = {
        {STR("true"), true}, {STR("yes"), true},    {STR("y"), true},   {STR("是"), true},
        {STR("有"), true},   {STR("false"), false}, {STR("no"), false}, {STR("n"), false},
        {STR("否"), false},  {STR("无"), false},
    };
    struct str s = str_trim(json_str(j));
    if (json_bool(j, &out->boolean))
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && s.n; i++)
        if (str_ieq(s, words[i].word)) {
            out->boolean = words[i].value;
            return 0;
        }
    return wrong(problem, arena_printf(a, "must be true or false, not %s", ai_shown(a, j)));
}

static int read_date(struct arena *a, const struct json *j, struct extract_value *out,
                     const char **problem)
{
    struct str s = text_of(a, j);
    bool ambiguous = false;
    if (s.p && date_is_iso(s)) {
        out->text = s;
        return 0;
    }
    if (s.p && date_read(a, s, &out->text, &ambiguous))
        return 0;
    return wrong(problem,
                 arena_printf(a,
                              ambiguous ? "must be a date as YYYY-MM-DD: %s has two meanings"
                                        : "must be a date as YYYY-MM-DD, YYYY-MM or YYYY, not %s",
                              ai_shown(a, j)));
}

/* --- choices --- */

static const struct str *choice_of(struct arena *a, const struct extract_field *f, struct str s)
{
    for (size_t i = 0; i < f->choice_count; i++)
        if (str_ieq(f->choices[i], s))
            return &f->choices[i];
    struct str folded = line_folded(a, s);
    for (size_t i = 0; i < f->choice_count; i++)
        if (str_eq(line_folded(a, f->choices[i]), folded))
            return &f->choices[i];
    return NULL;
}

static const char *choices_shown(struct arena *a, const struct extract_field *f)
{
    struct str list = STR("");
    for (size_t i = 0; i < f->choice_count; i++) {
        if (list.n + f->choices[i].n > CHOICES_BYTES_MAX)
            return arena_printf(a, "%.*s, …", STR_ARG(list));
        list =
            str_printf(a, "%.*s%s\"%.*s\"", STR_ARG(list), i ? ", " : "", STR_ARG(f->choices[i]));
    }
    return list.p;
}

static int read_choice(struct arena *a, const struct extract_field *f, const struct json *j,
                       struct extract_value *out, const char **problem)
{
    struct str s = text_of(a, j);
    const struct str *choice = s.p ? choice_of(a, f, s) : NULL;
    if (!choice)
        return wrong(problem, arena_printf(a, "must be one of %s, not %s", choices_shown(a, f),
                                           ai_shown(a, j)));
    out->text = *choice;
    return 0;
}

/* --- all --- */

static int read_typed(struct arena *a, const struct extract_field *f, const struct json *j,
                      struct extract_value *out, const char **problem)
{
    switch (f->of) {
    case EXTRACT_NUMBER:
        return read_number(a, j, out, problem);
    case EXTRACT_INTEGER:
        return read_integer(a, j, out, problem);
    case EXTRACT_BOOLEAN:
        return read_boolean(a, j, out, problem);
    case EXTRACT_DATE:
        return read_date(a, j, out, problem);
    case EXTRACT_CHOICE:
        return read_choice(a, f, j, out, problem);
    default:
        return read_text(a, j, out, problem);
    }
}

int extract_value_read(struct arena *a, const struct extract_field *f, const struct json *j,
                       struct extract_value *out, const char **problem)
{
    struct extract_value v = {.original = STR_NULL};
    if (j->type == JSON_STRING && j->s.n > EXTRACT_VALUE_BYTES_MAX)
        return wrong(problem, arena_printf(a, "must have %d bytes at most, not %zu",
                                           EXTRACT_VALUE_BYTES_MAX, j->s.n));
    int err = read_typed(a, f, j, &v, problem);
    if (err)
        return err;
    if (j->type == JSON_STRING && f->of != EXTRACT_TEXT) {
        struct str written = line_clean(a, j->s);
        if (!str_eq(written, extract_value_text(a, f, &v)))
            v.original = written;
    }
    *out = v;
    return 0;
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7F;
}

bool extract_value_is_none(const struct extract_field *f, const struct json *j)
{
    static const struct str words[] = {STR("null"),          STR("n/a"),        STR("na"),
                                       STR("none"),          STR("unknown"),    STR("not reported"),
                                       STR("not given"),     STR("not stated"), STR("not found"),
                                       STR("not specified"), STR("未报告"),     STR("未说明"),
                                       STR("未提及"),        STR("不详"),       STR("-")};
    if (!j || j->type == JSON_NULL)
        return true;
    if (j->type != JSON_STRING)
        return false;
    struct str s = str_trim_if(j->s, is_blank);
    if (s.n == 0)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (f->of != EXTRACT_TEXT && f->of != EXTRACT_CHOICE && str_ieq(s, words[i]))
            return true;
    return false;
}

void extract_value_put(struct json_writer *w, const struct extract_field *f,
                       const struct extract_value *v)
{
    switch (f->of) {
    case EXTRACT_NUMBER:
        if (is_exact(v->number))
            jw_int(w, (int64_t)v->number);
        else
            jw_real(w, v->number);
        break;
    case EXTRACT_INTEGER:
        jw_int(w, v->integer);
        break;
    case EXTRACT_BOOLEAN:
        jw_bool(w, v->boolean);
        break;
    default:
        jw_str(w, v->text);
    }
}

struct str extract_value_text(struct arena *a, const struct extract_field *f,
                              const struct extract_value *v)
{
    if (f->of == EXTRACT_BOOLEAN)
        return v->boolean ? STR("true") : STR("false");
    if (f->of == EXTRACT_INTEGER)
        return str_int(a, v->integer);
    if (f->of != EXTRACT_NUMBER)
        return v->text;
    return text_of(a, is_exact(v->number)
                          ? &(struct json){.type = JSON_INT, .i = (int64_t)v->number}
                          : &(struct json){.type = JSON_REAL, .d = v->number});
}

static bool is_same_text(struct str a, struct str b)
{
    return str_eq(a, b) || str_ieq(str_trim(a), str_trim(b));
}

bool extract_value_eq(const struct extract_field *f, const struct extract_value *a,
                      const struct extract_value *b)
{
    if (f->of == EXTRACT_NUMBER)
        return a->number == b->number;
    if (f->of == EXTRACT_INTEGER)
        return a->integer == b->integer;
    if (f->of == EXTRACT_BOOLEAN)
        return a->boolean == b->boolean;
    return is_same_text(a->text, b->text);
}
