#include <stdio.h>

#include "corpus/paper.h"
#include "engine/papers/block.h"
#include "engine/papers/warm.h"
#include "engine/setup/schema.h"
#include "loop/backoff.h"
#include "tool/db/db.h"
#include "tool/opt.h"
#include "tool/progress.h"

#define STATEMENT_MS   (10 * 60 * 1000) /* the papers of a large block */
#define BLOCKS_AT_ONCE 6
#define LOOK_MS        100

static const char about[] =
    "Fills Redis from MySQL: tags, journals, prices, papers per year, then the papers in blocks\n"
    "of one journal and year. Only what is missing or out of date is written; run it after\n"
    "\"millrace db init\" while a server runs. A server does the same when it starts.";

struct options {
    bool rebuild, verify;
};

struct warming {
    struct warm_options options;
    struct warm_progress progress;
    int err;
};

static void warm(struct task *t, void *arg)
{
    struct warming *w = arg;
    w->err = warm_run(t, &w->options, &w->progress);
}

/* Shows progress until the other task is done. */
static void watch(struct task *t, struct warming *w)
{
    struct progress bar;
    const struct warm_progress *p = &w->progress;
    progress_init(&bar, task_loop(t), "db warm", "papers", 0);
    while (p->state != WARM_DONE && p->state != WARM_FAILED &&
           !backoff_wait(t, &(struct backoff){.ms = LOOK_MS})) {
        bar.total = p->papers;
        if (p->state == WARM_BLOCKS && p->papers)
            progress_show(&bar, p->papers_ready, p->papers_ready);
    }
    progress_end(&bar);
}

static int used_memory(struct task *t, struct redis *r, int64_t *out)
{
    static const struct str name = {"used_memory:", 12};
    const struct redis_reply *reply;
    int err = redis_call(t, r, STR_NULL, &reply, STR("INFO"), STR("memory"));
    struct str rest = err ? STR_NULL : reply->str;
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        if (str_starts(line, name) &&
            str_to_i64(str_from(line.p + name.n, line.n - name.n - 1), out)) /* CR */
            return 0;
    }
    return err ? err : ERR_PROTO;
}

static int tell(struct task *t, struct db *d, const struct warming *w, double seconds)
{
    const struct warm_progress *p = &w->progress;
    int64_t bytes;
    printf("%lld journals, %lld tags\n", (long long)p->catalog.journals,
           (long long)p->catalog.tags);
    printf("%lld blocks with %lld papers: %lld built now (%lld papers, %.1f s, %.0f papers/s)\n",
           (long long)p->blocks, (long long)p->papers, (long long)p->blocks_built,
           (long long)p->papers_built, seconds,
           (double)p->papers_built / (seconds > 0 ? seconds : 1e-6));
    if (used_memory(t, d->redis, &bytes) == 0)
        printf("Redis uses %.1f MB\n", (double)bytes / 1e6);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int check_tables(struct task *t, struct db *d)
{
    struct schema_report r;
    int err = schema_check(t, d->sql, &r);
    if (!err && r.database < r.program)
        err = task_fail(t, ERR_CONFLICT,
                        "the database lacks migrations: run \"millrace db migrate\"");
    return err;
}

/* --- --verify: every paper in Redis, decompressed, against the digests in MySQL --- */

struct verifying {
    struct blocks *blocks;
    struct bibtex *reader;
    int64_t papers, bad_blocks;
};

/* The digest of one paper as Redis has it. */
static int digest_of(struct task *t, struct verifying *v, const struct block_name *n,
                     const struct block_paper *p, int64_t *digest)
{
    struct str text;
    struct paper paper = {.doi = p->doi, .journal = n->journal, .year = n->year};
    struct task_scope s = task_scope(t);
    int err = block_unpack(t, v->blocks, task_arena(t), p->packed, &text);
    if (!err)
        err = paper_split_bibtex(task_arena(t), v->reader, text, &paper.strings, &paper.bib);
    if (!err)
        *digest = paper_digest(&paper);
    task_scope_end(t, s);
    return err;
}

static int verify_block(struct task *t, struct verifying *v, const struct block_name *n)
{
    struct block block;
    int err = block_fetch(t, v->blocks, n->journal, n->year, &block);
    int64_t all = 0;
    for (size_t i = 0; !err && i < block.count; i++) {
        int64_t one;
        int bad = digest_of(t, v, n, &block.papers[i], &one);
        if (bad == ERR_PROTO || bad == ERR_NOT_FOUND) /* damaged; counted below */
            one = 0;
        else
            err = bad;
        all ^= one;
    }
    if (err)
        return err;
    v->papers += (int64_t)block.count;
    if (all == n->version.digest && (int64_t)block.count == n->version.papers)
        return 0;
    v->bad_blocks++;
    fprintf(stderr, "millrace db warm: %.*s %lld is not in Redis as it is in MySQL\n",
            STR_ARG(n->journal), (long long)n->year);
    return 0;
}

/* Compares the digest of the papers of every block with corpus_block's. */
static int verify_all(struct task *t, struct sql_pool *sql, struct verifying *v)
{
    struct sql_rows r;
    int err = sql_call(t, sql, &r,
                       "SELECT journal, year, papers, digest FROM corpus_block WHERE papers > 0"
                       " ORDER BY journal, year");
    for (size_t i = 0; !err && i < r.count; i++) {
        const struct sql_value *row = sql_row(&r, i);
        struct block_name n = {row[0].s, row[1].i, {.papers = row[2].i, .digest = row[3].i}};
        struct task_scope s = task_scope(t);
        err = verify_block(t, v, &n);
        task_scope_end(t, s);
    }
    return err;
}

static int verify(struct task *t, struct db *d, struct blocks *b)
{
    struct verifying v = {.blocks = b, .reader = bibtex_new(NULL, NULL)};
    int err = verify_all(t, d->sql, &v);
    bibtex_free(v.reader);
    if (err)
        return db_complain(t, d, err);
    printf("%lld papers were read back: %s\n", (long long)v.papers,
           v.bad_blocks ? "not all are as they are in MySQL; run it with --rebuild"
                        : "all are as they are in MySQL");
    return fflush(stdout) == 0 && !v.bad_blocks ? 0 : 1;
}

/* --- the command --- */

static int fill(struct task *t, struct db *d, struct warming *w)
{
    int64_t begun = loop_now_us(task_loop(t));
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "warm", warm, w) == 0);
    watch(t, w);
    check(group_join(t, &g) == 0);
    if (w->err)
        return db_complain(t, d, task_fail(t, w->err, "%s", w->progress.problem));
    return tell(t, d, w, (double)(loop_now_us(task_loop(t)) - begun) / 1e6);
}

static int run(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    int err = check_tables(t, d);
    if (err)
        return db_complain(t, d, err);
    struct blocks *b = blocks_new(&(struct blocks_options){.redis = d->redis, .sql = d->sql});
    struct warming w = {.options = {.redis = d->redis,
                                    .sql = d->sql,
                                    .blocks = b,
                                    .tasks = BLOCKS_AT_ONCE,
                                    .rebuild_all = o->rebuild}};
    int status = fill(t, d, &w);
    if (status == 0 && o->verify)
        status = verify(t, d, b);
    blocks_free(b);
    return status;
}

int db_warm_main(int argc, char **argv)
{
    const char *file = NULL;
    struct options o = {false, false};
    const struct opt opts[] = {
        {"rebuild", NULL, "build every block anew, also those that are up to date",
         .flag = &o.rebuild},
        {"verify", NULL, "then read all papers back from Redis and compare them with MySQL",
         .flag = &o.verify},
        OPT_CONFIG(&file),
    };
    struct command c = {"db warm", NULL, about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    return status >= 0 ? status : db_run(file, DB_BOTH, STATEMENT_MS, run, &o);
}
