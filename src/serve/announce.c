/* What a start prints when the server is ready, and the first accounts. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/money/ledger.h"
#include "engine/setup/endpoint.h"
#include "serve/first_accounts.h"
#include "serve/listener.h"
#include "serve/provision.h"
#include "serve/supervisor_private.h"

#define ACCOUNTS_MS 10000 /* for MariaDB, and for two passwords to be hashed */
#define RULE        "  ----------------------------------------------------------------------\n"

/* --- the parts --- */

/* 3000 as "3,000". */
static const char *grouped(struct arena *a, int64_t n)
{
    return n < 1000 ? arena_printf(a, "%lld", (long long)n)
                    : arena_printf(a, "%s,%03lld", grouped(a, n / 1000), (long long)(n % 1000));
}

/* The path of the program, relative to the working directory: "build/millrace". */
static const char *program(struct task *t, const struct supervisor *s)
{
    char here[PATH_MAX];
    size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;
    bool below = n > 1 && strncmp(s->shared.binary, here, n) == 0 && s->shared.binary[n] == '/';
    const char *path = s->shared.binary + (below ? n + 1 : 0);
    return below && !strchr(path, '/') ? arena_printf(task_arena(t), "./%s", path) : path;
}

/* NULL: it is called directly. */
static const char *ai_proxy(struct supervisor *s)
{
    const char *ignored;
    return endpoint_proxy(&s->arena, s->config.ai_proxy, s->config.ai_url, &ignored);
}

static void print_ai(struct supervisor *s, const char *pages)
{
    if (!s->simulated) {
        const char *proxy = ai_proxy(s);
        printf("  AI      %s%s%s\n", config_mask_url(&s->arena, s->config.ai_url),
               proxy ? ", through the proxy " : "", proxy ? proxy : "");
        return;
    }
    const char *file = s->options->config_file ? s->options->config_file : CONFIG_FILE_DEFAULT;
    printf(
        "  AI      simulated: its answers are made up. To ask a real one, write into %s\n"
        "            {\"ai\": {\"url\": \"https://HOST/v1\", \"model\": \"NAME\"}}\n"
        "          or set MILLRACE_AI_URL and MILLRACE_AI_MODEL, start again, and add its key at\n"
        "            %s/admin/control.html#keys\n",
        file, pages);
}

static void print_parts(struct supervisor *s, const char *url)
{
    struct arena *a = &s->arena;
    const struct config *c = &s->config;
    const char *mysql = *c->mysql_url ? config_mask_url(a, c->mysql_url) : "a private MariaDB";
    const char *redis = *c->redis_url ? config_mask_url(a, c->redis_url) : "a private Redis";
    if (c->log_format == LOG_JSON) {
        const char *proxy = s->simulated ? NULL : ai_proxy(s);
        log_info("serve",
                 "millrace is ready at %s; nodes: %d; MySQL: %s; Redis: %s; data: %s; made-up "
                 "papers: %lld; AI: %s%s%s",
                 url, s->nodes, mysql, redis, s->dir.path, (long long)s->sample_papers,
                 s->simulated ? "simulated, its answers are made up"
                              : config_mask_url(a, c->ai_url),
                 proxy ? ", through the proxy " : "", proxy ? proxy : "");
        return;
    }
    printf("\nmillrace is ready at %s\n\n", url);
    printf("  nodes   %d\n", s->nodes);
    printf("  MySQL   %s\n", mysql);
    printf("  Redis   %s\n", redis);
    if (!*c->mysql_url || !*c->redis_url)
        printf("  data    %s\n", s->dir.path);
    if (s->sample_papers)
        printf("  papers  %s made-up papers to try it with; load your own with \"millrace db "
               "init\"\n",
               grouped(a, s->sample_papers));
    print_ai(s, listener_pages(url));
    printf("  stop    Ctrl-C\n\n");
    fflush(stdout);
}

/* --- the first accounts --- */

/* Whether output is kept, by the journal or as JSON by another program. All readers of the logs
 * could read passwords there. */
static bool is_collected(const struct config *c)
{
    const char *journal = getenv("JOURNAL_STREAM");
    struct stat st;
    char output[64];
    if (c->log_format == LOG_JSON)
        return true;
    if (!journal || fstat(STDOUT_FILENO, &st) < 0)
        return false;
    snprintf(output, sizeof output, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(output, journal) == 0;
}

static bool print_account(const char *who, const char *url, const char *page, const char *name,
                          const struct first_account *a)
{
    return !*a->password || dprintf(STDOUT_FILENO,
                                    "  %-10s  %s%s\n"
                                    "              name      %s\n"
                                    "              password  %s\n",
                                    who, url, page, name, a->password) > 0;
}

/* Not through stdio, whose buffer would keep the passwords in memory. */
static bool show(struct task *t, struct supervisor *s, const char *url,
                 const struct first_accounts *f)
{
    const char *binary = program(t, s), *pages = listener_pages(url);
    return dprintf(STDOUT_FILENO, RULE) > 0 &&
           print_account("researcher", pages, "/", FIRST_USER, &f->user) &&
           print_account("admin", pages, "/admin/login.html", FIRST_ADMIN, &f->admin) &&
           dprintf(STDOUT_FILENO,
                   "\n  Shown this once, and kept nowhere. For a new password:\n"
                   "    %s user password " FIRST_USER "\n"
                   "    %s admin password " FIRST_ADMIN "\n" RULE "\n",
                   binary, binary) > 0;
}

/* As long as an account has the password of the first start. */
static void print_reminder(struct task *t, const struct supervisor *s,
                           const struct first_accounts *f)
{
    if (!f->user.ours && !f->admin.ours)
        return;
    const char *binary = program(t, s);
    const char *names = !f->admin.ours  ? "\"" FIRST_USER "\""
                        : !f->user.ours ? "\"" FIRST_ADMIN "\""
                                        : "\"" FIRST_USER "\" and \"" FIRST_ADMIN "\"";
    if (s->config.log_format == LOG_JSON) {
        log_info("serve",
                 "the first start showed the passwords of %s; for a new one: %s user password "
                 "NAME, %s admin password NAME",
                 names, binary, binary);
        return;
    }
    printf("  The first start showed the passwords of %s. For a new one:\n", names);
    if (f->user.ours)
        printf("    %s user password " FIRST_USER "\n", binary);
    if (f->admin.ours)
        printf("    %s admin password " FIRST_ADMIN "\n", binary);
    printf("\n");
}

/* Where passwords cannot be shown, no accounts are made. */
static int make_accounts(struct task *t, struct supervisor *s, struct sql_pool *sql,
                         struct first_accounts *f)
{
    int err = first_accounts_look(t, sql, f);
    return err || !f->wanted || is_collected(&s->config) ? err : first_accounts_make(t, sql, f);
}

static int print_accounts(struct task *t, struct supervisor *s, struct sql_pool *sql,
                          const char *url, const struct first_accounts *f)
{
    if (!f->wanted)
        print_reminder(t, s, f);
    else if (is_collected(&s->config))
        log_warn("serve",
                 "no admin can log in yet, because passwords are not shown where logs are kept; "
                 "to add one: %s admin add NAME --super",
                 program(t, s));
    else if (show(t, s, url, f))
        return first_accounts_shown(t, sql);
    else
        return task_fail(t, ERR_IO, "the passwords could not be shown");
    fflush(stdout);
    return 0;
}

/* Accounts are made before anything is printed, so that the banner stays in one piece. */
static void introduce(struct task *t, struct supervisor *s, struct sql_pool *sql, const char *url)
{
    struct first_accounts f;
    int64_t old = task_deadline(t, ACCOUNTS_MS);
    int err = make_accounts(t, s, sql, &f);
    print_parts(s, url);
    if (!err)
        err = print_accounts(t, s, sql, url, &f);
    explicit_bzero(&f, sizeof f);
    task_deadline_restore(t, old);
    if (err)
        log_warn("serve", "cannot make the first accounts: %s; the next start tries again",
                 *task_error(t) ? task_error(t) : err_name(err));
}

void supervisor_announce_lacking(struct supervisor *s, const char *lacks)
{
    const char *url = listener_url(&s->arena, s->listen_fd);
    supervisor_tell(s, s->phase, "serves at %s, but is not ready: %s", url, lacks);
    if (s->config.log_format == LOG_JSON)
        log_warn("serve", "millrace serves at %s, but is not ready: %s", url, lacks);
    else
        printf("\nmillrace serves at %s, but is not ready: %s\n\n", url, lacks);
    fflush(stdout);
}

void supervisor_announce(struct task *t, struct supervisor *s)
{
    if (s->reloaded) {
        log_info("serve", "reloaded: %d new node%s", s->nodes, s->nodes == 1 ? "" : "s");
        return;
    }
    struct task_scope scope = task_scope(t);
    const struct config *c = &s->config;
    const char *url = listener_url(&s->arena, s->listen_fd), *why = NULL;
    bool ours = c->demo_accounts && !*c->mysql_url && !*c->redis_url;
    struct sql_pool *sql = ours ? provision_sql(t, c, &why) : NULL;
    if (sql) {
        introduce(t, s, sql, url);
        sql_pool_free(sql);
    } else {
        print_parts(s, url);
        if (why)
            log_warn("serve", "cannot make the first accounts: %s; the next start tries again",
                     why);
    }
    task_scope_end(t, scope);
}
