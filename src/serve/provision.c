#include "serve/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "engine/setup/stores.h"
#include "serve/datadir.h"

#define WORDS_MAX     8
#define TAIL_BYTES    2048 /* of the output of a command that failed */
#define STOP_MS       5000
#define HURRY_LEVEL   1
#define ASK_MS        10000 /* for an answer of MariaDB */
#define SAMPLE_SEED   "1"
#define SETTINGS_PATH "/dev/fd/3" /* in a child: the first of child_spec.fds */

/* --- commands --- */

struct command {
    const char *words[WORDS_MAX]; /* behind "millrace"; NULL ends them */
    enum log_level level;         /* of its failure */
};

static const char *joined(struct task *t, const struct command *c)
{
    const char *line = "millrace";
    for (size_t i = 0; c->words[i]; i++)
        line = arena_printf(task_arena(t), "%s %s", line, c->words[i]);
    return line;
}

/* Logs the end of its output, line by line. */
static void log_output(struct task *t, const struct command *c, int fd, off_t from)
{
    char *text = arena_alloc(task_arena(t), TAIL_BYTES);
    off_t end = lseek(fd, 0, SEEK_END);
    bool cut = end - from > TAIL_BYTES;
    ssize_t n = pread(fd, text, TAIL_BYTES, cut ? end - TAIL_BYTES : from);
    struct str rest = str_from(text, n > 0 ? (size_t)n : 0);
    if (cut)
        str_cut(&rest, '\n');
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        if (line.n)
            log_line(c->level, "serve", "%s: %.*s", c->words[0], STR_ARG(line));
    }
}

static int start(struct task *t, const struct provision *p, const struct command *c, int log_fd,
                 struct child *child)
{
    const char *argv[WORDS_MAX + 2] = {"millrace"};
    memcpy(argv + 1, c->words, sizeof c->words);
    /* The environment outranks the settings, but holds the same: they were read from it. The
     * child is killed with the supervisor, so that it cannot overlap with the next start. */
    struct child_spec spec = {.path = p->shared->binary,
                              .argv = argv,
                              .out_fd = log_fd,
                              .err_fd = log_fd,
                              .fds = &p->settings_fd,
                              .fd_count = 1,
                              .death_signal = SIGKILL};
    int err = child_start(t, child, p->shared, &spec);
    if (err)
        log_line(c->level, "serve", "%s", task_error(t));
    return err;
}

static int finish(struct task *t, const struct provision *p, const struct command *c,
                  struct child *child)
{
    while (child->running && !p->shared->stops)
        supervision_wait(t, p->shared, TIME_NEVER);
    if (child->running) {
        child_stop(t, child, STOP_MS, HURRY_LEVEL);
        return ERR_CANCELED;
    }
    if (child->status == 0)
        return 0;
    log_line(c->level, "serve", "\"%s\" failed with %s", joined(t, c),
             child_outcome(child, task_arena(t)));
    return ERR_REFUSED;
}

static int run_command(struct task *t, const struct provision *p, const struct command *c)
{
    struct child child = {0};
    const char *path = arena_printf(task_arena(t), "%s/log/provision.log", p->data_dir);
    if (p->shared->stops)
        return ERR_CANCELED;
    /* The child appends, this process reads. */
    int log_fd = child_log_open(path), read_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (log_fd < 0 || read_fd < 0) {
        log_line(c->level, "serve", "%s: %s", path, strerror(errno));
        if (log_fd >= 0)
            close(log_fd);
        return ERR_IO;
    }
    off_t from = lseek(log_fd, 0, SEEK_END);
    int err = start(t, p, c, log_fd, &child);
    close(log_fd);
    if (!err)
        err = finish(t, p, c, &child);
    if (err == ERR_REFUSED)
        log_output(t, c, read_fd, from);
    close(read_fd);
    return err;
}

int provision_migrate(struct task *t, struct provision *p)
{
    struct task_scope scope = task_scope(t);
    struct command c = {{"db", "migrate", "--config", SETTINGS_PATH}, LOG_ERROR};
    int err = run_command(t, p, &c);
    task_scope_end(t, scope);
    return err;
}

/* --- the note --- */

#define NOTE_NAME "sample_corpus" /* in table setting: {"papers": 3000, "loaded": 1} */

struct note {
    bool journals;  /* the corpus is not empty */
    bool present;   /* there is a note: loading a sample has begun */
    int64_t papers; /* of it */
    bool loaded;    /* completely */
};

/* As sql_argv, with a limit and a warning. */
static int ask(struct task *t, struct sql_pool *sql, const char *statement, size_t argc,
               const struct sql_value *argv, struct sql_rows *out)
{
    int64_t old = task_deadline(t, ASK_MS);
    int err = sql_argv(t, sql, statement, argc, argv, out);
    task_deadline_restore(t, old);
    if (err)
        log_warn("serve", "cannot read from the private MariaDB whether it has papers: %s",
                 *task_error(t) ? task_error(t) : err_name(err));
    return err;
}

static int read_note(struct task *t, struct sql_pool *sql, struct note *out)
{
    struct sql_rows r;
    int err = ask(t, sql,
                  "SELECT EXISTS (SELECT 1 FROM contentlist),"
                  " (SELECT CAST(JSON_EXTRACT(value, '$.papers') AS SIGNED) FROM setting"
                  "  WHERE name = '" NOTE_NAME "'),"
                  " (SELECT CAST(JSON_EXTRACT(value, '$.loaded') AS SIGNED) FROM setting"
                  "  WHERE name = '" NOTE_NAME "')",
                  0, NULL, &r);
    if (err)
        return err;
    const struct sql_value *cells = sql_row(&r, 0);
    *out = (struct note){
        .journals = cells[0].i != 0,
        .present = cells[1].type == SQL_INT,
        .papers = cells[1].type == SQL_INT ? cells[1].i : 0,
        .loaded = cells[2].type == SQL_INT && cells[2].i != 0,
    };
    return 0;
}

static int write_note(struct task *t, struct sql_pool *sql, int64_t papers, bool loaded)
{
    const struct sql_value values[] = {sql_int(papers), sql_int(loaded)};
    return ask(t, sql,
               "REPLACE INTO setting (name, value, changed_at) VALUES ('" NOTE_NAME "',"
               " JSON_OBJECT('papers', ?, 'loaded', ?), UTC_TIMESTAMP(3))",
               2, values, NULL);
}

/* --- the sample --- */

struct sample {
    struct provision *provision;
    struct sql_pool *sql;
    const char *dir;
    int64_t papers;
    bool ours; /* the content of dir may be replaced */
};

static int make(struct task *t, const struct sample *s)
{
    const char *papers = arena_printf(task_arena(t), "%lld", (long long)s->papers);
    struct command plain = {{"sample", "--papers", papers, "--seed", SAMPLE_SEED, s->dir},
                            LOG_WARN};
    struct command anew = {{"sample", "--force", "--papers", papers, "--seed", SAMPLE_SEED, s->dir},
                           LOG_WARN};
    return run_command(t, s->provision, s->ours ? &anew : &plain);
}

/* The note is written before anything that it describes. But a folder that existed before the note
 * is used only if it holds this very sample. */
static int load(struct task *t, const struct sample *s)
{
    struct command init = {{"db", "init", "--config", SETTINGS_PATH, "--data", s->dir}, LOG_WARN};
    int err = s->ours ? write_note(t, s->sql, s->papers, false) : 0;
    if (!err)
        err = make(t, s);
    if (!err && !s->ours)
        err = write_note(t, s->sql, s->papers, false);
    if (!err)
        err = run_command(t, s->provision, &init);
    return err ? err : write_note(t, s->sql, s->papers, true);
}

/* Removes the note when no paper was loaded: papers that an operator loads later must not be taken
 * for the rest of a sample. */
static void forget(struct task *t, const struct sample *s)
{
    struct note note;
    if (read_note(t, s->sql, &note) || note.journals || !note.present)
        return;
    int err = ask(t, s->sql, "DELETE FROM setting WHERE name = '" NOTE_NAME "'", 0, NULL, NULL);
    if (!err && s->ours)
        datadir_remove(s->dir);
}

static int load_and_log(struct task *t, const struct sample *s, bool again)
{
    int64_t began = loop_now_ms(task_loop(t));
    log_info("serve", "loading a sample of %lld papers%s", (long long)s->papers,
             again ? " again: an earlier start was interrupted" : "");
    int err = load(t, s);
    if (!err)
        log_info("serve", "the sample is loaded, after %.1f s",
                 (double)(loop_now_ms(task_loop(t)) - began) / 1000);
    if (!err || err == ERR_CANCELED)
        return err;
    log_warn("serve", "the sample could not be loaded; the next start tries again, unless "
                      "sample_papers is 0");
    forget(t, s);
    return err;
}

static int provide(struct task *t, struct provision *p, struct sql_pool *sql)
{
    struct note note;
    int err = read_note(t, sql, &note);
    if (err)
        return err;
    if (note.loaded)
        p->sample_papers = note.papers;
    if (note.loaded || p->config->sample_papers == 0 || (note.journals && !note.present))
        return 0;
    struct sample s = {.provision = p,
                       .sql = sql,
                       .dir = arena_printf(task_arena(t), "%s/sample", p->data_dir),
                       /* Half of it may be loaded: the same papers again complete it. */
                       .papers = note.journals ? note.papers : p->config->sample_papers};
    s.ours = note.present || access(s.dir, F_OK) < 0;
    err = load_and_log(t, &s, note.present);
    if (!err)
        p->sample_papers = s.papers;
    return err;
}

struct sql_pool *provision_sql(struct task *t, const struct config *c, const char **why)
{
    struct stores stores;
    if (stores_find(task_arena(t), c, &stores, why))
        return NULL;
    struct sql_options o = {
        .url = stores.mysql_url, .password = stores.mysql_password, .connections_max = 1};
    return sql_pool_new(task_loop(t), &o);
}

int provision_sample(struct task *t, struct provision *p)
{
    struct task_scope scope = task_scope(t);
    const char *why = NULL;
    int err = 0;
    struct sql_pool *sql = provision_sql(t, p->config, &why);
    if (sql) {
        err = provide(t, p, sql);
        sql_pool_free(sql);
    } else {
        log_warn("serve", "cannot load a sample: %s", why);
    }
    task_scope_end(t, scope);
    return err == ERR_CANCELED ? err : 0;
}
