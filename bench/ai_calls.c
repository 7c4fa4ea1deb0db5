/* Many calls in flight on one node: bench_ai_calls URL CALLS ROUNDS [CA_FILE] prints one line of
 * JSON; bench_ai_calls --body the body of a call, for others that make the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/str.h"
#include "wire/http_client.h"

#define CONNECT_MS 60000 /* as long as a call: the simulator shares the machine */

struct bench {
    struct http_client *client;
    const char *url;
    int64_t calls, rounds;
    int64_t answered, failed;
    int last_error;
    char error[256];
};

static const char body[] =
    "{\"model\":\"sim\",\"max_tokens\":200,\"messages\":[{\"role\":\"system\",\"content\":\"Judge "
    "whether "
    "the paper answers the question. Reply with "
    "JSON.\"},{\"role\":\"user\",\"content\":\"Question: "
    "perovskite stability\\nTitle: Stability of perovskite cells under humid air\\nAbstract: We "
    "measure "
    "how cells age over a thousand hours of light, heat and damp, and find that the additive "
    "halves "
    "the loss. The mechanism is discussed together with the limits of the method.\"}]}";

static void one_call(struct task *t, void *arg)
{
    struct bench *b = arg;
    task_deadline(t, 60 * 1000);
    for (int64_t i = 0; i < b->rounds; i++) {
        struct task_scope s = task_scope(t);
        struct str headers[] = {STR("Content-Type: application/json"),
                                STR("Authorization: Bearer bench")};
        struct http_call call = {
            .url = b->url,
            .headers = headers,
            .header_count = 2,
            .body = str_from(body, sizeof(body) - 1),
        };
        struct http_response r;
        int err = http_call(t, b->client, &call, &r);
        if (err || r.status != 200) {
            b->failed++;
            b->last_error = err ? err : r.status;
            snprintf(b->error, sizeof b->error, "%s", err ? task_error(t) : "status");
        } else {
            b->answered++;
        }
        task_scope_end(t, s);
    }
}

static void all_calls(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct group g;
    group_init(&g, task_loop(t));
    for (int64_t i = 0; i < b->calls; i++)
        check(task_go(&g, "call", one_call, b) == 0);
    check(group_join(t, &g) == 0);
    http_client_free(b->client);
}

int main(int argc, char **argv)
{
    struct bench b = {.calls = 0};
    if (argc == 2 && strcmp(argv[1], "--body") == 0)
        return fputs(body, stdout) < 0;
    if (argc < 4 || argc > 5 || !str_to_i64(str_of(argv[2]), &b.calls) ||
        !str_to_i64(str_of(argv[3]), &b.rounds)) {
        fprintf(stderr, "usage: %s URL CALLS ROUNDS [CA_FILE]\n", argv[0]);
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    b.url = argv[1];
    struct loop *l = loop_new(NULL);
    struct http_client_options o = {.ca_file = argv[4], .connect_ms = CONNECT_MS};
    b.client = http_client_new(l, &o);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "all", all_calls, &b) == 0);
    int64_t start_us = loop_now_us(l);
    loop_run(l);
    double seconds = (double)(loop_now_us(l) - start_us) / 1e6;
    loop_free(l);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double cpu_us = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
                    (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    double total = (double)(b.calls * b.rounds);
    printf("{\"bench\": \"ai_calls\", \"in_flight\": %lld, \"calls\": %.0f, \"answered\": %lld, "
           "\"failed\": %lld, \"seconds\": %.2f, \"peak_rss_mb\": %.1f, \"cpu_us_per_call\": %.1f, "
           "\"limit_mb\": 400, \"limit_us\": 150, \"ratio\": %.2f}\n",
           (long long)b.calls, total, (long long)b.answered, (long long)b.failed, seconds,
           (double)use.ru_maxrss / 1024, cpu_us / total, cpu_us / total / 150);
    if (b.failed)
        fprintf(stderr, "last failure: %d %s\n", b.last_error, b.error);
    return b.failed ? 1 : 0;
}
