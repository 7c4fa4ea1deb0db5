#include "engine/people/switches.h"

#include <stdlib.h>

#include "base/log.h"
#include "engine/store/cluster.h"

#define LOOK_MS 5000 /* how long one look may take */

static const struct {
    const char *name;
    bool on; /* where the table says nothing */
} known[SWITCH_COUNT] = {
    [SWITCH_REGISTRATION] = {"registration", true},
    [SWITCH_NEW_RUNS] = {"new_runs", true},
};

struct switches {
    struct sql_pool *sql;
    struct {
        bool on;
        int64_t version; /* of the row; -1: none was seen */
    } now[SWITCH_COUNT];
    switches_fn *also;
    void *also_arg;
    bool puzzled; /* a row is no switch, and it was said */
};

struct switches *switches_new(struct sql_pool *sql)
{
    struct switches *s = check_memory(calloc(1, sizeof *s));
    s->sql = sql;
    for (size_t i = 0; i < SWITCH_COUNT; i++) {
        s->now[i].on = known[i].on;
        s->now[i].version = -1;
    }
    return s;
}

void switches_free(struct switches *s)
{
    free(s);
}

void switches_also(struct switches *s, switches_fn *fn, void *arg)
{
    check(!s->also);
    s->also = fn;
    s->also_arg = arg;
}

const char *switch_word(enum switch_name n)
{
    check((size_t)n < SWITCH_COUNT);
    return known[n].name;
}

bool switch_find(struct str word, enum switch_name *out)
{
    for (size_t i = 0; i < SWITCH_COUNT; i++)
        if (str_eq(word, str_of(known[i].name))) {
            *out = (enum switch_name)i;
            return true;
        }
    return false;
}

bool switch_on(const struct switches *s, enum switch_name n)
{
    check((size_t)n < SWITCH_COUNT);
    return s->now[n].on;
}

/* LOCK IN SHARE MODE: FOR SHARE is unknown to MariaDB. Where there is no row it locks the gap. */
int switch_read(struct task *t, struct sql *c, enum switch_name n, bool *on)
{
    struct sql_rows r;
    int err = cluster_turn_part(t, c, switch_word(n));
    if (!err)
        err = sql_on(t, c, &r, "SELECT value FROM setting WHERE name = ? LOCK IN SHARE MODE",
                     sql_text(str_of(switch_word(n))));
    if (err)
        return err;
    struct str value = r.count ? str_trim(r.cells[0].s) : STR("");
    *on = known[n].on ? !str_eq(value, STR("false")) : str_eq(value, STR("true"));
    return 0;
}

static void learn(struct switches *s, size_t n, bool on, int64_t version)
{
    if (version < s->now[n].version)
        return; /* read before the switch was turned here */
    if (on != s->now[n].on)
        log_info("engine", "switch %s is %s now", known[n].name, on ? "on" : "off");
    s->now[n].on = on;
    s->now[n].version = version;
}

/* --- changes --- */

static struct str state_of(struct task *t, const char *member, struct str value)
{
    return str_printf(task_arena(t), "{\"%s\":%.*s}", member, STR_ARG(value));
}

/* What it was is read here: another node may have changed it a moment ago. */
int setting_change(struct task *t, struct sql *c, void *arg)
{
    struct setting_change *x = arg;
    struct sql_rows r;
    int err = cluster_turn_all(t, c, str_z(task_arena(t), x->name));
    if (!err)
        err = sql_on(t, c, &r, "SELECT value, version FROM setting WHERE name = ? FOR UPDATE",
                     sql_text(x->name));
    if (err)
        return err;
    struct admin_deed deed = x->deed;
    x->version = r.count ? r.cells[1].i + 1 : 0;
    if (!deed.before.p)
        deed.before = state_of(t, x->member, r.count ? str_trim(r.cells[0].s) : x->unset);
    if (!deed.after.p)
        deed.after = state_of(t, x->member, x->value);
    err = sql_on(t, c, NULL,
                 "INSERT INTO setting (name, value, version, changed_at, changed_by)"
                 " VALUES (?, ?, 0, UTC_TIMESTAMP(3), ?) ON DUPLICATE KEY UPDATE"
                 " value = VALUES(value), version = version + 1,"
                 " changed_at = VALUES(changed_at), changed_by = VALUES(changed_by)",
                 sql_text(x->name), sql_text(x->value),
                 deed.admin_uid ? sql_int(deed.admin_uid) : sql_null());
    return err ? err : admin_audit_add(t, c, &deed);
}

int switch_turn(struct task *t, struct switches *s, enum switch_name n, bool on,
                const struct admin_deed *by)
{
    check((size_t)n < SWITCH_COUNT);
    struct setting_change x = {.name = str_of(known[n].name),
                               .value = on ? STR("true") : STR("false"),
                               .unset = known[n].on ? STR("true") : STR("false"),
                               .member = "on",
                               .deed = *by};
    x.deed.target = x.name;
    int err = sql_tx(t, s->sql, setting_change, &x);
    if (!err)
        learn(s, n, on, x.version);
    return err;
}

/* --- looks --- */

static void learn_row(struct switches *s, const struct sql_value *row)
{
    struct str name = row[0].s, value = str_trim(row[1].s);
    for (size_t i = 0; i < SWITCH_COUNT; i++) {
        if (!str_eq(name, str_of(known[i].name)))
            continue;
        bool on = str_eq(value, STR("true"));
        if (on || str_eq(value, STR("false"))) {
            learn(s, i, on, row[2].i);
        } else if (!s->puzzled) {
            s->puzzled = true;
            log_warn("engine", "setting %s: expected is true or false, found is %.*s; it stays %s",
                     known[i].name, STR_ARG(value), s->now[i].on ? "on" : "off");
        }
        return;
    }
    if (s->also)
        s->also(s->also_arg, name, value, row[2].i);
}

int switches_look(struct task *t, struct switches *s)
{
    struct sql_rows r;
    int err = sql_call(t, s->sql, &r, "SELECT name, value, version FROM setting");
    for (size_t i = 0; !err && i < r.count; i++)
        learn_row(s, sql_row(&r, i));
    return err;
}

int switches_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    int64_t old = task_deadline(t, LOOK_MS);
    int err = switches_look(t, arg);
    task_deadline_restore(t, old);
    return err;
}
