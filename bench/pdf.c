/* pdf -- what the sandbox of a PDF costs.
 *
 * Medians of COUNT runs:
 *
 *   bench_pdf start COUNT             milliseconds of a run of /bin/true, bare, with limits and
 *                                     seccomp, and with all layers, in turns
 *   bench_pdf pages COUNT PAGES FILE  pages a second of pdftotext, bare, and in the sandbox */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/extract/pdf.h"
#include "base/file.h"
#include "base/log.h"
#include "loop/process.h"

#define COUNT_MAX 10000

struct bench {
    char **words;
    int64_t count;
    int64_t us[3][COUNT_MAX]; /* what is compared, each run of it */
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(struct bench *b, int which)
{
    qsort(b->us[which], (size_t)b->count, sizeof(int64_t), by_value);
    return (double)b->us[which][b->count / 2];
}

/* As one would without a sandbox: the file is the input, the output is read through a pipe. */
static size_t run_bare(const char *const *argv, const char *path)
{
    int out[2];
    pid_t pid;
    char *const none[] = {NULL};
    static char piece[65536];
    posix_spawn_file_actions_t files;
    check(pipe2(out, O_CLOEXEC) == 0 && posix_spawn_file_actions_init(&files) == 0 &&
          posix_spawn_file_actions_addopen(&files, 0, path, O_RDONLY, 0) == 0 &&
          posix_spawn_file_actions_adddup2(&files, out[1], 1) == 0);
    check(posix_spawn(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, none) == 0);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    size_t bytes = 0;
    for (ssize_t n; (n = read(out[0], piece, sizeof piece)) > 0;)
        bytes += (size_t)n;
    close(out[0]);
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0);
    return bytes;
}

static void run_true(struct task *t, int layers)
{
    const char *const argv[] = {"/bin/true", NULL};
    const char *const readable[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", NULL};
    struct sandbox box = {
        .layers = layers, .memory_bytes = 1 << 30, .cpu_seconds = 60, .readable = readable};
    struct process p = {
        .argv = argv, .input = STR(""), .output_max = 1, .errors_max = 1, .sandbox = &box};
    struct process_end end;
    struct task_scope s = task_scope(t);
    check(process_run(t, &p, &end) == 0 && end.status == 0);
    task_scope_end(t, s);
}

static void start(struct task *t, void *arg)
{
    struct bench *b = arg;
    const char *const argv[] = {"/bin/true", NULL};
    for (int64_t i = 0; i < b->count; i++) {
        int64_t at[4];
        at[0] = loop_now_us(task_loop(t));
        run_bare(argv, "/dev/null");
        at[1] = loop_now_us(task_loop(t));
        run_true(t, SANDBOX_LIMITS | SANDBOX_SECCOMP);
        at[2] = loop_now_us(task_loop(t));
        run_true(t, SANDBOX_ALL);
        at[3] = loop_now_us(task_loop(t));
        for (int k = 0; k < 3; k++)
            b->us[k][i] = at[k + 1] - at[k];
    }
    for (int k = 0; k < 3; k++)
        printf("%.3f%s", median_us(b, k) / 1000, k < 2 ? " " : "\n");
}

static void read_pages(struct task *t, void *arg)
{
    struct bench *b = arg;
    const char *path = b->words[1];
    const char *const argv[] = {"/usr/bin/pdftotext", "-layout", "-enc", "UTF-8", "-", "-", NULL};
    const struct pdf_options o = {
        .command = "", .url = "", .seconds = 60, .memory_mb = 1024, .pages = 2000};
    int64_t want, pages;
    struct str file, text;
    const char *reason;
    check(str_to_i64(str_of(b->words[0]), &want) &&
          file_read(task_arena(t), path, 1 << 30, &file) == 0);
    for (int64_t i = 0; i < b->count; i++) {
        int64_t at[3];
        struct task_scope s = task_scope(t);
        at[0] = loop_now_us(task_loop(t));
        size_t bytes = run_bare(argv, path);
        at[1] = loop_now_us(task_loop(t));
        check(pdf_text(t, &o, file, &text, &pages, &reason) == 0);
        at[2] = loop_now_us(task_loop(t));
        check(pages == want && text.n == bytes);
        b->us[0][i] = at[1] - at[0];
        b->us[1][i] = at[2] - at[1];
        task_scope_end(t, s);
    }
    double all = (double)want * 1e6;
    printf("%.0f %.0f\n", all / median_us(b, 0), all / median_us(b, 1));
}

int main(int argc, char **argv)
{
    static struct bench b;
    b.words = argv + 3;
    check(argc >= 3 && str_to_i64(str_of(argv[2]), &b.count) && b.count > 0 &&
          b.count <= COUNT_MAX);
    bool pages = strcmp(argv[1], "pages") == 0;
    check(!pages || argc == 5);
    log_setup(LOG_WARN, LOG_TEXT, "bench");
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "bench", pages ? read_pages : start, &b) == 0);
    loop_run(l);
    loop_free(l);
    return 0;
}
