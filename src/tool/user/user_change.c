/* millrace user recharge, deduct, ban, unban: what changes a user who is there already. */
#include <stdio.h>

#include "base/sha256.h"
#include "engine/ledger.h"
#include "engine/session.h"
#include "engine/user.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/user/user.h"
#include "tool/with_cache.h"

#define STATEMENT_MS 30000

static const char money_about[] =
    "Moves money, at most once for a request id: after an error, send the same id again and it is "
    "done\n"
    "if it was not, and nothing more if it was. Without --request an id is made up and shown.";
static const char ban_about[] =
    "Takes effect on every node at once. Runs and money stay as they are.";

struct change {
    struct db *db;
    struct cache *cache;
    struct ledger *ledger;
    struct user user;
};

struct options {
    const char *config, *request, *name;
    int64_t cents;
    int (*apply)(struct task *t, struct change *c, const struct options *o);
};

/* --- what is done --- */

static int show_balance(struct task *t, const struct change *c, int64_t cents)
{
    printf("%.*s has %s\n", STR_ARG(c->user.username), ledger_decimal(task_arena(t), cents).p);
    return 0;
}

static struct ledger_move move_of(const struct change *c, const struct options *o)
{
    return (struct ledger_move){
        .uid = c->user.uid, .cents = o->cents, .request_id = str_of(o->request)};
}

static int recharge(struct task *t, struct change *c, const struct options *o)
{
    int64_t balance;
    struct ledger_move m = move_of(c, o);
    int err = ledger_recharge(t, c->ledger, &m, &balance);
    return err ? err : show_balance(t, c, balance);
}

static int deduct(struct task *t, struct change *c, const struct options *o)
{
    int64_t balance;
    struct ledger_move m = move_of(c, o);
    int err = ledger_deduct(t, c->ledger, &m, &balance);
    if (err == ERR_FUNDS)
        return task_fail(t, err, "the user has less than that; nothing was changed");
    return err ? err : show_balance(t, c, balance);
}

static int ban(struct task *t, struct change *c, const struct options *o)
{
    (void)o;
    int err = user_set_banned(t, c->cache, c->user.uid, true);
    return err ? err : session_end_all(t, c->cache, SESSION_USER, c->user.uid, STR_NULL);
}

static int unban(struct task *t, struct change *c, const struct options *o)
{
    (void)o;
    return user_set_banned(t, c->cache, c->user.uid, false);
}

/* --- around it --- */

static int run_with(struct task *t, struct db *d, struct cache *cache)
{
    struct options *o = d->arg;
    struct change c = {.db = d, .cache = cache};
    c.ledger =
        ledger_new(&(struct ledger_options){.redis = d->redis, .sql = d->sql, .cache = c.cache});
    int err = user_find(t, d->sql, str_of(o->name), &c.user);
    if (err == ERR_NOT_FOUND)
        (void)task_fail(t, err, "there is no user \"%s\"", o->name);
    if (!err)
        err = o->apply(t, &c, o);
    int status = err ? db_complain(t, d, err) : fflush(stdout) == 0 ? 0 : 1;
    ledger_free(c.ledger);
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
    if (!ledger_cents(str_of(words.v[1]), &o.cents) || o.cents == 0)
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

static int plain_main(struct options o, const char *name, int argc, char **argv)
{
    const struct opt opts[] = {
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {name, "NAME", ban_about, opts, sizeof opts / sizeof *opts};
    struct operands words;
    int status = opt_parse(&c, argc, argv, &words);
    if (status >= 0)
        return status;
    if (words.n != 1)
        return user_mistake("one name is expected");
    o.name = words.v[0];
    return db_run_redis(o.config, STATEMENT_MS, run, &o);
}

int user_ban_main(int argc, char **argv)
{
    return plain_main((struct options){.apply = ban}, "user ban", argc, argv);
}

int user_unban_main(int argc, char **argv)
{
    return plain_main((struct options){.apply = unban}, "user unban", argc, argv);
}
