#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "loop/sandbox_private.h"

#define OVERFLOW_ID 65534 /* of a user and a group that own no files */

/* --- seccomp: a list of allowed calls --- */

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system calls of this processor are not known here"
#endif

/* What a program needs that reads files and its input, computes, and writes to its output. Calls
 * that look at their arguments are in put_checked. */
static const int allowed[] = {
    /* bytes and files; nothing can be opened for writing */
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_preadv,
    SYS_write,
    SYS_writev,
    SYS_lseek,
    SYS_close,
    SYS_close_range,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_fadvise64,
    SYS_readahead,
    SYS_umask,
    /* memory */
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mincore,
    SYS_membarrier,
    /* waiting */
    SYS_futex,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_sched_yield,
    SYS_restart_syscall,
    /* clocks and randomness */
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrandom,
    /* itself */
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_uname,
    SYS_sysinfo,
    SYS_getcpu,
    SYS_sched_getaffinity,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
#ifdef __x86_64__
    SYS_access,
    SYS_arch_prctl,
    SYS_dup2,
    SYS_epoll_wait,
    SYS_getdents,
    SYS_lstat,
    SYS_pipe,
    SYS_poll,
    SYS_readlink,
    SYS_select,
    SYS_stat,
    SYS_time,
#endif
};

#define ALLOW         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define KILL          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define LOAD(what)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (what))
#define NUMBER        offsetof(struct seccomp_data, nr)
/* The low half of an argument: none of those that are looked at has more. */
#define ARGUMENT(i)           (offsetof(struct seccomp_data, args) + 8 * (i))
#define IF_EQUAL(k, yes, no)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))
#define IF_ANY(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define IF_FROM(k, yes, no)   BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (k), (yes), (no))
#define IF_ABOVE(k, yes, no)  BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (k), (yes), (no))
#define MASK(bits)            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits))
#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static void put(struct sandbox_plan *p, const struct sock_filter *code, size_t n)
{
    check(p->filter_count + n <= SANDBOX_FILTER_MAX);
    memcpy(p->filter + p->filter_count, code, n * sizeof *code);
    p->filter_count += n;
}

#define PUT(p, ...)                                                                                \
    put((p), (const struct sock_filter[]){__VA_ARGS__},                                            \
        sizeof((struct sock_filter[]){__VA_ARGS__}) / sizeof(struct sock_filter))

static void put_open(struct sandbox_plan *p, unsigned call, unsigned flags)
{
    PUT(p, IF_EQUAL(call, 0, 4), LOAD(ARGUMENT(flags)),
        IF_ANY(O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, 0, 1), REFUSE(EPERM), ALLOW);
}

/* Each block begins with the number of the call, skips itself if it is another one, and ends. */
static void put_checked(struct sandbox_plan *p)
{
    put_open(p, SYS_openat, 2);
#ifdef SYS_open
    put_open(p, SYS_open, 1);
#endif
    /* Limits of itself alone. */
    PUT(p, IF_EQUAL(SYS_prlimit64, 0, 4), LOAD(ARGUMENT(0)), IF_EQUAL(0, 0, 1), ALLOW,
        REFUSE(EPERM));
    /* abort() signals itself; sandbox_enter puts its pid here. */
    p->filter_self = p->filter_count + 2;
    PUT(p, IF_EQUAL(SYS_tgkill, 0, 4), LOAD(ARGUMENT(0)), IF_EQUAL(0, 0, 1), ALLOW, REFUSE(EPERM));
    /* F_DUPFD to F_SETFL; F_SETOWN and others could signal another process. */
    PUT(p, IF_EQUAL(SYS_fcntl, 0, 5), LOAD(ARGUMENT(1)), IF_EQUAL(F_DUPFD_CLOEXEC, 1, 0),
        IF_ABOVE(F_SETFL, 1, 0), ALLOW, REFUSE(EPERM));
    if (p->wanted->threads)
        PUT(p, IF_EQUAL(SYS_clone, 0, 5), LOAD(ARGUMENT(0)), MASK(CLONE_THREAD | NAMESPACES),
            IF_EQUAL(CLONE_THREAD, 0, 1), ALLOW, REFUSE(EPERM));
    /* The C library tries clone next. */
    PUT(p, IF_EQUAL(SYS_clone3, 0, 1), REFUSE(ENOSYS));
    /* What isatty() expects of a pipe. */
    PUT(p, IF_EQUAL(SYS_ioctl, 0, 1), REFUSE(ENOTTY));
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Allows n calls, in order, and refuses all others. A tree, because the kernel runs the filter once
 * for every system call there is when it is installed: a list takes a tenth of a millisecond. */
static void put_allowed(struct sandbox_plan *p, const int *calls, size_t n)
{
    if (n <= 2) {
        for (size_t i = 0; i < n; i++)
            PUT(p, IF_EQUAL((unsigned)calls[i], 0, 1), ALLOW);
        PUT(p, REFUSE(EPERM));
        return;
    }
    size_t branch = p->filter_count, half = n / 2;
    PUT(p, IF_FROM((unsigned)calls[half], 0, 0));
    put_allowed(p, calls, half);
    size_t skipped = p->filter_count - branch - 1;
    check(skipped <= UINT8_MAX);
    p->filter[branch].jt = (uint8_t)skipped;
    put_allowed(p, calls + half, n - half);
}

static void make_filter(struct sandbox_plan *p)
{
    int sorted[sizeof allowed / sizeof *allowed];
    memcpy(sorted, allowed, sizeof allowed);
    qsort(sorted, sizeof sorted / sizeof *sorted, sizeof *sorted, by_number);
    PUT(p, LOAD(offsetof(struct seccomp_data, arch)), IF_EQUAL(ARCHITECTURE, 1, 0), KILL,
        LOAD(NUMBER));
    put_checked(p);
    put_allowed(p, sorted, sizeof sorted / sizeof *sorted);
}

/* --- Landlock: which files --- */

struct landlock_ruleset { /* as of Landlock 6; what is zero is not asked for */
    uint64_t fs, net, scoped;
};
struct landlock_path {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

enum { LANDLOCK_EXECUTE = 1, LANDLOCK_READ_FILE = 4, LANDLOCK_READ_DIR = 8 };
#define LANDLOCK_VERSION 1 /* flag: how new it is */
#define LANDLOCK_PATH    1 /* kind of rule */

static uint64_t landlock_fs_rights(int abi)
{
    return abi >= 5 ? 0xffff : abi >= 3 ? 0x7fff : abi == 2 ? 0x3fff : 0x1fff;
}

static int allow_path(int ruleset, const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    int dir = openat(fd, ".", O_PATH | O_CLOEXEC);
    struct landlock_path rule = {LANDLOCK_EXECUTE | LANDLOCK_READ_FILE, fd};
    if (dir >= 0) {
        rule.allowed |= LANDLOCK_READ_DIR;
        close(dir);
    }
    int error = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_PATH, &rule, 0) < 0 ? errno : 0;
    close(fd);
    return error;
}

/* Everything that Landlock knows is refused but reading and running these paths. */
static int make_ruleset(struct sandbox_plan *p, const char *program)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
    if (abi < 1) {
        p->layers &= ~SANDBOX_LANDLOCK;
        return 0;
    }
    p->landlock_abi = abi;
    struct landlock_ruleset all = {
        .fs = landlock_fs_rights(abi), .net = abi >= 4 ? 3 : 0, .scoped = abi >= 6 ? 3 : 0};
    size_t known = abi >= 6 ? sizeof all : abi >= 4 ? 16 : 8;
    p->ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &all, known, 0);
    if (p->ruleset_fd < 0)
        return errno;
    int error = allow_path(p->ruleset_fd, program);
    for (const char *const *path = p->wanted->readable; !error && path && *path; path++)
        error = allow_path(p->ruleset_fd, *path);
    return error;
}

/* --- preparing --- */

/* What the kernel has refused once it will refuse again: one failed clone per process. */
static bool namespaces_refused, told;

/* Of a program that was started, for the life of this process. */
static int kept_net = -1, kept_user = -1;
static uid_t kept_by;

static void forget_namespaces(void)
{
    if (kept_net >= 0)
        close(kept_net);
    if (kept_user >= 0)
        close(kept_user);
    kept_net = kept_user = -1;
}

static int open_namespace(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void sandbox_keep_namespaces(const struct sandbox_plan *p, pid_t pid)
{
    if (!p->clone_flags)
        return;
    bool user = p->clone_flags & CLONE_NEWUSER;
    forget_namespaces();
    kept_by = geteuid();
    kept_net = open_namespace(pid, "net");
    kept_user = user ? open_namespace(pid, "user") : -1;
    if (kept_net < 0 || (user && kept_user < 0))
        forget_namespaces();
}

bool sandbox_join_no_more(struct sandbox_plan *p)
{
    bool joins = p->net_fd >= 0;
    forget_namespaces();
    p->net_fd = p->user_fd = -1;
    if (joins)
        p->clone_flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    return joins;
}

/* Root needs no user namespace, and could not become another user in it. */
static void plan_namespaces(struct sandbox_plan *p)
{
    bool joins = kept_net >= 0 && kept_by == geteuid();
    p->net_fd = joins ? kept_net : -1;
    p->user_fd = joins ? kept_user : -1;
    if (!joins)
        p->clone_flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
}

int sandbox_prepare(struct sandbox_plan *p, const struct sandbox *wanted, const char *program)
{
    p->wanted = wanted;
    p->layers = wanted->layers;
    p->clone_flags = 0;
    p->net_fd = p->user_fd = -1;
    p->ruleset_fd = -1;
    p->landlock_abi = 0;
    p->filter_count = 0;
    if (namespaces_refused)
        p->layers &= ~SANDBOX_NAMESPACES;
    if (p->layers & SANDBOX_NAMESPACES)
        plan_namespaces(p);
    if (p->layers & SANDBOX_SECCOMP)
        make_filter(p);
    int error = p->layers & SANDBOX_LANDLOCK ? make_ruleset(p, program) : 0;
    if (error)
        sandbox_release(p);
    return error;
}

void sandbox_release(struct sandbox_plan *p)
{
    if (p->ruleset_fd >= 0)
        close(p->ruleset_fd);
    p->ruleset_fd = -1;
}

void sandbox_without_namespaces(struct sandbox_plan *p)
{
    namespaces_refused = true;
    p->layers &= ~SANDBOX_NAMESPACES;
    p->clone_flags = 0;
}

void sandbox_tell(const struct sandbox_plan *p)
{
    if (told || p->wanted->layers != SANDBOX_ALL)
        return;
    told = true;
    log_info("sandbox", "child processes run with limits, seccomp, %s, %s",
             p->layers & SANDBOX_LANDLOCK ? "Landlock"
                                          : "but without Landlock: the kernel lacks or refuses it",
             p->layers & SANDBOX_NAMESPACES
                 ? "and a network namespace of their own"
                 : "but without a network namespace: it was refused; seccomp forbids sockets");
}

/* --- entering, in the child --- */

IN_CHILD static bool limit(int what, int64_t most)
{
    struct rlimit old, now = {(rlim_t)most, (rlim_t)most};
    if (syscall(SYS_prlimit64, 0, what, NULL, &old) < 0)
        return false;
    if (what == RLIMIT_CPU)
        now.rlim_max++; /* SIGXCPU first, then SIGKILL */
    if (old.rlim_max != RLIM_INFINITY && now.rlim_max > old.rlim_max)
        now.rlim_max = old.rlim_max;
    if (now.rlim_cur > now.rlim_max)
        now.rlim_cur = now.rlim_max;
    return syscall(SYS_prlimit64, 0, what, &now, NULL) == 0;
}

IN_CHILD static bool enter_limits(const struct sandbox *s)
{
    return limit(RLIMIT_AS, s->memory_bytes) && limit(RLIMIT_CPU, s->cpu_seconds) &&
           limit(RLIMIT_STACK, 8 << 20) && limit(RLIMIT_NOFILE, PROCESS_OPEN_FILES_MAX) &&
           limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_MEMLOCK, 0) &&
           (s->threads || limit(RLIMIT_NPROC, 0));
}

/* When memory is short the kernel should kill this one first. Not shared with the parent, although
 * its memory is: the kernel makes an exception for vfork. */
IN_CHILD static void offer_to_oom_killer(void)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* no /proc here: then as likely as the parent */
    syscall(SYS_write, fd, "1000", 4);
    syscall(SYS_close, fd);
}

/* By plain system calls: the C library's would change all threads of the parent. */
IN_CHILD static bool leave_root(void)
{
    return syscall(SYS_geteuid) != 0 ||
           (syscall(SYS_setgroups, 0, NULL) == 0 &&
            syscall(SYS_setresgid, OVERFLOW_ID, OVERFLOW_ID, OVERFLOW_ID) == 0 &&
            syscall(SYS_setresuid, OVERFLOW_ID, OVERFLOW_ID, OVERFLOW_ID) == 0);
}

IN_CHILD static bool join_namespaces(const struct sandbox_plan *p)
{
    return (p->user_fd < 0 || syscall(SYS_setns, p->user_fd, CLONE_NEWUSER) == 0) &&
           (p->net_fd < 0 || syscall(SYS_setns, p->net_fd, CLONE_NEWNET) == 0);
}

IN_CHILD const char *sandbox_begin(const struct sandbox_plan *p)
{
    if (p->layers & SANDBOX_LIMITS)
        offer_to_oom_killer();
    if (!join_namespaces(p))
        return "namespaces";
    /* A user namespace without maps has no root, neither outside nor, after exec, inside. */
    bool user = (p->clone_flags & CLONE_NEWUSER) || p->user_fd >= 0;
    return user || leave_root() ? NULL : "change of user";
}

IN_CHILD static bool enter_seccomp(struct sandbox_plan *p)
{
    struct sock_fprog program = {(unsigned short)p->filter_count, p->filter};
    p->filter[p->filter_self].k = (unsigned)syscall(SYS_getpid);
    /* Not seccomp(2), which some units of systemd refuse. */
    return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

IN_CHILD const char *sandbox_enter(struct sandbox_plan *p)
{
    if ((p->layers & SANDBOX_LIMITS) && !enter_limits(p->wanted))
        return "limits";
    if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return "no_new_privs";
    if ((p->layers & SANDBOX_LANDLOCK) && syscall(SYS_landlock_restrict_self, p->ruleset_fd, 0) < 0)
        return "Landlock";
    if ((p->layers & SANDBOX_SECCOMP) && !enter_seccomp(p))
        return "seccomp";
    return NULL;
}
