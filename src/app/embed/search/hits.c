/* Rows of what was found: they decide who sees it, and what is shown. */
#include "app/embed/search/search_private.h"

#include "corpus/prose/markdown.h"
#include "corpus/prose/split.h"
#include "loop/offload.h"

#define BATCH         32    /* rows read at a time: contents of posts may be large */
#define CONTENT_SMALL 20000 /* bytes that are looked at in less than a millisecond */

/* --- one post --- */

/* On a helper thread if the content is large. */
struct looking {
    struct arena arena;
    const struct order_hit *hit;
    const struct post_row *row;
    const struct snippet_words *words;
    bool fits; /* false: it is stale */
    struct snippet snippet;
};

/* The chunk that was embedded as this part; all of the text if there is none. */
static struct str part_of(struct str plain, uint32_t part)
{
    struct split s;
    struct split_chunk c;
    split_init(&s, plain, (struct split_limits){POST_CHUNK_TOKENS, POST_OVERLAP_TOKENS});
    for (uint32_t i = 0; split_next(&s, &c); i++)
        if (i == part)
            return str_from(plain.p + c.begin, c.end - c.begin);
    return plain;
}

/* Words are of the text as it was indexed: they must be in the row. */
static void look(void *arg)
{
    struct looking *l = arg;
    struct str plain = markdown_plain(&l->arena, l->row->content);
    bool nearest = l->hit->by_meaning && l->hit->version == (uint64_t)l->row->version;
    bool found =
        l->hit->by_words && (snippet_has(l->words, l->row->title) || snippet_has(l->words, plain));
    l->fits = nearest || found;
    if (l->fits)
        l->snippet =
            snippet_of(&l->arena, nearest ? part_of(plain, l->hit->part) : plain, l->words);
}

static int look_at(struct task *t, struct looking *l)
{
    if (l->row->content.n > CONTENT_SMALL)
        return offload(t, look, l);
    look(l);
    return 0;
}

/* --- a batch --- */

struct batch {
    const struct order_hit *hits;
    size_t count;
    struct post_row posts[BATCH];
    struct paper_row papers[BATCH];
    size_t post_count, paper_count;
};

static int read_rows(struct task *t, struct searches *s, struct batch *b)
{
    int64_t ids[BATCH];
    uint64_t owners[BATCH];
    size_t posts = 0, papers = 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->hits[i].kind == ORDER_POST)
            ids[posts++] = (int64_t)b->hits[i].owner;
        else
            owners[papers++] = b->hits[i].owner;
    b->post_count = b->paper_count = 0;
    int err = posts ? s->sources.posts(t, s->node->sql, ids, posts, b->posts, &b->post_count) : 0;
    if (!err && papers)
        err = s->sources.papers(t, s->node, owners, papers, b->papers, &b->paper_count);
    return err;
}

static const struct post_row *post_of(const struct batch *b, uint64_t id)
{
    for (size_t i = 0; i < b->post_count; i++)
        if (b->posts[i].id == (int64_t)id)
            return &b->posts[i];
    return NULL;
}

static const struct paper_row *paper_of(const struct batch *b, uint64_t owner)
{
    for (size_t i = 0; i < b->paper_count; i++)
        if (b->papers[i].owner == owner)
            return &b->papers[i];
    return NULL;
}

static bool sees(struct search_caller who, const struct post_row *row)
{
    return !row->hide || who.admin || row->uid == who.uid;
}

/* --- hits --- */

struct making {
    struct search_caller who;
    struct snippet_words words;
    struct arena *arena; /* of what is answered */
    struct search_page *out;
    size_t limit;
};

static struct search_hit *add(struct making *m, const struct order_hit *h, struct str title,
                              const struct snippet *snippet)
{
    struct search_hit *hit = &m->out->hits[m->out->count++];
    *hit = (struct search_hit){.kind = h->kind, .score = h->score, .snippet = *snippet};
    hit->title = str_dup(m->arena, title);
    hit->snippet.text = str_dup(m->arena, snippet->text);
    return hit;
}

static int add_post(struct task *t, struct making *m, const struct order_hit *h,
                    const struct post_row *row)
{
    if (!row || !sees(m->who, row))
        return 0;
    struct looking l = {.hit = h, .row = row, .words = &m->words};
    arena_init(&l.arena);
    int err = look_at(t, &l);
    if (!err && l.fits) {
        struct search_hit *hit = add(m, h, row->title, &l.snippet);
        hit->id = row->id;
        hit->hide = row->hide;
        hit->mine = !m->who.admin && row->uid == m->who.uid;
    }
    arena_release(&l.arena);
    return err;
}

/* Most abstracts are one chunk: the words tell the place. */
static void add_paper(struct task *t, struct making *m, const struct order_hit *h,
                      const struct paper_row *row)
{
    if (!row)
        return;
    struct snippet s = snippet_of(task_arena(t), row->text.p ? row->text : STR(""), &m->words);
    struct search_hit *hit = add(m, h, row->title.p ? row->title : STR(""), &s);
    hit->doi = str_dup(m->arena, row->doi);
    hit->journal = str_dup(m->arena, row->journal);
    hit->year = row->year;
}

/* *at goes on behind what was looked at. */
static int add_batch(struct task *t, struct searches *s, struct making *m, const struct order *o,
                     size_t *at)
{
    struct batch *b = ARENA_NEW(task_arena(t), struct batch);
    size_t left = o->count - *at;
    b->hits = o->hits + *at;
    b->count = left < BATCH ? left : BATCH;
    int err = read_rows(t, s, b);
    for (size_t i = 0; i < b->count && !err && m->out->count < m->limit; i++, ++*at) {
        const struct order_hit *h = &b->hits[i];
        if (h->kind == ORDER_POST)
            err = add_post(t, m, h, post_of(b, h->owner));
        else
            add_paper(t, m, h, paper_of(b, h->owner));
    }
    return err;
}

/* Rows go with each batch; what is answered stays. */
static void settle(struct task *t, struct search_page *out)
{
    struct arena *a = task_arena(t);
    for (size_t i = 0; i < out->count; i++) {
        struct search_hit *h = &out->hits[i];
        h->title = str_dup(a, h->title);
        h->snippet.text = str_dup(a, h->snippet.text);
        h->doi = h->doi.p ? str_dup(a, h->doi) : STR_NULL;
        h->journal = h->journal.p ? str_dup(a, h->journal) : STR_NULL;
    }
}

int search_hits(struct task *t, struct searches *s, struct search_caller who, struct str question,
                const struct order *o, size_t *at, size_t limit, struct search_page *out)
{
    struct arena kept;
    struct making m = {.who = who, .arena = &kept, .out = out, .limit = limit};
    int err = 0;
    arena_init(&kept);
    snippet_words(&m.words, task_arena(t), question);
    out->hits = ARENA_ARRAY(task_arena(t), struct search_hit, limit);
    out->count = 0;
    while (!err && *at < o->count && out->count < limit) {
        struct task_scope scope = task_scope(t);
        err = add_batch(t, s, &m, o, at);
        task_scope_end(t, scope);
    }
    settle(t, out);
    arena_release(&kept);
    return err;
}

int search_may_see(struct task *t, struct searches *s, struct search_caller who,
                   enum order_kind kind, uint64_t owner)
{
    const struct order_hit hit = {.owner = owner, .kind = (uint8_t)kind};
    struct batch *b = ARENA_NEW(task_arena(t), struct batch);
    b->hits = &hit;
    b->count = 1;
    int err = read_rows(t, s, b);
    if (err)
        return err;
    const struct post_row *post = post_of(b, owner);
    if (kind == ORDER_POST ? post && sees(who, post) : paper_of(b, owner) != NULL)
        return 0;
    return task_fail(t, ERR_NOT_FOUND, "there is no such %s",
                     kind == ORDER_POST ? "post" : "paper");
}
