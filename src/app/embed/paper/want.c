/* Units are queued: a transaction for each journal, in MySQL alone. */
#include <inttypes.h>
#include <stdio.h>

#include "app/embed/paper/papers_private.h"
#include "engine/people/admin_log.h"

#define TEXT_(x)   #x
#define TEXT(x)    TEXT_(x)
#define SLICES_MAX TEXT(PAPER_SLICES_MAX)
#define SLICES_ALL "GREATEST(1, CEIL(papers / " TEXT(PAPER_UNIT) "))"
#define SLICES     "LEAST(" SLICES_MAX ", " SLICES_ALL ")"
#define OF_BLOCK   "JOIN corpus_block b ON b.journal = u.journal AND b.year = u.year"
#define BLOCKS_WITHOUT                                                                             \
    " journal = ? AND papers > 0 AND NOT EXISTS (SELECT 1 FROM embedding_unit u"                   \
    " WHERE u.journal = corpus_block.journal AND u.year = corpus_block.year)"

/* Units to be queued again. One in work on the same papers is left alone. */
static const char *const again[] = {
    [PAPERS_JOURNALS] = " AND (u.state IN ('completed', 'failed')"
                        " OR (u.state = 'working' AND u.wanted <> b.digest))",
    [PAPERS_ALL] = " AND (u.state IN ('completed', 'failed')"
                   " OR (u.state = 'working' AND u.wanted <> b.digest))",
    [PAPERS_CHANGED] = " AND ((u.state = 'completed'"
                       " AND (u.digest IS NULL OR u.digest <> b.digest))"
                       " OR (u.state IN ('failed', 'working') AND u.wanted <> b.digest))",
    [PAPERS_FAILED] = " AND u.state = 'failed'",
};

struct journal {
    enum papers_which which;
    struct str name;
    int64_t units, papers;
};

/* Blocks that have grown get new units. What their papers are indexed as stays: it is not of
 * units. */
static int cut_anew(struct task *t, struct sql *c, const struct journal *j)
{
    return sql_on(t, c, NULL,
                  "DELETE u FROM embedding_unit u " OF_BLOCK " WHERE u.journal = ?"
                  " AND b.papers > 2 * " TEXT(PAPER_UNIT) " * u.slices AND u.slices < " TEXT(
                      PAPER_SLICES_MAX),
                  sql_text(j->name));
}

static int queue_again(struct task *t, struct sql *c, struct journal *j)
{
    struct arena *a = task_arena(t);
    struct sql_rows r;
    int err =
        sql_on(t, c, &r,
               arena_printf(a,
                            "SELECT CAST(COALESCE(SUM(CEIL(b.papers / u.slices)), 0)"
                            " AS SIGNED) FROM embedding_unit u " OF_BLOCK " WHERE u.journal = ?%s",
                            again[j->which]),
               sql_text(j->name));
    j->papers += err ? 0 : r.cells[0].i;
    if (!err)
        err = sql_on(t, c, &r,
                     arena_printf(a,
                                  "UPDATE embedding_unit u " OF_BLOCK " SET u.state = 'pending',"
                                  " u.version = u.version + 1, u.priority = ?, u.error = NULL,"
                                  " u.error_code = NULL, u.waits = NULL, u.waits_code = NULL,"
                                  " u.wanted = b.digest,"
                                  " u.papers = CEIL(b.papers / u.slices),"
                                  " u.changed_at = UTC_TIMESTAMP(3) WHERE u.journal = ?%s",
                                  again[j->which]),
                     sql_int(PAPER_PRIORITY), sql_text(j->name));
    j->units += err ? 0 : (int64_t)r.affected;
    return err;
}

static int add_missing(struct task *t, struct sql *c, struct journal *j)
{
    struct sql_rows r;
    struct sql_value name = sql_text(j->name);
    int err = sql_on(t, c, &r,
                     "SELECT CAST(COALESCE(SUM(papers), 0) AS SIGNED),"
                     " CAST(COALESCE(MAX(" SLICES "), 0) AS SIGNED) FROM corpus_block"
                     " WHERE" BLOCKS_WITHOUT,
                     name);
    if (err || r.cells[1].i == 0)
        return err;
    j->papers += r.cells[0].i;
    err = sql_on(
        t, c, &r,
        "INSERT IGNORE INTO embedding_unit (id, journal, year, slice, slices, state, priority,"
        " wanted, papers, created_at, changed_at)"
        " WITH RECURSIVE n (slice) AS (SELECT 0 UNION ALL SELECT slice + 1 FROM n"
        " WHERE slice + 1 < ?)"
        " SELECT LEFT(SHA2(CONCAT_WS('|', b.year, n.slice, b.slices, b.journal), 256), 32),"
        " b.journal, b.year, n.slice, b.slices, 'pending', ?, b.digest, CEIL(b.papers / b.slices),"
        " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM (SELECT journal, year, papers, digest, " SLICES
        " AS slices FROM corpus_block WHERE" BLOCKS_WITHOUT ") b JOIN n ON n.slice < b.slices",
        r.cells[1], sql_int(PAPER_PRIORITY), name);
    j->units += err ? 0 : (int64_t)r.affected;
    return err;
}

static int want(struct task *t, struct sql *c, void *arg)
{
    struct journal *j = arg;
    j->units = j->papers = 0;
    if (j->which == PAPERS_FAILED)
        return queue_again(t, c, j);
    int err = cut_anew(t, c, j);
    if (!err)
        err = queue_again(t, c, j);
    return err ? err : add_missing(t, c, j);
}

/* --- of which journals --- */

static int list_journals(struct task *t, struct sql_pool *sql, const struct papers_wish *w,
                         struct sql_rows *r)
{
    return sql_call(t, sql, r,
                    w->which == PAPERS_ALL
                        ? "SELECT DISTINCT journal FROM corpus_block WHERE papers > 0"
                    : w->which == PAPERS_FAILED
                        ? "SELECT DISTINCT journal FROM embedding_unit WHERE state = 'failed'"
                        : "SELECT DISTINCT journal FROM embedding_unit");
}

/* What a user has sent may be no UTF-8, or too long for a name: then it is none. */
static int find_unknown(struct task *t, struct sql_pool *sql, const struct papers_wish *w,
                        struct papers_wanted *out)
{
    for (size_t i = 0; i < w->count; i++) {
        struct sql_rows r;
        struct task_scope scope = task_scope(t);
        int err = sql_call(t, sql, &r,
                           "SELECT 1 FROM corpus_block WHERE journal = ? AND papers > 0 LIMIT 1",
                           sql_text(w->journals[i]));
        bool known = !err && r.count > 0;
        task_scope_end(t, scope);
        if (err)
            return err;
        if (known)
            continue;
        out->unknown = w->journals[i];
        return task_fail(t, ERR_NOT_FOUND, "there is no journal \"%.*s\" with papers",
                         STR_ARG(w->journals[i]));
    }
    return 0;
}

/* --- the log --- */

static int note(struct task *t, struct sql_pool *sql, const struct papers_wish *w,
                const struct papers_wanted *out, bool done)
{
    static const char *const words[] = {
        [PAPERS_ALL] = "all", [PAPERS_CHANGED] = "changed", [PAPERS_FAILED] = "failed"};
    struct arena *a = task_arena(t);
    if (!w->by)
        return 0;
    struct admin_deed d = *w->by;
    d.target = w->which != PAPERS_JOURNALS ? str_of(words[w->which])
               : w->count == 1             ? w->journals[0]
                                           : str_printf(a, "%zu journals", w->count);
    d.outcome = done ? ADMIN_DONE : ADMIN_BEGUN;
    if (done)
        d.after = str_printf(a, "{\"units\":%" PRId64 ",\"papers\":%" PRId64 "}", out->units,
                             out->papers);
    return admin_audit_note(t, sql, &d);
}

int papers_want(struct task *t, struct sql_pool *sql, const struct papers_wish *w,
                struct papers_wanted *out)
{
    struct sql_rows r = {.count = w->count};
    *out = (struct papers_wanted){.unknown = STR_NULL};
    check(w->count <= PAPERS_JOURNALS_MAX);
    int err =
        w->which == PAPERS_JOURNALS ? find_unknown(t, sql, w, out) : list_journals(t, sql, w, &r);
    if (!err)
        err = note(t, sql, w, out, false);
    for (size_t i = 0; i < r.count && !err; i++) {
        struct task_scope scope = task_scope(t);
        struct journal j = {.which = w->which,
                            .name = w->which == PAPERS_JOURNALS ? w->journals[i] : r.cells[i].s};
        err = sql_tx(t, sql, want, &j);
        out->units += j.units;
        out->papers += j.papers;
        task_scope_end(t, scope);
    }
    return err ? err : note(t, sql, w, out, true);
}
