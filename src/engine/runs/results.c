#include "engine/runs/results.h"

#include "engine/runs/live.h"
#include "engine/runs/results_private.h"
#include "engine/store/generation.h"
#include "engine/store/keys.h"

/* --- cursors --- */

/* "a<offset>" among all, "r<offset>" among hits, "n" and "f" likewise; "s<rank>.<id>". */

static char letter_of(enum results_kind kind)
{
    return kind == RESULTS_ALL ? 'a' : outcome_letter((enum outcome)kind);
}

struct str results_cursor(struct arena *a, enum results_kind kind, const struct results_place *p)
{
    if (p->archived)
        return str_printf(a, "s%d.%lld", (int)p->rank, (long long)p->id);
    return str_printf(a, "%c%lld", letter_of(kind), (long long)p->offset);
}

static bool read_number(struct str s, int64_t most, int64_t *out)
{
    bool plain = s.p && s.n > 0 && s.p[0] >= '1' && s.p[0] <= '9'; /* no page ends at 0 */
    return plain && str_to_i64(s, out) && *out <= most;
}

bool results_cursor_read(struct str cursor, enum results_kind kind, struct results_place *out)
{
    if (cursor.n < 2 || cursor.n >= RESULTS_CURSOR_BYTES)
        return false;
    struct str rest = str_from(cursor.p + 1, cursor.n - 1);
    if (cursor.p[0] == letter_of(kind)) {
        *out = (struct results_place){.archived = false};
        return read_number(rest, RESULTS_OFFSET_MAX, &out->offset);
    }
    int rank = rest.p[0] - '0';
    bool fits = kind == RESULTS_ALL ? rank >= 0 && rank < RESULTS_RANKS : rank == (int)kind;
    if (cursor.p[0] != 's' || !fits || rest.n < 3 || rest.p[1] != '.')
        return false;
    *out = (struct results_place){.archived = true, .rank = (enum results_kind)rank};
    return read_number(str_from(rest.p + 2, rest.n - 2), INT64_MAX, &out->id);
}

/* --- rows --- */

int results_row(struct task *t, struct str doi, struct result r, struct result_row *out)
{
    struct str slice;
    *out = (struct result_row){.doi = doi, .result = r};
    if (!key_block_read(r.block_key, &out->journal, &out->year, &slice))
        return task_fail(t, ERR_PROTO, "the result of %.*s is of no block", STR_ARG(doi));
    return 0;
}

/* MySQL is away: what Redis has of the run. A key that has a time to live may have left alone. */
static int find_away(struct task *t, const struct results *r, struct run_id id)
{
    struct run_row row;
    bool there = true;
    int err = run_row_away(t, r->redis, id, &row);
    if (!err && row.finished > 0)
        err = results_redis_there(t, r, id, &there);
    if (!err && !there)
        err = task_fail(t, ERR_UNAVAILABLE,
                        "MySQL does not answer, and Redis does not have the results any more");
    return err;
}

static int find_run(struct task *t, const struct results *r, struct run_id id,
                    struct results_home *out)
{
    struct sql_rows rows;
    *out = (struct results_home){.archived = false};
    int err =
        sql_call(t, r->sql, &rows, "SELECT archived FROM query_log WHERE query_id = ? AND uid = ?",
                 sql_text(id.qid), sql_int(id.uid));
    if (err_may_pass(err) && r->cache && cache_trusts_redis(r->cache)) {
        out->away = true;
        return find_away(t, r, id);
    }
    if (!err && rows.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "you have no such run");
    if (!err)
        out->archived = rows.cells[0].i != 0;
    return err;
}

static int read_page(struct task *t, const struct results *r, struct run_id id,
                     enum results_kind kind, const struct results_place *from, int64_t limit,
                     struct results_page *out, bool *whole)
{
    *whole = true;
    return from->archived ? results_mysql_page(t, r, id, kind, from, limit, out)
                          : results_redis_page(t, r, id, kind, from, limit, out, whole);
}

/* MySQL knew the run, and may not answer any more: then the next look finds Redis. */
static bool may_have_gone(const struct results_home *home, int err)
{
    return !home->away && err_may_pass(err);
}

/* --- a page --- */

int results_list(struct task *t, const struct results *r, struct run_id id, enum results_kind kind,
                 struct str cursor, int64_t limit, struct results_page *out)
{
    check(limit > 0 && limit <= RESULTS_LIMIT_MAX);
    struct results_place asked = {.id = 0};
    if (cursor.p && !results_cursor_read(cursor, kind, &asked))
        return task_fail(t, ERR_INVALID, "not a cursor that we gave");
    bool whole = false;
    /* What is gone from Redis was archived between the two reads: then it is in MySQL. */
    for (int i = 0; i < 2 && !whole; i++) {
        struct results_home home;
        int err = find_run(t, r, id, &home);
        if (err)
            return err;
        *out = (struct results_page){.restarted = cursor.p && asked.archived != home.archived,
                                     .degraded = home.away};
        struct results_place start = {.archived = home.archived};
        err = read_page(t, r, id, kind, cursor.p && !out->restarted ? &asked : &start, limit, out,
                        &whole);
        if (err && (i > 0 || !may_have_gone(&home, err)))
            return err;
        whole = whole && !err;
    }
    return 0;
}

/* --- one --- */

int results_find(struct task *t, const struct results *r, struct run_id id, struct str doi,
                 struct result_row *out, bool *degraded)
{
    int err = ERR_NOT_FOUND;
    /* As above: what is gone from Redis was archived between the two reads. */
    bool look = true;
    for (int i = 0; i < 2 && look; i++) {
        struct results_home home;
        err = find_run(t, r, id, &home);
        if (err)
            return err;
        *degraded = home.away;
        err = home.archived ? results_mysql_find(t, r, id, doi, out)
                            : results_redis_find(t, r, id, doi, home.away, out);
        look = may_have_gone(&home, err) || (err == ERR_NOT_FOUND && !home.archived);
    }
    return err == ERR_NOT_FOUND ? task_fail(t, err, "the run has no such paper") : err;
}

/* --- all --- */

struct walk {
    struct results_place at;
    struct str key;               /* of the results in Redis */
    struct generation generation; /* a restarted Redis may have its list in another order */
    int64_t expected, seen;
};

static int walk_batch(struct task *t, const struct results *r, struct run_id id,
                      enum results_kind kind, struct walk *w, bool *more, results_fn *fn, void *arg)
{
    struct results_page page = {.count = 0};
    bool whole;
    int err = read_page(t, r, id, kind, &w->at, RESULTS_LIMIT_MAX, &page, &whole);
    if (err)
        return err;
    w->seen += (int64_t)page.count;
    *more = page.next.p != NULL;
    bool lost =
        !w->at.archived && (!whole || !generation_lasts_at(r->redis, w->key, &w->generation) ||
                            (!*more && w->seen < w->expected));
    if (lost)
        return task_fail(t, ERR_UNAVAILABLE, "the results have moved while they were read");
    if (*more)
        check(results_cursor_read(page.next, kind, &w->at));
    return page.count ? fn(t, page.rows, page.count, arg) : 0;
}

int results_each(struct task *t, const struct results *r, struct run_id id, enum results_kind kind,
                 results_fn *fn, void *arg)
{
    struct str key = key_result(task_arena(t), id.uid, id.qid);
    struct walk w = {.key = key, .generation = generation_at(r->redis, key)};
    struct results_home home;
    check(!r->cache); /* all of them, or an error */
    int err = find_run(t, r, id, &home);
    w.at.archived = home.archived;
    if (!err && !w.at.archived)
        err = results_redis_count(t, r, id, kind, &w.expected);
    for (bool more = !err; more && !err;) {
        struct arena_mark mark = arena_mark(task_arena(t));
        err = walk_batch(t, r, id, kind, &w, &more, fn, arg);
        arena_reset(task_arena(t), mark);
    }
    return err;
}
