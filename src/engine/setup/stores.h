/* stores.h -- where MySQL and Redis are: as configured, or the private ones below data_dir.
 *
 * `millrace serve` makes the private ones; nodes and tools only look them up here. Below data_dir,
 * which only its owner can enter:
 *
 *   lock               held by the running supervisor, its pid inside
 *   run/redis.sock     run/mariadb.sock     and the pids of both
 *   secret/redis       secret/mariadb       passwords, made at the first start
 *   redis/  mariadb/   their data
 *   sample/            the papers that were made up and loaded at the first start
 *   log/               their logs, and the output of making the tables and the sample */
#ifndef ENGINE_SETUP_STORES_H
#define ENGINE_SETUP_STORES_H

#include "engine/setup/config.h"

#define STORES_MYSQL_USER     "millrace"
#define STORES_MYSQL_DATABASE "millrace"

struct stores {
    const char *redis_url, *redis_password; /* as wire/redis.h wants them; password may be NULL */
    const char *mysql_url, *mysql_password; /* as wire/sql.h wants them */
};

/* Strings live in a or are borrowed from c. ERR_NOT_FOUND with *why (in a) when a private store has
 * never been started; ERR_FORBIDDEN when this process may not read its password. */
MUST_CHECK int stores_find(struct arena *a, const struct config *c, struct stores *out,
                           const char **why);

/* URL of the private MariaDB alone, for its starter; data_dir must be absolute. */
const char *stores_mysql_url(struct arena *a, const char *data_dir);
#endif
