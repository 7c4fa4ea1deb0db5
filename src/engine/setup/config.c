#include "engine/setup/config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "engine/setup/config_table.h"

#define SHOWN_BYTES_MAX 80 /* of a wrong value in a message */

/* What a message starts with: `config.json: "mysql.url"`, `MILLRACE_MYSQL_URL` or `--listen`. */
struct origin {
    struct arena *arena;
    const char *subject;
    const char *source; /* for config_show */
    const char **why;
};

static int fail(const struct origin *o, const char *fmt, ...) PRINTF(2, 3);
static int fail(const struct origin *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(o->arena, fmt, ap);
    va_end(ap);
    *o->why = arena_printf(o->arena, "%s%s", o->subject, what);
    return ERR_INVALID;
}

/* A wrong value for a message: shortened and without control characters. */
static const char *shown(struct arena *a, struct str s)
{
    struct str head = {s.p, 0};
    size_t step;
    while (head.n < s.n && (step = str_utf8_step(str_from(s.p + head.n, s.n - head.n))) &&
           head.n + step <= SHOWN_BYTES_MAX)
        head.n += step;
    struct buf b;
    buf_init(&b);
    json_escape(&b, head);
    const char *out = arena_printf(a, "\"%.*s%s\"", STR_ARG(buf_str(&b)), head.n < s.n ? "…" : "");
    buf_release(&b);
    return out;
}

static void *slot(struct config *c, const struct setting *s)
{
    return (char *)c + s->at;
}

static int set_number(const struct origin *o, const struct setting *s, struct config *c, int64_t v)
{
    if (v < s->least || v > s->most)
        return fail(o, " is %lld; allowed are %lld to %lld", (long long)v, (long long)s->least,
                    (long long)s->most);
    *(int64_t *)slot(c, s) = v;
    return 0;
}

static int set_text(const struct origin *o, const struct setting *s, struct config *c, struct str v)
{
    if (memchr(v.p, '\0', v.n) || !str_utf8_valid(v))
        return fail(o, " has bytes that are not text");
    if ((int64_t)v.n < s->least)
        return fail(o, " must not be empty");
    const char *text = str_z(o->arena, v);
    const char *problem = v.n && s->problem ? s->problem(o->arena, text) : NULL;
    if (problem && setting_secret(s))
        return fail(o, " is not accepted: %s", problem);
    if (problem)
        return fail(o, " is %s; %s", shown(o->arena, v), problem);
    *(const char **)slot(c, s) = text;
    return 0;
}

/* A value written as text: a default, a variable, an option or a string of the file. */
static int set(const struct origin *o, const struct setting *s, struct config *c, struct str v)
{
    int64_t number;
    switch (s->kind) {
    case SETTING_TEXT:
    case SETTING_URL:
    case SETTING_SECRET:
    case SETTING_JSON:
    case SETTING_SECRET_JSON:
        return set_text(o, s, c, v);
    case SETTING_NUMBER:
        if (!str_to_i64(v, &number))
            return fail(o, " is %s; expected is a whole number from %lld to %lld",
                        shown(o->arena, v), (long long)s->least, (long long)s->most);
        return set_number(o, s, c, number);
    case SETTING_SWITCH:
        if (!str_eq(v, STR("true")) && !str_eq(v, STR("false")))
            return fail(o, " is %s; allowed are true and false", shown(o->arena, v));
        *(bool *)slot(c, s) = str_eq(v, STR("true"));
        return 0;
    case SETTING_LOG_LEVEL:
        if (!log_level_parse(v, slot(c, s)))
            return fail(o, " is %s; allowed are debug, info, warn, error", shown(o->arena, v));
        return 0;
    case SETTING_LOG_FORMAT:
        if (!log_format_parse(v, slot(c, s)))
            return fail(o, " is %s; allowed are text and json", shown(o->arena, v));
        return 0;
    }
    check(false);
    return ERR_INTERNAL;
}

static void note_source(struct config *c, const struct setting *s, const char *source)
{
    c->sources[s - settings] = source;
}

static void set_defaults(struct arena *a, struct config *c)
{
    const char *why = NULL;
    struct origin o = {a, "default", "default", &why};
    *c = (struct config){0};
    for (size_t i = 0; i < settings_count; i++) {
        check(set(&o, &settings[i], c, str_of(settings[i].fallback)) == 0);
        note_source(c, &settings[i], "default");
    }
}

/* --- the file --- */

static const char *kind_of(const struct json *j)
{
    static const char *const kinds[] = {
        [JSON_NULL] = "null",      [JSON_FALSE] = "false",      [JSON_TRUE] = "true",
        [JSON_INT] = "a number",   [JSON_REAL] = "a number",    [JSON_STRING] = "a string",
        [JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
    };
    return kinds[j->type];
}

/* An object of the file, as the text that the environment would give. */
static int set_object(const struct origin *o, const struct setting *s, struct config *c,
                      const struct json *j)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_json(&w, j);
    int err = set(o, s, c, str_dup(o->arena, buf_str(&b)));
    buf_release(&b);
    return err;
}

static int set_json(const struct origin *o, const struct setting *s, struct config *c,
                    const struct json *j)
{
    if (s->kind == SETTING_NUMBER) {
        int64_t v;
        if (json_int(j, &v))
            return set_number(o, s, c, v);
        return fail(o, " is %s; expected is a whole number from %lld to %lld",
                    j->type == JSON_REAL ? "not whole or too large" : kind_of(j),
                    (long long)s->least, (long long)s->most);
    }
    if (s->kind == SETTING_SWITCH)
        return json_bool(j, slot(c, s)) ? 0
                                        : fail(o, " is %s; allowed are true and false", kind_of(j));
    if (setting_json(s) && j->type == JSON_OBJECT)
        return set_object(o, s, c, j);
    if (j->type != JSON_STRING)
        return fail(o, " is %s; expected is %s", kind_of(j),
                    setting_json(s) ? "an object" : "a string");
    return set(o, s, c, j->s);
}

static int unknown_key(const struct origin *o, struct str key)
{
    struct nearest n = nearest_to(key);
    for (size_t i = 0; i < settings_count; i++) {
        nearest_try(&n, settings[i].key);
        struct str rest = str_of(settings[i].key);
        struct str group = str_cut(&rest, '.');
        if (rest.p)
            nearest_try(&n, str_z(o->arena, group));
    }
    const char *name = shown(o->arena, key);
    if (nearest_name(&n))
        return fail(o, ": unknown key %s; did you mean \"%s\"?", name, nearest_name(&n));
    return fail(o, ": unknown key %s; \"millrace config\" shows all of them", name);
}

/* prefix is "" for the whole file, "mysql." inside {"mysql": {…}}. Groups do not nest. */
static int read_object(const struct origin *file, struct str prefix, const struct json *object,
                       struct config *c)
{
    json_each (j, object) {
        struct str key = str_printf(file->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(j->key));
        struct origin o = *file;
        o.subject = arena_printf(o.arena, "%s: %s", file->source, shown(o.arena, key));
        const struct setting *s = setting_find(key);
        int err;
        if (s && c->sources[s - settings] == file->source)
            err = fail(&o, " is there twice");
        else if (s)
            err = set_json(&o, s, c, j);
        else if (!setting_group_exists(key))
            err = unknown_key(file, key);
        else if (j->type != JSON_OBJECT)
            err = fail(&o, " is %s; expected is an object", kind_of(j));
        else
            err = read_object(file, str_printf(o.arena, "%.*s.", STR_ARG(key)), j, c);
        if (err)
            return err;
        if (s)
            note_source(c, s, file->source);
    }
    return 0;
}

static int read_text(struct arena *a, const char *name, struct str text, struct config *c,
                     const char **why)
{
    struct origin file = {a, name, name, why};
    const struct json *j;
    struct json_error e;
    if (json_parse(a, text, &j, &e))
        return fail(&file, ", line %zu, column %zu: %s", e.line, e.column, e.message);
    if (j->type != JSON_OBJECT)
        return fail(&file, ": is %s; expected is an object", kind_of(j));
    return read_object(&file, STR(""), j, c);
}

/* --- the environment --- */

/* A variable whose name is close to a known one is a typing error, not another program's. */
static int refuse_misspelt(struct arena *a, struct str name, const char **why)
{
    struct nearest n = nearest_to(name);
    for (size_t i = 0; i < settings_count; i++)
        nearest_try(&n, setting_variable(a, &settings[i]));
    if (n.distance > 2)
        return 0;
    struct origin o = {a, str_z(a, name), NULL, why};
    return fail(&o, " is no variable of millrace; did you mean %s?", n.best);
}

static int read_environment(struct arena *a, char **env, struct config *c, const char **why)
{
    for (; env && *env; env++) {
        struct str rest = str_of(*env);
        struct str name = str_cut(&rest, '=');
        if (!str_starts(name, STR("MILLRACE_")) || !rest.n)
            continue;
        const struct setting *s = setting_of_variable(a, name);
        const char *source = str_z(a, name);
        struct origin o = {a, source, source, why};
        int err = s ? set(&o, s, c, rest) : refuse_misspelt(a, name, why);
        if (err)
            return err;
        if (s)
            note_source(c, s, source);
    }
    return 0;
}

/* --- all of it --- */

int config_parse(struct arena *a, const char *name, struct str text, char **env, struct config *out,
                 const char **why)
{
    struct config c;
    set_defaults(a, &c);
    int err = text.p ? read_text(a, name, text, &c, why) : 0;
    if (!err)
        err = read_environment(a, env, &c, why);
    if (!err)
        *out = c;
    return err;
}

int config_set(struct arena *a, struct config *c, const char *key, const char *value,
               const char *source, const char **why)
{
    struct origin o = {a, source, source, why};
    const struct setting *s = setting_find(str_of(key));
    check(s);
    int err = set(&o, s, c, str_of(value));
    if (!err)
        note_source(c, s, source);
    return err;
}

int config_load(struct arena *a, const char *path, bool optional, char **env, struct config *out,
                const char **why)
{
    struct str text = STR_NULL;
    int err = path ? file_read(a, path, CONFIG_FILE_BYTES_MAX, &text) : 0;
    if (err == ERR_LIMIT) {
        *why = arena_printf(a, "%s: is larger than %d bytes", path, CONFIG_FILE_BYTES_MAX);
        return ERR_INVALID;
    }
    if (err && !(errno == ENOENT && optional)) {
        *why = arena_printf(a, "%s: cannot be read: %s", path, strerror(errno));
        return ERR_IO;
    }
    return config_parse(a, path, text, env, out, why);
}
