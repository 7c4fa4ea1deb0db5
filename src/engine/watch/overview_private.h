/* overview_private.h -- what the files of the overview share. */
#ifndef ENGINE_WATCH_OVERVIEW_PRIVATE_H
#define ENGINE_WATCH_OVERVIEW_PRIVATE_H

#include "engine/watch/overview.h"
#include "loop/sync.h"

#define PROBLEM_CHARS 200

struct overview_metrics;

struct overview {
    struct node *node;
    struct overview_data *now; /* NULL: none yet */
    struct arena arena;        /* of now */
    int64_t taken_ms;          /* of the loop */
    uint64_t count;            /* collections so far */
    struct waitq asked, fresh;
    bool wanted;
    /* Numbers that cost MySQL more than they are worth each second: */
    int64_t slow_ms; /* when they were asked for; of the loop */
    int64_t archive_waiting, user_sessions, admin_sessions;
    char redis_settings[PROBLEM_CHARS], mysql_settings[PROBLEM_CHARS]; /* "": safe */
    int64_t redis_settings_ms, mysql_settings_ms; /* when they were read; of the loop */
    struct overview_metrics *metrics;
};

/* overview_metrics.c */
struct overview_metrics *overview_metrics_new(struct metrics *m); /* free() is its end */
void overview_metrics_set(struct overview_metrics *m, const struct overview_data *d);
#endif
