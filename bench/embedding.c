/* Vectors of texts: bench_embedding URL CALLS prints one line of JSON.
 *
 * What it costs to read a reply of 64 vectors of 768 dimensions, in microseconds, each the median
 * of ROUNDS: as numbers of eight decimals, as numbers of seventeen digits, and in base64; besides,
 * the first as a tree of JSON. And what a call of 64 texts of 1.5 KB costs this process, all of
 * it: CALLS of them, four at a time, to the embedding service at URL. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/json.h"
#include "base/time.h"
#include "engine/ai/ai_fixture.h"
#include "engine/ai/embedding.h"
#include "engine/ai/embedding_reply.h"

static const bool asks = true; /* a job that may */

#define TEXTS      64
#define DIMENSIONS 768
#define ROUNDS     101
#define TEXT_BYTES 1500
#define AT_ONCE    4

enum form { DECIMALS, DIGITS, BASE64, FORMS };

struct bench {
    struct arena arena;
    struct str replies[FORMS];
    double sum; /* so that nothing is left out */
    /* calls */
    const char *url;
    int64_t calls, begun, failed, tokens;
    struct str texts[TEXTS];
    struct embedding *embedding;
};

static float number_at(size_t i)
{
    return (float)(sin((double)i * 1.7) * 0.05);
}

static void add_vector(struct buf *b, enum form form, size_t from)
{
    static float v[DIMENSIONS];
    for (size_t i = 0; i < DIMENSIONS; i++)
        v[i] = number_at(from + i);
    if (form == BASE64) {
        buf_add_char(b, '"');
        buf_add_base64(b, v, sizeof v);
        buf_add_char(b, '"');
        return;
    }
    for (size_t i = 0; i < DIMENSIONS; i++)
        buf_printf(b, form == DECIMALS ? "%s%.8f" : "%s%.17g", i ? "," : "[", (double)v[i]);
    buf_add_char(b, ']');
}

static struct str make_reply(struct arena *a, enum form form)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < TEXTS; i++) {
        buf_printf(&b, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "", i);
        add_vector(&b, form, i * DIMENSIONS);
        buf_add_char(&b, '}');
    }
    buf_add_lit(&b, "],\"model\":\"m\",\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}");
    struct str reply = str_dup(a, buf_str(&b));
    buf_release(&b);
    return reply;
}

/* --- reading --- */

static void read_tree(struct bench *b, struct arena *a, struct str reply)
{
    const struct json *j;
    check(json_parse(a, reply, &j, NULL) == 0);
    b->sum += (double)j->count;
}

static void read_vectors(struct bench *b, struct arena *a, struct str reply)
{
    struct embedding_reply r;
    const char *problem;
    check(embedding_reply_read(a, reply, TEXTS, &r, &problem) == 0 && r.wrong == 0);
    b->sum += r.vectors[TEXTS - 1].scale;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_us(struct bench *b, struct str reply,
                        void (*read)(struct bench *b, struct arena *a, struct str reply))
{
    double us[ROUNDS];
    struct arena a;
    arena_init(&a);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t from = time_mono_us();
        read(b, &a, reply);
        us[i] = (double)(time_mono_us() - from);
        arena_reset(&a, (struct arena_mark){0});
    }
    arena_release(&a);
    qsort(us, ROUNDS, sizeof *us, compare);
    return us[ROUNDS / 2];
}

/* --- calling --- */

static void call_on(struct task *t, void *arg)
{
    struct bench *b = arg;
    while (b->begun < b->calls) {
        struct task_scope scope = task_scope(t);
        struct embedding_answer a;
        b->begun++;
        int err = embedding_ask(t, b->embedding, b->texts, TEXTS, &asks, &a);
        b->failed += err || a.failed || a.dimensions != DIMENSIONS;
        b->tokens += err ? 0 : a.tokens;
        if (err)
            fprintf(stderr, "a call failed: %s\n", task_error(t));
        task_scope_end(t, scope);
    }
}

static void call_all(struct task *t, void *arg)
{
    struct bench *b = arg;
    struct group g;
    struct permits permits = {.keys = 1};
    struct metrics *metrics = metrics_open(-1, 1, 0);
    struct http_client *client =
        http_client_new(task_loop(t), &(struct http_client_options){.plain_h2 = true});
    struct ai *ai = ai_new(&(struct ai_options){.service = AI_EMBEDDING,
                                                .url = b->url,
                                                .path = AI_EMBEDDING_PATH,
                                                .timeout_ms = 60000,
                                                .reply_bytes_max = EMBEDDING_REPLY_BYTES_MAX,
                                                .client = client,
                                                .permits = &permits,
                                                .metrics = metrics});
    b->embedding = embedding_new(&(struct embedding_options){.ai = ai,
                                                             .permits = &permits,
                                                             .metrics = metrics,
                                                             .model = "m",
                                                             .params = getenv("PARAMS"),
                                                             .dimensions = DIMENSIONS,
                                                             .batch_texts = TEXTS,
                                                             .batch_tokens = 1000000});
    group_init(&g, task_loop(t));
    for (int i = 0; i < AT_ONCE; i++)
        check(task_go(&g, "call", call_on, b) == 0);
    check(group_join(t, &g) == 0);
    embedding_free(b->embedding);
    ai_free(ai);
    http_client_free(client);
    metrics_close(metrics);
}

static double cpu_us(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void make_texts(struct bench *b)
{
    for (size_t i = 0; i < TEXTS; i++) {
        struct buf text;
        buf_init(&text);
        while (text.len < TEXT_BYTES)
            buf_printf(&text, "In group %zu of the \"trial\" patients took %zu mg each day. ", i,
                       text.len);
        b->texts[i] = str_dup(&b->arena, buf_str(&text));
        buf_release(&text);
    }
}

static double call_us(struct bench *b)
{
    struct loop *l = loop_new(NULL);
    struct group g;
    group_init(&g, l);
    check(task_go(&g, "all", call_all, b) == 0);
    double from = cpu_us();
    loop_run(l);
    loop_free(l);
    return (cpu_us() - from) / (double)b->calls;
}

int main(int argc, char **argv)
{
    static struct bench b;
    if (argc != 3 || !str_to_i64(str_of(argv[2]), &b.calls) || b.calls < 1) {
        fprintf(stderr, "usage: %s URL CALLS\n", argv[0]);
        return 2;
    }
    arena_init(&b.arena);
    b.url = argv[1];
    for (int form = 0; form < FORMS; form++)
        b.replies[form] = make_reply(&b.arena, (enum form)form);
    make_texts(&b);
    double us[FORMS];
    double tree = median_us(&b, b.replies[DECIMALS], read_tree);
    for (int form = 0; form < FORMS; form++)
        us[form] = median_us(&b, b.replies[form], read_vectors);
    double call = call_us(&b);
    printf("{\"bench\": \"embedding\", \"tree_us\": %.0f, \"numbers_us\": %.0f, "
           "\"numbers_mb\": %.0f, \"long_us\": %.0f, \"long_mb\": %.0f, \"base64_us\": %.0f, "
           "\"base64_mb\": %.0f, \"numbers_kb\": %zu, \"long_kb\": %zu, \"base64_kb\": %zu, "
           "\"call_us\": %.0f, \"failed\": %lld}\n",
           tree, us[DECIMALS], (double)b.replies[DECIMALS].n / us[DECIMALS], us[DIGITS],
           (double)b.replies[DIGITS].n / us[DIGITS], us[BASE64],
           (double)b.replies[BASE64].n / us[BASE64], b.replies[DECIMALS].n / 1000,
           b.replies[DIGITS].n / 1000, b.replies[BASE64].n / 1000, call, (long long)b.failed);
    arena_release(&b.arena);
    return b.failed != 0 || b.sum == 0;
}
