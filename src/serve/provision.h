/* provision.h -- the first contents of the private MariaDB: tables, then a sample of papers.
 *
 * Before nodes are started the supervisor runs these as children, with its own settings:
 *
 *   1. `millrace db migrate`, at every start and reload: nodes find the tables they expect;
 *   2. at a start on an empty corpus: a note in table setting, `millrace sample`,
 *      `millrace db init`, and the note again, now saying that all of it is loaded.
 *
 * A supervisor killed in between leaves a note that says "not loaded": the next start makes the
 * sample anew and loads it again; all commands are idempotent. A corpus without the note is the
 * operator's, and a sample that was loaded once is not loaded again, even if it was removed.
 * A configured MySQL is never touched: this is not called then (SYS-2).
 *
 * The output of the commands goes to log/provision.log; when one fails, also to the log. */
#ifndef SERVE_PROVISION_H
#define SERVE_PROVISION_H

#include "engine/setup/config.h"
#include "serve/child.h"
#include "wire/sql.h"

struct provision {
    struct supervision *shared; /* all of it borrowed; stops other than 0: end at once */
    const char *data_dir;       /* absolute */
    const struct config *config;
    int settings_fd; /* the same, as config_write gives them */

    int64_t sample_papers; /* set by provision_sample: made-up papers in the corpus; 0: none */
};

/* A pool of one connection to the private MariaDB; NULL with *why, in the task's arena. */
struct sql_pool *provision_sql(struct task *t, const struct config *c, const char **why);

/* ERR_REFUSED, ERR_IO: it failed, and its output was logged. ERR_CANCELED: the supervisor stops. */
MUST_CHECK int provision_migrate(struct task *t, struct provision *p);
/* A failure is logged as a warning, and the server has no papers. ERR_CANCELED: the supervisor
 * stops. */
MUST_CHECK int provision_sample(struct task *t, struct provision *p);
#endif
