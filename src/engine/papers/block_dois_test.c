/* Which papers a block had at the end of each load, while loads go on and Redis has copies of any
 * age: against a model that remembers all of it. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/papers/block_fixture.h"

#define PAPERS 12
#define LOADS  40
#define YEAR   2020

struct model {
    struct node *node;
    uint32_t now;
    uint32_t at[LOADS + 1]; /* the papers at the end of each load, as bits */
    bool ended[LOADS + 1];
    int64_t load;
    struct str old; /* a copy of the block as Redis once had it */
};

static uint64_t any(struct task *t, uint64_t below)
{
    return loop_random(task_loop(t)) % below;
}

#define run_sql(t, m, ...) check(sql_call((t), (m)->node->sql, NULL, __VA_ARGS__) == 0)

static void begin_load(struct task *t, struct model *m)
{
    m->load++;
    run_sql(t, m, "INSERT INTO corpus_load (load_no, begun_at) VALUES (?, UTC_TIMESTAMP(3))",
            sql_int(m->load));
}

static void end_load(struct task *t, struct model *m)
{
    run_sql(t, m, "UPDATE corpus_load SET ended_at = UTC_TIMESTAMP(3) WHERE load_no = ?",
            sql_int(m->load));
    m->at[m->load] = m->now;
    m->ended[m->load] = true;
}

/* As db init does it: a paper comes or leaves. */
static void toggle(struct task *t, struct model *m, int64_t i)
{
    uint32_t bit = 1u << i;
    bool leaves = m->now & bit;
    struct str doi = doi_of(t, YEAR, i);
    if (leaves)
        run_sql(t, m, "DELETE FROM paperinfo WHERE DOI = ?", sql_text(doi));
    else
        add_paper(t, m->node, (struct paper){.doi = doi, .year = YEAR, .bib = entry_of(t, i)});
    m->now ^= bit;
    run_sql(t, m,
            "INSERT INTO corpus_block (journal, year, papers, digest, load_no, since)"
            " VALUES (?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE papers = VALUES(papers),"
            " digest = VALUES(digest), load_no = VALUES(load_no)",
            sql_text(nature), sql_int(YEAR), sql_int(__builtin_popcount(m->now)), sql_int(m->now),
            sql_int(m->load), sql_int(m->load));
    if (m->load > 1)
        run_sql(t, m,
                "INSERT INTO corpus_change VALUES (?, ?, ?, ?, ?, ?)"
                " ON DUPLICATE KEY UPDATE net = net + VALUES(net)",
                sql_text(nature), sql_int(YEAR), sql_int(m->load), sql_text(doi),
                sql_text(leaves ? STR("withdrawn") : STR("added")), sql_int(leaves ? -1 : 1));
}

static uint32_t dois_at(struct task *t, struct model *m, int64_t load)
{
    struct str *dois;
    size_t count;
    uint32_t bits = 0;
    int err = block_dois(t, m->node->blocks, nature, YEAR, load, &dois, &count);
    if (err)
        printf("# %s: %s\n", err_name(err), task_error(t));
    for (size_t i = 0; !err && i < count; i++)
        for (int64_t k = 0; k < PAPERS; k++)
            if (str_eq(dois[i], doi_of(t, YEAR, k)))
                bits += 1u << k; /* a paper that is there twice is seen, too */
    return err ? UINT32_MAX : bits;
}

static int64_t papers_at(struct task *t, struct model *m, int64_t load)
{
    struct blocks_choice c = {&nature, 1, YEAR, YEAR, load};
    struct block_name *names;
    size_t count;
    check(blocks_list(t, m->node->blocks, &c, &names, &count) == 0 && count <= 1);
    return count ? names[0].version.papers : 0;
}

/* What may have happened to the copy in Redis. */
static void shake(struct task *t, struct model *m)
{
    struct redis *r = m->node->redis;
    struct str key = block_key(t, YEAR);
    const struct redis_reply *reply;
    switch (any(t, 8)) {
    case 0: /* evicted */
        check(redis_call(t, r, key, NULL, STR("DEL"), key) == 0);
        break;
    case 1: /* warmed */
        if (block_refresh(t, m->node->blocks, nature, YEAR, any(t, 2), NULL))
            check(m->now == 0);
        break;
    case 2: /* built before loads were numbered, or by another version */
        check(redis_call(t, r, key, &reply, STR("HGET"), key, STR(BLOCK_HEADER)) == 0);
        if (reply->type == REDIS_STRING) {
            struct str rest = reply->str, papers = str_cut(&rest, ' ');
            struct str old = str_printf(task_arena(t), "%.*s %.*s", STR_ARG(papers),
                                        STR_ARG(str_cut(&rest, ' ')));
            check(redis_call(t, r, key, NULL, STR("HSET"), key, STR(BLOCK_HEADER), old) == 0);
        }
        break;
    case 3: /* Redis came back older */
        if (m->old.p)
            check(redis_call(t, r, key, NULL, STR("RESTORE"), key, STR("0"), m->old,
                             STR("REPLACE")) == 0);
        break;
    case 4:
        check(redis_call(t, r, key, &reply, STR("DUMP"), key) == 0);
        free((char *)m->old.p);
        m->old = STR_NULL;
        if (reply->type == REDIS_STRING)
            m->old =
                str_from(memcpy(malloc(reply->str.n), reply->str.p, reply->str.n), reply->str.n);
        break;
    default:
        break;
    }
}

static bool compare(struct task *t, struct model *m)
{
    bool right = true;
    for (int64_t load = m->load; load >= 1; load--) {
        if (!m->ended[load] || any(t, 3) == 0)
            continue;
        struct task_scope s = task_scope(t);
        uint32_t got = dois_at(t, m, load);
        int64_t papers = papers_at(t, m, load);
        if (got != m->at[load] || papers != __builtin_popcount(m->at[load])) {
            printf("# load %lld, seen during load %lld: got %x and %lld papers, want %x\n",
                   (long long)load, (long long)m->load, got, (long long)papers, m->at[load]);
            right = false;
        }
        task_scope_end(t, s);
        shake(t, m);
    }
    return right;
}

static void test_history(struct task *t, void *arg)
{
    const int64_t *seed = arg;
    struct node n;
    open_empty(t, &n);
    struct model m = {.node = &n};
    begin_load(t, &m);
    for (int64_t i = 0; i < PAPERS / 2; i++)
        toggle(t, &m, i);
    end_load(t, &m);
    bool right = true;
    while (m.load < LOADS && right) {
        struct task_scope s = task_scope(t);
        begin_load(t, &m);
        bool empties = any(t, 8) == 0;
        for (uint64_t i = any(t, 6); i > 0 && right; i--) {
            toggle(t, &m, (int64_t)any(t, PAPERS));
            shake(t, &m);
            right = any(t, 3) || compare(t, &m);
        }
        for (int64_t i = 0; i < PAPERS && empties; i++)
            if (m.now & 1u << i)
                toggle(t, &m, i);
        if (any(t, 5)) /* else it was interrupted */
            end_load(t, &m);
        shake(t, &m);
        right = right && compare(t, &m);
        task_scope_end(t, s);
    }
    ok(right, "every load is as it was (%lld)", (long long)*seed);
    free((char *)m.old.p);
    close_node(t, &n);
}

static int64_t statements(void)
{
    return counted("millrace_sql_statements_total");
}

/* A run costs MySQL nothing while nothing has changed. */
static void test_cost(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct model m = {.node = &n};
    begin_load(t, &m);
    toggle(t, &m, 0);
    end_load(t, &m);
    is_int(dois_at(t, &m, 1), 1, "the block is built");
    int64_t before = statements();
    is_int(dois_at(t, &m, 1), 1, "and read again");
    is_int(statements() - before, 0, "without MySQL");
    begin_load(t, &m); /* of other blocks */
    end_load(t, &m);
    before = statements();
    is_int(dois_at(t, &m, 1), 1, "a later load has not changed it");
    is_int(statements() - before, 0, "which costs nothing");
    is_int(dois_at(t, &m, 2), 1, "a run that is frozen at the later one");
    is_int(statements() - before, 1, "asks once");
    is_int(dois_at(t, &m, 2), 1, "and then");
    is_int(statements() - before, 1, "not again");
    begin_load(t, &m);
    end_load(t, &m);
    struct block_name name = {nature, YEAR, {1, 1, 3, 1}};
    bool fresh = false;
    ok(blocks_look(t, n.blocks, &name, 1, &fresh) == 0 && fresh, "a warm-up finds it fresh");
    before = statements();
    is_int(dois_at(t, &m, 3), 1, "and after that");
    is_int(statements() - before, 0, "the newest load costs nothing either");
    begin_load(t, &m);
    toggle(t, &m, 1);
    before = statements();
    is_int(dois_at(t, &m, 3), 1, "the copy is from before a load that goes on");
    is_int(statements() - before, 0, "and is taken as it is");
    check(block_refresh(t, n.blocks, nature, YEAR, false, NULL) == 0);
    before = statements();
    is_int(dois_at(t, &m, 3), 1, "or it is newer");
    is_int(statements() - before, 1, "then the changes are asked for");
    close_node(t, &n);
}

/* A paper that is not in its block, or in a copy that is older. */
static void test_elsewhere(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2001, 3);
    struct block_pick want = {.journal = nature, .year = 2001, .doi = STR("10.1/new")};
    ok(blocks_pick(t, n.blocks, &want, 1) == 0 && !want.bibtex.p, "it is not there");
    add_paper(t, &n, (struct paper){.doi = want.doi, .year = 1999, .bib = entry_of(t, 77)});
    ok(blocks_pick(t, n.blocks, &want, 1) == 0, "now it is, in another block");
    is_str(want.bibtex, entry_of(t, 77), "and is found by its DOI");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    for (int64_t i = 0; i < 6; i++)
        tap_task(test_history, &i, true);
    tap_task(test_cost, NULL, true);
    tap_task(test_elsewhere, NULL, true);
    return stop_stores();
}
