/* Which rows a search may find: a bitmap, made before anything is compared. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/vectors/index_private.h"

#define JOURNALS 65536

/* Bits of rows, of owners in a list. */
struct chosen {
    uint64_t *bits;
};

static void choose(void *arg, uint32_t row)
{
    struct chosen *c = arg;
    c->bits[row / 64] |= (uint64_t)1 << row % 64;
}

/* --- a set of owners, for lists so long that looking each one up costs more than a scan --- */

struct owner_set {
    uint64_t *slots; /* 0: free */
    size_t mask;
    bool zero; /* owner 0 is in */
};

static size_t slot_of(const struct owner_set *s, uint64_t owner)
{
    uint64_t h = (owner ^ owner >> 32) * 0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(h >> 20) & s->mask;
    while (s->slots[slot] && s->slots[slot] != owner)
        slot = (slot + 1) & s->mask;
    return slot;
}

static struct owner_set set_of(const uint64_t *owners, size_t count)
{
    struct owner_set s = {.mask = 63};
    while (s.mask < count * 2)
        s.mask = s.mask * 2 + 1;
    s.slots = check_memory(calloc(s.mask + 1, sizeof(*s.slots)));
    for (size_t i = 0; i < count; i++) {
        s.zero = s.zero || !owners[i];
        s.slots[slot_of(&s, owners[i])] = owners[i];
    }
    return s;
}

static void scan_owners(const struct index_view *v, const uint64_t *owners, size_t count,
                        uint32_t from, struct chosen *out)
{
    struct owner_set s = set_of(owners, count);
    for (uint32_t row = from; row < v->state.rows; row++) {
        uint64_t owner = row_head(v->file, row)->owner;
        if (owner ? s.slots[slot_of(&s, owner)] != 0 : s.zero)
            choose(out, row);
    }
    free(s.slots);
}

/* A bitmap that the caller frees. */
static int rows_of_owners(const struct index_view *v, const uint64_t *owners, size_t count,
                          uint64_t **bits, const char **why)
{
    struct index_file *f = v->file;
    uint32_t noted;
    *bits = check_memory(calloc(bitmap_words(v->state.rows) + 1, sizeof(**bits)));
    struct chosen out = {*bits};
    int err = owners_noted(f, &noted, why);
    if (err)
        return err;
    if (noted > v->state.rows)
        noted = v->state.rows;
    size_t segments = v->state.rows / f->head.segment_rows + 1;
    if (count * segments * 8 > v->state.rows)
        noted = 0; /* a scan of all */
    for (size_t i = 0; noted && i < count; i++)
        if (owner_rows(f, owners[i], noted, choose, &out))
            return index_file_damaged(f, "the table of owners in the index is damaged", why);
    if (noted < v->state.rows && count)
        scan_owners(v, owners, count, noted, &out);
    return 0;
}

/* --- tags --- */

struct wanted {
    uint32_t without;
    uint16_t year_from, year_to;
    const uint64_t *journals; /* bitmap; NULL: all */
};

static inline bool has_year_and_journal(const struct wanted *w, const struct point_tags *t)
{
    return t->year >= w->year_from && t->year <= w->year_to &&
           (!w->journals || (w->journals[t->journal / 64] >> t->journal % 64 & 1));
}

/* Of the rows of one word that are in `keep`: those that have the tags. Segments are of whole words
 * each. */
static uint64_t by_tags(const struct wanted *w, const struct point_tags *tags, uint64_t keep,
                        uint64_t pardoned)
{
    uint64_t kept = 0;
    for (uint64_t left = keep; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        bool shown = !(tags[i].flags & w->without) || (pardoned >> i & 1);
        kept |= (uint64_t)(shown && has_year_and_journal(w, &tags[i])) << i;
    }
    return kept;
}

static void keep_tagged(const struct index_view *v, const struct point_filter *filter,
                        const uint64_t *pardoned, uint64_t *keep)
{
    static const struct wanted all = {.year_to = UINT16_MAX};
    struct wanted w = {.without = filter->without,
                       .year_from = filter->year_from,
                       .year_to = filter->year_to ? filter->year_to : UINT16_MAX};
    uint64_t *journals = NULL;
    if (filter->journal_count) {
        journals = check_memory(calloc(JOURNALS / 64, sizeof(*journals)));
        for (size_t i = 0; i < filter->journal_count; i++)
            journals[filter->journals[i] / 64] |= (uint64_t)1 << filter->journals[i] % 64;
        w.journals = journals;
    }
    if (memcmp(&w, &all, sizeof(w)) != 0)
        for (size_t i = 0; i < bitmap_words(v->state.rows); i++)
            if (keep[i])
                keep[i] = by_tags(&w, row_tags(v->file, (uint32_t)i * 64), keep[i],
                                  pardoned ? pardoned[i] : 0);
    free(journals);
}

static int apply(const struct index_view *v, const struct point_filter *filter, uint64_t *keep,
                 const char **why)
{
    uint64_t *chosen = NULL, *pardoned = NULL;
    int err = 0;
    if (filter->owner_count > POINTS_OWNERS_MAX || filter->unless_count > POINTS_OWNERS_MAX ||
        filter->journal_count > JOURNALS) {
        *why = "a filter has too long a list";
        return ERR_INVALID;
    }
    if (filter->owners) {
        err = rows_of_owners(v, filter->owners, filter->owner_count, &chosen, why);
        for (size_t i = 0; !err && i < bitmap_words(v->state.rows); i++)
            keep[i] &= chosen[i];
    }
    if (!err && filter->without && filter->unless_count)
        err = rows_of_owners(v, filter->unless, filter->unless_count, &pardoned, why);
    if (!err)
        keep_tagged(v, filter, pardoned, keep);
    free(chosen);
    free(pardoned);
    return err;
}

int filter_rows(const struct index_view *v, const struct point_filter *filter, uint64_t *keep,
                uint32_t *left, const char **why)
{
    size_t words = bitmap_words(v->state.rows);
    for (size_t i = 0; i < words; i++)
        keep[i] = ~v->dead[i];
    if (v->state.rows % 64)
        keep[words - 1] &= ((uint64_t)1 << v->state.rows % 64) - 1;
    int err = filter ? apply(v, filter, keep, why) : 0;
    *left = 0;
    for (size_t i = 0; i < words; i++)
        *left += (uint32_t)__builtin_popcountll(keep[i]);
    return err;
}
