#include "tool/backup/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/datadir.h"
#include "tests/tap.h"

#define NOBODY 65534

static struct arena arena;
static char dir[] = "/tmp/mrfolderXXXXXX";

static const char *in_dir(const char *name)
{
    return arena_printf(&arena, "%s/%s", dir, name);
}

static void make(const char *name, bool whole)
{
    check(mkdir(in_dir(name), 0700) == 0);
    const char *file = arena_printf(&arena, "%s/%s", in_dir(name), whole ? BACKUP_MANIFEST : "x");
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    check(fd >= 0);
    close(fd);
}

static bool there(const char *name)
{
    struct stat s;
    return stat(in_dir(name), &s) == 0;
}

static void test_newest(void)
{
    ok(!folder_newest(&arena, in_dir("none")), "no folder");
    ok(!folder_newest(&arena, dir), "an empty one");
    make("millrace-20260101T000000Z", true);
    make("millrace-20260102T000000Z", true);
    make("millrace-20260103T000000Z", false);
    make("millrace-zzzz", true);
    const char *found = folder_newest(&arena, dir);
    is_str(str_of(found ? found : ""), str_of(in_dir("millrace-20260102T000000Z")),
           "the newest whole one");
}

/* As another user than the owner of one of them. */
static void test_prune(struct task *t, void *arg)
{
    (void)arg;
    struct folder f = {.parent = dir};
    int64_t removed = -1;
    check(chmod(in_dir("millrace-20260101T000000Z"), 0) == 0);
    bool root = geteuid() == 0;
    check(chmod(dir, 0777) == 0);
    if (root) {
        check(chown(in_dir("millrace-20260102T000000Z"), NOBODY, NOBODY) == 0);
        check(chown(in_dir("millrace-20260103T000000Z"), NOBODY, NOBODY) == 0);
        check(setresuid(NOBODY, NOBODY, 0) == 0);
    }
    int err = folder_prune(t, &f, 1, &removed);
    if (root)
        check(setresuid(0, 0, 0) == 0);
    is_int(err, 0, "pruned");
    is_int(removed, 0, "the one beyond keep could not be removed, and is not counted");
    ok(there("millrace-20260101T000000Z"), "it is another user's");
    ok(there("millrace-20260102T000000Z"), "the newest stays");
    ok(!there("millrace-20260103T000000Z"), "an interrupted one goes");
    ok(there("millrace-zzzz"), "other names stay");
    check(chmod(in_dir("millrace-20260101T000000Z"), 0700) == 0);
    is_int(folder_prune(t, &f, 1, &removed), 0, "by its owner");
    is_int(removed, 1, "one is removed");
    ok(!there("millrace-20260101T000000Z") && there("millrace-20260102T000000Z"), "the oldest");
}

int main(void)
{
    arena_init(&arena);
    check(mkdtemp(dir));
    test_newest();
    tap_task(test_prune, NULL, false);
    datadir_remove(dir);
    arena_release(&arena);
    return tap_done();
}
