#include "tool/db/init_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "tests/tap.h"
#include "tool/db/init_test_folder.h"

static struct test_folder folder;
static struct arena arena;

static struct str read_file(const char *name)
{
    int fd = open(test_folder_path(&folder, name), O_RDONLY | O_CLOEXEC);
    size_t room = 8 << 20;
    char *p = arena_alloc(&arena, room);
    ssize_t n = fd < 0 ? -1 : read(fd, p, room);
    close(fd);
    return n < 0 ? STR_NULL : str_from(p, (size_t)n);
}

/* What init_report_print writes to standard output. */
static struct str printed(const struct init_report *r, bool all)
{
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    int fd = open(test_folder_path(&folder, "out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(old >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
    init_report_print(r, all);
    fflush(stdout);
    check(dup2(old, STDOUT_FILENO) >= 0);
    close(old);
    close(fd);
    return read_file("out");
}

static bool has(struct str text, const char *part)
{
    return str_find(text, str_of(part)) >= 0;
}

static const struct json *saved(const struct init_report *r)
{
    const struct json *j = NULL;
    struct json_error e = {.message = "not written"};
    if (init_report_save(r, test_folder_path(&folder, "report.json")) ||
        json_parse(&arena, read_file("report.json"), &j, &e))
        printf("# %zu:%zu: %s\n", e.line, e.column, e.message);
    return j;
}

static int64_t number(const struct json *j, const char *name)
{
    int64_t v = -1;
    json_int(json_get(j, name), &v);
    return v;
}

static struct init_report *made(void)
{
    struct init_report *r = init_report_new();
    *init_report_journal(r, STR("NATURE")) =
        (struct init_counts){.read = 1234567, .stored = 1234560, .duplicate = 4, .rejected = 3};
    init_report_journal(r, STR("期刊"))->read = 2;
    init_report_journal(r, STR("期刊"))->unchanged = 2;
    init_report_journal(r, STR("CELL"))->read = 1;
    init_report_journal(r, STR("CELL"))->updated = 1;
    init_report_journal(r, STR("CELL"))->made_up = 1;
    init_report_journal(r, STR("EMPTY"));
    r->totals = (struct init_totals){.files_read = 7,
                                     .keys_found = 5,
                                     .keys_new = 2,
                                     .pairs_changed = 11,
                                     .blocks_changed = 9,
                                     .dictionary = 77,
                                     .seconds = 1.5};
    init_report_problem(r, "Data/CELL/a.bib", 3, false, "converted", STR("from GB18030"));
    init_report_problem(r, "Data/NATURE/2024.bib", 17, true, "no year", STR("entry smith2024"));
    init_report_problem(r, "Data/NATURE/2024.bib", 19, true, "no year", STR_NULL);
    init_report_problem(r, "Data/x\nok 1\x1b[2J", 0, true, "a name",
                        STR("\x1b]0;title\x07 \xc2\x9b \xff \xe2\x80\xae\xe2\x81\xa7 北京"));
    return r;
}

static void test_print(void)
{
    struct init_report *r = made();
    struct str s = printed(r, false);
    ok(has(s, "papers      1234570 read: 1234560 stored, 1 updated, 2 unchanged, 4 duplicate, 3 "
              "rejected\n            of those accepted 1 without a DOI, 0 without an abstract\n"),
       "the sum");
    ok(has(s, "files       7 read, 0 unchanged, 0 failed\n"), "files");
    ok(has(s, "keys        5 found, 2 new\n") && has(s, "dictionary  77 is new\n"), "the rest");
    ok(has(s, "\njournal     read   stored  updated  unchanged  duplicate  rejected\n"
              "CELL           1        0        1          0          0         0\n"
              "NATURE   1234567  1234560        0          0          4         3\n"
              "期刊           2        0        0          2          0         0\n\n"),
       "journals where something was read, by name, in columns");
    ok(has(s, "\nleft out\n         2  no year\n         1  a name\n"
              "\nnotes\n         1  converted\n"),
       "reasons");
    ok(has(s, "\n\nData/NATURE/2024.bib:17: no year (entry smith2024)\n"
              "Data/NATURE/2024.bib:19: no year\n"),
       "problems, lost ones first");
    ok(str_ends(s, STR("Data/CELL/a.bib:3: converted (from GB18030)\n")), "notes last");
    ok(has(s, "\nData/x?ok 1?[2J: a name (?]0;title? ? \xef\xbf\xbd ?? 北京)\n"),
       "no characters that control a terminal");
    init_report_free(r);
}

static void test_json(void)
{
    struct init_report *r = made();
    const struct json *j = saved(r);
    struct stat st;
    check(stat(test_folder_path(&folder, "report.json"), &st) == 0);
    is_int(st.st_mode & 07777, 0644, "readable for all");
    const struct json *papers = json_get(j, "papers"), *catalog = json_get(j, "catalog");
    ok(number(papers, "read") == 1234570 && number(papers, "stored") == 1234560 &&
           number(papers, "updated") == 1 && number(papers, "unchanged") == 2 &&
           number(papers, "duplicate") == 4 && number(papers, "rejected") == 3 &&
           number(papers, "made_up") == 1 && number(papers, "bare") == 0,
       "the sum");
    ok(number(json_get(j, "files"), "read") == 7 && number(json_get(j, "keys"), "new") == 2 &&
           number(catalog, "pairs_changed") == 11 && number(j, "blocks_changed") == 9 &&
           number(j, "dictionary") == 77,
       "totals");
    ok(json_get(j, "seconds") && json_get(j, "seconds")->type == JSON_REAL, "seconds");
    const struct json *journals = json_get(j, "journals");
    is_int(journals ? journals->count : 0, 3, "journals where something was read");
    is_str(json_str(json_get(json_first(journals), "name")), STR("CELL"), "by name");
    is_int(number(json_get(j, "reasons"), "no year"), 2, "reasons");
    const struct json *problems = json_get(j, "problems"), *first = json_first(problems);
    is_int(problems ? problems->count : 0, 4, "problems");
    bool lost = true;
    ok(json_bool(json_get(first, "lost"), &lost) && !lost && number(first, "line") == 3 &&
           str_eq(json_str(json_get(first, "file")), STR("Data/CELL/a.bib")) &&
           str_eq(json_str(json_get(first, "about")), STR("from GB18030")) &&
           str_eq(json_str(json_get(first, "reason")), STR("converted")),
       "as they came");
    is_int(number(j, "problems_left_out"), 0, "all of them");
    init_report_free(r);
}

static void test_many(void)
{
    struct init_report *r = init_report_new();
    for (int i = 0; i < 45; i++)
        init_report_journal(r, str_printf(&arena, "J%02d", i))->read = 1;
    for (int i = 0; i < INIT_PROBLEMS_MAX + 100; i++)
        init_report_problem(r, "a", i, false, "a note", STR(""));
    for (int i = 1; i <= INIT_PROBLEMS_MAX; i++)
        init_report_problem(r, "b", i, true, "a loss", STR(""));
    struct str s = printed(r, false);
    ok(has(s, "\nJ39 ") && !has(s, "\nJ40 ") && has(s, "\n… and 5 more, see --report\n"),
       "forty journals");
    ok(has(printed(r, true), "\nJ44 "), "or all");
    ok(has(s, "\nb:20: a loss\n… and 20080 more, see --report\n") && !has(s, "\na:"),
       "twenty problems");
    ok(has(s, "     10000  a loss\n") && has(s, "     10100  a note\n"), "all are counted");
    const struct json *j = saved(r);
    is_int(json_get(j, "problems") ? json_get(j, "problems")->count : 0, INIT_PROBLEMS_MAX, "kept");
    is_int(number(j, "problems_left_out"), INIT_PROBLEMS_MAX + 100, "the others are counted");
    init_report_free(r);
}

static void test_long(void)
{
    struct init_report *r = init_report_new();
    char text[1000];
    for (size_t i = 0; i + 3 <= sizeof text; i += 3)
        memcpy(text + i, "北", 3);
    init_report_problem(r, "a", 1, true, "x", str_from(text, 999));
    struct str about = r->problems[0].about;
    ok(about.n <= 203 && str_utf8_valid(about) && str_ends(about, STR("北…")), "cut: %s", about.p);
    init_report_free(r);
}

static void test_save_fails(void)
{
    struct init_report *r = made();
    errno = 0;
    is_int(init_report_save(r, test_folder_path(&folder, "no/report.json")), ERR_IO, "no folder");
    is_int(errno, ENOENT, "and errno says why");
    test_folder_mkdir(&folder, "taken");
    is_int(init_report_save(r, test_folder_path(&folder, "taken")), ERR_IO, "a folder");
    is_int(errno, EISDIR, "and why");
    /* By way of links, so that a save which does replace them replaces those. */
    check(symlink("/dev/full", test_folder_path(&folder, "full")) == 0);
    check(symlink("/dev/null", test_folder_path(&folder, "null")) == 0);
    is_int(init_report_save(r, test_folder_path(&folder, "full")), ERR_IO, "a full disk");
    is_int(errno, ENOSPC, "and why");
    struct stat st;
    ok(init_report_save(r, test_folder_path(&folder, "null")) == 0 &&
           lstat(test_folder_path(&folder, "null"), &st) == 0 && S_ISLNK(st.st_mode),
       "a device is written to, not replaced");
    init_report_free(r);
}

int main(void)
{
    arena_init(&arena);
    test_folder_make(&folder);
    test_print();
    test_json();
    test_many();
    test_long();
    test_save_fails();
    test_folder_remove(&folder);
    arena_release(&arena);
    return tap_done();
}
