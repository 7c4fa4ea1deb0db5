#include "base/nearest.h"

#define NAME_BYTES_MAX 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Three rows of the usual table are enough: a swap of neighbours looks back two. */
static size_t distance(struct str a, struct str b)
{
    size_t rows[3][NAME_BYTES_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = a.p[i - 1] == b.p[j - 1];
            row[j] = least(last[j - 1] + !same, least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b.n];
}

struct nearest nearest_to(struct str typed)
{
    return (struct nearest){.typed = typed, .distance = SIZE_MAX};
}

void nearest_try(struct nearest *n, const char *known)
{
    struct str k = str_of(known);
    if (n->typed.n > NAME_BYTES_MAX || k.n > NAME_BYTES_MAX)
        return;
    size_t d = distance(n->typed, k);
    if (d < n->distance) {
        n->distance = d;
        n->best = known;
    }
}

const char *nearest_name(const struct nearest *n)
{
    size_t limit = n->typed.n < 4 ? 1 : least(n->typed.n / 3, 3) + 1;
    return n->distance <= limit ? n->best : NULL;
}
