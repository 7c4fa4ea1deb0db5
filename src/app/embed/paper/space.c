/* The roles. A new model: units whose vectors are of a former one are embedded again, OPEN_MAX at a
 * time; when there are none left, the new space becomes the active one (collection.h). A load:
 * what it has changed of journals that are indexed is queued. */
#include "app/embed/paper/papers_private.h"
#include "base/log.h"

#define OPEN_MAX 200
#define PATIENCE "1 HOUR"

static int count_open(struct task *t, struct papers *p, int64_t *count)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT COUNT(*) FROM embedding_unit WHERE state IN " PAPER_OPEN);
    *count = err ? 0 : r.cells[0].i;
    return err;
}

/* *left: units with vectors of another space, but for those that fail, or wait for very long. */
static int look_left(struct task *t, struct papers *p, int64_t space, bool *ended, bool *left)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT COALESCE(MAX(state = 'completed'), 0),"
                       " COALESCE(MAX(state = 'completed'"
                       " OR changed_at > UTC_TIMESTAMP(3) - INTERVAL " PATIENCE "), 0)"
                       " FROM embedding_unit WHERE state <> 'failed' AND space > 0 AND space <> ?",
                       sql_int(space));
    *ended = !err && r.cells[0].i;
    *left = err || r.cells[1].i;
    return err;
}

static int queue_some(struct task *t, struct papers *p, int64_t space, int64_t limit)
{
    return sql_call(
        t, p->node->sql, NULL,
        "UPDATE embedding_unit SET state = 'pending', version = version + 1,"
        " priority = ?, error = NULL, error_code = NULL, waits = NULL, waits_code = NULL,"
        " changed_at = UTC_TIMESTAMP(3) WHERE state = 'completed' AND space > 0"
        " AND space <> ? ORDER BY number LIMIT ?",
        sql_int(PAPER_PRIORITY), sql_int(space), sql_int(limit));
}

int papers_space_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct papers *p = arg;
    bool building = false, ended = false, left = true;
    int64_t space = p->space(p->node->collections, COLLECTION_PAPERS, &building), open = 0;
    (void)turn;
    if (space == 0 || !p->service)
        return 0;
    int err = look_left(t, p, space, &ended, &left);
    if (!err && ended)
        err = count_open(t, p, &open);
    if (!err && ended && open < OPEN_MAX)
        err = queue_some(t, p, space, OPEN_MAX - open);
    if (!err && building && !left)
        err = p->complete(t, p->node->collections, COLLECTION_PAPERS, space);
    return err;
}

/* --- loads --- */

/* *ended: the last one is. While papers are loaded blocks change all the time. */
static int look_load(struct task *t, struct papers *p, int64_t *load, bool *ended)
{
    struct sql_rows r;
    int err = sql_call(t, p->node->sql, &r,
                       "SELECT load_no, ended_at IS NOT NULL FROM corpus_load"
                       " ORDER BY load_no DESC LIMIT 1");
    *load = !err && r.count ? r.cells[0].i : 0;
    *ended = !err && (!r.count || r.cells[1].i);
    return err;
}

int papers_news_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct papers *p = arg;
    struct papers_wish w = {.which = PAPERS_CHANGED};
    struct papers_wanted out;
    int64_t load;
    bool ended;
    (void)turn;
    int err = look_load(t, p, &load, &ended);
    if (err || !ended || load == p->load_seen)
        return err;
    err = papers_want(t, p->node->sql, &w, &out);
    if (err)
        return err;
    p->load_seen = load;
    if (out.units)
        log_info("papers", "%lld units of papers are indexed again: the corpus has changed",
                 (long long)out.units);
    return 0;
}
