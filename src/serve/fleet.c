#include "serve/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "serve/node/process.h"

#define READY_MS    60000 /* from the start of a node until it serves */
#define LOOK_MS     5000  /* at least twice the interval of NODE_ALIVE lines */
#define SILENT_MAX  6     /* looks in a row: 30 s */
#define HURRY_LEVEL 1     /* nodes are killed by the second Ctrl-C */

static int index_of(const struct member *m)
{
    return (int)(m - m->fleet->members);
}

int fleet_ready(const struct fleet *f)
{
    int n = 0;
    for (int i = 0; i < METRICS_NODES_MAX; i++)
        n += f->members[i].used && !f->members[i].old && f->members[i].ready;
    return n;
}

int fleet_old(const struct fleet *f)
{
    int n = 0;
    for (int i = 0; i < METRICS_NODES_MAX; i++)
        n += f->members[i].used && f->members[i].old;
    return n;
}

bool fleet_open(const struct fleet *f)
{
    int open = 0, others = 0;
    for (int i = 0; i < METRICS_NODES_MAX; i++) {
        const struct member *m = &f->members[i];
        open += m->used && !m->old && m->open;
        others += m->used && !m->old && !m->open;
    }
    return open > 0 && others == 0;
}

const char *fleet_lacks(const struct fleet *f)
{
    for (int i = 0; i < METRICS_NODES_MAX; i++) {
        const struct member *m = &f->members[i];
        if (m->used && !m->old && m->ready && !m->open)
            return m->lacks;
    }
    return NULL;
}

/* --- indexes --- */

static struct member *take_index(struct task *t, struct fleet *f, int place)
{
    while (!f->stop) {
        for (int i = 0; i < METRICS_NODES_MAX; i++) {
            struct member *m = &f->members[i];
            if (m->used)
                continue;
            *m = (struct member){.fleet = f, .used = true, .place = place, .ready_fd = -1};
            return m;
        }
        supervision_wait(t, f->shared, TIME_NEVER); /* for old nodes to end */
    }
    return NULL;
}

static void close_ready(struct member *m)
{
    if (m->ready_fd < 0)
        return;
    poller_release(&m->ready_poller);
    close(m->ready_fd);
    m->ready_fd = -1;
}

static void release_index(struct member *m)
{
    close_ready(m);
    /* Opening a slab clears it: metrics end with their node. */
    metrics_close(metrics_open(m->fleet->metrics_fd, METRICS_NODES_MAX, index_of(m)));
    m->used = false;
    supervision_wake(m->fleet->shared);
}

/* --- one node --- */

/* A line says what the node lacks, "ready", or NODE_ALIVE. The first one says that it serves. */
static void on_ready(void *arg, int fd, int events)
{
    (void)events;
    struct member *m = arg;
    char text[512];
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct str rest = str_from(text, n > 0 ? (size_t)n : 0);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');
        m->heard = true;
        if (str_eq(line, STR(NODE_ALIVE)))
            continue;
        m->ready = true;
        m->open = str_eq(line, STR("ready"));
        snprintf(m->lacks, sizeof m->lacks, "%.*s", STR_ARG(line));
    }
    if (m->ready)
        m->fleet->failures = 0;
    if (n <= 0)
        close_ready(m); /* a node of a version that says no more */
    supervision_wake(m->fleet->shared);
}

static int start_node(struct task *t, struct member *m)
{
    struct fleet *f = m->fleet;
    struct arena *a = task_arena(t);
    int ready[2];
    if (pipe2(ready, O_CLOEXEC | O_NONBLOCK) < 0)
        return task_fail(t, ERR_IO, "pipe: %s", strerror(errno));
    const char *index = arena_printf(a, "%d", index_of(m));
    const char *place = arena_printf(a, "%d", m->place);
    const char *argv[] = {
        "millrace", "node", "--index", index, "--place", place, f->simulated ? "--simulated" : NULL,
        NULL};
    const int fds[] = {f->listen_fd, ready[1], f->metrics_fd, f->config_fd};
    struct child_spec spec = {.path = f->shared->binary,
                              .argv = argv,
                              .out_fd = -1,
                              .err_fd = -1,
                              .fds = fds,
                              .fd_count = sizeof fds / sizeof *fds,
                              .death_signal = SIGTERM};
    int err = child_start(t, &m->child, f->shared, &spec);
    close(ready[1]);
    if (err) {
        close(ready[0]);
        return err;
    }
    m->ready_fd = ready[0];
    poller_init(&m->ready_poller, f->shared->loop, ready[0], on_ready, m);
    poller_set(&m->ready_poller, WATCH_READ);
    return 0;
}

/* Counts looks, not time: after a pause of the whole machine every node has been silent for long,
 * but only for one look. */
static void look_for_hang(struct member *m, int *silent)
{
    *silent = m->ready && m->ready_fd >= 0 && !m->heard ? *silent + 1 : 0;
    m->heard = false;
    if (*silent != SILENT_MAX)
        return;
    log_error("serve", "node %d, pid %d, hangs: no sign of life for %d s; killing it", index_of(m),
              (int)m->child.pid, SILENT_MAX * LOOK_MS / 1000);
    child_signal(&m->child, SIGKILL);
}

/* Returns when it has ended, by itself or because the fleet stops. */
static void watch(struct task *t, struct member *m)
{
    struct fleet *f = m->fleet;
    struct loop *l = task_loop(t);
    int64_t ready_by = loop_now_ms(l) + READY_MS, look_at = loop_now_ms(l) + LOOK_MS;
    int silent = 0;
    while (m->child.running && !f->stop) {
        if (!m->ready && loop_now_ms(l) >= ready_by) {
            log_error("serve", "node %d is not ready after %d s; killing it", index_of(m),
                      READY_MS / 1000);
            child_signal(&m->child, SIGKILL);
            ready_by = TIME_NEVER;
        }
        if (loop_now_ms(l) >= look_at) {
            look_for_hang(m, &silent);
            look_at = loop_now_ms(l) + LOOK_MS;
        }
        supervision_wait(t, f->shared, look_at);
    }
    if (m->child.running) {
        m->draining = true;
        child_stop(t, &m->child, f->drain_ms + NODE_DRAIN_SLACK_MS, HURRY_LEVEL);
    }
}

static int64_t run_once(struct task *t, struct member *m)
{
    struct fleet *f = m->fleet;
    struct task_scope scope = task_scope(t);
    int64_t began = loop_now_ms(task_loop(t));
    if (start_node(t, m)) {
        log_error("serve", "cannot start node %d: %s; trying again", index_of(m), task_error(t));
        f->failures++;
    } else {
        watch(t, m);
        f->failures += !m->ready && !f->stop;
        if (!f->stop)
            log_error("serve", "node %d, pid %d, has ended with %s; starting another", index_of(m),
                      (int)m->child.pid, child_outcome(&m->child, task_arena(t)));
    }
    task_scope_end(t, scope);
    return loop_now_ms(task_loop(t)) - began;
}

static void keep(struct task *t, void *arg)
{
    struct fleet *f = arg;
    int place = f->started++; /* restarted nodes keep it */
    struct respawn respawn = {0};
    struct member *m;
    while ((m = take_index(t, f, place))) {
        int64_t ran_ms = run_once(t, m);
        release_index(m);
        supervision_pause(t, f->shared, respawn_after(&respawn, ran_ms), &f->stop);
    }
}

/* --- earlier generations --- */

void fleet_adopt(struct fleet *f, pid_t pid, int index, bool draining)
{
    check(index >= 0 && index < METRICS_NODES_MAX);
    struct member *m = &f->members[index];
    *m = (struct member){.fleet = f, .old = true, .draining = draining, .ready_fd = -1};
    m->used = child_adopt(&m->child, f->shared, pid) == 0;
}

static void retire(struct task *t, void *arg)
{
    struct member *m = arg;
    struct fleet *f = m->fleet;
    while (m->child.running && !m->draining && !f->stop && fleet_ready(f) < f->wanted)
        supervision_wait(t, f->shared, TIME_NEVER);
    if (!m->draining)
        child_signal(&m->child, SIGTERM);
    m->draining = true;
    child_finish(t, &m->child, f->old_drain_ms + NODE_DRAIN_SLACK_MS, HURRY_LEVEL);
    release_index(m);
}

int fleet_go_old(struct fleet *f, struct group *g)
{
    int err = 0;
    for (int i = 0; i < METRICS_NODES_MAX && !err; i++)
        if (f->members[i].used)
            err = task_go(g, "old node", retire, &f->members[i]);
    return err;
}

int fleet_go(struct fleet *f, struct group *g)
{
    int err = 0;
    for (int i = 0; i < f->wanted && !err; i++)
        err = task_go(g, "node", keep, f);
    return err;
}
