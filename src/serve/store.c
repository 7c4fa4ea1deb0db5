#include "serve/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/datadir.h"

#define ADOPT_MS       10000  /* until an adopted process answers */
#define START_MS       600000 /* until a new one does: a large database may need a repair */
#define START_FIRST_MS 10000  /* see store_kind.start_first */
#define START_LOOK_MS  50
#define STILL_MS       15000 /* between two log lines that it is not up yet */
#define ASK_MS         3000  /* for one probe */
#define ASK_EVERY_MS   2000
#define SILENT_MAX     3
#define STOP_MS        60000 /* a database may have to flush much */
#define SILENT_STOP_MS 10000 /* of one that does not answer */
#define SPACE_BYTES    (32 * 1024 * 1024)
#define LOG_BYTES      16384
#define TAIL_LINES     6
#define HURRY_LEVEL    2 /* stores are killed by the third Ctrl-C only */

int store_fail(struct store *s, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->problem, sizeof s->problem, fmt, ap);
    va_end(ap);
    return err;
}

static void set_state(struct store *s, enum store_state state)
{
    s->state = state;
    supervision_wake(s->shared);
}

static const char *log_path(struct task *t, const struct store *s)
{
    return arena_printf(task_arena(t), "%s/log/%s.log", s->data_dir, s->kind->name);
}

struct str store_log(struct task *t, const struct store *s)
{
    char *text = arena_alloc(task_arena(t), LOG_BYTES);
    int fd = open(log_path(t, s), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STR("");
    ssize_t n = pread(fd, text, LOG_BYTES, s->log_start);
    close(fd);
    return str_from(text, n > 0 ? (size_t)n : 0);
}

/* --- programs --- */

int store_find_program(struct task *t, const char *name, const char **out)
{
    const char *path = getenv("PATH");
    struct str rest = str_of(arena_printf(
        task_arena(t), "%s:/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/usr/libexec",
        path ? path : ""));
    while (rest.p) {
        struct str folder = str_cut(&rest, ':');
        const char *file = arena_printf(task_arena(t), "%.*s/%s", STR_ARG(folder), name);
        if (folder.n && folder.p[0] == '/' && access(file, X_OK) == 0) {
            *out = file;
            return 0;
        }
    }
    return ERR_NOT_FOUND;
}

static int start_logged(struct task *t, struct store *s, struct child_spec *spec)
{
    const char *log = log_path(t, s);
    int fd = child_log_open(log);
    if (fd < 0)
        return store_fail(s, ERR_IO, "%s: %s", log, strerror(errno));
    s->log_start = lseek(fd, 0, SEEK_END);
    spec->out_fd = spec->err_fd = fd;
    int err = child_start(t, &s->child, s->shared, spec);
    if (err)
        store_fail(s, err, "%s", task_error(t));
    close(fd);
    return err;
}

int store_run(struct task *t, struct store *s, struct child_spec *spec)
{
    int err = start_logged(t, s, spec);
    if (err)
        return err;
    while (s->child.running && !s->stop)
        supervision_wait(t, s->shared, TIME_NEVER);
    if (s->stop) {
        child_signal(&s->child, SIGKILL);
        child_finish(t, &s->child, STOP_MS, HURRY_LEVEL);
        return ERR_CANCELED;
    }
    if (s->child.status == 0)
        return 0;
    return store_fail(s, ERR_REFUSED, "%s failed with %s; see %s", spec->path,
                      child_outcome(&s->child, task_arena(t)), log_path(t, s));
}

/* --- a process that runs already --- */

static struct str link_target(struct task *t, pid_t pid, const char *name)
{
    char target[PATH_MAX];
    const char *link = arena_printf(task_arena(t), "/proc/%d/%s", (int)pid, name);
    ssize_t n = readlink(link, target, sizeof target);
    return n < 0 ? STR("") : str_dup(task_arena(t), str_from(target, (size_t)n));
}

/* Program and working directory must be those of the store: the pid may have been reused. */
static bool is_ours(struct task *t, const struct store *s, pid_t pid)
{
    struct str exe = link_target(t, pid, "exe");
    const char *slash = exe.n ? memrchr(exe.p, '/', exe.n) : NULL;
    const char *folder = arena_printf(task_arena(t), "%s/%s", s->data_dir, s->kind->folder);
    return slash && str_starts(str_of(slash + 1), str_of(s->kind->exe)) &&
           str_eq(link_target(t, pid, "cwd"), str_of(folder));
}

static const char *pid_path(struct task *t, const struct store *s)
{
    return arena_printf(task_arena(t), "%s/run/%s.pid", s->data_dir, s->kind->name);
}

static bool adopt(struct task *t, struct store *s)
{
    char text[32];
    int64_t pid;
    struct str rest = file_head(pid_path(t, s), text, sizeof text);
    if (!str_to_i64(str_cut(&rest, '\n'), &pid) || pid <= 1 || pid > INT_MAX)
        return false;
    if (child_adopt(&s->child, s->shared, (pid_t)pid))
        return false;
    /* The pidfd is open: from here on a reuse of the pid cannot go unnoticed. */
    if (is_ours(t, s, (pid_t)pid))
        return true;
    child_release(&s->child);
    return false;
}

/* --- up --- */

static int ask(struct task *t, struct store *s)
{
    struct task_scope scope = task_scope(t);
    task_deadline(t, ASK_MS);
    int err = s->kind->ping(t, s);
    task_scope_end(t, scope);
    return err;
}

static void shut_down(struct task *t, struct store *s, int64_t grace_ms)
{
    if (s->kind->hang_up)
        s->kind->hang_up(s);
    child_stop(t, &s->child, grace_ms, HURRY_LEVEL);
    unlink(pid_path(t, s));
}

/* Whether a start that is no longer wanted may be aborted. */
static bool may_abort(const struct store *s, int64_t now_ms, int64_t *patience_ms)
{
    if (!s->stop)
        return false;
    if (*patience_ms == TIME_NEVER)
        *patience_ms = now_ms + START_FIRST_MS;
    return !s->kind->start_first || now_ms >= *patience_ms || s->shared->hurry >= HURRY_LEVEL;
}

/* Waits until it answers. */
static int come_up(struct task *t, struct store *s, int64_t limit_ms)
{
    struct loop *l = task_loop(t);
    int64_t give_up_at = loop_now_ms(l) + limit_ms, say_at = loop_now_ms(l) + STILL_MS;
    int64_t patience_ms = TIME_NEVER;
    for (;;) {
        if (may_abort(s, loop_now_ms(l), &patience_ms))
            return ERR_CANCELED;
        if (!s->child.running)
            return store_fail(s, ERR_CLOSED, "the private %s did not start (%s); see %s",
                              s->kind->title, child_outcome(&s->child, task_arena(t)),
                              log_path(t, s));
        int err = ask(t, s);
        if (!err)
            return 0;
        if (err == ERR_BUSY)
            give_up_at = loop_now_ms(l) + limit_ms;
        if (loop_now_ms(l) >= give_up_at || (err == ERR_REFUSED && limit_ms == ADOPT_MS))
            return store_fail(s, ERR_TIMEOUT, "the private %s runs but does not answer; see %s",
                              s->kind->title, log_path(t, s));
        if (loop_now_ms(l) >= say_at) {
            log_info("store", "%s is still starting (%s)", s->kind->title,
                     err == ERR_BUSY ? "it loads its data" : "it does not answer yet");
            say_at += STILL_MS;
        }
        supervision_wait(t, s->shared, loop_now_ms(l) + START_LOOK_MS);
    }
}

static int launch(struct task *t, struct store *s)
{
    const char *why = NULL;
    int err = datadir_space(task_arena(t), s->data_dir, SPACE_BYTES, s->kind->title, &why);
    if (err)
        return store_fail(s, err, "%s", why);
    struct child_spec spec = {.pid_path = pid_path(t, s)};
    spec.dir = arena_printf(task_arena(t), "%s/%s", s->data_dir, s->kind->folder);
    err = s->kind->command(t, s, &spec);
    unlink(s->socket_path); /* left by one that was killed */
    if (!err)
        err = start_logged(t, s, &spec);
    if (!err)
        log_info("store", "%s started, pid %d", s->kind->title, (int)s->child.pid);
    return err;
}

static int bring_up(struct task *t, struct store *s)
{
    if (adopt(t, s)) {
        if (come_up(t, s, ADOPT_MS) == 0) {
            log_info("store", "%s was running, pid %d", s->kind->title, (int)s->child.pid);
            return 0;
        }
        if (s->stop)
            return ERR_CANCELED;
        log_warn("store",
                 "a %s was running, pid %d, but does not answer; stopping it and starting another",
                 s->kind->title, (int)s->child.pid);
        shut_down(t, s, SILENT_STOP_MS);
    }
    s->mended = false;
    int err = launch(t, s);
    if (!err)
        err = come_up(t, s, START_MS);
    if (err != ERR_CLOSED || s->stop || !s->kind->mend || !s->kind->mend(t, s))
        return err;
    s->mended = true;
    err = launch(t, s);
    return err ? err : come_up(t, s, START_MS);
}

/* --- watching --- */

/* Returns when it has ended, does not answer or has to stop. */
static void watch(struct task *t, struct store *s)
{
    int silent = 0;
    int64_t ask_at = loop_now_ms(task_loop(t)) + ASK_EVERY_MS;
    while (s->child.running && !s->stop && silent < SILENT_MAX) {
        if (loop_now_ms(task_loop(t)) < ask_at) {
            supervision_wait(t, s->shared, ask_at);
            continue;
        }
        int err = ask(t, s);
        silent = err && err != ERR_BUSY ? silent + 1 : 0;
        if (silent && s->child.running)
            log_warn("store", "%s does not answer (%d of %d)", s->kind->title, silent, SILENT_MAX);
        ask_at = loop_now_ms(task_loop(t)) + ASK_EVERY_MS;
    }
}

/* From start to end of one process. */
static void run_once(struct task *t, struct store *s)
{
    struct task_scope scope = task_scope(t);
    int err = bring_up(t, s);
    if (!err) {
        s->was_ready = true;
        set_state(s, STORE_READY);
        watch(t, s);
    }
    bool ended = !s->child.running;
    if (!s->stop)
        set_state(s, STORE_DOWN);
    shut_down(t, s, s->stop && !err ? STOP_MS : SILENT_STOP_MS);
    if (!s->stop && !err)
        log_error("store", "%s %s%s", s->kind->title,
                  ended ? "has ended with " : "did not answer and was stopped: ",
                  child_outcome(&s->child, task_arena(t)));
    else if (!s->stop)
        log_error("store", "%s", s->problem);
    task_scope_end(t, scope);
}

static int count_lines(struct str text, const char *word)
{
    int n = 0;
    while (text.p) {
        struct str line = str_cut(&text, '\n');
        n += line.n && str_find(line, str_of(word)) >= 0;
    }
    return n;
}

/* Logs the last TAIL_LINES lines that have word in them; how many have it. */
static int show_lines(const struct store *s, struct str text, const char *word)
{
    int count = count_lines(text, word), seen = 0;
    while (text.p) {
        struct str line = str_cut(&text, '\n');
        if (line.n && str_find(line, str_of(word)) >= 0 && seen++ >= count - TAIL_LINES)
            log_error("store", "%s logged: %.*s", s->kind->title, STR_ARG(line));
    }
    return count;
}

/* What an operator needs next: the errors in the log of the last start, or else its end. */
static void show_log(struct task *t, const struct store *s)
{
    struct str all = store_log(t, s);
    if (show_lines(s, all, s->kind->alarm) == 0 && show_lines(s, all, "rror") == 0)
        show_lines(s, all, "");
}

static int check_socket_path(struct task *t, struct store *s)
{
    struct sockaddr_un address;
    s->socket_path = arena_printf(task_arena(t), "%s/run/%s.sock", s->data_dir, s->kind->name);
    size_t n = strlen(s->socket_path), most = sizeof address.sun_path - 1;
    if (n > most)
        return store_fail(s, ERR_INVALID,
                          "%s: is %zu bytes long; the path of a socket may have %zu: set a shorter "
                          "data_dir",
                          s->socket_path, n, most);
    if (strpbrk(s->socket_path, " ?\"'\\\t\n"))
        return store_fail(
            s, ERR_INVALID,
            "%s: has a space, a quote or a question mark in it, which the private %s does not "
            "take: set another data_dir",
            s->socket_path, s->kind->title);
    return 0;
}

static void keep(struct task *t, void *arg)
{
    struct store *s = arg;
    struct respawn respawn = {0};
    int err = check_socket_path(t, s);
    if (!err)
        err = s->kind->prepare(t, s);
    if (err == ERR_REFUSED)
        show_log(t, s);
    while (!err && !s->stop) {
        int64_t began = loop_now_ms(task_loop(t));
        run_once(t, s);
        if (!s->was_ready && !s->stop)
            show_log(t, s);
        if (!s->was_ready || s->stop)
            break;
        int64_t ran_ms = loop_now_ms(task_loop(t)) - began;
        supervision_pause(t, s->shared, respawn_after(&respawn, ran_ms), &s->stop);
    }
    set_state(s, s->stop ? STORE_OFF : STORE_FAILED);
}

void store_clear(struct task *t, struct store *s)
{
    if (!adopt(t, s))
        return;
    log_info("store", "stopping a private %s that is not needed, pid %d", s->kind->title,
             (int)s->child.pid);
    shut_down(t, s, STOP_MS);
}

int store_go(struct store *s, struct group *g)
{
    s->state = STORE_STARTING;
    int err = task_go(g, "store", keep, s);
    if (err)
        s->state = STORE_OFF;
    return err;
}
