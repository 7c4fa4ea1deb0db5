/* block_fixture.h -- what the tests of blocks have in common: a real MariaDB, a real Redis, and
 * nodes. A node here is what blocks need of one: a connection to Redis, a pool, a struct blocks. */
#ifndef ENGINE_PAPERS_BLOCK_FIXTURE_H
#define ENGINE_PAPERS_BLOCK_FIXTURE_H

#include "base/log.h"
#include "corpus/pack.h"
#include "corpus/paper.h"
#include "engine/papers/block.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/store.h"
#include "tests/tap.h"

#define MANY_PAPERS 3000

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;
static const struct str nature = {"NATURE", 6};

struct node {
    struct group group;
    struct redis *redis;
    struct sql_pool *sql;
    struct blocks *blocks;
};

static inline void open_node(struct task *t, struct node *n)
{
    group_init(&n->group, task_loop(t));
    n->redis = redis_open(&n->group, &(struct redis_options){
                                         .url = store.url_unix, .name = "hot", .metrics = metrics});
    check(n->redis);
    n->sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .metrics = metrics});
    n->blocks =
        blocks_new(&(struct blocks_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
}

static inline void close_node(struct task *t, struct node *n)
{
    blocks_free(n->blocks);
    sql_pool_free(n->sql);
    redis_close(n->redis);
    check(group_join(t, &n->group) == 0);
}

/* The same with nothing in either store. */
static inline void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    static const char *const tables[] = {"DELETE FROM paperinfo", "DELETE FROM corpus_block",
                                         "DELETE FROM corpus_change", "DELETE FROM corpus_load",
                                         "DELETE FROM zstd_dictionary"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        check(sql_call(t, n->sql, NULL, tables[i]) == 0);
}

static inline int64_t counted(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "", "");
}

static inline int64_t built(void)
{
    return counted("millrace_blocks_built_total");
}

/* --- what is in MySQL --- */

static inline void add_paper(struct task *t, struct node *n, struct paper p)
{
    struct buf json;
    buf_init(&json);
    if (!p.journal.p)
        p.journal = nature;
    p.file = STR("a.bib");
    p.strings = p.strings.p ? p.strings : STR("");
    paper_write_json(&json, &p);
    check(sql_call(t, n->sql, NULL, "REPLACE INTO paperinfo (DOI, Bib) VALUES (?, ?)",
                   sql_text(p.doi), sql_text(buf_str(&json))) == 0);
    buf_release(&json);
}

static inline void set_version(struct task *t, struct node *n, int64_t year, int64_t papers,
                               int64_t digest)
{
    check(sql_call(t, n->sql, NULL,
                   "REPLACE INTO corpus_block (journal, year, papers, digest)"
                   " VALUES (?, ?, ?, ?)",
                   sql_text(nature), sql_int(year), sql_int(papers), sql_int(digest)) == 0);
}

static inline struct str entry_of(struct task *t, int64_t i)
{
    return str_printf(task_arena(t), "@article{k%lld,\n title = {Paper %lld}\n}", (long long)i,
                      (long long)i);
}

static inline struct str doi_of(struct task *t, int64_t year, int64_t i)
{
    return str_printf(task_arena(t), "10.5555/%lld.%lld", (long long)year, (long long)i);
}

static inline void add_block(struct task *t, struct node *n, int64_t year, int64_t papers)
{
    for (int64_t i = 0; i < papers; i++)
        add_paper(t, n,
                  (struct paper){.doi = doi_of(t, year, i), .year = year, .bib = entry_of(t, i)});
    set_version(t, n, year, papers, 42);
}

/* Enough of them for a build that can be met on its way. */
static inline void add_many(struct task *t, struct node *n, int64_t year)
{
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO paperinfo (DOI, Bib) SELECT CONCAT('10.5555/many.', seq),"
                   " CONCAT('{\"journal\":\"NATURE\",\"year\":', ?, ',\"file\":\"a.bib\",\"bib\":"
                   "\"@article{k', seq, ', title={', REPEAT(seq, 300), '}}\"}')"
                   " FROM seq_1_to_3000",
                   sql_text(str_printf(task_arena(t), "%lld", (long long)year))) == 0);
    set_version(t, n, year, MANY_PAPERS, 7);
}

static inline struct str train(struct task *t, const char *word)
{
    struct buf text;
    buf_init(&text);
    size_t *sizes = ARENA_ARRAY(task_arena(t), size_t, 2000);
    struct loop *l = task_loop(t);
    for (int i = 0; i < 2000; i++) {
        size_t before = text.len;
        buf_printf(&text, "@%s{key%u, title = {Paper %u}, abstract = {", word,
                   (unsigned)loop_random(l), (unsigned)loop_random(l));
        for (int k = 0; k < 40; k++)
            buf_printf(&text, "%s%u ", word, (unsigned)(loop_random(l) % 50));
        buf_add_lit(&text, "}}\n");
        sizes[i] = text.len - before;
    }
    struct str dictionary;
    check(pack_train(task_arena(t), buf_str(&text), sizes, 2000, &dictionary) == 0);
    buf_release(&text);
    return dictionary;
}

static inline uint32_t add_dictionary(struct task *t, struct node *n, int64_t sequence,
                                      const char *word)
{
    struct str d = train(t, word);
    check(sql_call(t, n->sql, NULL, "INSERT INTO zstd_dictionary VALUES (?, ?, 0, ?)",
                   sql_int(pack_number(d)), sql_int(sequence), sql_blob(d)) == 0);
    return pack_number(d);
}

/* --- what is in Redis --- */

static inline struct str block_key(struct task *t, int64_t year)
{
    return key_block(task_arena(t), nature, year);
}

static inline struct str block_lock(struct task *t, int64_t year)
{
    return key_block_lock(task_arena(t), nature, year);
}

static inline int64_t ask(struct task *t, struct node *n, const char *word, struct str key)
{
    const struct redis_reply *reply;
    check(redis_call(t, n->redis, key, &reply, str_of(word), key) == 0);
    return reply->integer;
}

#define say(t, n, ...) check(redis_call((t), (n)->redis, STR_NULL, NULL, __VA_ARGS__) == 0)

static inline size_t asides(struct task *t, struct node *n, struct str *first)
{
    struct str one = key_block_aside(task_arena(t), STR("J"), 2000, STR("t"));
    struct str any = str_cut(&one, '{');
    struct str pattern = str_printf(task_arena(t), "%.*s*", STR_ARG(any));
    const struct redis_reply *reply;
    check(redis_call(t, n->redis, STR_NULL, &reply, STR("KEYS"), pattern) == 0);
    if (reply->count && first)
        *first = reply->items[0]->str;
    return reply->count;
}

static inline uint32_t dictionary_of(struct task *t, struct str packed)
{
    struct pack *p = pack_new();
    uint32_t number = 0;
    struct str out;
    if (pack_get(p, task_arena(t), packed, &out, &number) == 0)
        check(number == 0);
    pack_free(p);
    return number;
}

static inline struct str unpacked(struct task *t, struct node *n, const struct block *b,
                                  struct str doi)
{
    struct str out = STR_NULL;
    for (size_t i = 0; i < b->count; i++)
        if (str_eq(b->papers[i].doi, doi))
            check(block_unpack(t, n->blocks, task_arena(t), b->papers[i].packed, &out) == 0);
    return out;
}

static inline bool all_there(struct task *t, struct node *n, const struct block *b, int64_t year,
                             int64_t papers)
{
    bool same = b->count == (size_t)papers && b->version.papers == papers;
    for (int64_t i = 0; same && i < papers; i++)
        same = str_eq(unpacked(t, n, b, doi_of(t, year, i)), entry_of(t, i));
    return same;
}

static inline void prepare(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct schema_report r;
    check(schema_migrate(t, n.sql, &r) == 0);
    close_node(t, &n);
}

static inline void start_stores(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(prepare, NULL, true);
}

static inline int stop_stores(void)
{
    metrics_close(metrics);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
#endif
