/* A job, from its row to its end (paper.h). */
#include "app/embed/paper/papers_private.h"
#include "engine/ai/ai.h"
#include "engine/search/journal.h"

/* --- the row --- */

static int read_row(struct task *t, struct paper_work *w)
{
    struct sql_rows r;
    int err =
        sql_call(t, w->papers->node->sql, &r,
                 "SELECT u.journal, u.year, u.slice, u.slices, COALESCE(b.digest, 0),"
                 " u.papers FROM embedding_unit u LEFT JOIN corpus_block b ON b.journal = u.journal"
                 " AND b.year = u.year WHERE u.id = ? AND u.version = ?"
                 " AND u.state IN " PAPER_OPEN,
                 sql_text(w->job->id), sql_int(w->job->version));
    if (err)
        return err;
    w->final = r.count == 0;
    if (w->final)
        return 0;
    w->unit = (struct paper_unit){.journal = r.cells[0].s,
                                  .year = r.cells[1].i,
                                  .slice = r.cells[2].i,
                                  .slices = r.cells[3].i};
    w->digest = r.cells[4].i;
    w->large = r.cells[5].i > PAPER_LARGE;
    return 0;
}

static int number_journal(struct task *t, struct paper_work *w)
{
    int64_t year = w->unit.year;
    w->tags = (struct point_tags){.year = (uint16_t)(year > 0 && year < UINT16_MAX ? year : 0)};
    return journal_numbers_give(t, w->papers->node->sql, &w->unit.journal, 1, &w->tags.journal);
}

/* --- errors --- */

/* What it waits for is for admins to see: it loses no try. */
static int say_it_waits(struct task *t, struct paper_work *w, int err, const char *reason)
{
    struct str why = str_dup(task_arena(t), str_of(task_error(t)));
    if (sql_call(t, w->papers->node->sql, NULL,
                 "UPDATE embedding_unit SET waits = LEFT(?, 1000), waits_code = ?" PAPER_OF_THIS,
                 sql_text(why), sql_text(str_of(reason)), sql_text(w->job->id),
                 sql_int(w->job->version)) == ERR_CANCELED)
        return ERR_CANCELED;
    return task_fail(t, err, "%.*s", STR_ARG(why));
}

/* --- vectors --- */

static int embed(struct task *t, struct paper_work *w)
{
    int err = job_ask_begin(t, w->job);
    if (err)
        return err;
    err = paper_put_all(t, w);
    job_ask_end(w->job);
    err = ai_job_error(t, w->papers->node->embedding_ai, err);
    if (err && err != ERR_CANCELED)
        job_reason(w->job, embed_reason(err));
    if (err == ERR_UNAVAILABLE)
        return say_it_waits(t, w, err, EMBED_SERVICE_DOWN);
    return err ? embed_job_error(t, err) : 0;
}

/* --- the end --- */

/* It goes on when there is a service: then nodes start anew, and look at all rows. */
static int without_service(struct task *t, struct paper_work *w)
{
    int err = sql_call(t, w->papers->node->sql, NULL,
                       "UPDATE embedding_unit SET state = 'pending', waits = ?,"
                       " waits_code = ?" PAPER_OF_THIS,
                       sql_text(STR(EMBED_NO_SERVICE_TEXT)), sql_text(STR(EMBED_NO_SERVICE)),
                       sql_text(w->job->id), sql_int(w->job->version));
    return err ? err : JOB_WRITTEN;
}

/* If two spaces were written to, the unit names the one that is not the last: it is found by
 * papers_space_role. */
static int count_up(struct task *t, struct paper_work *w)
{
    int64_t embedded = 0, refused = 0, space = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct paper_doc *d = &w->docs[i];
        embedded += d->space > 0;
        refused += d->space == 0;
        space = d->space && (!space || d->space < space) ? d->space : space;
    }
    metric_add(w->papers->refused, refused);
    return sql_call(t, w->papers->node->sql, NULL,
                    "UPDATE embedding_unit SET digest = ?, space = ?, papers = ?, bare = ?,"
                    " done = ?, embedded = ?, refused = ?, waits = NULL,"
                    " waits_code = NULL" PAPER_OF_THIS,
                    sql_int(w->digest), sql_int(space), sql_int((int64_t)w->count + w->bare),
                    sql_int(w->bare), sql_int((int64_t)w->count), sql_int(embedded),
                    sql_int(refused), sql_text(w->job->id), sql_int(w->job->version));
}

/* Its papers are read and compared, and have words. */
static int prepare(struct task *t, struct paper_work *w)
{
    uint64_t *gone = NULL;
    size_t gone_count = 0;
    int err = paper_read_unit(t, w->papers->node, &w->unit, &w->docs, &w->count, &w->bare);
    if (!err)
        err = paper_compare(t, w, &gone, &gone_count);
    if (!err && w->count)
        err = number_journal(t, w);
    if (!err)
        err = paper_remove(t, w, gone, gone_count);
    if (!err && !w->final)
        err = paper_write_words(t, w);
    return err;
}

static int work(struct task *t, struct paper_work *w)
{
    paper_comes(w->papers);
    int err = prepare(t, w);
    paper_came(w->papers);
    if (err || w->final)
        return err ? err : JOB_WRITTEN;
    if (w->count && !w->papers->service)
        return without_service(t, w);
    if (w->count)
        err = embed(t, w);
    if (!err)
        err = count_up(t, w);
    return err ? err : paper_dies(t, w, "count");
}

/* Papers are in memory from here on. */
static int work_in_turn(struct task *t, struct paper_work *w)
{
    struct sem *large = &w->papers->large;
    int err = w->large ? sem_get(t, large) : 0;
    if (err)
        return err;
    err = work(t, w);
    if (w->large)
        sem_put(large);
    return err;
}

int paper_work_on(struct task *t, void *arg, const struct job *j)
{
    struct paper_work w = {.papers = arg, .job = j};
    int err = read_row(t, &w);
    if (!err && w.final)
        return JOB_WRITTEN;
    return err ? err : work_in_turn(t, &w);
}
