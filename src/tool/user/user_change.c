/* millrace user recharge, deduct, ban, unban, password: what changes a user who is there already. */
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "engine/money/ledger.h"
#include "engine/people/password.h"
#include "engine/people/session.h"
#include "engine/people/user.h"
#include "engine/runs/admin_acts.h"
#include "engine/store/amount.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/password_line.h"
#include "tool/user/user.h"
#include "tool/with_cache.h"

#define STATEMENT_MS 30000

static const char money_about[] =
    "Moves money, at most once for a request id: after an error, send the same id again and it is "
    "done\n"
    "if it was not, and nothing more if it was. Without --request an id is made up and shown.";
static const char ban_about[] = "Takes effect on every node at once. A ban ends all sessions and "
                                "pauses all runs; its end lets the "
                                "user\nin again, who may resume them. It is in the audit log.";
static const char password_about[] =
    "Ends all their sessions, too. The password is asked for, or read from the first line of "
    "standard\n"
    "input.";

struct change {
    struct runs runs;
    struct user user;
};

struct options {
    const char *config, *request, *name;
    char *password; /* PASSWORD_LINE_BYTES to read one into; NULL: none is needed */
    int64_t cents;
    int (*apply)(struct task *t, struct change *c, const struct options *o);
};

/* --- what is done --- */

static int show_balance(struct task *t, const struct change *c, int64_t cents)
{
    printf("%.*s has %s\n", STR_ARG(c->user.username), amount_decimal(task_arena(t), cents).p);
    return 0;
}

static int move(struct task *t, struct change *c, const struct options *o, bool takes)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = takes ? "user.deduct" : "user.recharge"};
    struct admin_move m = {
        .uid = c->user.uid, .cents = o->cents, .request_id = str_of(o->request), .takes = takes};
    int64_t balance;
    int err = admin_move_money(t, &c->runs, &m, &by, &balance);
    return err ? err : show_balance(t, c, balance);
}

static int recharge(struct task *t, struct change *c, const struct options *o)
{
    return move(t, c, o, false);
}

static int deduct(struct task *t, struct change *c, const struct options *o)
{
    int err = move(t, c, o, true);
    return err == ERR_FUNDS ? task_fail(t, err, "the user has less than that; nothing was changed")
                            : err;
}

static int ban(struct task *t, struct change *c, const struct options *o)
{
    (void)o;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.ban"};
    return admin_ban(t, &c->runs, c->user.uid, true, &by);
}

static int unban(struct task *t, struct change *c, const struct options *o)
{
    (void)o;
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.ban"};
    return admin_ban(t, &c->runs, c->user.uid, false, &by);
}

static int set_password(struct task *t, struct change *c, const struct options *o)
{
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.password"};
    struct user_change ch = {.uid = c->user.uid, .part = USER_PASSWORD, .by = &by};
    struct passwords *p = passwords_new();
    int err = password_hash(t, p, str_of(o->password), &ch.hash);
    passwords_free(p);
    if (!err)
        err = user_change(t, c->runs.cache, &ch);
    return err ? err : session_end_all(t, c->runs.cache, SESSION_USER, ch.uid, STR_NULL);
}

/* --- around it --- */

static int run_with(struct task *t, struct db *d, struct cache *cache)
{
    struct options *o = d->arg;
    struct ledger *ledger =
        ledger_new(&(struct ledger_options){.redis = d->redis, .sql = d->sql, .cache = cache});
    struct change c = {
        .runs = {.redis = d->redis, .sql = d->sql, .cache = cache, .ledger = ledger}};
    int err = user_find(t, d->sql, str_of(o->name), &c.user);
    if (err == ERR_NOT_FOUND)
        (void)task_fail(t, err, "there is no user \"%s\"", o->name);
    if (!err)
        err = o->apply(t, &c, o);
    int status = err ? db_complain(t, d, err) : fflush(stdout) == 0 ? 0 : 1;
    ledger_free(ledger);
    return status;
}

static int run(struct task *t, struct db *d)
{
    return with_cache(t, d, run_with);
}

static const char *made_up_request(char out[33])
{
    uint8_t bytes[16];
    struct loop *l = loop_new(NULL); /* for its random numbers */
    loop_secret(l, bytes, sizeof bytes);
    loop_free(l);
    hex_write(bytes, sizeof bytes, out);
    fprintf(stderr, "request %s\n", out);
    return out;
}

static int money_main(struct options o, const char *name, int argc, char **argv)
{
    char request[33];
    const struct opt opts[] = {
        {"request", "ID", "what the movement is known by", .text = &o.request},
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {name, "NAME AMOUNT", money_about, opts, sizeof opts / sizeof *opts};
    struct operands words;
    int status = opt_parse(&c, argc, argv, &words);
    if (status >= 0)
        return status;
    if (words.n != 2)
        return user_mistake("a name and an amount are expected");
    o.name = words.v[0];
    if (!amount_cents(str_of(words.v[1]), &o.cents) || o.cents == 0)
        return user_mistake("the amount must be like 100.00");
    if (!o.request)
        o.request = made_up_request(request);
    else if (!*o.request || str_of(o.request).n > LEDGER_REQUEST_BYTES_MAX)
        return user_mistake("a request id has 1 to 64 bytes");
    return db_run_redis(o.config, STATEMENT_MS, run, &o);
}

int user_recharge_main(int argc, char **argv)
{
    return money_main((struct options){.apply = recharge}, "user recharge", argc, argv);
}

int user_deduct_main(int argc, char **argv)
{
    return money_main((struct options){.apply = deduct}, "user deduct", argc, argv);
}

static int plain_main(struct options o, const char *name, const char *about, int argc, char **argv)
{
    const struct opt opts[] = {
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {name, "NAME", about, opts, sizeof opts / sizeof *opts};
    struct operands words;
    int status = opt_parse(&c, argc, argv, &words);
    if (status >= 0)
        return status;
    if (words.n != 1)
        return user_mistake("one name is expected");
    o.name = words.v[0];
    const char *why = o.password ? password_line_read(o.password) : NULL;
    return why ? user_complain(why) : db_run_redis(o.config, STATEMENT_MS, run, &o);
}

int user_ban_main(int argc, char **argv)
{
    return plain_main((struct options){.apply = ban}, "user ban", ban_about, argc, argv);
}

int user_unban_main(int argc, char **argv)
{
    return plain_main((struct options){.apply = unban}, "user unban", ban_about, argc, argv);
}

int user_password_main(int argc, char **argv)
{
    char password[PASSWORD_LINE_BYTES];
    struct options o = {.apply = set_password, .password = password};
    int status = plain_main(o, "user password", password_about, argc, argv);
    explicit_bzero(password, sizeof password);
    return status;
}
