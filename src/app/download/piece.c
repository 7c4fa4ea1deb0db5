#include "app/download/downloads_private.h"
#include "corpus/pack.h"
#include "loop/offload.h"

/* A quarter of the bytes for three milliseconds per megabyte; the next levels give little. */
#define LEVEL 1

int download_offload(struct task *t, void (*fn)(void *arg), void *arg)
{
    int err = offload(t, fn, arg);
    if (err != ERR_BUSY)
        return err;
    fn(arg);
    return 0;
}

struct packing {
    struct pack *pack;
    struct arena *arena;
    struct str in, out;
    bool get;
    int err;
};

static void pack_it(void *arg)
{
    struct packing *p = arg;
    p->err = p->get ? pack_get(p->pack, p->arena, p->in, &p->out, NULL)
                    : pack_put(p->pack, p->arena, p->in, &p->out);
}

static int run(struct task *t, struct str in, bool get, struct str *out)
{
    struct packing p = {.pack = pack_new(), .arena = task_arena(t), .in = in, .get = get};
    int err = get ? 0 : pack_choose(p.pack, 0, LEVEL);
    if (!err)
        err = download_offload(t, pack_it, &p);
    pack_free(p.pack);
    *out = p.out;
    return err ? err : p.err;
}

int download_pack(struct task *t, struct str piece, struct str *out)
{
    return run(t, piece, false, out);
}

int download_unpack(struct task *t, struct str packed, struct str *out)
{
    int err = run(t, packed, true, out);
    if (!err && out->n > DOWNLOAD_PIECE_BYTES)
        err = ERR_PROTO;
    return err;
}
