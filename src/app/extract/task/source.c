#include "app/extract/document.h"
#include "app/extract/task/extract_private.h"
#include "app/extract/together.h"
#include "corpus/bibtex.h"
#include "corpus/paper.h"
#include "engine/papers/block.h"
#include "engine/store/keys.h"

#define PAPERS_AT_ONCE 128

struct shown {
    struct extract *extract;
    struct arena *arena;
    struct str bibtex, title, abstract;
    int err;
};

static void read_shown(void *arg)
{
    struct shown *s = arg;
    s->err = paper_read_shown(s->arena, s->extract->reader, s->bibtex, &s->title, &s->abstract);
    s->title = str_dup(s->arena, str_trim(s->title)); /* the reader is used by others soon */
    s->abstract = str_dup(s->arena, str_trim(s->abstract));
}

/* --- papers, many by one call --- */

struct picking {
    struct gather_item item;
    struct block_pick pick; /* what comes out is in the arena of the task that waits */
};

static int pick_some(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct blocks *b = ((struct extract *)arg)->node->blocks;
    struct block_pick *picks = ARENA_ARRAY(task_arena(t), struct block_pick, count);
    for (size_t i = 0; i < count; i++)
        picks[i] = ((struct picking *)items[i])->pick;
    int err = blocks_pick_packed(t, b, picks, count);
    for (size_t i = 0; !err && i < count; i++)
        if (picks[i].packed.p)
            err = block_unpack(t, b, task_arena(items[i]->task), picks[i].packed,
                               &((struct picking *)items[i])->pick.bibtex);
    return err;
}

static int pick_all(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    return together(t, arg, items, count, pick_some);
}

void extract_source_init(struct extract *x)
{
    gather_init(&x->papers, &(struct gather_options){.group = x->node->group,
                                                     .name = "extract papers",
                                                     .fn = pick_all,
                                                     .arg = x,
                                                     .items_max = PAPERS_AT_ONCE,
                                                     .clerks_max = 1});
}

/* --- the text --- */

static int wrong(struct task *t, struct extract_source *s, const char *reason, int err,
                 const char *why)
{
    s->reason = reason;
    return task_fail(t, err, "%s", why);
}

/* Title, an empty line, abstract: that is what quotes are looked for in. */
static int read_paper(struct task *t, struct extract *x, struct extract_source *s)
{
    struct str slice;
    struct picking want = {.pick = {.doi = s->doi}};
    struct shown p = {.extract = x, .arena = task_arena(t)};
    if (!key_block_read(s->block_key, &want.pick.journal, &want.pick.year, &slice))
        return task_fail(t, ERR_INTERNAL, "%.*s is no block", STR_ARG(s->block_key));
    int err = gather_do(t, &x->papers, &want.item, 0);
    if (err)
        return err;
    if (!want.pick.bibtex.p)
        return wrong(t, s, EXTRACT_PAPER_GONE, ERR_NOT_FOUND,
                     "the paper is not in the corpus any more");
    p.bibtex = want.pick.bibtex;
    task_aside(t, read_shown, &p);
    if (p.err)
        return wrong(t, s, EXTRACT_PAPER_DAMAGED, ERR_INVALID, "the paper cannot be read");
    s->title = p.title.n ? p.title : STR_NULL;
    s->text = p.title.n && p.abstract.n ? STR_JOIN(p.arena, p.title, STR("\n\n"), p.abstract)
              : p.title.n               ? p.title
                                        : p.abstract;
    return s->text.n
               ? 0
               : wrong(t, s, PDF_NO_TEXT, ERR_INVALID, "the paper has neither title nor abstract");
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

int extract_source_read(struct task *t, struct extract *x, int64_t uid, struct extract_source *s)
{
    if (!s->document_id.p)
        return read_paper(t, x, s);
    int err = document_text(t, x->node, uid, s->document_id, &s->text, &s->reason);
    if (!err && str_trim_if(s->text, is_blank).n == 0)
        err = wrong(t, s, PDF_NO_TEXT, ERR_INVALID, "the document has no text");
    if (err == ERR_NOT_FOUND)
        s->reason = EXTRACT_DOCUMENT_GONE;
    return err;
}
