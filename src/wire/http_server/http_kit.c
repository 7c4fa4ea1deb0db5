#include <stdlib.h>

#include "wire/http_server/http_exchange.h"

/* More than are at work at the same moment; further ones are freed. */
#define KITS_KEPT_MAX 64
/* A buffer that one exchange has made larger than this is not kept for the next. */
#define KEEP_BYTES_MAX (64 * 1024)

static void swap(struct arena *a, struct arena *b)
{
    struct arena was = *a;
    *a = *b;
    *b = was;
}

void http_kit_get(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_kit *k = s->kits;
    if (k) {
        s->kits = k->next;
        s->kit_count--;
    } else {
        k = calloc(1, sizeof(*k));
        if (!k)
            check_no_memory();
    }
    swap(&k->arena, task_arena(c->task));
    c->kit = k;
}

static void shrink(struct http_kit *k, size_t keep)
{
    struct buf *all[] = {&k->in, &k->out, &k->fields, &k->body, &k->json};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        buf_clear(all[i]);
        buf_shrink(all[i], keep);
    }
}

static void kit_free(struct http_kit *k)
{
    shrink(k, 0);
    arena_release(&k->arena);
    free(k);
}

void http_kit_put(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_kit *k = c->kit;
    if (!k)
        return;
    c->kit = NULL;
    check(!task_arena(c->task)->head); /* no scope is open */
    swap(&k->arena, task_arena(c->task));
    if (s->kit_count >= KITS_KEPT_MAX) {
        kit_free(k);
        return;
    }
    shrink(k, KEEP_BYTES_MAX);
    k->next = s->kits;
    s->kits = k;
    s->kit_count++;
}

void http_kits_free(struct http_server *s)
{
    while (s->kits) {
        struct http_kit *k = s->kits;
        s->kits = k->next;
        kit_free(k);
    }
}
