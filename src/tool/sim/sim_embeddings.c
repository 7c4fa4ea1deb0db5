#include "tool/sim/sim_embeddings.h"

#include <math.h>

#include "base/err.h"
#include "tool/sim/sim_fault.h"
#include "tool/sim/sim_words.h"

static int wrong(const char **why, const char *message)
{
    *why = message;
    return ERR_INVALID;
}

/* --- reading --- */

static int read_inputs(const struct json *input, struct sim_embeddings *e, const char **why)
{
    bool one = input && input->type == JSON_STRING;
    if (!one && (!input || input->type != JSON_ARRAY || input->count == 0))
        return wrong(why, "input must be a string or an array of strings");
    e->first = one ? input : json_first(input);
    e->count = one ? 1 : input->count;
    if (e->count > SIM_EMBED_INPUTS_MAX)
        return wrong(why, "input must have at most 2048 strings");
    const struct json *s = e->first;
    for (size_t i = 0; i < e->count; i++, s = s->next) {
        if (json_str(s).n == 0)
            return wrong(why, "each input must be a string that is not empty");
        int64_t tokens = sim_tokens(s->s);
        if (tokens > SIM_EMBED_TOKENS_MAX)
            return wrong(why, "this model's maximum context length is 8192 tokens, and an input "
                              "is longer. Please reduce the length of the input.");
        e->tokens += tokens;
    }
    return 0;
}

static bool is_set(const struct json *j)
{
    return j && j->type != JSON_NULL;
}

static int read_format(const struct json *body, struct sim_embeddings *e, const char **why)
{
    bool large = str_ends(e->model, STR(SIM_DIMENSIONS_LARGE_SUFFIX));
    int64_t dimensions = large ? SIM_DIMENSIONS_LARGE : SIM_DIMENSIONS_DEFAULT;
    const struct json *wanted = json_get(body, "dimensions");
    if (is_set(wanted) &&
        (!json_int(wanted, &dimensions) || dimensions < 1 || dimensions > SIM_DIMENSIONS_MAX))
        return wrong(why, "dimensions must be an integer from 1 to 4096");
    e->dimensions = (size_t)dimensions;
    const struct json *format = json_get(body, "encoding_format");
    e->base64 = str_eq(json_str(format), STR("base64"));
    if (is_set(format) && !e->base64 && !str_eq(json_str(format), STR("float")))
        return wrong(why, "encoding_format must be float or base64");
    return 0;
}

int sim_embeddings_read(const struct json *body, struct sim_embeddings *out, const char **why)
{
    struct sim_embeddings e = {.tokens = 0};
    if (!body || body->type != JSON_OBJECT)
        return wrong(why, "the body must be a JSON object");
    e.model = json_str(json_get(body, "model"));
    if (e.model.n == 0)
        return wrong(why, "you must provide a model parameter");
    int err = read_format(body, &e, why);
    if (!err)
        err = read_inputs(json_get(body, "input"), &e, why);
    if (!err && e.count * e.dimensions > SIM_EMBED_NUMBERS_MAX)
        err = wrong(why, "input has too many strings for so many dimensions");
    if (!err)
        *out = e;
    return err;
}

/* --- faults --- */

static const char *const fault_names[EMBED_FAULTS] = {
    [EMBED_LENGTH] = "length", [EMBED_MISSING] = "missing", [EMBED_TWICE] = "twice",
    [EMBED_NULL] = "null",     [EMBED_NAN] = "nan",         [EMBED_ZERO] = "zero",
    [EMBED_ORDER] = "order",
};

bool sim_embed_fault_kinds(struct str list, uint32_t *kinds, struct str *bad)
{
    uint32_t found = 0;
    while (list.p) {
        *bad = sim_trim(str_cut(&list, ','));
        int kind = EMBED_LENGTH;
        while (kind < EMBED_FAULTS && !str_eq(*bad, str_of(fault_names[kind])))
            kind++;
        if (kind == EMBED_FAULTS && !str_eq(*bad, STR("all")))
            return false;
        found |= kind == EMBED_FAULTS ? SIM_EMBED_FAULTS_ALL : 1u << kind;
    }
    *kinds = found;
    return true;
}

/* --- writing --- */

struct writing {
    const struct sim_embeddings *embeddings;
    enum sim_embed_fault fault;
    size_t victim; /* the input whose vector is wrong */
    float *v;
    struct buf *out;
    bool any;
};

static void add_number_that_is_none(struct writing *w, size_t count)
{
    struct buf *out = w->out;
    sim_embed_write(w->v, count, out);
    out->len--; /* the bracket */
    buf_add_str(out, count ? STR(",") : STR(""));
    buf_add_str(out, w->fault == EMBED_NULL ? STR("null]") : STR("NaN]"));
}

static void add_vector(struct writing *w, bool victim)
{
    size_t count = w->embeddings->dimensions;
    bool none = victim && (w->fault == EMBED_NULL || w->fault == EMBED_NAN);
    if (victim && w->fault == EMBED_ZERO)
        memset(w->v, 0, count * sizeof *w->v);
    if (victim && w->fault == EMBED_LENGTH)
        count--;
    if (none && w->embeddings->base64)
        w->v[count - 1] = NAN;
    if (w->embeddings->base64)
        sim_embed_write_base64(w->v, count, w->out);
    else if (none)
        add_number_that_is_none(w, count - 1);
    else
        sim_embed_write(w->v, count, w->out);
}

static void add_entry(struct writing *w, struct str text, size_t index)
{
    bool victim = index == w->victim;
    if (victim && w->fault == EMBED_MISSING)
        return;
    if (victim && w->fault == EMBED_TWICE)
        index = index ? 0 : w->embeddings->count - 1;
    sim_embed(text, w->v, w->embeddings->dimensions);
    buf_printf(w->out,
               "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", w->any ? "," : "",
               index);
    w->any = true;
    add_vector(w, victim);
    buf_add_char(w->out, '}');
}

void sim_embeddings_write(struct arena *a, const struct sim_embeddings *e,
                          enum sim_embed_fault fault, uint64_t dice, struct buf *out)
{
    struct writing w = {.embeddings = e, .fault = fault, .victim = dice % e->count, .out = out};
    w.v = ARENA_ARRAY(a, float, e->dimensions);
    const struct json **inputs = ARENA_ARRAY(a, const struct json *, e->count);
    const struct json *s = e->first;
    for (size_t i = 0; i < e->count; i++, s = s->next)
        inputs[i] = s;
    size_t first = fault == EMBED_ORDER ? 1 + w.victim : 0; /* the others follow, and it is last */
    buf_add_lit(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < e->count; i++) {
        size_t index = (first + i) % e->count;
        add_entry(&w, inputs[index]->s, index);
    }
    buf_add_lit(out, "],\"model\":\"");
    json_escape(out, e->model);
    buf_printf(out, "\",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
               (long long)e->tokens, (long long)e->tokens);
}
