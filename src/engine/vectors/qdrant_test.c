/* Against a made-up server that answers as it is told. What the real API looks like is tested by
 * tests/server/test_qdrant.py. */
#include "engine/vectors/qdrant.h"

#include <math.h>
#include <stdlib.h>

#include "engine/vectors/qdrant_request.h"
#include "tests/tap.h"
#include "wire/http_client.h"
#include "wire/http_server/http_harness.h"

#define BODY_BYTES (40 * 1024 * 1024)
#define DIMENSION  8

#define FINE(result) "{\"time\":0,\"status\":\"ok\",\"result\":" result "}"
#define WRONG(words) "{\"time\":0,\"status\":{\"error\":\"" words "\"}}"
#define DONE         FINE("{\"operation_id\":1,\"status\":\"completed\"}")
#define INFO(schema)                                                                               \
    FINE("{\"config\":{\"params\":{\"vectors\":{\"size\":8,\"distance\":\"Cosine\"}},"             \
         "\"metadata\":{\"model\":\"m\"}},\"payload_schema\":{" schema "}}")
#define INDEXED                                                                                    \
    "\"owner\":{\"data_type\":\"keyword\"},\"flags\":{\"data_type\":\"integer\"},"                 \
    "\"journal\":{\"data_type\":\"integer\"},\"year\":{\"data_type\":\"integer\"}"

static const struct points_space space = {"m", DIMENSION};

struct server {
    /* of requests whose "METHOD path" has this in it; NULL: of none */
    const char *on;
    int status; /* and this reply */
    const char *body;
    int times; /* so often; 0: always */
    int64_t delay_ms;
    bool unindexed;
    /* what it has seen */
    struct buf seen; /* "METHOD path\n" */
    size_t longest;  /* body */
    struct buf last; /* the last body */
};

struct world {
    struct server server;
    struct site site;
    struct http_client *client;
    struct points_store *store;
};

static const char *right_reply(struct server *s, struct str path, struct str method)
{
    if (str_ends(path, STR("/points/query")))
        return FINE("{\"points\":[]}");
    if (str_ends(path, STR("/points/count")))
        return FINE("{\"count\":5}");
    if (str_find(path, STR("/points")) > 0 || str_ends(path, STR("/index")))
        return DONE;
    if (!str_eq(method, STR("GET")))
        return FINE("true");
    return s->unindexed ? INFO("") : INFO(INDEXED);
}

static int answer(struct task *t, struct http_exchange *x, void *ctx)
{
    struct server *s = ctx;
    struct str body, path = http_path(x), method = http_method(x);
    int err = http_body(t, x, &body);
    if (err)
        return err;
    struct str name = str_printf(task_arena(t), "%.*s %.*s?%.*s", STR_ARG(method), STR_ARG(path),
                                 STR_ARG(http_query_string(x)));
    buf_printf(&s->seen, "%.*s\n", STR_ARG(name));
    buf_clear(&s->last);
    buf_add_str(&s->last, body);
    s->longest = body.n > s->longest ? body.n : s->longest;
    if (!str_eq(http_header(x, "api-key"), STR("k-geheim")))
        return http_reply(t, x, 401, "text/plain", STR("Invalid API key or JWT"));
    bool odd = s->on && str_find(name, str_of(s->on)) >= 0 && s->times >= 0;
    if (!odd)
        return http_reply(t, x, 200, "application/json", str_of(right_reply(s, path, method)));
    s->times -= s->times == 1 ? 2 : s->times > 1;
    if (s->delay_ms && task_sleep(t, s->delay_ms))
        return ERR_CANCELED;
    return http_reply(t, x, s->status, "application/json", str_of(s->body));
}

static const struct http_route routes[] = {{"GET", "/below/*", answer, BODY_BYTES},
                                           {"PUT", "/below/*", answer, BODY_BYTES},
                                           {"POST", "/below/*", answer, BODY_BYTES},
                                           {"DELETE", "/below/*", answer, BODY_BYTES}};

static struct points_store *make(struct task *t, struct world *w, const char *key, int64_t ms)
{
    const char *why;
    struct points_store *s = qdrant_new(
        &(struct qdrant_options){
            .client = w->client,
            .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/below/", w->site.port),
            .api_key = key,
            .collection = "blog_posts",
            .space = 3,
            .timeout_ms = ms},
        &why);
    check(s);
    return s;
}

static void world_open(struct task *t, struct world *w)
{
    *w = (struct world){.server = {.on = NULL}};
    buf_init(&w->server.seen);
    buf_init(&w->server.last);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.proxy = "none"});
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, routes,
                  sizeof(routes) / sizeof(*routes), &w->server);
    w->store = make(t, w, "k-geheim", 5000);
}

static void world_close(struct task *t, struct world *w)
{
    w->store->ops->free(w->store);
    http_client_free(w->client);
    site_close(t, &w->site);
    buf_release(&w->server.seen);
    buf_release(&w->server.last);
}

static void next(struct world *w, const char *on, int status, const char *body)
{
    w->server.on = on;
    w->server.status = status;
    w->server.body = body;
    w->server.times = 0;
    w->server.delay_ms = 0;
    buf_clear(&w->server.seen);
}

/* --- calls --- */

static int put_with(struct task *t, struct points_store *s, size_t dimension)
{
    float v[16] = {1, 2, 3};
    struct point p = {.owner = 7, .version = 1};
    struct points_change c = {.space = {"m", dimension}, .points = &p, .vectors = v, .count = 1};
    return s->ops->put(t, s, &c);
}

static int put(struct task *t, struct points_store *s)
{
    return put_with(t, s, DIMENSION);
}

static int tag(struct task *t, struct points_store *s)
{
    return s->ops->tag(t, s, 7, (struct point_tags){.flags = 1}, STR("title"));
}

static int settle(struct task *t, struct points_store *s)
{
    return s->ops->settle(t, s);
}

static int drop(struct task *t, struct points_store *s)
{
    return s->ops->drop(t, s);
}

static int create(struct task *t, struct points_store *s)
{
    return s->ops->create(t, s, &space);
}

static int publish(struct task *t, struct points_store *s)
{
    return s->ops->publish(t, s);
}

static int look(struct task *t, struct points_store *s)
{
    struct points_look l;
    return s->ops->look(t, s, &l);
}

static int search_with(struct task *t, struct points_store *s, const struct point_filter *f)
{
    float v[DIMENSION] = {1, 2, 3};
    struct point_hit hits[10];
    struct points_answer answer;
    return s->ops->search(t, s,
                          &(struct points_query){.space = space, .vector = v, .k = 10, .filter = f},
                          hits, &answer);
}

static int search(struct task *t, struct points_store *s)
{
    return search_with(t, s, NULL);
}

/* --- tests --- */

static void test_requests(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    next(&w, NULL, 0, "");
    is_int(create(t, w.store), 0, "a collection is made");
    is_str(buf_str(&w.server.seen),
           STR("DELETE /below/collections/blog_posts_3?\nPUT /below/collections/blog_posts_3?\n"
               "PUT /below/collections/blog_posts_3/index?wait=true\n"
               "PUT /below/collections/blog_posts_3/index?wait=true\n"
               "PUT /below/collections/blog_posts_3/index?wait=true\n"
               "PUT /below/collections/blog_posts_3/index?wait=true\n"),
           "anew, with its indexes");
    next(&w, NULL, 0, "");
    is_int(put(t, w.store), 0, "a change");
    is_int(put(t, w.store), 0, "another one");
    is_str(buf_str(&w.server.seen),
           STR("GET /below/collections/blog_posts_3?\n"
               "PUT /below/collections/blog_posts_3/points?wait=true\n"
               "POST /below/collections/blog_posts_3/points/delete?wait=true\n"
               "PUT /below/collections/blog_posts_3/points?wait=true\n"
               "POST /below/collections/blog_posts_3/points/delete?wait=true\n"),
           "asks for the collection once, writes, and then deletes");
    is_str(buf_str(&w.server.last),
           STR("{\"filter\":{\"must\":[{\"key\":\"owner\",\"match\":{\"any\":[\"7\"]}}],"
               "\"must_not\":[{\"has_id\":[\"00000000-0000-8000-8700-000000000000\"]}]}}"),
           "all of the owner but what is new");
    next(&w, NULL, 0, "");
    is_int(publish(t, w.store), 0, "is published");
    is_str(buf_str(&w.server.last),
           STR("{\"actions\":[{\"delete_alias\":{\"alias_name\":\"blog_posts\"}},"
               "{\"create_alias\":{\"collection_name\":\"blog_posts_3\","
               "\"alias_name\":\"blog_posts\"}}]}"),
           "in one step");
    is_int(tag(t, w.store), 0, "tags");
    is_str(buf_str(&w.server.last),
           STR("{\"payload\":{\"flags\":[0],\"journal\":0,\"year\":0,\"hide\":\"1\","
               "\"title\":\"title\"},"
               "\"filter\":{\"must\":[{\"key\":\"owner\",\"match\":{\"any\":[\"7\"]}}]}}"),
           "are payload");
    is_int(settle(t, w.store), 0, "and it settles");
    world_close(t, &w);
}

struct outcome {
    int status;
    const char *body;
    int reading, writing; /* what becomes of a search, and of a tag */
    const char *words;
};

static const struct outcome outcomes[] = {
    {404, WRONG("Not found: Collection `blog_posts_3` doesn't exist!"), ERR_NOT_FOUND,
     ERR_NOT_FOUND, "doesn't exist"},
    {404, "<html>not here</html>", ERR_UNAVAILABLE, ERR_UNAVAILABLE, "no Qdrant"},
    {400, WRONG("Wrong input: Vector dimension error: expected dim: 9, got 8"), ERR_CONFLICT,
     ERR_CONFLICT, "another dimension"},
    {400, WRONG("Format error in JSON body"), ERR_REFUSED, ERR_REFUSED, "Format error"},
    {422, WRONG("Validation error"), ERR_REFUSED, ERR_REFUSED, "Validation error"},
    {401, "Invalid API key", ERR_UNAVAILABLE, ERR_UNAVAILABLE, "vectors.api_key"},
    {403, WRONG("Forbidden: read only"), ERR_UNAVAILABLE, ERR_UNAVAILABLE, "Forbidden: read only"},
    {413, "", ERR_REFUSED, ERR_REFUSED, "bytes"},
    {408, WRONG("Timeout"), ERR_UNAVAILABLE, ERR_UNCERTAIN, "408: Timeout"},
    {429, WRONG("Rate limit"), ERR_UNAVAILABLE, ERR_UNAVAILABLE, "Rate limit"},
    {500, WRONG("Service internal error: x"), ERR_UNAVAILABLE, ERR_UNCERTAIN, "500"},
    {502, "bad gateway", ERR_UNAVAILABLE, ERR_UNCERTAIN, "502"},
    {503, WRONG("away"), ERR_UNAVAILABLE, ERR_UNCERTAIN, "503: away"},
    {500, WRONG("Service internal error: No space left on device: WAL buffer size exceeds"),
     ERR_UNAVAILABLE, ERR_UNCERTAIN, "disk of the Qdrant server is full"},
    {507, "", ERR_UNAVAILABLE, ERR_UNCERTAIN, "disk of the Qdrant server is full"},
    {301, "", ERR_UNAVAILABLE, ERR_UNAVAILABLE, "no Qdrant"},
    {200, "it works!", ERR_UNAVAILABLE, ERR_UNCERTAIN, "no JSON"},
    {200, "", ERR_UNAVAILABLE, ERR_UNCERTAIN, "no JSON"},
    {200, FINE("{\"status\":\"wait_timeout\"}"), ERR_UNAVAILABLE, ERR_UNCERTAIN, ""},
    {200, FINE("{\"points\":[{\"score\":null}]}"), ERR_UNAVAILABLE, ERR_UNCERTAIN, ""},
};

static void test_outcomes(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
        const struct outcome *o = &outcomes[i];
        next(&w, "/points", o->status, o->body);
        is_int(search(t, w.store), o->reading, "a search that is answered %d %.40s", o->status,
               o->body);
        is_int(tag(t, w.store), o->writing, "a change");
        ok(strstr(task_error(t), o->words) && !strstr(task_error(t), "geheim"), "says: %s",
           task_error(t));
    }
    char *huge = arena_alloc(task_arena(t), (5 << 20) + 1);
    memset(huge, ' ', 5 << 20);
    huge[5 << 20] = 0;
    next(&w, "/points", 200, huge);
    is_int(search(t, w.store), ERR_UNAVAILABLE, "a search that is answered without end");
    is_int(tag(t, w.store), ERR_UNCERTAIN, "a change");
    char *deep = arena_alloc(task_arena(t), 200001);
    memset(deep, '[', 200000);
    deep[200000] = 0;
    next(&w, "/points", 200, deep);
    is_int(search(t, w.store), ERR_UNAVAILABLE, "a search that is answered by brackets");
    next(&w, NULL, 0, "");
    is_int(search(t, w.store), 0, "and then it works again");
    ok(!str_starts(buf_str(&w.server.seen), STR("GET")), "without asking what is known");
    next(&w, "/points/query", 404, WRONG("Not found: Collection"));
    is_int(search(t, w.store), ERR_NOT_FOUND, "a collection that is gone");
    next(&w, NULL, 0, "");
    is_int(search(t, w.store), 0, "and made anew");
    ok(str_starts(buf_str(&w.server.seen), STR("GET")), "is asked for again");
    world_close(t, &w);
}

static void test_collections(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    next(&w, "DELETE", 404, WRONG("Not found: Collection"));
    is_int(drop(t, w.store), 0, "to drop what is not there is no error");
    next(&w, "PUT /below/collections/blog_posts_3?", 409, WRONG("Collection already exists!"));
    w.server.times = 1;
    is_int(create(t, w.store), 0, "what exists nevertheless is dropped again");
    next(&w, "PUT /below/collections/blog_posts_3?", 400, WRONG("Collection already exists!"));
    is_int(create(t, w.store), ERR_BUSY, "unless another one makes it, too: %s", task_error(t));
    next(&w, "/aliases", 400, WRONG("Collection `blog_posts` already exists!"));
    is_int(publish(t, w.store), ERR_REFUSED, "an alias that is a collection: %s", task_error(t));
    next(&w, "GET", 404, WRONG("Not found: Collection"));
    is_int(publish(t, w.store), ERR_NOT_FOUND, "nothing is published that is not there");
    ok(str_find(buf_str(&w.server.seen), STR("aliases")) < 0, "and the alias stays");
    is_int(look(t, w.store), ERR_NOT_FOUND, "nor looked at");
    next(&w, NULL, 0, "");
    is_int(put_with(t, w.store, 16), ERR_CONFLICT, "vectors of another dimension");
    ok(str_find(buf_str(&w.server.seen), STR("/points")) < 0, "are not sent");
    struct points_look l;
    is_int(w.store->ops->look(t, w.store, &l), 0, "a look");
    ok(l.points == 5 && l.dimension == DIMENSION && l.bytes == 0, "tells what there is");
    world_close(t, &w);
}

static void test_model(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    float v[DIMENSION] = {1};
    struct point p = {.owner = 7};
    struct points_change c = {
        .space = {"other", DIMENSION}, .points = &p, .vectors = v, .count = 1};
    is_int(w.store->ops->put(t, w.store, &c), ERR_CONFLICT, "vectors of another model: %s",
           task_error(t));
    c.space.model = NULL;
    is_int(w.store->ops->put(t, w.store, &c), 0, "of any model");
    next(&w, "GET", 200,
         FINE("{\"config\":{\"params\":{\"vectors\":{\"size\":8,\"distance\":\"Dot\"}}}}"));
    struct points_store *fresh = make(t, &w, "k-geheim", 5000);
    is_int(put(t, fresh), ERR_CONFLICT, "a collection of another distance");
    fresh->ops->free(fresh);
    world_close(t, &w);
}

static void test_tend(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    w.server.unindexed = true;
    next(&w, NULL, 0, "");
    is_int(w.store->ops->tend(t, w.store), 0, "upkeep");
    ok(str_find(buf_str(&w.server.seen), STR("/index")) > 0, "makes indexes that are not there");
    next(&w, NULL, 0, "");
    is_int(w.store->ops->tend(t, w.store), 0, "the next round");
    is_int((int64_t)w.server.seen.len, 0, "asks for nothing");
    struct points_store *fresh = make(t, &w, "k-geheim", 5000);
    next(&w, "GET", 404, WRONG("Not found: Collection"));
    is_int(fresh->ops->tend(t, fresh), ERR_NOT_FOUND, "a collection that is gone is noticed");
    is_int(fresh->ops->tend(t, fresh), ERR_NOT_FOUND, "and again");
    fresh->ops->free(fresh);
    world_close(t, &w);
}

static void test_begun(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    next(&w, "/points/delete", 429, WRONG("Rate limit"));
    is_int(put(t, w.store), ERR_UNCERTAIN, "a change that stops on its way is uncertain");
    next(&w, "PUT /below/collections/blog_posts_3/points", 429, WRONG("Rate limit"));
    is_int(put(t, w.store), ERR_UNAVAILABLE, "one that has not begun is not");
    world_close(t, &w);
}

static void test_ends(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    struct points_store *quick = make(t, &w, "k-geheim", 100);
    is_int(search(t, quick), 0, "a search");
    next(&w, "/points", 200, DONE);
    w.server.delay_ms = 2000;
    int64_t began = loop_now_ms(task_loop(t));
    is_int(search(t, quick), ERR_UNAVAILABLE, "a server that is too slow: %s", task_error(t));
    is_int(tag(t, quick), ERR_UNCERTAIN, "may have done a change");
    int64_t old = task_deadline(t, 100);
    is_int(search(t, w.store), ERR_TIMEOUT, "the deadline of the task");
    task_deadline_restore(t, old);
    ok(loop_now_ms(task_loop(t)) - began < 1500, "all in time");
    quick->ops->free(quick);
    struct points_store *stranger = make(t, &w, "k-wrong", 5000);
    is_int(search(t, stranger), ERR_UNAVAILABLE, "a wrong key");
    ok(strstr(task_error(t), "vectors.api_key") && !strstr(task_error(t), "k-wrong"), "says: %s",
       task_error(t));
    stranger->ops->free(stranger);
    site_close(t, &w.site);
    is_int(tag(t, w.store), ERR_UNAVAILABLE, "a server that is gone has surely done nothing: %s",
           task_error(t));
    is_int(look(t, w.store), ERR_UNAVAILABLE, "and tells nothing");
    w.store->ops->free(w.store);
    http_client_free(w.client);
    buf_release(&w.server.seen);
    buf_release(&w.server.last);
}

/* --- sizes --- */

static void test_large_change(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    enum { COUNT = 64 };
    size_t n = 1 << 20;
    char *text = memset(check_memory(malloc(n)), 'x', n);
    static struct point points[COUNT];
    static float vectors[COUNT * DIMENSION];
    static struct point_payload payloads[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        points[i] = (struct point){.owner = 1, .part = (uint32_t)i};
        vectors[i * DIMENSION] = 1;
        payloads[i] = (struct point_payload){.title = STR("t"), .text = str_from(text, n)};
    }
    struct points_change c = {
        .space = space, .points = points, .vectors = vectors, .payloads = payloads, .count = COUNT};
    is_int(w.store->ops->put(t, w.store, &c), 0, "long texts");
    ok(w.server.longest < COUNT * (QDRANT_TEXT_BYTES + 1000), "are cut (%zu bytes)",
       w.server.longest);
    for (size_t i = 0; i < COUNT; i++)
        payloads[i].text.n = QDRANT_TEXT_BYTES;
    memset(text, 1, n); /* six bytes each, in JSON */
    next(&w, NULL, 0, "");
    is_int(w.store->ops->put(t, w.store, &c), 0, "a change of 25 MB");
    ok(w.server.longest < 2 * QDRANT_REQUEST_BYTES, "is several requests, the longest of %zu bytes",
       w.server.longest);
    int64_t begun = 0;
    struct str rest = buf_str(&w.server.seen);
    while (rest.p)
        begun += str_starts(str_cut(&rest, '\n'), STR("PUT"));
    is_int(begun, 3, "so many of them");
    points[5].part = 4;
    next(&w, NULL, 0, "");
    is_int(w.store->ops->put(t, w.store, &c), ERR_INVALID, "two points of one id: %s",
           task_error(t));
    points[5].part = 5;
    vectors[63 * DIMENSION] = 0;
    is_int(w.store->ops->put(t, w.store, &c), ERR_INVALID, "a vector of zeros");
    vectors[63 * DIMENSION] = NAN;
    is_int(w.store->ops->put(t, w.store, &c), ERR_INVALID, "one of no numbers");
    c.count = POINTS_CHANGE_MAX + 1;
    is_int(w.store->ops->put(t, w.store, &c), ERR_LIMIT, "too many points");
    is_int((int64_t)w.server.seen.len, 0, "nothing of these is sent");
    free(text);
    world_close(t, &w);
}

static void test_long_lists(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_open(t, &w);
    uint64_t *owners = check_memory(calloc(POINTS_OWNERS_MAX + 1, sizeof(*owners)));
    for (uint64_t i = 0; i <= POINTS_OWNERS_MAX; i++)
        owners[i] = UINT64_MAX - i;
    struct point_filter f = {.without = 1,
                             .owners = owners,
                             .owner_count = POINTS_OWNERS_MAX,
                             .unless = owners,
                             .unless_count = POINTS_OWNERS_MAX};
    is_int(search_with(t, w.store, &f), 0, "a search with the longest lists");
    ok(w.server.longest < 12 * 1000 * 1000, "sends %zu bytes", w.server.longest);
    next(&w, NULL, 0, "");
    f.unless_count++;
    is_int(search_with(t, w.store, &f), ERR_INVALID, "longer ones are refused");
    f = (struct point_filter){.owners = owners};
    is_int(search_with(t, w.store, &f), 0, "a search among none");
    is_int((int64_t)w.server.seen.len, 0, "is not asked for");
    owners[1] = owners[0];
    f.owner_count = 2;
    is_int(search_with(t, w.store, &f), 0, "an owner that is listed twice");
    ok(str_find(buf_str(&w.server.last), STR("\"any\":[\"18446744073709551615\"]")) > 0,
       "is asked for once");
    f = (struct point_filter){.year_to = 2000};
    is_int(search_with(t, w.store, &f), 0, "years");
    ok(str_ends(buf_str(&w.server.last),
                STR(",\"filter\":{\"must\":[{\"key\":\"year\",\"range\":{\"gte\":0,"
                    "\"lte\":2000}}]}}")),
       "are a range");
    f = (struct point_filter){.unless = owners, .unless_count = 2};
    is_int(search_with(t, w.store, &f), 0, "a filter that asks for nothing");
    ok(str_find(buf_str(&w.server.last), STR("filter")) < 0, "is left out");
    ok(str_find(buf_str(&w.server.last), STR("exact")) < 0, "such a search may be quick");
    float v[DIMENSION] = {1};
    struct point_hit hit;
    struct points_answer answer;
    struct points_query q = {.space = space, .vector = v, .k = 1, .exact = true};
    is_int(w.store->ops->search(t, w.store, &q, &hit, &answer), 0, "an exact one");
    ok(str_find(buf_str(&w.server.last), STR("\"params\":{\"exact\":true}")) > 0, "asks for it");
    free(owners);
    world_close(t, &w);
}

static void test_new(struct task *t, void *arg)
{
    (void)t, (void)arg;
    const char *why = "";
    struct qdrant_options o = {
        .url = "qdrant:6333", .api_key = "", .collection = "papers", .space = 1};
    ok(!qdrant_new(&o, &why) && strstr(why, "http://"), "no URL: %s", why);
    o.url = "http://qdrant:6333?a=b";
    ok(!qdrant_new(&o, &why) && strstr(why, "\"?\""), "one with a query: %s", why);
    o.url = "http://qdrant:6333";
    o.api_key = "a\r\nHost: b";
    ok(!qdrant_new(&o, &why) && strstr(why, "ASCII"), "a key of two lines: %s", why);
    o.api_key = "";
    struct points_store *s = qdrant_new(&o, &why);
    ok(s && strcmp(s->ops->name, "qdrant") == 0, "all is right");
    s->ops->free(s);
}

int main(void)
{
    tap_task(test_new, NULL, false);
    tap_task(test_requests, NULL, true);
    tap_task(test_outcomes, NULL, true);
    tap_task(test_collections, NULL, true);
    tap_task(test_model, NULL, true);
    tap_task(test_tend, NULL, true);
    tap_task(test_begun, NULL, true);
    tap_task(test_ends, NULL, true);
    tap_task(test_large_change, NULL, true);
    tap_task(test_long_lists, NULL, true);
    return tap_done();
}
