/* bench_ai_calls by libcurl's multi interface: curl_multi URL IN_FLIGHT ROUNDS CA_FILE BODY_FILE
 * prints the same line of JSON. Driven as its documentation advises for many transfers: by
 * curl_multi_socket_action, here on epoll. HTTP/2 calls share connections, a thousand at most. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 1024

struct call {
    CURL *easy;
    long left;
    size_t bytes;
};

static CURLM *multi;
static int poll_fd;
static long due_ms = -1; /* of libcurl's timer; -1: none */
static long answered, failed;
static char problem[CURL_ERROR_SIZE];

static long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    (void)easy, (void)arg;
    struct epoll_event e = {.data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poll_fd, EPOLL_CTL_DEL, fd, NULL);
        curl_multi_assign(multi, fd, NULL);
        return 0;
    }
    e.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    epoll_ctl(poll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
    curl_multi_assign(multi, fd, multi);
    return 0;
}

static int on_timer(CURLM *m, long ms, void *arg)
{
    (void)m, (void)arg;
    due_ms = ms < 0 ? -1 : now_ms() + ms;
    return 0;
}

static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
    struct call *c = arg;
    (void)p;
    c->bytes += size * n;
    return size * n;
}

static void collect(void)
{
    CURLMsg *m;
    int ignored;
    while ((m = curl_multi_info_read(multi, &ignored))) {
        struct call *c;
        long status = 0;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
        curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (m->data.result == CURLE_OK && status == 200 && c->bytes > 0) {
            answered++;
        } else {
            failed++;
            snprintf(problem, sizeof problem, "%s, status %ld", curl_easy_strerror(m->data.result),
                     status);
        }
        c->bytes = 0;
        curl_multi_remove_handle(multi, c->easy);
        if (--c->left > 0)
            curl_multi_add_handle(multi, c->easy);
    }
}

static void run(void)
{
    struct epoll_event events[EVENTS_MAX];
    int running = 1;
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    while (running > 0) {
        long wait_ms = due_ms < 0 ? 1000 : due_ms - now_ms();
        int n = epoll_wait(poll_fd, events, EVENTS_MAX, wait_ms < 0 ? 0 : (int)wait_ms);
        for (int i = 0; i < n; i++) {
            int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                       (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                       (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, events[i].data.fd, what, &running);
        }
        if (due_ms >= 0 && due_ms <= now_ms()) {
            due_ms = -1;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        collect();
        if (running == 0) /* what collect has added begins with the timer */
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static CURL *prepare(struct call *c, char **argv, struct curl_slist *headers, const char *body)
{
    CURL *e = curl_easy_init();
    curl_easy_setopt(e, CURLOPT_URL, argv[1]);
    curl_easy_setopt(e, CURLOPT_CAINFO, argv[4]);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(e, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(e, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(e, CURLOPT_PRIVATE, c);
    return e;
}

static char *read_body(const char *path)
{
    static char body[65536];
    FILE *f = fopen(path, "r");
    if (!f || fread(body, 1, sizeof body - 1, f) == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    fclose(f);
    return body;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s URL IN_FLIGHT ROUNDS CA_FILE BODY_FILE\n", argv[0]);
        return 2;
    }
    long count = atol(argv[2]), rounds = atol(argv[3]);
    curl_global_init(CURL_GLOBAL_ALL);
    multi = curl_multi_init();
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, count);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Authorization: Bearer bench");
    const char *body = read_body(argv[5]);
    struct call *calls = calloc((size_t)count, sizeof *calls);
    long start = now_ms();
    for (long i = 0; i < count; i++) {
        calls[i] = (struct call){.left = rounds};
        calls[i].easy = prepare(&calls[i], argv, headers, body);
        curl_multi_add_handle(multi, calls[i].easy);
    }
    run();
    double seconds = (double)(now_ms() - start) / 1e3;
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double cpu_us = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
                    (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    double total = (double)(count * rounds);
    printf("{\"answered\": %ld, \"failed\": %ld, \"seconds\": %.2f, \"peak_rss_mb\": %.1f, "
           "\"cpu_us_per_call\": %.1f}\n",
           answered, failed, seconds, (double)use.ru_maxrss / 1024, cpu_us / total);
    if (failed)
        fprintf(stderr, "last failure: %s\n", problem);
    return 0;
}
