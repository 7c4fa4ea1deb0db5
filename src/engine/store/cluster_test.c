/* On a server by itself turns cost nothing; tests/server/test_galera.py tries them on a cluster. */
#include "engine/store/cluster.h"

#include "base/log.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

static struct mariadb server;

static int take_all(struct task *t, struct sql *c, void *arg)
{
    (void)arg;
    ok(!sql_is_galera(c), "this is no cluster");
    int err = cluster_turn(t, c, CLUSTER_USER, 7);
    if (!err)
        err = cluster_turn_part(t, c, "part");
    return err ? err : cluster_turn_all(t, c, "part");
}

static void test_alone(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    is_int(sql_tx(t, p, take_all, NULL), 0, "every turn is taken, without a table for it");
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    tap_task(test_alone, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
