#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"
#include "tool/db/init.h"
#include "tool/db/init_test_folder.h"

#define PAPER_CSV "PaperAndTagInfo/InfoList.Paper.csv"
#define TAG_CSV   "PaperAndTagInfo/InfoList.Tag.csv"
#define PAIR_CSV  "PaperAndTagInfo/InfoList.PaperWithTag.csv"
#define GONE      "is missing; its tables are left unchanged"

static struct test_folder folder;
static struct arena arena;
static struct init_report *report;
static struct init_folder in;
static const char *why;

static void begin(void)
{
    test_folder_make(&folder);
    arena_init(&arena);
    report = init_report_new();
    in = (struct init_folder){.dir = "untouched"};
    why = NULL;
}

static void end(void)
{
    init_report_free(report);
    arena_release(&arena);
    test_folder_remove(&folder);
}

static void put(const char *name, struct str bytes)
{
    test_folder_put(&folder, name, bytes);
}

static int read_it(void)
{
    int err = init_folder_read(&arena, folder.dir, report, &in, &why);
    if (err)
        printf("# %s\n", why);
    return err;
}

static bool lost(const char *path, int64_t line, const char *reason)
{
    return test_problem_is(report, path, line, true, reason);
}

static bool noted(const char *path, int64_t line, const char *reason)
{
    return test_problem_is(report, path, line, false, reason);
}

static bool why_has(const char *text)
{
    return why && str_find(str_of(why), str_of(text)) >= 0;
}

/* --- parts --- */

static void test_no_folder(void)
{
    begin();
    put("Datas/x.bib", STR(""));
    is_int(read_it(), ERR_INVALID, "none of the three parts");
    ok(why_has("is not a data folder: it has neither Data/, PaperAndTagInfo/ nor APIKey/"), "%s",
       why);
    is_str(str_of(in.dir), STR("untouched"), "the result is left alone");
    is_int(init_folder_read(&arena, test_folder_path(&folder, "no"), report, &in, &why),
           ERR_NOT_FOUND, "no folder");
    ok(why_has("/no: No such file"), "%s", why);
    is_int(init_folder_read(&arena, test_folder_path(&folder, "Datas//"), report, &in, &why),
           ERR_INVALID, "another one, with slashes at its end");
    ok(why_has("/Datas is not a data folder"), "%s", why);
    is_int(init_folder_read(&arena, test_folder_path(&folder, "Datas/x.bib"), report, &in, &why),
           ERR_INVALID, "a file instead");
    put("Data", STR("x"));
    is_int(read_it(), ERR_INVALID, "a file where a part should be");
    end();
}

static void test_parts_missing(void)
{
    begin();
    test_folder_mkdir(&folder, "APIKey");
    is_int(read_it(), 0, "one part is enough");
    ok(noted("Data", 0, GONE) && noted("PaperAndTagInfo", 0, GONE), "the others are noted");
    ok(!in.has_rows && !in.has_tags && !in.has_pairs && !in.file_count && !in.key_count, "empty");
    end();
    begin();
    put(TAG_CSV, STR("Tag,TagType\n"));
    is_int(read_it(), 0, "one table is enough");
    ok(noted(PAPER_CSV, 0, GONE) && noted(PAIR_CSV, 0, GONE), "the others are noted");
    ok(in.has_tags && in.tag_count == 0, "an empty table is one");
    ok(!in.has_rows && !in.has_pairs, "missing ones are not");
    end();
}

/* --- Data/ --- */

static void test_files(void)
{
    begin();
    put("Data/b/2.bib", STR("12345"));
    put("Data/b/10.BIB", STR(""));
    put("Data/b/notes.txt", STR("x"));
    put("Data/b/.hidden.bib", STR("x"));
    put("Data/b/.git/x.bib", STR("x"));
    put("Data/b/.bib", STR("x"));
    put("Data/a b/x.bib", STR("x"));
    put("Data/a/y.bib", STR("x"));
    put("Data/期刊/z.bib", STR("x"));
    put("Data/.hidden/x.bib", STR("x"));
    put("Data/readme.txt", STR("x"));
    test_folder_mkdir(&folder, "Data/Z empty");
    is_int(read_it(), 0, "a folder");
    static const char *const want[] = {"Data/a/y.bib", "Data/a b/x.bib", "Data/b/10.BIB",
                                       "Data/b/2.bib", "Data/期刊/z.bib"};
    is_int((int64_t)in.file_count, 5, "files, whatever the case of .bib");
    for (size_t i = 0; i < in.file_count && i < 5; i++)
        is_str(str_of(in.files[i].shown), str_of(want[i]), "byte by byte, number %zu", i);
    struct init_file two = in.files[3];
    ok(str_eq(two.journal, STR("b")) && str_eq(two.name, STR("2.bib")) && two.bytes == 5,
       "what is known of one");
    struct stat st;
    ok(stat(two.path, &st) == 0 &&
           two.changed_ns == st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec,
       "its path, and when it was changed");
    st.st_mtim.tv_sec = INT64_MAX;
    ok(init_changed_ns(&st) != two.changed_ns, "a date that does not fit");
    is_int((int64_t)in.journal_count, 5, "journals, the empty one too");
    is_str(in.journals[0], STR("Z empty"), "in order");
    ok(!test_problem(report, "Data/readme.txt", 0) &&
           !test_problem(report, "Data/b/notes.txt", 0) && !test_problem(report, "Data/b/.git", 0),
       "other files are not reported");
    end();
}

static void test_odd_files(void)
{
    begin();
    put("Data/loose.bib", STR("x"));
    put("Data/J/old/x.bib", STR("x"));
    put("Data/J/bad\xff.bib", STR("x"));
    put("Data/J/new\nline.bib", STR("x"));
    put("Data/J \x09/x.bib", STR("x"));
    put("Data/\xe9t\xe9/x.bib", STR("x"));
    put("Data/ J/x.bib", STR("x"));
    put("elsewhere.bib", STR("1234567"));
    check(symlink("../../elsewhere.bib", test_folder_path(&folder, "Data/J/linked.bib")) == 0);
    check(symlink("nowhere", test_folder_path(&folder, "Data/J/dangling.bib")) == 0);
    check(symlink("J", test_folder_path(&folder, "Data/K")) == 0);
    check(symlink("nowhere", test_folder_path(&folder, "Data/L")) == 0);
    check(mkfifo(test_folder_path(&folder, "Data/J/pipe.bib"), 0600) == 0);
    is_int(read_it(), 0, "odd names");
    ok(lost("Data/loose.bib", 0, "not in the folder of a journal"), "a .bib outside of a journal");
    ok(lost("Data/J/old", 0, "a folder inside a journal's folder is not read"), "a folder in one");
    ok(lost("Data/J/bad\xff.bib", 0, "a name that is not UTF-8"), "a file that is not UTF-8");
    ok(lost("Data/J/new\nline.bib", 0, "a name with control characters"), "a newline");
    ok(lost("Data/J \x09", 0, "a name with control characters"), "a tab in a journal");
    ok(lost("Data/\xe9t\xe9", 0, "a name that is not UTF-8"), "a journal that is not UTF-8");
    ok(lost("Data/ J", 0, "a name with a space at its end or beginning"), "a leading space");
    ok(lost("Data/J/dangling.bib", 0, "cannot be accessed"), "a link to nothing");
    ok(lost("Data/L", 0, "cannot be accessed"), "one in place of a journal");
    ok(in.incomplete && report->totals.files_failed == 3, "they may hold papers: %lld",
       (long long)report->totals.files_failed);
    ok(lost("Data/J/pipe.bib", 0, "not a regular file"), "a pipe");
    is_int((int64_t)in.file_count, 2, "what is left: a link to a file, in a folder and its link");
    ok(str_eq(in.files[0].name, STR("linked.bib")) && in.files[0].bytes == 7, "with its true size");
    is_int((int64_t)in.journal_count, 2, "and two journals");
    end();
}

/* --- tables --- */

static void test_journals(void)
{
    begin();
    put(PAPER_CSV, STR("\xef\xbb\xbf\"price\",NAME,Extra,fullname,UpdateDate,DataRange\r\n"
                       "3, NATURE ,x,\"Nature, the \"\"journal\"\"\",10/31/2025,2011-2025\r\n"
                       "0,FREE,,,,\r\n"
                       "\r\n"
                       "-1,BELOW,,,,\r\n"
                       "1.5,HALF,,,,\r\n"
                       ",NONE,,,,\r\n"
                       "1000001,DEAR,,,,\r\n"
                       "2,,,,,\r\n"
                       "7,NATURE,,,,\r\n"
                       "1,SHORT\r\n"
                       "1000000,\"期刊\",,,,"));
    is_int(read_it(), 0, "a table");
    ok(in.has_rows, "is there");
    is_int((int64_t)in.row_count, 3, "good rows");
    struct init_journal_row r = in.rows[0];
    ok(str_eq(r.name, STR("NATURE")) && r.price == 3, "trimmed, in the columns' own order");
    is_str(r.full_name, STR("Nature, the \"journal\""), "quotes");
    ok(str_eq(r.data_range, STR("2011-2025")) && str_eq(r.update_date, STR("10/31/2025")), "rest");
    ok(in.rows[1].price == 0 && !in.rows[1].full_name.p, "free of charge, and without more");
    ok(str_eq(in.rows[2].name, STR("期刊")) && in.rows[2].price == 1000000, "the last line");
    const char *price = "the price is not a whole number from 0 to 1000000";
    ok(lost(PAPER_CSV, 5, price) && lost(PAPER_CSV, 6, price) && lost(PAPER_CSV, 7, price) &&
           lost(PAPER_CSV, 8, price),
       "bad prices");
    is_str(test_problem(report, PAPER_CSV, 6)->about, STR("HALF"), "and whose");
    ok(lost(PAPER_CSV, 9, "no name"), "no name");
    ok(lost(PAPER_CSV, 10, "an earlier row has this name"), "twice");
    ok(lost(PAPER_CSV, 11, "a row that cannot be read"), "too few cells");
    is_str(test_problem(report, PAPER_CSV, 11)->about, STR("2 cells, the header has 6"), "why");
    is_int(report->totals.journals_found, 3, "counted");
    end();
}

static void refuses(const char *file, struct str text, const char *reason)
{
    begin();
    put(file, text);
    is_int(read_it(), ERR_INVALID, "%s is refused", file);
    ok(why_has(file) && why_has(reason), "%s", why);
    end();
}

static void test_missing_columns(void)
{
    refuses(PAPER_CSV, STR("Name,FullName\nA,B\n"), "there is no column \"Price\"");
    refuses(PAPER_CSV, STR("FullName,Price\nA,1\n"), "there is no column \"Name\"");
    refuses(TAG_CSV, STR("Tag,Type\nA,B\n"), "there is no column \"TagType\"");
    refuses(PAIR_CSV, STR("Name;Tag\nA;B\n"),
            "there is no column \"Name\"; the first row has no commas");
    refuses(PAIR_CSV, STR(""), "no header row");
    begin();
    test_folder_mkdir(&folder, PAPER_CSV);
    is_int(read_it(), ERR_INVALID, "a folder instead of a table");
    end();
    begin();
    put(TAG_CSV, STR("Tag,TagType\n"));
    check(truncate(test_folder_path(&folder, TAG_CSV), (64 << 20) + 1) == 0);
    is_int(read_it(), ERR_INVALID, "a table that is too large");
    ok(why_has("is larger than 64 MB"), "%s", why);
    end();
}

static void test_long_names(void)
{
    begin();
    char text[600] = "Tag,TagType\n";
    size_t n = strlen(text);
    memset(text + n, 'x', 255);
    n += 255;
    n += (size_t)snprintf(text + n, sizeof text - n, ",t\n");
    memset(text + n, 'y', 256);
    n += 256;
    n += (size_t)snprintf(text + n, sizeof text - n, ",t\n");
    put(TAG_CSV, str_from(text, n));
    is_int(read_it(), 0, "long names");
    is_int((int64_t)in.tag_count, 1, "255 bytes are the limit");
    ok(lost(TAG_CSV, 3, "a name of more than 255 bytes"), "and told");
    end();
}

/* 物理 一级分类 生物 二级分类 in GBK, with enough Chinese around it to be known by. */
static void test_gbk(void)
{
    begin();
    put(TAG_CSV, STR("Tag,TagType\r\n"
                     "\xce\xef\xc0\xed,\xd2\xbb\xbc\xb6\xb7\xd6\xc0\xe0\r\n"
                     "\xc9\xfa\xce\xef,\xb6\xfe\xbc\xb6\xb7\xd6\xc0\xe0\r\n"
                     "\xce\xef\xc0\xed,\xb6\xfe\xbc\xb6\xb7\xd6\xc0\xe0\r\n"
                     "\xbb\xaf\xd1\xa7,\r\n"));
    put(PAIR_CSV, STR("Tag,Name\n物理,NATURE\n物理,CELL\n物理,NATURE\n,CELL\n物理,\n"));
    is_int(read_it(), 0, "a table in GBK");
    ok(noted(TAG_CSV, 0, "converted to UTF-8"), "is noted");
    is_str(test_problem(report, TAG_CSV, 0)->about, STR("from GB18030"), "from what");
    is_int((int64_t)in.tag_count, 2, "tags");
    ok(str_eq(in.tags[0].first, STR("物理")) && str_eq(in.tags[0].second, STR("一级分类")) &&
           in.tags[0].line == 2,
       "in UTF-8");
    ok(lost(TAG_CSV, 4, "an earlier row has this tag"), "twice");
    ok(lost(TAG_CSV, 5, "the type is missing or invalid"), "without a type");
    is_int((int64_t)in.pair_count, 2, "pairs");
    ok(str_eq(in.pairs[1].first, STR("CELL")) && str_eq(in.pairs[1].second, STR("物理")) &&
           in.pairs[1].line == 3,
       "by the names of columns");
    ok(noted(PAIR_CSV, 4, "an earlier row has this pair"), "a pair twice does no harm");
    ok(lost(PAIR_CSV, 5, "no name") && lost(PAIR_CSV, 6, "no name"), "half pairs");
    ok(report->totals.tags == 2 && report->totals.pairs == 2, "counted");
    end();
}

/* --- keys --- */

static bool shows(struct str secret)
{
    for (size_t i = 0; i < report->problem_count; i++)
        if (str_find(report->problems[i].about, secret) >= 0)
            return true;
    return false;
}

static void test_keys(void)
{
    begin();
    char longest[600];
    memset(longest, 'k', sizeof longest);
    struct str text =
        STR("\xef\xbb\xbf# of the lab\r\n\r\nsk-first-key\r\n  sk-second-key\t\r\nshort\r\n"
            "two words here\r\nsk-schl\xc3\xbcssel\r\nsk-first-key\r\nsk-last-key");
    put("APIKey/b.txt", text);
    put("APIKey/a.TXT", str_printf(&arena, "%.512s\n%.513s\nsk-second-key\n", longest, longest));
    put("APIKey/c.csv", STR("sk-not-a-text\n"));
    put("APIKey/.d.txt", STR("sk-hidden-key\n"));
    put("APIKey/e/f.txt", STR("sk-too-deep-key\n"));
    put("APIKey/empty.txt", STR(""));
    test_folder_mkdir(&folder, "APIKey/dir.txt");
    check(symlink("nowhere", test_folder_path(&folder, "APIKey/z.txt")) == 0);
    is_int(read_it(), 0, "keys");
    is_int((int64_t)in.key_count, 4, "each once");
    ok(in.keys[0].key.n == 512 && str_eq(in.keys[0].name, STR("a")), "the longest one");
    ok(str_eq(in.keys[1].key, STR("sk-second-key")) && str_eq(in.keys[1].name, STR("a")),
       "the first file has it");
    ok(!test_problem(report, "APIKey/b.txt", 4), "blanks around a key do no harm");
    ok(str_eq(in.keys[2].key, STR("sk-first-key")) && str_eq(in.keys[2].name, STR("b")), "no mark");
    ok(str_eq(in.keys[3].key, STR("sk-last-key")), "no newline at the end");
    ok(lost("APIKey/b.txt", 5, "not a key: it is shorter than 8 characters"), "short");
    ok(lost("APIKey/b.txt", 6, "not a key: it has spaces, or is not plain ASCII"), "words");
    ok(lost("APIKey/b.txt", 7, "not a key: it has spaces, or is not plain ASCII"), "letters");
    ok(lost("APIKey/a.TXT", 2, "not a key: it is longer than 512 characters"), "long");
    ok(lost("APIKey/z.txt", 0, "cannot be accessed"), "a link to nothing");
    ok(lost("APIKey/dir.txt", 0, "not a regular file"), "a folder");
    ok(!shows(STR("short")) && !shows(STR("words")) && !shows(STR("sk-")) && !shows(STR("kkk")),
       "none is ever shown");
    is_int(report->totals.keys_found, 4, "counted");
    end();
}

int main(void)
{
    test_no_folder();
    test_parts_missing();
    test_files();
    test_odd_files();
    test_journals();
    test_missing_columns();
    test_long_names();
    test_gbk();
    test_keys();
    return tap_done();
}
