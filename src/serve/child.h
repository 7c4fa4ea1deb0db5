/* child.h -- a program that was started or found, watched until it ends, and stopped.
 *
 * Always true:
 *   - no shell, no file descriptor but the named ones, default signals, a session of its own,
 *     so that Ctrl-C in a terminal reaches nobody but the supervisor;
 *   - its end is noticed through a pidfd, also when it is not our child (adopted);
 *   - what is left of its process group when it ends is killed. */
#ifndef SERVE_CHILD_H
#define SERVE_CHILD_H

#include <sys/types.h>

#include "loop/sync.h"
#include "loop/task.h"
#include "loop/watch.h"

struct child_spec {
    const char *path; /* the program */
    const char *const *argv;
    const char *dir;      /* working directory; NULL: ours */
    const char *pid_path; /* gets the pid before the program runs; NULL: none */
    int out_fd, err_fd;   /* its output; -1: where ours goes */
    const int *fds;       /* become 3, 4, … */
    size_t fd_count;
    int death_signal; /* sent to it when we die; 0: it goes on without us */
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
    int status; /* as waitpid gives it, once it has ended; -1 where the child is not ours */
    int pidfd;
    struct poller poller;
};

#define CHILD_FDS_MAX 8

/* c must stay where it is until the child has ended. ERR_IO with the reason in *why (in a): nothing is running then. */
MUST_CHECK int child_start(struct child *c, struct supervision *shared, const struct child_spec *s,
                           struct arena *a, const char **why);
/* A process that is already there. ERR_NOT_FOUND when it is gone. */
MUST_CHECK int child_adopt(struct child *c, struct supervision *shared, pid_t pid);
/* Forgets a child without stopping it; harmless when it has ended. */
void child_release(struct child *c);

void child_signal(struct child *c, int signo);
/* Waits until it has ended; kills it after grace_ms, or as soon as hurry reaches level. */
void child_finish(struct task *t, struct child *c, int64_t grace_ms, int level);
/* SIGTERM and child_finish. */
void child_stop(struct task *t, struct child *c, int64_t grace_ms, int level);

/* "exit status 1", "signal 9 (Killed)", "running". */
const char *child_outcome(const struct child *c, struct arena *a);

/* Opens a log file for out_fd and err_fd; one that has become long is moved aside first. -1 with errno. */
int child_log_open(const char *path);

/* How long to wait before the next start: 100 ms, doubling to 10 s; anew after a run of 30 s. */
struct backoff {
    int64_t delay_ms;
};
int64_t backoff_next(struct backoff *b, int64_t ran_ms);
#endif
