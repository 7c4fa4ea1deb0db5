/* millrace audit: reconciles the money in both stores. */
#include "engine/money/audit.h"

#include <stdio.h>

#include "base/json.h"
#include "engine/store/amount.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/tool.h"

#define STATEMENT_MS (10 * 60 * 1000) /* users with millions of charges */

static const char about[] =
    "Checks the money of every user: balances in MySQL and Redis, the log of all movements,\n"
    "records that are not synced yet; that every verdict has its charge and every charge its\n"
    "verdict; that no run is above its estimate, and what is reserved adds up. Names every\n"
    "difference. Exit status 0: there is none. It may run while a server works.";

struct output {
    bool json;
    bool begun; /* an element of the array was written */
};

static void show(void *arg, const struct audit_finding *f)
{
    struct output *o = arg;
    if (!o->json) {
        printf("user %lld: %s: %s\n", (long long)f->uid, f->what, f->detail);
        return;
    }
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_int(&w, "uid", f->uid);
    jw_put_str(&w, "what", str_of(f->what));
    jw_put_int(&w, "expected", f->expected);
    jw_put_int(&w, "found", f->found);
    jw_put_int(&w, "cents", f->cents);
    jw_put_str(&w, "detail", str_of(f->detail));
    jw_end_object(&w);
    printf("%s\n  %.*s", o->begun ? "," : "", STR_ARG(buf_str(&b)));
    o->begun = true;
    buf_release(&b);
}

static void sum_up(struct task *t, const struct output *o, const struct audit_report *r)
{
    if (o->json) {
        printf(
            "%s], \"users\": %lld, \"open\": %lld, \"unsettled\": %lld, \"drift_cents\": %lld}\n",
            o->begun ? "\n" : "", (long long)r->users, (long long)r->open, (long long)r->unsettled,
            (long long)r->drift_cents);
        return;
    }
    printf("%lld users, %lld of them open in Redis: ", (long long)r->users, (long long)r->open);
    if (r->findings)
        printf("%lld findings, %s off\n", (long long)r->findings,
               amount_decimal(task_arena(t), r->drift_cents).p);
    else
        printf("no findings, every cent is where it belongs\n");
    if (r->unsettled)
        printf("%lld users changed too often to be checked; run it again\n",
               (long long)r->unsettled);
}

static int run(struct task *t, struct db *d)
{
    struct output *o = d->arg;
    struct audit_report r = {0};
    struct ledger *ledger = ledger_new(&(struct ledger_options){.redis = d->redis, .sql = d->sql});
    const struct audit a = {
        .redis = d->redis, .sql = d->sql, .ledger = ledger, .deep = true, .found = show, .arg = o};
    if (o->json)
        printf("{\"findings\": [");
    int err = audit_run(t, &a, &r);
    ledger_free(ledger);
    if (err) {
        if (o->json)
            printf("], \"error\": true}\n");
        return db_complain(t, d, err);
    }
    sum_up(t, o, &r);
    return fflush(stdout) == 0 && !r.findings && !r.unsettled ? 0 : 1;
}

int audit_main(int argc, char **argv)
{
    const char *file = NULL;
    struct output o = {0};
    const struct opt opts[] = {
        {"json", NULL, "one JSON object instead of lines", .flag = &o.json},
        OPT_CONFIG(&file),
    };
    struct command c = {"audit", NULL, about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    return status >= 0 ? status : db_run(file, DB_BOTH, STATEMENT_MS, run, &o);
}
