#include "wire/sql/sql_conn.h"

#include <errmsg.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/net.h"
#include "loop/offload.h"
#include "wire/sql/sql_error.h"

/* A connection that finds the server read-only is replaced, but not at every change. */
#define READ_ONLY_KEEP_MS 5000

/* --- waiting --- */

/* Of libcrypto, if that is what the library speaks TLS with. */
void ERR_clear_error(void) __attribute__((weak));

/* OpenSSL keeps a queue of errors per thread and takes any error left in it for the reason of the
 * present call: a read that has to wait would count as failed. The library does not empty the
 * queue before it calls. */
void sql_enter(const struct sql *c)
{
    if (c->pool->server->url.tls != SQL_TLS_OFF && ERR_clear_error)
        ERR_clear_error();
}

/* The library opens its socket in the middle of connecting. */
static bool adopt_socket(struct sql *c)
{
    int fd = mysql_get_socket(c->db);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    watch_init(&c->watch, c->pool->loop, c->fd);
    return true;
}

static void give_up_socket(struct sql *c)
{
    if (c->fd < 0)
        return;
    watch_release(&c->watch);
    close(c->fd);
    c->fd = -1;
}

/* Makes the call under way fail, and every later one. */
static void stop(struct sql *c, int err)
{
    c->stopped = err;
    c->broken = true;
    if (c->fd >= 0)
        shutdown(c->fd, SHUT_RDWR);
    if (c->open && c->running)
        sql_server_kill(c->pool->server, c->place, mysql_thread_id(c->db), c->running);
}

int sql_ready(struct task *t, struct sql *c, int wanted)
{
    if (!c->stopped && c->fd < 0 && !adopt_socket(c))
        stop(c, task_fail(t, ERR_UNAVAILABLE, "dup: %s", strerror(errno)));
    if (c->stopped)
        return MYSQL_WAIT_TIMEOUT;
    int events = ((wanted & MYSQL_WAIT_READ) ? WATCH_READ : 0) |
                 ((wanted & MYSQL_WAIT_WRITE) ? WATCH_WRITE : 0);
    watch_drained(&c->watch, events); /* the library has just got EAGAIN */
    c->waits = true;
    c->waits_since_ms = loop_now_ms(c->pool->loop);
    int err = watch_wait(t, &c->watch, events);
    c->waits = false;
    if (!err)
        c->pool->heard_ms = loop_now_ms(c->pool->loop);
    sql_enter(c);
    if (!err)
        return wanted & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE);
    stop(c, err);
    return MYSQL_WAIT_TIMEOUT;
}

/* --- errors --- */

static int fail_stopped(struct task *t, const struct sql *c)
{
    if (c->stopped == ERR_TIMEOUT)
        return task_fail(t, ERR_TIMEOUT, "the database did not answer in time");
    return c->stopped;
}

int sql_fail(struct task *t, struct sql *c, unsigned int code, const char *text,
             const char *statement, bool sent)
{
    if (c->stopped)
        return fail_stopped(t, c);
    c->broken = c->broken || sql_error_breaks(code);
    if (sql_error_read_only(code)) {
        sql_pool_note_read_only(c->pool, true);
        c->broken |= sql_place_is_list(c->pool) ||
                     loop_now_ms(c->pool->loop) - c->opened_ms >= READ_ONLY_KEEP_MS;
    }
    int err = sql_error_kind(code);
    if (err == ERR_CONFLICT)
        c->doomed = c->in_tx;
    c->deadlock = sql_error_rolled_back(code);
    /* An open transaction is gone with its connection, and a read leaves nothing behind. */
    if (err == ERR_UNCERTAIN && (!sent || c->in_tx || sql_reads_only(statement)))
        err = ERR_UNAVAILABLE;
    if (!sent && err == ERR_REFUSED)
        log_error("sql", "cannot prepare \"%s\": %s (%u)", statement, text, code);
    struct arena_mark mark = arena_mark(task_arena(t));
    err = task_fail(t, err, "%s (%u)", sent ? sql_error_text(task_arena(t), text) : text, code);
    arena_reset(task_arena(t), mark);
    return err;
}

/* --- connecting --- */

static struct sql *conn_new(struct sql_pool *p, size_t place)
{
    struct sql *c = check_memory(calloc(1, sizeof *c));
    c->pool = p;
    c->place = place;
    c->opened_ms = loop_now_ms(p->loop);
    c->fd = -1;
    c->fresh = true;
    c->db = sql_server_handle(p->server);
    c->by_text = map_new();
    list_push(&p->busy, &c->link);
    list_init(&c->statements);
    p->open++;
    metric_set(p->open_gauge, (int64_t)p->open);
    return c;
}

void sql_close(struct sql *c)
{
    struct sql_pool *p = c->pool;
    list_del(&c->link);
    /* COM_QUIT cannot block: the socket's buffer is empty. A connection in mid-command sends
     * none. */
    if (c->fd >= 0)
        shutdown(c->fd, c->broken ? SHUT_RDWR : SHUT_RD);
    mysql_close(c->db);
    sql_statements_free(c);
    map_free(c->by_text);
    give_up_socket(c);
    free(c);
    p->open--;
    metric_set(p->open_gauge, (int64_t)p->open);
}

static int fail_connect(struct task *t, const struct sql *c)
{
    unsigned int code = mysql_errno(c->db);
    c->pool->unanswered = code == CR_CONNECTION_ERROR || code == CR_CONN_HOST_ERROR;
    if (c->stopped)
        return fail_stopped(t, c);
    return task_fail(t, ERR_UNAVAILABLE, "%s (%u)", mysql_error(c->db), code);
}

static int dial(struct task *t, struct sql *c, const char *host)
{
    const struct sql_url *u = &c->pool->server->url;
    MYSQL *done = NULL;
    SQL_AWAIT(t, c,
              mysql_real_connect_start(&done, c->db, host, u->user, u->password, u->database,
                                       u->places[c->place].port, u->socket, 0),
              mysql_real_connect_cont(&done, c->db, ready));
    return done ? 0 : fail_connect(t, c);
}

/* Resolves host here: the library's own lookup blocks. */
static int dial_host(struct task *t, struct sql *c, const char *host)
{
    struct net_addresses found;
    int err = net_look_up(t, host, &found);
    if (err)
        return err;
    for (size_t i = 0; i < found.count; i++) {
        give_up_socket(c); /* of the attempt before */
        err = dial(t, c, found.text[i]);
        if (err != ERR_UNAVAILABLE)
            break;
    }
    return err;
}

struct blocking_dial {
    const struct sql_server *server;
    size_t place;
    MYSQL *db;
    const char *problem;
};

static void dial_blocking(void *arg)
{
    struct blocking_dial *d = arg;
    d->problem = sql_server_dial(d->server, d->place, d->db);
}

static int dial_tls(struct task *t, struct sql *c)
{
    struct blocking_dial d = {c->pool->server, c->place, c->db, NULL};
    int err = offload(t, dial_blocking, &d);
    if (err)
        return err;
    if (d.problem)
        return fail_connect(t, c);
    /* The library reads plain sockets with MSG_DONTWAIT, but cannot for TLS. */
    int fd = mysql_get_socket(c->db);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

static int connect_to_server(struct task *t, struct sql *c)
{
    const struct sql_url *u = &c->pool->server->url;
    if (u->tls != SQL_TLS_OFF)
        return dial_tls(t, c);
    return u->socket ? dial(t, c, NULL) : dial_host(t, c, u->places[c->place].host);
}

int sql_open_at(struct task *t, struct sql_pool *p, size_t place, int64_t ms, struct sql **out)
{
    struct sql *c = conn_new(p, place);
    p->unanswered = false;
    int64_t old = task_deadline(t, ms);
    int err = connect_to_server(t, c);
    /* A connect that never had to wait has not adopted the socket yet. */
    if (!err && c->fd < 0 && !adopt_socket(c))
        err = task_fail(t, ERR_UNAVAILABLE, "dup: %s", strerror(errno));
    c->open = !err;
    if (!err)
        err = sql_learn(t, c);
    task_deadline_restore(t, old);
    if (!err) {
        *out = c;
        return 0;
    }
    sql_close(c);
    p->unanswered = p->unanswered || err == ERR_TIMEOUT;
    if (err == ERR_TIMEOUT && task_time_left_ms(t) > 0)
        return task_fail(t, ERR_UNAVAILABLE, "no answer within %d ms", (int)ms);
    return err == ERR_TIMEOUT || err == ERR_CANCELED ? err : ERR_UNAVAILABLE;
}

/* --- small commands --- */

bool sql_alive(const struct sql *c)
{
    char byte;
    return !c->broken && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int sql_ping(struct task *t, struct sql *c)
{
    int bad = 0;
    c->running = NULL;
    SQL_AWAIT(t, c, mysql_ping_start(&bad, c->db), mysql_ping_cont(&bad, c->db, ready));
    return bad ? sql_fail(t, c, mysql_errno(c->db), mysql_error(c->db), "SELECT 1", false) : 0;
}

int sql_command(struct task *t, struct sql *c, const char *text)
{
    int bad = 0;
    c->running = text;
    SQL_AWAIT(t, c, mysql_real_query_start(&bad, c->db, text, strlen(text)),
              mysql_real_query_cont(&bad, c->db, ready));
    return bad ? sql_fail(t, c, mysql_errno(c->db), mysql_error(c->db), text, true) : 0;
}

bool sql_is_galera(const struct sql *c)
{
    return c->galera;
}

bool sql_is_mariadb(const struct sql *c)
{
    return c->mariadb;
}
