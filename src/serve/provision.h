/* provision.h -- the first contents of the private MariaDB: tables, then papers to try it with.
 *
 * Before nodes are started the supervisor runs these as children, with its own settings:
 *
 *   1. `millrace db migrate`, at every start and reload: nodes find the tables they expect;
 *   2. at a start on an empty corpus: a note in table setting, `millrace sample`,
 *      `millrace db init`, and the note again, now saying that all of it is loaded.
 *
 * Whoever is killed in between leaves a note that says "not loaded": the next start makes the sample
 * anew and loads it again; all commands can be repeated. A corpus without the note is the
 * operator's, and a sample that was loaded once is not loaded again, whatever became of it.
 * A configured MySQL is never touched: nobody calls this then (SYS-2).
 *
 * What the commands print goes to log/provision.log, and to our own log when they fail. */
#ifndef SERVE_PROVISION_H
#define SERVE_PROVISION_H

#include "engine/setup/config.h"
#include "serve/child.h"
#include "wire/sql.h"

struct provision {
    struct loop *loop; /* all of it borrowed */
    struct waitq *changed;
    const int *stops; /* other than 0: end at once */
    const int *hurry;
    const char *binary;
    const char *data_dir; /* absolute */
    const struct config *config;
    int settings_fd; /* the same, as config_write gives them */

    int64_t sample_papers; /* set by provision_sample: made-up papers in the corpus; 0: none */
};

/* The private MariaDB, for whoever has a word with it; NULL with *why, in the task's arena. */
struct sql_pool *provision_sql(struct task *t, const struct config *c, const char **why);

/* ERR_REFUSED, ERR_IO: it failed, and the log has its words. ERR_CANCELED: we shall stop. */
MUST_CHECK int provision_migrate(struct task *t, struct provision *p);
/* Where it fails there is a warning in the log, and a server without papers. ERR_CANCELED: we
 * shall stop. */
MUST_CHECK int provision_sample(struct task *t, struct provision *p);
#endif
