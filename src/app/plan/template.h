/* template.h -- prompt templates, from which plans are made (PLN-1).
 *
 * A template is a text with places "{{name}}" and a list of typed variables. It has a category; a
 * category with templates has one default. Plans are made of the categories "training" and
 * "nutrition" alone (plan_template_is_plan); admins may keep others. Owns the tables
 * prompt_template and prompt_template_version, and the keys template:*.
 *
 * Always true:
 *   - A value that a user gives is one line without braces, so it can neither add a place nor end
 *     the line of the template that it stands in; values are put in once, and never looked at for
 *     places. A user chooses values, and nothing else of the prompt.
 *   - The prompt of a plan has the lines "Plan: <category>", "Start date: <date>" and "Weeks:
 *     <number>" before any other value: a template without them is refused when it is saved.
 *   - A template that was changed is never read again as it was: its version is a fencing token.
 *
 * How a change reaches Redis:
 *   1. it is committed in MySQL with version + 1, and the column told is behind then: an outbox;
 *   2. the whole row is put into Redis by template_put.lua, which refuses what is older than what
 *      it finds; then told follows. A role does the same each second, on every node, for changes
 *      whose node has died, or could not reach Redis;
 *   3. on a new connection to Redis all rows are put, before anything is read from it: this Redis
 *      may have come back older. That is the warm-up at start, too (PLN-4).
 * When Redis does not answer, templates come from MySQL, marked degraded. */
#ifndef APP_PLAN_TEMPLATE_H
#define APP_PLAN_TEMPLATE_H

#include "base/json.h"
#include "base/metrics.h"
#include "engine/setup/node.h"
#include "engine/store/role.h"
#include "loop/task.h"

#define PLAN_CATEGORY_CHARS      32 /* a-z, 0-9 and "_" */
#define PLAN_SUBCATEGORY_CHARS   64
#define PLAN_TEMPLATE_NAME_CHARS 100
#define PLAN_TEMPLATE_CHARS      20000 /* of the text */
#define PLAN_TEMPLATE_PLACES     100   /* in one text */
#define PLAN_TEMPLATES_MAX       500   /* that are not deleted */
#define PLAN_PROMPT_BYTES_MAX    (128 * 1024)

#define PLAN_VARIABLES_MAX       30
#define PLAN_VARIABLE_NAME_CHARS 32   /* a-z, 0-9 and "_" */
#define PLAN_LABEL_CHARS         100  /* of a variable, and of each choice */
#define PLAN_VALUE_CHARS         2000 /* the most that a variable can allow */
#define PLAN_VALUE_CHARS_DEFAULT 500
#define PLAN_CHOICES_MAX         50
#define PLAN_NUMBER_MAX          1000000000

/* Every template of a plan has these two; a template that does not list them gets them. */
#define PLAN_START_DATE    "start_date" /* a date; tomorrow, in UTC, if it is not given */
#define PLAN_WEEKS         "weeks"
#define PLAN_WEEKS_MAX     12
#define PLAN_WEEKS_DEFAULT 4

#define PLAN_VARIABLE_TYPES "text|integer|number|date|choice"
enum plan_variable_type {
    PLAN_TEXT,    /* least to most characters */
    PLAN_INTEGER, /* least to most; so are numbers, which may have a fraction */
    PLAN_NUMBER,
    PLAN_DATE, /* "2026-01-31" */
    PLAN_CHOICE,
};

struct plan_variable {
    struct str name, label; /* label.n == 0: none */
    enum plan_variable_type type;
    struct str initial; /* "default": a value as text; p == NULL: none */
    bool required;      /* by the user: there is no default */
    const struct str *choices;
    size_t choice_count;
    int64_t least, most;
};

struct plan_template {
    int64_t id, version;
    struct str category, subcategory, name, text;
    struct str
        variables_json; /* as it is stored, and shown: an array; with the two of every plan */
    const struct plan_variable *variables;
    size_t variable_count;
    bool is_default, deleted;
    bool degraded; /* read from MySQL because Redis does not answer */
};

bool plan_template_is_plan(struct str category); /* "training" or "nutrition" */

/* --- what a node holds --- */

struct plan_templates;
struct plan_templates_options {
    struct redis *redis; /* all borrowed */
    struct sql_pool *sql;
    struct metrics *metrics; /* millrace_cache_…{kind="template"}; NULL: not shown */
};
struct plan_templates *plan_templates_new(const struct plan_templates_options *o);
void plan_templates_free(struct plan_templates *p); /* no call may be under way */

/* Puts into Redis what it lacks. arg: a struct plan_templates. */
#define PLAN_TEMPLATES_LOOK_EACH_MS 100 /* at the connection: it may be a new one */
role_fn plan_templates_role;

/* --- reading --- */

/* A template of the category by its id; 0: its default. *out is in the task's arena. Redis, then
 * MySQL. ERR_NOT_FOUND: there is none, or it was deleted. */
MUST_CHECK int plan_template_get(struct task *t, struct node *n, struct str category, int64_t id,
                                 struct plan_template *out);

/* Makes a prompt. variables: a JSON object of values, by the names of variables; a text, a number,
 * or null, which is as if it were absent; NULL: none are given. Absent ones get their default;
 * without one the prompt says "not given". *full: all variables as a JSON object, as the prompt has
 * them (null: not given), in the order of the template: {"start_date":"2026-01-31","weeks":4,…}.
 * ERR_INVALID: the text of the error begins with the name of the variable that is wrong. */
MUST_CHECK int plan_template_fill(struct task *t, const struct plan_template *p,
                                  const struct json *variables, struct str *prompt,
                                  struct str *full);
#endif
