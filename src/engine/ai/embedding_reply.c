#include "engine/ai/embedding_reply.h"

#include <math.h>

#include "base/base64.h"
#include "base/json.h"
#include "engine/ai/reply.h"

struct reading {
    struct arena *arena;
    size_t count; /* of texts */
    struct embedding_reply *out;
    bool *seen; /* of each text: there was an entry */
    const char *problem;
};

static bool fail(struct reading *r, const char *problem)
{
    r->problem = problem;
    return false;
}

/* --- one vector --- */

/* Four sums: each addition need not wait for the one before. */
static double squares_of(const float *v, size_t n)
{
    double sums[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sums[k] += (double)v[i + k] * (double)v[i + k];
    for (; i < n; i++)
        sums[0] += (double)v[i] * (double)v[i];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* The squares of floats do not overflow a double, and those of the smallest are above zero. */
static void measure(struct embedding_vector *v, size_t n)
{
    double squares = squares_of(v->v, n);
    if (!isfinite(squares))
        v->why = "a vector with numbers that are not finite";
    else if (squares == 0)
        v->why = "a vector of zeros";
    else
        v->scale = 1 / sqrt(squares);
}

/* The floats of an entry, and how many there are; NULL with *n == 0: null stands for them. */
static bool floats_of(struct reading *r, const struct json *j, const float **v, size_t *n)
{
    *v = NULL;
    *n = 0;
    if (j && j->type == JSON_NULL)
        return true;
    if (j && j->type == JSON_FLOATS) {
        *v = j->floats;
        *n = j->count;
        return true;
    }
    struct str text = json_str(j);
    size_t bytes = text.p ? base64_bytes(text) : 0;
    if (bytes == 0 || bytes % sizeof(float) != 0)
        return fail(r, "an embedding that is neither numbers nor base64");
    float *floats = arena_alloc(r->arena, bytes);
    if (!base64_decode(text, floats))
        return fail(r, "an embedding that is neither numbers nor base64");
    *v = floats;
    *n = bytes / sizeof(float);
    return true;
}

static bool take_vector(struct reading *r, const struct json *j, struct embedding_vector *into)
{
    struct embedding_reply *out = r->out;
    size_t n;
    if (!floats_of(r, j, &into->v, &n))
        return false;
    if (!into->v) {
        into->why = "null instead of a vector";
        return true;
    }
    if (n > EMBEDDING_DIMENSIONS_MAX)
        return fail(r, arena_printf(r->arena, "a vector of %zu numbers", n));
    if (out->dimensions && n != out->dimensions)
        return fail(r, arena_printf(r->arena, "vectors of %zu and of %zu numbers in one reply",
                                    out->dimensions, n));
    out->dimensions = n;
    measure(into, n);
    return true;
}

/* --- all of them --- */

static bool take_entry(struct reading *r, const struct json *entry)
{
    int64_t index;
    if (!json_int(json_get(entry, "index"), &index))
        return fail(r, "a vector without an index");
    if (index < 0 || (uint64_t)index >= r->count)
        return fail(r, "a vector of a text that was not sent");
    if (r->seen[index])
        return fail(r, "two vectors of one text");
    r->seen[index] = true;
    struct embedding_vector *v = &r->out->vectors[index];
    bool fine = take_vector(r, json_get(entry, "embedding"), v);
    r->out->wrong += v->why != NULL;
    return fine;
}

static bool take_reply(struct reading *r, struct str body, const struct json *reply)
{
    const struct json *data = json_get(reply, "data");
    if (!data || data->type != JSON_ARRAY) {
        struct str words = reply ? ai_complaint(r->arena, body) : STR("");
        return fail(r, !reply    ? "a reply that is no JSON"
                       : words.n ? arena_printf(r->arena, "an error: %.*s", STR_ARG(words))
                                 : "a reply without vectors");
    }
    if (data->count != r->count)
        return fail(r, arena_printf(r->arena, "%u vectors for %zu texts", data->count, r->count));
    r->seen = ARENA_ARRAY(r->arena, bool, r->count);
    r->out->vectors = ARENA_ARRAY(r->arena, struct embedding_vector, r->count);
    r->out->model = json_str(json_get(reply, "model"));
    if (!r->out->model.p)
        r->out->model = STR("");
    json_each (entry, data)
        if (!take_entry(r, entry))
            return false;
    return true;
}

int embedding_reply_read(struct arena *a, struct str body, size_t count,
                         struct embedding_reply *out, const char **problem)
{
    struct embedding_reply reply = {.tokens = -1};
    struct reading r = {.arena = a, .count = count, .out = &reply};
    const struct json *j = NULL;
    struct str plain = ai_reply_plain(a, body, EMBEDDING_REPLY_BYTES_MAX);
    if (json_parse_floats(a, plain, &j, NULL))
        j = NULL;
    if (!take_reply(&r, plain, j)) {
        *problem = r.problem;
        return ERR_PROTO;
    }
    reply.tokens = ai_reply_tokens(j);
    *out = reply;
    return 0;
}
