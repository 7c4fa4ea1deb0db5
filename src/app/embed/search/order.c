#include "app/embed/search/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void order_init(struct order *o, struct arena *a, size_t lists)
{
    size_t most = lists * ORDER_HITS_MAX, slots = 1;
    while (slots < 2 * most)
        slots *= 2;
    *o = (struct order){.hits = ARENA_ARRAY(a, struct order_hit, most), .most = most};
    o->table = ARENA_ARRAY(a, uint32_t, slots);
    o->mask = slots - 1;
    memset(o->table, 0, slots * sizeof *o->table);
}

static struct order_hit *hit_of(struct order *o, enum order_kind kind, uint64_t owner)
{
    size_t at = (size_t)((owner + kind) * 0x9E3779B97F4A7C15u >> 32) & o->mask;
    for (; o->table[at]; at = (at + 1) & o->mask) {
        struct order_hit *h = &o->hits[o->table[at] - 1];
        if (h->owner == owner && h->kind == kind)
            return h;
    }
    check(o->count < o->most);
    struct order_hit *h = &o->hits[o->count++];
    *h = (struct order_hit){.owner = owner, .kind = (uint8_t)kind};
    o->table[at] = (uint32_t)o->count;
    return h;
}

static double worth(size_t place)
{
    return 1.0 / (double)(ORDER_K + 1 + place);
}

void order_add_point(struct order *o, enum order_kind kind, size_t place, uint64_t owner,
                     uint64_t version, uint32_t part)
{
    struct order_hit *h = hit_of(o, kind, owner);
    if (h->by_meaning)
        return;
    h->by_meaning = true;
    h->version = version;
    h->part = part;
    h->score += worth(place);
}

void order_add_words(struct order *o, enum order_kind kind, size_t place, uint64_t owner)
{
    struct order_hit *h = hit_of(o, kind, owner);
    if (h->by_words)
        return;
    h->by_words = true;
    h->score += worth(place);
}

static int better_first(const void *a, const void *b)
{
    const struct order_hit *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

void order_make(struct order *o)
{
    qsort(o->hits, o->count, sizeof *o->hits, better_first);
    if (o->count > ORDER_HITS_MAX)
        o->count = ORDER_HITS_MAX;
    o->most = o->count; /* nothing can be added: the table is of the order before */
}
