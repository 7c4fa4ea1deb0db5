/* Whether the server still answers. A call on its own cannot know: a server that hangs is as silent
 * as one that works on a slow statement. So one task of each pool asks:
 *
 *   1. a call has waited for QUIET_MS, and nothing came from the server on any connection since;
 *   2. then the watch sends a ping, on an idle connection or a new one. A server that works on a
 *      slow statement answers it;
 *   3. no answer within ANSWER_MS: the server is away. All connections are shut down, so that their
 *      calls fail as with a lost connection, and new calls fail at once (sql_pool.c);
 *   4. from then on the watch tries to connect, with backoff, until that succeeds; of a list of
 *      servers to the others first (sql_place.c).
 *
 * So a call ends EACH_MS + QUIET_MS + ANSWER_MS after the server fell silent, at the latest. With
 * TLS and no idle connection it may take connect_ms instead of ANSWER_MS. */
#include <sys/socket.h>

#include "loop/backoff.h"
#include "wire/sql/sql_conn.h"

#define EACH_MS   100
#define QUIET_MS  700
#define ANSWER_MS 700
#define LATE_MS   250 /* of the loop: it has not read an answer that is there */

static bool is_silent(const struct sql_pool *p)
{
    int64_t now_ms = loop_now_ms(p->loop);
    if (now_ms - p->heard_ms < QUIET_MS)
        return false;
    list_each (it, &p->busy) {
        const struct sql *c = list_entry(it, struct sql, link);
        if (c->waits && now_ms - c->waits_since_ms >= QUIET_MS)
            return true;
    }
    return false;
}

static int ping(struct task *t, struct sql_pool *p)
{
    struct sql *c = sql_pool_pop(p);
    bool pooled = c != NULL;
    int err = pooled ? sql_ping(t, c) : sql_open_at(t, p, p->place, p->connect_ms, &c);
    if (pooled && !err)
        sql_pool_push(c);
    else if (c)
        sql_close(c); /* dead, or one more than the pool may have */
    return err;
}

/* A connection that died says nothing about the server, and a refusal is an answer. */
static bool is_away(struct task *t, struct sql_pool *p)
{
    bool tls = p->server->url.tls != SQL_TLS_OFF; /* connecting is not cut short */
    int64_t began_ms = loop_now_ms(p->loop), old = task_deadline(t, ANSWER_MS);
    p->unanswered = false;
    int err = ping(t, p);
    bool over = task_time_left_ms(t) == 0;
    task_deadline_restore(t, old);
    int64_t took_ms = loop_now_ms(p->loop) - began_ms;
    bool late = took_ms > (tls ? p->connect_ms : ANSWER_MS) + LATE_MS;
    return err && err != ERR_CANCELED && !late && (over || p->unanswered);
}

static void shut_down(struct sql_pool *p)
{
    list_each (it, &p->busy) {
        struct sql *c = list_entry(it, struct sql, link);
        c->broken = true;
        if (c->fd >= 0)
            shutdown(c->fd, SHUT_RDWR);
    }
    for (struct sql *c; (c = sql_pool_pop(p));) {
        c->broken = true;
        sql_close(c);
    }
}

static void reconnect(struct task *t, struct sql_pool *p)
{
    struct sql *c;
    if (loop_now_ms(p->loop) < p->retry_at_ms || !sem_try(&p->permits))
        return;
    if (!sql_pool_open(t, p, &c)) {
        c->fresh = false;
        sql_pool_push(c);
    }
    sem_put(&p->permits);
}

/* For a server of the list that takes changes. One connection more than idle ones is not kept. */
static void search(struct task *t, struct sql_pool *p)
{
    struct sql *c;
    if (!sem_try(&p->permits))
        return;
    if (!sql_pool_open(t, p, &c)) {
        c->fresh = false;
        if (c->writable)
            sql_pool_push(c);
        else
            sql_close(c);
    }
    sem_put(&p->permits);
}

static void look(struct task *t, struct sql_pool *p)
{
    if (is_silent(p) && is_away(t, p)) {
        shut_down(p);
        sql_place_skip(p);
        sql_pool_note_down(p, "it does not answer any more");
    } else if (sql_pool_away(p)) {
        reconnect(t, p);
    } else if (sql_place_search_due(p)) {
        search(t, p);
    }
}

void sql_pool_watch(struct task *t, void *pool)
{
    struct sql_pool *p = pool;
    p->watched = true;
    while (backoff_wait(t, &(struct backoff){.ms = EACH_MS}) == 0) {
        struct task_scope scope = task_scope(t);
        look(t, p);
        task_scope_end(t, scope);
    }
    p->watched = false;
}
