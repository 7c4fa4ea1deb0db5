/* A table in each segment says which of its rows is the newest of an owner; each row says which one
 * was before it. An entry has the row and 15 bits of the owner's hash, so that the heads of other
 * owners' rows are hardly ever read. Rows are noted after they count, so an entry is always of such
 * a row, and noting one again changes nothing: that is how the next writer repairs the table of one
 * that died. */
#include "base/err.h"
#include "engine/vectors/index_private.h"

#define ROW_BITS 17
#define ROW_MASK ((1u << ROW_BITS) - 1)

_Static_assert(INDEX_SEGMENT_ROWS <= ROW_MASK, "a row, from 1, fits into an entry");

static uint64_t hash_of(uint64_t owner)
{
    uint64_t h = (owner ^ owner >> 31) * 0x9E3779B97F4A7C15u;
    return (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
}

static uint32_t mark_of(uint64_t hash) /* the bits of an entry beside the row */
{
    return (uint32_t)hash & ~ROW_MASK;
}

/* Finds the slot of an owner; *row is the row in it, from 1 in its segment, 0: it is free. */
static int find(const struct index_file *f, const uint32_t *table, size_t segment, uint64_t owner,
                uint32_t *slot, uint32_t *row)
{
    uint32_t slots = f->head.segment_rows * SEGMENT_TABLES;
    uint32_t first = (uint32_t)(segment * f->head.segment_rows);
    uint64_t hash = hash_of(owner);
    *slot = (uint32_t)((hash >> 32) * slots >> 32);
    for (uint32_t tried = 0; tried < slots; tried++) {
        struct row_head h;
        uint32_t entry = __atomic_load_n(&table[*slot], __ATOMIC_ACQUIRE);
        *row = entry & ROW_MASK;
        if (!entry)
            return 0;
        if (!*row || *row > f->head.segment_rows)
            return ERR_PROTO;
        if (mark_of(entry) == mark_of(hash)) {
            if (!row_head_read(f, first + *row - 1, &h))
                return ERR_PROTO;
            if (h.owner == owner)
                return 0;
        }
        *slot = *slot + 1 < slots ? *slot + 1 : 0;
    }
    return ERR_PROTO;
}

static const uint32_t *table_of(const struct index_file *f, size_t segment)
{
    return (const void *)(f->segments[segment].at + f->at.table);
}

/* The row before, from 1 in its segment, 0: none. */
static int step_back(const struct index_file *f, size_t segment, uint32_t *row)
{
    struct row_head h;
    uint32_t first = (uint32_t)(segment * f->head.segment_rows);
    if (!row_head_read(f, first + *row - 1, &h) || h.before >= *row)
        return ERR_PROTO;
    *row = h.before;
    return 0;
}

int owner_head(const struct index_file *f, size_t segment, uint64_t owner, uint32_t rows,
               uint32_t *out)
{
    uint32_t slot, row, first = (uint32_t)(segment * f->head.segment_rows);
    int err = find(f, table_of(f, segment), segment, owner, &slot, &row);
    while (!err && row && first + row - 1 >= rows) /* came after this view */
        err = step_back(f, segment, &row);
    *out = err ? 0 : row;
    return err;
}

int owner_rows(const struct index_file *f, uint64_t owner, uint32_t rows,
               void (*visit)(void *arg, uint32_t row), void *arg)
{
    int err = 0;
    for (size_t segment = 0; !err && segment * f->head.segment_rows < rows; segment++) {
        uint32_t row;
        err = owner_head(f, segment, owner, rows, &row);
        while (!err && row) {
            visit(arg, (uint32_t)(segment * f->head.segment_rows) + row - 1);
            err = step_back(f, segment, &row);
        }
    }
    return err;
}

int owners_noted(struct index_file *f, uint32_t *rows, const char **why)
{
    const struct live *live = (const void *)f->live.at;
    struct pair filled;
    if (!pair_unpack(f, __atomic_load_n(&live->filled, __ATOMIC_ACQUIRE), &filled))
        return index_file_damaged(f, "the index is damaged where it counts noted rows", why);
    *rows = filled.rows;
    return 0;
}

int owner_note(const struct index_file *f, uint32_t *table, uint32_t row)
{
    struct row_head h;
    uint32_t slot, former, within = row % f->head.segment_rows + 1;
    if (!row_head_read(f, row, &h))
        return ERR_PROTO;
    int err = find(f, table, row / f->head.segment_rows, h.owner, &slot, &former);
    if (!err && within > former)
        __atomic_store_n(&table[slot], mark_of(hash_of(h.owner)) | within, __ATOMIC_RELEASE);
    return err;
}
