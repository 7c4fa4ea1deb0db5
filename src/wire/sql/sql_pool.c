/* A call takes a permit, first come, first served, then an idle connection or a new one.
 *
 * While the server is down no call waits for it (circuit breaker): after a failed attempt calls
 * fail at once until the backoff has passed, then one probes while the others still fail at once.
 * In a pool that is watched (sql_watch.c) no call probes: the watch does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "wire/sql/sql_conn.h"

#define CONNECTIONS_DEFAULT  6
#define CONNECT_MS_DEFAULT   3000
#define STATEMENT_MS_DEFAULT 30000
#define BACKOFF_MS_MIN       50
#define BACKOFF_MS_MAX       1000
/* A connection idle for longer is checked with a ping: firewalls drop connections without
 * notice to either end. */
#define PING_AFTER_MS 30000
#define PING_MS       1000

static void register_metrics(struct sql_pool *p, struct metrics *m)
{
    static const int kinds[] = {ERR_CANCELED,    ERR_TIMEOUT,   ERR_LIMIT,   ERR_BUSY,
                                ERR_UNAVAILABLE, ERR_UNCERTAIN, ERR_EXISTS,  ERR_CONFLICT,
                                ERR_REFUSED,     ERR_PROTO,     ERR_INTERNAL};
    p->up_gauge = metric(m, METRIC_GAUGE, "millrace_sql_up", "",
                         "1 when the last attempt to reach the database went well.");
    p->open_gauge =
        metric(m, METRIC_GAUGE, "millrace_sql_connections", "", "Open database connections.");
    p->statements_total =
        metric(m, METRIC_COUNTER, "millrace_sql_statements_total", "", "Statements executed.");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char labels[64];
        snprintf(labels, sizeof labels, "error=\"%s\"", err_name(kinds[i]));
        p->errors_total[-kinds[i]] = metric(m, METRIC_COUNTER, "millrace_sql_errors_total", labels,
                                            "Calls of the database that failed.");
    }
    p->wait_us = histogram_new(m, "millrace_sql_pool_wait_seconds",
                               "Time that calls waited for a database connection.");
}

struct sql_pool *sql_pool_new(struct loop *l, const struct sql_options *o)
{
    signal(SIGPIPE, SIG_IGN); /* the library raises it when it speaks TLS */
    struct sql_pool *p = check_memory(calloc(1, sizeof *p));
    p->loop = l;
    p->quiet = o->quiet;
    p->connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS_DEFAULT;
    p->statement_ms = o->statement_ms ? o->statement_ms : STATEMENT_MS_DEFAULT;
    p->ping_after_ms = PING_AFTER_MS;
    p->server = sql_server_new(o->url, o->password, p->connect_ms);
    sem_init(&p->permits, o->connections_max ? o->connections_max : CONNECTIONS_DEFAULT);
    list_init(&p->idle);
    list_init(&p->busy);
    if (!o->metrics)
        p->own_metrics = metrics_open(-1, 1, 0);
    register_metrics(p, o->metrics ? o->metrics : p->own_metrics);
    return p;
}

void sql_pool_free(struct sql_pool *p)
{
    check(p->lent == 0 && p->waiting == 0);
    struct list *it;
    while ((it = list_pop(&p->idle)))
        sql_close(list_entry(it, struct sql, link));
    sql_server_drop(p->server);
    histogram_free(p->wait_us);
    if (p->own_metrics)
        metrics_close(p->own_metrics);
    free(p);
}

int sql_pool_count(struct sql_pool *p, int err)
{
    if (err && p->errors_total[-err])
        metric_add(p->errors_total[-err], 1);
    return err;
}

/* --- whether the server is there --- */

static void note_up(struct sql_pool *p)
{
    if (p->backoff_ms)
        log_info("sql", "connected to the database again");
    p->up = true;
    p->backoff_ms = p->retry_at_ms = 0;
    metric_set(p->up_gauge, 1);
}

void sql_pool_note_down(struct sql_pool *p, const char *why)
{
    if ((p->up || p->backoff_ms == 0) && !p->quiet)
        log_warn("sql", "cannot reach the database: %s; calls fail until it answers", why);
    p->up = false;
    metric_set(p->up_gauge, 0);
    snprintf(p->why_down, sizeof p->why_down, "%s", why);
    /* Several attempts that fail at once grow the backoff once. */
    if (loop_now_ms(p->loop) < p->retry_at_ms)
        return;
    p->backoff_ms = p->backoff_ms ? 2 * p->backoff_ms : BACKOFF_MS_MIN;
    if (p->backoff_ms > BACKOFF_MS_MAX)
        p->backoff_ms = BACKOFF_MS_MAX;
    p->retry_at_ms = loop_now_ms(p->loop) + loop_jitter(p->loop, p->backoff_ms);
}

bool sql_pool_away(const struct sql_pool *p)
{
    return p->backoff_ms != 0;
}

int sql_pool_open(struct task *t, struct sql_pool *p, struct sql **out)
{
    int err = sql_open(t, p, out);
    if (!err)
        note_up(p);
    else if (err == ERR_UNAVAILABLE)
        sql_pool_note_down(p, task_error(t));
    return err;
}

static int open_new(struct task *t, struct sql_pool *p, struct sql **out)
{
    bool probe = sql_pool_away(p);
    if (probe && (p->watched || p->probing || loop_now_ms(p->loop) < p->retry_at_ms))
        return task_fail(t, ERR_UNAVAILABLE, "the database is down: %s", p->why_down);
    p->probing = p->probing || probe;
    int err = sql_pool_open(t, p, out);
    if (probe)
        p->probing = false;
    return err;
}

void sql_pool_note_read_only(struct sql_pool *p, bool read_only)
{
    if (read_only == p->read_only)
        return;
    p->read_only = read_only;
    if (read_only)
        log_warn("sql", "the database is read-only: changes are refused until it is writable");
    else
        log_info("sql", "the database is writable again");
}

bool sql_pool_read_only(const struct sql_pool *p)
{
    return p->read_only;
}

/* --- lending --- */

struct sql *sql_pool_pop(struct sql_pool *p)
{
    if (list_empty(&p->idle))
        return NULL;
    struct sql *c = list_entry(p->idle.prev, struct sql, link);
    list_del(&c->link);
    list_push(&p->busy, &c->link);
    return c;
}

void sql_pool_push(struct sql *c)
{
    c->idle_since_ms = loop_now_ms(c->pool->loop);
    list_del(&c->link);
    list_push(&c->pool->idle, &c->link);
}

static bool usable(struct task *t, struct sql *c)
{
    if (!sql_alive(c) || c->place != c->pool->place)
        return false;
    if (loop_now_ms(c->pool->loop) - c->idle_since_ms < c->pool->ping_after_ms)
        return true;
    int64_t old = task_deadline(t, PING_MS);
    int err = sql_ping(t, c);
    task_deadline_restore(t, old);
    return !err;
}

static int take(struct task *t, struct sql_pool *p, bool fresh, struct sql **out)
{
    fresh = fresh || (!p->watched && sql_place_search_due(p));
    for (struct sql *c; !fresh && (c = sql_pool_pop(p));) {
        if (usable(t, c)) {
            *out = c;
            return 0;
        }
        sql_close(c);
        if (task_canceled(t))
            return ERR_CANCELED;
    }
    return open_new(t, p, out);
}

static int wait_turn(struct task *t, struct sql_pool *p)
{
    if (task_canceled(t))
        return ERR_CANCELED;
    if (sem_try(&p->permits)) {
        histogram_add_us(p->wait_us, 0);
        return 0;
    }
    if (p->waiting >= SQL_WAITERS_MAX)
        return task_fail(t, ERR_BUSY, "%d calls wait for the database already", SQL_WAITERS_MAX);
    int64_t since_us = loop_now_us(p->loop);
    p->waiting++;
    int err = sem_get(t, &p->permits);
    p->waiting--;
    histogram_add_us(p->wait_us, loop_now_us(p->loop) - since_us);
    if (err == ERR_TIMEOUT)
        return task_fail(t, ERR_TIMEOUT, "no database connection was free in time");
    return err;
}

int sql_pool_get(struct task *t, struct sql_pool *p, bool fresh, struct sql **out)
{
    int64_t old = task_deadline(t, p->statement_ms);
    int err = wait_turn(t, p);
    if (!err) {
        p->lent++;
        err = take(t, p, fresh, out);
        if (err) {
            p->lent--;
            sem_put(&p->permits);
        }
    }
    task_deadline_restore(t, old);
    return sql_pool_count(p, err);
}

void sql_pool_put(struct sql *c)
{
    struct sql_pool *p = c->pool;
    c->fresh = false;
    if (c->broken || c->place != p->place)
        sql_close(c);
    else
        sql_pool_push(c);
    p->lent--;
    sem_put(&p->permits);
}
