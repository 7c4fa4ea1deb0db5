/* sandbox_private.h -- the layers of a sandbox: prepared by the parent, entered by the child.
 *
 * The child shares the parent's memory until exec, so it makes plain system calls only. */
#ifndef LOOP_SANDBOX_PRIVATE_H
#define LOOP_SANDBOX_PRIVATE_H

#include <linux/filter.h>

#include "loop/process.h"

/* Code of the child: it runs on a stack that sanitizers do not know. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

#define SANDBOX_FILTER_MAX 384

struct sandbox_plan {
    const struct sandbox *wanted;
    int layers;      /* that will be entered */
    int clone_flags; /* of namespaces that are made */
    /* Those that are joined instead; -1: none, and none for user if root starts the program. */
    int net_fd, user_fd;
    int ruleset_fd; /* of Landlock; -1: none */
    int landlock_abi;
    struct sock_filter filter[SANDBOX_FILTER_MAX];
    size_t filter_count;
    size_t filter_self; /* the instruction that the child's pid goes into */
};

/* 0, or an errno. Opens ruleset_fd. */
int sandbox_prepare(struct sandbox_plan *p, const struct sandbox *wanted, const char *program);
void sandbox_release(struct sandbox_plan *p);
/* In the child: what needs the rights of the parent. A program that root starts runs as user 65534,
 * who owns no files. NULL, or what failed; errno says why. */
const char *sandbox_begin(const struct sandbox_plan *p);
/* In the child, just before exec. Likewise. */
const char *sandbox_enter(struct sandbox_plan *p);

/* A network namespace takes half a millisecond to make. So the first one is kept for the programs
 * that are started later: none of them has a right to change it, or a socket to use it. If it
 * cannot be kept, or joined, each start makes its own.
 *   keep: after a start, of the program that runs now. */
void sandbox_keep_namespaces(const struct sandbox_plan *p, pid_t pid);
/* The start has failed: true if it is to be tried again, without joining. */
bool sandbox_join_no_more(struct sandbox_plan *p);

/* Namespaces were refused: for this start, and for all later ones of this process. */
void sandbox_without_namespaces(struct sandbox_plan *p);
/* Says once per process in the log which layers are in force. */
void sandbox_tell(const struct sandbox_plan *p);
#endif
