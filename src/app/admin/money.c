/* A user's money: what comes, what is taken, what happened to it. */
#include "engine/money/ledger.h"
#include "engine/money/statement.h"

#include "app/admin/call.h"
#include "app/admin/routes.h"
#include "engine/watch/admin_acts.h"
#include "engine/store/amount.h"

/* --- moving it --- */

enum { GIVES, TAKES };

static int move(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct admin_deed d = admin_deed_of(c);
    struct admin_move m = {.request_id = api_text(c, "request_id"),
                           .takes = c->route->option == TAKES};
    int64_t balance;
    check(api_money(c, "amount", &m.cents));
    int err = admin_path_number(t, c, "uid", "user", &m.uid);
    if (!err)
        err = admin_move_money(t, c->node->runs, &m, &d, &balance);
    if (!err)
        jw_put_str(w, "balance", amount_decimal(task_arena(t), balance));
    return err;
}

/* --- what happened to it --- */

#define AT(member) API_AT(struct statement_row, member)
static const struct api_field record_fields[] = {
    {"source", API_TEXT, AT(source), .choices = "redis|mysql", .about = "which counts by itself"},
    {"number", API_INT, AT(number), .least = 1, .most = INT64_MAX, .about = "of that source"},
    {"at", API_TIME, AT(at_ms), .about = "when"},
    {"kind", API_TEXT, AT(kind), .choices = STATEMENT_KINDS,
     .about = "charges and deductions take money, the others give it"},
    {"amount", API_MONEY, AT(cents), .about = "never negative: the kind says which way"},
    {"query_id", API_TEXT, AT(qid), .optional = true, .most = 64, .about = "the run it was for"},
    {"doi", API_TEXT, AT(doi), .optional = true, .most = 255, .about = "the paper it was for"},
    {"job", API_TEXT, AT(job), .optional = true, .most = STATEMENT_JOB_CHARS,
     .about = "of a deduction: the kind of job it was for, such as plan; absent: an admin's"},
    API_END,
};

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct statement_wish wish = {.qid = STR_NULL};
    struct statement_page page;
    int err = admin_path_user(t, c, &wish.uid);
    if (err)
        return err;
    err = statement_list(t, c->node->sql, &wish, api_text(c, "cursor"), admin_limit(c), &page);
    if (err == ERR_INVALID)
        return admin_cursor_refused(t, c);
    if (err)
        return err;
    api_put_list(t, w, "records", record_fields, page.rows, page.count);
    jw_put_str(w, "next", page.next);
    return 0;
}

/* --- the table --- */

static const struct api_field move_body[] = {
    {"amount", API_MONEY, .least = 1, .about = "more than nothing"},
    {"request_id", API_TEXT, .least = 1, .most = LEDGER_REQUEST_BYTES_MAX,
     .about = "visible ASCII; sent again it has the same effect once"},
    {ADMIN_REASON_FIELD},
    API_END,
};
static const struct api_field move_reply[] = {
    {"balance", API_MONEY, .about = "afterwards"},
    API_END,
};
static const struct api_field list_query[] = {{ADMIN_LIMIT_FIELD}, {ADMIN_CURSOR_FIELD}, API_END};
static const struct api_field list_reply[] = {
    {"records", API_OBJECTS, .about = "newest first", .fields = record_fields},
    {ADMIN_NEXT_FIELD},
    API_END,
};

const struct api_route admin_money_routes[] = {
    {"POST", "/api/admin/users/:uid/recharge", API_ADMIN, move, "Give a user money to spend",
     .body = move_body, .reply = move_reply, .audit = "user.recharge", .option = GIVES},
    {"POST", "/api/admin/users/:uid/deduct", API_ADMIN, move, "Take money from a user",
     .body = move_body, .reply = move_reply, .audit = "user.deduct", .option = TAKES},
    {"GET", "/api/admin/users/:uid/ledger", API_ADMIN, list, "What happened to a user's money",
     .query = list_query, .reply = list_reply},
    {.method = NULL},
};
