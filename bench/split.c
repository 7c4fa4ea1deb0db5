/* Megabytes of text per second of CPU time, cut into chunks of 500 tokens with an overlap of 100:
 * bench_split WHAT FILE, where WHAT is "split", of plain text, or "both", of Markdown that is
 * cleaned first. The file has documents with \x1e between them. Prints "MB/s chunks". "clean"
 * prints the documents as plain text. */
#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "corpus/prose/markdown.h"
#include "corpus/prose/split.h"

#define LEAST_S 2
#define BETWEEN '\x1e'

static size_t chunks_of(struct str text)
{
    struct split s;
    struct split_chunk c;
    size_t count = 0;
    split_init(&s, text, (struct split_limits){500, 100});
    while (split_next(&s, &c))
        count += c.end > c.begin;
    return count;
}

/* What all documents come to. */
static size_t cut_all(const struct str *documents, size_t count, bool clean)
{
    struct arena a;
    size_t chunks = 0;
    arena_init(&a);
    for (size_t i = 0; i < count; i++) {
        struct arena_mark m = arena_mark(&a);
        chunks += chunks_of(clean ? markdown_plain(&a, documents[i]) : documents[i]);
        arena_reset(&a, m);
    }
    arena_release(&a);
    return chunks;
}

static size_t documents_of(struct arena *a, struct str rest, struct str **out)
{
    size_t count = 0, room = 0;
    *out = NULL;
    while (rest.p) {
        if (count == room) {
            *out = arena_grow(a, *out, room * sizeof **out, (2 * room + 64) * sizeof **out);
            room = 2 * room + 64;
        }
        (*out)[count++] = str_cut(&rest, BETWEEN);
    }
    return count;
}

static void print_plain(const struct str *documents, size_t count)
{
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < count; i++) {
        struct arena_mark m = arena_mark(&a);
        struct str plain = markdown_plain(&a, documents[i]);
        if (i)
            putchar(BETWEEN);
        fwrite(plain.p, 1, plain.n, stdout);
        arena_reset(&a, m);
    }
    arena_release(&a);
}

static void measure(const struct str *documents, size_t count, size_t bytes, bool clean)
{
    size_t chunks = cut_all(documents, count, clean), rounds = 0; /* not counted: caches */
    clock_t began = clock(), took = 0;
    for (; took < LEAST_S * CLOCKS_PER_SEC; rounds++) {
        check(cut_all(documents, count, clean) == chunks);
        took = clock() - began;
    }
    printf("%.1f %zu\n", (double)(bytes * rounds) / (double)took * CLOCKS_PER_SEC / 1e6, chunks);
}

int main(int argc, char **argv)
{
    struct str what = str_of(argc == 3 ? argv[1] : "");
    bool both = str_eq(what, STR("both")), clean = str_eq(what, STR("clean"));
    if (!both && !clean && !str_eq(what, STR("split"))) {
        fprintf(stderr, "usage: %s split|both|clean FILE\n", argv[0]);
        return 2;
    }
    struct arena a;
    struct str file, *documents;
    arena_init(&a);
    check(file_read(&a, argv[2], SIZE_MAX / 2, &file) == 0);
    size_t count = documents_of(&a, file, &documents);
    if (clean)
        print_plain(documents, count);
    else
        measure(documents, count, file.n, both);
    arena_release(&a);
    return 0;
}
