/* The papers nearest to a text: on a real MariaDB and an index of its own, with a made-up embedding
 * service and no Redis, so that prices are those of MySQL. */
#include "engine/search/neighbours.h"

#include "base/map.h"
#include "engine/search/collection_fixture.h"
#include "engine/search/journal.h"

#define PARTS    40 /* of a long paper */
#define TOGETHER 30
#define MANY     2500 /* papers: three statements ask for them */

struct shop { /* a node, and what its lists are made from */
    struct world w;
    struct node_of n;
    struct group group;
    struct redis *redis;
    struct catalog catalog;
};

static void sql_do(struct task *t, struct shop *s, const char *statement)
{
    check(sql_call(t, s->n.sql, NULL, statement) == 0);
}

static void shop_open(struct task *t, struct shop *s)
{
    world_open(t, &s->w);
    node_open(t, &s->w, &s->n);
    group_init(&s->group, task_loop(t));
    s->redis = redis_open(
        &s->group, &(struct redis_options){.url = "unix:/nowhere/redis.sock", .name = "absent"});
    check(s->redis);
    s->catalog = (struct catalog){.redis = s->redis, .sql = s->n.sql};
    sql_do(t, s, "DELETE FROM embedding_paper");
    sql_do(t, s, "DELETE FROM paperinfo");
    sql_do(t, s, "DELETE FROM contentlist");
    sql_do(t, s, "INSERT INTO contentlist (Name, Price) VALUES ('J1', 1), ('J2', 3), ('J3', 0)");
}

static void shop_close(struct task *t, struct shop *s)
{
    redis_close(s->redis);
    check(group_join(t, &s->group) == 0);
    node_close(&s->n);
    world_close(t, &s->w);
}

/* --- papers --- */

static struct str doi_of(struct task *t, int number)
{
    return str_printf(task_arena(t), "10.1000/%03d", number);
}

static void add_rows(struct task *t, struct shop *s, struct str doi, const char *journal, int year)
{
    struct str bib = str_printf(
        task_arena(t), "{\"bib\": \"@a{}\", \"journal\": \"%s\", \"year\": %d}", journal, year);
    check(sql_call(t, s->n.sql, NULL, "INSERT INTO paperinfo (DOI, Bib) VALUES (?, ?)",
                   sql_text(doi), sql_text(bib)) == 0);
    check(sql_call(t, s->n.sql, NULL,
                   "INSERT INTO embedding_paper (owner, doi, journal, year, version)"
                   " VALUES (?, ?, ?, ?, 1)",
                   sql_int((int64_t)collection_paper_owner(doi)), sql_text(doi),
                   sql_text(str_of(journal)), sql_int(year)) == 0);
}

/* A paper of so many equal parts. */
static void add_paper(struct task *t, struct shop *s, int number, const char *journal, int year,
                      const char *text, size_t parts)
{
    struct str doi = doi_of(t, number), name = str_of(journal);
    struct str *chunks = ARENA_ARRAY(task_arena(t), struct str, parts);
    uint16_t tag;
    struct collection_outcome o;
    int64_t space;
    for (size_t i = 0; i < parts; i++)
        chunks[i] = str_of(text);
    check(journal_numbers_give(t, s->n.sql, &name, 1, &tag) == 0);
    struct collection_document d = {.owner = collection_paper_owner(doi),
                                    .version = 1,
                                    .tags = {.journal = tag, .year = (uint16_t)year},
                                    .key = doi,
                                    .chunks = chunks,
                                    .chunk_count = parts};
    add_rows(t, s, doi, journal, year);
    check(collection_put(t, s->n.all, COLLECTION_PAPERS, &d, 1, &ai_for_run, &o, &space) == 0 &&
          o.err == 0);
}

/* 1 to 6, the nearest to "dry soil" first. */
static void add_some(struct task *t, struct shop *s)
{
    add_paper(t, s, 4, "J2", 2021, "dry soil there of the", 1);
    add_paper(t, s, 1, "J1", 2020, "dry soil", 1);
    add_paper(t, s, 6, "J3", 2023, "something else", 1);
    add_paper(t, s, 3, "J1", 2022, "dry soil there", 1);
    add_paper(t, s, 5, "J1", 2020, "wet soil of the far and warm deep south there", 1);
    add_paper(t, s, 2, "J2", 2020, "dry soil dry soil there", 3);
}

/* "1 2 3" of its DOIs, or "!" and an error. */
static struct str list_of(struct task *t, struct shop *s, const struct neighbours_wish *w,
                          struct neighbours *out)
{
    struct neighbours_from from = {s->n.all, s->n.sql, &s->catalog};
    struct str unknown;
    struct buf b;
    int err = neighbours_find(t, &from, w, out, &unknown);
    if (err)
        return str_printf(task_arena(t), "!%s", err_name(err));
    buf_init(&b);
    for (size_t i = 0; i < out->count; i++) {
        int64_t number;
        check(str_to_i64(str_skip(out->papers[i].doi, 8), &number));
        buf_printf(&b, "%s%lld", i ? " " : "", (long long)number);
    }
    struct str text = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return text;
}

static struct neighbours_wish wish(int64_t papers)
{
    return (struct neighbours_wish){
        .text = STR("dry soil"), .papers = papers, .choice = {.year_from = 1400, .year_to = 9999}};
}

/* --- tests --- */

static void test_list(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    shop_open(t, &s);
    add_some(t, &s);
    struct neighbours_wish w = wish(4);
    is_str(list_of(t, &s, &w, &list), STR("1 2 3 4"), "the nearest first, each paper once");
    is_int(list.cost.papers, 4, "so many papers");
    is_int(list.cost.cents, 2 * 100 + 2 * 300, "each at the price of its journal");
    ok(list.journal_count == 2 && str_eq(list.cost.rows[0].journal, STR("J1")) &&
           list.cost.rows[0].papers == 2 && list.cost.rows[0].price == 1 &&
           list.cost.rows[0].cents == 200 && str_eq(list.cost.rows[1].journal, STR("J2")) &&
           list.cost.rows[1].cents == 600,
       "by journal, those that have papers in it");
    is_str(list.papers[1].journal, STR("J2"), "journal");
    is_int(list.papers[1].year, 2020, "and year of a paper");
    ok(!list.reason && list.degraded, "whole; without Redis the prices are those of MySQL");
    w = wish(NEIGHBOURS_MAX);
    list_of(t, &s, &w, &list);
    is_int((int64_t)list.count, 6, "there are no more");
    is_int(list.cost.cents, 3 * 100 + 2 * 300, "and one is free of charge");
    shop_close(t, &s);
}

static void test_choice(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    static const struct str one[] = {STR("J1")}, two[] = {STR("J3"), STR("J2")};
    static const struct str wrong[] = {STR("J1"), STR("J9")}, bare[] = {STR("J4")};
    shop_open(t, &s);
    add_some(t, &s);
    struct neighbours_wish w = wish(10);
    w.choice.journals = one;
    w.choice.journal_count = 1;
    is_str(list_of(t, &s, &w, &list), STR("1 3 5"), "of one journal");
    w.choice.journals = two;
    w.choice.journal_count = 2;
    is_str(list_of(t, &s, &w, &list), STR("2 4 6"), "of two");
    w.choice.year_to = 2021;
    is_str(list_of(t, &s, &w, &list), STR("2 4"), "until a year");
    w.choice.year_from = 2021;
    is_str(list_of(t, &s, &w, &list), STR("4"), "and from one");
    w.choice.journals = wrong;
    is_str(list_of(t, &s, &w, &list), STR("!not_found"), "a journal that is not there");
    sql_do(t, &s, "INSERT INTO contentlist (Name, Price) VALUES ('J4', 1)");
    w = wish(10);
    w.choice.journals = bare;
    w.choice.journal_count = 1;
    is_str(list_of(t, &s, &w, &list), STR(""), "one of which nothing is indexed has no papers");
    ok(!list.reason && list.cost.cents == 0 && list.journal_count == 0, "and that is no fault");
    w = wish(10);
    w.text = str_printf(task_arena(t), "%*s", EMBEDDING_TEXT_BYTES_MAX + 1, "x");
    is_str(list_of(t, &s, &w, &list), STR("!invalid"), "too long a text");
    shop_close(t, &s);
}

/* The corpus goes on while the index still has what was. */
static void test_corpus(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    static const struct str one[] = {STR("J1")};
    shop_open(t, &s);
    add_some(t, &s);
    struct neighbours_wish w = wish(2);
    sql_do(t, &s, "DELETE FROM paperinfo WHERE DOI = '10.1000/001'");
    is_str(list_of(t, &s, &w, &list), STR("2 3"), "a paper that has left makes place");
    sql_do(t, &s, "DELETE FROM embedding_paper WHERE doi = '10.1000/002'");
    is_str(list_of(t, &s, &w, &list), STR("3 4"), "and one whose row is gone");
    sql_do(t, &s,
           "UPDATE paperinfo SET Bib = '{\"bib\": \"@a{}\", \"journal\": \"J2\", \"year\": 1999}'"
           " WHERE DOI = '10.1000/003'");
    is_str(list_of(t, &s, &w, &list), STR("3 4"), "one that has moved");
    ok(str_eq(list.papers[0].journal, STR("J2")) && list.papers[0].year == 1999 &&
           list.cost.cents == 600,
       "is where it is now, at the price there");
    w.choice.year_from = 2000;
    is_str(list_of(t, &s, &w, &list), STR("4 5"), "not where it was: by its year");
    w = wish(2);
    w.choice.journals = one;
    w.choice.journal_count = 1;
    is_str(list_of(t, &s, &w, &list), STR("5"), "or its journal");
    sql_do(t, &s, "DELETE FROM contentlist WHERE Name = 'J2'");
    w = wish(2);
    list_of(t, &s, &w, &list);
    ok(list.count == 2 && list.journal_count == 2 && list.cost.cents == 100,
       "journals without a price are passed over, with their papers");
    sql_do(t, &s, "DELETE FROM contentlist");
    is_str(list_of(t, &s, &w, &list), STR(""), "all of them");
    shop_close(t, &s);
}

static void test_long_papers(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    shop_open(t, &s);
    add_paper(t, &s, 100, "J1", 2020, "dry soil", PARTS);
    add_paper(t, &s, 101, "J1", 2020, "dry soil .", PARTS);
    add_some(t, &s);
    struct neighbours_wish w = wish(4);
    list_of(t, &s, &w, &list);
    is_int((int64_t)list.count, 4, "papers of many parts do not shorten the list");
    ok(str_eq(list.papers[0].doi, STR("10.1000/100")) ||
           str_eq(list.papers[1].doi, STR("10.1000/100")),
       "nor come twice");
    shop_close(t, &s);
}

static void test_reasons(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    shop_open(t, &s);
    struct neighbours_wish w = wish(3);
    is_str(list_of(t, &s, &w, &list), STR(""), "nothing is indexed");
    is_str(str_of(list.reason), STR(COLLECTION_EMPTY), "it says so");
    add_some(t, &s);
    s.w.service.away = true;
    is_str(list_of(t, &s, &w, &list), STR(""), "the service is away");
    is_str(str_of(list.reason), STR(COLLECTION_NO_ANSWER), "it says so");
    s.w.service.away = false;
    is_str(list_of(t, &s, &w, &list), STR("1 2 3"), "and is back");
    ok(!list.reason, "which is said, too");
    s.w.service.away = true;
    is_str(list_of(t, &s, &w, &list), STR("1 2 3"), "a text that was asked lately needs it not");
    struct str path = str_printf(task_arena(t), "%s/vectors/papers-%lld.index", s.w.dir,
                                 (long long)s.n.all->shelves[COLLECTION_PAPERS].active->number);
    check(truncate(path.p, 100) == 0);
    list_of(t, &s, &w, &list);
    ok(list.reason && strcmp(list.reason, COLLECTION_REBUILT) == 0, "a damaged index");
    shop_close(t, &s);
}

static void test_often(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    struct str got = STR("");
    int lists = 0;
    shop_open(t, &s);
    struct neighbours_wish w = wish(1);
    w.uid = 7;
    for (; lists < 2 * NEIGHBOURS_MINUTE_MAX + 1 && got.n == 0; lists++)
        got = list_of(t, &s, &w, &list);
    is_str(got, STR("!rate"), "at some time it is enough");
    ok(lists > NEIGHBOURS_MINUTE_MAX, "after so many as are allowed: %d", lists);
    w.uid = 8;
    is_str(list_of(t, &s, &w, &list), STR(""), "for that user");
    shop_close(t, &s);
}

/* --- many --- */

static int add_many_rows(struct task *t, struct sql *c, void *arg)
{
    const struct collection_document *docs = arg;
    struct sql_value *papers = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * MANY);
    struct sql_value *rows = ARENA_ARRAY(task_arena(t), struct sql_value, 5 * MANY);
    for (int i = 0; i < MANY; i++) {
        struct str journal = i % 2 ? STR("J1") : STR("J2");
        papers[2 * i] = rows[5 * i + 1] = sql_text(docs[i].key);
        papers[2 * i + 1] = sql_text(
            str_printf(task_arena(t), "{\"bib\": \"@a{}\", \"journal\": \"%.*s\", \"year\": 2020}",
                       STR_ARG(journal)));
        rows[5 * i] = sql_int((int64_t)docs[i].owner);
        rows[5 * i + 2] = sql_text(journal);
        rows[5 * i + 3] = sql_int(2020);
        rows[5 * i + 4] = sql_int(1);
    }
    int err = sql_bulk(t, c, "INSERT INTO paperinfo (DOI, Bib) VALUES", "", 2, MANY, papers, NULL);
    return err ? err
               : sql_bulk(t, c,
                          "INSERT INTO embedding_paper (owner, doi, journal, year, version) VALUES",
                          "", 5, MANY, rows, NULL);
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct neighbours list;
    int64_t space;
    shop_open(t, &s);
    struct arena *a = task_arena(t);
    struct collection_document *docs = ARENA_ARRAY(a, struct collection_document, MANY);
    struct collection_outcome *o = ARENA_ARRAY(a, struct collection_outcome, MANY);
    struct str *texts = ARENA_ARRAY(a, struct str, MANY);
    for (int i = 0; i < MANY; i++) {
        struct str doi = doi_of(t, 1000 + i);
        texts[i] = str_printf(a, "dry soil of number %d", i);
        docs[i] = (struct collection_document){.owner = collection_paper_owner(doi),
                                               .version = 1,
                                               .tags = {.journal = 1, .year = 2020},
                                               .key = doi,
                                               .chunks = &texts[i],
                                               .chunk_count = 1};
    }
    check(collection_put(t, s.n.all, COLLECTION_PAPERS, docs, MANY, &ai_for_run, o, &space) == 0);
    check(sql_tx(t, s.n.sql, add_many_rows, docs) == 0 && rounds(t, &s.n) == 0);
    struct neighbours_wish w = wish(MANY - 100);
    list_of(t, &s, &w, &list);
    is_int((int64_t)list.count, MANY - 100, "as many as are wanted");
    struct map *seen = map_new();
    int64_t cents = 0;
    for (size_t i = 0; i < list.count; i++) {
        (void)map_add(seen, list.papers[i].doi);
        cents += str_eq(list.papers[i].journal, STR("J1")) ? 100 : 300;
    }
    ok(map_count(seen) == list.count && list.cost.cents == cents, "each once, at its price");
    map_free(seen);
    w = wish(NEIGHBOURS_MAX);
    list_of(t, &s, &w, &list);
    ok(list.count == MANY && list.cost.papers == MANY && !list.reason, "or all that there are");
    shop_close(t, &s);
}

/* --- at the same time --- */

struct hand {
    struct shop *shop;
    int number;
    int64_t found;
};

static void find_task(struct task *t, void *arg)
{
    struct hand *h = arg;
    struct neighbours list;
    struct neighbours_wish w = wish(5);
    h->found = -1;
    w.uid = 1 + h->number;
    struct str got = list_of(t, h->shop, &w, &list);
    h->found = str_eq(got, STR("!busy")) ? -2 : (int64_t)list.count;
}

static void test_together(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct hand hands[TOGETHER];
    size_t refused = 0;
    struct group g;
    int64_t sum = 0;
    shop_open(t, &s);
    add_some(t, &s);
    group_init(&g, task_loop(t));
    for (int i = 0; i < TOGETHER; i++) {
        hands[i] = (struct hand){.shop = &s, .number = i};
        check(task_go(&g, "find", find_task, &hands[i]) == 0);
    }
    check(group_join(t, &g) == 0);
    for (int i = 0; i < TOGETHER; i++) {
        refused += hands[i].found == -2;
        sum += hands[i].found == -2 ? 0 : hands[i].found;
    }
    ok(refused > 0 && refused < TOGETHER, "of thirty at once some are refused: %zu", refused);
    is_int(sum, (TOGETHER - (int)refused) * 5, "the others all get theirs");
    is_int((int64_t)s.n.all->lists.free, LISTS_MAX, "and all permits are back");
    shop_close(t, &s);
}

int main(void)
{
    start_stores();
    tap_task(test_list, NULL, true);
    tap_task(test_choice, NULL, true);
    tap_task(test_corpus, NULL, true);
    tap_task(test_long_papers, NULL, true);
    tap_task(test_reasons, NULL, true);
    tap_task(test_often, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_together, NULL, true);
    return stop_stores();
}
