/* Step 3: papers. One task reads and makes batches, the other stores them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "corpus/doi.h"
#include "loop/sync.h"
#include "tool/db/init_left.h"
#include "tool/db/init_source.h"

#define BATCHES_AHEAD 2
#define YIELD_EACH    64 /* papers: the task that stores must get its turn */

struct papers {
    struct init *init;
    struct init_report *failures; /* where files that cannot be read are named */
    struct map *blocks;           /* that were changed */
    struct init_read *read;
    struct map *only; /* DOIs of papers that have left their files; NULL: all papers are read */
    bool incomplete;  /* a file or folder could not be read, or changed meanwhile */
    struct chan batches;
    struct init_batch *batch; /* being filled */
    struct init_seen seen;    /* DOIs of the file being read */
    struct buf json;
    int64_t bytes_read, papers_read;
    int err; /* of the task that reads */
};

/* --- which files --- */

static int read_known(struct task *t, struct papers *p)
{
    struct sql_rows r;
    struct arena *a = task_arena(t);
    int err = sql_call(t, p->init->db->sql, &r,
                       "SELECT journal, file, bytes, changed_ns, digest, COALESCE(left_papers, -1)"
                       " FROM corpus_file");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct init_known *k = ARENA_NEW(a, struct init_known);
        *k = (struct init_known){row[0].s, row[1].s, row[2].i, row[3].i, row[4].i, row[5].i};
        map_set(p->read->known, init_file_key(a, row[0].s, row[1].s), k);
    }
    return err;
}

static const struct init_known *known(struct task *t, struct papers *p, const struct init_file *f)
{
    struct task_scope s = task_scope(t);
    const struct init_known *k =
        map_get(p->read->known, init_file_key(task_arena(t), f->journal, f->name));
    task_scope_end(t, s);
    return k;
}

static bool looks_the_same(const struct init_known *k, const struct init_file *f)
{
    return k && k->bytes == f->bytes && k->changed_ns == f->changed_ns;
}

/* Also if it has not changed. */
static bool must_be_read(const struct papers *p, const struct init_known *k)
{
    return p->only || (k && p->init->prune && k->left != 0);
}

/* Collects all names and sums up the bytes to read. */
static void survey(struct task *t, struct papers *p)
{
    const struct init_folder *folder = &p->init->folder;
    int64_t bytes = 0;
    for (size_t i = 0; i < folder->file_count; i++) {
        const struct init_file *f = &folder->files[i];
        map_add(p->read->files, init_file_key(task_arena(t), f->journal, f->name));
        const struct init_known *k = known(t, p, f);
        if (!looks_the_same(k, f) || must_be_read(p, k))
            bytes += f->bytes;
    }
    progress_init(&p->init->progress, task_loop(t), "db init", "papers", bytes);
}

/* --- reading --- */

static int send_batch(struct task *t, struct papers *p)
{
    if (p->batch->count == 0 && p->batch->done_count == 0)
        return 0;
    int err = chan_send(t, &p->batches, p->batch);
    if (!err)
        p->batch = init_batch_new();
    return err;
}

/* Copies from the buffers of the reader into the batch. */
static void put_paper(struct papers *p, const struct init_file *f, const struct paper *paper,
                      const struct bibtex_entry *e, struct init_counts *counts)
{
    struct init_batch *b = p->batch;
    buf_clear(&p->json);
    paper_write_json(&p->json, paper);
    b->papers[b->count++] = (struct init_paper){
        .paper = {.doi = str_dup(&b->arena, paper->doi),
                  .journal = f->journal,
                  .file = f->name,
                  .year = paper->year},
        .json = str_dup(&b->arena, buf_str(&p->json)),
        .digest = paper_digest(paper),
        .bare = e->abstract.n == 0,
        .file = f,
        .line = (int64_t)e->line,
        .counts = counts,
    };
    b->bytes += p->json.len;
    counts->made_up += doi_is_made_up(paper->doi);
    counts->bare += e->abstract.n == 0;
}

static void take_entry(struct task *t, struct papers *p, const struct init_file *f,
                       struct bibtex *reader, const struct bibtex_entry *e,
                       struct init_counts *counts)
{
    struct task_scope s = task_scope(t);
    struct paper paper;
    const char *why;
    counts->read++;
    if (paper_of_entry(task_arena(t), reader, e, f->journal, f->name, &paper, &why)) {
        counts->rejected++;
        init_report_problem(p->init->report, f->shown, (int64_t)e->line, true, why, e->key);
    } else if (p->only && !map_get(p->only, paper.doi)) {
        counts->unchanged++;
    } else if (!init_seen_add(&p->seen, paper.doi)) {
        counts->duplicate++;
        init_report_problem(p->init->report, f->shown, (int64_t)e->line, false,
                            "this DOI is in the same file, earlier", paper.doi);
    } else {
        put_paper(p, f, &paper, e, counts);
        if (!p->only)
            init_read_note(p->read, task_arena(t),
                           init_file_key(task_arena(t), f->journal, f->name), paper.doi);
    }
    task_scope_end(t, s);
}

/* More entries of f may follow. */
static int send_part(struct task *t, struct papers *p, const struct init_file *f)
{
    if (!p->only)
        init_batch_add_begun(p->batch, f);
    return send_batch(t, p);
}

static int read_entries(struct task *t, struct papers *p, const struct init_file *f,
                        struct init_source *source, struct init_counts *counts)
{
    struct bibtex_entry e;
    int64_t before = p->bytes_read;
    int more;
    init_seen_release(&p->seen);
    while ((more = init_source_next(source, &e)) > 0) {
        take_entry(t, p, f, init_source_reader(source), &e, counts);
        p->papers_read++;
        p->bytes_read += (int64_t)e.raw.n;
        int err = p->batch->count == INIT_BATCH_PAPERS || p->batch->bytes >= INIT_BATCH_BYTES
                      ? send_part(t, p, f)
                  : p->papers_read % YIELD_EACH == 0 ? task_yield(t)
                                                     : 0;
        if (err)
            return err;
        progress_show(&p->init->progress, p->bytes_read, p->papers_read);
    }
    p->bytes_read = before + f->bytes;
    return more;
}

static void lose_file(struct papers *p, const struct init_file *f, int err)
{
    p->incomplete = true;
    p->failures->totals.files_failed++;
    init_report_problem(p->failures, f->shown, 0, true, "this file could not be read",
                        str_of(err == ERR_LIMIT ? "too large to be converted; make it UTF-8"
                               : err == ERR_IO  ? strerror(errno)
                                                : err_name(err)));
}

static bool still_the_same(const struct init_file *f)
{
    struct stat st;
    return stat(f->path, &st) == 0 && st.st_size == f->bytes &&
           init_changed_ns(&st) == f->changed_ns;
}

/* Its entries were read, but not all, or not all of the same version. */
static void leave_file(struct papers *p, const struct init_file *f)
{
    p->incomplete = true;
    if (!p->only)
        init_batch_add_begun(p->batch, f);
}

/* All of its entries were read, or it has changed meanwhile. */
static void end_file(struct task *t, struct papers *p, const struct init_file *f, int64_t digest,
                     bool damaged)
{
    if (!still_the_same(f)) {
        leave_file(p, f);
        init_report_problem(p->failures, f->shown, 0, true,
                            "changed while it was read; run db init again", STR(""));
    } else if (!p->only) {
        init_batch_add_done(p->batch, f, digest);
        struct str key = init_file_key(task_arena(t), f->journal, f->name);
        if (map_get(p->read->known, key))
            map_add(p->read->whole, key);
        if (damaged)
            map_add(p->read->damaged, key);
    }
}

/* Errors of this file are reported, and reading goes on; a returned error ends the command. */
static int read_file(struct task *t, struct papers *p, const struct init_file *f)
{
    struct init_totals *totals = &p->init->report->totals;
    const struct init_known *k = known(t, p, f);
    bool must = must_be_read(p, k);
    struct init_look look;
    struct init_source *source;
    if (looks_the_same(k, f) && !must) {
        totals->files_unchanged++;
        return 0;
    }
    int err = init_source_look(f->path, &look);
    if (!err && k && k->digest == look.digest && k->bytes == f->bytes && !must) {
        totals->files_unchanged++;
        p->bytes_read += f->bytes;
        init_batch_add_done(p->batch, f, look.digest); /* only its time has changed */
        return 0;
    }
    struct init_counts *counts = init_report_journal(p->init->report, f->journal);
    if (!err)
        err = init_source_open(&source, f, look.utf8, p->init->report, counts);
    if (err) {
        lose_file(p, f, err);
        return 0;
    }
    totals->files_read++;
    int64_t rejected = counts->rejected;
    err = read_entries(t, p, f, source, counts);
    if (err == ERR_IO) {
        lose_file(p, f, err);
        leave_file(p, f);
    }
    init_source_close(source);
    if (err)
        return err == ERR_IO ? 0 : err;
    end_file(t, p, f, look.digest, counts->rejected > rejected);
    return 0;
}

static void read_files(struct task *t, void *arg)
{
    struct papers *p = arg;
    const struct init_folder *folder = &p->init->folder;
    int err = 0;
    for (size_t i = 0; i < folder->file_count && !err; i++)
        err = read_file(t, p, &folder->files[i]);
    if (!err)
        err = send_batch(t, p);
    p->err = err;
    chan_close(&p->batches);
}

/* --- storing --- */

static void count_outcome(struct task *t, struct papers *p, const struct init_paper *q)
{
    int64_t *counts[] = {[INIT_STORED] = &q->counts->stored,
                         [INIT_UPDATED] = &q->counts->updated,
                         [INIT_UNCHANGED] = &q->counts->unchanged,
                         [INIT_DUPLICATE] = &q->counts->duplicate};
    ++*counts[q->outcome];
    if (q->outcome == INIT_DUPLICATE)
        init_report_problem(p->init->report, q->file->shown, q->line, false,
                            "another file has this DOI",
                            str_printf(task_arena(t), "%.*s: %.*s/%.*s", STR_ARG(q->paper.doi),
                                       STR_ARG(q->owner_journal), STR_ARG(q->owner_file)));
}

static int store_batches(struct task *t, struct papers *p)
{
    const struct init_store o = {
        .load = p->init->load, .read = p->read, .blocks_changed = p->blocks};
    void *v;
    int err = 0;
    while (!err && chan_recv(t, &p->batches, &v) == 0) {
        struct init_batch *b = v;
        struct task_scope s = task_scope(t);
        err = init_batch_store(t, p->init->db->sql, b, &o);
        for (size_t i = 0; i < b->count && !err; i++)
            count_outcome(t, p, &b->papers[i]);
        task_scope_end(t, s);
        init_batch_free(b);
    }
    return err;
}

static int read_and_store(struct task *t, struct papers *p)
{
    survey(t, p);
    struct group g;
    group_init(&g, task_loop(t));
    chan_init(&p->batches, BATCHES_AHEAD);
    p->batch = init_batch_new();
    int err = task_go(&g, "read", read_files, p);
    if (!err)
        err = store_batches(t, p);
    if (err)
        group_cancel(&g);
    int joined = group_join(t, &g);
    progress_end(&p->init->progress);
    void *v;
    chan_close(&p->batches);
    while (chan_recv(t, &p->batches, &v) == 0)
        init_batch_free(v);
    init_batch_free(p->batch);
    chan_release(&p->batches);
    init_seen_release(&p->seen);
    return err ? err : joined ? joined : p->err;
}

/* --- papers that have left --- */

/* Reads the whole folder for papers that have left their files: another file may have them, and was
 * not stored because it came second. What the first pass has reported is not reported again, but
 * files that only this one could not read are. */
static int look_elsewhere(struct task *t, struct papers *p, struct map *left)
{
    struct init quiet = *p->init;
    struct papers again = *p;
    quiet.report = init_report_new();
    again.init = &quiet;
    again.only = left;
    again.seen = (struct init_seen){0};
    buf_init(&again.json);
    again.bytes_read = again.papers_read = 0;
    int err = map_count(left) ? read_and_store(t, &again) : 0;
    p->incomplete = p->incomplete || again.incomplete;
    buf_release(&again.json);
    init_report_free(quiet.report);
    return err;
}

static int see_to_left(struct task *t, struct papers *p)
{
    struct init *in = p->init;
    struct arena a;
    arena_init(&a);
    struct map *left = in->prune ? map_new() : NULL;
    int err = init_left_find(t, in, p->read, &a, left);
    if (!err && left && !p->incomplete)
        err = look_elsewhere(t, p, left);
    if (!err && left && !p->incomplete)
        err = init_left_withdraw(t, in, p->read, left, p->blocks);
    in->report->totals.prune_skipped = left && p->incomplete;
    if (!err)
        err = init_left_count(t, in);
    if (left)
        map_free(left);
    arena_release(&a);
    return err;
}

static int load(struct task *t, struct papers *p)
{
    int err = read_known(t, p);
    if (!err)
        err = read_and_store(t, p);
    if (!err)
        err = see_to_left(t, p);
    p->init->report->totals.blocks_changed = (int64_t)map_count(p->blocks);
    return err;
}

int init_papers(struct task *t, struct init *in)
{
    struct init_read read;
    struct papers p = {.init = in,
                       .failures = in->report,
                       .incomplete = in->folder.incomplete,
                       .blocks = map_new(),
                       .read = &read};
    init_read_init(&read);
    buf_init(&p.json);
    int err = load(t, &p);
    init_read_release(&read);
    buf_release(&p.json);
    map_free(p.blocks);
    return err;
}
