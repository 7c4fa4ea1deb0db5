#include "engine/vectors/qdrant_reply.h"

#include <math.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/json.h"
#include "engine/vectors/qdrant_request.h"

static int fail(const char **problem, const char *what)
{
    *problem = what;
    return ERR_PROTO;
}

/* --- the form that all replies have --- */

struct str qdrant_reply_error(struct arena *a, struct str body)
{
    const struct json *j;
    if (json_parse(a, body, &j, NULL))
        return STR("");
    struct str words = json_str(json_get(json_get(j, "status"), "error"));
    size_t n = words.n < QDRANT_WORDS_MAX ? words.n : QDRANT_WORDS_MAX;
    while (n && n < words.n && ((unsigned char)words.p[n] & 0xC0) == 0x80)
        n--;
    char *text = str_z(a, str_from(words.p ? words.p : "", n));
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F)
            text[i] = ' ';
    return str_from(text, n);
}

static int result_of(struct arena *a, struct str body, const struct json **result,
                     const char **problem)
{
    const struct json *j;
    if (json_parse(a, body, &j, NULL))
        return fail(problem, "a reply that is no JSON");
    if (!str_eq(json_str(json_get(j, "status")), STR("ok")))
        return fail(problem, "a reply without status \"ok\"");
    *result = json_get(j, "result");
    return *result ? 0 : fail(problem, "a reply without a result");
}

int qdrant_reply_change(struct arena *a, struct str body, bool *done, const char **problem)
{
    const struct json *result;
    int err = result_of(a, body, &result, problem);
    struct str status = err ? STR_NULL : json_str(json_get(result, "status"));
    if (err || !status.p)
        return err ? err : fail(problem, "a reply that does not say what became of a change");
    *done = str_eq(status, STR("completed"));
    return 0;
}

int qdrant_reply_switch(struct arena *a, struct str body, bool *yes, const char **problem)
{
    const struct json *result;
    int err = result_of(a, body, &result, problem);
    if (!err && !json_bool(result, yes))
        err = fail(problem, "a reply that is neither true nor false");
    return err;
}

int qdrant_reply_count(struct arena *a, struct str body, uint64_t *count, const char **problem)
{
    const struct json *result;
    int64_t n;
    int err = result_of(a, body, &result, problem);
    if (err)
        return err;
    if (!json_int(json_get(result, "count"), &n) || n < 0)
        return fail(problem, "a reply without a count");
    *count = (uint64_t)n;
    return 0;
}

/* --- a collection --- */

static bool has_fields(const struct json *schema)
{
    for (size_t i = 0; i < QDRANT_FIELDS; i++) {
        const struct qdrant_field *f = &qdrant_fields[i];
        if (!str_eq(json_str(json_get(json_get(schema, f->name), "data_type")), str_of(f->type)))
            return false;
    }
    return true;
}

int qdrant_reply_info(struct arena *a, struct str body, struct qdrant_info *out,
                      const char **problem)
{
    const struct json *result;
    int err = result_of(a, body, &result, problem);
    if (err)
        return err;
    const struct json *config = json_get(result, "config");
    const struct json *params = json_get(config, "params");
    if (!params || params->type != JSON_OBJECT)
        return fail(problem, "a collection without parameters");
    const struct json *vectors = json_get(params, "vectors"); /* several of them have names */
    int64_t size;
    bool ours = json_int(json_get(vectors, "size"), &size) && size > 0 &&
                size <= POINTS_DIMENSION_MAX &&
                str_eq(json_str(json_get(vectors, "distance")), STR("Cosine"));
    *out = (struct qdrant_info){.dimension = ours ? (size_t)size : 0,
                                .model = json_str(json_get(json_get(config, "metadata"), "model")),
                                .indexed = has_fields(json_get(result, "payload_schema"))};
    return 0;
}

/* --- hits --- */

static bool small_number(const struct json *j, int64_t most, int64_t *out)
{
    return json_int(j, out) && *out >= 0 && *out <= most;
}

static bool digits(struct str s, uint64_t *out)
{
    uint64_t v = 0;
    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_digit(s.p[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    *out = v;
    return true;
}

static bool flags_of(const struct json *j, uint32_t *out)
{
    *out = 0;
    if (!j || j->type != JSON_ARRAY)
        return false;
    json_each (bit, j) {
        int64_t n;
        if (!small_number(bit, 31, &n))
            return false;
        *out |= (uint32_t)1 << n;
    }
    return true;
}

/* False: it is not one of ours. */
static bool point_of(const struct json *hit, struct point *p)
{
    const struct json *payload = json_get(hit, "payload");
    int64_t part, journal, year;
    char id[QDRANT_ID_BYTES];
    if (!digits(json_str(json_get(payload, "owner")), &p->owner) ||
        !digits(json_str(json_get(payload, "version")), &p->version) ||
        !small_number(json_get(payload, "chunkIndex"), UINT32_MAX, &part) ||
        !flags_of(json_get(payload, "flags"), &p->tags.flags) ||
        !small_number(json_get(payload, "journal"), UINT16_MAX, &journal) ||
        !small_number(json_get(payload, "year"), UINT16_MAX, &year))
        return false;
    p->part = (uint32_t)part;
    p->tags.journal = (uint16_t)journal;
    p->tags.year = (uint16_t)year;
    qdrant_id(p->owner, p->part, id);
    return str_eq(json_str(json_get(hit, "id")), str_of(id)); /* so no id is there twice */
}

static bool score_of(const struct json *j, float *out)
{
    int64_t whole;
    double score = NAN;
    if (j && j->type == JSON_REAL)
        score = j->d;
    else if (json_int(j, &whole))
        score = (double)whole;
    *out = (float)score;
    return fabs(score) <= 1.01; /* rounded */
}

static int by_id(const void *a, const void *b)
{
    const struct point *x = &((const struct point_hit *)a)->point;
    const struct point *y = &((const struct point_hit *)b)->point;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

static int by_score(const void *a, const void *b)
{
    float x = ((const struct point_hit *)a)->score, y = ((const struct point_hit *)b)->score;
    return x == y ? by_id(a, b) : x < y ? 1 : -1;
}

/* Each id once, with its best score, in the order of ids. */
static size_t leave_out_twins(struct point_hit *hits, size_t count)
{
    size_t n = 0;
    qsort(hits, count, sizeof *hits, by_id);
    for (size_t i = 0; i < count; i++) {
        if (n == 0 || by_id(&hits[n - 1], &hits[i]) != 0)
            hits[n++] = hits[i];
        else if (hits[i].score > hits[n - 1].score)
            hits[n - 1] = hits[i];
    }
    return n;
}

int qdrant_reply_hits(struct arena *a, struct str body, size_t k, struct point_hit *hits,
                      size_t *count, const char **problem)
{
    const struct json *result;
    int err = result_of(a, body, &result, problem);
    const struct json *points = err ? NULL : json_get(result, "points");
    if (err)
        return err;
    if (!points || points->type != JSON_ARRAY)
        return fail(problem, "a reply without points");
    if (points->count > k)
        return fail(problem, "more points than it was asked for");
    size_t n = 0;
    json_each (hit, points) {
        struct point_hit h = {.score = 0};
        if (!score_of(json_get(hit, "score"), &h.score))
            return fail(problem, "a point without a cosine");
        if (point_of(hit, &h.point))
            hits[n++] = h;
    }
    n = leave_out_twins(hits, n);
    qsort(hits, n, sizeof(*hits), by_score);
    *count = n;
    return 0;
}
