/* Rows that are worked on, many by one statement: documents that are at the same step on a node are
 * looked at together, and kept together. Each is compared by itself: user, version and state of one
 * have no effect on the others, and a row that cannot be written fails alone. */
#include "app/extract/task/extract_private.h"
#include "app/extract/together.h"
#include "base/map.h"

#define ROWS_AT_ONCE 256
#define COLUMNS      22
#define LARGE_BYTES  (256 << 10) /* of what is kept */

static bool is_open(struct str state)
{
    return str_eq(state, STR("pending")) || str_eq(state, STR("extracting"));
}

/* Rows by their ids: "begin (?, …)end". The first column is the id. */
static int select_rows(struct task *t, struct sql_pool *pool, struct sql *c, const char *begin,
                       const char *end, const struct str *ids, size_t count, struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    size_t marks = sql_padded(count);
    struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks);
    for (size_t i = 0; i < marks; i++)
        v[i] = sql_text(ids[i < count ? i : count - 1]);
    const char *statement = sql_marks(a, begin, marks, end);
    return c ? sql_on_argv(t, c, statement, marks, v, out)
             : sql_argv(t, pool, statement, marks, v, out);
}

static struct map *by_id(const struct sql_rows *r)
{
    struct map *m = map_new();
    for (size_t i = 0; i < r->count; i++)
        (void)map_set(m, sql_row(r, i)[0].s, (void *)(uintptr_t)sql_row(r, i));
    return m;
}

/* --- looking --- */

struct reading {
    struct gather_item item;
    const struct job *job;
    struct extract_job_row *out;
};

enum { ID, UID, VERSION, STATE, TASK, NUMBER, DOCUMENT, DOI, BLOCK, CENTS, ASKS, COMPLAINT };
enum { RESULT = COMPLAINT + 1, PARTS, PARTS_DONE, SIMULATED, TOKENS };

static struct str own(struct arena *a, struct str s)
{
    return s.p ? str_dup(a, s) : STR_NULL;
}

static void read_row(struct arena *a, const struct sql_value *v, struct extract_job_row *out)
{
    *out = (struct extract_job_row){
        .open = true,
        .number = v[NUMBER].i,
        .source = {.document_id = own(a, v[DOCUMENT].s),
                   .doi = own(a, v[DOI].s),
                   .block_key = own(a, v[BLOCK].s)},
        .cents = v[CENTS].i,
        .asks = v[ASKS].i,
        .complaint = own(a, v[COMPLAINT].s),
        .kept = own(a, v[RESULT].s),
        .parts = v[PARTS].i,
        .parts_done = v[PARTS_DONE].i,
        .simulated = v[SIMULATED].i != 0,
        .tokens = v[TOKENS].i,
    };
}

/* Gives each what its row says. From here on nothing fails for all. */
static void hand_out(struct extract *x, struct gather_item **items, size_t count,
                     const struct map *rows)
{
    for (size_t i = 0; i < count; i++) {
        struct reading *r = (struct reading *)items[i];
        const struct sql_value *v = map_get(rows, r->job->id);
        if (!v || v[UID].i != r->job->uid || v[VERSION].i != r->job->version ||
            !is_open(v[STATE].s))
            continue;
        struct extract_frozen *f = extract_frozen_get(x, v[TASK].i);
        if (f && f->problem) {
            gather_fail(items[i], ERR_INTERNAL,
                        arena_printf(task_arena(items[i]->task),
                                     "the template of the task cannot be read: %s", f->problem));
            extract_frozen_put(f);
        } else if (f) {
            read_row(task_arena(items[i]->task), v, r->out);
            r->out->frozen = f;
        }
    }
}

static int read_some(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct extract *x = arg;
    struct str *ids = ARENA_ARRAY(task_arena(t), struct str, count);
    struct sql_rows r = {.count = 0};
    for (size_t i = 0; i < count; i++)
        ids[i] = ((struct reading *)items[i])->job->id;
    int err = select_rows(t, x->node->sql, NULL,
                          "SELECT id, uid, version, state, task, number, document_id, doi,"
                          " block_key, cents, asks, complaint, result, parts, parts_done,"
                          " simulated, tokens FROM extraction_result WHERE id IN",
                          "", ids, count, &r);
    int64_t *tasks = ARENA_ARRAY(task_arena(t), int64_t, r.count + 1);
    for (size_t i = 0; !err && i < r.count; i++)
        tasks[i] = sql_row(&r, i)[TASK].i;
    if (!err && r.count)
        err = extract_frozen_load(t, x, tasks, r.count);
    if (err)
        return err;
    struct map *rows = by_id(&r);
    hand_out(x, items, count, rows);
    map_free(rows);
    return 0;
}

static int read_all(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    return together(t, arg, items, count, read_some);
}

int extract_job_read(struct task *t, struct extract *x, const struct job *j,
                     struct extract_job_row *out)
{
    struct reading r = {.job = j, .out = out};
    *out = (struct extract_job_row){.open = false};
    return gather_do(t, &x->reads, &r.item, 0);
}

/* --- keeping --- */

struct keeping {
    struct gather_item item;
    const struct job *job;
    const struct extract_kept *kept;
    bool done; /* else the row has ended, or is in a later version */
};
struct keeping_some {
    struct gather_item **items;
    size_t count;
};

static void write_cells(const struct keeping *k, struct sql_value *v)
{
    const struct extract_kept *x = k->kept;
    size_t n = 0;
    v[n++] = sql_int(x->number);
    v[n++] = sql_text(k->job->id);
    v[n++] = sql_int(k->job->uid);
    v[n++] = sql_text(x->result);
    v[n++] = sql_int(x->parts);
    v[n++] = sql_int(x->parts);
    v[n++] = sql_int(x->tokens);
    v[n++] = sql_int(x->simulated);
    v[n++] = sql_text(x->text);
    v[n++] = sql_text(x->title);
    v[n++] = sql_int(x->flags.missing);
    v[n++] = sql_int(x->flags.unverified);
    v[n++] = sql_int(x->flags.differs);
    v[n++] = sql_text(x->flags.sort_keys);
    v[n++] = sql_int(x->token);
    /* Columns of a new row, without defaults: there is none, all rows are there. */
    v[n++] = sql_int(0);
    v[n++] = sql_int(0);
    v[n++] = sql_text(STR("error"));
    v[n++] = sql_int(0);
    v[n++] = sql_int(0);
    v[n++] = sql_text(STR("2000-01-01"));
    v[n++] = sql_text(STR("2000-01-01"));
    check(n == COLUMNS);
}

#define INTO                                                                                       \
    "INSERT INTO extraction_result (number, id, uid, result, parts, parts_done, tokens,"           \
    " simulated, text, title, missing, unverified, differs, sort_keys, paying, task, place,"       \
    " state, priority, cents, created_at, changed_at) VALUES"
#define ROW "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
#define TAIL                                                                                       \
    " ON DUPLICATE KEY UPDATE result = VALUES(result), parts = VALUES(parts),"                     \
    " parts_done = VALUES(parts_done), tokens = VALUES(tokens), simulated = VALUES(simulated),"    \
    " text = VALUES(text), title = COALESCE(VALUES(title), title), missing = VALUES(missing),"     \
    " unverified = VALUES(unverified), differs = VALUES(differs), edited = 0,"                     \
    " sort_keys = VALUES(sort_keys), paying = VALUES(paying), asks = 0, complaint = NULL,"         \
    " waits = NULL, waits_code = NULL, changed_at = UTC_TIMESTAMP(3)"

/* The rows are there, and locked. */
static int write_rows(struct task *t, struct sql *c, const struct keeping_some *s)
{
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, s->count * COLUMNS + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct keeping *k = (const struct keeping *)s->items[i];
        if (k->done)
            write_cells(k, cells + COLUMNS * n++);
    }
    if (n == 1) /* as a statement of its own, whose size is compared with the server's limit */
        return sql_on_argv(t, c, INTO " " ROW TAIL, COLUMNS, cells, NULL);
    return n ? sql_bulk(t, c, INTO, TAIL, COLUMNS, n, cells, NULL) : 0;
}

static int keep_body(struct task *t, struct sql *c, void *arg)
{
    const struct keeping_some *s = arg;
    struct str *ids = ARENA_ARRAY(task_arena(t), struct str, s->count);
    struct sql_rows r;
    for (size_t i = 0; i < s->count; i++)
        ids[i] = ((struct keeping *)s->items[i])->job->id;
    int err = select_rows(t, NULL, c, "SELECT id, version FROM extraction_result WHERE id IN",
                          " AND state IN ('pending', 'extracting') FOR UPDATE", ids, s->count, &r);
    if (err)
        return err;
    struct map *rows = by_id(&r);
    for (size_t i = 0; i < s->count; i++) {
        struct keeping *k = (struct keeping *)s->items[i];
        const struct sql_value *v = map_get(rows, k->job->id);
        k->done = v && v[1].i == k->job->version;
    }
    map_free(rows);
    return write_rows(t, c, s);
}

static int keep_some(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct keeping_some s = {items, count};
    return sql_tx(t, ((struct extract *)arg)->node->sql, keep_body, &s);
}

static void fail(struct task *t, struct gather_item **items, size_t count, int err)
{
    for (size_t i = 0; err && i < count; i++)
        gather_fail(items[i], err, task_error(t));
}

/* A large row goes alone: one that is more than the server takes is not in the way of others. */
static int keep_all(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct gather_item **some = ARENA_ARRAY(task_arena(t), struct gather_item *, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct extract_kept *k = ((struct keeping *)items[i])->kept;
        if (k->result.n + k->text.n <= LARGE_BYTES)
            some[n++] = items[i];
        else
            fail(t, &items[i], 1, keep_some(t, arg, &items[i], 1));
    }
    if (n)
        fail(t, some, n, together(t, arg, some, n, keep_some));
    return 0;
}

int extract_job_keep(struct task *t, struct extract *x, const struct job *j,
                     const struct extract_kept *kept, bool *done)
{
    struct keeping k = {.job = j, .kept = kept};
    int err = gather_do(t, &x->keeps, &k.item, 0);
    *done = !err && k.done;
    return err;
}

void extract_rows_init(struct extract *x)
{
    struct gather_options o = {.group = x->node->group,
                               .name = "extract rows",
                               .fn = read_all,
                               .arg = x,
                               .items_max = ROWS_AT_ONCE,
                               .clerks_max = 1};
    gather_init(&x->reads, &o);
    o.fn = keep_all;
    gather_init(&x->keeps, &o);
}
