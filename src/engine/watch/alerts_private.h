/* alerts_private.h -- what the files of the alerts share. */
#ifndef ENGINE_WATCH_ALERTS_PRIVATE_H
#define ENGINE_WATCH_ALERTS_PRIVATE_H

#include "engine/store/lock.h"
#include "engine/watch/alerts.h"
#include "wire/http_client.h"

#define ALERT_NAME_CHARS_MAX 80
#define ALERT_TEXT_CHARS_MAX 300
#define ALERTS_STORE_MS      2000 /* a store has so long to answer */
#define ALERTS_PAUSED_MAX    20   /* users; those who wait longest come first */

struct episode {
    char name[ALERT_NAME_CHARS_MAX], text[ALERT_TEXT_CHARS_MAX];
    int64_t since_ms;           /* since 1970 */
    bool told;                  /* people know of it */
    bool over;                  /* and must know that it has ended */
    bool seen;                  /* in this round */
    int64_t again_ms, pause_ms; /* when its message is tried again; of the loop */
};

struct alerts {
    struct alerts_options options;
    struct http_client *client;
    struct episode list[ALERTS_MAX];
    size_t count;
    int64_t changes;  /* number of what is noted */
    bool unsaved;     /* a store has not been told of the last change */
    bool watching;    /* it is us */
    uint64_t looked;  /* at the overview: its number */
    bool locked;      /* in Redis */
    struct lock lock; /* while it is */
    int64_t taken_ms; /* when the lease in MySQL was last taken; of the loop */
    int64_t blind_ms; /* since when MySQL does not answer; of the loop; -1: it does */
    int64_t records_over_ms, redis_down_ms, mysql_down_ms; /* since when; -1: it is not */
    int64_t *open, *sent, *failed;
};

/* alerts_role.c: is it us? */
void alerts_take_role(struct task *t, struct alerts *a);
/* What is known of the episodes, from the store that knows most. */
MUST_CHECK int alerts_load(struct task *t, struct alerts *a);
/* To both stores, if they answer; false: one of them does not. */
bool alerts_save(struct task *t, struct alerts *a);

/* A user of whom runs have paused themselves for the ledger's sake, and one of those runs. */
struct alerts_paused {
    int64_t uid;
    struct str qid, reason;
};
struct alerts_paused_list {
    bool known; /* MySQL has answered */
    size_t count;
    struct alerts_paused *list; /* in the task's arena */
};

struct alerts_found {
    bool news;        /* something has begun or ended */
    struct str *lost; /* incarnations that need not be listed any more, in the task's arena */
    size_t lost_count;
};
/* alerts_watch.c: what is so, by the overview and the runs that paused themselves. Does not wait. */
void alerts_watch(struct task *t, struct alerts *a, const struct overview_data *d,
                  const struct alerts_paused_list *paused, struct alerts_found *out);
#endif
