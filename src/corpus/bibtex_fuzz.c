/* However the bytes are cut, the same entries and problems come out; each entry stands in the input
 * on the line it names, and they come in order. */
#include <stdlib.h>

#include "base/buf.h"
#include "corpus/bibtex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(void *arg, const struct bibtex_problem *p)
{
    buf_printf(arg, "%llu %s %.*s %d\n", (unsigned long long)p->line, p->reason, STR_ARG(p->about),
               p->dropped);
}

static void add(struct buf *out, const char *name, struct str s)
{
    buf_printf(out, " %s", name);
    if (s.p) {
        buf_add_char(out, '=');
        buf_add_str(out, s);
    }
}

static void write_entry(struct buf *out, struct bibtex *b, const struct bibtex_entry *e)
{
    buf_printf(out, "%llu", (unsigned long long)e->line);
    add(out, "raw", e->raw);
    add(out, "type", e->type);
    add(out, "key", e->key);
    add(out, "title", e->title);
    add(out, "abstract", e->abstract);
    add(out, "doi", e->doi);
    add(out, "year", e->year);
    add(out, "journal", e->journal);
    add(out, "booktitle", e->booktitle);
    add(out, "authors", e->authors);
    add(out, "note", bibtex_field(b, STR("note")));
    for (size_t i = 0; i < e->macro_count; i++)
        add(out, "macro", e->macros[i]->raw);
    buf_add_char(out, '\n');
}

/* *from and *line are where the last entry ended. */
static void check_place(const struct bibtex_entry *e, const char **from, uint64_t *line)
{
    check(e->raw.p >= *from && e->raw.n >= 3 && e->raw.p[0] == '@');
    for (; *from < e->raw.p + e->raw.n; (*from)++) {
        check(*from != e->raw.p || *line == e->line);
        *line += **from == '\n';
    }
}

/* Windows grow by 1 to step bytes; 0 means all at once. Each is copied to memory of its own size,
 * so that reading beyond it is noticed. */
static void read_all(struct buf *out, const char *data, size_t size, size_t step)
{
    struct bibtex *b = bibtex_new(note, out);
    struct bibtex_entry e;
    const char *from = data;
    uint64_t line = 1;
    size_t at = 0, end = step ? 0 : size, turn = 0;
    for (;;) {
        struct str whole = str_from(data + at, end - at);
        char *copy = step ? check_memory(malloc(whole.n + 1)) : NULL;
        if (copy && whole.n)
            memcpy(copy, whole.p, whole.n);
        size_t used = 0;
        struct str window = copy ? str_from(copy, whole.n) : whole;
        enum bibtex_step s = bibtex_next(b, window, end == size, &e, &used);
        check(used <= whole.n);
        if (s == BIBTEX_ENTRY) {
            if (!copy)
                check_place(&e, &from, &line);
            write_entry(out, b, &e);
        }
        free(copy);
        at += used;
        if (s == BIBTEX_END)
            break;
        check(s == BIBTEX_ENTRY || end < size);
        size_t more = step ? 1 + (turn++ * 7) % step : 0;
        if (s == BIBTEX_MORE)
            end = size - end < more ? size : end + more;
    }
    check(at == size);
    bibtex_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, split;
    buf_init(&whole);
    buf_init(&split);
    read_all(&whole, (const char *)data, size, 0);
    size_t step = size > 4096 ? size / 16 : 1 + (size ? data[size - 1] % 64u : 0);
    read_all(&split, (const char *)data, size, step);
    check(str_eq(buf_str(&whole), buf_str(&split)));
    buf_release(&whole);
    buf_release(&split);
    return 0;
}
