/* Files that are damaged, cut, replaced, gone, or as a power failure leaves them. */
#include <fcntl.h>
#include <sys/wait.h>

#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

#define DIMENSION 64
#define SEGMENT   256
#define POINTS    1000

static int search(struct index *x, uint64_t number, struct point_hit *best,
                  struct points_answer *answer)
{
    struct point_hit hits[10];
    float q[DIMENSION];
    const char *why = "";
    topic_vector(number, DIMENSION, q);
    struct points_query query = {.space = {NULL, DIMENSION}, .vector = q, .k = 10};
    int err = index_search(x, &query, hits, answer, &why);
    *best = hits[0];
    return err;
}

/* 0: each point is found by its own vector; else the first error, or 1 for a wrong answer. */
static int search_all(struct index *x)
{
    struct point_hit best;
    struct points_answer answer;
    for (uint64_t i = 0; i < POINTS; i += 7) {
        int err = search(x, i, &best, &answer);
        if (err || best.point.owner != i)
            return err ? err : 1;
    }
    return 0;
}

static void fresh(const struct fixture *f)
{
    fixture_create(f, DIMENSION, SEGMENT);
    struct index_writer *w = fixture_writer(f);
    const char *why = "";
    fixture_fill(w, DIMENSION, 0, POINTS + 20);
    uint64_t gone[20];
    for (uint64_t i = 0; i < 20; i++)
        gone[i] = POINTS + i;
    struct points_change c = {.gone = gone, .gone_count = 20};
    check(index_put(w, &c, WAIT_MS, &why) == 0 && index_sync(w, &why) == 0);
    index_writer_close(w);
}

static void poke(const struct fixture *f, off_t at, const void *bytes, size_t n)
{
    int fd = open(f->path, O_RDWR);
    check(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n);
    close(fd);
}

static void flip(const struct fixture *f, off_t at, unsigned bit)
{
    unsigned char byte;
    int fd = open(f->path, O_RDWR);
    check(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte = (unsigned char)(byte ^ 1u << bit);
    check(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

static void cut(const struct fixture *f, off_t to)
{
    check(truncate(f->path, to) == 0);
}

static struct layout layout_of(const struct fixture *f)
{
    struct index_file *file;
    const char *why = "";
    check(index_file_open(f->path, &file, &why) == 0);
    struct layout at = file->at;
    index_file_put(file);
    return at;
}

/* --- what is read at the opening --- */

static int open_error(const struct fixture *f, const char **why)
{
    struct index *x;
    *why = "";
    int err = index_open(f->path, &x, why);
    if (!err)
        index_close(x);
    return err;
}

static void test_not_an_index(const struct fixture *f)
{
    const char *why;
    is_int(open_error(f, &why), ERR_NOT_FOUND, "there is no file");
    int fd = open(f->path, O_CREAT | O_RDWR, 0600);
    check(fd >= 0);
    is_int(open_error(f, &why), ERR_PROTO, "one of no bytes");
    check(ftruncate(fd, 10 * PAGE_MAX) == 0);
    is_int(open_error(f, &why), ERR_PROTO, "one of zeros");
    close(fd);
    struct index_writer *w;
    is_int(index_writer_open(f->path, &w, &why), ERR_PROTO, "nor can it be written to");
    fresh(f);
    is_int(open_error(f, &why), 0, "it can be made anew");
    ok(access(f->path, F_OK) == 0, "under its name");
}

static void test_flips_at_the_beginning(const struct fixture *f)
{
    const char *why;
    uint64_t seed = 5;
    int accepted = 0, header = 0;
    struct layout at = layout_of(f);
    off_t ends = HEADER_AT + (off_t)sizeof(struct header) + DIMENSION * 4 + 8;
    for (int i = 0; i < 60; i++) {
        off_t where = HEADER_AT + (off_t)(next_bits(&seed) % (uint64_t)(ends - HEADER_AT));
        unsigned bit = (unsigned)(next_bits(&seed) % 8);
        flip(f, where, bit);
        header += open_error(f, &why) == 0;
        flip(f, where, bit);
    }
    is_int(header, 0, "a bit that flips in the header is noticed");
    for (off_t where = 0; where < 16; where++)
        for (unsigned bit = 0; bit < 8; bit++) {
            flip(f, where, bit);
            accepted += open_error(f, &why) == 0;
            flip(f, where, bit);
        }
    is_int(accepted, 0, "so is one in the words that count rows");
    accepted = 0;
    for (off_t where = 0; where < 20 * 8; where += 3) {
        flip(f, SEGMENTS_AT + (off_t)at.deletions + where, 2);
        accepted += open_error(f, &why) == 0;
        flip(f, SEGMENTS_AT + (off_t)at.deletions + where, 2);
    }
    is_int(accepted, 0, "and one in a deletion");
    is_int(open_error(f, &why), 0, "without them all is well");
}

/* --- while a process serves --- */

static void test_flips_while_serving(const struct fixture *f)
{
    struct layout at = layout_of(f);
    struct index *x = fixture_open(f);
    struct point_hit best;
    struct points_answer answer;
    const char *why = "";
    const size_t columns[] = {at.tags, at.heads, at.floats, at.codes, at.small};
    const size_t strides[] = {8, 64, 256, 8, 68};
    uint64_t seed = 6;
    int unnoticed = 0, unverified = 0, healed = 0, other = 0;
    for (size_t i = 0; i < 50; i++) {
        uint64_t row = next_bits(&seed) % (POINTS / 7) * 7;
        off_t where = SEGMENTS_AT +
                      (off_t)(row / SEGMENT * at.bytes + columns[i % 5] +
                              row % SEGMENT * strides[i % 5] + next_bits(&seed) % strides[i % 5]);
        uint32_t from = 0;
        /* The lowest bit: scores stay nearly the same, so that the row is found. */
        flip(f, where, 0);
        int err = search(x, row, &best, &answer);
        unnoticed += i % 5 < 3 && err != ERR_PROTO;
        other += i % 5 >= 3 && (err || best.point.owner != row || best.score < 0.9999f);
        unverified += index_verify(x, &from, UINT32_MAX, &why) != ERR_PROTO;
        flip(f, where, 0);
        healed += search(x, row, &best, &answer) == 0;
    }
    is_int(unnoticed, 0, "no search answers with a row in which a bit has flipped");
    is_int(other, 0, "one in what only leads to rows does not change what is answered");
    is_int(unverified, 0, "index_verify finds either");
    is_int(healed, 50, "the process serves on when the file is whole again");
    index_close(x);
}

static void test_flips_anywhere(const struct fixture *f)
{
    struct layout at = layout_of(f);
    struct index *x = fixture_open(f);
    uint64_t seed = 7;
    int errors = 0, wrong = 0;
    for (int i = 0; i < 60; i++) {
        off_t where = (off_t)(next_bits(&seed) % (SEGMENTS_AT + 4 * at.bytes));
        unsigned char junk[64];
        for (size_t k = 0; k < sizeof(junk); k++)
            junk[k] = (unsigned char)next_bits(&seed);
        poke(f, where, junk, sizeof(junk));
        int err = search_all(x);
        errors += err == ERR_PROTO;
        /* A row whose integers are junk is not found; what is found is not junk. */
        wrong += err != 0 && err != 1 && err != ERR_PROTO;
    }
    ok(errors > 0, "junk at 60 places: %d times the error was told", errors);
    is_int(wrong, 0, "and nothing worse");
    index_close(x);
}

static void test_cut(const struct fixture *f)
{
    struct layout at = layout_of(f);
    struct index *x = fixture_open(f);
    struct point_hit best;
    struct points_answer answer;
    const char *why;
    check(search_all(x) == 0);
    const off_t ends[] = {SEGMENTS_AT + 4 * (off_t)at.bytes - 1,
                          SEGMENTS_AT + (off_t)at.bytes + 5,
                          SEGMENTS_AT + 100,
                          HEADER_AT + 3,
                          100,
                          0};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        cut(f, ends[i]);
        is_int(search(x, 3, &best, &answer), ERR_PROTO, "a file cut at %ld is an error",
               (long)ends[i]);
        is_int(open_error(f, &why), ERR_PROTO, "also for who opens it");
    }
    cut(f, SEGMENTS_AT + 4 * (off_t)at.bytes);
    is_int(search(x, 3, &best, &answer), ERR_PROTO, "it does not help to make it long again");
    fresh(f);
    is_int(search_all(x), 0, "one that is made anew is read by the same process");
    index_close(x);
}

/* A search that has begun when the file is cut: the pages go under its hands. */
static void test_cut_in_a_search(const struct fixture *f)
{
    struct layout layout = layout_of(f);
    struct point_hit hits[10];
    struct points_answer answer;
    struct point p;
    const char *why = "";
    float q[DIMENSION];
    struct points_query query = {.space = {NULL, DIMENSION}, .vector = q, .k = 10};
    /* All of it, or one segment, without which there are ten hits as well. */
    for (off_t kept = 0; kept <= 3; kept += 3) {
        struct index *x = fixture_open(f);
        struct index_view *v;
        topic_vector(3, DIMENSION, q);
        check(index_view_get(x, &v, &why) == 0);
        check(view_search(v, kernel_best(), &query, hits, &answer, &why) == 0);
        cut(f, SEGMENTS_AT + kept * (off_t)layout.bytes);
        is_int(view_search(v, kernel_best(), &query, hits, &answer, &why), ERR_PROTO,
               "a search under which the file is cut to %d segments", (int)kept);
        uint32_t at = (uint32_t)kept * SEGMENT;
        is_int(index_view_next(v, &at, &p, q), ERR_PROTO, "one who goes through the points");
        index_view_put(v);
        index_close(x);
        fresh(f);
    }
}

static _Noreturn void search_until_damaged(const struct fixture *f, int ready)
{
    struct index *x = fixture_open(f);
    for (int searches = 0;; searches++) {
        int err = search_all(x);
        if (searches == 0 && write(ready, "r", 1) != 1)
            _exit(5);
        if (err == ERR_PROTO || err == ERR_NOT_FOUND)
            _exit(0);
        if (err)
            _exit(6);
    }
}

static void test_cut_under_processes(const struct fixture *f)
{
    int bad = 0;
    for (int i = 0; i < 12; i++) {
        int ready[2], status;
        char c;
        pid_t pids[2];
        struct layout at = layout_of(f);
        check(pipe(ready) == 0);
        for (int k = 0; k < 2; k++) {
            check((pids[k] = fork()) >= 0);
            if (pids[k] == 0)
                search_until_damaged(f, ready[1]);
        }
        check(read(ready[0], &c, 1) == 1 && read(ready[0], &c, 1) == 1);
        usleep((useconds_t)(i * 317));
        cut(f, i % 3 ? SEGMENTS_AT + i % 4 * (off_t)at.bytes + i * 4096 : 0);
        for (int k = 0; k < 2; k++) {
            check(waitpid(pids[k], &status, 0) == pids[k]);
            bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        close(ready[0]);
        close(ready[1]);
        fresh(f);
    }
    is_int(bad, 0, "24 processes in the middle of searches get the error, none dies");
}

static void test_cut_under_a_writer(const struct fixture *f)
{
    struct index_writer *w = fixture_writer(f);
    struct point p = {.owner = 5};
    float v[DIMENSION] = {1};
    const char *why = "";
    struct points_change c = {.space = {NULL, DIMENSION}, .points = &p, .vectors = v, .count = 1};
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    cut(f, 0);
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_PROTO, "a change to a file that was cut");
    is_int(index_compact(w, WAIT_MS, &why), ERR_PROTO, "its compaction");
    fresh(f);
    is_int(index_put(w, &c, WAIT_MS, &why), 0, "the writer goes on in a new file");
    index_writer_close(w);
    fresh(f);
}

static void test_gone(const struct fixture *f)
{
    struct index *x = fixture_open(f), *late;
    struct index_writer *w = fixture_writer(f);
    struct point_hit best;
    struct points_answer answer;
    const char *why = "";
    check(search(x, 3, &best, &answer) == 0 && !answer.detached);
    check(unlink(f->path) == 0);
    is_int(search(x, 3, &best, &answer), 0, "a file that is gone is still mapped");
    ok(answer.detached && best.point.owner == 3, "answers say that they are of then");
    is_int(index_open(f->path, &late, &why), ERR_NOT_FOUND, "who comes later finds nothing");
    struct points_change c = {.gone = &(uint64_t){3}, .gone_count = 1};
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_NOT_FOUND, "nothing is written to it");
    fresh(f);
    is_int(search(x, 3, &best, &answer), 0, "a new one is found");
    ok(!answer.detached, "and answers");
    index_writer_close(w);
    index_close(x);
}

static void test_replaced(const struct fixture *f)
{
    struct index *x = fixture_open(f);
    struct fixture other = *f;
    struct index_info info;
    struct point_hit best;
    struct points_answer answer;
    const char *why = "";
    snprintf(other.path, sizeof(other.path), "%.80s.other", f->path);
    is_int(index_replace(f->path, other.path, &why), ERR_NOT_FOUND, "by nothing");
    struct index_spec spec = {.model = "another", .dimension = 16};
    check(index_create(other.path, &spec, &why) == 0);
    struct index_writer *w = fixture_writer(&other);
    fixture_fill(w, 16, 0, 3);
    index_writer_close(w);
    is_int(index_replace(f->path, other.path, &why), 0, "by one of another model");
    check(index_info(x, &info, &why) == 0);
    ok(info.dimension == 16 && strcmp(info.model, "another") == 0 && info.points == 3,
       "which readers see at once");
    is_int(search(x, 0, &best, &answer), ERR_CONFLICT, "queries of the old dimension are refused");
    fresh(f);
    check(index_info(x, &info, &why) == 0);
    is_int((int64_t)info.points, POINTS, "and back");
    index_close(x);
}

/* --- writers that died, and power failures --- */

static void test_owners_not_noted(const struct fixture *f)
{
    struct layout at = layout_of(f);
    struct index_file *file;
    const char *why = "";
    static char zeros[SEGMENT * SEGMENT_TABLES * 4];
    check(index_file_open(f->path, &file, &why) == 0);
    /* As if the writer had died after its change became visible. */
    uint64_t filled = pair_pack(file, (struct pair){.rows = 2 * SEGMENT});
    index_file_put(file);
    poke(f, offsetof(struct live, filled), &filled, sizeof(filled));
    for (off_t i = 2; i < 4; i++)
        poke(f, SEGMENTS_AT + i * (off_t)at.bytes + (off_t)at.table, zeros, sizeof(zeros));
    struct index *x = fixture_open(f);
    uint64_t owners[] = {5, 2 * SEGMENT + 1, POINTS - 1};
    struct point_filter filter = {.owners = owners, .owner_count = 3};
    struct point_hit hits[10];
    struct points_answer answer;
    float q[DIMENSION] = {1};
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = 10, .filter = &filter};
    check(index_search(x, &query, hits, &answer, &why) == 0);
    is_int((int64_t)answer.count, 3, "owners that are not noted yet are found");
    struct index_writer *w = fixture_writer(f);
    struct point p = {.owner = POINTS - 1};
    struct points_change c = {.space = {NULL, DIMENSION}, .points = &p, .vectors = q, .count = 1};
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    check(index_search(x, &query, hits, &answer, &why) == 0);
    is_int((int64_t)answer.count, 3, "the next writer notes them, so that nothing is there twice");
    uint32_t from = 0;
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "all is well");
    index_writer_close(w);
    index_close(x);
    fresh(f);
}

static void test_power_failure(const struct fixture *f)
{
    struct layout at = layout_of(f);
    struct index_writer *w = fixture_writer(f);
    const char *why = "";
    struct index_info info;
    static char zeros[4096];
    /* Not synced. These owners have rows in the segment that is written to next, too. */
    fixture_fill(w, DIMENSION, POINTS - 10, 10);
    fixture_fill(w, DIMENSION, 5000, 300);
    index_writer_close(w);
    uint32_t row = POINTS + 20 + 100;
    poke(f, SEGMENTS_AT + row / SEGMENT * (off_t)at.bytes + (off_t)at.floats, zeros, 4096);
    is_int(open_error(f, &why), ERR_PROTO, "rows that did not get to the disk are noticed");
    w = fixture_writer(f);
    struct index *x = fixture_open(f);
    check(index_info(x, &info, &why) == 0);
    ok(info.points == POINTS && info.deleted == 20, "a writer goes back to what was synced");
    is_int(search_all(x), 0, "which is all there");
    fixture_fill(w, DIMENSION, 7000, 300);
    fixture_fill(w, DIMENSION, POINTS - 10, 10);
    check(index_info(x, &info, &why) == 0);
    is_int((int64_t)info.points, POINTS + 300, "it goes on from there");
    uint32_t from = 0;
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "and tables know no rows of before");
    index_close(x);
    index_writer_close(w);
    fresh(f);
}

static void test_iteration(const struct fixture *f)
{
    struct index *x = fixture_open(f);
    struct index_view *v;
    const char *why = "";
    struct point p;
    float vector[DIMENSION], want[DIMENSION];
    uint32_t at = 0;
    int wrong = 0;
    uint64_t count = 0;
    check(index_view_get(x, &v, &why) == 0);
    struct index_writer *w = fixture_writer(f);
    struct points_change c = {.gone = &(uint64_t){3}, .gone_count = 1};
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    struct code code;
    code_init(&code, kernel_best(), DIMENSION);
    for (; index_view_next(v, &at, &p, vector) == 0; count++) {
        float raw[DIMENSION];
        topic_vector(p.owner, DIMENSION, raw);
        check(code_normalise(&code, raw, want) == 0);
        wrong += p.owner != count || p.version != 1 || memcmp(vector, want, sizeof(want)) != 0;
    }
    ok(count == POINTS && !wrong, "a view goes through its points, whatever happens meanwhile");
    code_release(&code);
    index_view_put(v);
    index_writer_close(w);
    index_close(x);
}

int main(void)
{
    struct fixture f;
    fixture_begin(&f);
    test_not_an_index(&f);
    test_flips_at_the_beginning(&f);
    test_flips_while_serving(&f);
    test_cut(&f);
    test_cut_in_a_search(&f);
    test_cut_under_processes(&f);
    test_cut_under_a_writer(&f);
    test_gone(&f);
    test_replaced(&f);
    test_owners_not_noted(&f);
    test_power_failure(&f);
    test_iteration(&f);
    test_flips_anywhere(&f);
    fixture_end(&f);
    return tap_done();
}
