/* Papers that were found: what their owners stand for is in embedding_paper, what they say in
 * blocks. */
#include "app/embed/paper/papers_private.h"
#include "engine/papers/block.h"
#include "engine/search/indexed.h"

/* A paper that has left the corpus since it was indexed is not in its block any more. */
static int read_texts(struct task *t, const struct node *n, struct paper_row *rows, size_t *found)
{
    size_t count = *found, left = 0;
    struct block_pick *wants = ARENA_ARRAY(task_arena(t), struct block_pick, count + 1);
    struct paper_text *texts = ARENA_ARRAY(task_arena(t), struct paper_text, count + 1);
    *found = 0;
    for (size_t i = 0; i < count; i++)
        wants[i] = (struct block_pick){
            .journal = rows[i].journal, .year = rows[i].year, .doi = rows[i].doi};
    int err = count ? blocks_pick(t, n->blocks, wants, count) : 0;
    for (size_t i = 0; i < count && !err; i++)
        texts[i] = (struct paper_text){.bibtex = wants[i].bibtex};
    if (!err)
        err = paper_read_texts(t, texts, count);
    for (size_t i = 0; i < count && !err; i++) {
        if (!wants[i].bibtex.p)
            continue;
        rows[left] = rows[i];
        rows[left].title = texts[i].title;
        rows[left++].text = texts[i].text;
    }
    *found = err ? 0 : left;
    return err;
}

int paper_rows(struct task *t, const struct node *n, const uint64_t *owners, size_t count,
               struct paper_row *rows, size_t *found)
{
    struct indexed_paper *known = ARENA_ARRAY(task_arena(t), struct indexed_paper, count + 1);
    *found = 0;
    check(count <= PAPER_ROWS_MAX);
    int err = indexed_find(t, n->sql, owners, count, known, found);
    for (size_t i = 0; i < *found && !err; i++)
        rows[i] = (struct paper_row){.owner = known[i].owner,
                                     .doi = known[i].doi,
                                     .journal = known[i].journal,
                                     .year = known[i].year};
    return err ? err : read_texts(t, n, rows, found);
}
