/* A paper's way from its packed bytes to the prompt, and back from the reply to the result:
 * bench_paper ROUNDS FILE.bib... packs the files' papers as blocks have them and prints
 * microseconds a paper as JSON. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"
#include "corpus/pack.h"
#include "corpus/paper.h"
#include "engine/judge/prompt.h"
#include "engine/judge/verdict.h"
#include "engine/papers/block_private.h"
#include "engine/money/result.h"

#define PAPERS_MAX  20000
#define TRAINED_MAX 10000

struct bench {
    struct arena kept, scratch;
    struct bibtex *reader;
    struct pack *pack;
    const struct judge_question *question;
    struct buf page;
    size_t count;
    struct str doi[PAPERS_MAX], bibtex[PAPERS_MAX], packed[PAPERS_MAX], reply[PAPERS_MAX];
    int64_t sum; /* so that nothing is left out */
};

static struct str load(struct bench *b, const char *path)
{
    struct buf text;
    buf_init(&text);
    int fd = open(path, O_RDONLY);
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, buf_reserve(&text, 1 << 20), 1 << 20)) > 0)
        buf_added(&text, (size_t)n);
    if (n < 0)
        perror(path);
    check(n == 0);
    close(fd);
    struct str all = str_dup(&b->kept, buf_str(&text));
    buf_release(&text);
    return all;
}

static void add_papers(struct bench *b, const char *path)
{
    struct bibtex *file = bibtex_new(NULL, NULL);
    struct str rest = load(b, path);
    struct bibtex_entry e;
    size_t used;
    while (b->count < PAPERS_MAX && bibtex_next(file, rest, true, &e, &used) == BIBTEX_ENTRY) {
        struct paper p;
        const char *why;
        if (paper_of_entry(&b->kept, file, &e, STR("J"), STR("f.bib"), &p, &why) == 0) {
            b->doi[b->count] = str_dup(&b->kept, p.doi);
            b->bibtex[b->count++] = str_dup(&b->kept, paper_bibtex(&b->kept, &p));
        }
        rest = str_from(rest.p + used, rest.n - used);
    }
    bibtex_free(file);
}

static void pack_papers(struct bench *b)
{
    static size_t sizes[TRAINED_MAX];
    struct buf text;
    struct str dictionary;
    unsigned trained = 0;
    buf_init(&text);
    for (size_t i = 0; i < b->count && trained < TRAINED_MAX; i++) {
        buf_add_str(&text, b->bibtex[i]);
        sizes[trained++] = b->bibtex[i].n;
    }
    check(pack_train(&b->kept, buf_str(&text), sizes, trained, &dictionary) == 0);
    buf_release(&text);
    check(pack_learn(b->pack, dictionary) == 0);
    check(pack_choose(b->pack, pack_number(dictionary), BLOCK_PACK_LEVEL) == 0);
    for (size_t i = 0; i < b->count; i++)
        check(pack_put(b->pack, &b->kept, b->bibtex[i], &b->packed[i]) == 0);
}

static void make_replies(struct bench *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->reply[i] = str_printf(
            &b->kept,
            "{\"id\":\"chatcmpl-%016zx\",\"object\":\"chat.completion\",\"created\":1763250000,"
            "\"model\":\"some-model\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
            "\"assistant\","
            "\"content\":\"{\\\"relevant\\\": %s, \\\"reason\\\": \\\"The paper is about what the "
            "question asks for: \\u201ccatalysts\\u201d, number %zu.\\\"}\",\"refusal\":null},"
            "\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%zu,"
            "\"completion_tokens\":31,\"total_tokens\":%zu}}",
            i, i % 3 ? "false" : "true", i, 500 + i % 100, 531 + i % 100);
}

/* One round over all papers, up to and with the given step: 0 unpacks, 1 reads, 2 writes. */
static void go_out(struct bench *b, int last)
{
    for (size_t i = 0; i < b->count; i++) {
        struct str bibtex;
        struct prompt_paper shown = {.doi = b->doi[i]};
        arena_reset(&b->scratch, (struct arena_mark){0});
        check(pack_get(b->pack, &b->scratch, b->packed[i], &bibtex, NULL) == 0);
        b->sum += bibtex.p[bibtex.n / 2];
        if (last < 1)
            continue;
        check(paper_read_shown(&b->scratch, b->reader, bibtex, &shown.title, &shown.abstract) == 0);
        b->sum += (int64_t)shown.abstract.n;
        if (last < 2)
            continue;
        buf_clear(&b->page);
        b->sum += prompt_write(b->question, &shown, &b->page);
    }
}

static void come_back(struct bench *b, int last)
{
    for (size_t i = 0; i < b->count; i++) {
        struct verdict_reply r;
        arena_reset(&b->scratch, (struct arena_mark){0});
        verdict_read(&b->scratch, b->reply[i], &r);
        check(r.readable);
        b->sum += r.tokens;
        if (last < 1)
            continue;
        struct result result = {.block_key = STR("meta:Some Journal:2020"),
                                .outcome = r.relevant ? OUTCOME_HIT : OUTCOME_MISS,
                                .reason = r.reason};
        buf_clear(&b->page);
        result_write(&b->page, &result);
        b->sum += (int64_t)b->page.len;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of all rounds, in nanoseconds a paper. */
static double measure(struct bench *b, int64_t rounds, void (*go)(struct bench *, int), int last)
{
    double *ns = check_memory(malloc((size_t)rounds * sizeof *ns));
    go(b, last);
    for (int64_t i = 0; i < rounds; i++) {
        int64_t began = time_mono_us();
        go(b, last);
        ns[i] = (double)(time_mono_us() - began) * 1000 / (double)b->count;
    }
    qsort(ns, (size_t)rounds, sizeof *ns, compare);
    double median = ns[rounds / 2];
    free(ns);
    return median;
}

int main(int argc, char **argv)
{
    static struct bench b;
    int64_t rounds;
    if (argc < 3 || !str_to_i64(str_of(argv[1]), &rounds) || rounds < 1) {
        fprintf(stderr, "usage: %s ROUNDS FILE.bib...\n", argv[0]);
        return 2;
    }
    struct prompt prompt;
    const char *why;
    b.pack = pack_new();
    b.reader = bibtex_new(NULL, NULL);
    check(prompt_load(&b.kept, "", &prompt, &why) == 0);
    b.question = prompt_question(&b.kept, &prompt,
                                 &(struct prompt_model){.name = "some-model", .max_tokens = 200},
                                 STR("Is it about nickel catalysts?"));
    for (int i = 2; i < argc; i++)
        add_papers(&b, argv[i]);
    pack_papers(&b);
    make_replies(&b);
    double unpack = measure(&b, rounds, go_out, 0), shown = measure(&b, rounds, go_out, 1),
           prompted = measure(&b, rounds, go_out, 2), verdict = measure(&b, rounds, come_back, 0),
           result = measure(&b, rounds, come_back, 1);
    printf("{\"bench\": \"paper\", \"papers\": %zu, \"unpack_us\": %.2f, \"read_us\": %.2f, "
           "\"prompt_us\": %.2f, \"verdict_us\": %.2f, \"result_us\": %.2f}\n",
           b.count, unpack / 1000, (shown - unpack) / 1000, (prompted - shown) / 1000,
           verdict / 1000, (result - verdict) / 1000);
    buf_release(&b.page);
    bibtex_free(b.reader);
    pack_free(b.pack);
    arena_release(&b.scratch);
    arena_release(&b.kept);
    return b.sum == 0;
}
