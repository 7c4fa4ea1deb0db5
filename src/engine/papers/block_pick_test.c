/* Papers picked out of many blocks. */
#include "engine/papers/block_fixture.h"

static struct block_pick want(struct task *t, int64_t year, int64_t i)
{
    return (struct block_pick){.journal = nature, .year = year, .doi = doi_of(t, year, i)};
}

static size_t found(struct task *t, const struct block_pick *wants, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (int64_t k = 0; k < 10; k++)
            n += wants[i].bibtex.p && str_eq(wants[i].doi, doi_of(t, wants[i].year, k)) &&
                 str_eq(wants[i].bibtex, entry_of(t, k));
    return n;
}

static void test_pick(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_dictionary(t, &n, 1, "article");
    for (int64_t year = 2001; year <= 2003; year++)
        add_block(t, &n, year, 10);
    struct block_pick wants[9];
    for (int i = 0; i < 9; i++) /* turn by turn */
        wants[i] = want(t, 2001 + i % 3, i);
    is_int(blocks_pick(t, n.blocks, wants, 9), 0, "papers of three blocks");
    ok(found(t, wants, 9) == 9 && built() == 3, "which are built");
    say(t, &n, STR("PERSIST"), block_key(t, 2001));
    say(t, &n, STR("DEL"), block_key(t, 2002));
    int64_t commands = counted("millrace_sql_statements_total");
    is_int(blocks_pick(t, n.blocks, wants, 1), 0, "one that Redis has");
    ok(found(t, wants, 1) == 1 && built() == 3 &&
           counted("millrace_sql_statements_total") == commands,
       "MySQL is not asked");
    ok(ask(t, &n, "PTTL", block_key(t, 2001)) > BLOCK_TTL_MS * 8 / 10, "its life begins anew");
    is_int(blocks_pick(t, n.blocks, wants, 9), 0, "one block has expired");
    ok(found(t, wants, 9) == 9 && built() == 4, "it alone is built again");
    say(t, &n, STR("HDEL"), block_key(t, 2003), doi_of(t, 2003, 9));
    is_int(blocks_pick(t, n.blocks, wants, 9), 0, "one block is not whole");
    ok(found(t, wants, 9) == 9 && built() == 5, "it alone is built again");
    close_node(t, &n);
}

static void test_absent(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2001, 10);
    struct block_pick wants[] = {want(t, 1950, 1),
                                 want(t, 2001, 99),
                                 want(t, 2001, 3),
                                 {.journal = STR("NATURE 2"), .year = 2001, .doi = STR("x")},
                                 {.journal = STR(""), .year = -1, .doi = STR("")}};
    wants[0].bibtex = STR("left over");
    is_int(blocks_pick(t, n.blocks, wants, 5), 0, "papers that are none");
    ok(!wants[0].bibtex.p && !wants[1].bibtex.p && !wants[3].bibtex.p && !wants[4].bibtex.p &&
           found(t, wants + 2, 1) == 1,
       "are absent, the others are there");
    is_int(blocks_pick(t, n.blocks, wants, 0), 0, "none at all");
    struct block_pick *many = ARENA_ARRAY(task_arena(t), struct block_pick, 5000);
    for (int i = 0; i < 5000; i++)
        many[i] = want(t, 2001, i % 10);
    ok(blocks_pick(t, n.blocks, many, 5000) == 0 && found(t, many, 5000) == 5000,
       "thousands, one paper many times");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_pick, NULL, true);
    tap_task(test_absent, NULL, true);
    return stop_stores();
}
