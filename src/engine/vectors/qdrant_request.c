#include "engine/vectors/qdrant_request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "engine/vectors/qdrant.h"

#define JOURNALS      65536
#define DECIMALS      10
#define DECIMALS_ONE  INT64_C(10000000000)
#define NUMBER_BYTES  (sizeof("-0.,") + DECIMALS)
#define SQUARES_LEAST 1e-30 /* as the embedded index has it */

const struct qdrant_field qdrant_fields[QDRANT_FIELDS] = {
    {"owner", "keyword"}, {"flags", "integer"}, {"journal", "integer"}, {"year", "integer"}};

void qdrant_id(uint64_t owner, uint32_t part, char out[QDRANT_ID_BYTES])
{
    snprintf(out, QDRANT_ID_BYTES, "%08x-%04x-8%03x-8%x00-0000%08x", (unsigned)(owner >> 32),
             (unsigned)(owner >> 16 & 0xFFFF), (unsigned)(owner >> 4 & 0xFFF),
             (unsigned)(owner & 0xF), (unsigned)part);
}

/* --- vectors --- */

/* What makes its length one; 0: it has no direction. The server scales vectors, too, but in floats,
 * which overflow. */
static double scale_of(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return isfinite(sum) && sum >= SQUARES_LEAST ? 1 / sqrt(sum) : 0;
}

/* A number of a vector of length one: ten decimals are finer than a float of that size. printf
 * takes ten times as long, and there are thousands of these in each point. */
static char *put_number(char *at, double x)
{
    int64_t whole = llround(x * (double)DECIMALS_ONE);
    uint64_t left = (uint64_t)(whole < 0 ? -whole : whole);
    if (whole < 0)
        *at++ = '-';
    *at++ = (char)('0' + left / DECIMALS_ONE);
    *at++ = '.';
    left %= DECIMALS_ONE;
    for (int i = DECIMALS - 1; i >= 0; i--, left /= 10)
        at[i] = (char)('0' + left % 10);
    return at + DECIMALS;
}

static void write_vector(const float *v, size_t n, double scale, struct buf *out)
{
    buf_add_char(out, '[');
    char *from = buf_reserve(out, n * NUMBER_BYTES), *at = from;
    for (size_t i = 0; i < n; i++) {
        if (i)
            *at++ = ',';
        at = put_number(at, (double)v[i] * scale);
    }
    buf_added(out, (size_t)(at - from));
    buf_add_char(out, ']');
}

/* --- lists --- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort(uint64_t *owners, size_t count)
{
    if (count)
        qsort(owners, count, sizeof(*owners), by_number);
}

static void write_owner(uint64_t owner, struct buf *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "\"%llu\"", (unsigned long long)owner);
    buf_add(out, digits, (size_t)n);
}

/* A condition. The items of a list must be different ones; sorts them. */
static void write_sorted_owners(uint64_t *owners, size_t count, struct buf *out)
{
    sort(owners, count);
    buf_add_lit(out, "{\"key\":\"owner\",\"match\":{\"any\":[");
    for (size_t i = 0; i < count; i++) {
        if (i && owners[i] == owners[i - 1])
            continue;
        if (i)
            buf_add_char(out, ',');
        write_owner(owners[i], out);
    }
    buf_add_lit(out, "]}}");
}

static void write_owners(const uint64_t *owners, size_t count, struct buf *out)
{
    uint64_t *copy = check_memory(calloc(count + 1, sizeof(*copy)));
    if (count)
        memcpy(copy, owners, count * sizeof(*copy));
    write_sorted_owners(copy, count, out);
    free(copy);
}

/* The numbers of the bits that are set. */
static void write_flags(uint32_t flags, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t left = flags; left; left &= left - 1) {
        if (left != flags)
            buf_add_char(out, ',');
        buf_add_int(out, __builtin_ctz(left));
    }
    buf_add_char(out, ']');
}

/* --- collections --- */

void qdrant_write_create(const struct points_space *space, struct buf *out)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    jw_put_object(&w, "vectors");
    jw_put_int(&w, "size", (int64_t)space->dimension);
    jw_put_str(&w, "distance", STR("Cosine"));
    jw_end_object(&w);
    if (space->model) {
        jw_put_object(&w, "metadata"); /* older servers pass over it */
        jw_put_str(&w, "model", str_of(space->model));
        jw_end_object(&w);
    }
    jw_end_object(&w);
}

void qdrant_write_field(const struct qdrant_field *f, struct buf *out)
{
    buf_printf(out, "{\"field_name\":\"%s\",\"field_schema\":\"%s\"}", f->name, f->type);
}

void qdrant_write_alias(const char *alias, const char *collection, struct buf *out)
{
    buf_printf(out,
               "{\"actions\":[{\"delete_alias\":{\"alias_name\":\"%s\"}},"
               "{\"create_alias\":{\"collection_name\":\"%s\",\"alias_name\":\"%s\"}}]}",
               alias, collection, alias);
}

/* --- points --- */

static void put_tags(struct json_writer *w, struct point_tags tags, bool papers)
{
    struct buf flags;
    buf_init(&flags);
    write_flags(tags.flags, &flags);
    jw_key(w, STR("flags"));
    jw_raw(w, buf_str(&flags));
    buf_release(&flags);
    jw_put_int(w, "journal", tags.journal);
    jw_put_int(w, "year", tags.year);
    if (!papers)
        jw_put_str(w, "hide", tags.flags & QDRANT_HIDDEN ? STR("1") : STR("0"));
}

static void put_digits(struct json_writer *w, struct str name, uint64_t v)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);
    jw_key(w, name);
    jw_str(w, str_of(digits));
}

/* Texts are copies for people. */
static void put_text(struct json_writer *w, struct str name, struct str s)
{
    if (s.n > QDRANT_TEXT_BYTES)
        for (s.n = QDRANT_TEXT_BYTES; s.n && ((unsigned char)s.p[s.n] & 0xC0) == 0x80;)
            s.n--;
    if (!s.p)
        return;
    jw_key(w, name);
    jw_str(w, s);
}

static void write_payload(const struct point *p, const struct point_payload *more, bool papers,
                          struct buf *out)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    put_digits(&w, STR("owner"), p->owner);
    put_digits(&w, STR("version"), p->version);
    jw_put_int(&w, "chunkIndex", p->part);
    put_tags(&w, p->tags, papers);
    if (!papers && p->owner <= INT64_MAX)
        jw_put_int(&w, "postId", (int64_t)p->owner);
    if (more) {
        put_text(&w, STR("doi"), papers ? more->key : STR_NULL);
        put_text(&w, STR("title"), more->title);
        put_text(&w, STR("chunkText"), more->text);
    }
    jw_end_object(&w);
}

static void write_point(const struct points_change *c, size_t i, bool papers, struct buf *out)
{
    size_t n = c->space.dimension;
    const float *v = c->vectors + i * n;
    char id[QDRANT_ID_BYTES];
    qdrant_id(c->points[i].owner, c->points[i].part, id);
    buf_printf(out, "{\"id\":\"%s\",\"vector\":", id);
    write_vector(v, n, scale_of(v, n), out);
    buf_add_lit(out, ",\"payload\":");
    write_payload(&c->points[i], c->payloads ? &c->payloads[i] : NULL, papers, out);
    buf_add_char(out, '}');
}

size_t qdrant_write_points(const struct points_change *c, bool papers, size_t from, struct buf *out)
{
    size_t i = from;
    buf_add_lit(out, "{\"points\":[");
    for (; i < c->count && out->len < QDRANT_REQUEST_BYTES; i++) {
        if (i > from)
            buf_add_char(out, ',');
        write_point(c, i, papers, out);
    }
    buf_add_lit(out, "]}");
    return i;
}

void qdrant_write_delete(const struct points_change *c, struct buf *out)
{
    size_t count = c->gone_count + c->count;
    uint64_t *owners = check_memory(calloc(count + 1, sizeof(*owners)));
    if (c->gone_count)
        memcpy(owners, c->gone, c->gone_count * sizeof(*owners));
    for (size_t i = 0; i < c->count; i++)
        owners[c->gone_count + i] = c->points[i].owner;
    buf_add_lit(out, "{\"filter\":{\"must\":[");
    write_sorted_owners(owners, count, out);
    free(owners);
    buf_add_char(out, ']');
    for (size_t i = 0; i < c->count; i++) {
        char id[QDRANT_ID_BYTES];
        qdrant_id(c->points[i].owner, c->points[i].part, id);
        buf_printf(out, "%s\"%s\"", i ? "," : ",\"must_not\":[{\"has_id\":[", id);
    }
    if (c->count)
        buf_add_lit(out, "]}]");
    buf_add_lit(out, "}}");
}

void qdrant_write_tag(uint64_t owner, struct point_tags tags, struct str title, bool papers,
                      struct buf *out)
{
    struct json_writer w;
    buf_add_lit(out, "{\"payload\":");
    jw_init(&w, out);
    jw_object(&w);
    put_tags(&w, tags, papers);
    put_text(&w, STR("title"), title);
    jw_end_object(&w);
    buf_add_lit(out, ",\"filter\":{\"must\":[");
    write_owners(&owner, 1, out);
    buf_add_lit(out, "]}}");
}

/* --- searches --- */

static void write_journals(const uint16_t *journals, size_t count, struct buf *out)
{
    bool *seen = check_memory(calloc(JOURNALS, sizeof(*seen)));
    const char *comma = "";
    buf_add_lit(out, "{\"key\":\"journal\",\"match\":{\"any\":[");
    for (size_t i = 0; i < count; i++) {
        if (!seen[journals[i]])
            buf_printf(out, "%s%d", comma, journals[i]);
        seen[journals[i]] = true;
        comma = ",";
    }
    buf_add_lit(out, "]}}");
    free(seen);
}

/* None of the flags is set, or the owner is one of the exceptions. */
static void write_without(const struct point_filter *f, struct buf *out)
{
    bool unless = f->unless_count > 0;
    if (unless)
        buf_add_lit(out, "{\"should\":[");
    buf_add_lit(out, "{\"must_not\":[{\"key\":\"flags\",\"match\":{\"any\":");
    write_flags(f->without, out);
    buf_add_lit(out, "}}]}");
    if (!unless)
        return;
    buf_add_char(out, ',');
    write_owners(f->unless, f->unless_count, out);
    buf_add_lit(out, "]}");
}

static void write_years(const struct point_filter *f, struct buf *out)
{
    buf_printf(out, "{\"key\":\"year\",\"range\":{\"gte\":%d,\"lte\":%d}}", f->year_from,
               f->year_to ? f->year_to : UINT16_MAX);
}

static void write_filter(const struct point_filter *f, struct buf *out)
{
    size_t begun = out->len;
    buf_add_lit(out, ",\"filter\":{\"must\":[");
    size_t empty = out->len;
    if (f->owners)
        write_owners(f->owners, f->owner_count, out);
    if (f->journal_count) {
        if (out->len > empty)
            buf_add_char(out, ',');
        write_journals(f->journals, f->journal_count, out);
    }
    if (f->year_from || f->year_to) {
        if (out->len > empty)
            buf_add_char(out, ',');
        write_years(f, out);
    }
    if (f->without) {
        if (out->len > empty)
            buf_add_char(out, ',');
        write_without(f, out);
    }
    if (out->len == empty)
        out->len = begun; /* it asks for nothing */
    else
        buf_add_lit(out, "]}");
}

void qdrant_write_query(const struct points_query *q, struct buf *out)
{
    buf_add_lit(out, "{\"query\":");
    write_vector(q->vector, q->space.dimension, scale_of(q->vector, q->space.dimension), out);
    buf_printf(out,
               ",\"limit\":%zu,\"with_vector\":false,\"with_payload\":[\"owner\",\"version\","
               "\"chunkIndex\",\"flags\",\"journal\",\"year\"]",
               q->k);
    if (q->exact)
        buf_add_lit(out, ",\"params\":{\"exact\":true}");
    if (q->filter)
        write_filter(q->filter, out);
    buf_add_char(out, '}');
}

/* --- what was passed --- */

static int by_owner_and_part(const void *a, const void *b)
{
    const struct point *x = *(const struct point *const *)a, *y = *(const struct point *const *)b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

static bool has_twins(const struct points_change *c)
{
    const struct point **order = check_memory(calloc(c->count + 1, sizeof(*order)));
    bool twins = false;
    for (size_t i = 0; i < c->count; i++)
        order[i] = &c->points[i];
    qsort(order, c->count, sizeof(*order), by_owner_and_part);
    for (size_t i = 1; i < c->count && !twins; i++)
        twins = by_owner_and_part(&order[i - 1], &order[i]) == 0;
    free(order);
    return twins;
}

int qdrant_check_change(const struct points_change *c, const char **why)
{
    size_t n = c->space.dimension;
    if (c->count > POINTS_CHANGE_MAX || c->gone_count > POINTS_CHANGE_MAX) {
        *why = "a change has too many points";
        return ERR_LIMIT;
    }
    for (size_t i = 0; i < c->count; i++)
        if (scale_of(c->vectors + i * n, n) == 0) {
            *why = "a vector has no direction";
            return ERR_INVALID;
        }
    if (has_twins(c)) {
        *why = "a change has two points of one id";
        return ERR_INVALID;
    }
    return 0;
}

int qdrant_check_query(const struct points_query *q, const char **why)
{
    const struct point_filter *f = q->filter;
    size_t n = q->space.dimension;
    if (q->k < 1 || q->k > POINTS_HITS_MAX || scale_of(q->vector, n) == 0) {
        *why = "a query must have a vector with a direction, and ask for 1 to 32000 points";
        return ERR_INVALID;
    }
    if (f && (f->owner_count > POINTS_OWNERS_MAX || f->unless_count > POINTS_OWNERS_MAX ||
              f->journal_count > JOURNALS)) {
        *why = "a filter has too long a list";
        return ERR_INVALID;
    }
    return 0;
}
