/* What users do with templates. */
#include "app/extract/routes_private.h"
#include "app/extract/fields/template.h"
#include "app/extract/template_store.h"

#define TYPES "text|number|integer|boolean|date|choice|list"
#define ITEMS "text|number|integer|boolean|date|choice"

/* Of a body and of a reply alike. */
const struct api_field template_field_fields[] = {
    {"name", API_TEXT, .least = 1, .most = EXTRACT_NAME_CHARS_MAX, .about = "of the field"},
    {"type", API_TEXT, .choices = TYPES, .about = "of its values"},
    {"of", API_TEXT, .optional = true, .choices = ITEMS, .about = "of a list: type of its items"},
    {"unit", API_TEXT, .optional = true, .most = EXTRACT_UNIT_CHARS_MAX,
     .about = "of a number: in which values are wanted"},
    {"choices", API_TEXTS, .optional = true, .most = EXTRACT_CHOICES_MAX,
     .item_most = EXTRACT_CHOICE_CHARS_MAX, .about = "of a choice: its values"},
    {"instruction", API_TEXT, .optional = true, .most = EXTRACT_INSTRUCTION_CHARS_MAX,
     .about = "for the AI: what to look for"},
    {"required", API_BOOL, .optional = true, .about = "a document without it is asked about again"},
    API_END,
};

#define AT(member) API_AT(struct stored_template, member)
#define OF_ALL                                                                                     \
    {"template_id", API_TEXT, AT(id), .most = TEMPLATE_ID_CHARS, .about = "of the template"},      \
        {"name", API_TEXT, AT(name), .most = TEMPLATE_NAME_CHARS, .about = "for people"},          \
        {"version", API_INT, AT(version), .about = "counts its changes"},                          \
        {"ready", API_BOOL, AT(ready),                                                             \
         .about = "it comes with the program: copy it to change it"},                              \
    {                                                                                              \
        "changed_at", API_TIME, AT(changed_ms),                                                    \
            .optional = true, .about = "this version was made; null of a ready one"                \
    }

static const struct api_field listed_fields[] = {
    OF_ALL,
    {"fields", API_INT, AT(field_count), .about = "how many it has"},
    API_END,
};
static const struct api_field whole_fields[] = {
    OF_ALL,
    {"fields", API_OBJECTS, .least = 1, .most = EXTRACT_FIELDS_MAX, .about = "what is asked for",
     .fields = template_field_fields},
    API_END,
};

int templates_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct stored_template *list;
    size_t count;
    int err =
        template_store_list(t, c->node->sql, c->session.uid, api_text(c, "lang"), &list, &count);
    if (err)
        return err;
    api_put_list(t, w, "templates", listed_fields, list, count);
    return 0;
}

int template_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct stored_template x;
    int64_t version = 0;
    (void)api_int(c, "version", &version);
    int err = template_store_get(t, c->node->sql, c->session.uid, http_param(c->x, "template_id"),
                                 version, api_text(c, "lang"), &x);
    if (err)
        return err;
    jw_put_object(w, "template");
    api_put_fields(t, w, whole_fields, &x);
    jw_key(w, STR("fields"));
    jw_raw(w, x.fields);
    jw_end_object(w);
    return 0;
}

/* --- changing --- */

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7F)
            return true;
    return false;
}

/* Name and fields of the body; the fields as they are stored. */
static int take_body(struct task *t, struct api_call *c, struct stored_template *out)
{
    struct extract_template x;
    const char *complaint = NULL;
    struct buf b;
    struct json_writer w;
    out->name = str_trim(api_text(c, "name"));
    if (out->name.n == 0 || has_control(out->name))
        return api_refuse(t, c, "name", "must be one line, with more than blanks");
    if (extract_template_read(task_arena(t), json_get(c->body, "fields"), &x, &complaint))
        return api_refuse(t, c, "fields", "%s", complaint);
    buf_init(&b);
    jw_init(&w, &b);
    extract_template_put(&w, &x);
    out->fields = str_dup(task_arena(t), buf_str(&b));
    out->field_count = (int64_t)x.count;
    buf_release(&b);
    if (out->fields.n > TEMPLATE_FIELDS_BYTES)
        return api_refuse(t, c, "fields", "have more than %d KB together",
                          TEMPLATE_FIELDS_BYTES / 1024);
    return 0;
}

static int answer(struct json_writer *w, const struct stored_template *x)
{
    jw_put_str(w, "template_id", x->id);
    jw_put_int(w, "version", x->version);
    return 0;
}

int template_post(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct stored_template x = {0};
    int err = take_body(t, c, &x);
    if (!err)
        err = template_store_add(t, c->node->sql, c->session.uid, &x);
    return err ? err : answer(w, &x);
}

int template_put(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct stored_template x = {.id = http_param(c->x, "template_id")};
    int err = take_body(t, c, &x);
    check(api_int(c, "version", &x.version)); /* as the table says */
    if (!err)
        err = template_store_change(t, c->node->sql, c->session.uid, &x);
    return err ? err : answer(w, &x);
}

int template_remove(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return template_store_delete(t, c->node->sql, c->session.uid, http_param(c->x, "template_id"));
}

/* --- the tables --- */

#define LANGUAGE                                                                                   \
    "lang", API_TEXT, .optional = true, .choices = TEMPLATE_LANGUAGES,                             \
                      .about = "of ready templates; English if absent"
#define NAME "name", API_TEXT, .least = 1, .most = TEMPLATE_NAME_CHARS, .about = "for people"
#define FIELDS                                                                                     \
    "fields", API_OBJECTS, .least = 1, .most = EXTRACT_FIELDS_MAX, .about = "what is asked for",   \
                           .fields = template_field_fields

const struct api_field templates_query[] = {{LANGUAGE}, API_END};
const struct api_field templates_reply[] = {
    {"templates", API_OBJECTS, .about = "the ready ones, then yours, the last changed first",
     .fields = listed_fields},
    API_END,
};
const struct api_field template_query[] = {
    {"version", API_INT, .optional = true, .least = 1, .most = INT64_MAX,
     .about = "the newest if absent; the last 100 are kept"},
    {LANGUAGE},
    API_END,
};
const struct api_field template_reply[] = {
    {"template", API_OBJECT, .about = "the template", .fields = whole_fields},
    API_END,
};
const struct api_field template_post_body[] = {{NAME}, {FIELDS}, API_END};
const struct api_field template_put_body[] = {
    {"version", API_INT, .least = 1, .most = INT64_MAX,
     .about = "that the change was made to; 409 if it is not the newest"},
    {NAME},
    {FIELDS},
    API_END,
};
const struct api_field template_stored_reply[] = {
    {"template_id", API_TEXT, .most = TEMPLATE_ID_CHARS, .about = "of the template"},
    {"version", API_INT, .about = "that it has now"},
    API_END,
};
