/* Units of papers, from the wish to points, rows and words; whatever dies on the way. */
#include "app/embed/paper/paper_fixture.h"

static void test_index(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    struct papers_wanted out = want(t, PAPERS_ALL);
    is_int(out.units, 2, "a unit for each year");
    is_int(out.papers, 4, "with their papers");
    is_int(want(t, PAPERS_ALL).units, 0, "what waits is not queued twice");
    go(t);
    ok(comes_to_rest(t), "they are done");
    ok(all_agree(t), "each paper with a title or an abstract is indexed");
    struct papers_look look;
    is_int(papers_look(t, w->node.sql, &look), 0, "counts");
    ok(look.total == 4 && look.indexed == 3 && look.embedded == 3 && look.bare == 1 &&
           look.refused == 0 && look.units_pending == 0 && look.units_failed == 0,
       "are those of the papers");
    ok(asked <= 2, "in few calls");
    asked = 0;
    is_int(want(t, PAPERS_ALL).units, 2, "asked for again");
    ok(comes_to_rest(t), "they are done");
    is_int(asked, 0, "what is indexed as it is costs no call");
    ok(all_agree(t), "and stays");
    close_world(t);
}

/* A world whose small corpus is indexed. */
static void begin_indexed(struct task *t)
{
    begin(t);
    small_corpus(t);
    want(t, PAPERS_ALL);
    go(t);
    ok(comes_to_rest(t) && all_agree(t), "indexed");
}

static void test_change(struct task *t, void *arg)
{
    (void)arg;
    begin_indexed(t);
    is_int(want(t, PAPERS_CHANGED).units, 0, "nothing has changed");
    write_paper(t, "10.1/a", 2020, "Silver");
    withdraw(t, "10.1/b");
    write_paper(t, "10.1/d", 2020, "Gold");
    write_paper(t, "10.1/e", 2022, "Tin");
    touch(t, 2020);
    touch(t, 2022);
    size_t before = texts;
    struct papers_wanted out = want(t, PAPERS_CHANGED);
    is_int(out.units, 2, "a block that has changed, and a new one");
    ok(comes_to_rest(t), "they are done");
    ok(all_agree(t), "and as the corpus is now");
    is_int((int64_t)(texts - before), 3, "only what is new or changed was embedded");
    is_int(dropped, 1, "what has left has gone");
    withdraw(t, "10.1/c");
    touch(t, 2021);
    is_int(want(t, PAPERS_CHANGED).units, 1, "a block that is empty now");
    ok(comes_to_rest(t) && all_agree(t), "has nothing in the index");
    close_world(t);
}

static void test_move(struct task *t, void *arg)
{
    (void)arg;
    begin_indexed(t);
    for (int i = 0; i < 6; i++) {
        int64_t year = i % 2 ? 2020 : 2021;
        write_paper(t, "10.1/a", year, "Iron");
        touch(t, 2020);
        touch(t, 2021);
        want(t, PAPERS_CHANGED);
        bool agree = comes_to_rest(t) && all_agree(t);
        ok(agree, "a paper that changes its year is in the other one, %d", i);
    }
    close_world(t);
}

/* A unit is removing a paper while another one wants it. */
static void test_leaving(struct task *t, void *arg)
{
    (void)arg;
    begin_indexed(t);
    write_paper(t, "10.1/a", 2021, "Iron");
    touch(t, 2020);
    touch(t, 2021);
    sql_do(t, "UPDATE embedding_paper SET version = -1, space = 0 WHERE doi = '10.1/a'");
    sql_do(t, "UPDATE embedding_unit SET state = 'pending', version = version + 1,"
              " changed_at = UTC_TIMESTAMP(3) WHERE year = 2021");
    pause_ms(t, 300);
    is_int(sql_number(t, "SELECT year FROM embedding_paper WHERE doi = '10.1/a'"), 2020,
           "it is not taken over");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit WHERE year = 2021"
                         " AND state IN ('pending', 'working')"),
           1, "its unit waits");
    want(t, PAPERS_CHANGED);
    ok(comes_to_rest(t) && all_agree(t), "until it is removed");
    close_world(t);
}

static void test_deaths(struct task *t, void *arg)
{
    static const char *const steps[] = {"words", "put", "space", "mark", "drop", "remove", "count"};
    (void)arg;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        begin(t);
        small_corpus(t);
        want(t, PAPERS_ALL);
        go(t);
        ok(comes_to_rest(t) && all_agree(t), "indexed");
        write_paper(t, "10.1/a", 2020, "Silver");
        withdraw(t, "10.1/b");
        touch(t, 2020);
        dies_once = steps[i];
        want(t, PAPERS_CHANGED);
        bool rests = comes_to_rest(t);
        ok(rests && deaths == 1, "a node dies after: %s", steps[i]);
        ok(all_agree(t), "and all is as the corpus says");
        close_world(t);
    }
}

/* It leaves between the death of a node and the next try. */
static void leaves_then(struct task *t)
{
    withdraw(t, "10.1/a");
    touch(t, 2020);
}

static void test_left_meanwhile(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    dies_once = "put";
    while_put = leaves_then;
    want(t, PAPERS_ALL);
    go(t);
    ok(comes_to_rest(t), "points were stored, the node died, and the paper left");
    want(t, PAPERS_CHANGED);
    ok(comes_to_rest(t) && all_agree(t), "its points go");
    close_world(t);
}

/* --- services --- */

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    service = ERR_UNAVAILABLE;
    want(t, PAPERS_ALL);
    go(t);
    for (int i = 0; i < 1000 && asked < 9; i++)
        pause_ms(t, 5);
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit WHERE state IN ('pending', 'working')"
                         " AND waits LIKE '%cannot be reached%' AND waits_code = 'service_down'"),
           2, "units wait, say so, and lose no try");
    is_int(sql_number(t, "SELECT COUNT(*) FROM paper_words"), 3, "words do not wait");
    struct paper_journal *list;
    size_t count;
    is_int(papers_journals(t, w->node.sql, STR("nat"), STR(""), 10, &list, &count), 0, "journals");
    ok(count == 1 && list->units_waiting == 2 && str_eq(list->reason, STR(EMBED_SERVICE_DOWN)),
       "say it");
    service = 0;
    ok(comes_to_rest(t) && all_agree(t), "it is back: they are done");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit"
                         " WHERE COALESCE(error, waits) IS NOT NULL"),
           0, "without an error");
    close_world(t);
}

static void test_none(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    w->papers->service = false;
    want(t, PAPERS_ALL);
    go(t);
    const char *waiting = "SELECT COUNT(*) FROM embedding_unit WHERE state = 'pending'"
                          " AND waits_code = 'no_embedding_service'";
    for (int i = 0; i < 2000 && sql_number(t, waiting) < 2; i++)
        pause_ms(t, 5);
    is_int(sql_number(t, waiting), 2, "without a service units wait");
    is_int(sql_number(t, "SELECT COUNT(*) FROM paper_words"), 3, "they have their words");
    is_int(asked, 0, "nothing is asked");
    close_world(t);
}

static void test_refused(struct task *t, void *arg)
{
    struct papers_look look;
    (void)arg;
    begin_indexed(t);
    write_paper(t, "10.1/a", 2020, "To be refused");
    touch(t, 2020);
    want(t, PAPERS_CHANGED);
    ok(comes_to_rest(t) && all_agree(t), "a text that is refused has no points, the others have");
    ok(!point_of(collection_paper_owner(STR("10.1/a"))), "nor those of its former text");
    is_int(papers_look(t, w->node.sql, &look), 0, "counts");
    ok(look.refused == 1 && look.embedded == 2 && look.indexed == 3, "tell it");
    service = ERR_REFUSED;
    write_paper(t, "10.1/c", 2021, "Lead");
    touch(t, 2021);
    want(t, PAPERS_CHANGED);
    ok(comes_to_rest(t), "a service that refuses all");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit WHERE state = 'failed'"
                         " AND error_code = 'refused' AND year = 2021"),
           1, "fails the unit");
    is_int(want(t, PAPERS_CHANGED).units, 0, "which is not queued again by itself");
    service = 0;
    is_int(want(t, PAPERS_FAILED).units, 1, "but when an admin asks for it");
    ok(comes_to_rest(t) && all_agree(t), "and done");
    close_world(t);
}

/* --- nodes that stand still, and a Redis that forgets --- */

/* Another node has worked on a later version of the unit, and ended it. */
static void overtake(struct task *t)
{
    sql_do(t, "UPDATE embedding_unit SET state = 'completed', version = version + 1"
              " WHERE year = 2020");
}

static void test_overtaken(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    sql_do(t, "UPDATE corpus_block SET papers = 0 WHERE year = 2021");
    while_put = overtake;
    want(t, PAPERS_ALL);
    go(t);
    for (int i = 0; i < 1000 && asked < 2; i++)
        pause_ms(t, 5);
    is_int(asked, 2, "what was stored by a late node is embedded again");
    ok(comes_to_rest(t), "and done");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_paper WHERE space = 1"), 2, "as it is");
    close_world(t);
}

/* Another node has stored a later text of a paper, while this one stood still; this one dies before
 * it finds that. */
static void store_later(struct task *t)
{
    uint64_t owner = collection_paper_owner(STR("10.1/a"));
    drop_point(owner);
    points[point_count] = (struct point_of){.owner = owner, .space = space_now, .year = 2020};
    snprintf(points[point_count++].text, sizeof points->text, "later");
    sql_do(t, "UPDATE embedding_paper SET version = 77, space = 1 WHERE doi = '10.1/a'");
    overtake(t);
    dies_once = "put";
}

static void test_late_put(struct task *t, void *arg)
{
    uint64_t owner = collection_paper_owner(STR("10.1/a"));
    (void)arg;
    begin(t);
    small_corpus(t);
    sql_do(t, "UPDATE corpus_block SET papers = 0 WHERE year = 2021");
    while_put = store_later;
    want(t, PAPERS_ALL);
    go(t);
    for (int i = 0; i < 1000 && deaths == 0; i++)
        pause_ms(t, 5);
    is_int(deaths, 1, "a late node dies after its put");
    const struct point_of *x = point_of(owner);
    ok(x && strcmp(x->text, "later") == 0, "which has left vectors of a later text alone");
    ok(point_of(collection_paper_owner(STR("10.1/b"))) != NULL, "and stored others");
    close_world(t);
}

/* Likewise of one that had left, and is back. */
static void come_back(struct task *t)
{
    sql_do(t, "UPDATE embedding_paper SET version = 77, space = 1 WHERE doi = '10.1/b'");
    overtake(t);
    dies_once = "drop";
}

static void test_late_drop(struct task *t, void *arg)
{
    (void)arg;
    begin_indexed(t);
    withdraw(t, "10.1/b");
    touch(t, 2020);
    while_drop = come_back;
    want(t, PAPERS_CHANGED);
    for (int i = 0; i < 1000 && deaths == 0; i++)
        pause_ms(t, 5);
    is_int(deaths, 1, "a late node dies after it has removed a paper");
    ok(point_of(collection_paper_owner(STR("10.1/b"))) != NULL, "which was back: it stays");
    close_world(t);
}

static void forget(struct task *t)
{
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
}

static void test_forgotten(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    small_corpus(t);
    while_put = forget;
    want(t, PAPERS_ALL);
    go(t);
    ok(comes_to_rest(t) && all_agree(t), "a Redis that forgets the queue changes nothing");
    close_world(t);
}

/* --- roles --- */

static void test_model(struct task *t, void *arg)
{
    struct role_turn turn = {.locked = false};
    (void)arg;
    begin_indexed(t);
    is_int(papers_space_role(t, w->papers, &turn), 0, "the same model");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit WHERE state = 'pending'"), 0,
           "nothing is to be done");
    space_now = 2;
    building = true;
    is_int(papers_space_role(t, w->papers, &turn), 0, "another model");
    is_int(completed_space, 0, "is not complete yet");
    ok(comes_to_rest(t) && all_agree(t), "all are embedded again");
    is_int(papers_space_role(t, w->papers, &turn), 0, "then");
    is_int(completed_space, 2, "it is complete");
    close_world(t);
}

static void test_news(struct task *t, void *arg)
{
    struct role_turn turn = {.locked = false};
    (void)arg;
    begin(t);
    small_corpus(t);
    is_int(papers_news_role(t, w->papers, &turn), 0, "nothing is indexed");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit"), 0, "and nothing becomes so");
    want(t, PAPERS_ALL);
    go(t);
    ok(comes_to_rest(t) && all_agree(t), "indexed");
    sql_do(t, "INSERT INTO corpus_load (load_no, begun_at) VALUES (1, UTC_TIMESTAMP(3))");
    write_paper(t, "10.1/a", 2020, "Silver");
    touch(t, 2020);
    is_int(papers_news_role(t, w->papers, &turn), 0, "a load has begun");
    is_int(sql_number(t, "SELECT COUNT(*) FROM embedding_unit WHERE state <> 'completed'"), 0,
           "it is waited for");
    sql_do(t, "UPDATE corpus_load SET ended_at = UTC_TIMESTAMP(3)");
    is_int(papers_news_role(t, w->papers, &turn), 0, "it has ended");
    ok(comes_to_rest(t) && all_agree(t), "what it has changed is indexed");
    close_world(t);
}

int main(void)
{
    start_stores();
    tap_task(test_index, NULL, true);
    tap_task(test_change, NULL, true);
    tap_task(test_move, NULL, true);
    tap_task(test_leaving, NULL, true);
    tap_task(test_deaths, NULL, true);
    tap_task(test_left_meanwhile, NULL, true);
    tap_task(test_away, NULL, true);
    tap_task(test_none, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_overtaken, NULL, true);
    tap_task(test_late_put, NULL, true);
    tap_task(test_late_drop, NULL, true);
    tap_task(test_forgotten, NULL, true);
    tap_task(test_model, NULL, true);
    tap_task(test_news, NULL, true);
    return stop_stores();
}
