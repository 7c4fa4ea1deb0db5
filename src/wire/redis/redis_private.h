/* redis_private.h -- what the files of the Redis client share.
 *
 * How a command travels:
 *
 *   1. redis.c appends it to redis.out and puts a struct redis_wait, which lives on the asking
 *      task's stack, into the queue; the first command of a turn wakes the writer.
 *   2. The writer runs after the tasks that were ready, so all their commands leave in one write.
 *   3. The link task reads, scans and gives each reply to the oldest place in the queue: it is
 *      built in the arena of the task that waits there, which is then woken.
 *
 * A task that gives up (deadline, cancel) empties its place; the place stays in the queue, so
 * that its late reply is dropped and the next one still goes to the right task. */
#ifndef WIRE_REDIS_PRIVATE_H
#define WIRE_REDIS_PRIVATE_H

#include "base/buf.h"
#include "base/log.h"
#include "loop/backoff.h"
#include "loop/sync.h"
#include "loop/timer.h"
#include "loop/watch.h"
#include "wire/redis.h"
#include "wire/redis/redis_encode.h"
#include "wire/redis/redis_parse.h"
#include "wire/redis/redis_url.h"
#include "wire/tls.h"

struct redis_wait {
    struct task *task;
    const struct redis_reply **replies; /* room for all of them */
    size_t got;
    uint64_t place;     /* in the queue */
    uint64_t first_end; /* fewer bytes written: surely nothing of it has run */
    bool done;
    int err; /* once done */
};

struct redis_place {
    struct redis_wait *wait; /* NULL: given up */
    size_t left;             /* replies still to come */
};

/* A ring of places, oldest first. The counters never wrap; cap is a power of two. */
struct redis_queue {
    struct redis_place *ring;
    size_t cap;
    uint64_t head, tail;
};

enum redis_state {
    REDIS_DOWN,
    REDIS_UP,
    REDIS_LEAVING, /* takes no more commands, but waits for the answers still due */
    REDIS_CLOSED,  /* for good */
};

/* The first three are of clusters only. */
struct redis_metrics {
    int64_t *moved, *asked, *told_later;
    int64_t *up, *waiting, *commands, *writes, *reconnects;
    int64_t *errors[1 - ERR_LAST]; /* by negated code */
};

/* One connection; or, with a map, the handle of a cluster, which has none of its own: its map has
 * a struct redis for each master, and its link task keeps the map. */
struct redis {
    struct loop *loop;
    struct redis_map *map; /* NULL: one connection */
    struct redis *front;   /* of a connection in a map: the handle; else NULL */
    struct arena arena;    /* options and scripts, as long as the handle */
    const char *name;
    bool silent; /* quiet, in the options */
    struct redis_url url;
    int64_t connect_ms, command_ms;
    size_t waiting_max;
    struct redis_metrics metrics;

    enum redis_state state;
    bool closing;       /* redis_close was called */
    struct task *link;  /* NULL before it runs and after it has ended */
    bool ended;         /* the link task */
    size_t users;       /* tasks inside a public function */
    struct waitq first; /* tasks that wait for the first connection */
    int64_t opened_ms;
    uint64_t epoch;
    char run_id[41];
    char problem[256]; /* why it is down; "" after a success */
    bool cluster;      /* that is why */
    size_t address;    /* of the URL: the one in use */

    struct watch watch;
    struct tls_context *tls_context; /* NULL: plain */
    struct tls *tls;                 /* of the connection; NULL: plain, or there is none */
    struct buf in, out;
    uint64_t queued, written; /* bytes of commands, over this connection */
    struct redis_scan scan;
    struct redis_queue queue;
    size_t waiting;         /* replies due */
    int64_t quiet_since_ms; /* no byte received, though replies are due */
    struct timer quiet;
    struct task *writer; /* set while it waits for commands */
    struct backoff backoff;

    struct list scripts;
};

/* redis_queue.c. put: the command's bytes are in r->out already, first_bytes of them the first
 * command's. */
void redis_queue_put(struct redis *r, struct redis_wait *w, size_t count, size_t bytes,
                     size_t first_bytes);
void redis_queue_abandon(struct redis *r, struct redis_wait *w);
/* Gives the reply scanned at p to the oldest place. ERR_PROTO: none was due. */
MUST_CHECK int redis_queue_answer(struct redis *r, const char *p);
void redis_queue_fail_all(struct redis *r);

/* redis_link.c */
void redis_link_run(struct task *t, void *arg); /* arg: the struct redis */
void redis_link_has_output(struct redis *r);
void redis_link_expects_answer(struct redis *r);
void redis_free(struct redis *r);

/* Keeps why the server cannot be used. The same reason is logged once, not for every attempt. */
void redis_trouble(struct redis *r, enum log_level level, const char *fmt, ...) PRINTF(3, 4);
/* The end of the link task: waits for the last user. */
void redis_retire(struct task *t, struct redis *r);

/* redis.c. Every public function that waits enters first and leaves last. */
void redis_enter(struct redis *r);
int redis_leave(struct redis *r, int err); /* counts err and returns it */
/* A connection for the map of the handle; NULL when no task can be started. */
struct redis *redis_open_member(struct redis *front, struct group *g,
                                const struct redis_address *at);
/* Waits for the first connection, at most connect_ms since the handle was opened. */
MUST_CHECK int redis_wait_for_first(struct task *t, struct redis *r);
/* Whether count commands of together so many bytes may be queued now. */
MUST_CHECK int redis_admit(struct task *t, struct redis *r, size_t count, size_t bytes);
/* The commands are in r->out and in the queue: waits for what w asks for. */
MUST_CHECK int redis_await(struct task *t, struct redis *r, struct redis_wait *w);
/* One round trip over one connection; an error reply is a success here. asking: with ASKING before
 * it, which lets a node take it that has the slot in part. */
MUST_CHECK int redis_ask(struct task *t, struct redis *r, bool asking,
                         const struct redis_command *c, const struct redis_reply **out);
/* Whether the error says that the server cannot do this now. Nothing was done. */
bool redis_says_not_now(struct str words);
/* Whether it says that the server can do nothing at all: the connection is closed. */
bool redis_says_leave(struct str words);
/* Whether only a node of a Redis Cluster says it. Nothing was done. */
bool redis_says_cluster(struct str words);

/* redis_script.c: one round trip, or more where the script is not loaded. call: a struct
 * redis_script_call. */
struct redis_script_call {
    const struct redis_script *script;
    size_t key_count, argc;
    const struct str *argv;
};
MUST_CHECK int redis_script_ask(struct task *t, struct redis *r, bool asking, void *call,
                                const struct redis_reply **out);

/* redis_batch.c */
MUST_CHECK int redis_batch_cluster(struct redis_batch *b, const struct redis_reply **replies);
#endif
