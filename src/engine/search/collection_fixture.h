/* collection_fixture.h -- what tests of collections share: MariaDB, a folder, a made-up embedding
 * service, and nodes that share all three.
 *
 * The vector of a text is the sum of those of its words, which are made up by their letters: texts
 * that share words are near. A text with "refused" in it is refused. */
#ifndef ENGINE_SEARCH_COLLECTION_FIXTURE_H
#define ENGINE_SEARCH_COLLECTION_FIXTURE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/embedding.h"
#include "engine/search/collection_private.h"
#include "engine/setup/config.h"
#include "engine/setup/schema.h"
#include "engine/vectors/index.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define BODY_BYTES (8 * 1024 * 1024)

static struct mariadb server;
static struct metrics *metrics;

struct service {
    const char *model;     /* that it answers by, and that it can be asked for; others are 404 */
    const char *model_old; /* another one; NULL: none */
    int64_t dimension, dimension_old;
    bool away;
    int odd; /* so many replies have vectors of a number less */
    int64_t delay_ms;
    int calls, texts;
};

struct world {
    struct service service;
    struct site site;
    struct http_client *client;
    struct permits permits;
    struct ai *ai;
    char dir[64];
    struct config config;
};

struct node_of { /* a node */
    struct world *world;
    struct config config;
    struct sql_pool *sql;
    struct embedding *embedding;
    struct collections *all;
};

/* --- the service --- */

static inline void add_word(uint64_t word, float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        v[i] += (float)((int64_t)(word >> 40) - (1 << 23)) / (1 << 23);
    }
}

static inline void vector_of_text(struct str text, float *v, size_t n)
{
    memset(v, 0, n * sizeof *v);
    while (text.p) {
        struct str word = str_cut(&text, ' ');
        uint64_t h = 14695981039346656037u;
        for (size_t i = 0; i < word.n; i++)
            h = (h ^ (unsigned char)word.p[i]) * 1099511628211u;
        add_word(h, v, n);
    }
}

static inline int refuse(struct task *t, struct http_exchange *x, int status, const char *why)
{
    return http_reply(t, x, status, "application/json",
                      str_printf(task_arena(t), "{\"error\":{\"message\":\"%s\"}}", why));
}

static inline struct str reply_of(struct task *t, const char *model, size_t n,
                                  const struct json *input)
{
    float *v = ARENA_ARRAY(task_arena(t), float, n);
    struct buf b;
    size_t i = 0;
    buf_init(&b);
    buf_printf(&b, "{\"model\":\"%s\",\"data\":[", model);
    json_each (text, input) {
        buf_printf(&b, "%s{\"index\":%zu,\"embedding\":[", i ? "," : "", i);
        vector_of_text(text->s, v, n);
        for (size_t k = 0; k < n; k++)
            buf_printf(&b, "%s%.6f", k ? "," : "", (double)v[k]);
        buf_add_lit(&b, "]}");
        i++;
    }
    buf_add_lit(&b, "]}");
    struct str reply = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return reply;
}

static inline int embed_texts(struct task *t, struct http_exchange *x, void *ctx)
{
    struct world *w = ctx;
    struct service *s = &w->service;
    struct str body;
    const struct json *j;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    check(json_parse(task_arena(t), body, &j, NULL) == 0);
    struct str model = json_str(json_get(j, "model"));
    const struct json *input = json_get(j, "input");
    s->calls++;
    s->texts += (int)input->count;
    if (s->delay_ms && task_sleep(t, s->delay_ms))
        return ERR_CANCELED;
    if (s->away)
        return refuse(t, x, 503, "away");
    json_each (text, input)
        if (str_find(text->s, STR("refused")) >= 0)
            return refuse(t, x, 400, "this text is not allowed");
    bool old = s->model_old && str_eq(model, str_of(s->model_old));
    if (!old && !str_eq(model, str_of(s->model)))
        return refuse(t, x, 404, "there is no such model");
    size_t dimension = (size_t)(old ? s->dimension_old : s->dimension) - (s->odd > 0);
    s->odd -= s->odd > 0;
    return http_reply(t, x, 200, "application/json",
                      reply_of(t, old ? s->model_old : s->model, dimension, input));
}

static const struct http_route service_routes[] = {
    {"POST", "/v1/embeddings", embed_texts, BODY_BYTES}};

/* --- the world --- */

static inline void make_schema(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report report;
    check(schema_migrate(t, sql, &report) == 0);
    sql_pool_free(sql);
}

static inline void empty_tables(struct task *t)
{
    static const char *const all[] = {"UPDATE vector_collection SET number = 0",
                                      "DELETE FROM vector_space",
                                      "DELETE FROM vector_store",
                                      "DELETE FROM point_owner",
                                      "DELETE FROM point_vector",
                                      "DELETE FROM point_change"};
    struct sql_pool *sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(sql_call(t, sql, NULL, all[i]) == 0);
    sql_pool_free(sql);
}

static inline void world_open(struct task *t, struct world *w)
{
    *w = (struct world){.service = {.model = "m1", .dimension = 16}, .permits.keys = 1};
    empty_tables(t);
    snprintf(w->dir, sizeof w->dir, "/tmp/collection-XXXXXX");
    check(mkdtemp(w->dir));
    w->config = (struct config){.data_dir = w->dir,
                                .ai_embedding_model = "m1",
                                .ai_embedding_params = "",
                                .ai_embedding_batch_max = 64,
                                .ai_embedding_batch_tokens = 100000};
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, service_routes, 1, w);
    w->ai = ai_new(&(struct ai_options){
        .service = AI_EMBEDDING,
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1", w->site.port),
        .path = AI_EMBEDDING_PATH,
        .timeout_ms = 5000,
        .client = w->client,
        .permits = &w->permits,
        .metrics = metrics});
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void world_close(struct task *t, struct world *w)
{
    ai_free(w->ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    check(nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static inline void node_open(struct task *t, struct world *w, struct node_of *n)
{
    *n = (struct node_of){.world = w, .config = w->config};
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    n->embedding = embedding_new(
        &(struct embedding_options){.ai = w->ai,
                                    .permits = &w->permits,
                                    .metrics = metrics,
                                    .model = n->config.ai_embedding_model,
                                    .dimensions = n->config.ai_embedding_dimensions,
                                    .batch_texts = n->config.ai_embedding_batch_max,
                                    .batch_tokens = n->config.ai_embedding_batch_tokens});
    n->all = collections_new(&(struct collections_options){.config = &n->config,
                                                           .sql = n->sql,
                                                           .embedding = n->embedding,
                                                           .metrics = metrics,
                                                           .ai = w->ai,
                                                           .permits = &w->permits});
}

static inline void node_close(struct node_of *n)
{
    collections_free(n->all);
    embedding_free(n->embedding);
    sql_pool_free(n->sql);
}

/* Rounds of the role until there is nothing more to do, as far as this node knows. */
static inline int rounds(struct task *t, struct node_of *n)
{
    struct role_turn turn = {.locked = false};
    int err;
    do {
        struct task_scope scope = task_scope(t);
        err = collection_role(t, n->all, &turn);
        task_scope_end(t, scope);
    } while (err == ROLE_MORE);
    return err;
}

/* --- what tests ask --- */

static inline int put_text(struct task *t, struct node_of *n, uint64_t owner, uint64_t version,
                           const char *text)
{
    struct str chunk = str_of(text);
    struct collection_document d = {.owner = owner,
                                    .version = version,
                                    .title = STR("a title"),
                                    .chunks = &chunk,
                                    .chunk_count = *text ? 1 : 0};
    struct collection_outcome o;
    int64_t space;
    int err = collection_put(t, n->all, COLLECTION_POSTS, &d, 1, &ai_for_run, &o, &space);
    return err ? err : o.err;
}

/* The owner of the best hit; 0: there is none, negative: an error. */
static inline int64_t best_of(struct task *t, struct node_of *n, const char *question,
                              struct collection_answer *out)
{
    struct points_query q = {.k = 10};
    int err = collection_search(t, n->all, COLLECTION_POSTS, str_of(question), &q, out);
    return err ? err : out->count ? (int64_t)out->hits[0].point.owner : 0;
}

static inline int64_t sql_number(struct task *t, struct node_of *n, const char *statement)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement) == 0 && r.count == 1);
    return r.cells[0].i;
}

/* Its pool knows that the server is back. */
static inline void await_mysql(struct task *t, struct node_of *n)
{
    int tries = 0;
    while (sql_call(t, n->sql, NULL, "DO 0")) {
        check(tries++ < 500);
        check(task_sleep(t, 10) == 0);
    }
}

static inline const char *index_path(struct task *t, const char *dir, int64_t space)
{
    return arena_printf(task_arena(t), "%s/vectors/blog_posts-%lld.index", dir, (long long)space);
}

struct copy_of { /* of an index, compared with rows */
    struct point *points;
    size_t count, rows;
    int wrong;
};

static inline int by_id(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

static inline int compare_row(struct task *t, const struct sql_value *row, void *arg)
{
    struct copy_of *c = arg;
    (void)t;
    struct point key = {.owner = (uint64_t)row[0].i, .part = (uint32_t)row[1].i};
    const struct point *p = bsearch(&key, c->points, c->count, sizeof key, by_id);
    c->rows++;
    c->wrong += !p || p->version != (uint64_t)row[2].i || p->tags.flags != (uint32_t)row[3].i;
    return 0;
}

static inline bool read_index(const char *path, struct copy_of *c)
{
    float v[POINTS_DIMENSION_MAX];
    struct index *x;
    struct index_view *view;
    struct index_info info;
    const char *why;
    uint32_t at = 0;
    if (index_open(path, &x, &why))
        return false;
    check(index_view_get(x, &view, &why) == 0 && index_info(x, &info, &why) == 0);
    c->points = check_memory(calloc(info.points + 1, sizeof *c->points));
    while (index_view_next(view, &at, &c->points[c->count], v) == 0)
        c->count++;
    qsort(c->points, c->count, sizeof *c->points, by_id);
    index_view_put(view);
    index_close(x);
    return c->count == info.points;
}

/* Differences between an index and the rows of its space: 0 is what should be. */
static inline int differences(struct task *t, struct node_of *n, int64_t space)
{
    struct copy_of c = {.wrong = 0};
    struct sql_value v = sql_int(space);
    if (!read_index(index_path(t, n->config.data_dir, space), &c))
        return -1;
    check(sql_each(t, n->sql,
                   "SELECT v.owner, v.part, v.version, o.flags FROM point_vector v JOIN"
                   " point_owner o ON o.owner = v.owner AND o.collection = 'blog_posts'"
                   " WHERE v.space = ?",
                   1, &v, compare_row, &c) == 0);
    free(c.points);
    return c.wrong + abs((int)c.count - (int)c.rows);
}

static inline int64_t space_now(struct node_of *n)
{
    return n->all->shelves[COLLECTION_POSTS].active->number;
}

/* Documents first … of one chunk each; text: "number 17 of <word>". */
static inline void put_many(struct task *t, struct node_of *n, uint64_t first, size_t count,
                            const char *word)
{
    struct arena *a = task_arena(t);
    struct collection_document *d = ARENA_ARRAY(a, struct collection_document, count);
    struct collection_outcome *o = ARENA_ARRAY(a, struct collection_outcome, count);
    struct str *texts = ARENA_ARRAY(a, struct str, count);
    int64_t space;
    for (size_t i = 0; i < count; i++) {
        texts[i] = str_printf(a, "number %llu of %s", (unsigned long long)(first + i), word);
        d[i] = (struct collection_document){
            .owner = first + i, .version = 1, .chunks = &texts[i], .chunk_count = 1};
    }
    check(collection_put(t, n->all, COLLECTION_POSTS, d, count, &ai_for_run, o, &space) == 0);
    for (size_t i = 0; i < count; i++)
        check(o[i].err == 0);
}

/* --- programs --- */

static inline void start_stores(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(make_schema, NULL, true);
}

static inline int stop_stores(void)
{
    metrics_close(metrics);
    mariadb_release(&server);
    return tap_done();
}
#endif
