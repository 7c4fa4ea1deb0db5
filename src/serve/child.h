/* child.h -- a process that was started or adopted, watched until it ends, and stopped.
 *
 * Always true:
 *   - no shell, no file descriptor but the named ones, default signals, a session of its own, so
 *     that Ctrl-C in a terminal reaches only the supervisor;
 *   - its end is noticed through a pidfd, also when its parent is another process (adopted);
 *   - the rest of its process group is killed when it ends. */
#ifndef SERVE_CHILD_H
#define SERVE_CHILD_H

#include <sys/types.h>

#include "loop/sync.h"
#include "loop/task.h"
#include "loop/watch.h"

struct child_spec {
    const char *path; /* the program */
    const char *const *argv;
    const char *dir;      /* working directory; NULL: the same */
    const char *pid_path; /* gets the pid before the program runs; NULL: none */
    int in_fd;            /* its input; 0: none */
    int out_fd, err_fd;   /* its output; -1: that of the supervisor */
    const int *fds;       /* become 3, 4, … */
    size_t fd_count;
    int death_signal; /* sent to it when the supervisor dies; 0: it outlives it */
};

/* What all supervised processes share. */
struct supervision {
    struct loop *loop;
    const char *binary;   /* the program on disk */
    struct waitq changed; /* all waiters are woken by every change, and test their own condition */
    int stops;            /* SIGTERM and SIGINT so far */
    int hurry;            /* 1: nodes are killed, 2: stores too */
};

void supervision_init(struct supervision *s, struct loop *l, const char *binary);
void supervision_wake(struct supervision *s);
/* Waits for the next change or until at_ms, whichever comes first. */
void supervision_wait(struct task *t, struct supervision *s, int64_t at_ms);
/* Waits for ms, or until *stop is set. */
void supervision_pause(struct task *t, struct supervision *s, int64_t ms, const bool *stop);

struct child {
    struct supervision *shared; /* borrowed; its waiters are woken when the child ends */
    pid_t pid;                  /* 0 before the first start */
    bool running;
    int status; /* as waitpid gives it, once it has ended; -1 for an adopted process */
    int pidfd;
    struct poller poller;
};

#define CHILD_FDS_MAX 8

/* c must not move until the child has ended. ERR_IO: nothing runs then. Does not wait. */
MUST_CHECK int child_start(struct task *t, struct child *c, struct supervision *shared,
                           const struct child_spec *s);
/* A process that runs already. ERR_NOT_FOUND when it has ended. */
MUST_CHECK int child_adopt(struct child *c, struct supervision *shared, pid_t pid);
/* Stops watching a child that may go on; does nothing when it has ended. */
void child_release(struct child *c);

void child_signal(struct child *c, int signo);
/* Waits until it has ended; kills it after grace_ms, or as soon as hurry reaches level. */
void child_finish(struct task *t, struct child *c, int64_t grace_ms, int level);
/* SIGTERM and child_finish. */
void child_stop(struct task *t, struct child *c, int64_t grace_ms, int level);

/* "exit status 1", "signal 9 (Killed)", "running". */
const char *child_outcome(const struct child *c, struct arena *a);

/* Opens a log file for out_fd and err_fd; a long one is moved aside first. -1 with errno. */
int child_log_open(const char *path);

/* Exponential backoff between starts: 100 ms, doubling to 10 s; reset after a run of 30 s. */
struct respawn {
    int64_t delay_ms;
};
int64_t respawn_after(struct respawn *b, int64_t ran_ms);
#endif
