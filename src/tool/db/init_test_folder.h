/* init_test_folder.h -- real folders for tests, and access to reports. */
#ifndef TOOL_DB_INIT_TEST_FOLDER_H
#define TOOL_DB_INIT_TEST_FOLDER_H

#include "tool/db/init_report.h"

struct test_folder {
    char dir[64]; /* below /tmp */
};

void test_folder_make(struct test_folder *f);
void test_folder_remove(struct test_folder *f);
void test_folder_mkdir(struct test_folder *f, const char *name);                 /* parents too */
void test_folder_put(struct test_folder *f, const char *name, struct str bytes); /* likewise */
const char *test_folder_path(struct test_folder *f, const char *name); /* until the next call */

/* The problem at that place; NULL when there is none. */
const struct init_problem *test_problem(const struct init_report *r, const char *path,
                                        int64_t line);
/* The same, with that reason? */
bool test_problem_is(const struct init_report *r, const char *path, int64_t line, bool lost,
                     const char *reason);
#endif
