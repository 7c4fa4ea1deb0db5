/* Screenings of the nearest papers, submitted on real stores: what is frozen, what is paid, and
 * which lists are refused. */
#include "app/screen/nearest.h"

#include "app/screen/application.h"
#include "engine/search/collection_fixture.h"
#include "engine/search/journal.h"
#include "engine/setup/node.h"
#include "engine/store/amount.h"
#include "engine/store/keys.h"
#include "tests/store.h"

#define QUESTION STR("Is it about \"dry\" soil?")

static struct store_redis store;

struct shop { /* a node, with what its runs are submitted to */
    struct world w;
    struct node_of n;
    struct group group, tasks;
    struct redis *redis;
    struct cache *cache;
    struct ledger *ledger;
    struct catalog catalog;
    struct runs runs;
    struct node node; /* as applications see it */
    int64_t uid;
};

static void sql_do(struct task *t, struct shop *s, const char *statement)
{
    check(sql_call(t, s->n.sql, NULL, statement) == 0);
}

static int64_t new_user(struct task *t, struct shop *s, int64_t cents)
{
    static int names;
    struct sql_rows r;
    struct str name = str_printf(task_arena(t), "user%d", names++);
    check(sql_call(t, s->n.sql, &r,
                   "INSERT INTO user_info (username, username_folded, password, balance, move_no,"
                   " permission) VALUES (?, ?, '', ?, 1, 1)",
                   sql_text(name), sql_text(name),
                   sql_text(amount_decimal(task_arena(t), cents))) == 0);
    check(sql_call(t, s->n.sql, NULL,
                   "INSERT INTO billing_log (uid, source, number, kind, cents, at)"
                   " VALUES (?, 'mysql', 1, 'opening', ?, UTC_TIMESTAMP(3))",
                   sql_int((int64_t)r.insert_id), sql_int(cents)) == 0);
    return (int64_t)r.insert_id;
}

static void add_paper(struct task *t, struct shop *s, int number, const char *journal, int year,
                      const char *text)
{
    struct str doi = str_printf(task_arena(t), "10.1000/%03d", number);
    struct str name = str_of(journal), chunk = str_of(text);
    struct str bib = str_printf(
        task_arena(t), "{\"bib\": \"@a{}\", \"journal\": \"%s\", \"year\": %d}", journal, year);
    uint16_t tag;
    struct collection_outcome o;
    int64_t space;
    check(journal_numbers_give(t, s->n.sql, &name, 1, &tag) == 0);
    struct collection_document d = {.owner = collection_paper_owner(doi),
                                    .version = 1,
                                    .tags = {.journal = tag, .year = (uint16_t)year},
                                    .key = doi,
                                    .chunks = &chunk,
                                    .chunk_count = 1};
    check(sql_call(t, s->n.sql, NULL, "INSERT INTO paperinfo (DOI, Bib) VALUES (?, ?)",
                   sql_text(doi), sql_text(bib)) == 0);
    check(sql_call(t, s->n.sql, NULL,
                   "INSERT INTO embedding_paper (owner, doi, journal, year, version)"
                   " VALUES (?, ?, ?, ?, 1)",
                   sql_int((int64_t)d.owner), sql_text(doi), sql_text(name), sql_int(year)) == 0);
    check(collection_put(t, s->n.all, COLLECTION_PAPERS, &d, 1, &ai_for_run, &o, &space) == 0 &&
          o.err == 0);
}

/* 1 to 4, the nearest to "dry soil" first. */
static void add_some(struct task *t, struct shop *s)
{
    add_paper(t, s, 3, "J1", 2022, "dry soil there");
    add_paper(t, s, 1, "J1", 2020, "dry soil");
    add_paper(t, s, 4, "J2", 2021, "dry soil there of the");
    add_paper(t, s, 2, "J2", 2020, "dry soil dry soil there");
}

static void shop_open(struct task *t, struct shop *s)
{
    static const char *const tables[] = {
        "DELETE FROM query_log",
        "DELETE FROM distill_paper",
        "DELETE FROM paperinfo",
        "DELETE FROM embedding_paper",
        "DELETE FROM contentlist",
        "INSERT INTO contentlist (Name, Price) VALUES ('J1', 1), ('J2', 3)"};
    struct catalog_size size;
    world_open(t, &s->w);
    node_open(t, &s->w, &s->n);
    group_init(&s->group, task_loop(t));
    group_init(&s->tasks, task_loop(t));
    s->redis = redis_open(&s->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(s->redis);
    s->cache = cache_new(&(struct cache_options){.redis = s->redis, .sql = s->n.sql});
    s->ledger = ledger_new(&(struct ledger_options){.redis = s->redis,
                                                    .sql = s->n.sql,
                                                    .cache = s->cache,
                                                    .metrics = metrics,
                                                    .group = &s->tasks});
    role_in(&s->tasks, cache_role, s->cache, CACHE_LOOK_EACH_MS);
    while (!cache_trusts_redis(s->cache))
        check(task_sleep(t, 2) == 0);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        sql_do(t, s, tables[i]);
    check(redis_call(t, s->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    s->catalog = (struct catalog){s->redis, s->n.sql, s->cache};
    s->runs = (struct runs){.redis = s->redis,
                            .sql = s->n.sql,
                            .cache = s->cache,
                            .ledger = s->ledger,
                            .catalog = &s->catalog};
    s->node = (struct node){.redis = s->redis, .sql = s->n.sql};
    check(catalog_load(t, s->redis, s->n.sql, &size) == 0);
    s->uid = new_user(t, s, 100000);
}

static void shop_close(struct task *t, struct shop *s)
{
    group_cancel(&s->tasks);
    check(group_join(t, &s->tasks) == 0);
    ledger_free(s->ledger);
    cache_free(s->cache);
    redis_close(s->redis);
    check(group_join(t, &s->group) == 0);
    node_close(&s->n);
    world_close(t, &s->w);
}

/* --- runs --- */

static struct nearest_wish wish(int64_t papers, const char *request_id)
{
    return (struct nearest_wish){.question = QUESTION,
                                 .nearest = {STR("dry soil"), papers},
                                 .choice = {.year_from = 1400, .year_to = 9999},
                                 .request_id = request_id ? str_of(request_id) : STR_NULL};
}

static int submit(struct task *t, struct shop *s, const struct nearest_wish *w, struct str *qid)
{
    struct neighbours_from from = {s->n.all, s->n.sql, &s->catalog};
    char id[RUN_ID_BYTES];
    struct str unknown;
    int err = nearest_submit(t, &s->runs, &from, s->uid, w, id, &unknown);
    if (!err)
        *qid = str_dup(task_arena(t), str_of(id));
    return err;
}

static struct app_run run_of(struct task *t, struct shop *s, struct str qid)
{
    struct sql_rows r;
    struct app_run run = {.id = {s->uid, qid}};
    check(sql_call(t, s->n.sql, &r, "SELECT search_params FROM query_log WHERE query_id = ?",
                   sql_text(qid)) == 0 &&
          r.count == 1 && json_parse(task_arena(t), r.cells[0].s, &run.params, NULL) == 0);
    return run;
}

/* "<number>=<cents> …" of its units, as workers are given them. */
static struct str papers_of(struct task *t, struct shop *s, struct str qid)
{
    struct app_run run = run_of(t, s, qid);
    static const struct application *const all[] = {&screen_application, &nearest_application,
                                                    NULL};
    const struct application *app = application_for(all, run.params);
    struct str *units;
    size_t count, papers;
    struct buf b;
    buf_init(&b);
    check(app == &nearest_application && app->split(t, &s->node, &run, &units, &count) == 0);
    for (size_t i = 0; i < count; i++) {
        struct app_paper *p;
        check(app->papers(t, &s->node, &run, units[i], &p, &papers) == 0);
        for (size_t k = 0; k < papers; k++)
            buf_printf(&b, "%s%.*s=%lld", b.len ? " " : "", 1, p[k].doi.p + p[k].doi.n - 1,
                       (long long)p[k].cents);
    }
    struct str text = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return text;
}

/* The index lacks changes for so long that searches say so. */
static void fall_behind(struct shop *s, bool behind)
{
    s->n.all->shelves[COLLECTION_PAPERS].behind_since_ms = behind ? 1 : 0;
}

static int64_t runs_there(struct task *t, struct shop *s)
{
    return sql_number(t, &s->n,
                      "SELECT (SELECT COUNT(*) FROM query_log) * 1000 +"
                      " (SELECT COUNT(*) FROM distill_paper)");
}

static void test_submit(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct str qid;
    struct run_view v;
    shop_open(t, &s);
    add_some(t, &s);
    struct nearest_wish w = wish(3, NULL);
    is_int(submit(t, &s, &w, &qid), 0, "submitted: %s", task_error(t));
    is_str(papers_of(t, &s, qid), STR("1=100 2=300 3=100"),
           "the nearest first, at the price of their journals");
    check(run_view(t, &s.runs, (struct run_id){s.uid, qid}, &v) == 0);
    ok(v.papers == 3 && v.ceiling == 500 && v.state == RUN_QUEUED, "it waits, and costs 5.00");
    is_str(v.question, QUESTION, "papers are judged by the question");
    is_str(v.nearest.text, STR("dry soil"), "and are near to the text");
    is_int(v.nearest.papers, 3, "so many were asked for");
    ok(!v.is_distillation && !v.original_query_id.p, "it is no distillation");
    w = wish(NEIGHBOURS_MAX, NULL);
    static const struct str one[] = {STR("J2")};
    w.choice.journals = one;
    w.choice.journal_count = 1;
    w.choice.year_from = 2021;
    check(submit(t, &s, &w, &qid) == 0);
    is_str(papers_of(t, &s, qid), STR("4=300"), "of the chosen journals and years alone");
    const struct json *params = run_of(t, &s, qid).params;
    json_each (name, json_get(params, "chosen"))
        is_str(json_str(name), STR("J2"), "which the run knows");
    shop_close(t, &s);
}

/* Whatever becomes of index, corpus and Redis. */
static void test_frozen(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct str qid, later;
    static const char frozen[] = "1=100 2=300 3=100";
    shop_open(t, &s);
    add_some(t, &s);
    struct nearest_wish w = wish(3, NULL);
    check(submit(t, &s, &w, &qid) == 0);
    add_paper(t, &s, 0, "J2", 2020, "dry soil");
    sql_do(t, &s, "DELETE FROM paperinfo WHERE DOI = '10.1000/001'");
    sql_do(t, &s, "DELETE FROM embedding_paper WHERE doi = '10.1000/002'");
    sql_do(t, &s, "UPDATE contentlist SET Price = 9");
    is_str(papers_of(t, &s, qid), str_of(frozen),
           "the index and the corpus go on, the run does not");
    check(redis_call(t, s.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    is_str(papers_of(t, &s, qid), str_of(frozen),
           "a Redis that has lost everything changes nothing");
    uint64_t owner = collection_paper_owner(STR("10.1000/003"));
    check(collection_drop(t, s.n.all, COLLECTION_PAPERS, &owner, 1) == 0);
    sql_do(t, &s, "DELETE FROM embedding_paper");
    is_str(papers_of(t, &s, qid), str_of(frozen), "nor an index that is empty");
    is_int(submit(t, &s, &w, &later), ERR_INVALID, "of which no other run is made: %s",
           task_error(t));
    shop_close(t, &s);
}

static void test_money(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct str qid;
    shop_open(t, &s);
    add_some(t, &s);
    s.uid = new_user(t, &s, 899);
    struct nearest_wish w = wish(3, NULL);
    is_int(submit(t, &s, &w, &qid), 0, "5.00 of 8.99 can be spent");
    w = wish(2, NULL);
    is_int(submit(t, &s, &w, &qid), ERR_FUNDS, "4.00 of what is left cannot: %s", task_error(t));
    is_int(runs_there(t, &s), 1003, "nothing is written then");
    w = wish(1, NULL);
    is_int(submit(t, &s, &w, &qid), 0, "1.00 can");
    check(sql_call(t, s.n.sql, NULL, "UPDATE user_info SET permission = 0 WHERE uid = ?",
                   sql_int(s.uid)) == 0);
    is_int(submit(t, &s, &w, &qid), ERR_FORBIDDEN, "permission 0");
    is_int(runs_there(t, &s), 2004, "two runs and their papers are there");
    shop_close(t, &s);
}

static void test_repeats(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct str qid, again = STR("");
    static const struct str one[] = {STR("J1")};
    shop_open(t, &s);
    add_some(t, &s);
    struct nearest_wish w = wish(3, "mine");
    check(submit(t, &s, &w, &qid) == 0);
    add_paper(t, &s, 0, "J2", 2020, "dry soil");
    fall_behind(&s, true);
    sql_do(t, &s, "UPDATE user_info SET balance = 0");
    ok(submit(t, &s, &w, &again) == 0 && str_eq(again, qid),
       "a repeat is the first run, without a search and without money");
    struct nearest_wish other = w;
    other.nearest.papers = 4;
    is_int(submit(t, &s, &other, &again), ERR_CONFLICT, "another number is another request");
    other = w;
    other.nearest.text = STR("wet soil");
    is_int(submit(t, &s, &other, &again), ERR_CONFLICT, "another text");
    other = w;
    other.choice.journals = one;
    other.choice.journal_count = 1;
    is_int(submit(t, &s, &other, &again), ERR_CONFLICT, "a filter");
    other = w;
    other.question = STR("Another?");
    is_int(submit(t, &s, &other, &again), ERR_CONFLICT, "another question");
    struct run_wish whole = {
        .question = QUESTION, .choice = {one, 1, 1400, 9999}, .request_id = STR("mine")};
    char id[RUN_ID_BYTES];
    struct str unknown;
    is_int(run_submit(t, &s.runs, s.uid, &whole, id, &unknown), ERR_CONFLICT, "whole journals");
    is_int(runs_there(t, &s), 1003, "there is one run");
    shop_close(t, &s);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct shop s;
    struct str qid;
    static const struct str none[] = {STR("J9")};
    shop_open(t, &s);
    struct nearest_wish w = wish(3, NULL);
    is_int(submit(t, &s, &w, &qid), ERR_CONFLICT, "nothing is indexed: %s", task_error(t));
    add_some(t, &s);
    struct nearest_wish never = w;
    never.choice.year_to = 1999;
    is_int(submit(t, &s, &never, &qid), ERR_INVALID, "no paper is near: %s", task_error(t));
    never = w;
    never.choice.journals = none;
    never.choice.journal_count = 1;
    is_int(submit(t, &s, &never, &qid), ERR_NOT_FOUND, "there is no such journal");
    fall_behind(&s, true);
    is_int(submit(t, &s, &w, &qid), ERR_CONFLICT, "the index is behind: %s", task_error(t));
    fall_behind(&s, false);
    s.w.service.away = true;
    w.nearest.text = STR("soil that is dry");
    is_int(submit(t, &s, &w, &qid), ERR_CONFLICT, "the service is away: %s", task_error(t));
    s.w.service.away = false;
    is_int(submit(t, &s, &w, &qid), 0, "and is back");
    struct str path = str_printf(task_arena(t), "%s/vectors/papers-%lld.index", s.w.dir,
                                 (long long)s.n.all->shelves[COLLECTION_PAPERS].active->number);
    check(truncate(path.p, 100) == 0);
    is_int(submit(t, &s, &w, &qid), ERR_CONFLICT, "the index is damaged: %s", task_error(t));
    ok(rounds(t, &s.n) == 0 && rounds(t, &s.n) == 0, "it is made anew");
    is_int(submit(t, &s, &w, &qid), 0, "and answers again");
    is_int(runs_there(t, &s), 2006, "only whole lists are frozen");
    store_redis_kill(&store);
    while (cache_trusts_redis(s.cache))
        check(task_sleep(t, 2) == 0);
    is_int(submit(t, &s, &w, &qid), ERR_UNAVAILABLE, "Redis is away");
    store_redis_spawn(&store, NULL);
    while (!cache_trusts_redis(s.cache))
        check(task_sleep(t, 2) == 0);
    shop_close(t, &s);
}

int main(void)
{
    store_redis_start(&store, NULL);
    start_stores();
    tap_task(test_submit, NULL, true);
    tap_task(test_frozen, NULL, true);
    tap_task(test_money, NULL, true);
    tap_task(test_repeats, NULL, true);
    tap_task(test_refused, NULL, true);
    store_redis_stop(&store);
    return stop_stores();
}
