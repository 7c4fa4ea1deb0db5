/* Texts that are found by their words, on a real MariaDB. */
#include "engine/search/words.h"

#include "base/log.h"
#include "base/map.h"
#include "engine/search/words_private.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

#define MANY 3000

static struct mariadb server;
static struct words *words;

static struct sql_pool *pool_of(struct task *t)
{
    return sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
}

struct change {
    enum collection which;
    const struct words_text *texts;
    const uint64_t *gone;
    size_t count;
};

static int change(struct task *t, struct sql *c, void *arg)
{
    const struct change *x = arg;
    return x->texts ? words_put(t, c, x->which, x->texts, x->count)
                    : words_drop(t, c, x->which, x->gone, x->count);
}

static int put(struct task *t, struct sql_pool *p, const struct words_text *texts, size_t count)
{
    return sql_tx(t, p, change, &(struct change){COLLECTION_PAPERS, texts, NULL, count});
}

/* "3 1 2": the owners that are found. */
static struct str found(struct task *t, const char *question, const struct point_filter *f)
{
    struct words_hit *hits;
    size_t count;
    int err = words_search(t, words, COLLECTION_PAPERS, str_of(question), f, 50, &hits, &count);
    if (err)
        return str_printf(task_arena(t), "%s: %s", err_name(err), task_error(t));
    struct str s = STR("");
    for (size_t i = 0; i < count; i++)
        s = STR_JOIN(task_arena(t), s, i ? STR(" ") : STR(""),
                     str_int(task_arena(t), (int64_t)hits[i].owner));
    return s;
}

static const struct words_text papers[] = {
    {1,
     {0, 10, 2020},
     STR("Photocatalytic water splitting on TiO₂"),
     STR("Hydrogen is produced from water by light. Water splitting needs a catalyst.")},
    {2,
     {0, 11, 2021},
     STR("Batteries"),
     STR("Lithium metal anodes. Water must be kept out of the cell.")},
    {3, {0, 12, 2022}, STR("光催化分解水制氢"), STR("二氧化钛在光照下分解水，产生氢气。")},
    {4, {1, 10, 2023}, STR("Hidden batteries"), STR("Anodes of lithium, in a hidden post.")},
    {5,
     {0, 13, 0},
     STR("Müller's café of anodes"),
     STR("What the WHO und www.example.com say of pH.")},
};

static void test_found(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    struct schema_report report;
    ok(schema_migrate(t, p, &report) == 0, "the tables are made: %s", task_error(t));
    words = words_new(p);
    is_str(found(t, "water", NULL), STR(""), "an empty table");
    words_free(words);
    words = words_new(p);
    is_int(put(t, p, papers, 5), 0, "five texts");
    is_str(found(t, "lithium battery", NULL), STR("2 4"), "singular and plural");
    is_str(found(t, "anode", NULL), STR("5 2 4"), "those with it in the title come first");
    is_str(found(t, "WATER-splitting", NULL), STR("1 2"), "all words first, then any");
    is_str(found(t, "water", NULL), STR("1 2"), "one word");
    is_str(found(t, "分解水", NULL), STR("3"), "Chinese");
    is_str(found(t, "光催化水分解", NULL), STR("3"), "in another order: some of its pairs");
    is_str(found(t, "TiO2", NULL), STR("1"), "written otherwise");
    is_str(found(t, "muller CAFE", NULL), STR("5"), "without accents");
    is_str(found(t, "who", NULL), STR("5"), "what InnoDB leaves out by default");
    is_str(found(t, "pH", NULL), STR("5"), "what is too short for it");
    is_str(found(t, "www.example.com", NULL), STR("5"), "an address");
    is_str(found(t, "what is the", NULL), STR(""), "a question without words");
    is_str(found(t, "", NULL), STR(""), "none");
    is_str(found(t, "+water -splitting* \"(~>@4) ' OR 1=1 --", NULL), STR("1 2"),
           "nothing of a question is an operator");
    is_str(found(t, "zebra", NULL), STR(""), "what no text has");
    is_str(found(t, "zebra lithium", NULL), STR("2 4"), "or one word of two");
    sql_pool_free(p);
}

static void test_filters(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    words_free(words);
    words = words_new(p);
    const uint64_t four[] = {4}, some[] = {1, 2};
    const uint16_t journals[] = {12, 10};
    struct point_filter f = {.without = POINT_HIDDEN};
    is_str(found(t, "lithium", &f), STR("2"), "without hidden ones");
    f = (struct point_filter){.without = POINT_HIDDEN, .unless = four, .unless_count = 1};
    is_str(found(t, "lithium", &f), STR("2 4"), "but for one's own");
    f = (struct point_filter){.journals = journals, .journal_count = 2};
    is_str(found(t, "lithium water", &f), STR("1 4"), "of journals");
    f = (struct point_filter){.year_from = 2021};
    is_str(found(t, "water lithium", &f), STR("2 4"), "from a year on");
    f = (struct point_filter){.year_from = 2020, .year_to = 2022};
    is_str(found(t, "water lithium", &f), STR("2 1"), "of years");
    f = (struct point_filter){.owners = some, .owner_count = 2};
    is_str(found(t, "lithium water", &f), STR("2 1"), "of owners");
    f = (struct point_filter){.owners = some};
    is_str(found(t, "lithium water", &f), STR(""), "of none");

    static uint64_t many[WORDS_LIST_MAX + 100];
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        many[i] = 100000 - i;
    many[7] = 4;
    f = (struct point_filter){
        .without = POINT_HIDDEN, .unless = many, .unless_count = sizeof many / sizeof *many};
    is_str(found(t, "lithium", &f), STR("2 4"), "a list that is too long for a statement");
    many[7] = 9;
    is_str(found(t, "lithium", &f), STR("2"), "in which it is not");
    f = (struct point_filter){.owners = many, .owner_count = sizeof many / sizeof *many};
    many[8] = 2;
    is_str(found(t, "lithium", &f), STR("2"), "of owners");
    sql_pool_free(p);
}

static int64_t number(struct task *t, struct sql_pool *p, const char *query)
{
    struct sql_rows r;
    check(sql_call(t, p, &r, query) == 0);
    return r.count ? sql_row(&r, 0)[0].i : -1;
}

static void test_changes(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    words_free(words);
    words = words_new(p);
    check(sql_call(t, p, NULL, "SET GLOBAL innodb_ft_aux_table = 'test/paper_words'") == 0);
    static const char deleted[] = "SELECT COUNT(*) FROM information_schema.INNODB_FT_DELETED";
    is_int(number(t, p, deleted), 0, "nothing was removed from the index");
    struct words_text x = papers[0];
    x.tags = (struct point_tags){POINT_HIDDEN, 77, 1999};
    is_int(put(t, p, &x, 1), 0, "other tags");
    is_int(number(t, p,
                  "SELECT COUNT(*) FROM paper_words WHERE owner = 1 AND journal = 77"
                  " AND year = 1999 AND flags = 1"),
           1, "are kept");
    is_int(number(t, p, deleted), 0, "and cost the index nothing");
    is_str(found(t, "splitting", NULL), STR("1"), "it is found as before");
    x.text = STR("Nothing but zebras.");
    is_int(put(t, p, &x, 1), 0, "other words");
    is_str(found(t, "zebra", NULL), STR("1"), "are found");
    is_str(found(t, "hydrogen", NULL), STR(""), "the former ones are not");
    is_int(sql_tx(t, p, change, &(struct change){COLLECTION_PAPERS, NULL, (uint64_t[]){1, 99}, 2}),
           0, "it goes, and one that was not there");
    is_str(found(t, "zebra", NULL), STR(""), "it is found no more");
    is_int(number(t, p, "SELECT COUNT(*) FROM paper_words"), 4, "the others stay");
    is_int(put(t, p, papers, 1), 0, "it comes again");
    is_str(found(t, "hydrogen", NULL), STR("1"), "and is found");
    is_int(put(t, p, NULL, 0), 0, "nothing is put");
    const struct words_text empty = {6, {0, 0, 0}, STR(""), STR("...")};
    is_int(put(t, p, &empty, 1), 0, "a text without words");
    struct words_hit *hits;
    size_t count = 9;
    is_int(words_search(t, words, COLLECTION_POSTS, STR("hydrogen"), NULL, 5, &hits, &count), 0,
           "among posts");
    is_int((int64_t)count, 0, "there are none");
    sql_pool_free(p);
}

/* --- large tables, as far as a test can go --- */

/* "common" is in all texts, "half" in every second one, "rare" in two, with others around. */
static void test_common(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = pool_of(t);
    check(sql_call(t, p, NULL, "DELETE FROM paper_words") == 0);
    struct words_text *texts = ARENA_ARRAY(task_arena(t), struct words_text, MANY);
    for (size_t i = 0; i < MANY; i++)
        texts[i] = (struct words_text){.owner = (i + 1) * (UINT64_MAX / 2 / (MANY + 1)),
                                       .title = STR("Common"),
                                       .text = str_printf(task_arena(t), "common %s %s number%zu",
                                                          i % 2 ? "half" : "other",
                                                          i == 77 || i == 78 ? "rare" : "", i)};
    check(put(t, p, texts, MANY) == 0);
    words_free(words);
    words = words_new(p);
    struct words_hit *hits;
    size_t count;
    int err =
        words_search(t, words, COLLECTION_PAPERS, STR("common half rare"), NULL, 50, &hits, &count);
    ok(err == 0 && count == 50 && hits[0].owner == texts[77].owner,
       "what has all is first, what has a rare word next");
    ok(hits[1].owner == texts[78].owner && hits[1].score > hits[2].score, "then the others");
    const struct words_sample *s = &words->samples[COLLECTION_PAPERS];
    ok(s->total > MANY * 0.8 && s->total < MANY * 1.25, "a sample tells how many there are: %.0f",
       s->total);
    double half = words_sample_texts(s, STR("half"));
    ok(half > MANY * 0.35 && half < MANY * 0.65, "and how many have a word: %.0f", half);
    is_int((int64_t)words_sample_texts(s, STR("zebra")), 0, "or seem to have none");

    words->samples[COLLECTION_PAPERS].total *= 1000; /* as if there were millions */
    err = words_search(t, words, COLLECTION_PAPERS, STR("common"), NULL, 50, &hits, &count);
    ok(err == 0 && count == 0, "what millions of texts have is not looked for");
    err =
        words_search(t, words, COLLECTION_PAPERS, STR("half common rare"), NULL, 50, &hits, &count);
    ok(err == 0 && count == 2, "but for the rare words beside it: %zu", count);
    sql_pool_free(p);
}

static void test_away(struct task *t, void *arg)
{
    (void)arg;
    struct words_hit *hits;
    size_t count = 7;
    struct sql_pool *p = pool_of(t);
    words_free(words);
    words = words_new(p);
    check(words_search(t, words, COLLECTION_PAPERS, STR("rare"), NULL, 5, &hits, &count) == 0);
    mariadb_freeze(&server);
    int64_t from = loop_now_us(task_loop(t));
    int err = words_search(t, words, COLLECTION_PAPERS, STR("rare"), NULL, 5, &hits, &count);
    int64_t ms = (loop_now_us(task_loop(t)) - from) / 1000;
    ok(err == ERR_TIMEOUT && count == 0 && ms < WORDS_MS + 500, "a server that hangs: %s, %d ms",
       err_name(err), (int)ms);
    mariadb_thaw(&server);
    mariadb_stop(&server);
    err = words_search(t, words, COLLECTION_PAPERS, STR("rare"), NULL, 5, &hits, &count);
    ok(err == ERR_UNAVAILABLE || err == ERR_TIMEOUT, "one that is away: %s", err_name(err));
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "words_test");
    mariadb_start(&server, NULL);
    tap_task(test_found, NULL, true);
    tap_task(test_filters, NULL, true);
    tap_task(test_changes, NULL, true);
    tap_task(test_common, NULL, true);
    tap_task(test_away, NULL, true);
    words_free(words);
    mariadb_release(&server);
    return tap_done();
}
