/* The same random changes and searches on the embedded index and on a Qdrant server: both must
 * have the same points, and find the same. Prints TAP.
 *
 *     qdrant_peer URL KEY papers|posts SEED STEPS MILLISECONDS [CA-FILE]
 *
 * Calls that may be repeated are, until they are done: the server may fail as it likes. */
#include "engine/vectors/qdrant.h"

#include "engine/vectors/embedded.h"
#include "engine/vectors/index_fixture.h"
#include "loop/backoff.h"
#include "loop/task.h"
#include "tests/tap.h"
#include "wire/http_client.h"

#define DIMENSION  24
#define OWNERS     60
#define PARTS      7
#define LISTED_MAX 40
#define NEAR       2e-5f /* scores of floats that were added in another order */

static const struct points_space space = {"made-up", DIMENSION};

struct world {
    struct points_store *here, *there;
    uint64_t seed;
    uint64_t version;
    int repeated, wrong;
    size_t found;
};

static uint64_t random_below(struct world *w, uint64_t n)
{
    return next_bits(&w->seed) % n;
}

/* Some are numbers of posts, others use all 64 bits. */
static uint64_t owner_of(uint64_t number)
{
    uint64_t seed = number;
    return number % 3 == 0 ? number + 1 : number % 3 == 1 ? next_bits(&seed) : UINT64_MAX - number;
}

static uint64_t some_owner(struct world *w)
{
    return owner_of(random_below(w, OWNERS));
}

static struct point_tags some_tags(struct world *w)
{
    return (struct point_tags){
        .flags = random_below(w, 2) ? (uint32_t)1 << random_below(w, 4) | 1u << 31 : 0,
        .journal = (uint16_t)random_below(w, 5),
        .year = (uint16_t)(random_below(w, 9) ? 2000 + random_below(w, 10) : 0)};
}

/* Whether a call is to be repeated. Nothing may fail for good. */
static bool again(struct task *t, struct world *w, int err, const char *what, int tries)
{
    if (!err)
        return false;
    w->repeated++;
    struct backoff backoff = {.ms = 2, .ms_max = 20};
    if ((err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN || err == ERR_BUSY) && tries < 100)
        return backoff_wait(t, &backoff) == 0;
    ok(false, "%s: %s: %s", what, err_name(err), task_error(t));
    w->wrong++;
    return false;
}

#define REPEAT(t, w, what, call)                                                                   \
    for (int tries_ = 0; again(t, w, call, what, tries_); tries_++) {                              \
    }

/* --- changes --- */

struct some { /* a change, made up */
    struct point points[5 * PARTS];
    float vectors[5 * PARTS * DIMENSION];
    struct point_payload payloads[5 * PARTS];
    uint64_t gone[3];
};

static void add_owner(struct world *w, struct some *s, struct points_change *c, uint64_t owner)
{
    struct point_tags tags = some_tags(w);
    size_t parts = 1 + random_below(w, PARTS);
    uint64_t version = ++w->version * (random_below(w, 2) ? 1 : 0x100000001ull);
    for (size_t i = 0; i < parts; i++) {
        float *v = s->vectors + c->count * DIMENSION;
        for (size_t k = 0; k < DIMENSION; k++)
            v[k] = next_normal(&w->seed) * (i % 2 ? 40 : 1e12f);
        s->payloads[c->count] = (struct point_payload){.title = STR("A title, \"quoted\""),
                                                       .text = STR("石墨烯 \n and more"),
                                                       .key = STR("10.1000/x")};
        s->points[c->count++] =
            (struct point){.owner = owner, .version = version, .part = (uint32_t)i, .tags = tags};
    }
}

static void change_some(struct task *t, struct world *w)
{
    struct some s;
    struct points_change c = {.space = space,
                              .points = s.points,
                              .vectors = s.vectors,
                              .payloads = s.payloads,
                              .gone = s.gone};
    uint64_t first = random_below(w, OWNERS), owners = random_below(w, 6);
    for (uint64_t i = 0; i < owners; i++)
        add_owner(w, &s, &c, owner_of((first + i) % OWNERS));
    for (c.gone_count = random_below(w, 3); owners > 4 && c.gone_count; c.gone_count = 0) {
    }
    for (size_t i = 0; i < c.gone_count; i++)
        s.gone[i] = owner_of((first + owners + i) % OWNERS);
    REPEAT(t, w, "put here", w->here->ops->put(t, w->here, &c));
    REPEAT(t, w, "put there", w->there->ops->put(t, w->there, &c));
}

static void tag_some(struct task *t, struct world *w)
{
    uint64_t owner = some_owner(w);
    struct point_tags tags = some_tags(w);
    struct str title = random_below(w, 2) ? STR("Another title") : STR_NULL;
    REPEAT(t, w, "tag here", w->here->ops->tag(t, w->here, owner, tags, title));
    REPEAT(t, w, "tag there", w->there->ops->tag(t, w->there, owner, tags, title));
}

/* --- searches --- */

struct lists {
    uint64_t unless[LISTED_MAX], owners[LISTED_MAX];
    uint16_t journals[3];
};

static void some_filter(struct world *w, struct lists *l, struct point_filter *f)
{
    *f =
        (struct point_filter){.without = random_below(w, 2) ? 1 + (uint32_t)random_below(w, 15) : 0,
                              .unless = l->unless,
                              .unless_count = random_below(w, 2) * random_below(w, LISTED_MAX),
                              .journals = l->journals,
                              .journal_count = random_below(w, 3)};
    if (random_below(w, 3) == 0) {
        f->owners = l->owners;
        f->owner_count = random_below(w, LISTED_MAX);
    }
    if (random_below(w, 3) == 0) {
        f->year_from = (uint16_t)(1999 + random_below(w, 6));
        f->year_to = (uint16_t)(random_below(w, 2) ? f->year_from + random_below(w, 6) : 0);
    }
    for (size_t i = 0; i < LISTED_MAX; i++) { /* some of them twice */
        l->unless[i] = some_owner(w);
        l->owners[i] = some_owner(w);
    }
    for (size_t i = 0; i < 3; i++)
        l->journals[i] = (uint16_t)random_below(w, 6);
}

static bool same_point(const struct point *a, const struct point *b)
{
    return a->owner == b->owner && a->part == b->part && a->version == b->version &&
           a->tags.flags == b->tags.flags && a->tags.journal == b->tags.journal &&
           a->tags.year == b->tags.year;
}

/* Those of equal scores may come in another order, and the last ones may be others. */
static bool is_among(const struct point_hit *h, const struct point_hit *hits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_point(&h->point, &hits[i].point))
            return fabsf(h->score - hits[i].score) < NEAR;
    return count > 0 && h->score - hits[count - 1].score < NEAR && count == POINTS_HITS_MAX;
}

static void compare(struct world *w, const struct point_hit *a, size_t a_count,
                    const struct point_hit *b, size_t b_count, size_t k)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++) {
        bool last = i + 1 == k && fabsf(a[i].score - b[i].score) < NEAR;
        same = fabsf(a[i].score - b[i].score) < NEAR && (is_among(&a[i], b, b_count) || last);
    }
    w->found += a_count;
    w->wrong += !same;
    if (!same)
        ok(false, "%zu and %zu hits, not the same", a_count, b_count);
}

static void search_some(struct task *t, struct world *w, size_t k, bool filtered)
{
    static struct point_hit here[POINTS_HITS_MAX], there[POINTS_HITS_MAX];
    struct points_answer a, b;
    struct lists lists;
    struct point_filter filter;
    float v[DIMENSION];
    for (size_t i = 0; i < DIMENSION; i++)
        v[i] = next_normal(&w->seed);
    some_filter(w, &lists, &filter);
    struct points_query q = {
        .space = space, .vector = v, .k = k, .filter = filtered ? &filter : NULL, .exact = true};
    REPEAT(t, w, "search here", w->here->ops->search(t, w->here, &q, here, &a));
    REPEAT(t, w, "search there", w->there->ops->search(t, w->there, &q, there, &b));
    w->wrong += b.approximate;
    compare(w, here, a.count, there, b.count, k);
}

static uint64_t points_there(struct task *t, struct world *w)
{
    struct points_look look = {.points = 0};
    REPEAT(t, w, "look", w->there->ops->look(t, w->there, &look));
    w->wrong += look.dimension != DIMENSION;
    return look.points;
}

static void steps(struct task *t, struct world *w, int count)
{
    for (int i = 0; i < count && !w->wrong; i++) {
        struct task_scope scope = task_scope(t);
        uint64_t kind = random_below(w, 10);
        if (kind < 4)
            change_some(t, w);
        else if (kind < 5)
            tag_some(t, w);
        else
            search_some(t, w, 1 + random_below(w, 30), true);
        if (i % 10 == 0) /* all of them */
            search_some(t, w, POINTS_HITS_MAX, false);
        task_scope_end(t, scope);
    }
}

static char **args; /* the last one may be NULL */

static void test(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct world w = {.seed = strtoull(args[4], NULL, 10)};
    const char *why = "";
    struct http_client *client = http_client_new(
        task_loop(t), &(struct http_client_options){.proxy = "none", .ca_file = args[7]});
    w.here = embedded_new(f->path);
    w.there = qdrant_new(&(struct qdrant_options){.client = client,
                                                  .url = args[1],
                                                  .api_key = args[2],
                                                  .collection = args[3],
                                                  .space = 1,
                                                  .papers = strcmp(args[3], "papers") == 0,
                                                  .timeout_ms = strtoll(args[6], NULL, 10)},
                         &why);
    if (!ok(w.there != NULL, "the store is made: %s", why))
        return;
    REPEAT(t, &w, "create", w.there->ops->create(t, w.there, &space));
    REPEAT(t, &w, "publish", w.there->ops->publish(t, w.there));
    steps(t, &w, atoi(args[5]));
    search_some(t, &w, POINTS_HITS_MAX, false);
    REPEAT(t, &w, "settle", w.there->ops->settle(t, w.there));
    REPEAT(t, &w, "tend", w.there->ops->tend(t, w.there));
    struct index *index = fixture_open(f);
    struct index_info info;
    check(index_info(index, &info, &why) == 0);
    is_int((int64_t)points_there(t, &w), (int64_t)info.points, "both have the same points");
    index_close(index);
    is_int(w.wrong, 0, "%s steps of seed %s, %zu hits, the same in both; %d calls repeated",
           args[5], args[4], w.found, w.repeated);
    w.here->ops->free(w.here);
    w.there->ops->free(w.there);
    http_client_free(client);
}

int main(int argc, char **argv)
{
    struct fixture f;
    check(argc == 7 || argc == 8);
    args = argv;
    fixture_begin(&f);
    fixture_create(&f, DIMENSION, 64);
    tap_task(test, &f, true);
    fixture_end(&f);
    return tap_done();
}
