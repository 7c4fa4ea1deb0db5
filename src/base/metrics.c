#include "base/metrics.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"

/* Stands in the first word of a slot in use. A binary with another layout has another number, so
 * that two of them on one page skip each other's slots instead of misreading them. */
#define SLOT_USED 0x4d520001u

/* Beside the kinds of the header: the parts of a histogram, which stand one after the other. */
enum { PART_BUCKET = METRIC_GAUGE + 1, PART_SUM, KINDS = METRIC_GAUGE_US + 1 };
_Static_assert((int)PART_SUM < (int)METRIC_COUNTER_US, "kinds differ");

struct slot {
    uint32_t used; /* stored last, with release */
    uint32_t kind;
    int64_t value;
    char name[64], labels[96], help[144];
};

_Static_assert(sizeof(struct slot) % 64 == 0, "slots share no cache lines");

struct slab {
    struct slot slots[METRICS_SLOTS_MAX];
};

struct unshared {
    struct list link;
    int64_t value;
};

struct metrics {
    struct slab *slabs;
    int nodes;
    int node;             /* -1 for readers */
    int used;             /* slots of slab node */
    struct map *by_name;  /* "name{labels}" to the value */
    struct list unshared; /* values that are on no page */
    bool full_logged;
};

/* --- the page --- */

size_t metrics_bytes(int nodes)
{
    check(nodes > 0 && nodes <= METRICS_NODES_MAX);
    return (size_t)nodes * sizeof(struct slab);
}

static void *map_page(int fd, size_t bytes)
{
    if (fd >= 0) {
        /* Touching a mapping beyond the end of its file is a SIGBUS: the first user extends it. */
        struct stat st;
        check(fstat(fd, &st) == 0);
        if ((size_t)st.st_size < bytes)
            check(ftruncate(fd, (off_t)bytes) == 0);
    }
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return check_memory(page == MAP_FAILED ? NULL : page);
}

struct metrics *metrics_open(int fd, int nodes, int node)
{
    check(node >= -1 && node < nodes);
    struct metrics *m = check_memory(calloc(1, sizeof(*m)));
    m->slabs = map_page(fd, metrics_bytes(nodes));
    m->nodes = nodes;
    m->node = node;
    m->by_name = map_new();
    list_init(&m->unshared);
    for (int i = 0; node >= 0 && i < METRICS_SLOTS_MAX; i++)
        __atomic_store_n(&m->slabs[node].slots[i].used, 0, __ATOMIC_RELEASE);
    return m;
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    for (struct list *l; (l = list_pop(&m->unshared));)
        free(list_entry(l, struct unshared, link));
    map_free(m->by_name);
    munmap(m->slabs, metrics_bytes(m->nodes));
    free(m);
}

/* --- registering --- */

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
    return n > 0 && s[n] == '\0' && !ascii_is_digit(s[0]);
}

static int64_t *unshared_value(struct metrics *m, const char *name)
{
    if (m->node >= 0 && !m->full_logged) {
        m->full_logged = true;
        log_warn("metrics",
                 "%s is not exported: the page is full or its labels are too long; later metrics "
                 "may be missing too",
                 name);
    }
    struct unshared *u = check_memory(calloc(1, sizeof(*u)));
    list_push(&m->unshared, &u->link);
    return &u->value;
}

static int64_t *shared_value(struct metrics *m, uint32_t kind, const char *name, const char *labels,
                             const char *help)
{
    struct slot *s = &m->slabs[m->node].slots[m->used++];
    s->kind = kind;
    s->value = 0;
    stpcpy(s->name, name);
    stpcpy(s->labels, labels);
    size_t help_n = strnlen(help, sizeof(s->help) - 1);
    memcpy(s->help, help, help_n);
    s->help[help_n] = '\0';
    __atomic_store_n(&s->used, SLOT_USED, __ATOMIC_RELEASE);
    return &s->value;
}

static bool has_room(const struct metrics *m, int slots)
{
    return m->node >= 0 && m->used + slots <= METRICS_SLOTS_MAX;
}

static int64_t *find_or_add(struct metrics *m, uint32_t kind, const char *name, const char *labels,
                            const char *help, bool shared)
{
    check(is_name(name) && strlen(name) < sizeof(((struct slot *)0)->name));
    struct buf key;
    buf_init(&key);
    buf_printf(&key, "%s{%s}", name, labels);
    int64_t *value = map_get(m->by_name, buf_str(&key));
    if (!value) {
        shared = shared && strlen(labels) < sizeof(((struct slot *)0)->labels);
        value = shared ? shared_value(m, kind, name, labels, help) : unshared_value(m, name);
        map_set(m->by_name, buf_str(&key), value);
    }
    buf_release(&key);
    return value;
}

int64_t *metric(struct metrics *m, enum metric_kind kind, const char *name, const char *labels,
                const char *help)
{
    static int64_t unseen; /* of all that have no page */
    return m ? find_or_add(m, kind, name, labels, help, has_room(m, 1)) : &unseen;
}

/* --- histograms --- */

static const struct {
    int64_t us;
    const char *label;
} bounds[] = {
    {100, "le=\"0.0001\""},     {250, "le=\"0.00025\""}, {500, "le=\"0.0005\""},
    {1000, "le=\"0.001\""},     {2500, "le=\"0.0025\""}, {5000, "le=\"0.005\""},
    {10000, "le=\"0.01\""},     {25000, "le=\"0.025\""}, {50000, "le=\"0.05\""},
    {100000, "le=\"0.1\""},     {250000, "le=\"0.25\""}, {500000, "le=\"0.5\""},
    {1000000, "le=\"1\""},      {2500000, "le=\"2.5\""}, {5000000, "le=\"5\""},
    {10000000, "le=\"10\""},    {30000000, "le=\"30\""}, {60000000, "le=\"60\""},
    {INT64_MAX, "le=\"+Inf\""},
};

#define BUCKETS (sizeof(bounds) / sizeof(bounds[0]))

/* Each bucket counts for itself; rendering adds them up. So adding is two stores, and
 * the count can never disagree with the buckets. */
struct histogram {
    int64_t *buckets[BUCKETS];
    int64_t *sum_us;
};

struct histogram *histogram_new(struct metrics *m, const char *name, const char *help)
{
    if (!m)
        return NULL;
    struct histogram *h = check_memory(malloc(sizeof(*h)));
    bool shared = has_room(m, BUCKETS + 1); /* all of it or nothing */
    for (size_t i = 0; i < BUCKETS; i++)
        h->buckets[i] = find_or_add(m, PART_BUCKET, name, bounds[i].label, help, shared);
    h->sum_us = find_or_add(m, PART_SUM, name, "", help, shared);
    return h;
}

void histogram_free(struct histogram *h)
{
    free(h);
}

void histogram_add_us(struct histogram *h, int64_t us)
{
    if (!h)
        return;
    if (us < 0)
        us = 0;
    size_t i = 0;
    while (us > bounds[i].us)
        i++;
    metric_add(h->buckets[i], 1);
    metric_add(h->sum_us, us);
}

/* --- rendering --- */

/* A copy of a slot: its node may end and a successor clear the slab meanwhile. */
struct sample {
    int node, index;
    struct slot slot;
};

static bool take_sample(const struct slot *from, struct sample *to)
{
    if (__atomic_load_n(&from->used, __ATOMIC_ACQUIRE) != SLOT_USED)
        return false;
    to->slot = *from;
    to->slot.value = __atomic_load_n(&from->value, __ATOMIC_RELAXED);
    to->slot.name[sizeof(to->slot.name) - 1] = '\0';
    to->slot.labels[sizeof(to->slot.labels) - 1] = '\0';
    to->slot.help[sizeof(to->slot.help) - 1] = '\0';
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&from->used, __ATOMIC_RELAXED) == SLOT_USED && to->slot.kind < KINDS;
}

static struct sample *take_samples(const struct metrics *m, size_t *count)
{
    struct sample *samples = NULL;
    size_t n = 0, cap = 0;
    for (int node = 0; node < m->nodes; node++) {
        for (int i = 0; i < METRICS_SLOTS_MAX; i++) {
            if (n == cap) {
                cap = cap ? cap * 2 : 256;
                samples = check_memory(reallocarray(samples, cap, sizeof(*samples)));
            }
            /* Slots are taken in order: all behind a free one are free, and reading them would
             * fault in the whole page. */
            if (!take_sample(&m->slabs[node].slots[i], &samples[n]))
                break;
            samples[n].node = node;
            samples[n++].index = i;
        }
    }
    *count = n;
    return samples;
}

static int by_name(const void *x, const void *y)
{
    const struct sample *a = x, *b = y;
    int order = strcmp(a->slot.name, b->slot.name);
    if (order)
        return order;
    return a->node != b->node ? a->node - b->node : a->index - b->index;
}

static void render_head(struct buf *out, const struct slot *s)
{
    static const char *const types[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge",        [PART_BUCKET] = "histogram",
        [PART_SUM] = "histogram",     [METRIC_COUNTER_US] = "counter", [METRIC_GAUGE_US] = "gauge",
    };
    buf_printf(out, "# HELP %s ", s->name);
    for (const char *c = s->help; *c; c++) {
        if (*c == '\\' || *c == '\n')
            buf_add_char(out, '\\');
        buf_add_char(out, *c == '\n' ? 'n' : *c);
    }
    buf_printf(out, "\n# TYPE %s %s\n", s->name, types[s->kind]);
}

static void render_name(struct buf *out, const struct sample *s, const char *suffix)
{
    const char *labels = s->slot.labels;
    buf_printf(out, "%s%s{%s%snode=\"%d\"} ", s->slot.name, suffix, labels, *labels ? "," : "",
               s->node);
}

static void render_seconds(struct buf *out, int64_t us)
{
    buf_printf(out, "%lld.%06lld\n", (long long)(us / 1000000), (long long)(us % 1000000));
}

/* *total: of the buckets so far. */
static void render_sample(struct buf *out, const struct sample *s, int64_t *total)
{
    int64_t v = s->slot.value;
    switch (s->slot.kind) {
    case PART_BUCKET:
        *total += v;
        render_name(out, s, "_bucket");
        buf_printf(out, "%lld\n", (long long)*total);
        break;
    case PART_SUM:
        render_name(out, s, "_sum");
        render_seconds(out, v);
        render_name(out, s, "_count");
        buf_printf(out, "%lld\n", (long long)*total);
        break;
    case METRIC_COUNTER_US:
    case METRIC_GAUGE_US:
        render_name(out, s, "");
        render_seconds(out, v);
        break;
    default:
        render_name(out, s, "");
        buf_printf(out, "%lld\n", (long long)v);
    }
}

void metrics_render(const struct metrics *m, struct buf *out)
{
    size_t count;
    struct sample *samples = take_samples(m, &count);
    if (count)
        qsort(samples, count, sizeof(*samples), by_name);
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sample *s = &samples[i], *last = i ? s - 1 : NULL;
        bool same_name = last && strcmp(last->slot.name, s->slot.name) == 0;
        if (!same_name)
            render_head(out, &s->slot);
        if (!same_name || last->node != s->node)
            total = 0;
        render_sample(out, s, &total);
    }
    free(samples);
}
