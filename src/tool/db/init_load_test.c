/* What init_keys, init_journals and init_tags make of a folder, in a real database; and what a load
 * does that was overtaken. */
#include <stdio.h>

#include "base/log.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/tap.h"
#include "tool/db/init_left.h"
#include "tool/db/init_test_folder.h"

#define PAPER_CSV "PaperAndTagInfo/InfoList.Paper.csv"
#define TAG_CSV   "PaperAndTagInfo/InfoList.Tag.csv"
#define PAIR_CSV  "PaperAndTagInfo/InfoList.PaperWithTag.csv"

static struct mariadb server;
static struct test_folder folder;

struct load {
    struct init in;
    struct db db;
};

/* Reads the folder as it is now. */
static void begin(struct task *t, struct load *l)
{
    *l = (struct load){.in = {.report = init_report_new()}};
    l->in.db = &l->db;
    l->db.sql =
        sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url, .connections_max = 1});
    const char *why = NULL;
    if (init_folder_read(task_arena(t), folder.dir, l->in.report, &l->in.folder, &why))
        printf("# %s\n", why);
    check(!why);
}

static void end(struct load *l)
{
    init_report_free(l->in.report);
    sql_pool_free(l->db.sql);
}

static const struct init_totals *totals(struct load *l)
{
    return &l->in.report->totals;
}

static void put(const char *name, struct str bytes)
{
    test_folder_put(&folder, name, bytes);
}

static void run(struct task *t, struct load *l, const char *statement)
{
    int err = sql_argv(t, l->db.sql, statement, 0, NULL, NULL);
    if (err)
        printf("# %s\n", task_error(t));
    check(!err);
}

/* The rows of a table in one line. */
static struct str rows(struct task *t, struct load *l, const char *select)
{
    struct sql_rows r;
    check(sql_argv(t, l->db.sql, select, 0, NULL, &r) == 0);
    struct str all = STR("");
    for (size_t i = 0; i < r.count; i++) {
        for (size_t k = 0; k < r.columns; k++) {
            struct sql_value v = sql_row(&r, i)[k];
            struct str cell = v.type == SQL_INT ? str_printf(task_arena(t), "%lld", (long long)v.i)
                              : v.type == SQL_NULL ? STR("NULL")
                                                   : v.s;
            all = str_printf(task_arena(t), "%.*s%s%.*s", STR_ARG(all),
                             k   ? "|"
                             : i ? "  "
                                 : "",
                             STR_ARG(cell));
        }
    }
    return all;
}

/* --- keys --- */

#define KEY_ROWS                                                                                   \
    "SELECT api_index, api_key, api_name, rpm_limit, is_active FROM api_list ORDER BY api_index"

static void test_keys(struct task *t, void *arg)
{
    (void)arg;
    put("APIKey/lab.txt", STR("sk-key-one\nsk-key-two\n"));
    struct load l;
    begin(t, &l);
    run(t, &l,
        "INSERT INTO api_list (api_key, api_name, rpm_limit, is_active)"
        " VALUES ('sk-key-two', 'mine', 5, 0)");
    is_int(init_keys(t, &l.in), 0, "keys are stored: %s", task_error(t));
    ok(totals(&l)->keys_found == 2 && totals(&l)->keys_new == 1, "one is new");
    struct str want = STR("1|sk-key-two|mine|5|0  2|sk-key-one|lab|3000|1");
    is_str(rows(t, &l, KEY_ROWS), want, "the other one stays as it is");
    end(&l);
    put("APIKey/more.txt", STR("sk-key-three\nsk-key-one\n"));
    begin(t, &l);
    is_int(init_keys(t, &l.in), 0, "once more");
    is_int(totals(&l)->keys_new, 1, "adds what is new");
    is_str(rows(t, &l, "SELECT api_index, api_name FROM api_list ORDER BY api_index"),
           STR("1|mine  2|lab  3|more"), "and uses up no numbers");
    end(&l);
}

/* A key must not come back in the words of an error either. */
static void test_key_secret(struct task *t, void *arg)
{
    (void)arg;
    struct load l;
    begin(t, &l);
    run(t, &l, "DELETE FROM api_list");
    run(t, &l, "CREATE TRIGGER twice BEFORE INSERT ON api_list FOR EACH ROW SET NEW.api_index = 1");
    is_int(init_keys(t, &l.in), ERR_EXISTS, "a database that refuses");
    ok(str_find(str_of(task_error(t)), STR("sk-key")) < 0, "says: %s", task_error(t));
    is_str(rows(t, &l, "SELECT COUNT(*) FROM api_list"), STR("0"), "all or nothing");
    is_int(totals(&l)->keys_new, 0, "and nothing is counted");
    run(t, &l, "DROP TRIGGER twice");
    end(&l);
}

/* --- journals --- */

#define JOURNAL_ROWS "SELECT * FROM contentlist ORDER BY Name"

static void test_journals(struct task *t, void *arg)
{
    (void)arg;
    put(PAPER_CSV, STR("Name,FullName,DataRange,UpdateDate,Price\n"
                       "NATURE,Nature,2011-2025,10/31/2025,3\nCELL,,,,0\nBAD,Bad,,,x\n"));
    put("Data/NATURE/1.bib", STR("x"));
    put("Data/BAD/1.bib", STR("x"));
    put("Data/新刊/1.bib", STR("x"));
    struct load l;
    begin(t, &l);
    run(t, &l,
        "INSERT INTO contentlist VALUES ('OLD', 'Old one', NULL, NULL, 9),"
        " ('NATURE', 'Nature', '2011-2025', '10/31/2025', 2)");
    is_int(init_journals(t, &l.in), 0, "journals are stored: %s", task_error(t));
    is_str(rows(t, &l, JOURNAL_ROWS),
           STR("BAD|BAD|NULL|NULL|1  CELL|CELL|NULL|NULL|0  NATURE|Nature|2011-2025|10/31/2025|3  "
               "OLD|Old one|NULL|NULL|9  新刊|新刊|NULL|NULL|1"),
           "added, updated, left alone");
    ok(totals(&l)->journals_found == 2 && totals(&l)->journals_changed == 4, "counted");
    const char *assumed = "no valid row in InfoList.Paper.csv; price 1 is assumed";
    ok(test_problem_is(l.in.report, "Data/新刊", 0, false, assumed) &&
           test_problem_is(l.in.report, "Data/BAD", 0, false, assumed),
       "folders without a price are told");
    ok(!test_problem(l.in.report, "Data/NATURE", 0), "and only those");
    end(&l);
    begin(t, &l);
    is_int(init_journals(t, &l.in), 0, "once more");
    is_int(totals(&l)->journals_changed, 0, "changes nothing");
    ok(!test_problem(l.in.report, "Data/新刊", 0), "what is in the table has a price");
    end(&l);
    put(PAPER_CSV, STR("Name,FullName,DataRange,UpdateDate,Price\n新刊,New,,,1\n"));
    begin(t, &l);
    is_int(init_journals(t, &l.in), 0, "a shorter table");
    is_int(totals(&l)->journals_changed, 1, "changes what it names");
    is_str(rows(t, &l, "SELECT Name, FullName FROM contentlist ORDER BY Name"),
           STR("BAD|BAD  CELL|CELL  NATURE|Nature  OLD|Old one  新刊|New"), "and deletes nothing");
    end(&l);
}

/* --- tags --- */

#define TAG_ROWS  "SELECT * FROM info_tag ORDER BY Tag"
#define PAIR_ROWS "SELECT * FROM info_paper_with_tag ORDER BY id"

static void test_tags(struct task *t, void *arg)
{
    (void)arg;
    put(TAG_CSV, STR("Tag,TagType\n物理,一级\nPhysics,one\nphysics,one\n"));
    put(PAIR_CSV, STR("Name,Tag\nNATURE,物理\nNATURE,Physics\nNOWHERE,物理\nCELL,chemistry\n"
                      "CELL,物理\n"));
    struct load l;
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "tags are stored: %s", task_error(t));
    is_str(rows(t, &l, TAG_ROWS), STR("Physics|one  physics|one  物理|一级"), "bytes decide");
    is_str(rows(t, &l, PAIR_ROWS), STR("1|NATURE|物理  2|NATURE|Physics  3|CELL|物理"), "pairs");
    ok(test_problem_is(l.in.report, PAIR_CSV, 4, true, "an unknown journal"), "unknown journal");
    ok(test_problem_is(l.in.report, PAIR_CSV, 5, true, "an unknown tag"), "unknown tag");
    is_str(test_problem(l.in.report, PAIR_CSV, 5)->about, STR("CELL, chemistry"), "which");
    ok(totals(&l)->tags == 3 && totals(&l)->tags_changed == 3 && totals(&l)->pairs == 3 &&
           totals(&l)->pairs_changed == 3,
       "counted");
    end(&l);
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "once more");
    ok(totals(&l)->tags == 3 && totals(&l)->tags_changed == 0 && totals(&l)->pairs == 3 &&
           totals(&l)->pairs_changed == 0,
       "changes nothing");
    end(&l);
    put(TAG_CSV, STR("Tag,TagType\n物理,二级\nphysics,One\nnew,one\n"));
    put(PAIR_CSV, STR("Name,Tag\nCELL,new\nCELL,物理\n"));
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "other tags");
    is_str(rows(t, &l, TAG_ROWS), STR("new|one  physics|One  物理|二级"),
           "are added, changed and deleted");
    is_str(rows(t, &l, PAIR_ROWS), STR("3|CELL|物理  4|CELL|new"), "pairs too");
    ok(totals(&l)->tags_changed == 4 && totals(&l)->pairs_changed == 3, "counted");
    end(&l);
}

static void test_tags_missing(struct task *t, void *arg)
{
    (void)arg;
    struct load l;
    check(remove(test_folder_path(&folder, TAG_CSV)) == 0);
    put(PAIR_CSV, STR("Name,Tag\nNATURE,new\nNATURE,Physics\n"));
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "without the table of tags");
    is_str(rows(t, &l, TAG_ROWS), STR("new|one  physics|One  物理|二级"), "they stay");
    is_str(rows(t, &l, "SELECT Name, Tag FROM info_paper_with_tag"), STR("NATURE|new"),
           "and pairs are checked against them");
    ok(totals(&l)->tags == 3 && totals(&l)->tags_changed == 0, "counted");
    end(&l);
    check(remove(test_folder_path(&folder, PAIR_CSV)) == 0);
    begin(t, &l);
    run(t, &l,
        "INSERT INTO info_paper_with_tag (Name, Tag) VALUES ('CELL', 'physics'), ('CELL', "
        "'ghost')");
    is_int(init_tags(t, &l.in), 0, "without both");
    is_str(rows(t, &l, "SELECT Name, Tag FROM info_paper_with_tag ORDER BY id"),
           STR("NATURE|new  CELL|physics  CELL|ghost"), "nothing happens");
    end(&l);
    put(TAG_CSV, STR("Tag,TagType\nphysics,one\n"));
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "without the pairs");
    is_str(rows(t, &l, "SELECT Name, Tag FROM info_paper_with_tag"), STR("CELL|physics"),
           "those of a tag that is gone go with it");
    ok(totals(&l)->pairs == 1 && totals(&l)->pairs_changed == 2, "counted");
    end(&l);
}

/* --- many --- */

#define MANY 1300 /* more than one slice of a bulk, and no multiple of what is deleted at once */

static void put_many(int first)
{
    struct buf tags, pairs;
    buf_init(&tags);
    buf_init(&pairs);
    buf_add_lit(&tags, "Tag,TagType\n");
    buf_add_lit(&pairs, "Name,Tag\n");
    for (int i = first; i < MANY; i++) {
        buf_printf(&tags, "tag %d,type\n", i);
        buf_printf(&pairs, "CELL,tag %d\nNATURE,tag %d\n", i, i);
    }
    put(TAG_CSV, buf_str(&tags));
    put(PAIR_CSV, buf_str(&pairs));
    buf_release(&tags);
    buf_release(&pairs);
}

static struct str digest(struct task *t, struct load *l)
{
    run(t, l, "SET group_concat_max_len = 1000000");
    return rows(t, l,
                "SELECT COUNT(*), MIN(id), MAX(id), MD5(GROUP_CONCAT(id, Name, Tag ORDER BY id))"
                " FROM info_paper_with_tag");
}

static void test_many(struct task *t, void *arg)
{
    (void)arg;
    struct load l;
    struct str seen[2];
    put_many(0);
    for (int i = 0; i < 2; i++) {
        begin(t, &l);
        run(t, &l, "TRUNCATE info_tag");
        run(t, &l, "TRUNCATE info_paper_with_tag");
        is_int(init_tags(t, &l.in), 0, "many tags, round %d", i);
        seen[i] = digest(t, &l);
        end(&l);
    }
    ok(str_starts(seen[0], STR("2600|1|")), "all of them: %s", seen[0].p);
    is_str(seen[1], seen[0], "an empty database gets the same numbers again");
    put_many(1299);
    begin(t, &l);
    is_int(init_tags(t, &l.in), 0, "nearly all are taken away");
    is_str(rows(t, &l, "SELECT Name, Tag FROM info_paper_with_tag ORDER BY id"),
           STR("CELL|tag 1299  NATURE|tag 1299"), "the rest");
    is_str(rows(t, &l, TAG_ROWS), STR("tag 1299|type"), "of the tags too");
    ok(totals(&l)->tags_changed == 1299 && totals(&l)->pairs_changed == 2598, "counted");
    end(&l);
}

/* --- papers that have left --- */

#define FILE_ROWS "SELECT file, left_papers FROM corpus_file ORDER BY file"

static void test_overtaken(struct task *t, void *arg)
{
    (void)arg;
    struct load l;
    struct init_known gone = {STR("J"), STR("1.bib"), INIT_GONE, 0, 0, 3};
    struct map *left = map_new(), *blocks = map_new();
    struct init_read read;
    init_read_init(&read);
    map_set(read.known, STR("J/1.bib"), &gone);
    begin(t, &l);
    run(t, &l,
        "INSERT INTO corpus_file (journal, file, bytes, changed_ns, digest, left_papers) VALUES"
        " ('J', '1.bib', -1, 0, 0, 3), ('J', '2.bib', 10, 0, 0, 4)");
    check(init_load_begin(t, &l.in) == 0);
    run(t, &l, "INSERT INTO corpus_load (load_no, begun_at) VALUES (1000, UTC_TIMESTAMP(3))");
    is_int(init_left_withdraw(t, &l.in, &read, left, blocks), ERR_BUSY,
           "a later load has begun: files that are gone are not forgotten");
    is_str(rows(t, &l, FILE_ROWS), STR("1.bib|3  2.bib|4"), "and numbers stay");
    run(t, &l, "DELETE FROM corpus_load WHERE load_no = 1000");
    is_int(init_left_withdraw(t, &l.in, &read, left, blocks), 0, "the last load may");
    is_str(rows(t, &l, FILE_ROWS), STR("2.bib|0"), "forget them");
    end(&l);
    init_read_release(&read);
    map_free(left);
    map_free(blocks);
}

static void migrate(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report r;
    check(schema_migrate(t, p, &r) == 0);
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    test_folder_make(&folder);
    mariadb_start(&server, NULL);
    tap_task(migrate, NULL, true);
    tap_task(test_keys, NULL, true);
    tap_task(test_key_secret, NULL, true);
    tap_task(test_journals, NULL, true);
    tap_task(test_tags, NULL, true);
    tap_task(test_tags_missing, NULL, true);
    tap_task(test_many, NULL, true);
    tap_task(test_overtaken, NULL, true);
    mariadb_release(&server);
    test_folder_remove(&folder);
    return tap_done();
}
