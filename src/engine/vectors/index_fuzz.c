/* Whatever happens to the bytes of a file: no call crashes or hangs, and what a search returns are
 * points that were put. The input is a list of changes to a small index: where, and which byte; or,
 * if it begins with 'F', a whole file. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/vectors/index_fixture.h"

#define DIMENSION 8
#define SEGMENT   64
#define POINTS    100
#define PARTS_MAX (SEGMENTS_AT + 2 * 7 * PAGE_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fixture place;
static char *whole; /* as it was made */
static size_t whole_bytes;

static void set_up(void)
{
    fixture_begin(&place);
    fixture_create(&place, DIMENSION, SEGMENT);
    struct index_writer *w = fixture_writer(&place);
    fixture_fill(w, DIMENSION, 0, POINTS);
    const char *why = "";
    struct points_change c = {.gone = (uint64_t[]){3, 70, 99}, .gone_count = 3};
    check(index_put(w, &c, WAIT_MS, &why) == 0);
    index_writer_close(w);
    whole = check_memory(malloc(PARTS_MAX));
    int fd = open(place.path, O_RDONLY);
    ssize_t n = pread(fd, whole, PARTS_MAX, 0);
    check(n > SEGMENTS_AT);
    whole_bytes = (size_t)n;
    close(fd);
}

/* Five bytes each: three say where, one what, one is the number of such bytes. */
static size_t damage(char *bytes, const uint8_t *data, size_t size)
{
    size_t end = whole_bytes;
    for (; size >= 5; data += 5, size -= 5) {
        size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % whole_bytes;
        size_t n = data[4] < whole_bytes - at ? data[4] : whole_bytes - at;
        if (data[4] == 0xFF)
            end = at; /* the file ends here */
        else
            memset(bytes + at, data[3], n);
    }
    return end;
}

/* Pages of zeros are left out, as a file has them that was never written there. */
static void write_file(const char *bytes, size_t n)
{
    static const char zeros[4096];
    int fd = open(place.path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && ftruncate(fd, (off_t)n) == 0);
    for (size_t at = 0; at < n; at += sizeof(zeros)) {
        size_t part = n - at < sizeof(zeros) ? n - at : sizeof(zeros);
        if (memcmp(bytes + at, zeros, part) != 0)
            check(pwrite(fd, bytes + at, part, (off_t)at) == (ssize_t)part);
    }
    close(fd);
}

static void read_it(void)
{
    struct index *x;
    const char *why = "";
    if (index_open(place.path, &x, &why))
        return;
    struct point_hit hits[POINTS];
    struct points_answer answer;
    float q[DIMENSION];
    uint64_t owners[] = {1, 2, 80};
    struct point_filter filter = {.owners = owners, .owner_count = 3};
    struct points_query query = {
        .space = {NULL, DIMENSION}, .vector = q, .k = POINTS, .filter = NULL};
    topic_vector(5, DIMENSION, q);
    for (int i = 0; i < 2; i++, query.filter = &filter)
        if (index_search(x, &query, hits, &answer, &why) == 0)
            for (size_t k = 0; k < answer.count; k++)
                check(hits[k].point.version == 1 && hits[k].point.owner < POINTS);
    uint32_t from = 0;
    (void)!index_verify(x, &from, UINT32_MAX, &why);
    index_close(x);
}

static void write_it(void)
{
    struct index_writer *w;
    const char *why = "";
    if (index_writer_open(place.path, &w, &why))
        return;
    float v[2 * DIMENSION] = {1, [DIMENSION] = 1};
    struct point points[2] = {{.owner = 5, .version = 1}, {.owner = 90, .version = 1}};
    struct points_change c = {
        .space = {NULL, DIMENSION}, .points = points, .vectors = v, .count = 2};
    (void)!index_put(w, &c, 100, &why);
    (void)!index_tag(w, 7, (struct point_tags){.year = 1}, 100, &why);
    index_writer_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!whole)
        set_up();
    if (size && data[0] == 'F') {
        write_file((const char *)data + 1, size - 1);
    } else {
        static char *bytes;
        bytes = bytes ? bytes : check_memory(malloc(whole_bytes));
        memcpy(bytes, whole, whole_bytes);
        write_file(bytes, damage(bytes, data, size));
    }
    read_it();
    write_it();
    read_it();
    return 0;
}
