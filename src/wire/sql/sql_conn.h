/* sql_conn.h -- one connection to the database. Private to wire/sql*.c.
 *
 * libmariadb runs each call on a small stack of its own and comes back whenever it would block,
 * naming what it waits for; SQL_AWAIT runs a call to its end that way. A call is never abandoned
 * half way, for the library would leak what that stack holds: when the deadline passes or the task
 * is cancelled, the socket is shut down and the call is resumed until it has failed by itself. */
#ifndef WIRE_SQL_CONN_H
#define WIRE_SQL_CONN_H

#include <mysql.h>
#undef list_push /* the library's header takes these names for itself */
#undef list_pop
#undef list_rest
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "loop/sync.h"
#include "loop/watch.h"
#include "wire/sql.h"
#include "wire/sql/sql_url.h"

#define SQL_WAITERS_MAX      4096               /* calls that wait for a connection */
#define SQL_STATEMENTS_MAX   128                /* prepared per connection */
#define SQL_RESULT_BYTES_MAX (64 * 1024 * 1024) /* rows of one call; sql_each has no such limit */
#define SQL_KILLS_MAX        8                  /* at a time */
#define SQL_RETRY_MS         10                 /* before the second try; doubled for each more */
#define SQL_PARAMS_MAX       65535              /* placeholders of one statement */
/* Measured: 4 KB, with TLS or a login plugin to be loaded 7 KB. It has no guard page. */
#define SQL_LIBRARY_STACK_BYTES (128 * 1024)

/* Address and login. Shared with the threads that kill statements there, therefore
 * reference-counted; all but the count is constant. */
struct sql_server {
    struct arena arena;
    struct sql_url url;
    unsigned int connect_s;
    atomic_int users, kills;
};

struct sql_server *sql_server_new(const char *url, const char *password, int64_t connect_ms);
void sql_server_drop(struct sql_server *s);
/* A handle with all options set, not connected. */
MYSQL *sql_server_handle(const struct sql_server *s);
/* Connects and blocks: for helper threads only. NULL: connected; else the error text, in db. */
const char *sql_server_dial(const struct sql_server *s, size_t place, MYSQL *db);
/* Kills the connection on the server, in the background, if it still runs the statement. */
void sql_server_kill(struct sql_server *s, size_t place, unsigned long thread_id,
                     const char *statement);

struct sql_statement {
    struct list link; /* in sql.statements, latest use last */
    MYSQL_STMT *stmt;
    struct str text;
};

struct sql {
    struct list link; /* in sql_pool.idle or busy */
    struct sql_pool *pool;
    size_t place; /* of the pool's URL */
    MYSQL *db;
    int fd; /* a duplicate: the library closes its own at any time */
    struct watch watch;
    int stopped;         /* ERR_TIMEOUT or ERR_CANCELED once a call was cut short */
    const char *running; /* the latest statement; valid while it runs */
    bool waits;          /* for the server */
    int64_t waits_since_ms;
    bool broken;   /* must not be used again */
    bool fresh;    /* not lent before */
    bool open;     /* logged in */
    bool in_tx;    /* between BEGIN and COMMIT */
    bool doomed;   /* the server has rolled the transaction back: a deadlock */
    bool deadlock; /* the last statement was rolled back by one */
    bool mariadb;  /* and not MySQL */
    bool galera;   /* a node of a cluster */
    bool writable; /* when it was opened; known of lists alone */
    bool arrays;   /* takes arrays of rows */
    size_t packet_bytes_max;
    int64_t opened_ms, idle_since_ms;
    struct list statements;
    struct map *by_text;
};

/* Connects to one place, for at most ms. ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_CANCELED. */
MUST_CHECK int sql_open_at(struct task *t, struct sql_pool *p, size_t place, int64_t ms,
                           struct sql **out);
/* Connects to the pool's place, or if that is away or read-only to the next one that takes changes,
 * which is the pool's place from then on (sql_place.c). Errors as above. */
MUST_CHECK int sql_open(struct task *t, struct sql_pool *p, struct sql **out);
/* What is to be known of a server before its connection is used: its kind and limits, and whether
 * it takes changes. */
MUST_CHECK int sql_learn(struct task *t, struct sql *c);
bool sql_place_is_list(const struct sql_pool *p);
/* The pool's place takes no changes; it is time for sql_open to look for one that does. */
bool sql_place_search_due(const struct sql_pool *p);
/* The server of the pool's place hangs: the next connection is made elsewhere. */
void sql_place_skip(struct sql_pool *p);
void sql_close(struct sql *c); /* never waits */
/* The server has neither closed it nor sent anything unasked. */
bool sql_alive(const struct sql *c);
MUST_CHECK int sql_ping(struct task *t, struct sql *c);
/* A command without values and rows: BEGIN, COMMIT. */
MUST_CHECK int sql_command(struct task *t, struct sql *c, const char *text);

/* The ERR_ code of the library's error. sent: the server may have acted on the statement. */
int sql_fail(struct task *t, struct sql *c, unsigned int code, const char *text,
             const char *statement, bool sent);
void sql_enter(const struct sql *c); /* before every call that reads or writes */
/* Waits for the events the library wants. Returns those that came, for its _cont function. */
int sql_ready(struct task *t, struct sql *c, int wanted);

#define SQL_AWAIT(t, c, start, cont)                                                               \
    do {                                                                                           \
        sql_enter(c);                                                                              \
        int wanted = (start);                                                                      \
        while (wanted) {                                                                           \
            int ready = sql_ready((t), (c), wanted);                                               \
            wanted = (cont);                                                                       \
        }                                                                                          \
    } while (0)

/* The prepared form of text, from the cache or new. */
MUST_CHECK int sql_prepare(struct task *t, struct sql *c, const char *text,
                           struct sql_statement **out);
void sql_statements_free(struct sql *c); /* after the connection has been closed */
MUST_CHECK int sql_execute(struct task *t, struct sql *c, struct sql_statement *s, size_t argc,
                           const struct sql_value *argv);
/* One execution for rows rows: binds has an array per parameter. */
MUST_CHECK int sql_execute_array(struct task *t, struct sql *c, struct sql_statement *s,
                                 MYSQL_BIND *binds, size_t rows);
extern const enum enum_field_types sql_field_types[]; /* the library's, by enum sql_type */
static inline bool sql_is_bytes(enum sql_type type)
{
    return type == SQL_TEXT || type == SQL_BLOB;
}
static inline bool sql_is_null(const struct sql_value *v)
{
    return v->type == SQL_NULL || (sql_is_bytes(v->type) && !v->s.p);
}
/* What a value costs in a command, at most. */
size_t sql_value_bytes(const struct sql_value *v);

/* Calls row for each row of an executed statement. The cells are gone after the call; the bytes
 * they point to are in the task's arena, which row may reset. Other than 0 ends it and
 * breaks the connection: the other rows are still being sent. */
typedef int sql_row_fn(struct task *t, const struct sql_value *cells, void *arg);
MUST_CHECK int sql_fetch(struct task *t, struct sql *c, struct sql_statement *s, sql_row_fn *row,
                         void *arg);

struct sql_pool {
    struct loop *loop;
    struct sql_server *server;
    int64_t connect_ms, statement_ms, ping_after_ms;
    struct sem permits; /* one per connection that may be lent */
    size_t waiting;
    struct list idle; /* latest use last */
    struct list busy; /* all others: lent, connecting */
    size_t lent, open;

    bool quiet;
    bool up;            /* the last attempt reached the server */
    size_t place;       /* of the server's places: where connections are made first */
    bool skip;          /* that server hangs: the next one is tried first */
    int64_t search_ms;  /* when sql_open last looked for a place that takes changes */
    bool read_only;     /* the last change was refused for this, or all places say so */
    bool watched;       /* by sql_pool_watch, which connects again; else calls do */
    bool probing;       /* one task tries to connect */
    bool unanswered;    /* the last attempt: silence, or nothing listens there */
    int64_t heard_ms;   /* when the server last sent anything */
    int64_t backoff_ms; /* 0: the last attempt went well */
    int64_t retry_at_ms;
    char why_down[200];

    struct metrics *own_metrics; /* NULL: the caller's */
    int64_t *up_gauge, *open_gauge, *statements_total;
    int64_t *errors_total[-ERR_LAST + 1];
    struct histogram *wait_us;
};

/* Lends a connection; a fresh one if asked for. */
MUST_CHECK int sql_pool_get(struct task *t, struct sql_pool *p, bool fresh, struct sql **out);
void sql_pool_put(struct sql *c);
/* Between the lists idle and busy. pop: NULL if none is idle. */
struct sql *sql_pool_pop(struct sql_pool *p);
void sql_pool_push(struct sql *c);
/* Connects, and notes whether that went well. */
MUST_CHECK int sql_pool_open(struct task *t, struct sql_pool *p, struct sql **out);
void sql_pool_note_down(struct sql_pool *p, const char *why);
int sql_pool_count(struct sql_pool *p, int err); /* returns err */
void sql_pool_note_read_only(struct sql_pool *p, bool read_only);
#endif
