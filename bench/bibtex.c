/* Megabytes of BibTeX per second: bench_bibtex ROUNDS FILE... reads the files from memory and
 * prints "MB/s entries". */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/time.h"
#include "corpus/bibtex.h"

static void load(struct buf *b, const char *path)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, buf_reserve(b, 1 << 20), 1 << 20)) > 0)
        buf_added(b, (size_t)n);
    if (n < 0)
        perror(path);
    check(n == 0);
    close(fd);
}

static uint64_t read_once(struct str s)
{
    struct bibtex *b = bibtex_new(NULL, NULL);
    struct bibtex_entry e;
    uint64_t entries = 0;
    size_t used;
    while (bibtex_next(b, s, true, &e, &used) == BIBTEX_ENTRY) {
        entries++;
        s = str_from(s.p + used, s.n - used);
    }
    bibtex_free(b);
    return entries;
}

int main(int argc, char **argv)
{
    int64_t rounds;
    if (argc < 3 || !str_to_i64(str_of(argv[1]), &rounds) || rounds < 1) {
        fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]);
        return 2;
    }
    uint64_t bytes = 0, entries = 0;
    int64_t us = 0;
    for (int i = 2; i < argc; i++) {
        struct buf b;
        buf_init(&b);
        load(&b, argv[i]);
        entries += read_once(buf_str(&b)); /* warms the caches, and is not counted */
        int64_t start_us = time_mono_us();
        for (int64_t round = 0; round < rounds; round++)
            check(read_once(buf_str(&b)) > 0);
        us += time_mono_us() - start_us;
        bytes += b.len * (uint64_t)rounds;
        buf_release(&b);
    }
    printf("%.1f %llu\n", (double)bytes / (double)us, (unsigned long long)entries);
    return 0;
}
