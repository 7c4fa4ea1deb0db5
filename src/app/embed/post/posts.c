#include "app/embed/post/posts_private.h"

#include <stdlib.h>

#include "engine/setup/config.h"

#define LEASE_MS    2400 /* a third of it: how long one that was overtaken is worked on at most */
#define DEADLINE_MS (10LL * 60 * 1000)
#define TRIES_MAX   3 /* one, and two more */
#define BACKOFF_MS  5000

const struct job_rows post_job_rows = {.table = "tb_post",
                                       .id = "job",
                                       .uid = "uid",
                                       .position = "position",
                                       .version = "position",
                                       .priority = "priority",
                                       .created = "queued_at",
                                       .changed = "queued_at",
                                       .state = "rag_status",
                                       .error = "rag_error",
                                       .reason = "reason",
                                       .cents = "cents",
                                       .paid_as = "paid_as",
                                       .kept = true,
                                       .pending = "pending",
                                       .working = "processing",
                                       .completed = "completed",
                                       .failed = "failed"};

static void add_metrics(struct posts *p, struct metrics *m)
{
    p->embedded = metric(m, METRIC_COUNTER, "millrace_posts_embedded_total", "",
                         "Posts whose vectors were stored.");
    p->chunks = metric(m, METRIC_COUNTER, "millrace_post_chunks_total", "",
                       "Chunks of posts that were embedded and stored.");
    p->dropped = metric(m, METRIC_COUNTER, "millrace_posts_dropped_total", "",
                        "Posts whose vectors were removed: they were deleted or emptied.");
    p->overtaken = metric(m, METRIC_COUNTER, "millrace_posts_overtaken_total", "",
                          "Posts that were queued again because two nodes had worked on them.");
    p->retagged = metric(m, METRIC_COUNTER, "millrace_posts_retagged_total", "",
                         "Posts whose vectors were told a new title or visibility.");
}

struct posts *posts_new(struct node *n)
{
    struct posts *p = check_memory(calloc(1, sizeof *p));
    const struct config *c = n->config;
    p->node = n;
    p->service = n->embedding != NULL;
    p->put = collection_put;
    p->drop = collection_drop;
    p->tag = collection_tag;
    p->space = collection_space;
    p->complete = collection_complete;
    p->words_put = words_put;
    p->words_drop = words_drop;
    add_metrics(p, n->metrics);
    p->kind = (struct job_kind){.name = POST_QUEUE,
                                .concurrency = c->embedding_concurrency,
                                .concurrency_all = c->embedding_concurrency,
                                .lease_ms = LEASE_MS,
                                .deadline_ms = DEADLINE_MS,
                                .tries_max = TRIES_MAX,
                                .backoff_ms = BACKOFF_MS,
                                .step = 1,
                                .calls_ai = true,
                                .rows = &post_job_rows,
                                .work = post_work};
    jobs_add(n->jobs, &p->kind, p);
    return p;
}

void posts_free(struct posts *p)
{
    free(p);
}

struct point_tags post_tags(bool hide)
{
    return (struct point_tags){.flags = hide ? POINT_HIDDEN : 0};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool post_blank(struct str content)
{
    return str_trim_if(content, is_blank).n == 0;
}
