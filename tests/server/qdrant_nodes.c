/* Collections of two machines that share a Qdrant server, a stand-in (qdrant.py). Prints TAP.
 *
 *     qdrant_nodes URL KEY */
#include "engine/search/collection_fixture.h"

static char **args;

struct machines {
    struct world w, other; /* two folders; the service and MySQL of the first one count for both */
    struct http_client *qdrant;
    struct node_of a, b;
};

static void machine_open(struct machines *m, struct task *t, struct node_of *n, struct world *w)
{
    node_open(t, &m->w, n);
    n->config.data_dir = w->dir;
    n->config.vectors_url = args[1];
    n->config.vectors_api_key = args[2];
    n->config.vectors_timeout_ms = 2000;
    collections_free(n->all);
    n->all = collections_new(&(struct collections_options){.config = &n->config,
                                                           .sql = n->sql,
                                                           .embedding = n->embedding,
                                                           .metrics = metrics,
                                                           .ai = m->w.ai,
                                                           .permits = &m->w.permits,
                                                           .qdrant = m->qdrant});
}

static void machines_open(struct task *t, struct machines *m)
{
    world_open(t, &m->w);
    world_open(t, &m->other);
    m->qdrant = http_client_new(task_loop(t), &(struct http_client_options){.proxy = "none"});
    machine_open(m, t, &m->a, &m->w);
    machine_open(m, t, &m->b, &m->other);
}

static void machines_close(struct task *t, struct machines *m)
{
    node_close(&m->a);
    node_close(&m->b);
    http_client_free(m->qdrant);
    world_close(t, &m->w);
    world_close(t, &m->other);
}

/* Tells the stand-in something; what it has then, as JSON. */
static struct str tell(struct task *t, struct machines *m, const char *what)
{
    struct http_response r;
    check(http_call(t, m->qdrant,
                    &(struct http_call){
                        .url = arena_printf(task_arena(t), "%s/stand-in/%s", args[1], what)},
                    &r) == 0 &&
          r.status == 200);
    return r.body;
}

static struct str collection(struct task *t, int64_t space, int points)
{
    return str_printf(task_arena(t), "\"blog_posts_%lld\": %d", (long long)space, points);
}

static bool has(struct str all, struct str part)
{
    return str_find(all, part) >= 0;
}

static int64_t active(struct task *t, struct machines *m)
{
    return sql_number(t, &m->a, "SELECT number FROM vector_space WHERE active = 1");
}

static void test_shared(struct task *t, struct machines *m)
{
    struct collection_answer got;
    is_int(put_text(t, &m->a, 1, 1, "apples and pears"), 0, "a document of one machine");
    is_int(put_text(t, &m->b, 2, 1, "iron and steel"), 0, "one of the other");
    is_int(best_of(t, &m->b, "red apples", &got), 1, "are found by the other one");
    ok(!got.degraded && got.count == 2, "all of them");
    is_int(best_of(t, &m->a, "steel", &got), 2, "and by the first one");
    is_int(put_text(t, &m->b, 1, 2, "bananas"), 0, "a new version");
    is_int(best_of(t, &m->a, "bananas", &got), 1, "is found at once");
    is_int((int64_t)got.hits[0].point.version, 2, "with its version");
    is_int(rounds(t, &m->a) + rounds(t, &m->b), 0, "rounds of the role");
    ok(has(tell(t, m, "names"), str_printf(task_arena(t), "\"blog_posts\": \"blog_posts_%lld\"",
                                           (long long)active(t, m))),
       "make the alias");
    ok(has(tell(t, m, "names"), collection(t, active(t, m), 2)), "one copy for both");
    struct point_tags hidden = {.flags = POINT_HIDDEN};
    is_int(collection_tag(t, m->a.all, COLLECTION_POSTS, 1, hidden, STR("a title")), 0, "hidden");
    struct points_query q = {.k = 10, .filter = &(struct point_filter){.without = POINT_HIDDEN}};
    is_int(collection_search(t, m->b.all, COLLECTION_POSTS, STR("bananas"), &q, &got), 0,
           "a search that may not see it");
    ok(got.count == 1 && got.hits[0].point.owner == 2, "finds the other one");
}

static void test_lost(struct task *t, struct machines *m)
{
    struct collection_answer got;
    tell(t, m, arena_printf(task_arena(t), "lose/blog_posts_%lld", (long long)active(t, m)));
    is_int(best_of(t, &m->b, "steel", &got), 0, "a collection that is gone");
    ok(got.degraded && strcmp(got.reason, COLLECTION_REBUILT) == 0, "is noticed");
    for (int i = 0; i < 3; i++)
        is_int(rounds(t, &m->b) + rounds(t, &m->a), 0, "a round");
    is_int(best_of(t, &m->a, "steel", &got), 2, "it has been made anew");
    ok(!got.degraded && got.count == 2, "with all points");
    ok(has(tell(t, m, "names"), STR("\"blog_posts\": \"blog_posts_")), "and the alias");
}

static void test_away(struct task *t, struct machines *m)
{
    struct collection_answer got;
    tell(t, m, "fail/503");
    is_int(best_of(t, &m->a, "steel", &got), 0, "a server that is away");
    ok(got.degraded && strcmp(got.reason, COLLECTION_AWAY) == 0, "is a degraded answer");
    is_int(put_text(t, &m->a, 3, 1, "cherries"), 0, "MySQL has a document meanwhile");
    tell(t, m, "mend");
    is_int(rounds(t, &m->b), 0, "when it is back, a round of another machine");
    is_int(best_of(t, &m->b, "cherries", &got), 3, "has it stored");
    ok(!got.degraded, "and nothing lacks");
    tell(t, m, "fail/garbage");
    is_int(best_of(t, &m->a, "steel", &got), 0, "something else at its address");
    ok(got.degraded && strcmp(got.reason, COLLECTION_AWAY) == 0, "is no reason to make it anew");
    (void)!rounds(t, &m->a);
    tell(t, m, "mend");
    is_int(sql_number(t, &m->a, "SELECT MAX(builds) FROM vector_store"), 2, "nor is it");
    is_int(best_of(t, &m->a, "cherries", &got), 3, "all is there");
    is_int((int64_t)got.count, 3, "as it was");
}

/* Another model: a second collection beside the first one, to which the alias moves. */
static void test_model(struct task *t, struct machines *m)
{
    struct collection_answer got;
    int64_t old = active(t, m);
    bool building;
    m->w.service.model = "m2"; /* the name that it is asked by is the same */
    m->w.service.dimension = 24;
    m->w.service.model_old = "m1";
    m->w.service.dimension_old = 16;
    embedding_free(m->a.embedding);
    m->a.config.ai_embedding_model = "m2";
    m->a.embedding = embedding_new(
        &(struct embedding_options){.ai = m->w.ai,
                                    .permits = &m->w.permits,
                                    .metrics = metrics,
                                    .model = "m2",
                                    .batch_texts = m->a.config.ai_embedding_batch_max,
                                    .batch_tokens = m->a.config.ai_embedding_batch_tokens});
    collections_free(m->a.all);
    m->a.all = collections_new(&(struct collections_options){.config = &m->a.config,
                                                             .sql = m->a.sql,
                                                             .embedding = m->a.embedding,
                                                             .metrics = metrics,
                                                             .ai = m->w.ai,
                                                             .permits = &m->w.permits,
                                                             .qdrant = m->qdrant});
    is_int(put_text(t, &m->a, 1, 2, "bananas"), 0, "a document of another model");
    int64_t next = collection_space(m->a.all, COLLECTION_POSTS, &building);
    ok(building && next != old, "goes into a space of its own");
    is_int(best_of(t, &m->b, "steel", &got), 2, "searches go on in the old one");
    is_int(put_text(t, &m->a, 2, 1, "iron and steel"), 0, "the second document");
    is_int(put_text(t, &m->a, 3, 1, "cherries"), 0, "the third one");
    is_int(rounds(t, &m->a), 0, "a round");
    is_int(collection_complete(t, m->a.all, COLLECTION_POSTS, next), 0, "it is complete");
    is_int(rounds(t, &m->a), 0, "a round");
    is_int(best_of(t, &m->a, "cherries", &got), 3, "and searched");
    struct str names = tell(t, m, "names");
    ok(has(names,
           str_printf(task_arena(t), "\"blog_posts\": \"blog_posts_%lld\"", (long long)next)),
       "the alias has moved: %.*s", STR_ARG(names));
}

static void test(struct task *t, void *arg)
{
    (void)arg;
    struct machines m;
    machines_open(t, &m);
    test_shared(t, &m);
    test_lost(t, &m);
    test_away(t, &m);
    test_model(t, &m);
    machines_close(t, &m);
}

int main(int argc, char **argv)
{
    check(argc == 3);
    args = argv;
    start_stores();
    tap_task(test, NULL, true);
    return stop_stores();
}
