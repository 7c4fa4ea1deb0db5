#include "engine/money/audit.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/money/audit_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "loop/backoff.h"

#define KNOWN_MAX 1000000 /* users in struct audit_memory */
#define USERS_MAX 1000    /* of one page */
#define TRIES_MAX 100     /* reads of a user whose money keeps changing */
#define TRY_MS    20
#define RECENT    100000 /* charges whose verdicts the background looks for after a start */
#define RECORDS_PER_MS                                                                             \
    100 /* unsynced records that lengthen the pause between two tries by a millisecond */
#define EACH_MS 60000

void audit_report(struct audit_state *s, const struct audit_finding *f)
{
    s->report.findings++;
    s->report.drift_cents += f->cents;
    if (s->audit->found)
        s->audit->found(s->audit->arg, f);
    else
        log_error("audit", "user %lld: %s: %s", (long long)f->uid, f->what, f->detail);
}

/* --- one user --- */

struct look {
    struct generation generation; /* of Redis, before it was asked */
    bool open;
    int64_t cents, seq, synced, move, records, records_cents;
    int64_t moves_cents; /* of moves that Redis has not applied */
    int64_t aside;       /* records that could not be read */
};

#define COLUMNS "u.uid, CAST(u.balance * 100 AS SIGNED), u.billed_seq, u.move_no"
#define ADDED_OF(source)                                                                           \
    "(SELECT COALESCE(SUM(IF(b.kind IN ('opening', 'recharge', 'reversal'), b.cents, -b.cents)),"  \
    " 0) FROM billing_log b WHERE b.uid = u.uid AND b.source = '" source "' AND b.number > ?)"

static struct audit_row row_of(const struct sql_value *cell)
{
    return (struct audit_row){cell[0].i, cell[1].i, cell[2].i, cell[3].i, 0};
}

/* The row and the sum of its billing_log, from one snapshot. Rows up to known are not summed
 * again. */
static int read_row(struct task *t, const struct audit *a, const struct audit_known *known,
                    int64_t uid, struct audit_row *out)
{
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r,
                       "SELECT " COLUMNS ", CAST(" ADDED_OF("redis") " + " ADDED_OF(
                           "mysql") " AS SIGNED)"
                                    " FROM user_info u WHERE u.uid = ?",
                       sql_int(known->billed_seq), sql_int(known->move_no), sql_int(uid));
    if (!err && r.count == 1) {
        *out = row_of(r.cells);
        out->log = known->log + r.cells[4].i;
    }
    return err;
}

static int look_at(struct task *t, const struct audit *a, const struct audit_row *row,
                   struct look *out)
{
    struct arena *m = task_arena(t);
    struct generation now = generation_now(a->redis);
    int64_t v[8];
    struct sql_rows r;
    int err =
        SCRIPT_NUMBERS(t, a->redis, audit_look, 8, v, .balance = key_balance(m, row->uid),
                       .ledger = key_ledger(m, row->uid), .queue = key_billing_queue(m, row->uid),
                       .aside = key_aside(m, row->uid), .billed_seq = str_int(m, row->billed_seq));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    *out = (struct look){now, v[0] == 1, v[1], v[2], v[3], v[4], v[5], v[6], 0, v[7]};
    if (!out->open || out->move >= row->move_no)
        return 0;
    err = sql_call(t, a->sql, &r,
                   "SELECT CAST(COALESCE(SUM(cents), 0) AS SIGNED) FROM billing_log"
                   " WHERE uid = ? AND source = 'mysql' AND number > ? AND number <= ?",
                   sql_int(row->uid), sql_int(out->move), sql_int(row->move_no));
    if (!err)
        out->moves_cents = r.cells[0].i;
    return err;
}

static int64_t due(const struct audit_row *row, const struct look *k)
{
    return row->cents - k->records_cents - k->moves_cents;
}

static bool is_older(const struct audit_row *row, const struct look *k)
{
    return row->billed_seq < k->synced || row->move_no < k->move;
}

static bool adds_up(const struct audit_row *row, const struct look *k)
{
    return row->log == row->cents && !is_older(row, k) &&
           (!k->open || (k->cents == due(row, k) && k->seq == row->billed_seq + k->records));
}

static void report_difference(struct task *t, struct audit_state *s, int64_t uid, const char *what,
                              int64_t expected, int64_t found, const char *detail)
{
    struct arena *a = task_arena(t);
    const char *want = arena_printf(a, "%s%s", expected < 0 ? "-" : "",
                                    amount_decimal(a, expected < 0 ? -expected : expected).p);
    audit_report(s, &(struct audit_finding){
                        .uid = uid,
                        .what = what,
                        .expected = expected,
                        .found = found,
                        .cents = found > expected ? found - expected : expected - found,
                        .detail = arena_printf(a, "%s: %s is expected, %s is there", detail, want,
                                               amount_decimal(a, found).p)});
}

static void report_money(struct task *t, struct audit_state *s, const struct audit_row *row,
                         const struct look *k)
{
    struct arena *a = task_arena(t);
    if (row->log != row->cents)
        report_difference(t, s, row->uid, "log", row->log, row->cents,
                          "the balance in MySQL, by billing_log");
    if (is_older(row, k)) {
        bool record = row->billed_seq < k->synced;
        const struct audit_finding f = {
            .uid = row->uid,
            .what = "older",
            .expected = record ? k->synced : k->move,
            .found = record ? row->billed_seq : row->move_no,
            .detail = "MySQL is older than Redis; user is not charged until MySQL is restored"};
        audit_report(s, &f);
        ledger_close_user(t, s->audit->ledger, row->uid);
    } else if (k->open && k->cents != due(row, k)) {
        report_difference(t, s, row->uid, "redis", due(row, k), k->cents, "the balance in Redis");
    }
    int64_t records = k->seq - row->billed_seq;
    if (k->open && !is_older(row, k) && records != k->records) {
        const struct audit_finding f = {
            .uid = row->uid,
            .what = "records",
            .expected = records,
            .found = k->records,
            .detail = arena_printf(a, "%lld records wait for MySQL where %lld were made",
                                   (long long)k->records, (long long)records)};
        audit_report(s, &f);
    }
}

static int report_aside(struct task *t, struct audit_state *s, int64_t uid)
{
    const struct str *list;
    size_t count = 0;
    int err = ledger_aside(t, s->audit->ledger, uid, &list, &count);
    for (size_t i = 0; !err && i < count; i++) {
        const struct audit_finding f = {
            .uid = uid,
            .what = "aside",
            .detail = arena_printf(task_arena(t), "a record cannot be read: %.200s", list[i].p)};
        audit_report(s, &f);
    }
    return err;
}

static bool same_row(const struct audit_row *a, const struct audit_row *b)
{
    return a->cents == b->cents && a->billed_seq == b->billed_seq && a->move_no == b->move_no;
}

/* Summing many records blocks Redis, and with it the workers that charge: then pause for longer. */
static int pause(struct task *t, const struct look *k)
{
    return backoff_wait(t, &(struct backoff){.ms = TRY_MS + k->records / RECORDS_PER_MS});
}

/* Reads until the sums agree, or until the MySQL row was the same before and after the read of
 * Redis. *row: the last one read. */
static int stand_still(struct task *t, const struct audit *a, const struct audit_known *known,
                       struct audit_row *row, struct look *k, bool *settled)
{
    int err = 0;
    for (int i = 0; i < TRIES_MAX && !err && !*settled; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct audit_row before;
        err = pause(t, k);
        if (!err)
            err = read_row(t, a, known, row->uid, row);
        if (!err)
            err = look_at(t, a, row, k);
        before = *row;
        if (!err && !adds_up(row, k))
            err = read_row(t, a, known, row->uid, row);
        *settled = !err && generation_lasts(a->redis, &k->generation) && same_row(&before, row);
        arena_reset(task_arena(t), mark);
    }
    return err;
}

/* --- what earlier rounds verified --- */

struct audit_memory {
    struct map *users; /* uid -> struct audit_known, owned */
};

struct audit_memory *audit_memory_new(void)
{
    struct audit_memory *m = check_memory(calloc(1, sizeof *m));
    m->users = map_new();
    return m;
}

void audit_memory_free(struct audit_memory *m)
{
    struct str uid;
    void *known;
    for (size_t at = 0; map_next(m->users, &at, &uid, &known);)
        free(known);
    map_free(m->users);
    free(m);
}

static struct audit_known recall(struct task *t, const struct audit *a, int64_t uid)
{
    const struct audit_known *known =
        a->memory ? map_get(a->memory->users, str_int(task_arena(t), uid)) : NULL;
    return known ? *known : (struct audit_known){0};
}

static void remember(struct task *t, const struct audit *a, int64_t uid,
                     const struct audit_known *known)
{
    struct str key = str_int(task_arena(t), uid);
    if (!a->memory)
        return;
    struct audit_known *old = map_get(a->memory->users, key);
    if (!old && map_count(a->memory->users) >= KNOWN_MAX)
        return;
    if (!old) {
        old = check_memory(malloc(sizeof *old));
        map_set(a->memory->users, key, old);
    }
    *old = *known;
}

/* --- one user, all of it --- */

/* As long as Redis lacks records that MySQL has, ledger_repair is due: MySQL is checked alone, by a
 * deep audit. After a restore that is so for all users. */
static int check_results(struct task *t, struct audit_state *s, const struct audit_row *row,
                         const struct look *k, struct audit_known *known, bool *settled)
{
    bool lost = k->seq < row->billed_seq;
    if (lost && !s->audit->deep)
        return 0;
    int64_t findings = s->report.findings;
    bool same = str_eq(generation_str(&known->generation), generation_str(&k->generation));
    int64_t recent = row->billed_seq > RECENT ? row->billed_seq - RECENT : 0;
    int err =
        lost ? 0 : audit_results(t, s, row, same ? known->results : 0, &k->generation, settled);
    if (!err && *settled)
        err = audit_verdicts(t, s, row,
                             s->audit->deep            ? 0
                             : known->results > recent ? known->results
                                                       : recent);
    if (!err && *settled)
        err = audit_runs(t, s, row, &k->generation, k->open && !lost, settled);
    if (!err && *settled && !lost && s->report.findings == findings) {
        known->generation = k->generation;
        known->results = row->billed_seq;
    }
    return err;
}

static int check_user(struct task *t, struct audit_state *s, struct audit_row row)
{
    const struct audit *a = s->audit;
    struct audit_known known = recall(t, a, row.uid);
    struct look k = {0};
    bool settled = true;
    int err = 0;
    row.log = known.log;
    if (row.billed_seq != known.billed_seq || row.move_no != known.move_no)
        err = read_row(t, a, &known, row.uid, &row);
    if (!err)
        err = look_at(t, a, &row, &k);
    if (!err && !adds_up(&row, &k)) {
        struct audit_known first = {
            .billed_seq = row.billed_seq, .move_no = row.move_no, .log = row.log};
        settled = false;
        err = stand_still(t, a, &first, &row, &k, &settled);
        if (!err && settled && !adds_up(&row, &k))
            report_money(t, s, &row, &k);
    }
    if (!err && k.aside)
        err = report_aside(t, s, row.uid);
    if (!err && settled)
        err = check_results(t, s, &row, &k, &known, &settled);
    if (!err && settled && adds_up(&row, &k)) {
        known.billed_seq = row.billed_seq;
        known.move_no = row.move_no;
        known.log = row.log;
        remember(t, a, row.uid, &known);
    }
    s->report.users++;
    s->report.open += k.open;
    s->report.unsettled += !settled;
    return err;
}

/* --- all --- */

/* A user whose money cannot be read is a finding, and the others are checked. */
static int report_unreadable(struct task *t, struct audit_state *s, int64_t uid, int err)
{
    if (!err || err_is_outage(err))
        return err;
    audit_report(s, &(struct audit_finding){.uid = uid, .what = "store", .detail = task_error(t)});
    return 0;
}

static int check_page(struct task *t, struct audit_state *s, int64_t *uid, size_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, s->audit->sql, &r,
                       "SELECT " COLUMNS " FROM user_info u WHERE u.uid > ? ORDER BY u.uid LIMIT ?",
                       sql_int(*uid), sql_int(USERS_MAX));
    *count = err ? 0 : r.count;
    if (!err && s->turn)
        err = role_keep(t, s->turn);
    for (size_t i = 0; !err && i < r.count; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        *uid = sql_row(&r, i)[0].i;
        err = report_unreadable(t, s, *uid, check_user(t, s, row_of(sql_row(&r, i))));
        arena_reset(task_arena(t), mark);
    }
    return err;
}

static int check_all(struct task *t, struct audit_state *s)
{
    int64_t uid = 0;
    size_t count;
    int err;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = check_page(t, s, &uid, &count);
        arena_reset(task_arena(t), mark);
    } while (!err && count == USERS_MAX);
    return err;
}

int audit_run(struct task *t, const struct audit *a, struct audit_report *out)
{
    struct audit_state s = {.audit = a};
    int err = check_all(t, &s);
    *out = s.report;
    return err;
}

int audit_user(struct task *t, const struct audit *a, int64_t uid, struct audit_report *out)
{
    struct audit_state s = {.audit = a};
    struct sql_rows r;
    int err = sql_call(t, a->sql, &r, "SELECT " COLUMNS " FROM user_info u WHERE u.uid = ?",
                       sql_int(uid));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "there is no user %lld", (long long)uid);
    if (!err)
        err = check_user(t, &s, row_of(r.cells));
    *out = s.report;
    return err;
}

/* --- in the background --- */

static int64_t *gauge(const struct audit *a, const char *name, const char *help)
{
    static int64_t unseen;
    return a->metrics ? metric(a->metrics, METRIC_GAUGE, name, "", help) : &unseen;
}

static int finish_round(struct task *t, const struct audit *a, const struct audit_state *s)
{
    metric_set(a->ledger->drift, s->report.drift_cents);
    if (a->metrics)
        metric_add(metric(a->metrics, METRIC_COUNTER, "millrace_audit_users_total", "",
                          "Users whose money was checked."),
                   s->report.users);
    if (s->report.unsettled)
        log_warn("audit",
                 "cannot check %lld users: their money kept changing during the check; the next "
                 "round checks them again",
                 (long long)s->report.unsettled);
    int err = redis_call(t, a->redis, key_drift, NULL, STR("SET"), key_drift,
                         str_printf(task_arena(t), "%lld %lld", (long long)s->report.drift_cents,
                                    (long long)s->report.findings));
    if (err)
        return err;
    return redis_call(t, a->redis, key_audited, NULL, STR("SET"), key_audited,
                      str_int(task_arena(t), loop_wall_ms(task_loop(t))));
}

/* Time since any node last completed an audit. False: unknown. */
static bool read_age(struct task *t, const struct audit *a, int64_t *age_ms)
{
    const struct redis_reply *r;
    int64_t at_ms = 0;
    if (redis_call(t, a->redis, key_audited, &r, STR("GET"), key_audited) ||
        r->type != REDIS_STRING || !str_to_i64(r->str, &at_ms))
        return false;
    *age_ms = loop_wall_ms(task_loop(t)) - at_ms;
    return true;
}

int audit_role(struct task *t, void *arg, struct role_turn *turn)
{
    const struct audit *a = arg;
    struct audit_state s = {.audit = a, .turn = turn};
    int64_t age_ms = 0;
    if (read_age(t, a, &age_ms) && age_ms < (a->each_ms ? a->each_ms : EACH_MS))
        return 0;
    int err = check_all(t, &s);
    return err ? err : finish_round(t, a, &s);
}

void audit_elsewhere(void *arg)
{
    const struct audit *a = arg;
    metric_set(a->ledger->drift, 0); /* only the node that audits reports drift */
}

int audit_age_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct audit *a = arg;
    int64_t now_ms = loop_now_ms(task_loop(t)), age_ms = 0;
    (void)turn; /* runs on every node, without a lock */
    if (a->begun_ms == 0)
        a->begun_ms = now_ms;
    if (!read_age(t, a, &age_ms))
        age_ms = now_ms - a->begun_ms;
    metric_set(gauge(a, "millrace_audit_age_seconds",
                     "Since an audit of all users was last completed, by any node."),
               age_ms > 0 ? age_ms / 1000 : 0);
    return 0;
}
