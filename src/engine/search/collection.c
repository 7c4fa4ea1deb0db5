#include "engine/search/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sha256.h"
#include "engine/search/collection_private.h"

#define QUESTIONS_BYTES (4 * 1024 * 1024)

const char *collection_name(enum collection c)
{
    static const char *const names[COLLECTION_COUNT] = {"blog_posts", "papers"};
    check(c < COLLECTION_COUNT);
    return names[c];
}

uint64_t collection_paper_owner(struct str doi)
{
    uint8_t digest[SHA256_BYTES];
    uint64_t n = 0;
    sha256(doi, digest);
    for (size_t i = 0; i < sizeof n; i++)
        n = n << 8 | digest[i];
    n &= OWNER_MAX;
    return n ? n : 1; /* 0 is no owner */
}

static int64_t *metric_of(struct shelf *s, enum metric_kind kind, const char *name,
                          const char *help)
{
    char labels[64];
    snprintf(labels, sizeof labels, "collection=\"%s\"", collection_name(s->which));
    return metric(s->all->options.metrics, kind, name, labels, help);
}

static void shelf_init(struct shelf *s, struct collections *c, enum collection which)
{
    s->all = c;
    s->which = which;
    list_init(&s->spaces);
    sem_init(&s->turn, 1);
    sem_init(&s->calls, (size_t)c->options.calls_max[which]);
    s->turn_fd = s->tend_fd = -1;
    s->points = metric_of(s, METRIC_GAUGE, "millrace_vectors_points",
                          "Points in the store of a collection, as this node sees it.");
    s->bytes = metric_of(s, METRIC_GAUGE, "millrace_vectors_bytes",
                         "Size of the store of a collection, as this node sees it.");
    s->behind = metric_of(s, METRIC_GAUGE, "millrace_vectors_behind",
                          "Changes of points that the store of a collection does not have yet.");
    s->rebuilds = metric_of(s, METRIC_COUNTER, "millrace_vectors_rebuilds_total",
                            "Stores of points that were made anew from MySQL.");
    s->degraded = metric_of(s, METRIC_COUNTER, "millrace_vectors_degraded_total",
                            "Searches by meaning whose answer was degraded.");
}

struct collections *collections_new(const struct collections_options *o)
{
    struct collections *c = check_memory(calloc(1, sizeof *c));
    c->options = *o;
    c->questions = questions_new(QUESTIONS_BYTES);
    sem_init(&c->lists, LISTS_MAX);
    c->seconds = histogram_new(o->metrics, "millrace_vectors_search_seconds",
                               "Searches in stores of points, without embedding the question.");
    for (size_t i = 0; i < COLLECTION_COUNT; i++)
        shelf_init(&c->shelves[i], c, (enum collection)i);
    return c;
}

void collections_free(struct collections *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < COLLECTION_COUNT; i++) {
        struct shelf *s = &c->shelves[i];
        shelf_clear(s);
        if (s->turn_fd >= 0)
            close(s->turn_fd);
        if (s->tend_fd >= 0)
            close(s->tend_fd);
    }
    questions_free(c->questions);
    often_release(&c->lists_often);
    histogram_free(c->seconds);
    free(c->place);
    free(c);
}

int64_t collection_machines(const struct collections *c)
{
    return c->places;
}

int collection_look(struct task *t, struct collections *c, enum collection which,
                    struct collection_look *out)
{
    struct shelf *s = shelf_of(c, which);
    struct arena *a = task_arena(t);
    struct points_look look = {.points = 0};
    *out = (struct collection_look){.name = collection_name(which),
                                    .store = c->options.qdrant ? "qdrant" : "embedded"};
    int err = shelf_look(t, s);
    if (err)
        return err;
    if (s->building)
        out->building = str_dup(a, str_of(s->building->model));
    out->reason = c->options.embedding ? COLLECTION_EMPTY : COLLECTION_NO_SERVICE;
    out->degraded = true;
    struct space *x = space_get(s->active);
    if (!x)
        return 0;
    out->store = x->store->ops->name;
    out->model = str_dup(a, str_of(x->model));
    out->dimension = x->dimension;
    err = x->store->ops->look(t, x->store, &look);
    out->points = (int64_t)look.points;
    out->bytes = (int64_t)look.bytes;
    out->reason = collection_lacks(s, x, err, loop_now_ms(task_loop(t)));
    out->degraded = out->reason != NULL;
    if (!out->degraded && c->places > 1)
        out->reason = COLLECTION_MACHINES;
    if (!x->at.complete) {
        out->rebuilt = x->at.copied;
        out->rebuild_total = x->at.total;
    }
    space_put(x);
    return err == ERR_CANCELED ? err : 0;
}
