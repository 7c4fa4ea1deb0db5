/* store_check.h -- whether Redis and MySQL keep what they have confirmed, by their own settings.
 *
 * Unsafe is what breaks SYS-3 or BIL-4: a Redis that may evict keys without a TTL or that writes
 * nothing to disk, a MySQL whose commits can be undone by a crash. Such a store is refused at a
 * start unless allow_unsafe_stores insists; then it is a warning, an alert, and a problem in the
 * overview. A setting that the account may not read is an alert, too, but no reason to refuse.
 *
 * volatile-lru and its like are safe: only keys that can be rebuilt have a TTL (store/keys.h). */
#ifndef ENGINE_SETUP_STORE_CHECK_H
#define ENGINE_SETUP_STORE_CHECK_H

#include "engine/setup/config.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define STORE_FINDINGS_MAX 4
#define STORE_CLUSTER_WORDS                                                                        \
    "redis.url leads to a Redis Cluster, which millrace cannot use yet; set it to a single Redis"

/* Sentences, in the task's arena; each names the line to change. */
struct store_findings {
    size_t unsafe_count, unread_count;
    const char *unsafe[STORE_FINDINGS_MAX]; /* loses what it has confirmed */
    const char *unread[STORE_FINDINGS_MAX]; /* cannot be read, so it may */
};

/* An error: the store does not answer, and nothing is known of it. */
MUST_CHECK int store_check_redis(struct task *t, struct redis *r, struct store_findings *out);
MUST_CHECK int store_check_mysql(struct task *t, struct sql_pool *p, struct store_findings *out);

/* A change of no row. ERR_UNAVAILABLE with sql_pool_read_only: MySQL takes no changes. */
MUST_CHECK int store_check_writable(struct task *t, struct sql_pool *p);

/* Both stores of a config, over connections of its own. */
struct store_report {
    bool redis_known, mysql_known; /* it has answered, or need not be asked */
    bool cluster;                  /* Redis is part of one: allow_unsafe_stores does not help */
    struct store_findings redis, mysql;
};
/* Asks those that are not known yet; each has ms to answer. Sentences are in the task's arena.
 * A private Redis that is told to keep nothing (config_persists) is not asked. */
void store_check(struct task *t, const struct config *c, int64_t ms, struct store_report *r);
#endif
