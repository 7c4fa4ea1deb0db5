/* template_private.h -- what the files of templates share. */
#ifndef APP_PLAN_TEMPLATE_PRIVATE_H
#define APP_PLAN_TEMPLATE_PRIVATE_H

#include "app/plan/template.h"
#include "engine/people/admin_log.h"
#include "engine/store/cache.h"
#include "engine/store/record.h"
#include "loop/sync.h"

/* --- template_variables.c, template_text.c: never wait --- */

/* Reads definitions of variables, an array, into p->variables and, in one form, into
 * p->variables_json. A text instead of an object is the name of a text variable. p->category is
 * there. ERR_INVALID with *why in a: "goals: …". */
MUST_CHECK int plan_variables_read(struct arena *a, const struct json *list,
                                   struct plan_template *p, const char **why);
/* What is wrong with p->text, whose variables are there; NULL: nothing. */
const char *plan_text_problem(struct arena *a, const struct plan_template *p);
/* One line: control characters, and those that cannot be seen but turn text around, go; braces
 * become parentheses. False: it has a control character that is no blank. */
bool plan_value_clean(struct arena *a, struct str s, struct str *out);
int64_t plan_characters(struct str s);        /* code points of valid UTF-8 */
bool plan_name_is(struct str s, size_t most); /* a-z first, then a-z, 0-9 and "_" */

struct plan_value {
    struct str shown;      /* in the prompt */
    const struct json *is; /* text, number, or NULL: not given */
};
/* The value of one variable; given: of the request, NULL for none. *why says what is wrong, without
 * the name. today_ms: since 1970. */
MUST_CHECK int plan_value_read(struct arena *a, const struct plan_variable *v,
                               const struct json *given, int64_t today_ms, struct plan_value *out,
                               const char **why);
/* plan_template_fill without a task. */
MUST_CHECK int plan_text_fill(struct arena *a, const struct plan_template *p,
                              const struct json *values, int64_t today_ms, struct str *prompt,
                              struct str *full, const char **why);

/* --- template_change.c: what admins do, each with its row in their log --- */

/* The first template of a category is its default. p->category, subcategory, name, text and
 * variables are sound; id and version are filled in. ERR_CONFLICT: there are too many. */
MUST_CHECK int plan_template_add(struct task *t, struct plan_templates *x, struct plan_template *p,
                                 const struct admin_deed *by);
/* Of template p->id, which was read with p->version; the new version is filled in, and what it is
 * beside. ERR_CONFLICT: it was changed meanwhile. ERR_NOT_FOUND. */
MUST_CHECK int plan_template_change(struct task *t, struct plan_templates *x,
                                    struct plan_template *p, const struct admin_deed *by);
/* Idempotent. ERR_NOT_FOUND. */
MUST_CHECK int plan_template_make_default(struct task *t, struct plan_templates *x, int64_t id,
                                          const struct admin_deed *by, int64_t *version);
/* ERR_CONFLICT: it is the default, and its category has others or is one of plans; or it was
 * changed since version (0: whatever it is). ERR_NOT_FOUND. */
MUST_CHECK int plan_template_delete(struct task *t, struct plan_templates *x, int64_t id,
                                    int64_t version, const struct admin_deed *by);

/* --- template.c --- */

struct plan_templates {
    struct redis *redis;
    struct sql_pool *sql;
    struct cache_counts counts;
    struct sem loading;  /* one load at a time on a node */
    uint64_t told_epoch; /* connection to Redis that has been told all rows; 0: none */
    int64_t due_ms;
};

extern const struct record_kind plan_template_record;
/* Redis answers, and has been told all that MySQL has. */
bool plan_templates_trust(const struct plan_templates *p);
/* Checks what a row or a hash says. ERR_INVALID: it is no template, and *why says what is wrong. */
MUST_CHECK int plan_template_parse(struct arena *a, struct plan_template *p, const char **why);
/* The row into Redis. *kept: it has a newer one, which stays. */
MUST_CHECK int plan_template_put(struct task *t, struct plan_templates *p,
                                 const struct plan_template *row, bool *kept);
/* In Redis; id 0: the default. *found: false also when Redis does not answer. */
MUST_CHECK int plan_template_look(struct task *t, struct plan_templates *p, struct str category,
                                  int64_t id, struct plan_template *out, bool *found);
/* For users, without the texts: those of a category (p == NULL: of all), the default first. While
 * MySQL is away the defaults alone, from Redis. *degraded: a store does not answer. */
#define PLAN_TEMPLATES_LISTED_MAX 200
MUST_CHECK int plan_templates_list(struct task *t, struct plan_templates *p, struct str category,
                                   struct plan_template **out, size_t *count, bool *degraded);
/* Puts rows that Redis was not told of, or all of them. Idempotent. */
MUST_CHECK int plan_templates_tell(struct task *t, struct plan_templates *p, bool all);
#endif
