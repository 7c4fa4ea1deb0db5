/* Compaction while others search and change, and when it dies. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "engine/vectors/index_fixture.h"
#include "tests/tap.h"

#define DIMENSION 32
#define SEGMENT   1024
#define POINTS    4000
#define MOVING    100 /* owners from POINTS on, who get new versions all the time */
#define PARTS     3

static int put_version(struct index_writer *w, uint64_t owner, uint64_t version)
{
    struct point points[PARTS];
    float vectors[PARTS * DIMENSION];
    const char *why = "";
    for (uint32_t i = 0; i < PARTS; i++) {
        points[i] = (struct point){.owner = owner, .version = version, .part = i};
        topic_vector(owner, DIMENSION, vectors + i * DIMENSION);
        vectors[i * DIMENSION + i] += 0.1f;
    }
    struct points_change c = {
        .space = {NULL, DIMENSION}, .points = points, .vectors = vectors, .count = PARTS};
    return index_put(w, &c, WAIT_MS, &why);
}

/* The version of a moving owner; -1: not all parts of one. */
static int64_t version_of(struct index *x, uint64_t owner)
{
    struct point_hit hits[20];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION];
    struct point_filter filter = {.owners = &owner, .owner_count = 1};
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = 20, .filter = &filter};
    topic_vector(owner, DIMENSION, q);
    if (index_search(x, &query, hits, &answer, &why) || answer.count != PARTS)
        return -1;
    uint32_t parts = 0;
    for (size_t i = 0; i < PARTS; i++) {
        parts |= 1u << hits[i].point.part;
        if (hits[i].point.version != hits[0].point.version)
            return -1;
    }
    return parts == (1u << PARTS) - 1 ? (int64_t)hits[0].point.version : -1;
}

static bool finds_itself(struct index *x, uint64_t number)
{
    struct point_hit hits[1];
    struct points_answer answer;
    const char *why = "";
    float q[DIMENSION];
    struct points_query query = {.space = {NULL, DIMENSION}, .vector = q, .k = 1};
    topic_vector(number, DIMENSION, q);
    return index_search(x, &query, hits, &answer, &why) == 0 && answer.count == 1 &&
           hits[0].point.owner == number && hits[0].score > 0.9999f;
}

static void make(const struct fixture *f)
{
    fixture_create(f, DIMENSION, SEGMENT);
    struct index_writer *w = fixture_writer(f);
    fixture_fill(w, DIMENSION, 0, POINTS);
    for (uint64_t i = 0; i < MOVING; i++)
        check(put_version(w, POINTS + i, 1) == 0);
    index_writer_close(w);
}

struct reading {
    struct index *x;
    bool *stop;
    int searches, wrong;
};

static void *read_always(void *arg)
{
    struct reading *r = arg;
    int64_t last[MOVING] = {0};
    uint64_t seed = (uint64_t)(uintptr_t)r;
    while (!__atomic_load_n(r->stop, __ATOMIC_RELAXED)) {
        uint64_t i = next_bits(&seed) % MOVING;
        int64_t version = version_of(r->x, POINTS + i);
        r->wrong += version < last[i] || version < 1;
        last[i] = version;
        r->wrong += !finds_itself(r->x, next_bits(&seed) % POINTS);
        r->searches += 2;
    }
    return NULL;
}

static _Noreturn void change_always(const struct fixture *f, int told)
{
    struct index_writer *w = fixture_writer(f);
    for (uint64_t version = 2;; version++)
        for (uint64_t i = 0; i < MOVING; i++)
            if (put_version(w, POINTS + i, version) || write(told, &version, 8) != 8)
                _exit(9);
}

static void test_under_load(const struct fixture *f)
{
    bool stop = false;
    int told[2], status, failed = 0;
    uint64_t version = 1;
    const char *why = "";
    struct index_info info;
    make(f);
    check(pipe(told) == 0 && fcntl(told[0], F_SETFL, O_NONBLOCK) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        change_always(f, told[1]);
    struct index *x = fixture_open(f);
    struct index_writer *w = fixture_writer(f);
    struct reading readings[2] = {{.x = x, .stop = &stop}, {.x = x, .stop = &stop}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        check(pthread_create(&threads[i], NULL, read_always, &readings[i]) == 0);
    for (int i = 0; i < 8; i++) {
        failed += index_compact(w, WAIT_MS, &why) != 0;
        usleep(30000);
    }
    check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the other process had no error");
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        check(pthread_join(threads[i], NULL) == 0);
    is_int(failed, 0, "eight compactions, while another process changes points");
    is_int(readings[0].wrong + readings[1].wrong, 0, "%d searches meanwhile are right",
           readings[0].searches + readings[1].searches);
    int64_t changes = 0;
    uint64_t last[MOVING] = {0};
    while (read(told[0], &version, 8) == 8)
        last[changes++ % MOVING] = version;
    int lost = 0;
    for (uint64_t i = 0; i < MOVING; i++)
        lost += version_of(x, POINTS + i) < (int64_t)last[i];
    ok(!lost && changes > MOVING, "none of %d changes is lost", (int)changes);
    check(index_compact(w, WAIT_MS, &why) == 0 && index_info(x, &info, &why) == 0);
    ok(info.points == POINTS + MOVING * PARTS && info.deleted == 0 && info.generation == 10,
       "what does not count is gone in the end");
    uint32_t from = 0;
    is_int(index_verify(x, &from, UINT32_MAX, &why), 0, "and the rest is whole");
    index_close(x);
    index_writer_close(w);
    close(told[0]);
    close(told[1]);
}

static void test_killed(const struct fixture *f)
{
    uint64_t seed = 99;
    const char *why = "";
    int wrong = 0;
    make(f);
    struct index *x = fixture_open(f);
    for (int i = 0; i < 15; i++) {
        int status;
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            struct index_writer *w = fixture_writer(f);
            for (;;)
                if (index_compact(w, WAIT_MS, &why))
                    _exit(9);
        }
        usleep((useconds_t)(next_bits(&seed) % 60000));
        check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
        wrong += !WIFSIGNALED(status);
        uint32_t from = 0;
        wrong += index_verify(x, &from, UINT32_MAX, &why) != 0;
        wrong += !finds_itself(x, next_bits(&seed) % POINTS) || version_of(x, POINTS) != 1;
    }
    is_int(wrong, 0, "seed 99: fifteen compactions are killed, the index is whole each time");
    struct index_writer *w = fixture_writer(f), *other = fixture_writer(f);
    is_int(index_compact(w, WAIT_MS, &why), 0, "the next one ends well");
    check(turn_take(other->lock_fd, TURN_COMPACT, 0, &why) == 0);
    is_int(index_compact(w, WAIT_MS, &why), ERR_BUSY, "one at a time");
    struct index_spec spec = {.model = "other", .dimension = DIMENSION};
    is_int(index_create(f->path, &spec, &why), ERR_BUSY, "and the file stays meanwhile");
    turn_drop(other->lock_fd, TURN_COMPACT);
    index_writer_close(other);
    index_writer_close(w);
    index_close(x);
}

int main(void)
{
    struct fixture f;
    fixture_begin(&f);
    test_under_load(&f);
    test_killed(&f);
    fixture_end(&f);
    return tap_done();
}
