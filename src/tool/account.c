#include "tool/account.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "engine/people/password.h"
#include "loop/backoff.h"

#define STATEMENT_MS 30000

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

/* What is wrong with it; NULL: nothing. */
static const char *read_password(char line[ACCOUNT_LINE_BYTES])
{
    char again[ACCOUNT_LINE_BYTES];
    if (!isatty(STDIN_FILENO))
        return read_line(line, ACCOUNT_LINE_BYTES) ? user_password_problem(str_of(line))
                                                   : "there is no password on standard input";
    if (!ask("Password", line, ACCOUNT_LINE_BYTES))
        return "no password was given";
    const char *why = user_password_problem(str_of(line));
    if (why)
        return why;
    bool same = ask("Once more", again, sizeof again) && strcmp(again, line) == 0;
    explicit_bzero(again, sizeof again);
    return same ? NULL : "the two passwords differ";
}

static int hash_password(struct task *t, struct account *a)
{
    struct passwords *p = passwords_new();
    int err = password_hash(t, p, str_of(a->line), &a->hash);
    passwords_free(p);
    return err;
}

/* --- the stores --- */

/* Until the cache has checked that Redis may be written. If it cannot, a running server writes the
 * change to Redis later. */
static void settle(struct task *t, struct cache *c)
{
    int err = 0;
    for (int i = 0;
         i < 100 && err != ERR_CANCELED && cache_role(t, c, NULL) >= 0 && !cache_trusts_redis(c);
         i++)
        err = backoff_wait(t, &(struct backoff){.ms = 10});
}

static int apply_with_cache(struct task *t, struct account *a)
{
    a->cache = cache_new(&(struct cache_options){.redis = a->db->redis, .sql = a->db->sql});
    settle(t, a->cache);
    int err = a->apply(t, a);
    cache_free(a->cache);
    return err;
}

static int run(struct task *t, struct db *d)
{
    struct account *a = d->arg;
    a->db = d;
    int err = a->sets_password ? hash_password(t, a) : 0;
    if (!err)
        err = d->redis ? apply_with_cache(t, a) : a->apply(t, a);
    return err ? db_complain(t, d, err) : fflush(stdout) == 0 ? 0 : 1;
}

const char *account_name_problem(struct account *a, char **operands)
{
    (void)operands;
    return user_name_problem(str_of(a->name));
}

int account_main(struct command c, struct account *a, int argc, char **argv)
{
    struct opt opts[ACCOUNT_OPTS_MAX + 1];
    check(c.opt_count <= ACCOUNT_OPTS_MAX);
    for (size_t i = 0; i < c.opt_count; i++)
        opts[i] = c.opts[i];
    opts[c.opt_count++] = (struct opt)OPT_CONFIG(&a->config);
    c.opts = opts;
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;
    a->name = argv[1];
    const char *why = a->problem ? a->problem(a, argv + 1) : NULL;
    if (why)
        return opt_error(&c, OPT_WRONG, "%s", why);
    why = a->sets_password ? read_password(a->line) : NULL;
    status = why ? opt_error(&c, OPT_FAILED, "%s", why)
                 : db_run(a->config, a->mysql_only ? DB_MYSQL : DB_BOTH, STATEMENT_MS, run, a);
    explicit_bzero(a->line, sizeof a->line);
    return status;
}
