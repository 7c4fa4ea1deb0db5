/* The papers of a unit, out of blocks. BibTeX is read on helper threads: a thousand papers take
 * longer than requests should wait. */
#include <stdlib.h>

#include "app/embed/paper/papers_private.h"
#include "base/sha256.h"
#include "corpus/bibtex.h"
#include "corpus/paper.h"
#include "corpus/prose/split.h"
#include "engine/papers/block.h"
#include "loop/offload.h"

#define AT_ONCE 128 /* papers, on a helper thread */

/* --- texts --- */

struct texts {
    struct arena arena;
    struct paper_text *list;
    size_t count;
};

static struct str keep(struct arena *a, struct str s)
{
    struct str x = str_trim(s);
    return x.n ? str_dup(a, str_from(x.p, str_utf8_prefix(x))) : STR_NULL;
}

static void read_texts(void *arg)
{
    struct texts *x = arg;
    struct bibtex *b = bibtex_new(NULL, NULL);
    for (size_t i = 0; i < x->count; i++) {
        struct paper_text *p = &x->list[i];
        struct str title = STR_NULL, text = STR_NULL;
        if (!p->bibtex.p || paper_read_shown(&x->arena, b, p->bibtex, &title, &text))
            continue;
        p->title = keep(&x->arena, title);
        p->text = keep(&x->arena, text);
    }
    bibtex_free(b);
}

int paper_read_texts(struct task *t, struct paper_text *list, size_t count)
{
    int err = 0;
    for (size_t at = 0; at < count && !err; at += AT_ONCE) {
        struct texts x = {.list = list + at, .count = count - at < AT_ONCE ? count - at : AT_ONCE};
        arena_init(&x.arena);
        err = offload(t, read_texts, &x);
        for (size_t i = 0; i < x.count && !err; i++) {
            struct paper_text *p = &x.list[i];
            p->title = p->title.p ? str_dup(task_arena(t), p->title) : STR_NULL;
            p->text = p->text.p ? str_dup(task_arena(t), p->text) : STR_NULL;
        }
        arena_release(&x.arena);
    }
    return err;
}

/* --- which papers --- */

static bool is_of(const struct paper_unit *u, uint64_t owner)
{
    return u->slices <= 1 || owner % (uint64_t)u->slices == (uint64_t)u->slice;
}

/* Of a block of one slice all at once, packed; of a larger one those of the slice alone. */
struct found {
    struct str *dois, *packed; /* packed NULL: to be picked */
    uint64_t *owners;
    size_t count;
};

static void found_init(struct task *t, struct found *f, size_t most)
{
    struct arena *a = task_arena(t);
    *f = (struct found){.dois = ARENA_ARRAY(a, struct str, most + 1),
                        .packed = ARENA_ARRAY(a, struct str, most + 1),
                        .owners = ARENA_ARRAY(a, uint64_t, most + 1)};
}

static int find_all(struct task *t, const struct node *n, const struct paper_unit *u,
                    struct found *f)
{
    struct block b = {.count = 0};
    int err = block_fetch(t, n->blocks, u->journal, u->year, &b);
    if (err)
        return err;
    found_init(t, f, b.count);
    for (size_t i = 0; i < b.count; i++) {
        f->owners[f->count] = collection_paper_owner(b.papers[i].doi);
        f->dois[f->count] = b.papers[i].doi;
        f->packed[f->count++] = b.papers[i].packed;
    }
    return 0;
}

static int last_load(struct task *t, const struct node *n, int64_t *load)
{
    struct sql_rows r;
    int err = sql_call(t, n->sql, &r, "SELECT COALESCE(MAX(load_no), 0) FROM corpus_load");
    *load = err ? 0 : r.cells[0].i;
    return err;
}

static int pick(struct task *t, const struct node *n, const struct paper_unit *u, struct found *f)
{
    struct block_pick *wants = ARENA_ARRAY(task_arena(t), struct block_pick, f->count + 1);
    for (size_t i = 0; i < f->count; i++)
        wants[i] = (struct block_pick){.journal = u->journal, .year = u->year, .doi = f->dois[i]};
    int err = f->count ? blocks_pick_packed(t, n->blocks, wants, f->count) : 0;
    for (size_t i = 0; i < f->count && !err; i++)
        f->packed[i] = wants[i].packed;
    return err;
}

static int find_slice(struct task *t, const struct node *n, const struct paper_unit *u,
                      struct found *f)
{
    struct str *dois = NULL;
    size_t count = 0;
    int64_t load = 0;
    int err = last_load(t, n, &load);
    if (!err)
        err = block_dois(t, n->blocks, u->journal, u->year, load, &dois, &count);
    if (err)
        return err;
    found_init(t, f, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t owner = collection_paper_owner(dois[i]);
        if (i % AT_ONCE == 0 && (err = task_yield(t)))
            return err;
        if (!is_of(u, owner))
            continue;
        f->owners[f->count] = owner;
        f->dois[f->count++] = dois[i];
    }
    return pick(t, n, u, f);
}

/* --- what they say --- */

/* *texts: of those that are there. One that cannot be read has none. */
static int unpack(struct task *t, const struct node *n, const struct found *f,
                  struct paper_text *texts)
{
    int err = 0;
    for (size_t i = 0; i < f->count && !err; i++) {
        texts[i] = (struct paper_text){STR_NULL, STR_NULL, STR_NULL};
        if (i % AT_ONCE == AT_ONCE - 1)
            err = task_yield(t);
        if (!err && f->packed[i].p)
            err = block_unpack(t, n->blocks, task_arena(t), f->packed[i], &texts[i].bibtex);
        if (err == ERR_NOT_FOUND || err == ERR_PROTO)
            err = 0;
    }
    return err ? err : paper_read_texts(t, texts, f->count);
}

static int64_t digest_of(const struct paper_doc *d)
{
    struct sha256 h;
    uint8_t bytes[SHA256_BYTES];
    uint64_t v = 0;
    sha256_begin(&h);
    sha256_add(&h, d->title.p ? d->title : STR(""));
    sha256_add(&h, STR("\n\n"));
    sha256_add(&h, d->text.p ? d->text : STR(""));
    sha256_end(&h, bytes);
    for (size_t i = 0; i < sizeof v; i++)
        v = v << 8 | bytes[i];
    v &= INT64_MAX;
    return v ? (int64_t)v : 1;
}

static void cut(struct arena *a, struct paper_doc *d)
{
    struct split s;
    struct split_chunk c;
    struct split_limits limits = {.tokens_max = PAPER_CHUNK_TOKENS,
                                  .overlap_tokens = PAPER_OVERLAP_TOKENS};
    struct str chunks[PAPER_CHUNKS_MAX];
    struct str whole =
        str_printf(a, "%.*s%s%.*s", STR_ARG(d->title), d->title.n ? "\n\n" : "", STR_ARG(d->text));
    for (split_init(&s, whole, limits); d->chunk_count < PAPER_CHUNKS_MAX && split_next(&s, &c);)
        chunks[d->chunk_count++] = str_from(whole.p + c.begin, c.end - c.begin);
    d->chunks = ARENA_ARRAY(a, struct str, d->chunk_count + 1);
    memcpy(d->chunks, chunks, d->chunk_count * sizeof *chunks);
}

static int by_owner(const void *a, const void *b)
{
    const struct paper_doc *x = a, *y = b;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

int paper_read_unit(struct task *t, const struct node *n, const struct paper_unit *u,
                    struct paper_doc **docs, size_t *count, int64_t *bare)
{
    struct found f = {.count = 0};
    *docs = NULL;
    *count = 0;
    *bare = 0;
    int err = block_refresh(t, n->blocks, u->journal, u->year, false, NULL);
    if (!err)
        err = u->slices > 1 ? find_slice(t, n, u, &f) : find_all(t, n, u, &f);
    if (err == ERR_NOT_FOUND)
        return 0;
    if (err)
        return err;
    struct paper_text *texts = ARENA_ARRAY(task_arena(t), struct paper_text, f.count + 1);
    err = unpack(t, n, &f, texts);
    if (err)
        return err;
    *docs = ARENA_ARRAY(task_arena(t), struct paper_doc, f.count + 1);
    for (size_t i = 0; i < f.count && !err; i++) {
        struct paper_doc d = {
            .owner = f.owners[i], .doi = f.dois[i], .title = texts[i].title, .text = texts[i].text};
        if (i % AT_ONCE == AT_ONCE - 1)
            err = task_yield(t);
        if (!f.packed[i].p)
            continue; /* it has left meanwhile */
        d.digest = digest_of(&d);
        cut(task_arena(t), &d);
        if (d.chunk_count)
            (*docs)[(*count)++] = d;
        else
            ++*bare;
    }
    qsort(*docs, *count, sizeof **docs, by_owner);
    return err;
}
