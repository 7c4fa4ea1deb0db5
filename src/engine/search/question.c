#include "engine/search/question.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"

#define OVERHEAD 160 /* of an entry: list, map, allocations */

struct question {
    struct list link; /* the one used last is first */
    struct str key;   /* space and text; behind it in memory */
    size_t dimension, bytes;
    float vector[];
};

struct questions {
    struct list used;
    struct map *map; /* key -> struct question */
    size_t bytes, bytes_max;
};

struct questions *questions_new(size_t bytes_max)
{
    struct questions *q = check_memory(calloc(1, sizeof *q));
    list_init(&q->used);
    q->map = map_new();
    q->bytes_max = bytes_max;
    return q;
}

static void forget(struct questions *q, struct question *x)
{
    (void)map_del(q->map, x->key);
    list_del(&x->link);
    q->bytes -= x->bytes;
    free(x);
}

void questions_free(struct questions *q)
{
    if (!q)
        return;
    while (!list_empty(&q->used))
        forget(q, list_entry(q->used.next, struct question, link));
    map_free(q->map);
    free(q);
}

static struct question *find(struct questions *q, int64_t space, struct str text)
{
    char *key = check_memory(malloc(sizeof space + text.n));
    memcpy(key, &space, sizeof space);
    memcpy(key + sizeof space, text.p, text.n);
    struct question *x = map_get(q->map, str_from(key, sizeof space + text.n));
    free(key);
    return x;
}

bool questions_find(struct questions *q, int64_t space, struct str text, size_t dimension,
                    float *out)
{
    struct question *x = find(q, space, text);
    if (!x || x->dimension != dimension)
        return false;
    memcpy(out, x->vector, dimension * sizeof *out);
    list_del(&x->link);
    list_push_front(&q->used, &x->link);
    return true;
}

void questions_keep(struct questions *q, int64_t space, struct str text, const float *vector,
                    size_t dimension)
{
    size_t vector_bytes = dimension * sizeof *vector, key_bytes = sizeof space + text.n;
    size_t bytes = sizeof(struct question) + vector_bytes + 2 * key_bytes + OVERHEAD;
    struct question *x = find(q, space, text);
    if (x)
        forget(q, x);
    if (bytes > q->bytes_max)
        return;
    while (q->bytes + bytes > q->bytes_max)
        forget(q, list_entry(q->used.prev, struct question, link));
    x = check_memory(malloc(sizeof *x + vector_bytes + key_bytes));
    *x = (struct question){.dimension = dimension, .bytes = bytes};
    memcpy(x->vector, vector, vector_bytes);
    char *key = (char *)x->vector + vector_bytes;
    memcpy(key, &space, sizeof space);
    memcpy(key + sizeof space, text.p, text.n);
    x->key = str_from(key, key_bytes);
    (void)map_set(q->map, x->key, x);
    list_push_front(&q->used, &x->link);
    q->bytes += bytes;
}

size_t questions_bytes(const struct questions *q)
{
    return q->bytes;
}
