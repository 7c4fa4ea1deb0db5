/* Which server of a list is used. One at a time, by all connections of a pool:
 *
 *   1. the pool has a place, at first that of the URL's first host. Connections are made there;
 *   2. a server that cannot be reached, or hangs (sql_watch.c), or is a Galera node without its
 *      group, or takes no changes, is passed over: the next one of the list that takes changes
 *      becomes the pool's place. It stays that when the former one is back;
 *   3. connections to other places are closed, at once or when they are given back;
 *   4. if no server takes changes, the first that answers is used: reads go on, changes are refused
 *      by the server itself. The list is gone through again every SEARCH_EACH_MS, until one takes
 *      changes.
 *
 * With a single place nothing of this applies: behind it may be a proxy that does the same. */
#include "base/log.h"
#include "wire/sql/sql_conn.h"

#define PLACE_MS       1500 /* of a list: for connecting to one of its servers */
#define SEARCH_EACH_MS 1000
/* Galera: reads and changes wait until this node has applied what other nodes committed before. */
#define CAUSAL "SET SESSION wsrep_sync_wait = 7"

bool sql_place_is_list(const struct sql_pool *p)
{
    return p->server->url.place_count > 1;
}

/* --- one server --- */

/* Of a system variable: 0 or 1, or a word in newer versions. */
static bool is_off(const struct sql_value *v)
{
    if (v->type == SQL_TEXT)
        return str_ieq(v->s, STR("OFF")) || str_eq(v->s, STR("0"));
    return v->type == SQL_INT && v->i == 0;
}

static int learn_galera(struct task *t, struct sql *c)
{
    struct sql_rows on, ready;
    int err = sql_on(t, c, &on, "SHOW VARIABLES LIKE 'wsrep_on'");
    if (err || on.count == 0 || is_off(&sql_row(&on, 0)[1]))
        return err;
    err = sql_on(t, c, &ready, "SHOW STATUS LIKE 'wsrep_ready'");
    if (!err && (ready.count == 0 || is_off(&sql_row(&ready, 0)[1])))
        err = task_fail(t, ERR_UNAVAILABLE, "this Galera node is not ready (wsrep_ready is OFF)");
    c->galera = !err;
    return err ? err : sql_command(t, c, CAUSAL);
}

int sql_learn(struct task *t, struct sql *c)
{
    unsigned long extra = 0;
    c->mariadb = mariadb_connection(c->db);
    mariadb_get_infov(c->db, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extra);
    c->arrays = c->mariadb && (extra & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32));
    c->packet_bytes_max = 1024;
    struct sql_rows rows;
    int err = sql_on(t, c, &rows, "SELECT @@max_allowed_packet, @@read_only, @@innodb_read_only");
    if (err)
        return err;
    c->packet_bytes_max = (size_t)rows.cells[0].i;
    c->writable = is_off(&rows.cells[1]) && is_off(&rows.cells[2]);
    return learn_galera(t, c);
}

/* --- the list --- */

static void close_others(struct sql_pool *p)
{
    list_each_safe (it, &p->idle) {
        struct sql *c = list_entry(it, struct sql, link);
        if (c->place != p->place)
            sql_close(c);
    }
}

static void move(struct sql_pool *p, size_t place)
{
    if (place == p->place)
        return;
    const struct sql_place *at = &p->server->url.places[place];
    p->place = place;
    close_others(p);
    if (!p->quiet)
        log_warn("sql", "the database at %s:%u is used now", at->host, at->port);
}

struct search {
    struct sql *found; /* takes changes */
    struct sql *reads; /* the first that answers, but takes none */
    const char *why;   /* the others are not used, for people */
    bool unanswered;   /* none of them has said anything */
};

static int try_place(struct task *t, struct sql_pool *p, size_t place, struct search *s)
{
    const struct sql_place *at = &p->server->url.places[place];
    struct sql *c;
    int err = sql_open_at(t, p, place, p->connect_ms < PLACE_MS ? p->connect_ms : PLACE_MS, &c);
    if (err == ERR_CANCELED || err == ERR_TIMEOUT)
        return err;
    s->unanswered = s->unanswered && err && p->unanswered;
    if (err)
        s->why = arena_printf(task_arena(t), "%s%s%s:%u: %s", s->why, *s->why ? "; " : "", at->host,
                              at->port, task_error(t));
    else if (c->writable)
        s->found = c;
    else if (s->reads)
        sql_close(c);
    else
        s->reads = c;
    return 0;
}

static int search(struct task *t, struct sql_pool *p, struct search *s)
{
    size_t count = p->server->url.place_count, first = p->place + p->skip;
    int err = 0;
    for (size_t i = 0; i < count && !s->found && !err; i++)
        err = try_place(t, p, (first + i) % count, s);
    p->search_ms = loop_now_ms(p->loop);
    p->unanswered = s->unanswered;
    return err;
}

int sql_open(struct task *t, struct sql_pool *p, struct sql **out)
{
    if (!sql_place_is_list(p))
        return sql_open_at(t, p, 0, p->connect_ms, out);
    struct search s = {.why = "", .unanswered = true};
    int err = search(t, p, &s);
    struct sql *c = s.found ? s.found : s.reads;
    if (s.reads && (err || c != s.reads))
        sql_close(s.reads);
    if (err)
        return err;
    if (!c)
        return task_fail(t, ERR_UNAVAILABLE, "%s", s.why);
    p->skip = false;
    move(p, c->place);
    sql_pool_note_read_only(p, !c->writable);
    *out = c;
    return 0;
}

bool sql_place_search_due(const struct sql_pool *p)
{
    return sql_place_is_list(p) && p->read_only &&
           loop_now_ms(p->loop) - p->search_ms >= SEARCH_EACH_MS;
}

void sql_place_skip(struct sql_pool *p)
{
    p->skip = sql_place_is_list(p);
}
