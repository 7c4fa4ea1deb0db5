/* redis.h -- one pipelined connection to Redis per handle, shared by all tasks of a node; to a
 * Redis Cluster, one to each master.
 *
 * Commands of different tasks that are ready in the same turn of the loop leave in one
 * write. Replies live in the arena of the task that asked. Every call carries its routing
 * key: on a cluster the call goes to the master that has it.
 *
 * When the connection is lost each waiter gets an answer: ERR_UNAVAILABLE if its command was
 * surely not sent, ERR_UNCERTAIN if it may have run. Nothing is repeated here: only the caller
 * knows what is idempotent. Reconnecting goes on by itself with backoff; while it is down,
 * calls fail at once with ERR_UNAVAILABLE (after waiting for the first connection at most
 * connect_ms). A server that loads its data, or has become a replica, counts as down, and so does a
 * node of a Redis Cluster for a handle that was not opened for one.
 *
 * On a cluster, the connection is that to the master that has the key. Which master that is, is
 * learned from the nodes, and from where they redirect a call to (MOVED, ASK), which the caller
 * does not see. What a node cannot do yet (TRYAGAIN, CLUSTERDOWN, LOADING) is tried again until the
 * deadline, and is ERR_UNAVAILABLE then. One command, and one script, is about keys with one hash
 * tag (else ERR_REFUSED).
 *
 * A call that ends with ERR_TIMEOUT or ERR_CANCELED may have run or may still run; a task
 * that was cancelled or out of time before it called has sent nothing.
 *
 * Commands that change the connection's state (SELECT, AUTH, MULTI, SUBSCRIBE, CLIENT REPLY) must
 * not be sent: all tasks share it. One that blocks it (XREAD BLOCK), for less than command_ms, may
 * be sent by the only task of a handle of its own. */
#ifndef WIRE_REDIS_H
#define WIRE_REDIS_H

#include "base/metrics.h"
#include "base/str.h"
#include "loop/task.h"

struct redis;

#define REDIS_COMMAND_BYTES_MAX (64 * 1024 * 1024)  /* of a command or batch; more is ERR_LIMIT */
#define REDIS_UNSENT_BYTES_MAX  (128 * 1024 * 1024) /* of all that wait; more is ERR_BUSY */

struct redis_options {
    /* "unix:/path", "redis://[[user]:password@]host[:port][/db]", of a cluster with several hosts
     * of which one must answer, "redis://a:1,b:2"; over TLS the same with rediss://, and at its
     * end "?ca=/path" where the system's certificates are not to be trusted. */
    const char *url;
    const char *password;    /* used where the URL has none; NULL: none */
    int64_t connect_ms;      /* 0: 2000 */
    int64_t command_ms;      /* 0: 5000; used where the task's own deadline is later */
    size_t waiting_max;      /* 0: 100000 commands in the pipeline; more is ERR_BUSY */
    struct metrics *metrics; /* NULL: not counted */
    const char *name;        /* for logs and metrics: "hot", "download" */
    bool quiet;              /* that it comes and goes is not logged */
    bool cluster;            /* it is a Redis Cluster: the URL names some of its nodes */
};

/* What is wrong with the URL, in a or constant; NULL: it is fine. Never shows the password. */
const char *redis_url_problem(struct arena *a, const char *url);

/* Starts connecting in a task of its own, in g. The options are copied; the URL must be fine.
 * NULL when no task can be started. The server's user needs the right to INFO. */
struct redis *redis_open(struct group *g, const struct redis_options *o);
/* Fails what waits and stops reconnecting; the handle is gone when its task in g has ended. No
 * call may be begun after this one. Cancelling g fails what waits too, but frees nothing. */
void redis_close(struct redis *r);
/* Of a cluster: all slots have a master, and all of these are connected. */
bool redis_up(const struct redis *r);
/* It is a cluster; or it is down because the server there is part of one, for which the handle was
 * not opened. */
bool redis_is_cluster(const struct redis *r);
/* Changes whenever a connection was made: what was read before may be older. */
uint64_t redis_epoch(const struct redis *r);
/* Run id of the server behind the connection, "" while down. Valid until the next wait. Of a
 * cluster: one for all servers together, another one as soon as one of them is another process. */
struct str redis_run_id(const struct redis *r);

/* The same of what the key's calls go over; on a cluster, of the master that has it. A slot that
 * moves is of another server and over another connection from then on. */
bool redis_up_at(const struct redis *r, struct str key);
uint64_t redis_epoch_at(const struct redis *r, struct str key);
struct str redis_run_id_at(const struct redis *r, struct str key);

enum redis_type { REDIS_NIL, REDIS_STATUS, REDIS_STRING, REDIS_INT, REDIS_ARRAY, REDIS_ERROR };

struct redis_reply {
    enum redis_type type;
    int64_t integer;
    struct str str; /* string, status, error; a NUL follows */
    size_t count;
    const struct redis_reply *const *items;
};

/* What an integer, or a string that is one, says; absent for everything else. */
static inline int64_t redis_number(const struct redis_reply *r, int64_t absent)
{
    int64_t v = r->type == REDIS_INT ? r->integer : absent;
    if (r->type == REDIS_STRING)
        (void)str_to_i64(r->str, &v);
    return v;
}

/* One command; argv[0] is its name. key routes it and may be STR_NULL for server commands. out
 * may be NULL. An error reply of the server is ERR_REFUSED with its words, or ERR_UNAVAILABLE
 * where the server says that it cannot do it now (loading, a replica, a script hangs, its disk or
 * memory is full). */
MUST_CHECK int redis_argv(struct task *t, struct redis *r, struct str key, size_t argc,
                          const struct str *argv, const struct redis_reply **out);
/* redis_call(t, r, key, &reply, STR("GET"), key) */
#define redis_call(t, r, key, out, ...)                                                            \
    redis_argv((t), (r), (key), sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str),          \
               (const struct str[]){__VA_ARGS__}, (out))

/* A script is a constant: name and text. It is sent whole once per connection and by its hash
 * after that; it is loaded again after NOSCRIPT. Handles tell scripts apart by address, so a
 * script must stay where it is. */
struct redis_script {
    const char *name; /* "charge" */
    struct str text;
    /* It gets a further argument, the last one: the run id of the server that runs it. That is the
     * one of the connection over which it is sent, and it is sent over no other. A script can find
     * it by INFO, too, which costs the server more than most scripts do. */
    bool run_id;
};
/* argv: the keys, then the arguments. All keys must belong together (SYS-4). Errors as above. */
MUST_CHECK int redis_script_run(struct task *t, struct redis *r, const struct redis_script *s,
                                struct str key, size_t key_count, size_t argc,
                                const struct str *argv, const struct redis_reply **out);

struct redis_batch_item {
    struct str tag;   /* of the key */
    size_t at, bytes; /* of the command */
};

/* Several commands in one round trip. They are copied into the task's arena and leave when the
 * batch is run; one that is never run costs nothing. Replies are those of the commands in order; an
 * error reply stays a REDIS_ERROR item there and does not fail the batch. After ERR_UNCERTAIN some
 * of them may have run, or all.
 *
 * On a cluster it is one round trip to each master that has one of the keys, all at the same time:
 * commands about keys with the same hash tag run in the order of the batch, others in any. */
struct redis_batch {
    struct task *task;
    struct redis *redis;
    char *bytes; /* encoded */
    size_t len, cap;
    size_t first_len; /* of the first command */
    size_t count;
    struct redis_batch_item *items; /* of a cluster: where each command goes */
    size_t items_cap;
    int err; /* ERR_LIMIT: too large */
};
void redis_batch_init(struct redis_batch *b, struct task *t, struct redis *r);
void redis_batch_argv(struct redis_batch *b, struct str key, size_t argc, const struct str *argv);
#define redis_batch_add(b, key, ...)                                                               \
    redis_batch_argv((b), (key), sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str),         \
                     (const struct str[]){__VA_ARGS__})
/* (*replies)[i] is the reply of the i-th command. The batch is empty again afterwards. */
MUST_CHECK int redis_batch_run(struct redis_batch *b, const struct redis_reply *const **replies);
/* The error that such an item means, as redis_argv returns it; any other reply goes to *out, which
 * may be NULL. */
MUST_CHECK int redis_verdict(struct task *t, const struct redis_reply *reply,
                             const struct redis_reply **out);
#endif
