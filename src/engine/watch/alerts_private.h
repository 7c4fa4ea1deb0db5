/* alerts_private.h -- what the files of the alerts share. */
#ifndef ENGINE_WATCH_ALERTS_PRIVATE_H
#define ENGINE_WATCH_ALERTS_PRIVATE_H

#include "engine/store/role.h"
#include "engine/watch/alerts.h"
#include "wire/http_client.h"

#define ALERT_NAME_CHARS_MAX 80
#define ALERT_TEXT_CHARS_MAX 300
#define ALERTS_STORE_MS      2000 /* a store has so long to answer */
#define ALERTS_PAUSED_MAX    20   /* users; those that wait longest come first */

struct episode {
    char name[ALERT_NAME_CHARS_MAX], text[ALERT_TEXT_CHARS_MAX];
    int64_t since_ms;           /* since 1970 */
    bool told;                  /* the message of its beginning was received */
    bool kept;                  /* and MySQL has that: no other node can take it for unheard */
    bool unsure;                /* it may have been received: the webhook was too slow to say so */
    bool over;                  /* the message of its end is due */
    bool seen;                  /* in this round */
    int64_t again_ms, pause_ms; /* when its message is tried again; of the loop */
};

/* What a queue of jobs has done since its window was opened. */
struct alerts_window {
    int64_t since_ms, done, failed;
};

struct alerts {
    struct alerts_options options;
    struct http_client *client;
    struct episode list[ALERTS_MAX];
    size_t count;
    int64_t changes;            /* number of the note that list is, or will be; -1: of none */
    int64_t in_mysql, in_redis; /* numbers of their notes; -1: none, or not known */
    bool outdated;              /* MySQL has a note of another node: it must be read */
    struct role_turn turn;      /* with the lock, if this node has it */
    bool watching;
    bool alone;      /* without the lock: Redis does not answer, or did not a moment ago */
    bool mysql_away; /* by the overview: it is not asked in every round */
    uint64_t looked; /* at the overview: its number */
    int64_t records_over_ms, redis_down_ms, mysql_down_ms, read_only_ms; /* since when; -1: no */
    int64_t standing_ms[REASON_CODES];                                   /* likewise, by reason */
    struct alerts_window windows[JOBS_QUEUES_MAX];
    int64_t ended[JOBS_QUEUES_MAX]; /* jobs of each queue, at the last look */
    int64_t *open, *sent, *failed;
};

/* alerts_notes.c. What is known of the episodes, unless this node knows as much. An error: neither
 * store can be read. */
MUST_CHECK int alerts_load(struct task *t, struct alerts *a);
/* To the stores that have an older note. ERR_CONFLICT: another node was faster, and its note must
 * be read; a store that does not answer is told later. */
MUST_CHECK int alerts_save(struct task *t, struct alerts *a);

/* A user with runs that paused themselves because of the ledger, and one of those runs. */
struct alerts_paused {
    int64_t uid;
    struct str qid, reason;
};
struct alerts_paused_list {
    bool known; /* MySQL has answered */
    size_t count;
    struct alerts_paused *list;   /* in the task's arena */
    struct alerts_paused refused; /* one of the runs whose requests the AI service refuses */
    int64_t refused_count;        /* such runs */
};

/* What one source has told. */
struct alerts_told {
    bool known;
    struct alerts_fact *list; /* in the task's arena */
    size_t count;
};

/* What was asked for in this round besides the overview. */
struct alerts_asked {
    struct alerts_paused_list paused;
    struct alerts_told told[ALERTS_SOURCES_MAX]; /* by source */
};

struct alerts_found {
    bool news;        /* something has begun or ended */
    struct str *lost; /* incarnations that need not be listed any more, in the task's arena */
    size_t lost_count;
};
struct episode *alerts_find(struct alerts *a, const char *name); /* NULL: none */
/* alerts_watch.c: what is so, by the overview and what was asked for besides. Does not wait. */
void alerts_watch(struct task *t, struct alerts *a, const struct overview_data *d,
                  const struct alerts_asked *asked, struct alerts_found *out);
#endif
