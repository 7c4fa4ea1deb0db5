/* Changes: what one does, and that it is all there or not at all, whatever dies or reads. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/time.h"
#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

#define DIMENSION 32
#define SEGMENT   256
#define OWNERS    40
#define PARTS_MAX 5
#define HITS_MAX  1000

static uint32_t parts_of(uint64_t version)
{
    return (uint32_t)(version * 7 % (PARTS_MAX + 1));
}

/* All points that an owner has at a version. Tags tell both once more. */
static size_t make_points(uint64_t owner, uint64_t version, struct point *points, float *vectors)
{
    size_t count = parts_of(version);
    for (uint32_t i = 0; i < count; i++) {
        points[i] = (struct point){.owner = owner,
                                   .version = version,
                                   .part = i,
                                   .tags = {.flags = (uint32_t)version,
                                            .journal = (uint16_t)owner,
                                            .year = (uint16_t)(version & 0xFFFF)}};
        topic_vector(owner * 1000 + version * 10 + i, DIMENSION, vectors + i * DIMENSION);
    }
    return count;
}

/* Two owners get their next version in one change. */
static int put_pair(struct index_writer *w, uint64_t owner, uint64_t version, const char **why)
{
    struct point points[2 * PARTS_MAX];
    float vectors[2 * PARTS_MAX * DIMENSION];
    uint64_t both[] = {owner, owner + 1};
    size_t count = make_points(owner, version, points, vectors);
    count += make_points(owner + 1, version, points + count, vectors + count * DIMENSION);
    struct points_change c = {.space = {NULL, DIMENSION},
                              .gone = both,
                              .gone_count = 2,
                              .points = points,
                              .vectors = vectors,
                              .count = count};
    return index_put(w, &c, WAIT_MS, why);
}

/* The version that a pair of owners has; -1: of both or of parts of them more than one; -2: it
 * could not be searched. *empty: none of them has points. */
static int64_t version_of(struct index *x, uint64_t owner, bool *empty, const char **why)
{
    struct point_hit hits[HITS_MAX];
    struct points_answer answer;
    uint64_t both[] = {owner, owner + 1};
    struct point_filter filter = {.owners = both, .owner_count = 2};
    float q[DIMENSION];
    topic_vector(owner, DIMENSION, q);
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = HITS_MAX, .filter = &filter};
    int err = index_search(x, &query, hits, &answer, why);
    if (err)
        return -2;
    *empty = answer.count == 0;
    if (*empty)
        return 0;
    uint64_t version = hits[0].point.version;
    bool seen[2][PARTS_MAX] = {{false}};
    for (size_t i = 0; i < answer.count; i++) {
        const struct point *p = &hits[i].point;
        if (p->version != version || p->part >= parts_of(version) || p->owner - owner > 1 ||
            seen[p->owner - owner][p->part] || p->tags.flags != version ||
            p->tags.journal != p->owner)
            return -1;
        seen[p->owner - owner][p->part] = true;
    }
    return answer.count == 2 * parts_of(version) ? (int64_t)version : -1;
}

static void test_changes(const struct fixture *f)
{
    struct index_writer *w = fixture_writer(f);
    struct index *x = fixture_open(f);
    struct index_info info;
    const char *why = "";
    bool empty;
    int wrong = 0;
    for (uint64_t version = 1; version <= 30; version++)
        for (uint64_t owner = 0; owner < OWNERS; owner += 2) {
            check(put_pair(w, owner, version, &why) == 0);
            int64_t found = version_of(x, owner, &empty, &why);
            wrong += empty ? parts_of(version) != 0 : found != (int64_t)version;
        }
    is_int(wrong, 0, "each change takes the place of the one before, at once");
    check(index_info(x, &info, &why) == 0);
    is_int((int64_t)info.points, OWNERS * parts_of(30), "only the last ones count");
    ok(info.deleted > 1000 && info.wants_compaction, "the others wait for compaction");
    uint32_t from = 0;
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "all of it is verified");

    uint64_t gone = 4;
    struct points_change c = {.gone = &gone, .gone_count = 1};
    check(put_pair(w, 4, 29, &why) == 0);
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    is_int(version_of(x, 4, &empty, &why), -1, "half of a pair can be deleted, twice over");
    gone = 5;
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    ok(version_of(x, 4, &empty, &why) == 0 && empty, "and the other half");
    index_close(x);
    index_writer_close(w);
}

static void test_tags(const struct fixture *f)
{
    struct index_writer *w = fixture_writer(f);
    struct index *x = fixture_open(f);
    const char *why = "";
    struct point_hit hits[10];
    struct points_answer answer;
    uint64_t owner = 10;
    float q[DIMENSION];
    check(put_pair(w, owner, 2, &why) == 0);
    topic_vector(owner * 1000 + 20, DIMENSION, q);
    is_int(index_tag(w, owner, (struct point_tags){.flags = 8, .year = 1999}, WAIT_MS, &why), 0,
           "an owner's tags change");
    is_int(index_tag(w, 999999, (struct point_tags){.flags = 8}, WAIT_MS, &why), 0,
           "one that has no points stays without");
    struct point_filter filter = {.owners = &owner, .owner_count = 1};
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = 10, .filter = &filter};
    check(index_search(x, &query, hits, &answer, &why) == 0);
    ok(answer.count == parts_of(2) && hits[0].point.tags.flags == 8 &&
           hits[0].point.tags.year == 1999 && hits[0].point.version == 2 && hits[0].score > 0.999f,
       "vectors and versions stay (%zu, %.4f)", answer.count, (double)hits[0].score);
    filter.without = 8;
    check(index_search(x, &query, hits, &answer, &why) == 0);
    is_int((int64_t)answer.count, 0, "filters see the new tags");
    index_close(x);
    index_writer_close(w);
}

static void test_refusals(const struct fixture *f)
{
    struct index_writer *w = fixture_writer(f);
    struct index *x = fixture_open(f);
    struct index_info before, after;
    const char *why = "";
    struct point points[2] = {{.owner = 900, .part = 1}, {.owner = 900, .part = 1}};
    float vectors[2 * DIMENSION] = {[0] = 1, [DIMENSION] = 1};
    struct points_change c = {
        .space = {NULL, DIMENSION}, .points = points, .vectors = vectors, .count = 2};
    check(index_info(x, &before, &why) == 0);
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_INVALID, "an id twice");
    points[1].part = 2;
    vectors[DIMENSION] = 0;
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_INVALID, "a vector of zeros");
    c.count = POINTS_CHANGE_MAX + 1;
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_LIMIT, "too many");
    check(index_info(x, &after, &why) == 0);
    ok(before.points == after.points && before.deleted == after.deleted, "nothing has changed");
    c.space = (struct points_space){"another model", DIMENSION};
    c.count = 1;
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_CONFLICT, "vectors of another model");
    c.space.model = "made-up";
    int fd;
    check(turn_open(f->path, &fd, &why) == 0 && turn_take(fd, TURN_CHANGE, 0, &why) == 0);
    c.count = 1;
    is_int(index_put(w, &c, 3, &why), ERR_BUSY, "while another one writes");
    struct index_spec spec = {.model = "other", .dimension = DIMENSION};
    close(fd);
    is_int(index_put(w, &c, 0, &why), 0, "its turn ends with it");
    spec.dimension = POINTS_DIMENSION_MAX + 1;
    is_int(index_create(f->path, &spec, &why), ERR_INVALID, "no such dimension");
    index_close(x);
    index_writer_close(w);
}

static void test_full(const struct fixture *f)
{
    const char *why = "";
    fixture_create(f, 8, 64);
    struct index_writer *w = fixture_writer(f);
    fixture_fill(w, 8, 0, INDEX_SEGMENTS_MAX * 64 - 1);
    struct point points[2] = {{.owner = 1}, {.owner = 2}};
    float vectors[16] = {[0] = 1, [8] = 1};
    struct points_change c = {.space = {NULL, 8}, .points = points, .vectors = vectors, .count = 2};
    is_int(index_put(w, &c, WAIT_MS, &why), ERR_LIMIT, "an index gets full");
    c.count = 1;
    is_int(index_put(w, &c, WAIT_MS, &why), 0, "to its last row");
    uint64_t gone[500];
    for (uint64_t i = 0; i < 500; i++)
        gone[i] = i;
    c = (struct points_change){.gone = gone, .gone_count = 500};
    is_int(index_put(w, &c, WAIT_MS, &why), 0, "what is in it can go");
    is_int(index_compact(w, WAIT_MS, &why), 0, "compaction makes room");
    c = (struct points_change){
        .space = {NULL, 8}, .points = points, .vectors = vectors, .count = 2};
    is_int(index_put(w, &c, WAIT_MS, &why), 0, "for more");
    index_writer_close(w);
}

/* A limit of the system stands for a full disk: files cannot grow beyond it. */
static void test_no_space(const struct fixture *f)
{
    struct index_info before, after;
    struct rlimit all, little;
    struct stat st;
    const char *why = "";
    struct point points[SEGMENT] = {{.owner = 0}};
    static float vectors[SEGMENT * DIMENSION];
    for (size_t i = 0; i < SEGMENT; i++) {
        points[i] = (struct point){.owner = 100 + i};
        vectors[i * DIMENSION + i % DIMENSION] = 1;
    }
    struct points_change c = {
        .space = {NULL, DIMENSION}, .points = points, .vectors = vectors, .count = SEGMENT};
    fixture_create(f, DIMENSION, SEGMENT);
    struct index_writer *w = fixture_writer(f);
    fixture_fill(w, DIMENSION, 0, 150);
    struct index *x = fixture_open(f);
    check(index_info(x, &before, &why) == 0 && stat(f->path, &st) == 0);
    check(getrlimit(RLIMIT_FSIZE, &all) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    little = all;
    little.rlim_cur = (rlim_t)st.st_size;
    check(setrlimit(RLIMIT_FSIZE, &little) == 0);
    int err = index_put(w, &c, WAIT_MS, &why);
    int compacted = index_compact(w, WAIT_MS, &why);
    check(setrlimit(RLIMIT_FSIZE, &all) == 0);
    is_int(err, ERR_IO, "a change for which the disk has no room");
    is_int(compacted, 0, "what fits is written");
    check(index_info(x, &after, &why) == 0);
    ok(before.points == after.points && after.deleted == 0, "nothing has changed");
    is_int(index_put(w, &c, WAIT_MS, &why), 0, "it can be done when there is room");
    check(index_info(x, &after, &why) == 0);
    is_int((int64_t)after.points, 100 + SEGMENT, "as a whole");
    uint32_t from = 0;
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "and all of it is well");
    index_close(x);
    index_writer_close(w);
}

/* --- processes --- */

static _Noreturn void write_forever(const struct fixture *f, uint64_t first, int tell)
{
    struct index_writer *w = fixture_writer(f);
    const char *why = "";
    for (uint64_t version = first;; version++)
        for (uint64_t owner = 0; owner < OWNERS; owner += 2) {
            if (put_pair(w, owner, version, &why))
                _exit(9);
            if (write(tell, &version, sizeof(version)) != sizeof(version))
                _exit(0);
        }
}

/* Checks pairs until the pipe closes; exits with what was wrong. */
static _Noreturn void read_forever(const struct fixture *f, int stop)
{
    struct index *x = fixture_open(f);
    int64_t last[OWNERS] = {0}, searches = 0;
    const char *why = "";
    char c;
    for (uint64_t owner = 0;; owner = (owner + 2) % OWNERS) {
        bool empty;
        int64_t version = version_of(x, owner, &empty, &why);
        if (version < 0)
            _exit(version == -1 ? 3 : 4);
        if (!empty && version < last[owner])
            _exit(5);
        last[owner] = empty ? last[owner] : version;
        if (++searches % 50 == 0 && read(stop, &c, 1) == 0)
            _exit(searches > 100 ? 0 : 6);
    }
}

static int ended(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* What a killed writer has told of, in its order: owners 0, 2, 4, … at one version, then at the
 * next one. One more change may be there. */
struct told {
    uint64_t versions[OWNERS / 2]; /* of each pair */
    size_t next;                   /* the pair whose turn it is */
};

static bool hear(int fd, struct told *t)
{
    uint64_t version;
    if (read(fd, &version, sizeof(version)) != sizeof(version))
        return false;
    t->versions[t->next] = version;
    t->next = (t->next + 1) % (OWNERS / 2);
    return true;
}

static bool is_at(struct index *x, uint64_t owner, uint64_t version)
{
    const char *why = "";
    bool empty;
    int64_t found = version_of(x, owner, &empty, &why);
    return empty ? found == 0 && parts_of(version) == 0 : found == (int64_t)version;
}

/* Starts a writer, and kills it at some moment after it has told of `count` changes. */
static void write_and_kill(const struct fixture *f, uint64_t first, uint64_t *seed, struct told *t)
{
    int pipes[2];
    check(pipe(pipes) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(pipes[0]);
        write_forever(f, first, pipes[1]);
    }
    close(pipes[1]);
    t->next = 0;
    for (uint64_t count = next_bits(seed) % 60; count > 0; count--)
        check(hear(pipes[0], t));
    int64_t until = time_mono_us() + (int64_t)(next_bits(seed) % 700);
    while (time_mono_us() < until)
        continue;
    check(kill(pid, SIGKILL) == 0 && ended(pid) == 1000 + SIGKILL);
    while (hear(pipes[0], t))
        continue;
    close(pipes[0]);
}

static void test_writers_that_die(const struct fixture *f)
{
    enum { ROUNDS = 40 };
    uint64_t seed = 20261118, first = 1;
    const char *why = "";
    struct told t = {.next = 0};
    int wrong = 0, damaged = 0, more = 0;
    fixture_create(f, DIMENSION, SEGMENT);
    struct index *x = fixture_open(f);
    for (int i = 0; i < ROUNDS; i++) {
        write_and_kill(f, first, &seed, &t);
        uint64_t next = t.next ? t.versions[0] : t.versions[OWNERS / 2 - 1] + 1;
        next = next < first ? first : next;
        for (size_t pair = 0; pair < OWNERS / 2; pair++) {
            if (is_at(x, pair * 2, t.versions[pair]))
                continue;
            bool one_more = pair == t.next && is_at(x, pair * 2, next);
            more += one_more;
            wrong += !one_more;
            t.versions[pair] = next;
        }
        uint32_t from = 0;
        damaged += index_verify(x, &from, UINT32_MAX, &why) != 0;
        first = next + 1;
    }
    is_int(wrong, 0, "seed 20261118: %d writers are killed at any moment, nothing is torn", ROUNDS);
    ok(true, "%d times a change was there that had not been told of", more);
    is_int(damaged, 0, "all rows are whole, and found by their owners");
    struct index_writer *w = fixture_writer(f);
    is_int(put_pair(w, 0, first, &why), 0, "the next writer goes on");
    index_writer_close(w);
    index_close(x);
}

static void test_readers_while_two_write(const struct fixture *f)
{
    int stop[2], told[2];
    pid_t readers[2], writers[2];
    uint64_t version;
    fixture_create(f, DIMENSION, SEGMENT);
    check(pipe2(stop, O_NONBLOCK) == 0 && pipe(told) == 0);
    for (int i = 0; i < 2; i++) {
        check((readers[i] = fork()) >= 0);
        if (readers[i] == 0) {
            close(stop[1]);
            read_forever(f, stop[0]);
        }
    }
    /* The same owners: each version of one writer is followed by one of the other. */
    check((writers[0] = fork()) >= 0);
    if (writers[0] == 0)
        write_forever(f, 1, told[1]);
    for (int i = 0; i < 1500; i++)
        check(read(told[0], &version, sizeof(version)) == sizeof(version));
    check((writers[1] = fork()) >= 0);
    if (writers[1] == 0) {
        struct index_writer *w = fixture_writer(f);
        const char *why = "";
        for (uint64_t i = 0; i < 300; i++)
            fixture_fill(w, DIMENSION, 1000000 + i, 1);
        (void)why;
        _exit(0);
    }
    is_int(ended(writers[1]), 0, "another process writes meanwhile");
    check(kill(writers[0], SIGKILL) == 0 && ended(writers[0]) == 1000 + SIGKILL);
    close(stop[1]);
    for (int i = 0; i < 2; i++)
        is_int(ended(readers[i]), 0, "a process that reads never sees two versions, or parts");
    close(stop[0]);
    close(told[0]);
    close(told[1]);
    struct index *x = fixture_open(f);
    const char *why = "";
    struct index_info info;
    uint32_t from = 0;
    check(index_info(x, &info, &why) == 0);
    ok(info.points >= 300, "all is there (%d points)", (int)info.points);
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "and whole");
    index_close(x);
}

static void test_seen_soon(const struct fixture *f)
{
    struct index *x = fixture_open(f);
    int told[2], wrong = 0;
    uint64_t version;
    check(pipe(told) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(told[0]);
        write_forever(f, 500000, told[1]);
    }
    close(told[1]);
    for (uint64_t i = 0; i < 200; i++) { /* owner 0 is the first of each twenty */
        const char *why = "";
        bool empty;
        check(read(told[0], &version, sizeof(version)) == sizeof(version));
        int64_t found = version_of(x, i * 2 % OWNERS, &empty, &why);
        wrong += empty ? 0 : found < (int64_t)version;
    }
    is_int(wrong, 0, "what another process has put is seen by the next search");
    close(told[0]);
    check(kill(pid, SIGKILL) == 0 && ended(pid) >= 0);
    index_close(x);
}

int main(void)
{
    struct fixture f;
    fixture_begin(&f);
    fixture_create(&f, DIMENSION, SEGMENT);
    test_changes(&f);
    test_tags(&f);
    test_refusals(&f);
    test_no_space(&f);
    test_writers_that_die(&f);
    test_readers_while_two_write(&f);
    test_seen_soon(&f);
    test_full(&f);
    fixture_end(&f);
    return tap_done();
}
