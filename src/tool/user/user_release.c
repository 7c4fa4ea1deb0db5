/* millrace user release: an account that needed the operator works again. */
#include "engine/runs/account.h"

#include <stdio.h>

#include "engine/money/ledger.h"
#include "engine/store/amount.h"
#include "tool/user/commands.h"

static const char about[] =
    "An account is stopped when MySQL and Redis contradict each other about its money: its runs\n"
    "are paused, and it is not charged. This audits the account. If every cent is where it\n"
    "belongs, its balance is loaded again and its runs go on. If not, nothing is changed: it\n"
    "says what is off and what to do about it, and exits with status 1.\n"
    "\n"
    "A record of a charge that cannot be read is put aside: what it took is not known any more.\n"
    "--write-off gives it up, and the money is the user's again. The record is in the audit log.\n"
    "\n"
    "  millrace user list --state stopped\n"
    "  millrace user release asher";

static const struct {
    const char *what, *help;
} cures[] = {
    {"older", "restore MySQL to its newest state; if that is lost, start with an empty Redis, as "
              "after a restored backup (docs/operating.md)"},
    {"log", "rows of billing_log or the balance in user_info were changed by hand or lost: put "
            "them back from a backup"},
    {"redis", "the balance in Redis was changed by hand: delete the key user:<number>:balance, "
              "and it is computed again from MySQL"},
    {"records", "records are missing in billing_queue:<number> of Redis: restore the append-only "
                "file of Redis that has them"},
    {"aside",
     "if the user shall not pay for what it stands for: millrace user release --write-off"},
    {"store", "a key of Redis or a table of MySQL is not what it must be: restore it"},
    {"result", "a result that was paid for is missing: restore MySQL and Redis to their newest "
               "state"},
    {"estimate", "rows of query_log were changed by hand, or a run has cost too much: look at its "
                 "charges in billing_log, and recharge what was too much"},
    {"reserved", "the cost of a run was changed by hand: terminate the run, and what it reserves "
                 "is free"},
    {"verdicts", "rows of search_result or billing_log were changed by hand or lost: put them back "
                 "from a backup"},
    {"counts", "the row of a run in query_log was changed by hand: set it to what is expected"},
};

static const char *cure_of(const char *what)
{
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++)
        if (strcmp(cures[i].what, what) == 0)
            return cures[i].help;
    return "run millrace audit";
}

static void show(void *arg, const struct audit_finding *f)
{
    (void)arg;
    fprintf(stderr, "user %lld: %s: %s\n  to do: %s\n", (long long)f->uid, f->what, f->detail,
            cure_of(f->what));
}

static void tell(struct task *t, const struct user *u, const struct account_release *x)
{
    if (x->written_off)
        printf("%lld record%s written off\n", (long long)x->written_off,
               x->written_off == 1 ? " is" : "s are");
    printf("%.*s %s, and has %s: every cent is where it belongs\n", STR_ARG(u->username),
           x->was_stopped || x->runs_resumed ? "is released" : "was not stopped",
           amount_decimal(task_arena(t), x->cents).p);
    if (x->runs_resumed)
        printf("%lld paused run%s on\n", (long long)x->runs_resumed,
               x->runs_resumed == 1 ? " goes" : "s go");
    if (x->runs_waiting)
        printf("%lld runs stay paused: the user is banned\n", (long long)x->runs_waiting);
}

static int release(struct task *t, struct account *a)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.release"};
    struct ledger_options l = {.redis = a->db->redis, .sql = a->db->sql, .cache = a->cache};
    struct runs runs = {
        .redis = l.redis, .sql = l.sql, .cache = a->cache, .ledger = ledger_new(&l)};
    struct account_release x = {.write_off = *(const bool *)a->arg, .found = show};
    struct user u;
    int err = user_named(t, a, &u);
    if (!err) {
        err = account_release(t, &runs, u.uid, &by, &x);
        if (err)
            err = task_fail(t, err, "\"%s\" is not released: %s", a->name, task_error(t));
        else
            tell(t, &u, &x);
    }
    ledger_free(runs.ledger);
    return err;
}

int user_release_main(int argc, char **argv)
{
    bool write_off = false;
    const struct opt opts[] = {
        {"write-off", NULL, "give up records that cannot be read", .flag = &write_off},
    };
    return account_main((struct command){"user release", "NAME", about, opts, 1},
                        &(struct account){.apply = release, .arg = &write_off}, argc, argv);
}
