#include "base/buf.h"
#include "base/json.h"
#include "engine/setup/config_table.h"

#define VALUE_COLUMNS_MAX 40

const char *config_mask_url(struct arena *a, const char *url)
{
    /* scheme://user:password@host: the last @ before the path ends the password, as browsers
     * and libraries read it. */
    const char *start = strstr(url, "://");
    if (!start)
        return url;
    start += 3;
    size_t n = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', n);
    const char *colon = at ? memchr(start, ':', (size_t)(at - start)) : NULL;
    if (!colon)
        return url;
    return arena_printf(a, "%.*s:***%s", (int)(colon - url), url, at);
}

static const char *const levels[] = {"debug", "info", "warn", "error"};
static const char *const formats[] = {"text", "json"};

static const void *slot(const struct config *c, const struct setting *s)
{
    return (const char *)c + s->at;
}

/* As the environment would say it, secrets in clear. */
static const char *value_text(struct arena *a, const struct config *c, const struct setting *s)
{
    const void *p = slot(c, s);
    switch (s->kind) {
    case SETTING_TEXT:
    case SETTING_URL:
    case SETTING_SECRET:
    case SETTING_JSON:
    case SETTING_SECRET_JSON:
        return *(const char *const *)p;
    case SETTING_NUMBER:
        return arena_printf(a, "%lld", (long long)*(const int64_t *)p);
    case SETTING_SWITCH:
        return *(const bool *)p ? "true" : "false";
    case SETTING_LOG_LEVEL:
        return levels[*(const enum log_level *)p];
    case SETTING_LOG_FORMAT:
        return formats[*(const enum log_format *)p];
    }
    check(false);
    return "";
}

static const char *shown(struct arena *a, const struct config *c, const struct setting *s)
{
    const char *v = value_text(a, c, s);
    if (!*v)
        return "(empty)";
    if (s->kind == SETTING_SECRET || s->kind == SETTING_SECRET_JSON)
        return "***";
    return s->kind == SETTING_URL ? config_mask_url(a, v) : v;
}

void config_show(const struct config *c, struct buf *out)
{
    struct arena a;
    arena_init(&a);
    size_t key_width = 0, value_width = 0, source_width = 0;
    for (size_t i = 0; i < settings_count; i++) {
        size_t key = strlen(settings[i].key), value = strlen(shown(&a, c, &settings[i]));
        size_t source = strlen(c->sources[i]);
        key_width = key > key_width ? key : key_width;
        source_width = source > source_width ? source : source_width;
        if (value > value_width && value <= VALUE_COLUMNS_MAX)
            value_width = value;
    }
    for (size_t i = 0; i < settings_count; i++)
        buf_printf(out, "%-*s  %-*s  %-*s  %s\n", (int)key_width, settings[i].key, (int)value_width,
                   shown(&a, c, &settings[i]), (int)source_width, c->sources[i],
                   settings[i].meaning);
    arena_release(&a);
}

static const char *allowed(struct arena *a, const struct setting *s)
{
    switch (s->kind) {
    case SETTING_NUMBER:
        return arena_printf(a, "%lld to %lld", (long long)s->least, (long long)s->most);
    case SETTING_SWITCH:
        return "true, false";
    case SETTING_SECRET:
        return "text, secret";
    case SETTING_JSON:
        return "JSON object";
    case SETTING_SECRET_JSON:
        return "JSON object, secret";
    case SETTING_LOG_LEVEL:
        return "debug, info, warn, error";
    case SETTING_LOG_FORMAT:
        return "text, json";
    default:
        return s->kind == SETTING_URL ? "URL" : "text";
    }
}

void config_document(struct buf *out)
{
    struct arena a;
    arena_init(&a);
    buf_add_lit(
        out, "# Settings\n\n"
             "Nothing has to be set. A key `mysql.url` is written `{\"mysql\": {\"url\": …}}` in\n"
             "`config.json`; the variable outranks the file, and the options of `millrace serve` "
             "outrank\n"
             "both. `millrace config` shows what is in force and where it comes from. This page is "
             "what\n"
             "`millrace config --markdown` prints.\n\n"
             "| key | variable | default | allowed | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *s = &settings[i];
        const char *tick = *s->fallback ? "`" : "";
        buf_printf(out, "| `%s` | `%s` | %s%s%s | %s | %s |\n", s->key, setting_variable(&a, s),
                   tick, s->fallback, tick, allowed(&a, s), s->meaning);
    }
    arena_release(&a);
}

static void write_value(struct json_writer *w, struct arena *a, const struct config *c,
                        const struct setting *s)
{
    if (s->kind == SETTING_NUMBER)
        jw_int(w, *(const int64_t *)slot(c, s));
    else if (s->kind == SETTING_SWITCH)
        jw_bool(w, *(const bool *)slot(c, s));
    else
        jw_str(w, str_of(value_text(a, c, s)));
}

void config_write(const struct config *c, struct buf *out)
{
    struct arena a;
    struct json_writer w;
    struct str open = STR(""); /* the group that is open */
    arena_init(&a);
    jw_init(&w, out);
    jw_object(&w);
    for (size_t i = 0; i < settings_count; i++) {
        struct str name = str_of(settings[i].key);
        struct str group = str_cut(&name, '.');
        if (!name.p) {
            name = group;
            group = STR("");
        }
        if (!str_eq(group, open) && open.n)
            jw_end_object(&w);
        if (!str_eq(group, open) && group.n) {
            jw_key(&w, group);
            jw_object(&w);
        }
        open = group;
        jw_key(&w, name);
        write_value(&w, &a, c, &settings[i]);
    }
    if (open.n)
        jw_end_object(&w);
    jw_end_object(&w);
    arena_release(&a);
}
