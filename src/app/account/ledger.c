#include "app/account/ledger.h"

#include <stdio.h>

#include "base/time.h"
#include "corpus/csv.h"
#include "engine/money/ledger.h"
#include "engine/money/statement.h"
#include "engine/store/amount.h"

#define LIMIT_DEFAULT 50

#define AT(member) API_AT(struct statement_row, member)
static const struct api_field entry_fields[] = {
    {"at", API_TIME, AT(at_ms), .about = "when it happened"},
    {"kind", API_TEXT, AT(kind), .choices = STATEMENT_KINDS,
     .about = "charges and deductions took money, the others gave some"},
    {"amount", API_MONEY, AT(cents), .about = "how much"},
    {"query_id", API_TEXT, AT(qid), .optional = true, .most = 64, .about = "the run it was for"},
    {"doi", API_TEXT, AT(doi), .optional = true, .most = 255, .about = "the paper it was for"},
    {"job", API_TEXT, AT(job), .optional = true, .most = STATEMENT_JOB_CHARS,
     .about = "of a deduction: the kind of job it was for, such as plan; absent: an admin's"},
    API_END,
};

int account_ledger(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct statement_wish wish = {.uid = c->session.uid, .qid = api_text(c, "query_id")};
    struct statement_page page;
    int64_t limit = LIMIT_DEFAULT;
    bool charges = true;
    api_int(c, "limit", &limit);
    api_bool(c, "charges", &charges);
    if (wish.qid.p && !charges)
        return api_refuse(t, c, "charges", "a run has hardly anything else: ask for all of it");
    wish.without_charges = !charges;
    int err = statement_list(t, c->node->sql, &wish, api_text(c, "cursor"), limit, &page);
    if (err == ERR_INVALID)
        return api_refuse(t, c, "cursor", "%s", task_error(t));
    if (err)
        return err;
    api_put_list(t, w, "entries", entry_fields, page.rows, page.count);
    jw_put_str(w, "next", page.next);
    return 0;
}

/* --- as a table --- */

/* Money in and money out have columns of their own: a cell that begins with a minus might be a
 * formula. */
static void add_row(struct task *t, struct buf *out, const struct statement_row *r)
{
    struct csv_writer w = {out, 0};
    char at[TIME_ISO_BYTES];
    bool takes = statement_takes(r);
    struct str amount = amount_decimal(task_arena(t), r->cents);
    time_iso(r->at_ms * 1000, at);
    csv_add(&w, str_of(at));
    csv_add(&w, r->kind);
    csv_add(&w, takes ? STR("") : amount);
    csv_add(&w, takes ? amount : STR(""));
    csv_add(&w, r->qid);
    csv_add(&w, r->doi);
    csv_add(&w, r->job);
    csv_end_row(&w);
}

/* The first page is read before anything is sent, so that a store that is away is still told as an
 * error. */
static int send_pages(struct task *t, struct api_call *c, struct buf *b)
{
    struct statement_wish wish = {.uid = c->session.uid};
    char cursor[64] = "";
    int err = 0;
    buf_add_lit(b, "\xef\xbb\xbftime,kind,in,out,query_id,doi,job\r\n");
    for (bool more = true; more && !err;) {
        struct task_scope scope = task_scope(t);
        struct statement_page page;
        err = statement_list(t, c->node->sql, &wish, *cursor ? str_of(cursor) : STR_NULL,
                             STATEMENT_LIMIT_MAX, &page);
        for (size_t i = 0; !err && i < page.count; i++)
            add_row(t, b, &page.rows[i]);
        more = !err && page.next.p;
        if (more)
            snprintf(cursor, sizeof cursor, "%.*s", STR_ARG(page.next));
        task_scope_end(t, scope);
        if (!err && !c->replied) {
            c->replied = true;
            err = http_stream_begin(t, c->x, 200, "text/csv; charset=utf-8");
        }
        if (!err)
            err = http_stream_write(t, c->x, buf_str(b));
        buf_clear(b);
    }
    return err;
}

int account_ledger_csv(struct task *t, struct api_call *c, struct json_writer *unused)
{
    (void)unused;
    struct buf b;
    buf_init(&b);
    http_set_header(c->x, "Content-Disposition",
                    STR("attachment; filename=\"millrace-ledger.csv\""));
    int err = send_pages(t, c, &b);
    buf_release(&b);
    return err ? err : http_stream_end(t, c->x);
}

/* --- the tables --- */

const struct api_field account_ledger_query[] = {
    {"query_id", API_TEXT, .optional = true, .least = 1, .most = 64,
     .about = "only what a run has cost"},
    {"charges", API_BOOL, .optional = true, .about = "0: without those for single papers"},
    {"limit", API_INT, .optional = true, .least = 1, .most = STATEMENT_LIMIT_MAX,
     .about = "entries on a page; 50 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 64,
     .about = "next of the page before, asked for with the same parameters"},
    API_END,
};
const struct api_field account_ledger_reply[] = {
    {"entries", API_OBJECTS, .fields = entry_fields,
     .about = "newest first; charges appear some seconds after they were made"},
    {"next", API_TEXT, .optional = true, .most = 64,
     .about = "cursor of the next page; null: none"},
    API_END,
};
