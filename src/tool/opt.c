#include "tool/opt.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/nearest.h"
#include "base/str.h"

enum { GO_ON = -1, HELPED = 0 };

static int print_help(const struct command *c)
{
    printf("usage: millrace %s%s%s%s\n\n%s\n", c->name, c->opt_count ? " [options]" : "",
           c->operands ? " " : "", c->operands ? c->operands : "", c->text);
    if (c->opt_count)
        printf("\noptions:\n");
    for (size_t i = 0; i < c->opt_count; i++) {
        const struct opt *o = &c->opts[i];
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-23s  %s\n", left, o->help); /* two spaces: deploy/manual.py */
    }
    return HELPED;
}

int opt_error(const struct command *c, enum opt_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "millrace %s: ", c->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    if (status == OPT_WRONG)
        fprintf(stderr, "See \"millrace %s --help\".\n", c->name);
    return (int)status;
}

static const struct opt *find(const struct command *c, struct str name)
{
    for (size_t i = 0; i < c->opt_count; i++)
        if (str_eq(str_of(c->opts[i].name), name))
            return &c->opts[i];
    return NULL;
}

static int unknown(const struct command *c, struct str name)
{
    struct nearest n = nearest_to(name);
    for (size_t i = 0; i < c->opt_count; i++)
        nearest_try(&n, c->opts[i].name);
    const char *near = nearest_name(&n);
    return opt_error(c, OPT_WRONG, "unknown option \"--%.*s\"%s%s%s", STR_ARG(name),
                     near ? "; did you mean \"--" : "", near ? near : "", near ? "\"?" : "");
}

static bool take_number(const struct opt *o, const char *value)
{
    int64_t v;
    bool fits = str_to_i64(str_of(value), &v) && v >= o->least && v <= o->most;
    if (fits)
        *o->number = v;
    return fits;
}

static bool take_real(const struct opt *o, const char *value)
{
    char *end;
    double v = strtod(value, &end);
    bool fits =
        end != value && !*end && isfinite(v) && v >= (double)o->least && v <= (double)o->most;
    if (fits)
        *o->real = v;
    return fits;
}

static int take_value(const struct command *c, const struct opt *o, const char *value)
{
    if (o->texts && o->texts->count == OPT_TEXTS_MAX)
        return opt_error(c, OPT_WRONG, "--%s is given more than %d times", o->name, OPT_TEXTS_MAX);
    if (o->texts)
        o->texts->list[o->texts->count++] = value;
    else if (o->text)
        *o->text = value;
    else if (!(o->number ? take_number(o, value) : take_real(o, value)))
        return opt_error(c, OPT_WRONG, "--%s is \"%s\"; expected is a number from %lld to %lld",
                         o->name, value, (long long)o->least, (long long)o->most);
    return GO_ON;
}

/* arg is "--name" or "--name=value"; *used is set when next was taken as the value. */
static int take_option(const struct command *c, const char *arg, const char *next, bool *used)
{
    struct str rest = str_of(arg + 2);
    struct str name = str_cut(&rest, '=');
    if (str_eq(name, STR("help")) && !rest.p)
        return print_help(c);
    const struct opt *o = find(c, name);
    if (!o)
        return unknown(c, name);
    if (!o->value) {
        if (rest.p)
            return opt_error(c, OPT_WRONG, "--%s takes no value", o->name);
        *o->flag = true;
        return GO_ON;
    }
    if (rest.p)
        return take_value(c, o, rest.p); /* the end of arg, so it is terminated */
    if (!next)
        return opt_error(c, OPT_WRONG, "--%s needs a value: %s", o->name, o->value);
    *used = true;
    return take_value(c, o, next);
}

/* Whether all that must be given is there, and nothing else. */
static int check_complete(const struct command *c, char **operands, size_t count)
{
    size_t n = 0;
    for (struct str rest = str_of(c->operands); rest.p; n++) {
        struct str name = str_cut(&rest, ' ');
        if (n == count)
            return opt_error(c, OPT_WRONG, "%.*s is missing", STR_ARG(name));
    }
    if (n < count)
        return opt_error(c, OPT_WRONG, "\"%s\" is not expected here", operands[n]);
    for (const struct opt *o = c->opts; o < c->opts + c->opt_count; o++)
        if (o->needed && !*o->text)
            return opt_error(c, OPT_WRONG, "--%s %s is missing", o->name, o->value);
    return GO_ON;
}

int opt_parse(const struct command *c, int argc, char **argv)
{
    size_t count = 0;
    bool literal = false; /* after "--" */
    for (int i = 1; i < argc; i++) {
        if (literal || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[1 + count++] = argv[i]; /* never ahead of i */
        } else if (strcmp(argv[i], "--") == 0) {
            literal = true;
        } else if (strcmp(argv[i], "-h") == 0) {
            return print_help(c);
        } else if (argv[i][1] != '-') {
            return opt_error(c, OPT_WRONG, "unknown option \"%s\"", argv[i]);
        } else {
            bool used = false;
            int status = take_option(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used);
            if (status != GO_ON)
                return status;
            i += used;
        }
    }
    return check_complete(c, argv + 1, count);
}
