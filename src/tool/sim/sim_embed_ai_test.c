/* The engine's embedding calls against the simulated AI with all of its faults: every text gets
 * its own vector, whatever goes wrong. */
#include <math.h>

#include "base/log.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/embedding.h"
#include "engine/ai/embedding_reply.h"
#include "tests/tap.h"
#include "tool/sim/sim.h"
#include "tool/sim/sim_embeddings.h"
#include "wire/http_server/http_harness.h"

static const bool asks = true; /* a job that may */

#define TEXTS      640
#define BATCH      8
#define CALLERS    4
#define DIMENSIONS 96

static struct sim sim;

struct world {
    struct site site;
    struct permits permits;
    struct http_client *client;
    struct metrics *metrics;
    struct ai *ai;
    struct embedding *embedding;
    struct str texts[TEXTS];
    int callers, wrong, failed, again;
};

static void world_open(struct task *t, struct world *w, const char *params)
{
    *w = (struct world){.permits = {.keys = 3}, .metrics = metrics_open(-1, 1, 0)};
    sim_stats_init(&sim.stats);
    waitq_init(&sim.quit);
    buf_init(&sim.content);
    site_open_tcp(t, &w->site, (struct http_options){.behind_tls = false}, NULL, 0, NULL);
    sim_routes(w->site.server, &sim);
    w->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
    w->ai = ai_new(&(struct ai_options){
        .service = AI_EMBEDDING,
        .url = arena_printf(task_arena(t), "http://127.0.0.1:%d/v1", w->site.port),
        .path = AI_EMBEDDING_PATH,
        .timeout_ms = 1000,
        .reply_bytes_max = EMBEDDING_REPLY_BYTES_MAX,
        .client = w->client,
        .permits = &w->permits,
        .metrics = w->metrics});
    w->embedding = embedding_new(&(struct embedding_options){.ai = w->ai,
                                                             .permits = &w->permits,
                                                             .metrics = w->metrics,
                                                             .model = "m",
                                                             .params = params,
                                                             .dimensions = DIMENSIONS,
                                                             .batch_texts = BATCH,
                                                             .batch_tokens = 10000});
    for (int i = 0; i < TEXTS; i++)
        w->texts[i] =
            str_printf(task_arena(t), "paper %d says \"梦 %c\" of nickel\n", i, 'a' + i % 26);
}

static void world_close(struct task *t, struct world *w)
{
    embedding_free(w->embedding);
    ai_free(w->ai);
    http_client_free(w->client);
    site_close(t, &w->site);
    sim_stats_release(&sim.stats);
    sim_brief_release(&sim.brief);
    buf_release(&sim.content);
    metrics_close(w->metrics);
}

static bool is_right(const struct embedding_answer *a, size_t i, struct str text)
{
    float want[DIMENSIONS];
    double off = 0;
    sim_embed(text, want, DIMENSIONS);
    for (size_t k = 0; k < DIMENSIONS && a->items[i].vector; k++)
        off = fmax(off, fabs((double)a->items[i].vector[k] - (double)want[k]));
    return a->items[i].vector && off < 1e-6;
}

/* A share of the texts, in one call, that is repeated while the service is away. */
static void embed(struct task *t, void *arg)
{
    struct world *w = arg;
    size_t share = TEXTS / CALLERS, from = share * (size_t)w->callers++;
    struct embedding_answer a;
    int err;
    while ((err = embedding_ask(t, w->embedding, &w->texts[from], share, &asks, &a)) ==
           ERR_UNAVAILABLE)
        w->again++;
    check(err == 0);
    for (size_t i = 0; i < share; i++) {
        w->failed += a.items[i].err != 0;
        w->wrong += !a.items[i].err && !is_right(&a, i, w->texts[from + i]);
    }
}

static void test_faults(struct task *t, void *arg)
{
    struct world w;
    struct group g;
    sim = (struct sim){.options = {.stall_ms = 5000, .retry_after_s = 1}};
    sim.options.faults = (struct sim_faults){.rate = 0.15, .kinds = SIM_FAULTS_ALL, .seed = 7};
    sim.options.embed_faults =
        (struct sim_faults){.rate = 0.4, .kinds = SIM_EMBED_FAULTS_ALL, .seed = 9};
    world_open(t, &w, arg);
    group_init(&g, task_loop(t));
    for (int i = 0; i < CALLERS; i++)
        check(task_go(&g, "embed", embed, &w) == 0);
    check(group_join(t, &g) == 0);
    is_int(w.wrong, 0, "no fault makes a wrong vector, %s", (const char *)arg);
    ok(w.failed <= TEXTS / 20, "few texts get none: %d of %d; calls that were repeated: %d",
       w.failed, TEXTS, w.again);
    is_int(w.permits.taken, w.permits.settled + w.permits.unused, "every permit is settled");
    ok(w.permits.taken > TEXTS / BATCH, "there were repeats: %d requests", w.permits.taken);
    is_int(w.permits.taken_for_jobs, w.permits.taken, "of jobs");
    world_close(t, &w);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    tap_task(test_faults, (void *)(uintptr_t) "{}", true);
    tap_task(test_faults, (void *)(uintptr_t) "{\"encoding_format\": \"float\"}", true);
    return tap_done();
}
