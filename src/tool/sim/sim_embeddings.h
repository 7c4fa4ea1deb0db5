/* sim_embeddings.h -- embeddings: reading a request, writing the reply. Pure functions. */
#ifndef TOOL_SIM_SIM_EMBEDDINGS_H
#define TOOL_SIM_SIM_EMBEDDINGS_H

#include "base/json.h"
#include "tool/sim/sim_embed.h"

#define SIM_EMBED_INPUTS_MAX  2048
#define SIM_EMBED_TOKENS_MAX  8192          /* of an input, as sim_tokens counts */
#define SIM_EMBED_NUMBERS_MAX (1024 * 1024) /* inputs times dimensions */

/* A model whose name ends so has that many dimensions, where the request does not say. */
#define SIM_DIMENSIONS_LARGE        768
#define SIM_DIMENSIONS_LARGE_SUFFIX "-768"

struct sim_embeddings { /* what a request asks for; borrows its JSON */
    struct str model;
    const struct json *first; /* of the inputs: siblings, all strings */
    size_t count, dimensions;
    int64_t tokens; /* of all inputs */
    bool base64;
};

/* ERR_INVALID with a message for the client in *why, a constant. */
MUST_CHECK int sim_embeddings_read(const struct json *body, struct sim_embeddings *out,
                                   const char **why);

/* How a reply is wrong, beyond what every reply may be (sim_fault.h). */
enum sim_embed_fault {
    EMBED_RIGHT,
    EMBED_LENGTH,  /* a vector has a number less than the others */
    EMBED_MISSING, /* there is no vector of one input */
    EMBED_TWICE,   /* one input has two vectors, and another one none */
    EMBED_NULL,    /* a number is null; in base64 it is no number */
    EMBED_NAN,     /* a number is NaN, which is no JSON */
    EMBED_ZERO,    /* a vector has nothing but zeros */
    EMBED_ORDER,   /* the right reply, with the vectors in another order: the API allows it */
    EMBED_FAULTS,  /* how many there are */
};
#define SIM_EMBED_FAULTS_ALL (((1u << EMBED_FAULTS) - 1) & ~(1u << EMBED_RIGHT))

/* "length,null" or "all", as sim_fault_kinds. */
bool sim_embed_fault_kinds(struct str list, uint32_t *kinds, struct str *bad);

/* Appends the reply. dice chooses which vector is wrong. */
void sim_embeddings_write(struct arena *a, const struct sim_embeddings *e,
                          enum sim_embed_fault fault, uint64_t dice, struct buf *out);
#endif
