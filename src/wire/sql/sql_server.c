/* The library's handle, its options, and the two calls that block and so run on threads:
 *
 *  - connecting with TLS. The library's non-blocking handshake polls the socket by itself, which
 *    would stop the loop;
 *  - KILL of a statement after its caller has given up. The server does not read its socket while
 *    it works, so KILL needs a connection of its own; a task cannot send it, because it may outlive
 *    neither its group nor the pool. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "wire/sql/sql_conn.h"

#define THREAD_STACK_BYTES (256 * 1024)
#define RUNNING_BYTES_MAX  100

struct sql_server *sql_server_new(const char *url, const char *password, int64_t connect_ms)
{
    struct sql_server *s = check_memory(calloc(1, sizeof *s));
    arena_init(&s->arena);
    check(!sql_url_parse(&s->arena, url, &s->url)); /* the configuration was checked */
    const char *from = password && !s->url.password[0] ? password : s->url.password;
    s->url.password = arena_strdup(&s->arena, from); /* a copy, which is wiped in the end */
    s->connect_s = (unsigned int)((connect_ms + 999) / 1000);
    atomic_init(&s->users, 1);
    return s;
}

void sql_server_drop(struct sql_server *s)
{
    if (atomic_fetch_sub(&s->users, 1) > 1)
        return;
    explicit_bzero((char *)(uintptr_t)s->url.password, strlen(s->url.password));
    arena_release(&s->arena);
    free(s);
}

/* Set in either case: newer versions of the library demand TLS by default. */
static void set_tls(const struct sql_url *u, MYSQL *db)
{
    const my_bool enforce = u->tls != SQL_TLS_OFF, verify = u->tls == SQL_TLS_VERIFY;
    mysql_options(db, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_options(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    if (u->ca_file)
        mysql_options(db, MYSQL_OPT_SSL_CA, u->ca_file);
}

MYSQL *sql_server_handle(const struct sql_server *s)
{
    MYSQL *db = check_memory(mysql_init(NULL));
    const unsigned int no_infile = 0,
                       protocol = s->url.socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    const my_bool no = 0;
    const size_t stack_bytes = SQL_LIBRARY_STACK_BYTES;
    mysql_options(db, MYSQL_OPT_NONBLOCK, &stack_bytes);
    mysql_options(db, MYSQL_OPT_PROTOCOL, &protocol);
    /* A server must not be able to read files of this machine. */
    mysql_options(db, MYSQL_OPT_LOCAL_INFILE, &no_infile);
    mysql_options(db, MYSQL_REPORT_DATA_TRUNCATION, &no);
    mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    /* utf8mb4_bin is in MySQL 8 and MariaDB alike, compares values without a column byte by byte
     * and yields to the collation of any column. */
    mysql_options(db, MYSQL_INIT_COMMAND, "SET NAMES utf8mb4 COLLATE utf8mb4_bin");
    /* sql_each's row may pause for longer than the minute that servers allow. */
    mysql_options(db, MYSQL_INIT_COMMAND,
                  "SET sql_mode = 'TRADITIONAL', time_zone = '+00:00', autocommit = 1,"
                  " net_write_timeout = 600");
    set_tls(&s->url, db);
    return db;
}

const char *sql_server_dial(const struct sql_server *s, size_t place, MYSQL *db)
{
    const struct sql_url *u = &s->url;
    const struct sql_place *at = &u->places[place];
    const unsigned int io_s = s->connect_s;
    mysql_options(db, MYSQL_OPT_CONNECT_TIMEOUT, &io_s);
    mysql_options(db, MYSQL_OPT_READ_TIMEOUT, &io_s);
    mysql_options(db, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
    return mysql_real_connect(db, at->host, u->user, u->password, u->database, at->port, u->socket,
                              CLIENT_REMEMBER_OPTIONS)
               ? NULL
               : mysql_error(db);
}

struct kill {
    struct sql_server *server;
    size_t place;
    unsigned long thread_id;
    char running[RUNNING_BYTES_MAX + 1]; /* how its statement begins */
};

static bool send(MYSQL *db, const struct buf *command)
{
    struct str s = buf_str(command);
    return mysql_send_query(db, s.p, s.n) == 0 && mysql_read_query_result(db) == 0;
}

/* The server may be another one by now, behind the same address or after a restart, and the id
 * may belong to another connection there. */
static bool still_there(MYSQL *db, const struct kill *k)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b,
               "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %lu"
               " AND CAST(LEFT(INFO, %zu) AS BINARY) = x'",
               k->thread_id, strlen(k->running));
    for (const char *p = k->running; *p; p++)
        buf_printf(&b, "%02x", (unsigned char)*p);
    buf_add_char(&b, '\'');
    MYSQL_RES *rows = send(db, &b) ? mysql_store_result(db) : NULL;
    bool found = rows && mysql_num_rows(rows) == 1;
    if (rows)
        mysql_free_result(rows);
    buf_release(&b);
    return found;
}

static void *kill_main(void *arg)
{
    struct kill *k = arg;
    MYSQL *db = sql_server_handle(k->server);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "KILL %lu", k->thread_id);
    if (!sql_server_dial(k->server, k->place, db) && still_there(db, k))
        (void)send(db, &b); /* an error means that it has ended by itself */
    buf_release(&b);
    mysql_close(db);
    atomic_fetch_sub(&k->server->kills, 1);
    sql_server_drop(k->server);
    free(k);
    return NULL;
}

static bool start_thread(struct kill *k)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    check(pthread_attr_init(&attr) == 0);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the loop's */
    bool started = pthread_create(&thread, &attr, kill_main, k) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

/* Up to the first question mark: there the server shows the value. */
static void copy_beginning(char *to, const char *statement)
{
    size_t n = strcspn(statement, "?");
    for (size_t i = 0; i < n && i < RUNNING_BYTES_MAX && statement[i] > 0; i++)
        to[i] = statement[i];
}

void sql_server_kill(struct sql_server *s, size_t place, unsigned long thread_id,
                     const char *statement)
{
    if (atomic_fetch_add(&s->kills, 1) >= SQL_KILLS_MAX) {
        atomic_fetch_sub(&s->kills, 1);
        return; /* the server is in trouble anyway */
    }
    struct kill *k = check_memory(calloc(1, sizeof *k));
    k->server = s;
    k->place = place;
    k->thread_id = thread_id;
    copy_beginning(k->running, statement);
    atomic_fetch_add(&s->users, 1);
    if (start_thread(k))
        return;
    atomic_fetch_sub(&s->kills, 1);
    sql_server_drop(s);
    free(k);
}
