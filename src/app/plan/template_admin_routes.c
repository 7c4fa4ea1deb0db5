/* What admins see of templates, and do to them. */
#include "app/plan/template_private.h"
#include "app/plan/template_routes.h"
#include "corpus/prose/tokens.h"

#define BODY_BYTES_MAX (512 * 1024)
#define VERSIONS_MAX   100 /* listed; the newest */
#define NAME_PROBLEM   "must be one line, without braces and blanks at its ends"

/* A row as admins see it. */
struct shown {
    struct plan_template is; /* first: its columns are those of plan_template_record */
    int64_t changed_ms;
    struct str changed_by;
    const char *problem; /* NULL: plans can be made of it */
};

#define AT(member)    .at = offsetof(struct shown, member)
#define MS_OF(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define SHOWN(member) API_AT(struct shown, member)
static const struct record_column columns[] = {
    {NULL, "id", RECORD_INT, AT(is.id)},
    {NULL, "name", RECORD_TEXT, AT(is.name)},
    {NULL, "category", RECORD_TEXT, AT(is.category)},
    {NULL, "subcategory", RECORD_TEXT, AT(is.subcategory)},
    {NULL, "template", RECORD_TEXT, AT(is.text)},
    {NULL, "variables", RECORD_TEXT, AT(is.variables_json)},
    {NULL, "is_default", RECORD_FLAG, AT(is.is_default)},
    {NULL, "version", RECORD_INT, AT(is.version)},
    {NULL, MS_OF("changed"), RECORD_INT, AT(changed_ms)},
    {NULL, "changed_by", RECORD_TEXT, AT(changed_by)},
    {.type = RECORD_END},
};
static const struct record_kind row_kind = {"prompt_template", columns, sizeof(struct shown)};

/* As one of its versions; what it is besides is that of today. */
static const struct record_column version_columns[] = {
    {NULL, "v.template_id", RECORD_INT, AT(is.id)},
    {NULL, "v.name", RECORD_TEXT, AT(is.name)},
    {NULL, "p.category", RECORD_TEXT, AT(is.category)},
    {NULL, "v.subcategory", RECORD_TEXT, AT(is.subcategory)},
    {NULL, "v.template", RECORD_TEXT, AT(is.text)},
    {NULL, "v.variables", RECORD_TEXT, AT(is.variables_json)},
    {NULL, "p.is_default", RECORD_FLAG, AT(is.is_default)},
    {NULL, "v.version", RECORD_INT, AT(is.version)},
    {NULL, MS_OF("v.changed"), RECORD_INT, AT(changed_ms)},
    {NULL, "v.changed_by", RECORD_TEXT, AT(changed_by)},
    {.type = RECORD_END},
};
static const struct record_kind version_kind = {
    "prompt_template_version v JOIN prompt_template p ON p.id = v.template_id", version_columns,
    sizeof(struct shown)};

static const struct api_field head_fields[] = {
    {"id", API_INT, SHOWN(is.id), .about = "number of the template"},
    {"category", API_TEXT, SHOWN(is.category), .most = PLAN_CATEGORY_CHARS,
     .about = "training and nutrition are the kinds of plans"},
    {"subcategory", API_TEXT, SHOWN(is.subcategory), .most = PLAN_SUBCATEGORY_CHARS,
     .about = "for people"},
    {"name", API_TEXT, SHOWN(is.name), .most = PLAN_TEMPLATE_NAME_CHARS, .about = "for people"},
    {"is_default", API_BOOL, SHOWN(is.is_default), .about = "of its category"},
    {"version", API_INT, SHOWN(is.version), .about = "counts its changes"},
    {"changed", API_TIME, SHOWN(changed_ms), .about = "last"},
    {"changed_by", API_TEXT, SHOWN(changed_by), .about = "name of the admin"},
    API_END,
};

/* --- reading --- */

static int path_number(struct task *t, const struct api_call *c, const char *name, int64_t *out)
{
    struct str text = http_param(c->x, name);
    if (!str_to_i64(text, out) || *out < 1 || *out > INT32_MAX)
        return task_fail(t, ERR_NOT_FOUND, "there is no template %.*s", STR_ARG(text));
    return 0;
}

static int none(struct task *t, int64_t id)
{
    return task_fail(t, ERR_NOT_FOUND, "there is no template %lld", (long long)id);
}

/* A row that was damaged by other hands is shown, with what is wrong, and can be mended. */
static void take(struct task *t, const struct record_kind *k, const struct sql_value *row,
                 struct shown *out)
{
    *out = (struct shown){.problem = NULL};
    record_take(k, row, out);
    if (plan_template_parse(task_arena(t), &out->is, &out->problem) && !out->is.variables)
        out->is.variables_json = STR("[]");
}

static int find(struct task *t, struct api_call *c, int64_t id, struct shown *out)
{
    struct sql_rows r;
    int err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &row_kind, "WHERE id = ? AND deleted = 0"),
                       sql_int(id));
    if (err)
        return err;
    if (r.count == 0)
        return none(t, id);
    take(t, &row_kind, r.cells, out);
    return 0;
}

static void put_whole(struct task *t, struct json_writer *w, const struct shown *s)
{
    api_put_fields(t, w, head_fields, s);
    jw_put_str(w, "template", s->is.text);
    jw_key(w, STR("variables"));
    jw_raw(w, s->is.variables_json);
    jw_put_str(w, "problem", str_of(s->problem));
}

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct shown s;
    int64_t id;
    int err = path_number(t, c, "template_id", &id);
    if (!err)
        err = find(t, c, id, &s);
    if (!err)
        put_whole(t, w, &s);
    return err;
}

static int put_rows(struct task *t, struct json_writer *w, const struct record_kind *k,
                    const char *name, const struct sql_rows *r)
{
    struct shown *all = ARENA_ARRAY(task_arena(t), struct shown, r->count);
    for (size_t i = 0; i < r->count; i++)
        record_take(k, sql_row(r, i), &all[i]);
    api_put_list(t, w, name, head_fields, all, r->count);
    return 0;
}

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str category = api_text(c, "category");
    struct sql_rows r;
    int err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &row_kind,
                                     "WHERE deleted = 0 AND (? OR category = ?)"
                                     " ORDER BY category, is_default DESC, id LIMIT ?"),
                       sql_int(!category.p), sql_text(category.p ? category : STR("")),
                       sql_int(PLAN_TEMPLATES_MAX));
    return err ? err : put_rows(t, w, &row_kind, "templates", &r);
}

static int versions(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct sql_rows r;
    int64_t id;
    int err = path_number(t, c, "template_id", &id);
    if (!err)
        err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &version_kind,
                                     "WHERE v.template_id = ? AND p.deleted = 0"
                                     " ORDER BY v.version DESC LIMIT ?"),
                       sql_int(id), sql_int(VERSIONS_MAX));
    if (!err && r.count == 0)
        err = none(t, id);
    return err ? err : put_rows(t, w, &version_kind, "versions", &r);
}

/* The text that counted at a version: plans name the version they were made with. */
static int show_version(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct sql_rows r;
    struct shown s;
    int64_t id, version;
    int err = path_number(t, c, "template_id", &id);
    if (!err)
        err = path_number(t, c, "version", &version);
    if (!err)
        err = sql_call(t, c->node->sql, &r,
                       record_select(task_arena(t), &version_kind,
                                     "WHERE v.template_id = ? AND v.version <= ?"
                                     " AND p.version >= ? ORDER BY v.version DESC LIMIT 1"),
                       sql_int(id), sql_int(version), sql_int(version));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no version %lld of template %lld",
                         (long long)version, (long long)id);
    take(t, &version_kind, r.cells, &s);
    put_whole(t, w, &s);
    return 0;
}

/* --- changing --- */

static bool is_line(struct task *t, struct str s)
{
    struct str cleaned;
    return plan_value_clean(task_arena(t), s, &cleaned) && str_eq(cleaned, s);
}

/* Browsers send lines as they were pasted. */
static struct str with_plain_lines(struct arena *a, struct str s)
{
    char *text = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != '\r' || i + 1 == s.n || s.p[i + 1] != '\n')
            text[n++] = s.p[i];
    return str_from(text, n);
}

/* What the body says, into *p, whose category is there. */
static int take_draft(struct task *t, struct api_call *c, struct plan_template *p)
{
    struct arena *a = task_arena(t);
    struct str subcategory = api_text(c, "subcategory");
    const char *why = "";
    p->name = api_text(c, "name");
    p->subcategory = subcategory.p ? subcategory : STR("");
    if (!is_line(t, p->name))
        return api_refuse(t, c, "name", NAME_PROBLEM);
    if (!is_line(t, p->subcategory))
        return api_refuse(t, c, "subcategory", NAME_PROBLEM);
    if (plan_variables_read(a, json_get(c->body, "variables"), p, &why))
        return api_refuse(t, c, "variables", "%s", why);
    p->text = with_plain_lines(a, api_text(c, "template"));
    why = plan_text_problem(a, p);
    return why ? api_refuse(t, c, "template", "%s", why) : 0;
}

static int take_category(struct task *t, struct api_call *c, struct plan_template *p)
{
    p->category = api_text(c, "category");
    if (plan_name_is(p->category, PLAN_CATEGORY_CHARS))
        return 0;
    return api_refuse(t, c, "category", "must be of a-z, 0-9 and _, and begin with a letter");
}

static int put_made(struct task *t, struct api_call *c, struct json_writer *w, int64_t id)
{
    struct shown s;
    int err = find(t, c, id, &s);
    if (!err)
        put_whole(t, w, &s);
    return err;
}

static int add(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_template p = {0};
    struct admin_deed deed = api_deed(c);
    int err = take_category(t, c, &p);
    if (!err)
        err = take_draft(t, c, &p);
    if (!err)
        err = plan_template_add(t, c->node->plan_templates, &p, &deed);
    return err ? err : put_made(t, c, w, p.id);
}

static int change(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_template p = {0};
    struct admin_deed deed = api_deed(c);
    struct shown now;
    int64_t id;
    int err = path_number(t, c, "template_id", &id);
    if (!err)
        err = find(t, c, id, &now);
    if (err)
        return err;
    p.id = id;
    p.category = now.is.category; /* never changes */
    api_int(c, "version", &p.version);
    err = take_draft(t, c, &p);
    if (!err)
        err = plan_template_change(t, c->node->plan_templates, &p, &deed);
    return err ? err : put_made(t, c, w, id);
}

static int make_default(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed deed = api_deed(c);
    int64_t id, version;
    int err = path_number(t, c, "template_id", &id);
    if (!err)
        err = plan_template_make_default(t, c->node->plan_templates, id, &deed, &version);
    if (!err)
        jw_put_int(w, "version", version);
    return err;
}

static int delete (struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct admin_deed deed = api_deed(c);
    int64_t id, version = 0;
    int err = path_number(t, c, "template_id", &id);
    api_int(c, "version", &version);
    return err ? err : plan_template_delete(t, c->node->plan_templates, id, version, &deed);
}

/* --- preview --- */

/* A template that is being written, or a stored one. *why: what is wrong with it, for people. */
static int take_previewed(struct task *t, struct api_call *c, struct plan_template *p,
                          const char **why)
{
    struct arena *a = task_arena(t);
    struct shown s;
    int64_t id;
    if (api_int(c, "id", &id)) {
        int err = find(t, c, id, &s);
        *p = s.is;
        *why = s.problem;
        return err;
    }
    int err = take_category(t, c, p);
    if (err)
        return err;
    const struct json *list = json_get(c->body, "variables");
    struct str text = api_text(c, "template");
    if (!list || !text.p)
        return api_refuse(t, c, "template", "is needed with category and variables, or an id");
    if (plan_variables_read(a, list, p, why)) {
        *why = arena_printf(a, "variables: %s", *why);
        return 0;
    }
    p->text = with_plain_lines(a, text);
    const char *problem = plan_text_problem(a, p);
    *why = problem ? arena_printf(a, "%s: %s", "template", problem) : NULL;
    return 0;
}

/* What is wrong is an answer here, not a refusal: it is asked while an admin types. */
static int preview(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_template p = {0};
    struct str prompt = STR_NULL, full = STR("{}");
    const char *why = NULL;
    int err = take_previewed(t, c, &p, &why);
    if (err)
        return err;
    if (!why && plan_template_fill(t, &p, api_values(c, "values"), &prompt, &full))
        why = arena_strdup(task_arena(t), task_error(t));
    jw_put_str(w, "prompt", prompt);
    api_put_known(w, "tokens", prompt.p != NULL, prompt.p ? tokens_estimate(prompt) : 0);
    jw_key(w, STR("values"));
    jw_raw(w, full);
    jw_put_str(w, "problem", str_of(why));
    return 0;
}

/* --- the tables --- */

#define NAME "name", API_TEXT, .least = 1, .most = PLAN_TEMPLATE_NAME_CHARS, .about = "for people"
#define SUBCATEGORY                                                                                \
    "subcategory", API_TEXT, .optional = true, .most = PLAN_SUBCATEGORY_CHARS, .about = "likewise"
#define CATEGORY "category", API_TEXT, .least = 1, .most = PLAN_CATEGORY_CHARS
#define TEMPLATE "template", API_TEXT, .least = 1, .most = PLAN_TEMPLATE_CHARS
#define VARIABLES                                                                                  \
    "variables", API_OBJECTS, .most = PLAN_VARIABLES_MAX, .fields = plan_variable_fields

static const struct api_field list_query[] = {
    {CATEGORY, .optional = true, .about = "of the templates; all if absent"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"templates", API_OBJECTS, .most = PLAN_TEMPLATES_MAX,
     .about = "by category, the default of each first", .fields = head_fields},
    API_END,
};
static const struct api_field versions_reply[] = {
    {"versions", API_OBJECTS, .most = VERSIONS_MAX,
     .about = "those that changed the template, newest first", .fields = head_fields},
    API_END,
};
/* head_fields, without their places: these are written by put_whole. */
static const struct api_field whole_reply[] = {
    {"id", API_INT, .about = "number of the template"},
    {"category", API_TEXT, .most = PLAN_CATEGORY_CHARS,
     .about = "training and nutrition are the kinds of plans"},
    {"subcategory", API_TEXT, .most = PLAN_SUBCATEGORY_CHARS, .about = "for people"},
    {"name", API_TEXT, .most = PLAN_TEMPLATE_NAME_CHARS, .about = "for people"},
    {"is_default", API_BOOL, .about = "of its category"},
    {"version", API_INT, .about = "counts its changes"},
    {"changed", API_TIME, .about = "last"},
    {"changed_by", API_TEXT, .about = "name of the admin"},
    {"template", API_TEXT, .about = "its text"},
    {"variables", API_OBJECTS, .about = "that the text may have", .fields = plan_variable_fields},
    {"problem", API_TEXT, .optional = true,
     .about = "why no plan can be made of it; null: nothing is wrong"},
    API_END,
};
static const struct api_field add_body[] = {
    {CATEGORY, .about = "a-z, 0-9 and _; its first template is its default"},
    {SUBCATEGORY},
    {NAME},
    {TEMPLATE, .about = "with {{name}} where the value of a variable goes"},
    {VARIABLES, .about = "plans have start_date and weeks besides"},
    API_END,
};
static const struct api_field change_body[] = {
    {"version", API_INT, .least = 1, .most = INT32_MAX, .about = "that was read; 409 if it is old"},
    {SUBCATEGORY},
    {NAME},
    {TEMPLATE, .about = "with {{name}} where the value of a variable goes"},
    {VARIABLES, .about = "plans have start_date and weeks besides"},
    API_END,
};
static const struct api_field default_reply[] = {
    {"version", API_INT, .about = "of the template now"},
    API_END,
};
static const struct api_field delete_query[] = {
    {"version", API_INT, .optional = true, .least = 1, .most = INT32_MAX,
     .about = "that was read; 409 if it is old"},
    API_END,
};
static const struct api_field preview_body[] = {
    {"id", API_INT, .optional = true, .least = 1, .most = INT32_MAX,
     .about = "of a stored template; else category, template and variables"},
    {CATEGORY, .optional = true, .about = "of one that is being written"},
    {TEMPLATE, .optional = true, .about = "its text"},
    {VARIABLES, .optional = true, .about = "that it has"},
    {"values", API_VALUES, .optional = true, .most = PLAN_VARIABLES_MAX + 2,
     .item_most = PLAN_VALUE_CHARS, .about = "by the names of variables, as for a plan"},
    API_END,
};
static const struct api_field preview_reply[] = {
    {"prompt", API_TEXT, .optional = true, .about = "that the AI would get"},
    {"tokens", API_INT, .optional = true, .about = "of the prompt, estimated a bit too high"},
    {"values", API_VALUES, .about = "as they stand in the prompt, defaults too; null: not given"},
    {"problem", API_TEXT, .optional = true, .about = "why there is no prompt; null: there is one"},
    API_END,
};

#define PATH "/api/admin/prompt_templates"
const struct api_route admin_template_routes[] = {
    {"GET", PATH, API_ADMIN, list, "Prompt templates", .query = list_query, .reply = list_reply},
    {"POST", PATH, API_ADMIN, add, "Make a prompt template", .body = add_body, .reply = whole_reply,
     .status = 201, .body_bytes_max = BODY_BYTES_MAX, .audit = "template.add"},
    {"POST", PATH "/preview", API_ADMIN, preview, "The prompt that a template gives",
     .body = preview_body, .reply = preview_reply, .body_bytes_max = BODY_BYTES_MAX,
     .audit = "template.preview"},
    {"GET", PATH "/:template_id", API_ADMIN, show, "A prompt template", .reply = whole_reply},
    {"PUT", PATH "/:template_id", API_ADMIN, change, "Change a prompt template",
     .body = change_body, .reply = whole_reply, .body_bytes_max = BODY_BYTES_MAX,
     .audit = "template.change"},
    {"DELETE", PATH "/:template_id", API_ADMIN, delete, "Delete a prompt template",
     .query = delete_query, .audit = "template.delete"},
    {"POST", PATH "/:template_id/default", API_ADMIN, make_default,
     "Make a prompt template the default of its category", .reply = default_reply,
     .audit = "template.default"},
    {"GET", PATH "/:template_id/versions", API_ADMIN, versions, "Versions of a prompt template",
     .reply = versions_reply},
    {"GET", PATH "/:template_id/versions/:version", API_ADMIN, show_version,
     "A prompt template as it was", .reply = whole_reply},
    {.method = NULL},
};
