/* What users see of templates: what a form for a plan is drawn from. */
#include "app/plan/template_routes.h"

#include "app/plan/plans.h"
#include "app/plan/template_private.h"
#include "engine/setup/config.h"
#include "engine/store/amount.h"

const struct api_field plan_variable_fields[] = {
    {"name", API_TEXT, .least = 1, .most = PLAN_VARIABLE_NAME_CHARS,
     .about = "a-z, 0-9 and _; in the text it is {{name}}"},
    {"type", API_TEXT, .choices = PLAN_VARIABLE_TYPES, .about = "of its values"},
    {"label", API_TEXT, .optional = true, .most = PLAN_LABEL_CHARS, .about = "for people"},
    {"default", API_TEXT, .optional = true, .most = PLAN_VALUE_CHARS,
     .about = "used when no value is given, as text; none if absent. start_date has tomorrow"},
    {"required", API_BOOL, .optional = true, .about = "a value must be given"},
    {"choices", API_TEXTS, .optional = true, .most = PLAN_CHOICES_MAX,
     .item_most = PLAN_LABEL_CHARS, .about = "of type choice: its values"},
    {"least", API_INT, .optional = true, .least = -PLAN_NUMBER_MAX, .most = PLAN_NUMBER_MAX,
     .about = "the least number, or the fewest characters"},
    {"most", API_INT, .optional = true, .least = -PLAN_NUMBER_MAX, .most = PLAN_NUMBER_MAX,
     .about = "the greatest number, or the most characters"},
    API_END,
};

#define AT(member) API_AT(struct plan_template, member)
static const struct api_field shown_fields[] = {
    {"id", API_INT, AT(id), .about = "of the template, when a plan is asked for"},
    {"category", API_TEXT, AT(category), .most = PLAN_CATEGORY_CHARS,
     .about = "training and nutrition are the kinds of plans"},
    {"subcategory", API_TEXT, AT(subcategory), .most = PLAN_SUBCATEGORY_CHARS,
     .about = "for people"},
    {"name", API_TEXT, AT(name), .most = PLAN_TEMPLATE_NAME_CHARS, .about = "for people"},
    {"is_default", API_BOOL, AT(is_default), .about = "used where no template is named"},
    {"version", API_INT, AT(version), .about = "counts its changes"},
    {"price", API_MONEY, .optional = true,
     .about = "of a plan made of it; absent: no plans are made of its category"},
    {"variables", API_OBJECTS, .about = "what a plan can be asked for with",
     .fields = plan_variable_fields},
    API_END,
};

static void put_price(struct task *t, const struct config *c, struct json_writer *w,
                      struct str category)
{
    enum plan_kind kind;
    if (plan_kind_read(category, &kind))
        jw_put_str(w, "price", amount_decimal(task_arena(t), plan_price_cents(c, kind)));
}

int plan_templates_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct plan_template *all;
    size_t count;
    int err = plan_templates_list(t, c->node->plan_templates, api_text(c, "category"), &all, &count,
                                  &c->degraded);
    if (err)
        return err;
    jw_put_array(w, "templates");
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        api_put_fields(t, w, shown_fields, &all[i]);
        put_price(t, c->node->config, w, all[i].category);
        jw_key(w, STR("variables"));
        jw_raw(w, all[i].variables_json);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_bool(w, "simulated", c->node->simulated);
    return 0;
}

const struct api_field plan_templates_query[] = {
    {"category", API_TEXT, .optional = true, .least = 1, .most = PLAN_CATEGORY_CHARS,
     .about = "of the templates; all if absent"},
    API_END,
};
const struct api_field plan_templates_reply[] = {
    {"templates", API_OBJECTS, .most = PLAN_TEMPLATES_LISTED_MAX,
     .about = "by category, the default of each first; while the database does not answer, the "
              "defaults alone",
     .fields = shown_fields},
    {"simulated", API_BOOL,
     .about = "the server has no AI but its simulated one: plans would mean nothing"},
    API_END,
};
