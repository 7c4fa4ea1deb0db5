/* TLS handshakes of one client on one core, and how late its loop is meanwhile:
 *
 *   bench_handshakes full|resumed HOST PORT CA_FILE COUNT WORKERS
 *   bench_handshakes burst HOST PORT CA_FILE CALLS
 *
 * full and resumed: so many workers connect, shake hands and leave, again and again. burst: so many
 * HTTP/1.1 calls begin at once, each on a connection of its own. Prints one line of JSON. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "loop/net.h"
#include "loop/sync.h"
#include "wire/http_client.h"
#include "wire/tls.h"

#define SAMPLES_MAX 1000000

struct bench {
    const char *mode, *host, *port, *ca_file;
    int64_t count, workers;
    struct tls_context *tls;
    struct http_client *client;
    const char *url;
    int64_t begun, done, resumed, failed;
    struct waitq start; /* workers exist before the clock starts: so do those of a node */
    bool over;
    char error[256];

    int64_t *late_us; /* of a timer each millisecond */
    size_t samples;
    int64_t own_us_max; /* the same without the time that other processes had the core */
    double busy_ms_max; /* CPU time between two of them */
    double seconds, cpu_s;
};

static double cpu_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* How long this thread has been ready to run while others had its core; 0: unknown. */
static int64_t waited_us(int fd)
{
    char text[100];
    unsigned long long ran, waited = 0;
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (int64_t)(waited / 1000) : 0;
}

static void failed(struct bench *b, struct task *t, int err)
{
    b->failed++;
    snprintf(b->error, sizeof b->error, "%s %s", err_name(err), task_error(t));
}

/* --- how late the loop is --- */

static void watch_loop(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct loop *l = task_loop(t);
    int stat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    double before = cpu_s();
    while (!b->over && b->samples < SAMPLES_MAX) {
        /* Not by loop_now_ms: that is as old as the turn, and would count a late turn twice. */
        int64_t due_us = loop_now_us(l) + 1000;
        int64_t waited = waited_us(stat_fd);
        check(task_sleep(t, 1) == 0);
        int64_t late_us = loop_now_us(l) - due_us;
        waited = waited_us(stat_fd) - waited;
        if (late_us - waited > b->own_us_max)
            b->own_us_max = late_us - waited;
        b->late_us[b->samples++] = late_us > 0 ? late_us : 0;
        double now = cpu_s();
        if ((now - before) * 1e3 > b->busy_ms_max)
            b->busy_ms_max = (now - before) * 1e3;
        before = now;
    }
    close(stat_fd);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* --- handshakes alone --- */

/* Sessions of TLS 1.3 come after the handshake. */
static int fetch_session(struct task *t, struct tls *s, struct watch *w, struct tls_resume *resume)
{
    char byte;
    const struct ssl_session_st *used = resume->session; /* OpenSSL uses one once */
    for (;;) {
        if (tls_task_recv(t, s, &byte, 1) >= 0)
            return task_fail(t, ERR_PROTO, "no session has come");
        if (resume->session != used)
            return 0;
        watch_drained(w, WATCH_READ);
        int err = watch_wait(t, w, WATCH_READ);
        if (err)
            return err;
    }
}

static int shake_hands(struct task *t, struct bench *b, struct tls_resume *resume)
{
    int fd;
    int err = task_stand_back(t, false); /* as the HTTP client does */
    if (!err)
        err = net_connect_tcp(t, b->host, b->port, &fd);
    if (err)
        return err;
    struct watch w;
    watch_init(&w, task_loop(t), fd);
    struct tls_peer peer = {.host = b->host, .resume = resume};
    struct tls *s;
    err = tls_task_connect(t, b->tls, &peer, &w, &s);
    if (!err && resume)
        err = fetch_session(t, s, &w, resume);
    if (!err && tls_resumed(s))
        b->resumed++;
    if (s)
        tls_task_end(t, s);
    watch_release(&w);
    close(fd);
    return err;
}

static void work(struct task *t, void *arg)
{
    struct bench *b = arg;
    check(waitq_wait(t, &b->start) == 0);
    struct tls_resume last = {NULL}, *resume = strcmp(b->mode, "resumed") == 0 ? &last : NULL;
    while (b->begun < b->count) {
        b->begun++;
        struct task_scope scope = task_scope(t);
        task_deadline(t, 30000);
        int err = shake_hands(t, b, resume);
        if (err)
            failed(b, t, err);
        else
            b->done++;
        task_scope_end(t, scope);
    }
    tls_resume_release(&last);
}

/* --- many calls at once --- */

static int call(struct task *t, struct bench *b, struct http_response *r)
{
    return http_call(t, b->client, &(struct http_call){.url = b->url}, r);
}

static void one_call(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct http_response r;
    check(waitq_wait(t, &b->start) == 0);
    task_deadline(t, 60000);
    int err = call(t, b, &r);
    if (err || r.status != 200)
        failed(b, t, err);
    else
        b->done++;
}

/* --- all of it --- */

static void measure(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct loop *l = task_loop(t);
    bool burst = strcmp(b->mode, "burst") == 0;
    int err = tls_context_ready(t, b->tls);
    if (!err)
        err = shake_hands(t, b, NULL); /* the first takes OpenSSL milliseconds more */
    struct http_response r;
    if (!err && burst)
        err = call(t, b, &r); /* reads the trusted certificates */
    if (err) {
        failed(b, t, err);
        return;
    }
    struct group g, watcher;
    group_init(&g, l);
    group_init(&watcher, l);
    waitq_init(&b->start);
    for (int64_t i = 0; i < b->workers; i++)
        check(task_go(&g, "work", burst ? one_call : work, b) == 0);
    check(task_sleep(t, 200) == 0);
    check(task_go(&watcher, "watch", watch_loop, b) == 0);
    check(task_sleep(t, 20) == 0);
    int64_t start_us = loop_now_us(l);
    double cpu = cpu_s();
    waitq_wake_all(&b->start);
    check(group_join(t, &g) == 0);
    b->seconds = (double)(loop_now_us(l) - start_us) / 1e6;
    b->cpu_s = cpu_s() - cpu;
    b->over = true;
    check(group_join(t, &watcher) == 0);
}

static void print(struct bench *b)
{
    qsort(b->late_us, b->samples, sizeof *b->late_us, by_size);
    size_t n = b->samples;
    int64_t p99 = n ? b->late_us[n - 1 - n / 100] : 0, most = n ? b->late_us[n - 1] : 0;
    double done = b->done ? (double)b->done : 1;
    printf("{\"bench\": \"handshakes\", \"mode\": \"%s\", \"done\": %lld, \"resumed\": %lld, "
           "\"failed\": %lld, \"seconds\": %.2f, \"per_s\": %.0f, \"per_cpu_s\": %.0f, "
           "\"cpu_us\": %.0f, \"late_p99_ms\": %.2f, \"late_max_ms\": %.2f, \"late_own_ms\": "
           "%.2f, \"busy_max_ms\": %.2f}\n",
           b->mode, (long long)b->done, (long long)b->resumed, (long long)b->failed, b->seconds,
           done / b->seconds, done / b->cpu_s, b->cpu_s * 1e6 / done, (double)p99 / 1e3,
           (double)most / 1e3, (double)b->own_us_max / 1e3, b->busy_ms_max);
    if (b->failed)
        fprintf(stderr, "last failure: %s\n", b->error);
}

int main(int argc, char **argv)
{
    struct bench b = {.workers = 0};
    bool fine = argc >= 6 && str_to_i64(str_of(argv[5]), &b.count);
    bool burst = fine && strcmp(argv[1], "burst") == 0;
    if (!fine || argc != (burst ? 6 : 7) ||
        !str_to_i64(str_of(burst ? argv[5] : argv[6]), &b.workers)) {
        fprintf(stderr,
                "usage: %s full|resumed HOST PORT CA_FILE COUNT WORKERS\n"
                "       %s burst HOST PORT CA_FILE CALLS\n",
                argv[0], argv[0]);
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    b.mode = argv[1], b.host = argv[2], b.port = argv[3], b.ca_file = argv[4];
    char url[300];
    snprintf(url, sizeof url, "https://%s:%s/healthz", b.host, b.port);
    b.url = url;
    b.late_us = check_memory(calloc(SAMPLES_MAX, sizeof *b.late_us));

    struct loop *l = loop_new(NULL);
    b.tls = tls_context_new(&(struct tls_options){.ca_file = b.ca_file});
    b.client = http_client_new(l, &(struct http_client_options){.ca_file = b.ca_file});
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "measure", measure, &b) == 0);
    loop_run(l);
    print(&b);
    http_client_free(b.client);
    tls_context_free(b.tls);
    loop_free(l);
    free(b.late_us);
    return b.failed ? 1 : 0;
}
