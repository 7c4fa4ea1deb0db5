/* Any JSON may be asked: what is not refused gets the reply that its fault says. */
#include "tool/sim/sim_embeddings.h"

#define WORK_MAX 4096 /* numbers: larger replies take too long here */

static const struct json *written(struct arena *a, const struct sim_embeddings *e,
                                  enum sim_embed_fault fault, uint64_t dice)
{
    struct buf out;
    const struct json *j = NULL;
    buf_init(&out);
    sim_embeddings_write(a, e, fault, dice, &out);
    int err = json_parse(a, str_dup(a, buf_str(&out)), &j, NULL);
    check((err != 0) == (fault == EMBED_NAN && !e->base64));
    buf_release(&out);
    return err ? NULL : json_get(j, "data");
}

static void check_reply(struct arena *a, const struct sim_embeddings *e, uint64_t dice)
{
    for (int fault = EMBED_RIGHT; fault < EMBED_FAULTS; fault++) {
        const struct json *data = written(a, e, (enum sim_embed_fault)fault, dice);
        check(!data || data->count == e->count - (fault == EMBED_MISSING));
        json_each (entry, data) {
            int64_t index;
            check(json_int(json_get(entry, "index"), &index) && index < (int64_t)e->count);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    const struct json *j;
    struct sim_embeddings e;
    const char *why;
    if (json_parse(&a, str_from((const char *)data, size), &j, NULL) == 0 &&
        sim_embeddings_read(j, &e, &why) == 0) {
        check(e.count > 0 && e.dimensions > 0 && e.model.n > 0);
        check(e.tokens > 0 && e.tokens <= (int64_t)e.count * SIM_EMBED_TOKENS_MAX);
        if (e.count * e.dimensions <= WORK_MAX)
            check_reply(&a, &e, size);
    }
    arena_release(&a);
    return 0;
}
