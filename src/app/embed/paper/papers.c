#include <stdlib.h>

#include "app/embed/paper/papers_private.h"
#include "engine/setup/config.h"

#define LEASE_MS    10000
#define DEADLINE_MS (10LL * 60 * 1000)
#define TRIES_MAX   3 /* one, and two more */
#define BACKOFF_MS  5000
#define UNITS_EACH  4 /* units that ask, for each call: many are small */
#define UNITS_MORE  8
#define LARGE_MORE  2 /* large ones, than calls */

const struct job_rows paper_job_rows = {.table = "embedding_unit",
                                        .id = "id",
                                        .uid = "0",
                                        .position = "number",
                                        .version = "version",
                                        .priority = "priority",
                                        .created = "changed_at",
                                        .changed = "changed_at",
                                        .state = "state",
                                        .error = "error",
                                        .reason = "error_code",
                                        .kept = true,
                                        .pending = "pending",
                                        .working = "working",
                                        .completed = "completed",
                                        .failed = "failed"};

static void add_metrics(struct papers *p, struct metrics *m)
{
    p->embedded = metric(m, METRIC_COUNTER, "millrace_papers_embedded_total", "",
                         "Papers whose vectors were stored.");
    p->chunks = metric(m, METRIC_COUNTER, "millrace_paper_chunks_total", "",
                       "Chunks of papers that were embedded and stored.");
    p->worded = metric(m, METRIC_COUNTER, "millrace_papers_worded_total", "",
                       "Papers whose words were written.");
    p->dropped = metric(m, METRIC_COUNTER, "millrace_papers_dropped_total", "",
                        "Papers whose vectors and words were removed: they have left the corpus.");
    p->refused = metric(m, METRIC_COUNTER, "millrace_papers_refused_total", "",
                        "Papers that the embedding service gave no vector for.");
    p->overtaken = metric(m, METRIC_COUNTER, "millrace_papers_overtaken_total", "",
                          "Units of papers that were queued again: two nodes had worked on them.");
}

struct papers *papers_new(struct node *n)
{
    struct papers *p = check_memory(calloc(1, sizeof *p));
    p->node = n;
    p->service = n->embedding != NULL;
    p->load_seen = -1;
    p->put = collection_put_fenced;
    p->drop = collection_drop_fenced;
    p->space = collection_space;
    p->complete = collection_complete;
    add_metrics(p, n->metrics);
    paper_puts_init(p);
    sem_init(&p->large, (size_t)n->config->embedding_papers_calls + LARGE_MORE);
    p->kind = (struct job_kind){.name = PAPER_QUEUE,
                                .concurrency =
                                    n->config->embedding_papers_calls * UNITS_EACH + UNITS_MORE,
                                .lease_ms = LEASE_MS,
                                .deadline_ms = DEADLINE_MS,
                                .tries_max = TRIES_MAX,
                                .backoff_ms = BACKOFF_MS,
                                .calls_ai = true,
                                .soon = true,
                                .rows = &paper_job_rows,
                                .work = paper_work_on};
    jobs_add(n->jobs, &p->kind, p);
    return p;
}

void papers_free(struct papers *p)
{
    free(p);
}
