/* The embedded index, measured: bench/vectors.py calls it.
 *
 *   bench_vectors make FOLDER ROWS DIMENSION FILE.bib...   vectors of real texts and mixtures
 *   bench_vectors truth FOLDER ROWS DIMENSION              by comparing everything
 *   bench_vectors build FOLDER ROWS DIMENSION              the index, FOLDER/points-ROWS
 *   bench_vectors search FOLDER ROWS DIMENSION ROUNDS
 *   bench_vectors change FOLDER ROWS DIMENSION             adds 1,000; when another process sees it
 *
 * A text is cut into sentences; the first is its title. A row is a text of one to four sentences of
 * a paper, one after the other, and one or two of another paper, chosen by a seed from the row's
 * number; its vector is that of the simulated AI (sim_embed.h). Half of the queries are such
 * mixtures of other seeds, half are titles. All but the first print a line of JSON. */
#include <signal.h>
#include <sys/wait.h>

#include "base/err.h"
#include "bench/peers/vectors/common.h"
#include "corpus/bibtex.h"
#include "corpus/text.h"
#include "engine/vectors/code.h"
#include "engine/vectors/index.h"
#include "tool/sim/sim_embed.h"

#define QUERIES     200
#define BATCH       4096
#define MEAN_ROWS   16384
#define ADDED       1000
#define WAIT_MS     10000
#define TRUTH_BLOCK 64

/* --- make --- */

struct texts {
    struct arena memory;
    struct str *sentences;
    size_t count, room;
    size_t *papers; /* their first sentences, and the end */
    size_t paper_count, paper_room;
};

static void add_sentence(struct texts *t, struct str s)
{
    if (s.n < 12)
        return;
    if (t->count == t->room) {
        t->room = t->room ? t->room * 2 : 1024;
        t->sentences = check_memory(realloc(t->sentences, t->room * sizeof(*t->sentences)));
    }
    t->sentences[t->count++] = s;
}

static void add_paper(struct texts *t, struct str title, struct str abstract)
{
    if (t->paper_count + 1 >= t->paper_room) {
        t->paper_room = t->paper_room ? t->paper_room * 2 : 1024;
        t->papers = check_memory(realloc(t->papers, t->paper_room * sizeof(*t->papers)));
    }
    size_t first = t->count;
    add_sentence(t, title);
    while (abstract.n) {
        ptrdiff_t end = str_find(abstract, STR(". ")), wide = str_find(abstract, STR("。"));
        size_t n = end >= 0 ? (size_t)end + 2 : wide >= 0 ? (size_t)wide + 3 : abstract.n;
        add_sentence(t, str_from(abstract.p, n));
        abstract = str_skip(abstract, n);
    }
    if (t->count - first >= 4)
        t->papers[t->paper_count++] = first;
    else
        t->count = first;
    t->papers[t->paper_count] = t->count;
}

static void read_papers(struct texts *t, const char *path)
{
    struct bibtex_file *f;
    struct bibtex_entry e;
    if (bibtex_open(&f, path, NULL, NULL)) {
        perror(path);
        exit(1);
    }
    while (bibtex_read(f, &e) == 1) {
        struct str title = bibtex_field(bibtex_reader(f), STR("title"));
        title = str_dup(&t->memory, text_plain(&t->memory, title));
        struct str abstract = bibtex_field(bibtex_reader(f), STR("abstract"));
        if (title.p && abstract.p)
            add_paper(t, title, str_dup(&t->memory, text_plain(&t->memory, abstract)));
    }
    bibtex_close(f);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Up to `most` sentences of a paper that is drawn. */
static void draw(const struct texts *t, uint64_t *seed, size_t most, struct buf *out)
{
    size_t paper = next_random(seed) % t->paper_count;
    size_t first = t->papers[paper], count = t->papers[paper + 1] - first;
    size_t taken = 1 + next_random(seed) % most, from = next_random(seed) % (count - taken + 1);
    for (size_t s = first + from; s < first + from + taken; s++) {
        buf_add_str(out, t->sentences[s]);
        buf_add_char(out, ' ');
    }
}

static void mixture(const struct texts *t, uint64_t seed, struct buf *text, float *out, size_t n)
{
    buf_clear(text);
    draw(t, &seed, 4, text);
    draw(t, &seed, 2, text);
    sim_embed(buf_str(text), out, n);
}

static FILE *create(const char *folder, const char *name)
{
    char path[500];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

static void make(const char *folder, size_t rows, size_t n, char **files, int count)
{
    struct texts t = {.count = 0};
    for (int i = 0; i < count; i++)
        read_papers(&t, files[i]);
    if (t.paper_count < 10) {
        fprintf(stderr, "there are too few papers with abstracts\n");
        exit(1);
    }
    float *v = check_memory(malloc(n * sizeof(*v)));
    struct buf text;
    buf_init(&text);
    FILE *f = create(folder, "base.f32");
    for (size_t i = 0; i < rows; i++) {
        mixture(&t, i * 1000003, &text, v, n);
        check(fwrite(v, sizeof(*v), n, f) == n);
    }
    check(fclose(f) == 0);
    f = create(folder, "queries.f32");
    for (size_t i = 0; i < QUERIES; i++) {
        if (i % 2)
            sim_embed(t.sentences[t.papers[i * 7919 % t.paper_count]], v, n);
        else
            mixture(&t, ~(uint64_t)i * 7777777, &text, v, n);
        check(fwrite(v, sizeof(*v), n, f) == n);
    }
    check(fclose(f) == 0);
    fprintf(stderr, "%zu papers, %zu sentences, %zu rows\n", t.paper_count, t.count, rows);
    buf_release(&text);
    free(v);
    free(t.papers);
    free(t.sentences);
    arena_release(&t.memory);
}

/* --- truth --- */

struct nearest {
    float scores[K];
    uint32_t rows[K];
    size_t count;
};

static void offer(struct nearest *b, float score, uint32_t row)
{
    if (b->count == K && score <= b->scores[K - 1])
        return;
    size_t at = b->count < K ? b->count++ : K - 1;
    for (; at > 0 && score > b->scores[at - 1]; at--) {
        b->scores[at] = b->scores[at - 1];
        b->rows[at] = b->rows[at - 1];
    }
    b->scores[at] = score;
    b->rows[at] = row;
}

static void write_truth(const char *folder, const char *name, size_t rows, struct nearest *found)
{
    char file[64];
    snprintf(file, sizeof(file), "%s-%zu.bin", name, rows);
    FILE *f = create(folder, file);
    for (size_t q = 0; q < QUERIES; q++)
        check(fwrite(found[q].rows, sizeof(uint32_t), K, f) == K);
    check(fclose(f) == 0);
}

static void truth(const char *folder, size_t rows, size_t n)
{
    static struct nearest all[QUERIES], few[QUERIES];
    const struct kernel *k = kernel_best();
    size_t bytes;
    const float *base = map_file(folder, "base.f32", &bytes);
    const float *queries = map_file(folder, "queries.f32", &bytes);
    check(n % 8 == 0);
    for (size_t first = 0; first < rows; first += TRUTH_BLOCK)
        for (size_t q = 0; q < QUERIES; q++)
            for (size_t i = first; i < first + TRUTH_BLOCK && i < rows; i++) {
                float score = k->dot(queries + q * n, base + i * n, n);
                offer(&all[q], score, (uint32_t)i);
                if (i % 20 == FILTERED)
                    offer(&few[q], score, (uint32_t)i);
            }
    write_truth(folder, "truth", rows, all);
    write_truth(folder, "truth5", rows, few);
}

/* --- ours --- */

static void must(int err, const char *why)
{
    if (err) {
        fprintf(stderr, "%s: %s\n", err_name(err), why);
        exit(1);
    }
}

static void path_of(char out[500], const char *folder, size_t rows)
{
    snprintf(out, 500, "%s/points-%zu", folder, rows);
}

static void put(struct index_writer *w, const float *vectors, size_t n, uint64_t first,
                size_t count)
{
    static struct point points[BATCH];
    const char *why = "";
    for (size_t i = 0; i < count; i++)
        points[i] = (struct point){
            .owner = first + i, .version = 1, .tags.journal = (uint16_t)((first + i) % 20)};
    struct points_change c = {
        .space = {NULL, n}, .points = points, .vectors = vectors, .count = count};
    must(index_put(w, &c, WAIT_MS, &why), why);
}

static void build(const char *folder, size_t rows, size_t n)
{
    char path[500];
    size_t bytes;
    const float *base = map_file(folder, "base.f32", &bytes);
    const char *why = "";
    float *mean = check_memory(calloc(n, sizeof(*mean)));
    path_of(path, folder, rows);
    struct stopwatch from = watch_now();
    size_t seen = rows < MEAN_ROWS ? rows : MEAN_ROWS;
    for (size_t r = 0; r < seen; r++)
        for (size_t i = 0; i < n; i++)
            mean[i] += base[r * (rows / seen) * n + i] / (float)seen;
    struct index_spec spec = {
        .model = "sim", .dimension = (uint32_t)n, .mean = mean, .mean_rows = rows};
    struct index_writer *w;
    must(index_create(path, &spec, &why), why);
    must(index_writer_open(path, &w, &why), why);
    for (size_t r = 0; r < rows; r += BATCH)
        put(w, base + r * n, n, r, rows - r < BATCH ? rows - r : BATCH);
    struct stopwatch took = watch_since(from);
    must(index_sync(w, &why), why);
    struct stopwatch synced = watch_since(from);
    printf("{\"build_s\": %.3f, \"build_wall_s\": %.3f, \"synced_wall_s\": %.3f}\n", took.cpu,
           took.wall, synced.wall);
    index_writer_close(w);
    free(mean);
}

struct asking {
    struct index *x;
    struct points_query query;
    bool approximate;
};

static size_t ask(void *arg, const float *vector, uint32_t *found)
{
    struct asking *a = arg;
    struct point_hit hits[K];
    struct points_answer answer;
    const char *why = "";
    a->query.vector = vector;
    must(index_search(a->x, &a->query, hits, &answer, &why), why);
    for (size_t i = 0; i < answer.count; i++)
        found[i] = (uint32_t)hits[i].point.owner;
    a->approximate = answer.approximate;
    return answer.count;
}

static void search(const char *folder, size_t rows, size_t n, size_t rounds)
{
    char path[500];
    const char *why = "";
    struct world w = world_of(folder, rows, n);
    struct index_info info;
    uint16_t journal = FILTERED;
    struct point_filter filter = {.journals = &journal, .journal_count = 1};
    struct asking a = {.query = {.space = {"sim", n}, .k = K}};
    path_of(path, folder, rows);
    struct stopwatch from = watch_now();
    must(index_open(path, &a.x, &why), why);
    struct stopwatch took = watch_since(from);
    uint32_t found[K];
    struct stopwatch first = watch_now();
    ask(&a, w.queries, found);
    first = watch_since(first);
    must(index_info(a.x, &info, &why), why);
    printf("{\"open_ms\": %.3f, \"first_ms\": %.3f, \"bytes\": %.1f, ", took.wall * 1e3,
           first.wall * 1e3, (double)info.hot_bytes / (double)rows);
    measure(&w, "search", w.truth, ask, &a, rounds);
    a.query.filter = &filter;
    measure(&w, "filter", w.truth5, ask, &a, rounds);
    a.query.filter = NULL;
    a.query.exact = true;
    measure(&w, "exact", w.truth, ask, &a, rounds > 2 ? rounds / 2 : 1);
    printf("\"generation\": %d}\n", (int)info.generation);
    index_close(a.x);
}

/* Tells over the pipe when it sees each of the owners. */
static _Noreturn void watch_for(const char *path, size_t n, uint64_t first, int tell)
{
    struct index *x;
    const char *why = "";
    struct point_hit hit;
    struct points_answer answer;
    float *q = check_memory(calloc(n, sizeof(*q)));
    q[0] = 1;
    must(index_open(path, &x, &why), why);
    for (uint64_t owner = first;; owner++) {
        struct point_filter filter = {.owners = &owner, .owner_count = 1};
        struct points_query query = {.space = {NULL, n}, .vector = q, .k = 1, .filter = &filter};
        do
            must(index_search(x, &query, &hit, &answer, &why), why);
        while (!answer.count);
        double at = seconds_of(CLOCK_MONOTONIC);
        if (write(tell, &at, sizeof(at)) != sizeof(at))
            _exit(0);
    }
}

static void change(const char *folder, size_t rows, size_t n)
{
    enum { TIMES = 100 };
    char path[500];
    size_t bytes;
    const char *why = "";
    const float *base = map_file(folder, "base.f32", &bytes);
    double delays[TIMES], at;
    struct index_writer *w;
    int told[2];
    path_of(path, folder, rows);
    must(index_writer_open(path, &w, &why), why);
    put(w, base, n, rows, 1); /* opened, and mapped */
    struct stopwatch from = watch_now();
    put(w, base, n, rows + 1, ADDED);
    struct stopwatch took = watch_since(from);
    uint64_t first = rows + 1 + ADDED;
    check(pipe(told) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        watch_for(path, n, first, told[1]);
    for (int i = 0; i < TIMES; i++) {
        usleep(5000);
        double begun = seconds_of(CLOCK_MONOTONIC);
        put(w, base, n, first + (uint64_t)i, 1);
        check(read(told[0], &at, sizeof(at)) == sizeof(at));
        delays[i] = (at - begun) * 1e3;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    printf("{\"add_1000_ms\": %.3f, \"add_1000_wall_ms\": %.3f, \"seen_p50_ms\": %.3f, "
           "\"seen_max_ms\": %.3f}\n",
           took.cpu * 1e3, took.wall * 1e3, share_of(delays, TIMES, 0.5),
           share_of(delays, TIMES, 1));
    index_writer_close(w);
}

int main(int argc, char **argv)
{
    size_t rows = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
    size_t n = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    if (!rows || n < 8) {
        fprintf(stderr, "see the head of bench/vectors.c\n");
        return 2;
    }
    if (strcmp(argv[1], "make") == 0)
        make(argv[2], rows, n, argv + 5, argc - 5);
    else if (strcmp(argv[1], "truth") == 0)
        truth(argv[2], rows, n);
    else if (strcmp(argv[1], "build") == 0)
        build(argv[2], rows, n);
    else if (strcmp(argv[1], "search") == 0 && argc == 6)
        search(argv[2], rows, n, strtoul(argv[5], NULL, 10));
    else if (strcmp(argv[1], "change") == 0)
        change(argv[2], rows, n);
    else
        return 2;
    return 0;
}
