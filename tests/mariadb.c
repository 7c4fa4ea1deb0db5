#include "tests/mariadb.h"

#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

#define START_MS 30000
#define STEP_US  10000
#define ARGS_MAX 40

struct args {
    char text[ARGS_MAX][160];
    char *argv[ARGS_MAX + 1];
    int count;
};

__attribute__((format(printf, 2, 3))) static void add(struct args *a, const char *fmt, ...)
{
    check(a->count < ARGS_MAX);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->text[a->count], sizeof a->text[0], fmt, ap);
    va_end(ap);
    a->argv[a->count] = a->text[a->count];
    a->argv[++a->count] = NULL;
}

/* Servers live in sbin, which is not in everybody's PATH. */
static _Noreturn void exec_in_child(const struct mariadb *m, struct args *a)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char path[100];
    snprintf(path, sizeof path, "%s/log", m->dir);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(none, 0);
    dup2(log, 1);
    dup2(log, 2);
    snprintf(path, sizeof path, "/usr/sbin/%s", a->argv[0]);
    execv(path, a->argv);
    execvp(a->argv[0], a->argv);
    _exit(127);
}

static pid_t start(const struct mariadb *m, struct args *a)
{
    fflush(stdout);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        exec_in_child(m, a);
    return pid;
}

static void show_log(const struct mariadb *m)
{
    char line[512], path[100];
    snprintf(path, sizeof path, "%s/log", m->dir);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        printf("# %s", line);
    if (f)
        fclose(f);
}

static _Noreturn void give_up(const struct mariadb *m, const char *what)
{
    show_log(m);
    printf("Bail out! %s\n", what);
    exit(1);
}

static void run(const struct mariadb *m, struct args *a)
{
    int status;
    pid_t pid = start(m, a);
    check(waitpid(pid, &status, 0) == pid);
    if (status != 0)
        give_up(m, a->argv[0]);
}

static int free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    check(bind(fd, (struct sockaddr *)&in, n) == 0);
    check(getsockname(fd, (struct sockaddr *)&in, &n) == 0);
    close(fd);
    return ntohs(in.sin_port);
}

static void make_folder(const struct mariadb *m)
{
    struct args a = {.count = 0};
    add(&a, "mariadb-install-db");
    add(&a, "--no-defaults");
    add(&a, "--datadir=%s/data", m->dir);
    /* A starting server clears the temporary tables out of its directory, whosever they are. */
    add(&a, "--tmpdir=%s", m->dir);
    add(&a, "--auth-root-authentication-method=normal");
    add(&a, "--skip-test-db");
    add(&a, "--innodb-log-file-size=16M");
    if (geteuid() == 0)
        add(&a, "--user=root");
    run(m, &a);
    char path[100];
    snprintf(path, sizeof path, "%s/data/test", m->dir);
    check(mkdir(path, 0700) == 0); /* which makes it a database */
}

static void copy(const struct mariadb *m, char *from, char *to)
{
    struct args a = {.argv = {"cp", "-aT", "--sparse=always", from, to}};
    run(m, &a);
}

/* A new folder takes MariaDB seconds: the first program of a build makes it, and leaves a copy
 * beside itself for the others. */
static void install(const struct mariadb *m)
{
    char data[100], self[1000], made[1100], new[1200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    check(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(data, sizeof data, "%s/data", m->dir);
    snprintf(made, sizeof made, "%s/mariadb.template", self);
    snprintf(new, sizeof new, "%s.new", made);
    int lock = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(lock >= 0 && flock(lock, LOCK_EX) == 0);
    if (access(made, R_OK) != 0) {
        make_folder(m);
        copy(m, data, new);
        check(rename(new, made) == 0);
    } else {
        copy(m, made, data);
    }
    close(lock);
}

static void make_certificate(const struct mariadb *m)
{
    struct args a = {.count = 0};
    add(&a, "openssl");
    add(&a, "req");
    add(&a, "-x509");
    add(&a, "-newkey");
    add(&a, "ec");
    add(&a, "-pkeyopt");
    add(&a, "ec_paramgen_curve:prime256v1");
    add(&a, "-nodes");
    add(&a, "-days");
    add(&a, "2");
    add(&a, "-subj");
    add(&a, "/CN=localhost");
    add(&a, "-addext");
    add(&a, "subjectAltName=DNS:localhost");
    add(&a, "-keyout");
    add(&a, "%s/key.pem", m->dir);
    add(&a, "-out");
    add(&a, "%s/cert.pem", m->dir);
    run(m, &a);
}

static void add_network(const struct mariadb *m, struct args *a)
{
    char key[100];
    snprintf(key, sizeof key, "%s/key.pem", m->dir);
    if (m->port == 0) {
        add(a, "--skip-networking");
    } else {
        add(a, "--bind-address=127.0.0.1");
        add(a, "--port=%d", m->port);
        add(a, "--skip-name-resolve");
    }
    if (access(key, R_OK) == 0) {
        add(a, "--ssl-key=%s", key);
        add(a, "--ssl-cert=%s/cert.pem", m->dir);
    }
}

void mariadb_spawn(struct mariadb *m)
{
    check(m->pid == 0);
    struct args a = {.count = 0};
    add(&a, "mariadbd");
    add(&a, "--no-defaults");
    add(&a, "--datadir=%s/data", m->dir);
    add(&a, "--tmpdir=%s", m->dir);
    add(&a, "--socket=%s", m->socket);
    add(&a, "--pid-file=%s/pid", m->dir);
    add(&a, "--innodb-buffer-pool-size=32M");
    add(&a, "--innodb-log-file-size=16M");
    add(&a, "--key-buffer-size=1M");
    add(&a, "--aria-pagecache-buffer-size=4M");
    add(&a, "--performance-schema=OFF");
    add(&a, "--max-connections=100");
    if (geteuid() == 0)
        add(&a, "--user=root");
    add_network(m, &a);
    for (const char *const *arg = m->args; arg && *arg; arg++)
        add(&a, "%s", *arg);
    unlink(m->socket); /* a killed server leaves it behind */
    m->pid = start(m, &a);
}

static bool answers(const struct mariadb *m)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "%s", m->socket);
    char first;
    bool yes = connect(fd, (struct sockaddr *)&un, sizeof un) == 0 && read(fd, &first, 1) == 1;
    close(fd);
    return yes;
}

void mariadb_restart(struct mariadb *m)
{
    mariadb_spawn(m);
    for (int i = 0; i < START_MS * 1000 / STEP_US; i++) {
        if (answers(m))
            return;
        if (waitpid(m->pid, NULL, WNOHANG) != 0)
            give_up(m, "mariadbd has ended");
        usleep(STEP_US);
    }
    give_up(m, "mariadbd does not answer");
}

void mariadb_start(struct mariadb *m, const struct mariadb_options *o)
{
    *m = (struct mariadb){.args = o ? o->args : NULL};
    const char *tmp = getenv("TMPDIR");
    snprintf(m->dir, sizeof m->dir, "%s/mariadb-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    check(mkdtemp(m->dir));
    snprintf(m->socket, sizeof m->socket, "%s/sock", m->dir);
    snprintf(m->url, sizeof m->url, "unix:%s?user=root&database=test", m->socket);
    if (o && o->tcp)
        m->port = free_port();
    install(m);
    if (o && o->tls)
        make_certificate(m);
    mariadb_restart(m);
}

static void end(struct mariadb *m, int signo)
{
    if (m->pid == 0)
        return;
    kill(m->pid, signo);
    kill(m->pid, SIGCONT); /* a stopped one could not obey */
    check(waitpid(m->pid, NULL, 0) == m->pid);
    m->pid = 0;
}

void mariadb_stop(struct mariadb *m)
{
    end(m, SIGTERM);
}

void mariadb_kill(struct mariadb *m)
{
    end(m, SIGKILL);
}

void mariadb_freeze(struct mariadb *m)
{
    int status;
    kill(m->pid, SIGSTOP);
    check(waitpid(m->pid, &status, WUNTRACED) == m->pid && WIFSTOPPED(status));
}

void mariadb_thaw(struct mariadb *m)
{
    kill(m->pid, SIGCONT);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void mariadb_release(struct mariadb *m)
{
    mariadb_kill(m);
    nftw(m->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
