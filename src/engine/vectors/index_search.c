/* A search, from many rows to few:
 *
 *   1. filter: a bitmap of the rows that may be found (index_filter.c);
 *   2. codes: of more than INDEX_EXACT_ROWS rows, those whose bits the query's numbers like best;
 *   3. int8: of these, or of all, the best by small integers;
 *   4. float32: these are verified and compared in full.
 *
 * Each step is exact about what it compares, and of equals the row that came first is better, so
 * that the result does not depend on the processor. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

/* What the steps leave. Of the ten nearest among 100,000 vectors (256 dimensions, bench/vectors.c),
 * 99.3 % are among 2,000 candidates, 99.9 % among 5,000; more vectors are nearer to each other, and
 * 2,000 of a million are enough. Integers order so well that the best 40 are plenty for ten. */
#define CANDIDATES_LEAST 2000
#define CANDIDATES_SHARE 500 /* one row in so many */
#define CANDIDATES_OF_K  8   /* for each hit that is asked for … */
#define CANDIDATES_MANY  16  /* … and where more than MANY_HITS are, for which 8 are too few */
#define MANY_HITS        1000
#define RANKED_LEAST     40  /* after int8 */
#define RANKED_LEAST_ALL 100 /* where that compared all */
#define RANKED_OF_K      2
#define PREFETCH_ROWS    8

struct search {
    const struct index_view *view;
    const struct index_file *file;
    const struct kernel *kernel;
    uint64_t *keep;
    uint32_t left;
    float *exact;   /* the query, of length one */
    int16_t *small; /* rotated */
    float small_scale;
    uint8_t *table; /* what codes cost */
};

/* --- codes --- */

struct candidate {
    uint32_t row;
    uint16_t cost;
};

/* Takes rows as they come, in order, and keeps those that may be among the best `wanted`. */
struct sieve {
    size_t wanted, count, room;
    struct candidate *all;
    uint32_t by_cost[CODE_COST_MOST + 1]; /* of those in `all` */
    uint16_t most;                        /* what costs more is not good enough */
};

/* Keeps the best `wanted`; of those that cost as much as the last of them, the first. */
static void sieve_shake(struct sieve *s)
{
    if (s->count <= s->wanted)
        return;
    size_t better = 0, kept = 0;
    uint16_t last = 0;
    while (better + s->by_cost[last] < s->wanted)
        better += s->by_cost[last++];
    size_t ties = s->wanted - better;
    for (size_t i = 0; i < s->count; i++) {
        struct candidate c = s->all[i];
        if (c.cost < last || (c.cost == last && ties > 0)) {
            ties -= c.cost == last;
            s->all[kept++] = c;
        } else {
            s->by_cost[c.cost]--;
        }
    }
    s->count = kept;
    s->most = last;
}

static void sieve_rows(struct sieve *s, const struct kernel *k, uint32_t first,
                       const uint16_t *costs, size_t rows)
{
    uint16_t places[KERNEL_ROWS];
    size_t found = k->at_most(costs, rows, s->most, places);
    for (size_t i = 0; i < found; i++) {
        uint16_t cost = costs[places[i]];
        s->all[s->count++] = (struct candidate){first + places[i], cost};
        s->by_cost[cost]++;
    }
    if (s->count + KERNEL_ROWS > s->room)
        sieve_shake(s);
}

/* What rows cost; UINT16_MAX where a row does not count. `first` begins a word of the bitmap. */
static void row_costs(const struct search *s, uint32_t first, uint32_t rows, uint16_t *costs)
{
    const uint32_t per_word = 64 / KERNEL_BLOCK;
    size_t bytes = s->file->code.bytes;
    const uint8_t *codes = row_codes(s->file, first);
    for (uint32_t i = 0; i < rows; i += 64) {
        uint64_t keep = s->keep[(first + i) / 64];
        uint16_t *to = costs + i;
        if (!keep) {
            memset(to, 0xFF, 64 * sizeof(*to));
            continue;
        }
        s->kernel->costs(s->table, codes + i * bytes, bytes, per_word, to);
        for (uint64_t missing = ~keep; missing; missing &= missing - 1)
            to[__builtin_ctzll(missing)] = UINT16_MAX;
    }
}

static size_t candidates(const struct search *s, size_t k)
{
    size_t wanted = s->left / CANDIDATES_SHARE;
    size_t for_k = k * (k > MANY_HITS ? CANDIDATES_MANY : CANDIDATES_OF_K);
    wanted = wanted > CANDIDATES_LEAST ? wanted : CANDIDATES_LEAST;
    return wanted > for_k ? wanted : for_k;
}

/* The rows whose codes are nearest, in the order of rows. The caller frees them. */
static uint32_t *nearest_codes(const struct search *s, size_t k, size_t *count)
{
    size_t wanted = candidates(s, k);
    struct sieve *v = check_memory(calloc(1, sizeof(*v)));
    *v = (struct sieve){
        .wanted = wanted, .room = wanted * 2 + 2 * KERNEL_ROWS, .most = CODE_COST_MOST};
    v->all = check_memory(malloc(v->room * sizeof(*v->all)));
    for (uint32_t row = 0; row < s->view->state.rows;) {
        uint16_t costs[KERNEL_ROWS];
        uint32_t in_segment = s->file->head.segment_rows - row % s->file->head.segment_rows;
        uint32_t rows = s->view->state.rows - row;
        rows = rows < in_segment ? rows : in_segment;
        rows = rows < KERNEL_ROWS ? rows : KERNEL_ROWS;
        row_costs(s, row, rows, costs);
        sieve_rows(v, s->kernel, row, costs, rows);
        row += rows;
    }
    sieve_shake(v);
    uint32_t *rows = check_memory(malloc((v->count + 1) * sizeof(*rows)));
    for (size_t i = 0; i < v->count; i++)
        rows[i] = v->all[i].row;
    *count = v->count;
    free(v->all);
    free(v);
    return rows;
}

/* --- int8 --- */

struct scored {
    float score;
    uint32_t row;
};

/* The best so far: a heap, the worst of them first. */
struct best {
    struct scored *all;
    size_t count, room;
};

static inline bool is_worse(struct scored a, struct scored b)
{
    return a.score < b.score || (a.score == b.score && a.row > b.row);
}

static void sink_down(struct best *b, struct scored s)
{
    size_t at = 0, child;
    while ((child = 2 * at + 1) < b->count) {
        if (child + 1 < b->count && is_worse(b->all[child + 1], b->all[child]))
            child++;
        if (!is_worse(b->all[child], s))
            break;
        b->all[at] = b->all[child];
        at = child;
    }
    b->all[at] = s;
}

static inline void best_offer(struct best *b, struct scored s)
{
    if (b->count == b->room) {
        if (is_worse(b->all[0], s))
            sink_down(b, s);
        return;
    }
    size_t at = b->count++;
    for (; at && is_worse(s, b->all[(at - 1) / 2]); at = (at - 1) / 2)
        b->all[at] = b->all[(at - 1) / 2];
    b->all[at] = s;
}

static inline void offer_small(const struct search *s, struct best *best, uint32_t row)
{
    const int8_t *small = row_small(s->file, row);
    int32_t dot = s->kernel->dot_small(s->small, small, s->file->code.small);
    float score = (float)dot * (s->small_scale * code_small_scale(&s->file->code, small));
    best_offer(best, (struct scored){score, row});
}

static void prefetch(const struct search *s, uint32_t row)
{
    const char *small = (const void *)row_small(s->file, row);
    for (size_t i = 0; i < s->file->code.small_bytes; i += 64)
        __builtin_prefetch(small + i);
}

static void rank_rows(const struct search *s, const uint32_t *rows, size_t count, struct best *best)
{
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_ROWS < count)
            prefetch(s, rows[i + PREFETCH_ROWS]);
        offer_small(s, best, rows[i]);
    }
}

static void rank_all(const struct search *s, struct best *best)
{
    for (size_t i = 0; i < bitmap_words(s->view->state.rows); i++)
        for (uint64_t left = s->keep[i]; left; left &= left - 1)
            offer_small(s, best, (uint32_t)(i * 64 + (unsigned)__builtin_ctzll(left)));
}

static bool rank(const struct search *s, const struct points_query *q, struct best *best)
{
    bool all = q->exact || s->left <= INDEX_EXACT_ROWS || s->left <= candidates(s, q->k);
    size_t least = all ? RANKED_LEAST_ALL : RANKED_LEAST;
    best->room = q->k * RANKED_OF_K > least ? q->k * RANKED_OF_K : least;
    best->all = check_memory(malloc(best->room * sizeof(*best->all)));
    if (all) {
        rank_all(s, best);
        return true;
    }
    size_t count;
    uint32_t *rows = nearest_codes(s, q->k, &count);
    rank_rows(s, rows, count, best);
    free(rows);
    return false;
}

/* --- float32 --- */

static int better_first(const void *a, const void *b)
{
    return is_worse(*(const struct scored *)a, *(const struct scored *)b) ? 1 : -1;
}

static int compare_fully(const struct search *s, struct best *best, struct point_hit *hits,
                         size_t k, size_t *count, const char **why)
{
    struct index_file *f = s->view->file;
    struct row_head h;
    for (size_t i = 0; i < best->count; i++) {
        uint32_t row = best->all[i].row;
        if (!row_verify(f, row, &h))
            return index_file_damaged(f, "a row of the index is damaged", why);
        best->all[i].score = s->kernel->dot(s->exact, row_floats(f, row), f->code.floats);
    }
    if (best->count)
        qsort(best->all, best->count, sizeof(*best->all), better_first);
    *count = best->count < k ? best->count : k;
    for (size_t i = 0; i < *count; i++) {
        if (!row_head_read(f, best->all[i].row, &h))
            return index_file_damaged(f, "a row of the index is damaged", why);
        hits[i] = (struct point_hit){{h.owner, h.version, h.part, h.tags}, best->all[i].score};
    }
    return 0;
}

/* --- together --- */

static int prepare(struct search *s, const struct points_query *q, const char **why)
{
    const struct code *c = &s->file->code;
    float *rotated = check_memory(malloc(c->floats * sizeof(*rotated)));
    s->exact = check_memory(malloc(c->floats * sizeof(*s->exact)));
    s->small = check_memory(malloc(c->small * sizeof(*s->small)));
    s->table = check_memory(malloc(c->bytes * 32));
    s->keep = check_memory(calloc(bitmap_words(s->view->state.rows) + 1, sizeof(*s->keep)));
    int err = index_file_is_of(s->file, &q->space, why);
    if (!err && (q->k < 1 || q->k > POINTS_HITS_MAX || code_normalise(c, q->vector, s->exact))) {
        *why = "a query must have a vector with a direction, and ask for 1 to 32000 points";
        err = ERR_INVALID;
    }
    if (!err) {
        code_rotate(c, s->exact, rotated);
        code_table(c, rotated, s->table);
        s->small_scale = code_query(c, rotated, s->small);
        err = filter_rows(s->view, q->filter, s->keep, &s->left, why);
    }
    free(rotated);
    return err;
}

int view_search(const struct index_view *v, const struct kernel *k, const struct points_query *q,
                struct point_hit *hits, struct points_answer *answer, const char **why)
{
    struct search s = {.view = v, .file = v->file, .kernel = k};
    struct best best = {.count = 0};
    int err = prepare(&s, q, why);
    if (!err) {
        *answer = (struct points_answer){.among = s.left};
        answer->approximate = !rank(&s, q, &best);
        answer->detached = __atomic_load_n(&v->detached, __ATOMIC_RELAXED);
        err = compare_fully(&s, &best, hits, q->k, &answer->count, why);
    }
    /* What was read may have been zeros in place of the file. */
    if (!err && __atomic_load_n(&v->file->damaged, __ATOMIC_SEQ_CST))
        err = index_file_damaged(v->file, "the file of the index was cut", why);
    free(best.all);
    free(s.exact);
    free(s.small);
    free(s.table);
    free(s.keep);
    return err;
}

int index_search(struct index *x, const struct points_query *q, struct point_hit *hits,
                 struct points_answer *answer, const char **why)
{
    struct index_view *v;
    int err = view_now(x, &v, why);
    if (err)
        return err;
    err = view_search(v, v->file->code.kernel, q, hits, answer, why);
    index_view_put(v);
    return err;
}
