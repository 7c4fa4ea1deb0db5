#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/net.h"
#include "serve/datadir.h"
#include "serve/machine.h"
#include "serve/store.h"

#define MAX_BYTES_DEFAULT (INT64_C(16) << 30)
#define REPLY_BYTES       256

static int64_t max_bytes(const struct store *s)
{
    if (s->config->redis_max_bytes)
        return s->config->redis_max_bytes;
    int64_t share = machine_memory_bytes() / 10 * 6;
    return share < MAX_BYTES_DEFAULT ? share : MAX_BYTES_DEFAULT;
}

/* Everything that matters is in the append-only file; nothing with a TTL is worth more than
 * memory, and nothing without one may be evicted (SYS-3). */
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
        /* A rewrite takes a core for as long as it lasts. Papers are packed already, and trying to pack them again
         * is half of it; a file of this size is read in four seconds. */
        "rdbcompression no\n"
        "auto-aof-rewrite-min-size 1gb\n"
        /* Searched from the front for every field: hundreds of prices take too long. */
        "hash-max-listpack-entries 128\n"
        "maxmemory %lld\n"
        "maxmemory-policy volatile-lru\n",
        s->socket_path, s->secret, s->data_dir, config_persists(s->config) ? "yes" : "no",
        (long long)max_bytes(s));
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
    argv[0] = "redis-server"; /* what it is called decides what it is */
    argv[1] = file;
    spec->path = s->program;
    spec->argv = argv;
    return 0;
}

/* Sends commands, reads until the last of count replies is complete; each is one line. */
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

/* A connection of its own each time, as a client that comes anew would have it. */
static int ping(struct task *t, struct store *s)
{
    int fd;
    char reply[REPLY_BYTES];
    int err = net_connect_unix(t, s->socket_path, &fd);
    if (err)
        return err;
    /* Setting the limit lets a changed one take effect with a reload. */
    const char *limit =
        s->state == STORE_READY
            ? "PING\r\n"
            : arena_printf(task_arena(t), "CONFIG SET maxmemory %lld\r\n", (long long)max_bytes(s));
    const char *commands = arena_printf(task_arena(t), "AUTH %s\r\n%sPING\r\n", s->secret, limit);
    err = converse(t, fd, commands, 3, reply);
    close(fd);
    if (err)
        return err;
    /* One whose disk is full says so to a PING, too: it lives, has what is in memory, and goes on when there is room. */
    bool full = strstr(reply, "-MISCONF ") != NULL;
    if (full != s->cannot_write)
        log_line(full ? LOG_ERROR : LOG_INFO, "store", "%s",
                 full ? "Redis cannot write to its disk, and changes nothing until it can"
                      : "Redis writes to its disk again");
    s->cannot_write = full;
    if (full || strstr(reply, "+PONG\r\n"))
        return 0;
    return strstr(reply, "-LOADING ") || strstr(reply, "-BUSY ") ? ERR_BUSY : ERR_REFUSED;
}

const struct store_kind store_redis = {
    .name = "redis",
    .title = "Redis",
    .exe = "redis-",
    .folder = "redis",
    .prepare = prepare,
    .command = command,
    .ping = ping,
};
