#include "serve/datadir.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/setup/stores.h"
#include "tests/tap.h"

static struct arena arena;
static char dir[] = "/tmp/datadir_test.XXXXXX";

static const char *in_dir(const char *name)
{
    return arena_printf(&arena, "%s/%s", dir, name);
}

static int mode(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int)st.st_mode & 07777 : -1;
}

static int open_it(const char *path, struct datadir *d, const char **why)
{
    *why = "";
    return datadir_open(&arena, path, getuid(), getgid(), d, why);
}

static void test_open(void)
{
    struct datadir d, second;
    const char *why;
    const char *path = in_dir("a/b/./var");
    is_int(open_it(path, &d, &why), 0, "a new one, folders above included: %s", why);
    is_str(str_of(d.path), str_of(in_dir("a/b/var")), "its path is clean");
    is_int(mode(d.path), 0700, "private");
    is_int(mode(in_dir("a/b/var/secret")), 0700, "and what is in it");
    is_int(open_it(path, &second, &why), ERR_BUSY, "it is locked");
    is_str(str_of(why),
           str_of(arena_printf(&arena, "another millrace (pid %d) is running on %s", (int)getpid(),
                               d.path)),
           "by which process");
    close(d.lock_fd);
    chmod(d.path, 0755);
    is_int(open_it(path, &d, &why), 0, "again, after the lock is free: %s", why);
    is_int(mode(d.path), 0700, "rights are put right");
    close(d.lock_fd);
}

static void test_foreign(void)
{
    struct datadir d;
    const char *why;
    check(mkdir(in_dir("home"), 0755) == 0);
    close(open(in_dir("home/letter"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    is_int(open_it(in_dir("home"), &d, &why), ERR_INVALID,
           "a folder with other files is refused: %s", why);
    is_int(mode(in_dir("home")), 0755, "and not touched");
    is_int(open_it(in_dir("home/letter"), &d, &why), ERR_INVALID, "so is a file: %s", why);
    is_int(mode(in_dir("home/letter")), 0644, "which is not touched either");
    unlink(in_dir("home/letter"));
    is_int(open_it(in_dir("home"), &d, &why), 0, "an empty folder is taken: %s", why);
    is_int(mode(in_dir("home")), 0700, "and made private");
    close(d.lock_fd);
    is_int(open_it("/proc/nowhere", &d, &why), ERR_IO, "no room there: %s", why);
    ok(strstr(why, "/proc/nowhere"), "the path is named");
}

static void test_files(void)
{
    struct loop *l = loop_new(NULL);
    const char *first = NULL, *again = NULL, *other = NULL, *why = "";
    const char *var = in_dir("a/b/var");
    is_int(datadir_secret(&arena, l, var, "redis", &first, &why), 0, "a secret is made %s", why);
    is_int((int64_t)strlen(first), 48, "long enough");
    is_int(mode(in_dir("a/b/var/secret/redis")), 0600, "and private");
    is_int(datadir_secret(&arena, l, var, "redis", &again, &why), 0, "read again %s", why);
    is_str(str_of(again), str_of(first), "it is the same");
    is_int(datadir_secret(&arena, l, var, "mariadb", &other, &why), 0, "another one %s", why);
    ok(strcmp(first, other) != 0, "differs");
    check(truncate(in_dir("a/b/var/secret/redis"), 10) == 0);
    is_int(datadir_secret(&arena, l, var, "redis", &again, &why), 0, "a broken file %s", why);
    ok(strlen(again) == 48 && strcmp(again, first) != 0, "is made anew");
    loop_free(l);

    struct config c = {
        .redis_url = "", .mysql_url = "", .redis_password = "", .mysql_password = ""};
    struct stores s;
    c.data_dir = var;
    is_int(stores_find(&arena, &c, &s, &why), 0, "others find the stores: %s", why);
    is_str(str_of(s.redis_password), str_of(again), "with the password");
    is_str(str_of(s.redis_url), str_of(arena_printf(&arena, "unix:%s/run/redis.sock", var)),
           "and the socket");
    c.mysql_url = "mysql://host/db";
    c.mysql_password = "geheim";
    is_int(stores_find(&arena, &c, &s, &why), 0, "one is configured");
    is_str(str_of(s.mysql_url), STR("mysql://host/db"), "it is used");
    is_str(str_of(s.mysql_password), STR("geheim"), "with its own password");
    c.data_dir = in_dir("home");
    is_int(stores_find(&arena, &c, &s, &why), ERR_NOT_FOUND, "never started: %s", why);
    ok(strstr(why, "millrace serve"), "it says what to do");
}

static void test_space(void)
{
    const char *why = NULL;
    is_int(datadir_space(&arena, dir, 1, "a test", &why), 0, "a byte is free");
    is_int(datadir_space(&arena, dir, INT64_MAX, "a test", &why), ERR_IO, "not so many: %s", why);
    ok(strstr(why, dir) && strstr(why, "a test"), "it names the folder and the purpose");
}

static void test_remove(void)
{
    const char *outside = in_dir("outside");
    check(mkdir(outside, 0700) == 0 && mkdir(in_dir("gone"), 0700) == 0);
    check(mkdir(in_dir("gone/deep"), 0700) == 0);
    close(open(in_dir("outside/kept"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(open(in_dir("gone/deep/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    check(symlink(outside, in_dir("gone/link")) == 0);
    datadir_remove(in_dir("gone"));
    is_int(mode(in_dir("gone")), -1, "everything in it is removed");
    is_int(mode(in_dir("outside/kept")), 0600, "but nothing that a link leads to");
}

int main(void)
{
    arena_init(&arena);
    check(mkdtemp(dir));
    test_open();
    test_foreign();
    test_files();
    test_space();
    test_remove();
    datadir_remove(dir);
    arena_release(&arena);
    return tap_done();
}
