/* How sessions end:
 *
 *   1. the row goes, and its owner is marked stale, in one transaction;
 *   2. Redis gets a tombstone in the place of the session. From now on it is dead everywhere, and a
 *      loader that has read the row before cannot bring it back;
 *   3. the owner is settled (cache.h).
 *
 * If Redis does not answer, 2 and 3 are left to cache_role. */
#include "base/log.h"
#include "base/sha256.h"
#include "engine/people/admin_log.h"
#include "engine/people/session_private.h"
#include "engine/store/scripts.h"

#define MARK_MS         (3600LL * 1000) /* no loader is so slow */
#define ENDED_AT_ONCE   500             /* by one script */
#define EXPIRED_AT_ONCE 100
#define EXPIRE_LATE_MS  (2LL * 3600 * 1000) /* rows are renewed but once an hour */

static int leave_marks(struct task *t, struct cache *c, const struct session_home *h, int64_t uid,
                       size_t count, const struct str *sids)
{
    struct arena *a = task_arena(t);
    int err = 0;
    for (size_t done = 0, n; !err && done < count; done += n) {
        n = count - done < ENDED_AT_ONCE ? count - done : ENDED_AT_ONCE;
        struct str *sessions = ARENA_ARRAY(a, struct str, n);
        for (size_t i = 0; i < n; i++)
            sessions[i] = h->owner->session(a, sids[done + i]);
        err = SCRIPT(t, cache_redis(c), session_end, NULL, .set = h->owner->sessions(a, uid),
                     .sessions = {sessions, n}, .ms = str_int(a, MARK_MS), .uid = str_int(a, uid),
                     .sids = {sids + done, n});
    }
    return err;
}

void session_tell(struct task *t, struct cache *c, const struct session_home *h, int64_t uid,
                  size_t count, const struct str *sids)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    int err = leave_marks(t, c, h, uid, count, sids);
    if (!err)
        err = cache_settle(t, c, h->owner, uid);
    if (err)
        (void)task_fail(t, 0, "%s", text);
}

struct ending {
    const struct session_home *home;
    int64_t uid;
    struct str sid;              /* the one, or the one that stays */
    const struct admin_deed *by; /* NULL: not noted */
    struct sql_rows rows;
    uint64_t ended;
};

static int mark(struct task *t, struct sql *c, void *arg)
{
    const struct ending *e = arg;
    return cache_mark_stale(t, c, e->home->owner, e->uid);
}

int session_doubt(struct task *t, struct cache *c, const struct session_home *h, int64_t uid)
{
    struct ending e = {.home = h, .uid = uid};
    int err = sql_tx(t, cache_sql(c), mark, &e);
    if (!err)
        session_tell(t, c, h, uid, 0, NULL);
    return err;
}

/* --- one --- */

static int end_row(struct task *t, struct sql *c, void *arg)
{
    struct ending *e = arg;
    struct sql_rows r;
    int err = sql_on(t, c, &r, "DELETE FROM session WHERE sid = ? AND kind = ? AND uid = ?",
                     sql_text(e->sid), sql_text(str_of(e->home->owner->name)), sql_int(e->uid));
    e->ended = err ? 0 : r.affected;
    if (e->ended && e->by)
        err = admin_audit_add(t, c, e->by);
    /* Also where none was: after ERR_UNCERTAIN a caller repeats this, and Redis may have it
     * still. */
    return err ? err : cache_mark_stale(t, c, e->home->owner, e->uid);
}

static int end_one(struct task *t, struct cache *c, const struct session_home *h, int64_t uid,
                   struct str sid, const struct admin_deed *by)
{
    if (!hex_is(sid, SESSION_TOKEN_BYTES - 1))
        return task_fail(t, ERR_NOT_FOUND, "there is no such session");
    struct ending e = {.home = h, .uid = uid, .sid = sid, .by = by};
    int err = sql_tx(t, cache_sql(c), end_row, &e);
    if (err)
        return err;
    session_tell(t, c, h, uid, e.ended ? 1 : 0, &sid);
    return e.ended ? 0 : task_fail(t, ERR_NOT_FOUND, "there is no such session");
}

int session_end(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                struct str sid, const struct admin_deed *by)
{
    return end_one(t, c, session_home(kind), uid, sid, by);
}

/* --- all --- */

static int end_rows(struct task *t, struct sql *c, void *arg)
{
    struct ending *e = arg;
    int err = sql_on(t, c, &e->rows,
                     "SELECT sid FROM session WHERE kind = ? AND uid = ? AND sid <> ? FOR UPDATE",
                     sql_text(str_of(e->home->owner->name)), sql_int(e->uid), sql_text(e->sid));
    if (!err)
        err = sql_on(t, c, NULL, "DELETE FROM session WHERE kind = ? AND uid = ? AND sid <> ?",
                     sql_text(str_of(e->home->owner->name)), sql_int(e->uid), sql_text(e->sid));
    return err ? err : cache_mark_stale(t, c, e->home->owner, e->uid);
}

int session_end_all(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                    struct str but_sid)
{
    struct ending e = {
        .home = session_home(kind), .uid = uid, .sid = but_sid.p ? but_sid : STR("")};
    int err = sql_tx(t, cache_sql(c), end_rows, &e);
    if (err)
        return err;
    struct str *sids = ARENA_ARRAY(task_arena(t), struct str, e.rows.count);
    for (size_t i = 0; i < e.rows.count; i++)
        sids[i] = sql_row(&e.rows, i)[0].s;
    session_tell(t, c, e.home, uid, e.rows.count, sids);
    return 0;
}

/* --- those that are too many, or too old --- */

int session_end_surplus(struct task *t, struct cache *c, const struct session_home *h, int64_t uid,
                        struct str but_sid)
{
    struct sql_rows r;
    int err = sql_call(t, cache_sql(c), &r,
                       "SELECT sid FROM session WHERE kind = ? AND uid = ? AND sid <> ?"
                       " ORDER BY last_activity DESC, login_time DESC LIMIT ? OFFSET ?",
                       sql_text(str_of(h->owner->name)), sql_int(uid), sql_text(but_sid),
                       sql_int(ENDED_AT_ONCE), sql_int(SESSIONS_PER_USER_MAX - 1));
    for (size_t i = 0; !err && i < r.count; i++) {
        err = end_one(t, c, h, uid, sql_row(&r, i)[0].s, NULL);
        err = err == ERR_NOT_FOUND ? 0 : err; /* another node was faster */
    }
    return err;
}

/* *more: there may be others. */
static int end_expired(struct task *t, struct cache *c, enum session_kind kind, bool *more)
{
    const struct session_home *h = session_home(kind);
    int64_t before = loop_wall_ms(task_loop(t)) - h->ttl_ms - EXPIRE_LATE_MS;
    struct sql_rows r;
    int err = sql_call(t, cache_sql(c), &r,
                       "SELECT sid, uid FROM session WHERE last_activity < FROM_UNIXTIME(? / 1000)"
                       " AND kind = ? LIMIT ?",
                       sql_int(before), sql_text(str_of(h->owner->name)), sql_int(EXPIRED_AT_ONCE));
    for (size_t i = 0; !err && i < r.count; i++) {
        err = end_one(t, c, h, sql_row(&r, i)[1].i, sql_row(&r, i)[0].s, NULL);
        err = err == ERR_NOT_FOUND ? 0 : err;
    }
    *more = !err && r.count == EXPIRED_AT_ONCE;
    return err;
}

int session_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    bool users = false, admins = false;
    int err = end_expired(t, arg, SESSION_USER, &users);
    if (!err)
        err = end_expired(t, arg, SESSION_ADMIN, &admins);
    return err ? err : users || admins ? ROLE_MORE : 0;
}
