#include "tool/db/init_test_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void test_folder_make(struct test_folder *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/millrace-init-XXXXXX");
    check(mkdtemp(f->dir));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void test_folder_remove(struct test_folder *f)
{
    check(nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

const char *test_folder_path(struct test_folder *f, const char *name)
{
    static char path[1024];
    check(snprintf(path, sizeof path, "%s/%s", f->dir, name) < (int)sizeof path);
    return path;
}

static void make_parents(char *path, size_t from)
{
    for (char *p = path + from; (p = strchr(p, '/')); p++) {
        *p = '\0';
        check(mkdir(path, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
}

void test_folder_put(struct test_folder *f, const char *name, struct str bytes)
{
    char path[1024];
    check(snprintf(path, sizeof path, "%s/%s", f->dir, name) < (int)sizeof path);
    make_parents(path, strlen(f->dir) + 1);
    FILE *file = fopen(path, "we");
    check(file && fwrite(bytes.p, 1, bytes.n, file) == bytes.n && fclose(file) == 0);
}

void test_folder_mkdir(struct test_folder *f, const char *name)
{
    char path[1024];
    check(snprintf(path, sizeof path, "%s/%s/", f->dir, name) < (int)sizeof path);
    make_parents(path, strlen(f->dir) + 1);
}

const struct init_problem *test_problem(const struct init_report *r, const char *path, int64_t line)
{
    for (size_t i = 0; i < r->problem_count; i++)
        if (str_eq(r->problems[i].path, str_of(path)) && r->problems[i].line == line)
            return &r->problems[i];
    return NULL;
}

bool test_problem_is(const struct init_report *r, const char *path, int64_t line, bool lost,
                     const char *reason)
{
    const struct init_problem *p = test_problem(r, path, line);
    return p && p->lost == lost && strcmp(p->reason, reason) == 0;
}
