#include "tool/user/user.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "engine/ledger.h"
#include "engine/password.h"
#include "engine/user.h"
#include "tool/db/db.h"
#include "tool/opt.h"

#define STATEMENT_MS  30000
#define PASSWORD_LINE (USER_PASSWORD_BYTES_MAX + 2) /* a newline, and one byte too many */

static const char about[] = "Adds somebody who may log in. The password is asked for, or read from "
                            "the first line of standard\n"
                            "input:\n"
                            "\n"
                            "  millrace user add asher --balance 100.00 --permission 4\n"
                            "  millrace user add asher < password.txt";

struct options {
    const char *config, *balance;
    int64_t permission;
    struct user_new user;
    char password[PASSWORD_LINE + 1];
};

/* --- the password --- */

static bool read_line(char *line, size_t size)
{
    if (!fgets(line, (int)size, stdin))
        return false;
    size_t n = strcspn(line, "\r\n");
    bool whole = line[n] != '\0' || feof(stdin);
    line[n] = '\0';
    return whole || n < size - 1;
}

static bool ask(const char *prompt, char *line, size_t size)
{
    struct termios old, quiet;
    fprintf(stderr, "%s: ", prompt);
    bool terminal = tcgetattr(STDIN_FILENO, &old) == 0;
    quiet = old;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    bool fine = read_line(line, size);
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
    fprintf(stderr, "\n");
    return fine;
}

static const char *read_password(struct options *o)
{
    char again[sizeof o->password];
    if (!isatty(STDIN_FILENO))
        return read_line(o->password, sizeof o->password)
                   ? user_password_problem(str_of(o->password))
                   : "there is no password on standard input";
    if (!ask("Password", o->password, sizeof o->password))
        return "no password was given";
    const char *why = user_password_problem(str_of(o->password));
    if (why)
        return why;
    bool same = ask("Once more", again, sizeof again) && strcmp(again, o->password) == 0;
    explicit_bzero(again, sizeof again);
    return same ? NULL : "the two passwords differ";
}

/* --- the user --- */

static int add(struct task *t, struct db *d)
{
    struct options *o = d->arg;
    struct passwords *p = passwords_new();
    int64_t uid;
    if (o->permission < 0)
        o->user.permission = d->config.new_user_permission;
    int err = password_hash(t, p, str_of(o->password), &o->user.password_hash);
    if (!err)
        err = user_create(t, d->sql, &o->user, &uid);
    passwords_free(p);
    if (err == ERR_EXISTS)
        return user_complain("this user name is taken");
    if (err)
        return db_complain(t, d, err);
    printf("user %lld\n", (long long)uid);
    return fflush(stdout) == 0 ? 0 : 1;
}

int user_add_main(int argc, char **argv)
{
    struct options o = {.permission = -1, .balance = "0.00"};
    const struct opt opts[] = {
        {"balance", "AMOUNT", "what the user may spend (default 0.00)", .text = &o.balance},
        {"permission", "N", "papers judged at the same time; default: new_user.permission",
         .number = &o.permission, .most = USER_PERMISSION_MAX},
        {"config", "FILE", "settings to use; default: config.json if it exists", .text = &o.config},
    };
    struct command c = {"user add", "NAME", about, opts, sizeof opts / sizeof *opts};
    struct operands names;
    int status = opt_parse(&c, argc, argv, &names);
    if (status >= 0)
        return status;
    if (names.n != 1)
        return user_mistake(names.n ? "more than one name" : "the name is missing");
    o.user = (struct user_new){.username = str_of(names.v[0]), .permission = o.permission};
    const char *why = user_name_problem(o.user.username);
    if (why)
        return user_mistake(why);
    if (!ledger_cents(str_of(o.balance), &o.user.opening_cents))
        return user_mistake("--balance wants an amount like 100.00");
    why = read_password(&o);
    status = why ? user_complain(why) : db_run(o.config, STATEMENT_MS, add, &o);
    explicit_bzero(o.password, sizeof o.password);
    return status;
}
