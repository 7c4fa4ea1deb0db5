#include "tool/db/init_left.h"

#define AT_ONCE 500 /* papers that are withdrawn in one transaction */

/* --- which have left --- */

struct finding {
    const struct init_read *read;
    struct arena *arena;
    struct map *left;   /* NULL: they are only counted */
    struct map *counts; /* of files that were compared: key -> papers that left */
    struct str journal; /* that is being compared */
};

/* A row: DOI, file. */
static int take_paper(struct task *t, const struct sql_value *row, void *arg)
{
    struct finding *f = arg;
    struct str key = init_file_key(task_arena(t), f->journal, row[1].s);
    if (map_get(f->read->files, key) && !init_read_misses(f->read, task_arena(t), key, row[0].s))
        return 0;
    int64_t n = 0;
    (void)map_get_int(f->counts, key, &n);
    map_set_int(f->counts, key, n + 1);
    if (f->left && !map_get(f->read->damaged, key)) {
        struct str *kept = ARENA_NEW(f->arena, struct str);
        *kept = str_dup(f->arena, key);
        map_set(f->left, row[0].s, kept);
    }
    return 0;
}

static int compare_journal(struct task *t, struct sql_pool *sql, struct finding *f,
                           struct str journal)
{
    f->journal = journal;
    return sql_each(t, sql,
                    "SELECT DOI, JSON_UNQUOTE(JSON_EXTRACT(Bib, '$.file')) FROM paperinfo"
                    " WHERE journal = ?",
                    1, &sql_text(journal), take_paper, f);
}

/* Files whose number becomes known now. */
static bool is_compared(const struct init *in, const struct init_read *r, struct str key,
                        const struct init_known *k)
{
    bool gone = !map_get(r->files, key);
    return map_get(r->whole, key) || (gone && (in->prune || k->bytes != INIT_GONE));
}

struct noting {
    struct init *init;
    const struct finding *finding;
};

/* One that is gone and comes back is read again, also if it is as it was. */
static int note_file(struct task *t, struct sql *c, const struct finding *f, struct str journal,
                     struct str name, bool gone)
{
    int64_t n = 0;
    struct str key = init_file_key(task_arena(t), journal, name);
    (void)map_get_int(f->counts, key, &n);
    bool unknown = n > 0 && map_get(f->read->damaged, key);
    return sql_on(
        t, c, NULL,
        "UPDATE corpus_file SET left_papers = ?, bytes = CASE WHEN ? THEN ? ELSE bytes END"
        " WHERE journal = ? AND file = ?",
        unknown ? sql_null() : sql_int(n), sql_int(gone), sql_int(INIT_GONE), sql_text(journal),
        sql_text(name));
}

static int note_counts(struct task *t, struct sql *c, void *arg)
{
    const struct noting *n = arg;
    const struct finding *f = n->finding;
    const struct init_folder *folder = &n->init->folder;
    size_t at = 0;
    struct str key;
    void *v;
    int err = init_load_check(t, c, n->init->load);
    for (size_t i = 0; !err && i < folder->file_count; i++) {
        const struct init_file *file = &folder->files[i];
        if (map_get(f->read->whole, init_file_key(task_arena(t), file->journal, file->name)))
            err = note_file(t, c, f, file->journal, file->name, false);
    }
    while (!err && map_next(f->read->known, &at, &key, &v)) {
        const struct init_known *k = v;
        if (!map_get(f->read->files, key) && is_compared(n->init, f->read, key, k))
            err = note_file(t, c, f, k->journal, k->name, true);
    }
    return err;
}

/* Papers that may be among the damaged entries of their files. */
static void report_kept(struct task *t, struct init *in, const struct finding *f)
{
    for (size_t i = 0; i < in->folder.file_count; i++) {
        const struct init_file *file = &in->folder.files[i];
        struct str key = init_file_key(task_arena(t), file->journal, file->name);
        int64_t n = 0;
        if (!map_get(f->read->damaged, key) || !map_get_int(f->counts, key, &n))
            continue;
        in->report->totals.papers_kept += n;
        in->report->totals.files_kept++;
        init_report_problem(in->report, file->shown, 0, false,
                            "entries were left out, so papers that it lacks stay",
                            str_printf(task_arena(t), "%lld papers", (long long)n));
    }
}

/* Journals that have a file to compare. */
static void find_journals(struct task *t, const struct init *in, const struct init_read *r,
                          struct map *out)
{
    size_t at = 0;
    struct str key;
    void *v;
    for (size_t i = 0; i < in->folder.file_count; i++) {
        const struct init_file *f = &in->folder.files[i];
        if (map_get(r->whole, init_file_key(task_arena(t), f->journal, f->name)))
            map_add(out, f->journal);
    }
    while (map_next(r->known, &at, &key, &v)) {
        const struct init_known *k = v;
        if (!map_get(r->files, key) && is_compared(in, r, key, k))
            map_add(out, k->journal);
    }
}

int init_left_find(struct task *t, struct init *in, const struct init_read *r, struct arena *a,
                   struct map *left)
{
    struct finding f = {.read = r, .arena = a, .left = left, .counts = map_new()};
    struct map *journals = map_new();
    size_t at = 0;
    struct str journal;
    void *v;
    int err = 0;
    find_journals(t, in, r, journals);
    while (!err && map_next(journals, &at, &journal, &v))
        err = compare_journal(t, in->db->sql, &f, journal);
    if (!err && map_count(journals))
        err = sql_tx(t, in->db->sql, note_counts, &(struct noting){in, &f});
    if (!err)
        report_kept(t, in, &f);
    map_free(journals);
    map_free(f.counts);
    return err;
}

int init_left_count(struct task *t, struct init *in)
{
    struct sql_rows r;
    int err = sql_call(t, in->db->sql, &r,
                       "SELECT CAST(COALESCE(SUM(left_papers), 0) AS SIGNED),"
                       " COUNT(*) - COUNT(left_papers) FROM corpus_file");
    if (!err) {
        in->report->totals.papers_left = r.cells[0].i;
        in->report->totals.files_unknown = r.cells[1].i;
    }
    return err;
}

/* --- taking them out --- */

struct withdrawing {
    struct init *init;
    const struct map *left;
    struct str dois[AT_ONCE];
    size_t count;
    struct init_changes changes;
    struct bibtex *reader;
};

static int withdraw_one(struct task *t, struct sql *c, struct withdrawing *w, struct str doi)
{
    struct sql_rows r;
    struct paper stored;
    const struct str *owner = map_get(w->left, doi);
    int err = sql_on(t, c, &r, "SELECT Bib FROM paperinfo WHERE DOI = ? FOR UPDATE", sql_text(doi));
    if (err || !r.count)
        return err;
    err = paper_read_json(task_arena(t), doi, r.cells[0].s, &stored);
    if (err)
        return task_fail(t, err, "paperinfo: the row of %.*s was not written by millrace",
                         STR_ARG(doi));
    if (!str_eq(*owner, init_file_key(task_arena(t), stored.journal, stored.file)))
        return 0;
    struct init_fact fact = init_fact_of(task_arena(t), w->reader, &stored);
    init_changes_add(t, &w->changes, &fact, -1);
    w->changes.withdrawn++;
    return sql_on(t, c, NULL, "DELETE FROM paperinfo WHERE DOI = ?", sql_text(doi));
}

/* Runs again after a deadlock, so it resets what it collects. */
static int withdraw(struct task *t, struct sql *c, void *arg)
{
    struct withdrawing *w = arg;
    init_changes_release(&w->changes);
    init_changes_init(&w->changes);
    int err = init_load_check(t, c, w->init->load);
    for (size_t i = 0; !err && i < w->count; i++)
        err = withdraw_one(t, c, w, w->dois[i]);
    return err ? err : init_changes_write(t, c, &w->changes, w->init->load);
}

static int withdraw_some(struct task *t, struct withdrawing *w, struct map *blocks_changed)
{
    struct task_scope s = task_scope(t);
    int err = w->count ? sql_tx(t, w->init->db->sql, withdraw, w) : 0;
    if (!err) {
        init_changes_name(&w->changes, blocks_changed);
        w->init->report->totals.papers_withdrawn += w->changes.withdrawn;
    }
    w->count = 0;
    init_changes_release(&w->changes);
    init_changes_init(&w->changes);
    task_scope_end(t, s);
    return err;
}

static int withdraw_all(struct task *t, struct withdrawing *w, struct map *blocks_changed)
{
    size_t at = 0;
    struct str doi;
    void *v;
    int err = 0;
    while (!err && map_next(w->left, &at, &doi, &v)) {
        w->dois[w->count++] = doi;
        if (w->count == AT_ONCE)
            err = withdraw_some(t, w, blocks_changed);
    }
    return err ? err : withdraw_some(t, w, blocks_changed);
}

struct forgetting {
    const struct init *init;
    const struct init_read *read;
};

static int forget_gone(struct task *t, struct sql *c, void *arg)
{
    const struct forgetting *f = arg;
    const struct init_read *r = f->read;
    size_t at = 0;
    struct str key;
    void *v;
    int err = init_load_check(t, c, f->init->load);
    while (!err && map_next(r->known, &at, &key, &v)) {
        const struct init_known *k = v;
        if (!map_get(r->files, key))
            err = sql_on(t, c, NULL, "DELETE FROM corpus_file WHERE journal = ? AND file = ?",
                         sql_text(k->journal), sql_text(k->name));
    }
    return err ? err
               : sql_on(t, c, NULL, "UPDATE corpus_file SET left_papers = 0 WHERE left_papers > 0");
}

int init_left_withdraw(struct task *t, struct init *in, const struct init_read *r,
                       const struct map *left, struct map *blocks_changed)
{
    struct withdrawing *w = ARENA_NEW(task_arena(t), struct withdrawing);
    w->init = in;
    w->left = left;
    w->reader = bibtex_new(NULL, NULL);
    init_changes_init(&w->changes);
    int err = withdraw_all(t, w, blocks_changed);
    init_changes_release(&w->changes);
    bibtex_free(w->reader);
    return err ? err : sql_tx(t, in->db->sql, forget_gone, &(struct forgetting){in, r});
}
