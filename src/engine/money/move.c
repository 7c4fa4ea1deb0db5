/* Money that is moved in MySQL first, and then applied to Redis through ledger_outbox. */
#include "base/log.h"
#include "engine/money/ledger_private.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define MAKE_TRIES  3  /* of a transaction whose commit is uncertain */
#define CARRIES_MAX 50 /* rounds; each makes progress or races with a loader */

bool ledger_request_id_fine(struct str id)
{
    bool fine = id.n > 0 && id.n <= LEDGER_REQUEST_BYTES_MAX;
    for (size_t i = 0; fine && i < id.n; i++)
        fine = id.p[i] > ' ' && id.p[i] <= '~';
    return fine;
}

const char *ledger_move_problem(const struct ledger_move *m)
{
    if (m->cents <= 0 || m->cents > AMOUNT_CENTS_MAX)
        return "the amount must be from 0.01 to 999999999.99";
    return ledger_request_id_fine(m->request_id)
               ? NULL
               : "the request_id must be 1 to 64 visible ASCII characters";
}

/* --- requests --- */

void ledger_request_read(const struct sql_value *cells, const struct ledger_move *m,
                         const char *kind, struct ledger_request *out)
{
    bool same = str_eq(cells[0].s, str_of(kind)) && cells[1].i == m->cents;
    *out = (struct ledger_request){
        .found = true, .done = cells[2].type != SQL_NULL, .verdict = same ? 0 : ERR_CONFLICT};
}

int ledger_request_find(struct task *t, struct sql *c, const struct ledger_move *m,
                        const char *kind, struct ledger_request *out)
{
    struct sql_rows r;
    *out = (struct ledger_request){0};
    int err = sql_on(t, c, &r,
                     "SELECT kind, cents, number FROM ledger_request"
                     " WHERE uid = ? AND request_id = ?",
                     sql_int(m->uid), sql_text(m->request_id));
    if (!err && r.count)
        ledger_request_read(r.cells, m, kind, out);
    return err;
}

int ledger_request_conflict(struct task *t, const struct ledger_move *m)
{
    return task_fail(t, ERR_CONFLICT, "request_id %.*s was used for something else",
                     STR_ARG(m->request_id));
}

/* --- in MySQL --- */

struct recharge {
    const struct ledger_move *m;
    struct ledger_row row;
    struct ledger_request request;
};

int ledger_move_made(struct task *t, struct sql *c, int64_t uid, const struct ledger_row *row)
{
    int err = sql_on(t, c, NULL, "UPDATE user_info SET balance = ?, move_no = ? WHERE uid = ?",
                     sql_text(amount_decimal(task_arena(t), row->cents)), sql_int(row->move_no),
                     sql_int(uid));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO ledger_outbox (uid, move_no) VALUES (?, ?)"
                     " ON DUPLICATE KEY UPDATE move_no = VALUES(move_no)",
                     sql_int(uid), sql_int(row->move_no));
    return err;
}

static int write_recharge(struct task *t, struct sql *c, const struct recharge *x)
{
    const struct ledger_move *m = x->m;
    struct sql_value uid = sql_int(m->uid), number = sql_int(x->row.move_no);
    int err = sql_on(t, c, NULL,
                     "INSERT INTO ledger_request (uid, request_id, kind, cents, number)"
                     " VALUES (?, ?, 'recharge', ?, ?)",
                     uid, sql_text(m->request_id), sql_int(m->cents), number);
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                     " VALUES (?, 'mysql', ?, 'recharge', ?, UTC_TIMESTAMP(3))",
                     uid, number, sql_int(m->cents));
    if (!err)
        err = ledger_move_made(t, c, m->uid, &x->row);
    if (!err && m->also)
        err = m->also(t, c, m->also_arg);
    return err;
}

static int recharge_body(struct task *t, struct sql *c, void *arg)
{
    struct recharge *x = arg;
    int err = ledger_row_lock(t, c, x->m->uid, &x->row);
    if (!err)
        err = ledger_request_find(t, c, x->m, "recharge", &x->request);
    if (err || x->request.found)
        return err;
    if (x->m->cents > LEDGER_BALANCE_MAX - x->row.cents)
        return task_fail(t, ERR_LIMIT, "the balance would be more than 999999999999.99");
    x->row.cents += x->m->cents;
    x->row.move_no++;
    return write_recharge(t, c, x);
}

int ledger_recharge_make(struct task *t, struct ledger *l, const struct ledger_move *m,
                         struct ledger_row *row)
{
    int err = ERR_UNCERTAIN;
    bool maybe = false;
    for (int i = 0; i < MAKE_TRIES && err == ERR_UNCERTAIN; i++) {
        struct recharge x = {.m = m};
        err = ledger_tx(t, l, recharge_body, &x);
        if (!err && x.request.verdict)
            return ledger_request_conflict(t, m);
        if (!err)
            *row = x.row;
        maybe = maybe || err == ERR_UNCERTAIN; /* the next try finds the request_id */
    }
    if (err && maybe)
        err = task_fail(t, ERR_UNCERTAIN,
                        "the money may have been added; send the same request_id again");
    return err;
}

/* --- to Redis --- */

/* The last move applied in Redis; *known stays false: none. */
static int last_applied(struct task *t, struct ledger *l, int64_t uid, bool *known, int64_t *move)
{
    struct str key = key_ledger(task_arena(t), uid);
    const struct redis_reply *r;
    int err = redis_call(t, l->redis, key, &r, STR("HGET"), key, STR("move"));
    if (!err)
        *known = r->type == REDIS_STRING && str_to_i64(r->str, move);
    return err;
}

static bool adds(struct str kind)
{
    return str_eq(kind, STR("recharge")) || str_eq(kind, STR("reversal")) ||
           str_eq(kind, STR("opening"));
}

/* Moves after `after`, as words of the script: two for each. */
static int read_moves(struct task *t, struct ledger *l, int64_t uid, int64_t after, bool gapless,
                      struct script_list *out)
{
    struct sql_rows r;
    int err = sql_call(t, l->sql, &r,
                       "SELECT number, kind, cents FROM billing_log WHERE uid = ?"
                       " AND source = 'mysql' AND number > ? ORDER BY number LIMIT ?",
                       sql_int(uid), sql_int(after), sql_int(LEDGER_MOVES));
    if (err)
        return err;
    if (r.count == 0 || (gapless && r.cells[0].i != after + 1))
        return ledger_alarm(
            t, l,
            "billing_log has no move %lld of user %lld; later moves are not applied to "
            "Redis until the row is restored",
            (long long)after + 1, (long long)uid);
    struct str *words = ARENA_ARRAY(task_arena(t), struct str, 2 * r.count);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *cell = sql_row(&r, i);
        if (!adds(cell[1].s))
            return ledger_alarm(
                t, l,
                "move %lld of user %lld takes money, which only records may; it and later "
                "moves are not applied to Redis: check its kind in billing_log",
                (long long)cell[0].i, (long long)uid);
        words[2 * i] = str_int(task_arena(t), cell[0].i);
        words[2 * i + 1] = str_int(task_arena(t), cell[2].i);
    }
    *out = (struct script_list){words, 2 * r.count};
    return 0;
}

/* Without a move in Redis only the last one is sent: Redis has no balance either, or one that was
 * loaded just now; then the script finds a gap, and the next round starts from the loaded move. */
static int carry_once(struct task *t, struct ledger *l, int64_t uid, int64_t move_no, int64_t *move)
{
    bool known = false;
    int64_t after = 0, out[4];
    int err = last_applied(t, l, uid, &known, &after);
    if (err)
        return err;
    if (known && after >= move_no) {
        *move = after;
        return 0;
    }
    if (!known)
        after = move_no - 1;
    struct script_list moves;
    err = read_moves(t, l, uid, after, known, &moves);
    if (!err)
        err = SCRIPT_NUMBERS(t, l->redis, ledger_apply, 4, out,
                             .balance = key_balance(task_arena(t), uid),
                             .ledger = key_ledger(task_arena(t), uid), .moves = moves);
    if (err)
        return err;
    metric_add(l->applied, out[3]);
    *move = out[2];
    return 0;
}

int ledger_carry_over(struct task *t, struct ledger *l, int64_t uid, int64_t move_no)
{
    int64_t move = 0;
    for (int i = 0; i < CARRIES_MAX; i++) {
        struct arena_mark mark = arena_mark(task_arena(t));
        int err = carry_once(t, l, uid, move_no, &move);
        arena_reset(task_arena(t), mark);
        if (err)
            return err;
        if (move >= move_no) /* a later one stays in the outbox */
            return sql_call(t, l->sql, NULL,
                            "DELETE FROM ledger_outbox WHERE uid = ? AND move_no <= ?",
                            sql_int(uid), sql_int(move));
    }
    return task_fail(t, ERR_BUSY, "moves of user %lld come faster than they can be carried over",
                     (long long)uid);
}

int ledger_recharge(struct task *t, struct ledger *l, const struct ledger_move *m, int64_t *balance)
{
    const char *problem = ledger_move_problem(m);
    if (problem)
        return task_fail(t, ERR_INVALID, "%s", problem);
    struct ledger_row row;
    int err = ledger_recharge_make(t, l, m, &row);
    if (err)
        return err;
    /* Committed. If anything fails from here on, ledger_role applies it from the outbox. */
    bool degraded;
    *balance = row.cents;
    err = ledger_carry_over(t, l, m->uid, row.move_no);
    int64_t now;
    if (!err)
        err = ledger_balance(t, l, m->uid, &now, &degraded);
    if (!err)
        *balance = now;
    else
        log_warn("ledger",
                 "move %lld of user %lld is not in Redis yet, will retry from the outbox: %s",
                 (long long)row.move_no, (long long)m->uid, task_error(t));
    return 0;
}
