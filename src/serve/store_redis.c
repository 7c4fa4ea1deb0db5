#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "loop/net.h"
#include "loop/offload.h"
#include "serve/datadir.h"
#include "serve/machine.h"
#include "serve/store.h"

#define MAX_BYTES_DEFAULT  (INT64_C(16) << 30)
#define REPLY_BYTES        256
#define AOF_FOLDER         "appendonlydir"
#define MANIFEST_BYTES_MAX (1024 * 1024)
#define TORN_BYTES_MAX     (256 * 1024 * 1024) /* that follow the last whole command */
#define COPY_BYTES         (64 * 1024 * 1024)  /* at a time */

static int64_t max_bytes(const struct store *s)
{
    if (s->config->redis_max_bytes)
        return s->config->redis_max_bytes;
    int64_t share = machine_memory_bytes() / 10 * 6;
    return share < MAX_BYTES_DEFAULT ? share : MAX_BYTES_DEFAULT;
}

/* The append-only file holds everything durable. Keys with a TTL may be evicted when memory is
 * short, keys without one never (SYS-3). */
static const char *settings(struct task *t, const struct store *s)
{
    return arena_printf(
        task_arena(t),
        "port 0\n"
        "unixsocket %s\n"
        "unixsocketperm 700\n"
        "requirepass %s\n"
        "dir %s/redis\n"
        "daemonize no\n"
        "supervised no\n"
        "logfile \"\"\n"
        "save \"\"\n"
        "appendonly %s\n"
        "appendfsync everysec\n"
        /* One that ends in half a command is mended first, and a copy kept. */
        "aof-load-truncated %s\n"
        /* A rewrite uses a whole core. Papers are compressed already, and compressing them again
         * is half of its time; a file of this size is read in four seconds. */
        "rdbcompression no\n"
        "auto-aof-rewrite-min-size 1gb\n"
        /* A listpack is searched linearly: too slow for hundreds of prices. */
        "hash-max-listpack-entries 128\n"
        "maxmemory %lld\n"
        "maxmemory-policy volatile-lru\n",
        s->socket_path, s->secret, s->data_dir, config_persists(s->config) ? "yes" : "no",
        s->mended ? "yes" : "no", (long long)max_bytes(s));
}

static int prepare(struct task *t, struct store *s)
{
    struct arena *a = task_arena(t);
    const char *why = NULL;
    /* Debian's redis-tools has the whole server in a program of another name. */
    if (store_find_program(t, "redis-server", &s->program) &&
        store_find_program(t, "redis-check-rdb", &s->program))
        return store_fail(s, ERR_NOT_FOUND,
                          "neither redis-server nor redis-check-rdb is installed: install "
                          "redis-tools, or set MILLRACE_REDIS_URL");
    int err = datadir_secret(a, task_loop(t), s->data_dir, "redis", &s->secret, &why);
    return err ? store_fail(s, err, "%s", why) : 0;
}

static int command(struct task *t, struct store *s, struct child_spec *spec)
{
    struct arena *a = task_arena(t);
    const char *why = NULL;
    const char *file = arena_printf(a, "%s/secret/redis.conf", s->data_dir);
    int err = datadir_write(a, file, settings(t, s), &why);
    if (err)
        return store_fail(s, err, "%s", why);
    const char **argv = ARENA_ARRAY(a, const char *, 3);
    argv[0] = "redis-server"; /* argv[0] decides which program it is */
    argv[1] = file;
    spec->path = s->program;
    spec->argv = argv;
    return 0;
}

/* Sends commands and reads count replies of one line each. */
static int converse(struct task *t, int fd, const char *commands, int count, char *reply)
{
    struct watch w;
    size_t have = 0, got;
    watch_init(&w, task_loop(t), fd);
    int err = watch_write(t, &w, commands, strlen(commands));
    while (!err && count > 0 && have < REPLY_BYTES - 1) {
        err = watch_read(t, &w, reply + have, REPLY_BYTES - 1 - have, &got);
        if (!err && got == 0)
            err = ERR_CLOSED;
        for (size_t i = 0; !err && i < got; i++)
            count -= reply[have + i] == '\n';
        have += err ? 0 : got;
    }
    watch_release(&w);
    reply[have] = '\0';
    return err;
}

/* A new connection each time, as a new client would have. */
static int ping(struct task *t, struct store *s)
{
    int fd;
    char reply[REPLY_BYTES];
    int err = net_connect_unix(t, s->socket_path, &fd);
    if (err)
        return err;
    /* A limit that was changed takes effect with a reload. */
    const char *limit =
        s->state == STORE_READY
            ? "PING\r\n"
            : arena_printf(task_arena(t), "CONFIG SET maxmemory %lld\r\n", (long long)max_bytes(s));
    const char *commands = arena_printf(task_arena(t), "AUTH %s\r\n%sPING\r\n", s->secret, limit);
    err = converse(t, fd, commands, 3, reply);
    close(fd);
    if (err)
        return err;
    /* Redis with a full disk answers MISCONF to a PING, too. It is up, serves reads from memory,
     * and recovers when there is room. */
    bool full = strstr(reply, "-MISCONF ") != NULL;
    if (full != s->cannot_write)
        log_line(
            full ? LOG_ERROR : LOG_INFO, "store", "%s",
            full ? "Redis cannot write to its disk and refuses writes until it can; free some space"
                 : "Redis writes to its disk again");
    s->cannot_write = full;
    if (full || strstr(reply, "+PONG\r\n"))
        return 0;
    return strstr(reply, "-LOADING ") || strstr(reply, "-BUSY ") ? ERR_BUSY : ERR_REFUSED;
}

/* --- an append-only file that ends badly --- */

/* After a power cut a file may end in zeros: its new length was on disk, the bytes were not yet.
 * Or it ends in half a command. What Redis had written by then and the zeros did not replace stays;
 * the rest is made good as after any Redis that comes back older (docs/restart.md). */
struct aof {
    const char *manifest, *path;
    struct str name; /* of the last file, the only one that is written to */
    int64_t good;    /* bytes that are whole commands */
    int64_t size;
};

static bool find_aof(struct task *t, const struct store *s, struct aof *f)
{
    struct arena *a = task_arena(t);
    struct str text, line;
    f->manifest = arena_printf(a, "%s/redis/" AOF_FOLDER "/appendonly.aof.manifest", s->data_dir);
    if (file_read(a, f->manifest, MANIFEST_BYTES_MAX, &text))
        return false;
    f->name = STR("");
    while (text.p) {
        line = str_cut(&text, '\n');
        if (str_eq(str_cut(&line, ' '), STR("file")))
            f->name = str_cut(&line, ' ');
    }
    f->path = arena_printf(a, "%s/redis/" AOF_FOLDER "/%.*s", s->data_dir, STR_ARG(f->name));
    return str_ends(f->name, STR(".incr.aof"));
}

/* Runs Redis' own tool. fix: it asks before it cuts. */
static int run_tool(struct task *t, struct store *s, const struct aof *f, const char *tool,
                    bool fix)
{
    const char *argv[] = {"redis-check-aof", fix ? "--fix" : f->manifest, fix ? f->manifest : NULL,
                          NULL};
    int yes = memfd_create("yes", MFD_CLOEXEC);
    check(yes >= 0 && write(yes, "y\n", 2) == 2 && lseek(yes, 0, SEEK_SET) == 0);
    struct child_spec spec = {.path = tool, .argv = argv, .in_fd = yes, .death_signal = SIGKILL};
    int err = store_run(t, s, &spec);
    close(yes);
    return err;
}

/* "AOF analyzed: filename=NAME, size=580, ok_up_to=23, ok_up_to_line=19, diff=557" */
static bool read_verdict(struct str log, struct aof *f)
{
    bool found = false;
    while (log.p) {
        struct str line = str_cut(&log, '\n'), rest = line;
        if (str_find(line, f->name) < 0 || str_find(line, STR(", ok_up_to=")) < 0)
            continue;
        rest = str_skip(rest, (size_t)str_find(rest, STR("size=")) + strlen("size="));
        found = str_to_i64(str_cut(&rest, ','), &f->size);
        rest = str_skip(rest, strlen(" ok_up_to="));
        found = found && str_to_i64(str_cut(&rest, ','), &f->good);
    }
    return found && f->good >= 0 && f->good < f->size;
}

/* Whether rest is what one cut-off write leaves: half a command, or the half of a MULTI without its
 * EXEC, then zeros. If whole commands follow, the damage is not at the end: cutting there would
 * lose them, and only an operator may decide that. */
static bool is_torn(struct str rest)
{
    while (rest.n && rest.p[rest.n - 1] == '\0')
        rest.n--;
    if (str_starts(rest, STR("*1\r\n$5\r\nMULTI\r\n")))
        return str_find(rest, STR("\r\nEXEC\r\n")) < 0;
    return str_find(rest, STR("\r\n*")) < 0;
}

static bool ends_torn(const struct aof *f)
{
    size_t n = (size_t)(f->size - f->good);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char *rest = n <= TORN_BYTES_MAX ? check_memory(malloc(n)) : NULL;
    bool torn =
        rest && pread(fd, rest, n, (off_t)f->good) == (ssize_t)n && is_torn(str_from(rest, n));
    free(rest);
    close(fd);
    return torn;
}

struct copying {
    const char *from, *to;
    bool done;
};

static void copy(void *arg)
{
    struct copying *c = arg;
    int in = open(c->from, O_RDONLY | O_CLOEXEC);
    int out = open(c->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = -1;
    while (in >= 0 && out >= 0 && (n = sendfile(out, in, NULL, COPY_BYTES)) > 0)
        continue;
    c->done = n == 0 && fsync(out) == 0;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    if (out >= 0 && !c->done)
        unlink(c->to);
}

static int cut(struct task *t, struct store *s, const struct aof *f, const char *tool)
{
    struct copying c = {.from = f->path};
    c.to = arena_printf(task_arena(t), "%s.damaged-%lld", f->path,
                        (long long)loop_wall_ms(task_loop(t)));
    int err = offload(t, copy, &c);
    if (!err && !c.done)
        err = store_fail(s, ERR_IO, "it could not be copied first");
    if (!err)
        err = run_tool(t, s, f, tool, true);
    if (!err)
        log_warn("store",
                 "the append-only file of Redis ended in zeros or half a command: redis-check-aof "
                 "has cut the last %lld bytes of %s; the file as it was is %s",
                 (long long)(f->size - f->good), f->path, c.to);
    return err;
}

/* Whatever comes of it, Redis is started again: it cuts half a command by itself then, and says
 * what is to be done about the rest. */
static bool mend(struct task *t, struct store *s)
{
    struct aof f;
    const char *tool = NULL;
    if (str_find(store_log(t, s), STR("append only file")) < 0 || !find_aof(t, s, &f))
        return false;
    if (store_find_program(t, "redis-check-aof", &tool)) {
        log_error("store", "redis-check-aof is not installed, so the append-only file of Redis is "
                           "not mended");
        return true;
    }
    int err = run_tool(t, s, &f, tool, false);
    if (err == ERR_CANCELED || !read_verdict(store_log(t, s), &f))
        return err != ERR_CANCELED;
    if (!ends_torn(&f)) {
        log_error("store",
                  "%s is damaged from byte %lld on, and whole commands follow: it is not cut",
                  f.path, (long long)f.good);
        return true;
    }
    err = cut(t, s, &f, tool);
    if (err && err != ERR_CANCELED)
        log_error("store", "%s is damaged at its end and could not be cut: %s", f.path, s->problem);
    return err != ERR_CANCELED;
}

const struct store_kind store_redis = {
    .name = "redis",
    .title = "Redis",
    .exe = "redis-",
    .folder = "redis",
    .alarm = " # ",
    .prepare = prepare,
    .command = command,
    .ping = ping,
    .mend = mend,
};
