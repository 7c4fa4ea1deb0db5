#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

static struct arena arena;

static int made(const char *text, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    return fd;
}

static void test_sizes(void)
{
    static char text[20000];
    memset(text, 'x', sizeof text);
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, sizeof text};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct str got = STR_NULL;
        int fd = made(text, sizes[i]);
        is_int(file_read_fd(&arena, fd, sizes[i], &got), 0, "%zu bytes", sizes[i]);
        ok(got.p && got.n == sizes[i] && got.p[got.n] == '\0', "all of them, and a NUL");
        is_int(lseek(fd, 0, SEEK_CUR), (int64_t)sizes[i], "the position is where it was");
        if (sizes[i])
            is_int(file_read_fd(&arena, fd, sizes[i] - 1, &got), ERR_LIMIT, "one too many");
        close(fd);
    }
}

static void test_pipe(void)
{
    int ends[2];
    struct str got = STR_NULL;
    check(pipe(ends) == 0 && write(ends[1], "abc", 3) == 3 && close(ends[1]) == 0);
    is_int(file_read_fd(&arena, ends[0], 2, &got), ERR_LIMIT, "a pipe has a limit, too");
    close(ends[0]);
    check(pipe(ends) == 0 && write(ends[1], "abc", 3) == 3 && close(ends[1]) == 0);
    is_int(file_read_fd(&arena, ends[0], 3, &got), 0, "a pipe is read to its end");
    is_str(got, STR("abc"), "all of it");
    close(ends[0]);
}

static void test_paths(void)
{
    struct str got = STR_NULL;
    char head[8];
    errno = 0;
    is_int(file_read(&arena, "/no/such/file", 10, &got), ERR_IO, "no file");
    is_int(errno, ENOENT, "and errno says so");
    is_int(file_read(&arena, "/proc", 10, &got), ERR_IO, "a folder");
    is_int(errno, EISDIR, "and errno says so");
    char folder[] = "/tmp/millrace-file-XXXXXX", inside[sizeof folder + 2];
    struct stat st;
    check(mkdtemp(folder) && snprintf(inside, sizeof inside, "%s/x", folder) > 0);
    check(mkdir(inside, 0700) == 0 && stat(folder, &st) == 0 && st.st_size > 1);
    errno = 0;
    is_int(file_read(&arena, folder, 1, &got), ERR_IO, "one whose size is above the limit");
    is_int(errno, EISDIR, "and errno says so");
    check(rmdir(inside) == 0 && rmdir(folder) == 0);
    is_int(file_read(&arena, "/proc/self/status", 1 << 20, &got), 0, "a file without a size");
    ok(str_starts(got, STR("Name:")), "is read");
    is_str(file_head("/proc/self/status", head, 5), STR("Name:"), "the head of a file");
    is_str(file_head("/no/such/file", head, sizeof head), STR(""), "of one that is not there");
}

int main(void)
{
    arena_init(&arena);
    test_sizes();
    test_pipe();
    test_paths();
    arena_release(&arena);
    return tap_done();
}
