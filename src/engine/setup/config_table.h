/* config_table.h -- the settings themselves; config.c reads them, config_show.c prints them. */
#ifndef ENGINE_SETUP_CONFIG_TABLE_H
#define ENGINE_SETUP_CONFIG_TABLE_H

#include "engine/setup/config.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_URL,    /* text; a password in it is masked */
    SETTING_SECRET, /* text; all of it is masked */
    SETTING_JSON,   /* text of a JSON object; in the file, that object or its text */
    SETTING_SECRET_JSON,
    SETTING_NUMBER,
    SETTING_SWITCH,
    SETTING_LOG_LEVEL,
    SETTING_LOG_FORMAT,
};

struct setting {
    const char *key; /* "mysql.url" */
    enum setting_kind kind;
    size_t at;            /* in struct config */
    const char *fallback; /* the default, as the environment would say it */
    int64_t least, most;  /* of a number; least also: bytes of a text */
    /* What is wrong with a text that is not empty, NULL if nothing. Secrets must not be in it. */
    const char *(*problem)(struct arena *a, const char *text);
    const char *meaning; /* half a sentence */
};

extern const struct setting settings[]; /* keys of one group stand together */
extern const size_t settings_count;

const struct setting *setting_find(struct str key); /* NULL when unknown */
const struct setting *setting_of_variable(struct arena *a, struct str variable);
const char *setting_variable(struct arena *a, const struct setting *s); /* "MILLRACE_MYSQL_URL" */
bool setting_group_exists(struct str group);                            /* "mysql" */

static inline bool setting_secret(const struct setting *s)
{
    return s->kind == SETTING_SECRET || s->kind == SETTING_URL || s->kind == SETTING_SECRET_JSON;
}

static inline bool setting_json(const struct setting *s)
{
    return s->kind == SETTING_JSON || s->kind == SETTING_SECRET_JSON;
}
#endif
