/* millrace user list: names, permissions, money, states. */
#include <stdio.h>

#include "base/json.h"
#include "base/time.h"
#include "engine/runs/state.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "tool/user/commands.h"

#define PAGE 1000 /* users in one statement */

static const char about[] =
    "Shows number, name, permission, balance, what of it is reserved for unfinished work, what is\n"
    "free, state and age of users, by number. Charges of the last seconds may be missing.\n"
    "Reserved and free are - while a run is unfinished that has no estimate, as runs from before\n"
    "estimates were kept. State: active; banned; stopped: a run is paused because the account\n"
    "needs the operator, or a record of a charge cannot be read (see millrace user release).\n"
    "\n"
    "  millrace user list --find ash\n"
    "  millrace user list --state stopped --json";

struct options {
    const char *find, *state;
    bool json;
    bool begun; /* an element of the array was written */
};

struct listed {
    int64_t uid, permission, created_ms;
    struct str username, balance;
    struct str reserved, free; /* p == NULL: not known */
    const char *state;
};

/* Stopped comes first: it needs the operator. */
static struct listed listed_of(struct task *t, const struct sql_value *cell, bool aside)
{
    struct arena *a = task_arena(t);
    struct listed u = {.uid = cell[0].i,
                       .username = cell[1].s,
                       .permission = cell[2].i,
                       .balance = amount_decimal(a, cell[3].i),
                       .created_ms = cell[6].i,
                       .state = cell[5].i || aside ? "stopped"
                                : cell[4].i        ? "banned"
                                                   : "active"};
    if (cell[7].type != SQL_NULL) {
        u.reserved = amount_decimal(a, cell[7].i);
        u.free = amount_decimal(a, cell[3].i > cell[7].i ? cell[3].i - cell[7].i : 0);
    }
    return u;
}

static void show_json(struct task *t, struct options *o, const struct listed *u, const char *since)
{
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_put_int(&w, "uid", u->uid);
    jw_put_str(&w, "username", u->username);
    jw_put_int(&w, "permission", u->permission);
    jw_put_str(&w, "balance", u->balance);
    jw_put_str(&w, "reserved", u->reserved);
    jw_put_str(&w, "free", u->free);
    jw_put_str(&w, "state", str_of(u->state));
    jw_put_str(&w, "created_at", str_of(since));
    printf("%s\n  %s", o->begun ? "," : "", jw_finish(&w, task_arena(t)).p);
    o->begun = true;
}

static void show(struct task *t, struct options *o, const struct listed *u)
{
    char since[TIME_ISO_BYTES];
    if (o->state && strcmp(o->state, u->state) != 0)
        return;
    time_iso(u->created_ms * 1000, since);
    if (o->json)
        show_json(t, o, u, since);
    else
        printf("%lld\t%.*s\t%lld\t%s\t%s\t%s\t%s\t%s\n", (long long)u->uid, STR_ARG(u->username),
               (long long)u->permission, u->balance.p, u->reserved.p ? u->reserved.p : "-",
               u->free.p ? u->free.p : "-", u->state, since);
}

/* Which of them have records that cannot be read; none, while Redis does not answer. */
static void find_aside(struct task *t, struct redis *redis, const struct sql_rows *r, bool *aside)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, redis);
    for (size_t i = 0; i < r->count; i++) {
        struct str key = key_aside(task_arena(t), sql_row(r, i)[0].i);
        redis_batch_add(&b, key, STR("EXISTS"), key);
        aside[i] = false;
    }
    if (r->count == 0 || redis_batch_run(&b, &replies))
        return;
    for (size_t i = 0; i < r->count; i++)
        aside[i] = replies[i]->type == REDIS_INT && replies[i]->integer == 1;
}

/* As in engine/runs/reserve.c, by what MySQL has: costs so far and balance of one moment. */
#define RESERVED                                                                                   \
    "(SELECT IF(SUM(q.ceiling IS NULL) > 0, NULL, CAST(COALESCE(SUM(GREATEST(q.ceiling"            \
    " - CAST(q.total_cost * 100 AS SIGNED), 0)), 0) AS SIGNED)) FROM query_log q"                  \
    " WHERE q.uid = u.uid AND q.archived = 0 AND q.status IN ('QUEUED', 'RUNNING', 'PAUSED'))"     \
    " + (SELECT CAST(COALESCE(SUM(j.cents), 0) AS SIGNED) FROM job_reserve j WHERE j.uid = u.uid)"

static int list_page(struct task *t, struct account *a, struct str prefix, int64_t *after,
                     size_t *count)
{
    struct sql_rows r;
    int err = sql_call(
        t, a->db->sql, &r,
        "SELECT u.uid, u.username, u.permission, CAST(u.balance * 100 AS SIGNED), u.banned,"
        " EXISTS(SELECT 1 FROM query_log q WHERE q.uid = u.uid AND q.archived = 0 AND"
        " q.status = 'PAUSED' AND (q.reason = ? OR q.reason LIKE ?)),"
        " CAST(UNIX_TIMESTAMP(u.created_at) * 1000 AS SIGNED), " RESERVED " FROM user_info u"
        " WHERE u.uid > ? AND LEFT(u.username_folded, CHAR_LENGTH(?)) = ? ORDER BY u.uid LIMIT ?",
        sql_text(STR(RUN_REASON_ACCOUNT)), sql_text(STR(RUN_REASON_UNRECORDED "%")),
        sql_int(*after), sql_text(prefix), sql_text(prefix), sql_int(PAGE));
    *count = err ? 0 : r.count;
    bool *aside = ARENA_ARRAY(task_arena(t), bool, *count + 1);
    if (!err)
        find_aside(t, a->db->redis, &r, aside);
    for (size_t i = 0; i < *count; i++) {
        struct listed u = listed_of(t, sql_row(&r, i), aside[i]);
        show(t, a->arg, &u);
        *after = u.uid;
    }
    return err;
}

static int list(struct task *t, struct account *a)
{
    struct options *o = a->arg;
    struct str prefix = STR("");
    bool any = !o->find || user_name_prefix(task_arena(t), str_of(o->find), &prefix);
    int64_t after = 0;
    size_t count = any ? PAGE : 0;
    int err = 0;
    if (o->json)
        printf("{\"users\": [");
    while (!err && count == PAGE) {
        struct task_scope scope = task_scope(t);
        err = list_page(t, a, prefix, &after, &count);
        task_scope_end(t, scope);
    }
    if (o->json)
        printf("%s]}\n", o->begun ? "\n" : "");
    return err;
}

static const char *problem(struct account *a, char **operands)
{
    (void)operands;
    const struct options *o = a->arg;
    bool known = !o->state || strcmp(o->state, "active") == 0 || strcmp(o->state, "banned") == 0 ||
                 strcmp(o->state, "stopped") == 0;
    return known ? NULL : "--state is active, banned or stopped";
}

int user_list_main(int argc, char **argv)
{
    struct options o = {.json = false};
    const struct opt opts[] = {
        {"find", "TEXT", "only names that begin so", .text = &o.find},
        {"state", "STATE", "only those that are active, banned or stopped", .text = &o.state},
        {"json", NULL, "one JSON object instead of lines", .flag = &o.json},
    };
    return account_main((struct command){"user list", NULL, about, opts, 3},
                        &(struct account){.problem = problem, .apply = list, .arg = &o}, argc,
                        argv);
}
