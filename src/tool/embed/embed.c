/* millrace embed: has papers indexed. Writes the same rows as the admins' page, in MySQL alone; the
 * nodes of a server find them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "app/embed/paper/paper.h"
#include "engine/people/admin_log.h"
#include "loop/backoff.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/progress.h"
#include "tool/tool.h"

#define STATEMENT_MS (10 * 60 * 1000)
#define LOOK_MS      500

static const char about[] =
    "Has papers indexed, so that searches find them by their words and by meaning: those of some\n"
    "journals, or all; or of journals that are indexed already, what the corpus has otherwise by\n"
    "now. The work is done by the nodes of the server, and goes on when this command has ended.\n"
    "What is indexed as it is costs no call to the embedding service; so all of it can be\n"
    "repeated.\n"
    "\n"
    "  millrace embed --journal NATURE --journal \"J MACH LEARN RES\" --wait\n"
    "  millrace embed --changed";

struct options {
    const struct command *command;
    const char *config;
    struct opt_texts journals;
    bool all, changed, failed, wait;
    struct papers_wish wish;
    struct str names[OPT_TEXTS_MAX];
};

/* Whether a supervisor of this machine holds the folder. */
static bool server_runs(const struct db *d)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/lock", d->config.data_dir) >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool held = flock(fd, LOCK_SH | LOCK_NB) < 0;
    close(fd);
    return held;
}

/* --- waiting --- */

static int wait_for_all(struct task *t, struct db *d, struct papers_look *look)
{
    struct backoff each = {.ms = LOOK_MS};
    struct progress bar;
    int64_t total = 0;
    int err = papers_look(t, d->sql, look);
    total = look->papers_left;
    progress_init(&bar, task_loop(t), "embed", "papers", total);
    while (!err && look->units_pending + look->units_working) {
        struct task_scope scope = task_scope(t);
        total = look->papers_left > total ? look->papers_left : total;
        bar.total = total;
        progress_show(&bar, total - look->papers_left, total - look->papers_left);
        err = backoff_wait(t, &each);
        if (!err)
            err = papers_look(t, d->sql, look);
        task_scope_end(t, scope);
    }
    progress_end(&bar);
    return err;
}

static int wait_and_tell(struct task *t, struct db *d)
{
    struct papers_look look;
    int err = wait_for_all(t, d, &look);
    if (err)
        return db_complain(t, d, err);
    printf("%lld of %lld papers are indexed, %lld of them by meaning, too", (long long)look.indexed,
           (long long)look.total, (long long)look.embedded);
    if (look.refused)
        printf("; for %lld the service gave no vector", (long long)look.refused);
    printf("\n");
    if (look.units_failed)
        fprintf(stderr,
                "millrace embed: %lld units have failed: the page of embedding says why; "
                "\"millrace embed --failed\" tries them again\n",
                (long long)look.units_failed);
    return fflush(stdout) == 0 && !look.units_failed ? 0 : 1;
}

/* --- asking for it --- */

static int run_embed(struct task *t, struct db *d)
{
    struct options *o = d->arg;
    struct admin_deed by = {.action = "paper.embed", ADMIN_OPERATOR};
    struct papers_wanted out;
    const struct config *c = &d->config;
    if (!*c->ai_embedding_url && *c->ai_url)
        return opt_error(o->command, OPT_FAILED,
                         "there is no embedding service: set ai.embedding.url first");
    o->wish.by = &by;
    int err = papers_want(t, d->sql, &o->wish, &out);
    if (err == ERR_NOT_FOUND && out.unknown.p)
        return opt_error(o->command, OPT_FAILED, "%s", task_error(t));
    if (err)
        return db_complain(t, d, err);
    printf("%lld units are queued, about %lld papers\n", (long long)out.units,
           (long long)out.papers);
    if (fflush(stdout) != 0)
        return 1;
    if (!server_runs(d))
        fprintf(stderr, "millrace embed: no server runs on this machine: units wait until a node "
                        "of one takes them\n");
    return o->wait ? wait_and_tell(t, d) : 0;
}

/* -1: it goes on. */
static int take_wish(struct options *o)
{
    int said = (o->journals.count > 0) + o->all + o->changed + o->failed;
    if (said != 1)
        return opt_error(o->command, OPT_WRONG,
                         "say one of --journal NAME, --all, --changed and --failed");
    o->wish.which = o->all       ? PAPERS_ALL
                    : o->changed ? PAPERS_CHANGED
                    : o->failed  ? PAPERS_FAILED
                                 : PAPERS_JOURNALS;
    for (size_t i = 0; i < o->journals.count; i++)
        o->names[i] = str_of(o->journals.list[i]);
    o->wish.journals = o->names;
    o->wish.count = o->journals.count;
    return -1;
}

int embed_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        {"journal", "NAME", "all papers of this journal; may be repeated", .texts = &o.journals},
        {"all", NULL, "all papers of the corpus", .flag = &o.all},
        {"changed", NULL, "of journals that are indexed: what has changed since",
         .flag = &o.changed},
        {"failed", NULL, "what was given up, once more", .flag = &o.failed},
        {"wait", NULL, "show how far it is until nothing waits any more", .flag = &o.wait},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"embed", NULL, about, opts, sizeof opts / sizeof *opts};
    o.command = &c;
    int status = opt_parse(&c, argc, argv);
    if (status < 0)
        status = take_wish(&o);
    return status >= 0 ? status : db_run(o.config, DB_MYSQL, STATEMENT_MS, run_embed, &o);
}
