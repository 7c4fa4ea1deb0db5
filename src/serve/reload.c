#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "serve/listener.h"
#include "serve/supervisor_private.h"

#define CHECK_MS    20000
#define REPLY_BYTES 256

/* Settings that cannot change without a restart. */
static int compare(struct task *t, const struct supervisor *s, const struct config *fresh)
{
    char dir[PATH_MAX];
    if (!realpath(fresh->data_dir, dir) || strcmp(dir, s->dir.path) != 0)
        return task_fail(t, ERR_INVALID, "data_dir cannot change without a restart");
    if (strcmp(fresh->user, s->config.user) != 0)
        return task_fail(t, ERR_INVALID, "user cannot change without a restart");
    return 0;
}

/* Has the program on disk check the settings; its output goes to fd. */
static int start_check(struct task *t, struct supervisor *s, int fd, struct child *c)
{
    const char *file = s->options->config_file;
    const char *argv[] = {"millrace", "config", "--check", file ? "--config" : NULL, file, NULL};
    struct child_spec spec = {.path = s->shared.binary,
                              .argv = argv,
                              .out_fd = fd,
                              .err_fd = -1,
                              .death_signal = SIGKILL};
    return child_start(t, c, &s->shared, &spec);
}

static int check_program(struct task *t, struct supervisor *s)
{
    struct child c = {0};
    char reply[REPLY_BYTES] = "";
    int out[2];
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
        return task_fail(t, ERR_IO, "pipe: %s", strerror(errno));
    int err = start_check(t, s, out[1], &c);
    close(out[1]);
    child_finish(t, &c, CHECK_MS, 1);
    ssize_t n = read(out[0], reply, sizeof reply - 1);
    close(out[0]);
    if (err)
        return err;
    if (c.status != 0)
        return task_fail(t, ERR_REFUSED, "%s config --check: %s", s->shared.binary,
                         child_outcome(&c, task_arena(t)));
    /* Any program may exit with 0. */
    if (!str_starts(str_from(reply, n > 0 ? (size_t)n : 0), STR("millrace ")))
        return task_fail(t, ERR_REFUSED, "%s is not millrace", s->shared.binary);
    return 0;
}

static void fill(const struct supervisor *s, struct handover *h)
{
    h->data_dir = s->dir.path;
    h->lock_fd = s->dir.lock_fd;
    h->metrics_fd = s->metrics_fd;
    h->sim_pid = s->sim.child.running ? s->sim.child.pid : 0;
    h->sim_port = s->sim.port;
    /* Nodes of an earlier reload may still be draining, with a longer drain_ms. */
    bool older = fleet_old(&s->fleet) > 0 && s->fleet.old_drain_ms > s->fleet.drain_ms;
    h->drain_ms = older ? s->fleet.old_drain_ms : s->fleet.drain_ms;
    for (int i = 0; i < METRICS_NODES_MAX; i++) {
        const struct member *m = &s->fleet.members[i];
        if (m->used && m->child.running)
            h->nodes[h->node_count++] = (struct handover_node){m->child.pid, i, m->draining};
    }
}

/* Blocks signals until the new program runs. The loop may have caught one that its handler has not
 * seen yet, and does not survive exec: it gets two turns first. */
static int hold_signals(struct task *t, const struct supervisor *s)
{
    int err = 0;
    handover_signals(SIG_BLOCK);
    for (int i = 0; i < 2 && !err; i++)
        err = task_yield(t);
    if (!err && s->shared.stops)
        err = task_fail(t, ERR_CANCELED, "the supervisor is stopping");
    if (err)
        handover_signals(SIG_UNBLOCK);
    return err;
}

/* Another address or path gets a socket of its own; the same path may get other rights. */
static int renew_listener(struct task *t, const struct supervisor *s, const struct config *fresh,
                          struct handover *h)
{
    if (s->listen_given)
        return 0;
    if (strcmp(fresh->listen, s->config.listen) == 0)
        return supervisor_admit(t, s, fresh);
    int err = listener_open(t, fresh->listen, 0, &h->listen_fd);
    if (err)
        return err;
    h->retired = s->config.listen;
    err = supervisor_admit(t, s, fresh);
    if (err) {
        close(h->listen_fd);
        listener_remove(fresh->listen);
    }
    return err;
}

static int try_reload(struct task *t, struct supervisor *s)
{
    struct config fresh;
    const char *why = NULL;
    int err = serve_settings(task_arena(t), s->options, &fresh, &why);
    if (err)
        return task_fail(t, err, "%s", why);
    err = compare(t, s, &fresh);
    if (!err)
        err = check_program(t, s);
    if (!err)
        err = supervisor_check_stores(t, &fresh, &(struct store_report){0});
    if (!err)
        err = hold_signals(t, s);
    if (err)
        return err;

    struct handover h = {
        .listen = fresh.listen, .listen_fd = s->listen_fd, .listen_given = s->listen_given};
    err = renew_listener(t, s, &fresh, &h);
    if (err) {
        handover_signals(SIG_UNBLOCK);
        return err;
    }
    fill(s, &h); /* no wait from here on, so it stays true */
    log_info("serve", "reloading: new nodes start, then %zu old ones are drained", h.node_count);
    notify_show(&s->notify);
    handover_exec(&h, s->shared.binary, s->options->argv);
    notify_hide();
    err = task_fail(t, ERR_IO, "%s: %s", s->shared.binary, strerror(errno));
    if (h.listen_fd != s->listen_fd) {
        close(h.listen_fd);
        listener_remove(fresh.listen);
    }
    return err;
}

void supervisor_reload(struct task *t, struct supervisor *s)
{
    struct task_scope scope = task_scope(t);
    enum phase before = s->phase;
    supervisor_tell(s, PHASE_RELOADING, "reloading");
    if (try_reload(t, s))
        log_error("serve", "not reloaded, everything goes on as before: %s", task_error(t));
    supervisor_tell(s, before, "not reloaded: %s", task_error(t));
    task_scope_end(t, scope);
}
