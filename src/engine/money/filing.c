#include "engine/money/filing.h"

#include <string.h>

#include "engine/store/keys.h"

#define ASKED_MAX 1000 /* results in one command */

/* --- reading --- */

/* How many of p, from the first on, are of its run. */
static size_t of_one_run(const struct filing_paper *p, size_t count)
{
    size_t n = 1;
    while (n < count && n < ASKED_MAX && p[n].qid.p && str_eq(p[n].qid, p->qid))
        n++;
    return n;
}

static void ask(struct task *t, struct redis_batch *b, int64_t uid, const struct filing_paper *p,
                size_t count)
{
    struct str key = key_result(task_arena(t), uid, p->qid);
    struct str *argv = ARENA_ARRAY(task_arena(t), struct str, count + 2);
    argv[0] = STR("HMGET");
    argv[1] = key;
    for (size_t i = 0; i < count; i++)
        argv[i + 2] = p[i].doi;
    redis_batch_argv(b, key, count + 2, argv);
}

/* What p needs of its result is copied: the JSON trees of thousands would take too much memory. */
static void take(struct arena *a, struct arena *scratch, const struct redis_reply *reply,
                 struct filing_paper *p, struct str last_block)
{
    struct str journal, slice;
    struct result r;
    arena_reset(scratch, (struct arena_mark){0});
    p->readable = reply->type == REDIS_STRING && !result_read(scratch, reply->str, &r) &&
                  key_block_read(r.block_key, &journal, &p->year, &slice);
    if (!p->readable)
        return;
    p->verdict = result_verdict_text(a, reply->str, &r);
    p->result = (struct result){.block_key = last_block.p && str_eq(last_block, r.block_key)
                                                 ? last_block
                                                 : str_dup(a, r.block_key),
                                .outcome = r.outcome,
                                .not_judged = r.not_judged,
                                .withdrawn = r.withdrawn};
}

static int take_all(struct task *t, const struct redis_reply *const *replies,
                    struct filing_paper *p, size_t count)
{
    struct arena scratch;
    struct str block = STR_NULL;
    int err = 0;
    arena_init(&scratch);
    for (size_t i = 0; i < count && !err;) {
        if (!p[i].qid.p) {
            i++;
            continue;
        }
        size_t n = of_one_run(p + i, count - i);
        const struct redis_reply *r = *replies++;
        if (r->type != REDIS_ARRAY || r->count != n)
            err = task_fail(t, ERR_REFUSED, "the results of a run cannot be read: %s",
                            r->type == REDIS_ERROR ? r->str.p : "HMGET returned something else");
        for (size_t k = 0; k < n && !err; k++, i++) {
            take(task_arena(t), &scratch, r->items[k], &p[i], block);
            block = p[i].readable ? p[i].result.block_key : block;
        }
    }
    arena_release(&scratch);
    return err;
}

int filing_read(struct task *t, struct redis *r, int64_t uid, struct filing_paper *p, size_t count)
{
    struct redis_batch b;
    const struct redis_reply *const *replies;
    size_t asked = 0;
    redis_batch_init(&b, t, r);
    for (size_t i = 0; i < count;) {
        size_t n = p[i].qid.p ? of_one_run(p + i, count - i) : 1;
        if (p[i].qid.p) {
            ask(t, &b, uid, p + i, n);
            asked++;
        }
        i += n;
    }
    int err = asked ? redis_batch_run(&b, &replies) : 0;
    if (!err && asked)
        err = take_all(t, replies, p, count);
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* nothing was changed */
}

/* --- writing --- */

static struct str class_of(const struct result *r)
{
    if (r->outcome == OUTCOME_FAILED)
        return r->not_judged ? STR("not_judged") : r->withdrawn ? STR("withdrawn") : STR("failed");
    return r->outcome == OUTCOME_HIT ? STR("relevant") : STR("irrelevant");
}

/* The order of the assignments matters: each sees what those before it have made of the row. */
#define KEEPS_VERDICT "VALUES(relevant) IS NULL AND relevant IS NOT NULL"
#define UNLESS_VERDICT(column)                                                                     \
    " " column " = IF(" KEEPS_VERDICT ", " column ", VALUES(" column ")),"

int filing_write(struct task *t, struct sql *c, int64_t uid, const struct filing_paper *p,
                 size_t count)
{
    enum { COLUMNS = 8 };
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, count * COLUMNS);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct result *r = &p[i].result;
        if (!p[i].readable)
            continue;
        const struct sql_value row[COLUMNS] = {
            sql_int(uid),
            sql_text(p[i].qid),
            sql_text(p[i].doi),
            sql_text(r->block_key),
            sql_int(p[i].year),
            r->outcome == OUTCOME_FAILED ? sql_null() : sql_int(r->outcome == OUTCOME_HIT),
            sql_text(class_of(r)),
            sql_text(p[i].verdict),
        };
        memcpy(cells + n++ * COLUMNS, row, sizeof row);
    }
    return sql_bulk(t, c,
                    "INSERT INTO search_result"
                    " (uid, query_id, doi, block_key, year, relevant, outcome, ai_result) VALUES",
                    "ON DUPLICATE KEY UPDATE" UNLESS_VERDICT("block_key") UNLESS_VERDICT("year")
                        UNLESS_VERDICT("outcome") UNLESS_VERDICT(
                            "ai_result") " relevant = COALESCE(VALUES(relevant), relevant)",
                    COLUMNS, n, cells, NULL);
}

/* --- counting --- */

static int count_run(struct task *t, struct sql *c, int64_t uid, const struct filing_paper *p,
                     size_t count)
{
    int64_t judged = 0, relevant = 0, cents = 0;
    for (size_t i = 0; i < count; i++) {
        bool verdict = p[i].readable && p[i].result.outcome != OUTCOME_FAILED;
        judged += verdict;
        relevant += verdict && p[i].result.outcome == OUTCOME_HIT;
        cents += p[i].cents;
    }
    return sql_on(t, c, NULL,
                  "UPDATE query_log SET judged_papers = judged_papers + ?,"
                  " finished_papers = GREATEST(finished_papers, judged_papers),"
                  " relevant_papers = relevant_papers + ?, total_cost = total_cost + ? / 100,"
                  " archived = 0 WHERE query_id = ? AND uid = ?",
                  sql_int(judged), sql_int(relevant), sql_int(cents), sql_text(p->qid),
                  sql_int(uid));
}

int filing_count(struct task *t, struct sql *c, int64_t uid, const struct filing_paper *p,
                 size_t count)
{
    int err = 0;
    for (size_t i = 0; i < count && !err;) {
        size_t n = 1;
        if (p[i].qid.p) {
            while (i + n < count && p[i + n].qid.p && str_eq(p[i + n].qid, p[i].qid))
                n++;
            err = count_run(t, c, uid, p + i, n);
        }
        i += n;
    }
    return err;
}
