/* The catalog of a real MariaDB, loaded into a real Redis and read from both: the answers must be
 * the same. */
#include <signal.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/log.h"
#include "engine/papers/catalog_private.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define MANY 600 /* journals: more than one statement asks for */

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

struct world {
    struct group group;
    struct redis *redis, *absent;
    struct sql_pool *sql;
    struct catalog hot, cold; /* with Redis; with a Redis that is not there */
};

static struct redis *open_redis(struct world *w, const char *url, const char *name)
{
    struct redis *r = redis_open(
        &w->group,
        &(struct redis_options){
            .url = url, .name = name, .connect_ms = 1000, .command_ms = 1000, .metrics = metrics});
    check(r);
    return r;
}

static void open_world(struct task *t, struct world *w)
{
    group_init(&w->group, task_loop(t));
    w->redis = open_redis(w, store.url_unix, "hot");
    w->absent = open_redis(w, "unix:/nowhere/redis.sock", "absent");
    w->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    w->hot = (struct catalog){.redis = w->redis, .sql = w->sql};
    w->cold = (struct catalog){.redis = w->absent, .sql = w->sql};
}

static void close_world(struct task *t, struct world *w)
{
    sql_pool_free(w->sql);
    redis_close(w->redis);
    redis_close(w->absent);
    check(group_join(t, &w->group) == 0);
}

#define say(t, w, ...) check(redis_call((t), (w)->redis, STR_NULL, NULL, __VA_ARGS__) == 0)
#define sql(t, w, ...) check(sql_call((t), (w)->sql, NULL, __VA_ARGS__) == 0)

/* --- what there is --- */

/* Characters that mean something to Redis, SQL, JSON or a pattern; and two that differ in case. */
static const char *const odd[] = {
    "ANNU REV NEUROSCI",
    "J. \"quoted\" 'n' back\\slash",
    "A:B:{c}",
    "glob*?[a-z]",
    "中文期刊",
    "%s%d%n",
    " leading and trailing ",
    "nature",
    "NATURE",
    "-- ; DROP",
    "\xc3\xa9t\xc3\xa9",
    "{}",
    "tab\there",
    "\xf0\x9f\x93\x84",
};
#define ODD (sizeof odd / sizeof *odd)

static void add_journal(struct task *t, struct world *w, const char *name, int64_t price,
                        const char *years)
{
    struct str n = str_of(name);
    sql(t, w, "INSERT INTO contentlist VALUES (?, ?, '2016-2025', '10/31/2025', ?)", sql_text(n),
        sql_text(str_printf(task_arena(t), "Full \"%s\"", name)), sql_int(price));
    if (years)
        sql(t, w, "INSERT INTO contentlist_year_number VALUES (?, ?)", sql_text(n),
            sql_text(str_of(years)));
}

static void tag_journal(struct task *t, struct world *w, const char *journal, const char *tag)
{
    sql(t, w, "INSERT INTO info_paper_with_tag (Name, Tag) VALUES (?, ?)",
        sql_text(str_of(journal)), sql_text(str_of(tag)));
}

static void add_tag(struct task *t, struct world *w, const char *tag, const char *type)
{
    sql(t, w, "INSERT INTO info_tag VALUES (?, ?)", sql_text(str_of(tag)), sql_text(str_of(type)));
}

static void load(struct task *t, struct world *w)
{
    struct catalog_size size;
    check(catalog_load(t, w->redis, w->sql, &size) == 0);
}

/* A small catalog, in MySQL and in Redis. */
static void fill(struct task *t, struct world *w)
{
    static const char *const tables[] = {"DELETE FROM contentlist",
                                         "DELETE FROM contentlist_year_number",
                                         "DELETE FROM info_tag", "DELETE FROM info_paper_with_tag"};
    for (size_t i = 0; i < 4; i++)
        sql(t, w, tables[i]);
    say(t, w, STR("FLUSHALL"));
    add_tag(t, w, "医学", "一级分类");
    add_tag(t, w, "神经科学", "二级分类");
    add_tag(t, w, "odd", "二级分类");
    add_tag(t, w, "tag: {*} \"'", "一级分类");
    add_tag(t, w, "empty", "二级分类");
    for (size_t i = 0; i < ODD; i++) {
        char years[100];
        snprintf(years, sizeof years, "{\"2024\": %zu, \"1999\": 7, \"2023\": %zu, \"2025\": 0}",
                 i + 1, 10 * i);
        add_journal(t, w, odd[i], (int64_t)i, years);
        tag_journal(t, w, odd[i], "odd");
        if (i % 2)
            tag_journal(t, w, odd[i], "医学");
        if (i % 3 == 0)
            tag_journal(t, w, odd[i], "tag: {*} \"'");
    }
    add_journal(t, w, "NO YEARS", 2, NULL);
    add_journal(t, w, "ODD YEARS", 2,
                "{\"2020\": 5, \"02020\": 6, \"note\": 7, \"2021\": -3, \"0999\": 1, \"-200\": 1, "
                "\"\": 1}");
    sql(t, w, "INSERT INTO contentlist VALUES ('NOTHING', NULL, NULL, NULL, 1)");
    tag_journal(t, w, "NO YEARS", "神经科学");
    tag_journal(t, w, "NOT IN THE LIST", "神经科学"); /* neither of these counts */
    tag_journal(t, w, "NATURE", "tag of no type");
    load(t, w);
}

/* --- answers as text --- */

static void put(struct buf *b, struct str s)
{
    buf_printf(b, s.p ? "\"%.*s\"" : "none", STR_ARG(s));
}

static struct str keep(struct task *t, struct buf *b)
{
    struct str s = str_dup(task_arena(t), buf_str(b));
    buf_release(b);
    return s;
}

static struct str tags_text(struct task *t, const struct catalog *c, bool *degraded)
{
    struct catalog_tag *tags;
    size_t count;
    int err = catalog_tags(t, c, &tags, &count, degraded);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s ", err_name(err));
    for (size_t i = 0; !err && i < count; i++)
        buf_printf(&b, "%.*s/%.*s %lld, ", STR_ARG(tags[i].type), STR_ARG(tags[i].tag),
                   (long long)tags[i].journals);
    return keep(t, &b);
}

struct question {
    const struct str *tags;
    size_t tag_count;
    bool any;
};

static struct str journals_text(struct task *t, const struct catalog *c, struct question q,
                                bool whole, bool *degraded)
{
    struct catalog_journal *all;
    size_t count;
    int err = catalog_journals(t, c, q.tags, q.tag_count, q.any, &all, &count, degraded);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s ", err_name(err));
    for (size_t i = 0; !err && i < count; i++) {
        const struct catalog_journal *j = &all[i];
        put(&b, j->name);
        if (whole) {
            put(&b, j->full_name);
            put(&b, j->data_range);
            put(&b, j->update_date);
            buf_printf(&b, " %lld", (long long)j->price);
            for (size_t k = 0; k < j->year_count; k++)
                buf_printf(&b, " %lld:%lld", (long long)j->years[k].year,
                           (long long)j->years[k].papers);
        }
        buf_add_lit(&b, "; ");
    }
    return keep(t, &b);
}

static struct str price_text(struct task *t, const struct catalog *c, struct catalog_choice choice,
                             bool *degraded)
{
    struct catalog_estimate e;
    struct str unknown = STR_NULL;
    int err = catalog_price(t, c, &choice, &e, &unknown, degraded);
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s ", err_name(err));
    if (err == ERR_NOT_FOUND)
        put(&b, unknown);
    if (!err)
        buf_printf(&b, "%lld papers, %lld cents", (long long)e.papers, (long long)e.cents);
    for (size_t i = 0; !err && i < choice.journal_count; i++) {
        buf_add_lit(&b, "; ");
        put(&b, e.rows[i].journal);
        buf_printf(&b, " %lld x %lld = %lld", (long long)e.rows[i].papers,
                   (long long)e.rows[i].price, (long long)e.rows[i].cents);
    }
    return keep(t, &b);
}

/* --- tests; each begins with the small catalog --- */

static void test_tags(struct task *t, struct world *w)
{
    bool degraded = true;
    struct str hot = tags_text(t, &w->hot, &degraded);
    is_str(hot,
           STR("ok 一级分类/tag: {*} \"' 5, 一级分类/医学 7, 二级分类/empty 0, 二级分类/odd 14, "
               "二级分类/神经科学 1, "),
           "tags by type and name, with their journals");
    ok(!degraded, "from Redis");
    is_str(tags_text(t, &w->cold, &degraded), hot, "the same from MySQL");
    ok(degraded, "degraded");
    say(t, w, STR("HSET"), key_tags, STR("a late one"), STR("二级分类"));
    ok(str_find(tags_text(t, &w->hot, &degraded),
                STR("医学 7, 二级分类/a late one 0, 二级分类/empty")) > 0,
       "whatever order Redis has them in");
}

/* The same from both, or the first that differs is shown. */
static struct str same_journals(struct task *t, struct world *w, struct question q, bool whole,
                                const char *what)
{
    bool by_redis = true, by_mysql = false;
    struct str hot = journals_text(t, &w->hot, q, whole, &by_redis);
    is_str(journals_text(t, &w->cold, q, whole, &by_mysql), hot, "%s: the same from MySQL", what);
    ok(!by_redis && by_mysql, "%s: only that is degraded", what);
    return hot;
}

static void test_all_journals(struct task *t, struct world *w)
{
    struct str all = same_journals(t, w, (struct question){0}, true, "all journals");
    ok(str_find(all,
                STR("\"NATURE\"\"Full \"NATURE\"\"\"2016-2025\"\"10/31/2025\" 8 1999:7 2023:80 "
                    "2024:9 2025:0; ")) > 0,
       "years are in order");
    ok(str_find(all, STR("\"NOTHING\"nonenonenone 1; ")) > 0, "what is not known is absent");
    ok(str_find(all, STR("10/31/2025\" 2 2020:5; ")) > 0, "what is no year is left out");
    ok(str_find(all, STR("NOT IN THE LIST")) < 0, "tags make no journals");
    size_t names = 0;
    for (size_t i = 0; i < ODD; i++)
        names += str_find(all, str_printf(task_arena(t), "\"%s\"\"", odd[i])) > 0;
    is_int((int64_t)names, ODD, "every odd name is there");
    is_str(same_journals(t, w, (struct question){(struct str[]){STR("神经科学")}, 1, false}, false,
                         "one tag"),
           STR("ok \"NO YEARS\"; "), "journals of one tag, those that exist");
}

static void test_match(struct task *t, struct world *w)
{
    struct str medicine = STR("医学"), glob = STR("tag: {*} \"'"), neuro = STR("神经科学");
    struct str both[] = {medicine, glob}, twice[] = {glob, medicine, glob},
               three[] = {glob, STR("no such tag"), neuro}, none[] = {STR("no such tag")},
               untyped[] = {STR("tag of no type")}, pattern[] = {STR("*")};
    is_str(same_journals(t, w, (struct question){both, 2, false}, false, "all of"),
           STR("ok \"-- ; DROP\"; \"glob*?[a-z]\"; "), "all of two tags");
    is_str(same_journals(t, w, (struct question){twice, 3, false}, false, "twice"),
           STR("ok \"-- ; DROP\"; \"glob*?[a-z]\"; "), "a tag that is named twice counts once");
    struct str any = same_journals(t, w, (struct question){three, 3, true}, false, "any of");
    is_str(any,
           STR("ok \" leading and trailing \"; \"-- ; DROP\"; \"ANNU REV NEUROSCI\"; \"NO YEARS\"; "
               "\"glob*?[a-z]\"; \"tab\there\"; "),
           "any of three, one of which is not there");
    is_str(same_journals(t, w, (struct question){three, 3, false}, false, "not there"), STR("ok "),
           "all of them: none");
    is_str(same_journals(t, w, (struct question){none, 1, true}, false, "unknown"), STR("ok "),
           "a tag that does not exist has no journals");
    same_journals(t, w, (struct question){untyped, 1, true}, false, "not in info_tag");
    is_str(same_journals(t, w, (struct question){pattern, 1, true}, false, "a pattern"), STR("ok "),
           "names are no patterns");
    struct str most[CATALOG_TAGS_MAX];
    for (size_t i = 0; i < CATALOG_TAGS_MAX; i++)
        most[i] = i + 1 < CATALOG_TAGS_MAX ? STR("empty") : medicine;
    struct str seven = same_journals(t, w, (struct question){most, CATALOG_TAGS_MAX, true}, false,
                                     "as many tags as may be");
    ok(str_find(seven, STR("NATURE")) < 0 && str_find(seven, STR("nature")) > 0,
       "capitals make a difference");
}

static struct str same_price(struct task *t, struct world *w, struct catalog_choice c,
                             const char *what)
{
    bool by_redis = true, by_mysql = false;
    struct str hot = price_text(t, &w->hot, c, &by_redis);
    is_str(price_text(t, &w->cold, c, &by_mysql), hot, "%s: the same from MySQL", what);
    if (str_starts(hot, STR("ok ")))
        ok(!by_redis && by_mysql, "%s: only that is degraded", what);
    return hot;
}

static void test_price(struct task *t, struct world *w)
{
    struct str some[] = {STR("NATURE"), STR("ANNU REV NEUROSCI"), STR("NO YEARS"),
                         STR("ODD YEARS")};
    is_str(
        same_price(t, w, (struct catalog_choice){some, 4, 2023, 2025}, "three years"),
        STR("ok 90 papers, 71200 cents; \"NATURE\" 89 x 8 = 71200; \"ANNU REV NEUROSCI\" 1 x 0 = "
            "0; \"NO YEARS\" 0 x 2 = 0; \"ODD YEARS\" 0 x 2 = 0"),
        "papers times price, in the order of the choice");
    is_str(same_price(t, w, (struct catalog_choice){some, 1, 1999, 1999}, "one year"),
           STR("ok 7 papers, 5600 cents; \"NATURE\" 7 x 8 = 5600"), "one year");
    is_str(same_price(t, w, (struct catalog_choice){some, 4, 1000, 9999}, "all years"),
           STR("ok 109 papers, 77800 cents; \"NATURE\" 96 x 8 = 76800; \"ANNU REV NEUROSCI\" 8 x 0 "
               "= 0; \"NO YEARS\" 0 x 2 = 0; \"ODD YEARS\" 5 x 2 = 1000"),
           "a wide range");
    for (int64_t from = 1999; from < 2003; from++) /* both sides of what is asked for by name */
        ok(str_starts(same_price(t, w, (struct catalog_choice){some, 1, from, 2023 - from % 2},
                                 "about twenty years"),
                      STR("ok ")),
           "about twenty years");
    struct str unknown[] = {STR("NATURE"), STR("Nature"), STR("nothing"), STR("NATURE ")};
    is_str(same_price(t, w, (struct catalog_choice){unknown, 4, 2023, 2025}, "unknown"),
           STR("not_found \"Nature\""), "the first journal that does not exist");
    is_str(same_price(t, w, (struct catalog_choice){unknown + 3, 1, 1500, 2025}, "a space"),
           STR("not_found \"NATURE \""), "spaces make a difference");
    struct str twice[] = {some[0], some[0]};
    is_str(same_price(t, w, (struct catalog_choice){twice, 2, 2024, 2024}, "twice"),
           STR("ok 18 papers, 14400 cents; \"NATURE\" 9 x 8 = 7200; \"NATURE\" 9 x 8 = 7200"),
           "one that is named twice is counted twice");
    struct str names[ODD];
    for (size_t i = 0; i < ODD; i++)
        names[i] = str_of(odd[i]);
    struct str text =
        same_price(t, w, (struct catalog_choice){names, ODD, 2024, 2024}, "odd names");
    ok(str_starts(text, STR("ok 105 papers, 91000 cents; ")), "odd names: %.*s", STR_ARG(text));
}

static void test_overflow(struct task *t, struct world *w)
{
    add_journal(t, w, "HUGE", 1, "{\"2000\": 9223372036854775807, \"2001\": 1}");
    add_journal(t, w, "DEAR", 2147483647, "{\"2000\": 42949672, \"2001\": 42949673}");
    add_journal(t, w, "FREE", 0, "{\"2000\": 9223372036854775807, \"2001\": 1}");
    add_journal(t, w, "MOST", 1, "{\"2000\": 92233720368547758, \"2001\": 1}");
    load(t, w);
    struct str huge[] = {STR("HUGE")}, dear[] = {STR("DEAR")},
               most[] = {STR("MOST"), STR("NATURE")}, pair[] = {STR("MOST"), STR("MOST")},
               free[] = {STR("FREE"), STR("FREE")};
    const struct {
        struct catalog_choice c;
        const char *want, *what;
    } cases[] = {
        {{huge, 1, 2000, 2001}, "limit ", "too many papers in a journal"},
        {{huge, 1, 2000, 2000}, "limit ", "too many cents in a point"},
        {{huge, 1, 1900, 2001}, "limit ", "the same of a wide range"},
        {{huge, 1, 2001, 2001}, "ok 1 papers, 100 cents; \"HUGE\" 1 x 1 = 100", "one paper"},
        {{free, 1, 2000, 2001}, "limit ", "too many papers, though they cost nothing"},
        {{free, 1, 1900, 2001}, "limit ", "nor in a wide range"},
        {{free, 2, 2000, 2000}, "limit ", "nor in two journals"},
        {{dear, 1, 2000, 2000},
         "ok 42949672 papers, 9223371826401378400 cents; \"DEAR\" 42949672 x 2147483647 = "
         "9223371826401378400",
         "just below the limit"},
        {{dear, 1, 2001, 2001}, "limit ", "just above it"},
        {{most, 1, 2000, 2000},
         "ok 92233720368547758 papers, 9223372036854775800 cents; \"MOST\" 92233720368547758 x 1 = "
         "9223372036854775800",
         "the largest sum"},
        {{most, 1, 2000, 2001}, "limit ", "one paper more"},
        {{pair, 2, 2000, 2000}, "limit ", "two journals together"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(same_price(t, w, cases[i].c, cases[i].what), str_of(cases[i].want), "%s",
               cases[i].what);
}

static int64_t redis_count(const char *name)
{
    return *metric(metrics, METRIC_COUNTER, name, "name=\"hot\"", "");
}

static void test_round_trips(struct task *t, struct world *w)
{
    struct str names[ODD];
    for (size_t i = 0; i < ODD; i++)
        names[i] = str_of(odd[i]);
    bool degraded;
    int64_t writes = redis_count("millrace_redis_writes_total");
    int64_t commands = redis_count("millrace_redis_commands_total");
    price_text(t, &w->hot, (struct catalog_choice){names, ODD, 2010, 2025}, &degraded);
    is_int(redis_count("millrace_redis_writes_total") - writes, 1, "one round trip for a price");
    is_int(redis_count("millrace_redis_commands_total") - commands, ODD + 5,
           "a command a journal, and five for all");
    writes = redis_count("millrace_redis_writes_total");
    journals_text(t, &w->hot, (struct question){0}, false, &degraded);
    is_int(redis_count("millrace_redis_writes_total") - writes, 2, "two for journals");
    writes = redis_count("millrace_redis_writes_total");
    tags_text(t, &w->hot, &degraded);
    is_int(redis_count("millrace_redis_writes_total") - writes, 2, "two for tags");
}

static int64_t load_of(struct task *t, const struct catalog *c)
{
    struct str name = str_of(odd[0]), unknown;
    struct catalog_estimate e;
    bool degraded;
    check(catalog_price(t, c, &(struct catalog_choice){&name, 1, 2010, 2025}, &e, &unknown,
                        &degraded) == 0);
    return e.load;
}

/* A price says which load it is of. */
static void test_load(struct task *t, struct world *w)
{
    ok(load_of(t, &w->hot) == 0 && load_of(t, &w->cold) == 0, "before loads were numbered");
    sql(t, w,
        "INSERT INTO corpus_load (load_no, begun_at, ended_at)"
        " VALUES (6, NOW(), NOW()), (7, NOW(), NOW()), (8, NOW(), NULL)");
    is_int(load_of(t, &w->cold), 7, "MySQL: the last that has ended");
    is_int(load_of(t, &w->hot), 0, "Redis: that of its numbers of papers");
    load(t, w);
    is_int(load_of(t, &w->hot), 7, "until it is loaded again");
    sql(t, w, "UPDATE corpus_load SET ended_at = NOW() WHERE load_no = 8");
    say(t, w, STR("DEL"), key_catalog);
    is_int(load_of(t, &w->hot), 8, "a catalog that says nothing of it is none");
    sql(t, w, "DELETE FROM corpus_load");
}

static void test_many(struct task *t, struct world *w)
{
    sql(t, w,
        "INSERT INTO contentlist SELECT CONCAT('MANY ', seq), NULL, NULL, NULL, seq"
        " FROM seq_1_to_600");
    sql(t, w,
        "INSERT INTO contentlist_year_number SELECT CONCAT('MANY ', seq),"
        " CONCAT('{\"2020\": ', seq, ', \"2021\": 1}') FROM seq_1_to_600");
    load(t, w);
    struct str names[MANY];
    for (int i = 0; i < MANY; i++)
        names[i] = str_printf(task_arena(t), "MANY %d", (i * 7) % MANY + 1);
    struct str text = same_price(t, w, (struct catalog_choice){names, MANY, 2020, 2021}, "many");
    ok(str_starts(text, STR("ok 180900 papers, 7236040000 cents; \"MANY 1\" 2 x 1 = 200; "
                            "\"MANY 8\" 9 x 8 = 7200; ")),
       "600 journals");
    names[MANY - 1] = STR("MANY 601");
    is_str(same_price(t, w, (struct catalog_choice){names, MANY, 2020, 2021}, "the last of many"),
           STR("not_found \"MANY 601\""), "the last of many is not there");
}

/* What Redis answers when it has no catalog, only a part of one, or something else. */
static void test_not_loaded(struct task *t, struct world *w)
{
    struct str nature = STR("NATURE"), unknown = STR("NO SUCH"), glob[] = {STR("odd")};
    struct catalog_choice c = {&nature, 1, 2024, 2024};
    bool degraded = true;
    struct str tags = tags_text(t, &w->hot, &degraded),
               all = journals_text(t, &w->hot, (struct question){0}, true, &degraded),
               tagged =
                   journals_text(t, &w->hot, (struct question){glob, 1, true}, true, &degraded),
               price = price_text(t, &w->hot, c, &degraded);
    say(t, w, STR("FLUSHALL"));
    degraded = true;
    is_str(tags_text(t, &w->hot, &degraded), tags, "tags before they were loaded");
    ok(!degraded, "are not degraded");
    degraded = true;
    is_str(journals_text(t, &w->hot, (struct question){0}, true, &degraded), all,
           "nor all journals");
    ok(!degraded, "which are not degraded either");
    degraded = true;
    is_str(journals_text(t, &w->hot, (struct question){glob, 1, true}, true, &degraded), tagged,
           "nor those of a tag");
    ok(!degraded, "likewise");
    degraded = true;
    is_str(price_text(t, &w->hot, c, &degraded), price, "nor prices");
    ok(!degraded, "likewise");
    c.journals = &unknown;
    is_str(price_text(t, &w->hot, c, &degraded), STR("not_found \"NO SUCH\""),
           "nor what is unknown");
}

static void test_vanished(struct task *t, struct world *w)
{
    struct str tag[] = {STR("神经科学")};
    bool degraded;
    say(t, w, STR("SADD"), key_tag_journals(task_arena(t), tag[0]), STR("GONE"));
    is_str(journals_text(t, &w->hot, (struct question){tag, 1, false}, false, &degraded),
           STR("ok \"NO YEARS\"; "), "a journal that went meanwhile is left out");
    ok(!degraded, "that is no damage");
}

/* Redis lost the list of tags, so the load could not know which were removed. */
static void test_removed_tag(struct task *t, struct world *w)
{
    struct str both[] = {STR("empty"), STR("odd")}, tag[] = {STR("odd")};
    bool degraded;
    struct str before = journals_text(t, &w->hot, (struct question){tag, 1, true}, true, &degraded);
    sql(t, w, "DELETE FROM info_tag WHERE Tag = 'odd'");
    say(t, w, STR("DEL"), key_tags);
    load(t, w);
    is_str(journals_text(t, &w->hot, (struct question){tag, 1, false}, false, &degraded),
           STR("ok "), "a tag that was removed has no journals");
    is_str(journals_text(t, &w->hot, (struct question){tag, 1, true}, false, &degraded), STR("ok "),
           "nor among others");
    is_str(journals_text(t, &w->hot, (struct question){both, 2, true}, false, &degraded),
           STR("ok "), "beside one that has none");
    ok(!degraded, "as Redis has it");
    add_tag(t, w, "odd", "二级分类");
    load(t, w);
    is_str(journals_text(t, &w->hot, (struct question){tag, 1, true}, true, &degraded), before,
           "and comes back with a load");
}

static void test_damage(struct task *t, struct world *w)
{
    struct str nature = STR("NATURE");
    struct catalog_choice c = {&nature, 1, 2024, 2024};
    bool degraded = false;
    struct str all = journals_text(t, &w->hot, (struct question){0}, true, &degraded),
               price = price_text(t, &w->hot, c, &degraded),
               tags = tags_text(t, &w->hot, &degraded);
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    log_setup(LOG_WARN, LOG_TEXT, "test");
    say(t, w, STR("HSET"), key_prices, nature, STR("2.5"));
    is_str(price_text(t, &w->hot, c, &degraded), price, "a damaged price");
    ok(degraded, "is read from MySQL");
    degraded = false;
    is_str(journals_text(t, &w->hot, (struct question){0}, true, &degraded), all, "also in a list");
    ok(degraded && str_find(buf_str(&log), STR("damaged at \"NATURE\"")) > 0, "the log says so");
    load(t, w);
    say(t, w, STR("HSET"), key_journals, nature, STR("{"));
    degraded = false;
    is_str(journals_text(t, &w->hot, (struct question){0}, true, &degraded), all, "damaged JSON");
    ok(degraded, "likewise");
    load(t, w);
    say(t, w, STR("SET"), key_tags, STR("a string"));
    degraded = false;
    is_str(tags_text(t, &w->hot, &degraded), tags, "a key of another type");
    ok(degraded && str_find(buf_str(&log), STR("WRONGTYPE")) > 0, "likewise");
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    log_capture(NULL);
    buf_release(&log);
    say(t, w, STR("DEL"), key_tags);
}

/* Redis goes away in each of the ways that there are. */
static void test_without_redis(struct task *t, struct world *w)
{
    struct str nature = STR("NATURE"), unknown = STR("NO SUCH");
    struct catalog_choice c = {&nature, 1, 2024, 2024};
    bool degraded = false;
    struct str price = price_text(t, &w->hot, c, &degraded);
    for (int way = 0; way < 2; way++) {
        const char *how = way ? "killed" : "frozen";
        if (way)
            store_redis_kill(&store);
        else
            kill(store.pid, SIGSTOP);
        degraded = false;
        is_str(price_text(t, &w->hot, c, &degraded), price, "Redis is %s: MySQL answers", how);
        ok(degraded, "Redis is %s: degraded", how);
        if (way == 0)
            kill(store.pid, SIGCONT);
    }
    c.journals = &unknown;
    is_str(price_text(t, &w->hot, c, &degraded), STR("not_found \"NO SUCH\""),
           "unknown all the same");
    mariadb_stop(&server);
    is_str(price_text(t, &w->hot, c, &degraded), STR("unavailable "), "neither of them");
    is_str(tags_text(t, &w->hot, &degraded), STR("unavailable "), "no tags");
    is_str(journals_text(t, &w->hot, (struct question){0}, false, &degraded), STR("unavailable "),
           "no journals");
    mariadb_restart(&server);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

/* While changes are not known to have reached Redis it is not asked, though it answers. */
static void test_trust(struct task *t, struct world *w)
{
    struct cache *cache =
        cache_new(&(struct cache_options){.redis = w->redis, .sql = w->sql, .metrics = metrics});
    struct catalog c = {.redis = w->redis, .sql = w->sql, .cache = cache};
    struct group background;
    bool degraded = false;
    int64_t commands = redis_count("millrace_redis_commands_total");
    struct str tags = tags_text(t, &c, &degraded);
    ok(degraded, "a Redis that is not trusted");
    is_int(redis_count("millrace_redis_commands_total") - commands, 0, "is not asked");
    group_init(&background, task_loop(t));
    role_in(&background, cache_role, cache, CACHE_LOOK_EACH_MS);
    for (int i = 0; i < 100 && !cache_trusts_redis(cache); i++)
        check(task_sleep(t, 50) == 0);
    is_str(tags_text(t, &c, &degraded), tags, "once it is trusted it says the same");
    ok(!degraded, "and is asked");
    group_cancel(&background);
    check(group_join(t, &background) == 0);
    cache_free(cache);
}

static void run(struct task *t, void *arg)
{
    static void (*const tests[])(struct task * t, struct world * w) = {
        test_tags,        test_all_journals, test_match, test_price,        test_overflow,
        test_round_trips, test_load,         test_many,  test_not_loaded,   test_vanished,
        test_removed_tag, test_damage,       test_trust, test_without_redis};
    (void)arg;
    struct world w;
    struct schema_report r;
    open_world(t, &w);
    check(schema_migrate(t, w.sql, &r) == 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        struct task_scope s = task_scope(t);
        fill(t, &w);
        tests[i](t, &w);
        task_scope_end(t, s);
    }
    close_world(t, &w);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(run, NULL, true);
    metrics_close(metrics);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
