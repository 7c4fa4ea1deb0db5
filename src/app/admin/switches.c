/* What can be switched on and off for all nodes, before the answer. */
#include "engine/people/switches.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"

static const char *const about[] = {
    [SWITCH_REGISTRATION] = "registration is open",
    [SWITCH_NEW_RUNS] = "runs that wait are started",
};
_Static_assert(sizeof about / sizeof *about == SWITCH_COUNT, "every switch is explained");

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    if (switches_look(t, c->node->switches)) /* as seen last, then */
        c->degraded = true;
    jw_put_array(w, "switches");
    for (size_t i = 0; i < SWITCH_COUNT; i++) {
        jw_object(w);
        jw_put_str(w, "name", str_of(switch_word((enum switch_name)i)));
        jw_put_bool(w, "on", switch_on(c->node->switches, (enum switch_name)i));
        jw_put_str(w, "about", str_of(about[i]));
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int turn(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    enum switch_name n;
    bool on = false;
    check(switch_find(api_text(c, "name"), &n) && api_bool(c, "on", &on));
    int err = switch_turn(t, c->node->switches, n, on, &d);
    if (err)
        return err;
    jw_put_str(w, "name", api_text(c, "name"));
    jw_put_bool(w, "on", on);
    return 0;
}

static int toggle_registration(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = api_deed(c);
    bool enabled = false;
    check(api_bool(c, "enabled", &enabled));
    int err = switch_turn(t, c->node->switches, SWITCH_REGISTRATION, enabled, &d);
    if (!err)
        jw_put_bool(w, "enabled", enabled);
    return err;
}

/* --- the table --- */

#define NAME "name", API_TEXT, .choices = SWITCH_WORDS, .about = "of the switch"

static const struct api_field switch_fields[] = {
    {NAME},
    {"on", API_BOOL, .about = "on all nodes"},
    {"about", API_TEXT, .most = 255, .about = "what is so while it is on"},
    API_END,
};
static const struct api_field list_reply[] = {
    {"switches", API_OBJECTS, .about = "all of them", .fields = switch_fields},
    API_END,
};
static const struct api_field turn_body[] = {
    {NAME},
    {"on", API_BOOL, .about = "from now on"},
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field turn_reply[] = {
    {NAME}, {"on", API_BOOL, .about = "from now on, on all nodes"}, API_END};
static const struct api_field enabled_fields[] = {
    {"enabled", API_BOOL, .about = "registration is open"},
    API_END,
};

const struct api_route admin_switches_routes[] = {
    {"GET", "/api/admin/switches", API_ADMIN, list, "Global switches", .reply = list_reply},
    {"POST", "/api/admin/switches", API_ADMIN, turn, "Turn a global switch", .body = turn_body,
     .reply = turn_reply, .audit = "switch.turn"},
    {"POST", "/api/admin/toggle_registration", API_ADMIN, toggle_registration,
     "Open or close registration", .body = enabled_fields, .reply = enabled_fields,
     .audit = "switch.registration"},
    {.method = NULL},
};
