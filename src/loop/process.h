/* process.h -- a task runs a program and waits for it.
 *
 * Always true:
 *   - no shell and no search path; an environment of a few fixed variables; the working directory
 *     is "/"; no file descriptor but 0, 1 and 2; default signals; a session of its own;
 *   - when process_run returns, the program and the rest of its process group have ended and it has
 *     been waited for, also after a timeout and a cancellation. If this process dies first, the
 *     kernel kills the program;
 *   - memory of this process is not copied (CLONE_VM), however large it is, and the start is not
 *     disturbed by helper threads. The loop stands still until the program is loaded: 1 ms, about.
 *
 * A sandbox has four layers; each alone is of use, and all are on unless the kernel, a container or
 * a systemd unit refuses them:
 *   limits      memory, processor time, open files; no file is written, no core is dumped; the OOM
 *               killer takes it first;
 *   seccomp     a list of allowed system calls; all others fail with EPERM: sockets, files opened
 *               for writing, new processes, signals to others, ptrace, mounts, io_uring;
 *   Landlock    only the named files and folders can be opened, for reading; no TCP, no signals;
 *   namespaces  a network without interfaces, which the programs of this process share.
 * Without limits or seccomp nothing is started. Landlock and namespaces are left out where they are
 * refused, and a line of the log says so once. A program that root runs in a
 * sandbox has user and group 65534: it must be readable for all. */
#ifndef LOOP_PROCESS_H
#define LOOP_PROCESS_H

#include "base/str.h"
#include "loop/task.h"

enum sandbox_layer {
    SANDBOX_LIMITS = 1,
    SANDBOX_SECCOMP = 2,
    SANDBOX_LANDLOCK = 4,
    SANDBOX_NAMESPACES = 8,
    SANDBOX_ALL = 15,
};

struct sandbox {
    int layers;                  /* SANDBOX_ALL, but in benchmarks and tests of single layers */
    int64_t memory_bytes;        /* address space */
    int64_t cpu_seconds;         /* SIGXCPU after so many, SIGKILL a second later */
    const char *const *readable; /* files and folders, besides the program; ends with NULL. What is
                                    not there is passed over */
    bool threads;                /* may be started; processes never */
};

#define PROCESS_OPEN_FILES_MAX 64 /* of a program in a sandbox */

struct process {
    const char *const *argv; /* argv[0] is the program's path, absolute; ends with NULL */
    struct str input;        /* its standard input, a file in memory that can be read only */
    size_t output_max;       /* bytes of standard output; more ends the program with ERR_LIMIT */
    size_t errors_max;       /* bytes of standard error that are kept; more are read and dropped */
    const struct sandbox *sandbox; /* NULL: none */
};

struct process_end {
    int status;         /* as waitpid gives it */
    struct str output;  /* in the task's arena, NUL-terminated */
    struct str errors;  /* likewise */
    int layers;         /* of the sandbox that were in force */
    int64_t started_us; /* how long the start took */
};

/* 0: the program ran and ended, whatever its status. ERR_NOT_FOUND: there is no such program.
 * ERR_IO: it cannot be started. ERR_LIMIT: too much output. ERR_TIMEOUT, ERR_CANCELED: the task's;
 * the program was killed. */
MUST_CHECK int process_run(struct task *t, const struct process *p, struct process_end *out);
#endif
