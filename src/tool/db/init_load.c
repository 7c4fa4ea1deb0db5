/* A load has a number, and is the only one that goes on.
 *
 * A lock of the server's (GET_LOCK) refuses a second one; it goes with its connection, so one that
 * died is no obstacle. The lock may be lost while its holder lives on, with the connection. So each
 * transaction of a load checks that no later one has begun: changes that are noted under one number
 * are never made after a later load has ended. */
#include "tool/db/init.h"

/* A lock is the server's, not the database's; its name has at most 64 bytes. */
#define LOCK_NAME "CONCAT('millrace.load.', LEFT(SHA2(DATABASE(), 256), 32))"

struct holding {
    struct init *init;
    int (*body)(struct task *t, struct init *in);
    int status;
};

/* The holder may be lost without its connection being closed, and MySQL waits a week for it. */
static int refuse(struct task *t, struct sql *c)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT IS_USED_LOCK(" LOCK_NAME ")");
    if (err)
        return err;
    if (r.cells[0].type != SQL_INT)
        return task_fail(t, ERR_BUSY,
                         "another \"millrace db init\" was loading papers into this database until "
                         "now; nothing was changed. Try again");
    long long id = (long long)r.cells[0].i;
    return task_fail(t, ERR_BUSY,
                     "another \"millrace db init\" is loading papers into this database; nothing "
                     "was changed. Try again when it has ended. Connection %lld of MySQL holds its "
                     "lock: if its machine is gone, KILL %lld ends it",
                     id, id);
}

/* Runs inside sql_tx, because the lock belongs to one connection. */
static int hold(struct task *t, struct sql *c, void *arg)
{
    struct holding *h = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT GET_LOCK(" LOCK_NAME ", 0)");
    if (!err && (r.cells[0].type != SQL_INT || r.cells[0].i != 1))
        err = refuse(t, c);
    if (!err) /* while the load goes on this connection is idle */
        err = sql_on(t, c, NULL, "SET SESSION wait_timeout = 604800");
    if (err)
        return err;
    h->status = h->body(t, h->init);
    return sql_on(t, c, NULL, "DO RELEASE_ALL_LOCKS()") ? ERR_CLOSED : 0;
}

int init_load_alone(struct task *t, struct init *in, int (*body)(struct task *t, struct init *in))
{
    struct sql_pool *one =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = in->db->stores.mysql_url,
                                                         .password = in->db->stores.mysql_password,
                                                         .connections_max = 1});
    struct holding h = {.init = in, .body = body, .status = -1};
    int err = sql_tx(t, one, hold, &h);
    sql_pool_free(one);
    /* That the lock was lost at the end does not matter: the body has told how it went. */
    return h.status >= 0 ? h.status : db_complain(t, in->db, err);
}

static int begin(struct task *t, struct sql *c, void *arg)
{
    struct init *in = arg;
    struct sql_rows r;
    int err =
        sql_on(t, c, &r,
               "SELECT load_no, ended_at IS NULL FROM corpus_load ORDER BY load_no DESC LIMIT 1"
               " FOR UPDATE");
    if (err)
        return err;
    in->load = (r.count ? r.cells[0].i : 0) + 1;
    in->report->totals.cut_off_before = r.count && r.cells[1].i;
    return sql_on(t, c, NULL,
                  "INSERT INTO corpus_load (load_no, begun_at) VALUES (?, UTC_TIMESTAMP(3))",
                  sql_int(in->load));
}

int init_load_begin(struct task *t, struct init *in)
{
    return sql_tx(t, in->db->sql, begin, in);
}

/* Two statements: the first waits for a later load that is just beginning, the second sees it. */
int init_load_check(struct task *t, struct sql *c, int64_t load)
{
    struct sql_rows r;
    int err =
        sql_on(t, c, NULL, "SELECT 1 FROM corpus_load WHERE load_no = ? FOR UPDATE", sql_int(load));
    if (!err)
        err = sql_on(t, c, &r, "SELECT load_no FROM corpus_load WHERE load_no > ? FOR UPDATE",
                     sql_int(load));
    if (!err && r.count)
        err = task_fail(t, ERR_BUSY,
                        "this is load %lld, but load %lld has begun meanwhile: run it again when "
                        "the other one has ended",
                        (long long)load, (long long)r.cells[0].i);
    return err;
}

int init_load_end(struct task *t, struct sql *c, int64_t load)
{
    int err = init_load_check(t, c, load);
    return err ? err
               : sql_on(t, c, NULL,
                        "UPDATE corpus_load SET ended_at = UTC_TIMESTAMP(3) WHERE load_no = ?",
                        sql_int(load));
}
