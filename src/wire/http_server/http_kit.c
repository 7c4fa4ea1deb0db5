#include <stdlib.h>

#include "wire/http_server/http_exchange.h"

/* More than are in use at the same time; further ones are freed. */
#define KITS_KEPT_MAX 64
/* One connection has many streams. */
#define HTTP2_KITS_KEPT_MAX 1024
/* A buffer that one exchange has made larger than this is not kept for the next. */
#define KEEP_BYTES_MAX (64 * 1024)

static void swap(struct arena *a, struct arena *b)
{
    struct arena was = *a;
    *a = *b;
    *b = was;
}

struct http_kit *http_kit_take(struct http_server *s)
{
    struct http_kit *k = s->kits;
    if (k) {
        s->kits = k->next;
        s->kit_count--;
    } else {
        k = check_memory(calloc(1, sizeof(*k)));
        k->head_fields =
            check_memory(calloc(s->options.limits.headers_max, sizeof(*k->head_fields)));
    }
    return k;
}

void http_kit_use(struct http_conn *c)
{
    swap(&c->kit->arena, task_arena(c->task));
}

void http_kit_get(struct http_conn *c)
{
    c->kit = http_kit_take(c->server);
    http_kit_use(c);
}

static void shrink(struct http_kit *k, size_t keep)
{
    struct buf *all[] = {&k->in, &k->out, &k->fields, &k->body, &k->json, &k->packed};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        buf_clear(all[i]);
        buf_shrink(all[i], keep);
    }
}

static void kit_free(struct http_kit *k)
{
    shrink(k, 0);
    arena_release(&k->arena);
    free(k->head_fields);
    free(k);
}

void http_kit_give(struct http_server *s, struct http_kit *k)
{
    arena_reset(&k->arena, (struct arena_mark){0});
    if (s->kit_count >= (s->options.http2 ? HTTP2_KITS_KEPT_MAX : KITS_KEPT_MAX)) {
        kit_free(k);
        return;
    }
    shrink(k, KEEP_BYTES_MAX);
    k->next = s->kits;
    s->kits = k;
    s->kit_count++;
}

void http_kit_put(struct http_conn *c)
{
    struct http_kit *k = c->kit;
    if (!k)
        return;
    c->kit = NULL;
    check(!task_arena(c->task)->head); /* no scope is open */
    swap(&k->arena, task_arena(c->task));
    http_kit_give(c->server, k);
}

void http_kits_free(struct http_server *s)
{
    while (s->kits) {
        struct http_kit *k = s->kits;
        s->kits = k->next;
        kit_free(k);
    }
}
