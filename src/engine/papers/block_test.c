/* Blocks between a real MariaDB and a real Redis, while nothing goes wrong there. */
#include <stdlib.h>

#include "engine/papers/block_fixture.h"

#define DAY_MS (24LL * 3600 * 1000)

static void test_names(void)
{
    struct str journal, slice;
    int64_t year;
    ok(key_block_read(STR("meta:A: B:1999"), &journal, &year, &slice) && year == 1999 &&
           str_eq(journal, STR("A: B")) && !slice.p,
       "a block, of a journal with a colon");
    ok(key_block_read(STR("meta:A#1:2020#3/7"), &journal, &year, &slice) && year == 2020 &&
           str_eq(journal, STR("A#1")) && str_eq(slice, STR("3/7")),
       "a slice");
    static const char *const none[] = {"", "meta:", "meta:A", "meta::2020x", "x:A:2020", "meta:A:"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ok(!key_block_read(str_of(none[i]), &journal, &year, &slice), "no block: '%s'", none[i]);
}

static void test_list(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct str *dois = NULL;
    size_t count = 0;
    struct block_name *blocks;
    open_empty(t, &n);
    for (int i = 0; i < 5; i++)
        add_paper(t, &n,
                  (struct paper){.doi = str_printf(task_arena(t), "10.1/%d", i),
                                 .year = 2020,
                                 .bib = STR("@article{a, title = {x}}")});
    set_version(t, &n, 2020, 5, 77);
    set_version(t, &n, 2021, 9, 78);
    bool all[5] = {false};
    is_int(block_dois(t, n.blocks, nature, 2020, 0, &dois, &count), 0, "the DOIs of a block");
    for (size_t i = 0; i < count; i++)
        if (dois[i].n == 6)
            all[dois[i].p[5] - '0'] = true;
    ok(count == 5 && all[0] && all[1] && all[2] && all[3] && all[4],
       "it is built first, and has no others");
    struct str key = key_block(task_arena(t), nature, 2020);
    check(redis_call(t, n.redis, key, NULL, STR("HDEL"), key, STR("10.1/3")) == 0);
    ok(block_dois(t, n.blocks, nature, 2020, 0, &dois, &count) == 0 && count == 5,
       "one that is damaged is built again");
    ok(block_dois(t, n.blocks, nature, 1999, 0, &dois, &count) == 0 && count == 0, "no such block");
    struct str journals[450];
    for (size_t i = 0; i < 450; i++)
        journals[i] = i == 449 ? nature : str_printf(task_arena(t), "J%zu", i);
    struct blocks_choice c = {journals, 450, 2020, 2020, 0};
    ok(blocks_list(t, n.blocks, &c, &blocks, &count) == 0 && count == 1 && blocks[0].year == 2020 &&
           blocks[0].version.papers == 5 && str_eq(blocks[0].journal, nature),
       "blocks of many journals in some years");
    c.year_from = 1900;
    c.year_to = 2100;
    ok(blocks_list(t, n.blocks, &c, &blocks, &count) == 0 && count == 2, "in more years");
    close_node(t, &n);
}

static void test_papers(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    uint32_t number = add_dictionary(t, &n, 1, "article");
    char *large = memset(malloc(300000), 'x', 300000);
    for (size_t i = 0; i < 300000; i += 7)
        large[i] = (char)('a' + loop_random(task_loop(t)) % 26);
    struct str chinese =
        STR("@article{中文, title = {钙钛矿太阳能电池“稳定性”},\r\n x=\"\\\\\t\"}");
    struct str macro = STR("@string{nat = {Nature}}\n"), uses = STR("@article{m, journal = nat}");
    add_paper(t, &n, (struct paper){.doi = STR("10.1/c"), .year = 2020, .bib = chinese});
    add_paper(t, &n,
              (struct paper){.doi = STR("10.1/l"), .year = 2020, .bib = str_from(large, 300000)});
    add_paper(t, &n,
              (struct paper){.doi = STR("10.1/m"), .year = 2020, .bib = uses, .strings = macro});
    add_paper(t, &n, (struct paper){.doi = STR("10.1/other"), .year = 2021, .bib = uses});
    add_paper(t, &n,
              (struct paper){
                  .doi = STR("10.1/case"), .year = 2020, .bib = uses, .journal = STR("Nature")});
    set_version(t, &n, 2020, 3, INT64_MAX);

    struct block b;
    int64_t before = built(), misses = counted("millrace_block_misses_total"),
            packed = counted("millrace_block_papers_packed_total");
    if (!is_int(block_fetch(t, n.blocks, nature, 2020, &b), 0, "a block that was missing: %s",
                task_error(t)))
        return;
    ok(b.version.papers == 3 && b.version.digest == INT64_MAX, "its version");
    is_int((int64_t)b.count, 3, "its papers and no others");
    is_str(unpacked(t, &n, &b, STR("10.1/c")), chinese, "Chinese byte for byte");
    ok(str_eq(unpacked(t, &n, &b, STR("10.1/l")), str_from(large, 300000)), "300 KB as well");
    struct paper with = {.doi = STR("10.1/m"), .bib = uses, .strings = macro};
    is_str(unpacked(t, &n, &b, STR("10.1/m")), paper_bibtex(task_arena(t), &with), "@strings too");
    ok(str_starts(unpacked(t, &n, &b, STR("10.1/m")), macro), "in front of the entry");
    is_int(dictionary_of(t, b.papers[0].packed), number, "packed with the dictionary");
    is_int(built() - before, 1, "built once");
    is_int(counted("millrace_block_misses_total") - misses, 1, "a miss");
    is_int(counted("millrace_block_papers_packed_total") - packed, 3, "three papers packed");

    int64_t hits = counted("millrace_block_hits_total");
    is_int(block_fetch(t, n.blocks, nature, 2020, &b), 0, "again");
    ok(built() - before == 1 && counted("millrace_block_hits_total") - hits == 1, "is a hit");
    is_int(ask(t, &n, "EXISTS", block_lock(t, 2020)), 0, "the lock was given back");
    is_int((int64_t)asides(t, &n, NULL), 0, "nothing is left aside");
    free(large);
    close_node(t, &n);
}

static void test_index(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_many(t, &n, 2019);
    add_block(t, &n, 2020, 20);
    struct sql_rows r;
    check(sql_call(t, n.sql, &r,
                   "EXPLAIN SELECT DOI, Bib FROM paperinfo WHERE journal = ? AND year = ?",
                   sql_text(nature), sql_int(2020)) == 0);
    is_str(r.cells[5].s, STR("block"), "papers of a block are found by its index");
    is_str(r.cells[3].s, STR("ref"), "by both of its columns");
    struct block b;
    is_int(block_fetch(t, n.blocks, nature, 2019, &b), 0, "a block of many batches");
    is_int((int64_t)b.count, MANY_PAPERS, "is whole");
    ok(str_starts(unpacked(t, &n, &b, STR("10.5555/many.1234")),
                  STR("@article{k1234, title={1234")),
       "without a dictionary too");
    is_int(dictionary_of(t, b.papers[0].packed), 0, "none was there");
    close_node(t, &n);
}

static void test_damage(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2020, 10);
    struct block b;
    check(block_fetch(t, n.blocks, nature, 2020, &b) == 0);
    struct str key = block_key(t, 2020);
    static const char *const damage[] = {
        "a paper is missing",  "no header",    "a header of 11",      "a header without digest",
        "a header of nothing", "another type", "nothing but a header"};
    for (int i = 0; i < 7; i++) {
        int64_t before = built();
        switch (i) {
        case 0:
            say(t, &n, STR("HDEL"), key, doi_of(t, 2020, 3));
            break;
        case 1:
            say(t, &n, STR("HDEL"), key, STR(BLOCK_HEADER));
            break;
        case 2:
            say(t, &n, STR("HSET"), key, STR(BLOCK_HEADER), STR("11 42"));
            break;
        case 3:
            say(t, &n, STR("HSET"), key, STR(BLOCK_HEADER), STR("10"));
            break;
        case 4:
            say(t, &n, STR("HSET"), key, STR(BLOCK_HEADER), STR(""));
            break;
        case 5:
            say(t, &n, STR("SET"), key, STR("a string"));
            break;
        default:
            say(t, &n, STR("DEL"), key);
            say(t, &n, STR("HSET"), key, STR(BLOCK_HEADER), STR("0 0"));
        }
        int err = block_fetch(t, n.blocks, nature, 2020, &b);
        ok(err == 0 && built() - before == 1 && all_there(t, &n, &b, 2020, 10), "%s: it is rebuilt",
           damage[i]);
    }
    close_node(t, &n);
}

static void test_refresh(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2020, 10);
    struct block b;
    bool by_us = false;
    is_int(block_refresh(t, n.blocks, nature, 2020, false, &by_us), 0, "a missing block");
    ok(by_us, "is built");
    is_int(block_refresh(t, n.blocks, nature, 2020, false, &by_us), 0, "one that is up to date");
    ok(!by_us, "is not");
    is_int(block_refresh(t, n.blocks, nature, 2020, true, &by_us), 0, "unless it must");
    ok(by_us, "be built");
    set_version(t, &n, 2020, 10, 43);
    check(block_fetch(t, n.blocks, nature, 2020, &b) == 0);
    is_int(b.version.digest, 42, "readers take what is there");
    is_int(block_refresh(t, n.blocks, nature, 2020, false, NULL), 0, "one of another version");
    check(block_fetch(t, n.blocks, nature, 2020, &b) == 0);
    is_int(b.version.digest, 43, "is built anew");

    add_paper(t, &n, (struct paper){.doi = STR("10.1/late"), .year = 2020, .bib = entry_of(t, 1)});
    check(block_refresh(t, n.blocks, nature, 2020, true, NULL) == 0);
    is_int(block_fetch(t, n.blocks, nature, 2020, &b), 0, "more papers than corpus_block says");
    ok(b.count == 11 && b.version.papers == 11, "are a whole block");
    by_us = false;
    check(block_refresh(t, n.blocks, nature, 2020, false, &by_us) == 0);
    ok(by_us, "that counts as out of date");

    check(sql_call(t, n.sql, NULL, "DELETE FROM paperinfo") == 0);
    is_int(block_refresh(t, n.blocks, nature, 2020, true, NULL), ERR_NOT_FOUND, "no papers");
    is_int(ask(t, &n, "EXISTS", block_key(t, 2020)), 0, "no block");
    say(t, &n, STR("HSET"), block_key(t, 2021), STR("10.1/x"), STR("x"));
    is_int(block_refresh(t, n.blocks, nature, 2021, false, NULL), ERR_NOT_FOUND, "no row: %s",
           task_error(t));
    is_int(ask(t, &n, "EXISTS", block_key(t, 2021)), 0, "what was left is gone");
    is_int(block_fetch(t, n.blocks, nature, 2022, &b), ERR_NOT_FOUND, "no such block");
    const struct redis_reply *left;
    check(redis_call(t, n.redis, STR_NULL, &left, STR("DBSIZE")) == 0);
    is_int(left->integer, 0, "nothing stays behind");
    close_node(t, &n);
}

static void test_life(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    int64_t least = INT64_MAX, most = 0;
    struct block b;
    for (int64_t year = 2000; year < 2020; year++) {
        add_block(t, &n, year, 1);
        check(block_refresh(t, n.blocks, nature, year, false, NULL) == 0);
        int64_t left = ask(t, &n, "PTTL", block_key(t, year));
        least = left < least ? left : least;
        most = left > most ? left : most;
    }
    ok(least > DAY_MS * 62 / 10 && most <= 7 * DAY_MS, "blocks live for 6.3 to 7 days");
    ok(most - least > DAY_MS / 10, "not all of them equally long");
    say(t, &n, STR("PEXPIRE"), block_key(t, 2000), STR("1000000"));
    check(block_fetch(t, n.blocks, nature, 2000, &b) == 0);
    ok(ask(t, &n, "PTTL", block_key(t, 2000)) > 6 * DAY_MS, "use renews it");
    close_node(t, &n);
}

static void test_look(struct task *t, void *arg)
{
    (void)arg;
    enum { NAMES = 1000 };
    struct node n;
    open_empty(t, &n);
    struct block_name *names = ARENA_ARRAY(task_arena(t), struct block_name, NAMES);
    bool *fresh = ARENA_ARRAY(task_arena(t), bool, NAMES);
    for (int i = 0; i < NAMES; i++) {
        names[i] = (struct block_name){nature, 1000 + i, {1, i, 0, 0}};
        struct str header = str_printf(task_arena(t), "1 %d 0 0", i);
        if (i % 5 == 1) /* another digest */
            header = STR("1 5000");
        if (i % 5 == 2) /* not whole */
            header = str_printf(task_arena(t), "2 %d", i);
        if (i % 5 == 3) /* missing */
            continue;
        say(t, &n, STR("HSET"), block_key(t, names[i].year), STR("10.1/x"), STR("x"),
            STR(BLOCK_HEADER), header);
    }
    const char *who = "name=\"hot\"";
    int64_t *commands = metric(metrics, METRIC_COUNTER, "millrace_redis_commands_total", who, "");
    int64_t *writes = metric(metrics, METRIC_COUNTER, "millrace_redis_writes_total", who, "");
    int64_t sent = *commands, written = *writes;
    is_int(blocks_look(t, n.blocks, names, NAMES, fresh), 0, "a thousand blocks are looked at");
    ok(*commands - sent <= 2 * NAMES && *writes - written < 20, "in one batch");
    int wrong = 0;
    for (int i = 0; i < NAMES; i++)
        wrong += fresh[i] != (i % 5 == 0 || i % 5 == 4);
    is_int(wrong, 0, "each is told right");
    is_int(blocks_look(t, n.blocks, NULL, 0, NULL), 0, "none at all");
    close_node(t, &n);
}

static void test_dictionaries(struct task *t, void *arg)
{
    (void)arg;
    struct node n, later;
    open_empty(t, &n);
    open_node(t, &later);
    for (int64_t year = 2020; year < 2023; year++)
        add_block(t, &n, year, 5);
    struct block none, old, new;
    check(block_fetch(t, n.blocks, nature, 2022, &none) == 0);
    uint32_t first = add_dictionary(t, &n, 1, "article");
    check(blocks_learn(t, n.blocks) == 0 && block_fetch(t, n.blocks, nature, 2020, &old) == 0);
    uint32_t second = add_dictionary(t, &n, 2, "inproceedings");
    is_int(blocks_learn(t, n.blocks), 0, "a new dictionary is learnt");
    check(block_fetch(t, n.blocks, nature, 2021, &new) == 0);
    ok(first != second && dictionary_of(t, none.papers[0].packed) == 0 &&
           dictionary_of(t, old.papers[0].packed) == first &&
           dictionary_of(t, new.papers[0].packed) == second,
       "and used from then on");
    ok(all_there(t, &n, &none, 2022, 5) && all_there(t, &n, &old, 2020, 5) &&
           all_there(t, &n, &new, 2021, 5),
       "values of all of them can be read");
    int64_t asked = counted("millrace_sql_statements_total");
    ok(all_there(t, &later, &old, 2020, 5) && all_there(t, &later, &new, 2021, 5),
       "by a node that has just started as well");
    /* Two connections say two statements each when they are made. */
    ok(counted("millrace_sql_statements_total") - asked <= 4, "each is fetched once");

    struct str damaged = str_dup(task_arena(t), new.papers[0].packed), out;
    memset((char *)(uintptr_t)damaged.p + damaged.n - 8, 0xff, 8);
    is_int(block_unpack(t, n.blocks, task_arena(t), damaged, &out), ERR_PROTO,
           "a damaged value: %s", task_error(t));
    is_int(block_unpack(t, n.blocks, task_arena(t), STR("no frame"), &out), ERR_PROTO,
           "one that is none");
    close_node(t, &later);
    close_node(t, &n);
}

struct reader {
    struct node *node;
    struct str packed;
    int not_found;
};

static void read_often(struct task *t, void *arg)
{
    struct reader *r = arg;
    struct str out;
    for (int i = 0; i < 20; i++)
        r->not_found +=
            block_unpack(t, r->node->blocks, task_arena(t), r->packed, &out) == ERR_NOT_FOUND;
}

static void test_unknown_dictionary(struct task *t, void *arg)
{
    (void)arg;
    struct node n, later;
    open_empty(t, &n);
    open_node(t, &later);
    uint32_t number = add_dictionary(t, &n, 1, "article");
    add_block(t, &n, 2020, 1);
    struct block b;
    check(block_fetch(t, n.blocks, nature, 2020, &b) == 0);
    check(sql_call(t, n.sql, NULL, "UPDATE zstd_dictionary SET id = id + 1") == 0);
    int64_t asked = counted("millrace_sql_statements_total");
    struct reader r = {&later, b.papers[0].packed, 0};
    struct group g;
    group_init(&g, task_loop(t));
    log_setup(LOG_ERROR + 1, LOG_TEXT, "test");
    for (int i = 0; i < 50; i++)
        check(task_go(&g, "reader", read_often, &r) == 0);
    check(group_join(t, &g) == 0);
    is_int(r.not_found, 1000, "a dictionary that MySQL lacks is not found");
    ok(counted("millrace_sql_statements_total") - asked <= 3, "and not asked for each time");
    struct str out;
    check(block_unpack(t, later.blocks, task_arena(t), b.papers[0].packed, &out) == ERR_NOT_FOUND);
    ok(str_find(str_of(task_error(t)), str_printf(task_arena(t), "%u", number)) >= 0, "%s",
       task_error(t));
    is_int(blocks_learn(t, later.blocks), ERR_INVALID, "a dictionary under a wrong number");
    check(sql_call(t, n.sql, NULL, "UPDATE zstd_dictionary SET dictionary = 'x'") == 0);
    is_int(blocks_learn(t, later.blocks), ERR_INVALID, "a damaged dictionary: %s", task_error(t));
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    close_node(t, &later);
    close_node(t, &n);
}

static void test_damaged_paper(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    add_block(t, &n, 2020, 3);
    check(sql_call(t, n.sql, NULL,
                   "INSERT INTO paperinfo (DOI, Bib) VALUES"
                   " ('10.1/odd', '{\"journal\":\"NATURE\",\"year\":2020}')") == 0);
    struct block b;
    is_int(block_fetch(t, n.blocks, nature, 2020, &b), ERR_PROTO, "a row that is no paper");
    ok(str_find(str_of(task_error(t)), STR("10.1/odd")) >= 0, "is named: %s", task_error(t));
    ok(ask(t, &n, "EXISTS", block_lock(t, 2020)) == 0 && asides(t, &n, NULL) == 0 &&
           ask(t, &n, "EXISTS", block_key(t, 2020)) == 0,
       "and nothing stays behind");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    test_names();
    tap_task(test_list, NULL, true);
    tap_task(test_papers, NULL, true);
    tap_task(test_index, NULL, true);
    tap_task(test_damage, NULL, true);
    tap_task(test_refresh, NULL, true);
    tap_task(test_life, NULL, true);
    tap_task(test_look, NULL, true);
    tap_task(test_dictionaries, NULL, true);
    tap_task(test_unknown_dictionary, NULL, true);
    tap_task(test_damaged_paper, NULL, true);
    return stop_stores();
}
