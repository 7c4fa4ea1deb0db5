#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/setup/stores.h"
#include "serve/datadir.h"
#include "serve/machine.h"
#include "serve/store.h"

#define FIRST_SPACE_BYTES (INT64_C(256) << 20)
#define BUFFER_LEAST      (INT64_C(64) << 20)
#define BUFFER_MOST       (INT64_C(4) << 30)
#define OTHER_CONNECTIONS 30
#define COLLATION         "utf8mb4_uca1400_nopad_ai_ci" /* nearest to MySQL's 0900_ai_ci */

static int64_t buffer_bytes(const struct store *s)
{
    if (s->config->mysql_buffer_bytes)
        return s->config->mysql_buffer_bytes;
    int64_t share = machine_memory_bytes() / 8;
    return share < BUFFER_LEAST ? BUFFER_LEAST : share > BUFFER_MOST ? BUFFER_MOST : share;
}

/* --- the first database --- */

static int fill_folder(struct task *t, struct store *s, const char *folder)
{
    struct arena *a = task_arena(t);
    const char *program, *why = NULL;
    int err = datadir_space(a, s->data_dir, FIRST_SPACE_BYTES, "a new MariaDB", &why);
    if (err)
        return store_fail(s, err, "%s", why);
    if (store_find_program(t, "mariadb-install-db", &program))
        return store_fail(s, ERR_NOT_FOUND, "mariadb-install-db is not installed");
    /* Without --user: with it, the script changes owners outside of the folder. It runs as the user
     * of this process, root included. */
    const char *argv[] = {
        program,
        "--no-defaults",
        "--force", /* skips the lookup of the host name */
        "--skip-test-db",
        "--skip-name-resolve",
        arena_printf(a, "--auth-root-socket-user=%s", s->user->name),
        arena_printf(a, "--datadir=%s", folder),
        /* In a shared one, every other mariadbd that starts would remove its tables. */
        arena_printf(a, "--tmpdir=%s/mariadb/tmp", s->data_dir),
        NULL,
    };
    struct child_spec spec = {.path = program, .argv = argv, .death_signal = SIGKILL};
    log_info("store", "making a new MariaDB in %s/mariadb", s->data_dir);
    return store_run(t, s, &spec);
}

/* Built aside and renamed when complete, so that an interrupted first start leaves nothing that
 * looks like a database. The name is new each time: a process of a killed supervisor may still
 * write to the old one. */
static int make_database(struct task *t, struct store *s)
{
    struct arena *a = task_arena(t);
    const char *data = arena_printf(a, "%s/mariadb/data", s->data_dir);
    const char *parts = arena_printf(a, "%s/mariadb/new", s->data_dir);
    const char *fresh =
        arena_printf(a, "%s/%llx", parts, (unsigned long long)loop_random(task_loop(t)));
    if (access(data, F_OK) == 0)
        return 0;
    datadir_remove(parts);
    if ((mkdir(parts, 0700) < 0 && errno != EEXIST) || mkdir(fresh, 0700) < 0)
        return store_fail(s, ERR_IO, "%s: %s", fresh, strerror(errno));
    int err = fill_folder(t, s, fresh);
    if (!err && rename(fresh, data) < 0)
        err = store_fail(s, ERR_IO, "%s: %s", data, strerror(errno));
    datadir_remove(parts);
    return err;
}

/* Run by every start, so that a lost password file is replaced. */
static int write_init_file(struct task *t, struct store *s, const char *path)
{
    const char *why = NULL;
    const char *text = arena_printf(
        task_arena(t),
        "CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE " COLLATION ";\n"
        "CREATE USER IF NOT EXISTS '%s'@'localhost' IDENTIFIED BY '%s';\n"
        "ALTER USER '%s'@'localhost' IDENTIFIED BY '%s';\n"
        "GRANT ALL PRIVILEGES ON `%s`.* TO '%s'@'localhost';\n",
        STORES_MYSQL_DATABASE, STORES_MYSQL_USER, s->secret, STORES_MYSQL_USER, s->secret,
        STORES_MYSQL_DATABASE, STORES_MYSQL_USER);
    int err = datadir_write(task_arena(t), path, text, &why);
    return err ? store_fail(s, err, "%s", why) : 0;
}

static int prepare(struct task *t, struct store *s)
{
    const char *why = NULL;
    if (store_find_program(t, "mariadbd", &s->program))
        return store_fail(s, ERR_NOT_FOUND,
                          "mariadbd is not installed: install mariadb-server-core, or set "
                          "MILLRACE_MYSQL_URL");
    int err = datadir_secret(task_arena(t), task_loop(t), s->data_dir, "mariadb", &s->secret, &why);
    if (err)
        return store_fail(s, err, "%s", why);
    const char *tmp = arena_printf(task_arena(t), "%s/mariadb/tmp", s->data_dir);
    if (mkdir(tmp, 0700) < 0 && errno != EEXIST)
        return store_fail(s, ERR_IO, "%s: %s", tmp, strerror(errno));
    return make_database(t, s);
}

/* --- running it --- */

static int command(struct task *t, struct store *s, struct child_spec *spec)
{
    struct arena *a = task_arena(t);
    const char *init = arena_printf(a, "%s/secret/mariadb.sql", s->data_dir);
    int err = write_init_file(t, s, init);
    if (err)
        return err;
    /* During a reload two sets of nodes are connected. */
    int64_t connections = 2 * (int64_t)s->nodes * s->config->mysql_connections + OTHER_CONNECTIONS;
    const char *options[] = {
        "mariadbd",
        "--no-defaults",
        arena_printf(a, "--datadir=%s/mariadb/data", s->data_dir),
        arena_printf(a, "--tmpdir=%s/mariadb/tmp", s->data_dir),
        arena_printf(a, "--socket=%s", s->socket_path),
        arena_printf(a, "--pid-file=%s/mariadb/mariadbd.pid", s->data_dir),
        arena_printf(a, "--init-file=%s", init),
        "--skip-networking",
        "--skip-name-resolve",
        "--skip-symbolic-links",
        "--local-infile=0",
        "--character-set-server=utf8mb4",
        "--collation-server=" COLLATION,
        "--max-allowed-packet=64M",
        arena_printf(a, "--max-connections=%lld", (long long)connections),
        arena_printf(a, "--innodb-buffer-pool-size=%lld", (long long)buffer_bytes(s)),
        "--innodb-flush-log-at-trx-commit=1", /* money: a commit is on disk */
        geteuid() == 0 ? "--user=root" : NULL,
        NULL,
    };
    spec->path = s->program;
    spec->argv = memcpy(arena_alloc(a, sizeof options), options, sizeof options);
    return 0;
}

static int ping(struct task *t, struct store *s)
{
    if (!s->sql) {
        if (access(s->socket_path, F_OK) < 0)
            return ERR_UNAVAILABLE; /* a failed connection would be logged */
        struct sql_options o = {.url = stores_mysql_url(task_arena(t), s->data_dir),
                                .password = s->secret,
                                .connections_max = 1};
        s->sql = sql_pool_new(task_loop(t), &o);
    }
    return sql_call(t, s->sql, NULL, "SELECT 1");
}

static void hang_up(struct store *s)
{
    if (s->sql)
        sql_pool_free(s->sql);
    s->sql = NULL;
}

const struct store_kind store_mariadb = {
    .name = "mariadb",
    .title = "MariaDB",
    .exe = "mariadbd",
    .folder = "mariadb/data",
    .alarm = "ERROR",
    .start_first = true, /* SIGTERM to a starting mariadbd makes it hang for good (10.11) */
    .prepare = prepare,
    .command = command,
    .ping = ping,
    .hang_up = hang_up,
};
