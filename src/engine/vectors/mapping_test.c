#include "engine/vectors/mapping.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

#define BYTES (1 << 20)

static int a_file(void)
{
    int fd = memfd_create("mapping", MFD_CLOEXEC);
    check(fd >= 0 && ftruncate(fd, BYTES) == 0);
    char *text = check_memory(malloc(BYTES));
    memset(text, 'x', BYTES);
    check(pwrite(fd, text, BYTES, 0) == BYTES);
    free(text);
    return fd;
}

static int count(const char *p)
{
    int x = 0;
    for (size_t i = 0; i < BYTES; i++)
        x += p[i] == 'x';
    return x;
}

static void *count_often(void *arg)
{
    for (int i = 0; i < 20; i++)
        count(arg);
    return NULL;
}

static void test_cut(void)
{
    struct mapping a, b;
    bool damaged = false, other = false;
    pthread_t threads[2];
    int fd = a_file(), fine = a_file();
    check(mapping_open(&a, fd, 0, BYTES, false, &damaged) == 0);
    check(mapping_open(&b, fine, 0, BYTES, true, &other) == 0);
    is_int(count(a.at), BYTES, "a mapping shows its file");
    for (int i = 0; i < 2; i++)
        check(pthread_create(&threads[i], NULL, count_often, a.at) == 0);
    check(ftruncate(fd, BYTES / 2) == 0);
    is_int(count(a.at), BYTES / 2, "what the file has lost reads as zeros");
    ok(damaged, "and is reported");
    for (int i = 0; i < 2; i++)
        check(pthread_join(threads[i], NULL) == 0);
    is_int(count(b.at), BYTES, "another mapping is as it was");
    ok(!other, "and not reported");
    mapping_close(&a);
    check(ftruncate(fine, 0) == 0);
    *(volatile char *)b.at = 'y';
    ok(other && b.at[0] == 'y', "a store to what the file has lost goes nowhere, and is reported");
    mapping_close(&b);
    mapping_close(&b);
    close(fd);
    close(fine);
}

static void test_limit(void)
{
    static struct mapping all[MAPPINGS_MAX + 1];
    bool damaged = false;
    int fd = a_file(), opened = 0;
    while (mapping_open(&all[opened], fd, 0, 4096, false, &damaged) == 0)
        opened++;
    is_int(opened, MAPPINGS_MAX, "there is a limit");
    is_int(mapping_open(&all[opened], fd, 0, 4096, false, &damaged), ERR_LIMIT, "with an error");
    for (int i = 0; i < opened; i++)
        mapping_close(&all[i]);
    is_int(mapping_open(&all[0], fd, 0, 4096, false, &damaged), 0, "slots are used again");
    mapping_close(&all[0]);
    is_int(mapping_open(&all[0], -1, 0, 4096, false, &damaged), ERR_IO, "there must be a file");
    close(fd);
}

/* How a process ends that touches what a mapping of another one lost. */
static int end_of_stranger(bool sent)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(2); /* a sanitizer would tell at length */
        if (sent) {
            raise(SIGBUS);
            _exit(7);
        }
        int fd = a_file();
        volatile char *p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
        check(ftruncate(fd, 0) == 0);
        _exit(p[5] == 'x' ? 8 : 9);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

static void test_strangers(void)
{
    int status = end_of_stranger(false);
    ok(WIFSIGNALED(status), "SIGBUS outside of mappings ends the process, as ever (%d)", status);
    status = end_of_stranger(true);
    ok(WIFSIGNALED(status), "so does one that is sent (%d)", status);
}

int main(void)
{
    test_cut();
    test_limit();
    test_strangers();
    return tap_done();
}
