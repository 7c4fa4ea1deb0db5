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
        /* A rewrite uses a whole core. Papers are compressed already, and compressing them again
         * is half of its time; a file of this size is read in four seconds. */
        "rdbcompression no\n"
        "auto-aof-rewrite-min-size 1gb\n"
        /* A listpack is searched linearly: too slow for hundreds of prices. */
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

const struct store_kind store_redis = {
    .name = "redis",
    .title = "Redis",
    .exe = "redis-",
    .folder = "redis",
    .prepare = prepare,
    .command = command,
    .ping = ping,
};
