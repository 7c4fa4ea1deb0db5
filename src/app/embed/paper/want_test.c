/* Which units are queued, large blocks, and what searches are told of papers. */
#include "app/embed/paper/paper_fixture.h"
#include "engine/people/admin_log.h"

#define MANY 2500

static void test_slices(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    many(t, 2020, MANY);
    struct papers_wanted out = want(t, PAPERS_ALL);
    is_int(out.units, 3, "a large year has several units");
    is_int(out.papers, MANY, "with all of its papers");
    thinks_ms = 50;
    go(t);
    ok(comes_to_rest(t), "they are done");
    ok(all_agree(t), "each paper is indexed");
    is_int((int64_t)texts, MANY, "once");
    ok(asked <= MANY / BATCH + 5, "in few calls");
    ok(texts_most <= PAPER_PUT, "none of which is too large");
    sql_do(t, "UPDATE corpus_block SET papers = 7000, digest = digest + 1");
    sql_do(t, "INSERT INTO corpus_block (journal, year, papers, digest) VALUES"
              " ('NATURE', 2019, 2000, 1)");
    out = want(t, PAPERS_CHANGED);
    is_int(out.units, 9, "a year that has grown is cut anew, a new one is added");
    is_int(out.papers, 9000, "with all of their papers");
    is_int(sql_number(t, "SELECT COUNT(DISTINCT id) FROM embedding_unit"), 9, "and no others");
    sql_do(t, "DELETE FROM corpus_block WHERE year = 2019");
    touch(t, 2020);
    ok(comes_to_rest(t), "they are done");
    is_int((int64_t)texts, MANY, "without a call: papers are as they were");
    ok(all_agree(t), "and stay so");
    close_world(t);
}

static void test_want(struct task *t, void *arg)
{
    struct papers_wanted out;
    struct str names[] = {STR(JOURNAL), STR("NO SUCH")};
    struct admin_deed by = {.action = "paper.embed", ADMIN_OPERATOR};
    struct papers_wish wish = {.which = PAPERS_JOURNALS, .journals = names, .count = 2, .by = &by};
    (void)arg;
    begin(t);
    sql_do(t, "DELETE FROM admin_audit");
    small_corpus(t);
    is_int(papers_want(t, w->node.sql, &wish, &out), ERR_NOT_FOUND, "a journal without papers");
    is_str(out.unknown, STR("NO SUCH"), "is named");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit"), 0, "and nothing is queued");
    is_int(sql_number(t, "SELECT COUNT(*) FROM admin_audit"), 0, "or noted");
    wish.count = 1;
    is_int(papers_want(t, w->node.sql, &wish, &out), 0, "one with papers");
    is_int(out.units, 2, "is queued");
    is_int(sql_number(t, "SELECT COUNT(*) FROM admin_audit WHERE action = 'paper.embed'"
                         " AND JSON_UNQUOTE(JSON_EXTRACT(details, '$.target')) = 'NATURE'"
                         " AND (JSON_EXTRACT(details, '$.after.units') = 2"
                         " OR JSON_UNQUOTE(JSON_EXTRACT(details, '$.outcome')) = 'begun')"),
           2, "and noted, before and after");
    is_int(want(t, PAPERS_CHANGED).units, 0, "what waits is as it will be");
    sql_do(t, "UPDATE embedding_unit SET state = 'working'");
    is_int(want(t, PAPERS_ALL).units, 0, "so is what is in work");
    touch(t, 2020);
    is_int(want(t, PAPERS_CHANGED).units, 1, "unless its papers have changed");
    is_int(sql_number(t, "SELECT version FROM embedding_unit WHERE year = 2020"), 2,
           "then it is worked on again");
    close_world(t);
}

static void test_rows(struct task *t, void *arg)
{
    struct paper_row rows[4];
    size_t found;
    const uint64_t owners[] = {
        collection_paper_owner(STR("10.1/c")), collection_paper_owner(STR("10.1/none")),
        collection_paper_owner(STR("10.1/b")), collection_paper_owner(STR("10.1/a"))};
    (void)arg;
    begin(t);
    small_corpus(t);
    want(t, PAPERS_ALL);
    go(t);
    ok(comes_to_rest(t), "indexed");
    is_int(paper_rows(t, &w->node, owners, 4, rows, &found), 0, "papers by their owners");
    is_int((int64_t)found, 3, "those that are known");
    ok(rows[0].owner == owners[0] && rows[1].owner == owners[2] && rows[2].owner == owners[3],
       "in their order");
    is_str(rows[0].title, STR("Zinc"), "with the title");
    is_str(rows[0].text, STR("About Zinc."), "the abstract");
    is_str(rows[0].doi, STR("10.1/c"), "the DOI");
    ok(str_eq(rows[0].journal, STR(JOURNAL)) && rows[0].year == 2021, "journal and year");
    withdraw(t, "10.1/b");
    touch(t, 2020);
    check(block_refresh(t, w->node.blocks, STR(JOURNAL), 2020, false, NULL) == 0);
    is_int(paper_rows(t, &w->node, owners, 4, rows, &found), 0, "one has left");
    ok(found == 2 && rows[1].owner == owners[3], "and is left out");
    is_int(paper_rows(t, &w->node, owners, 0, rows, &found), 0, "none");
    is_int((int64_t)found, 0, "are found");
    close_world(t);
}

static void test_journals(struct task *t, void *arg)
{
    struct paper_journal *list;
    size_t count;
    (void)arg;
    begin(t);
    small_corpus(t);
    sql_do(t, "INSERT INTO corpus_block (journal, year, papers, digest) VALUES ('A_B', 2020, 5, 1),"
              " ('AXB', 2020, 6, 1), ('AXB', 2021, 7, 1), ('EMPTY', 2020, 0, 1)");
    is_int(papers_journals(t, w->node.sql, STR(""), STR(""), 10, &list, &count), 0, "journals");
    ok(count == 3 && str_eq(list[0].journal, STR("AXB")) && list[0].papers == 13 &&
           !list[0].changed && str_eq(list[2].journal, STR(JOURNAL)),
       "with papers, by their names");
    is_int(papers_journals(t, w->node.sql, STR("a_b"), STR(""), 10, &list, &count), 0, "some");
    ok(count == 1 && list[0].papers == 5, "by a part of the name as it stands");
    is_int(papers_journals(t, w->node.sql, STR(""), STR("AXB"), 1, &list, &count), 0, "a page");
    ok(count == 1 && str_eq(list[0].journal, STR("A_B")), "goes on behind the one before");
    want(t, PAPERS_ALL);
    sql_do(t, "UPDATE embedding_unit SET state = 'completed', digest = wanted, done = 3,"
              " embedded = 2, refused = 1 WHERE journal = 'NATURE' AND year = 2020");
    sql_do(t, "UPDATE embedding_unit SET state = 'failed', error = 'why', error_code = 'other'"
              " WHERE journal = 'NATURE' AND year = 2021");
    is_int(papers_journals(t, w->node.sql, STR(JOURNAL), STR(""), 9, &list, &count), 0,
           "its units");
    ok(count == 1 && list->papers == 4 && list->indexed == 3 && list->embedded == 2 &&
           list->refused == 1 && list->units_failed == 1 && list->units_waiting == 0 &&
           str_eq(list->error, STR("why")) && str_eq(list->reason, STR("other")) && list->changed,
       "are told");
    close_world(t);
}

int main(void)
{
    start_stores();
    tap_task(test_want, NULL, true);
    tap_task(test_rows, NULL, true);
    tap_task(test_journals, NULL, true);
    tap_task(test_slices, NULL, true);
    return stop_stores();
}
