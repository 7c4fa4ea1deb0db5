#include "serve/simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

#define LISTEN_MS 20000 /* until it has printed its address */
#define STOP_MS   2000

/* "millrace sim listens at http://127.0.0.1:9100" */
static bool parse_port(struct str line, int *port)
{
    const char *colon = line.n ? memrchr(line.p, ':', line.n) : NULL;
    int64_t v;
    if (!colon || !str_to_i64(str_from(colon + 1, (size_t)(line.p + line.n - colon - 1)), &v))
        return false;
    *port = (int)v;
    return v > 0 && v < 65536;
}

/* Reads the port from the first line it prints. ERR_CLOSED when it ends before. */
static int read_port(struct task *t, int fd, int *port)
{
    struct watch w;
    char text[256];
    size_t have = 0, got;
    int err = 0;
    int64_t old = task_deadline(t, LISTEN_MS);
    watch_init(&w, task_loop(t), fd);
    while (!err && have < sizeof text && (have == 0 || !memchr(text, '\n', have))) {
        err = watch_read(t, &w, text + have, sizeof text - have, &got);
        if (!err && got == 0)
            err = ERR_CLOSED;
        have += err ? 0 : got;
    }
    watch_release(&w);
    task_deadline_restore(t, old);
    struct str rest = str_from(text, have);
    if (!err && !parse_port(str_cut(&rest, '\n'), port))
        err = ERR_PROTO;
    return err;
}

static int start(struct task *t, struct simulator *s)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) < 0)
        return task_fail(t, ERR_IO, "pipe: %s", strerror(errno));
    const char *address = arena_printf(task_arena(t), "127.0.0.1:%d", s->port);
    const char *argv[] = {"millrace", "sim", "--listen", address, NULL};
    struct child_spec spec = {.path = s->shared->binary,
                              .argv = argv,
                              .out_fd = out[1],
                              .err_fd = -1,
                              .death_signal = SIGTERM};
    int err = child_start(t, &s->child, s->shared, &spec);
    close(out[1]);
    if (!err && (err = read_port(t, out[0], &s->port)) != 0)
        task_fail(t, err, "it printed no address");
    close(out[0]);
    s->failures = err ? s->failures + 1 : 0;
    return err;
}

static int64_t run_once(struct task *t, struct simulator *s)
{
    struct task_scope scope = task_scope(t);
    int64_t began = loop_now_ms(task_loop(t));
    int err = s->child.running ? 0 : start(t, s);
    if (err)
        log_error("serve", "the simulated AI cannot be started: %s", task_error(t));
    supervision_wake(s->shared);
    while (!err && s->child.running && !s->stop)
        supervision_wait(t, s->shared, TIME_NEVER);
    if (s->child.running)
        child_stop(t, &s->child, STOP_MS, 1);
    else if (!err)
        log_error("serve", "the simulated AI has ended with %s",
                  child_outcome(&s->child, task_arena(t)));
    task_scope_end(t, scope);
    return loop_now_ms(task_loop(t)) - began;
}

static void keep(struct task *t, void *arg)
{
    struct simulator *s = arg;
    struct respawn respawn = {0};
    while (!s->stop) {
        int64_t ran_ms = run_once(t, s);
        supervision_pause(t, s->shared, respawn_after(&respawn, ran_ms), &s->stop);
    }
}

int simulator_go(struct simulator *s, struct group *g, pid_t pid)
{
    if (pid && child_adopt(&s->child, s->shared, pid))
        s->child.running = false;
    return task_go(g, "simulator", keep, s);
}
