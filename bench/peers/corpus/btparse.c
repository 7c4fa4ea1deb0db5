/* What bench/bibtex.c does, by libbtparse: btparse ROUNDS FILE... prints "MB/s entries". */
#include <btparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* It knows no months of its own, and would spend its time on warnings. */
static void add_months(void)
{
    static char *const months[][2] = {
        {"jan", "January"},   {"feb", "February"}, {"mar", "March"},    {"apr", "April"},
        {"may", "May"},       {"jun", "June"},     {"jul", "July"},     {"aug", "August"},
        {"sep", "September"}, {"oct", "October"},  {"nov", "November"}, {"dec", "December"},
    };
    for (size_t i = 0; i < sizeof(months) / sizeof(months[0]); i++)
        bt_add_macro_text(months[i][0], months[i][1], NULL, 0);
}

/* Regular entries only, with @strings put in and white space collapsed, as ours. */
static unsigned long read_once(char *path)
{
    unsigned long entries = 0;
    boolean good;
    AST *entry;
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(1);
    }
    while ((entry = bt_parse_entry(f, path, 0, &good))) {
        entries += good && bt_entry_metatype(entry) == BTE_REGULAR;
        bt_free_ast(entry);
    }
    fclose(f);
    return entries;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[1]) : 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]);
        return 2;
    }
    bt_initialize();
    add_months();
    bt_set_stringopts(BTE_REGULAR, BTO_CONVERT | BTO_EXPAND | BTO_PASTE | BTO_COLLAPSE);
    unsigned long entries = 0;
    double bytes = 0, seconds = 0;
    for (int i = 2; i < argc; i++) {
        struct stat st;
        entries += read_once(argv[i]); /* the file is in memory now */
        double start = now_s();
        for (int round = 0; round < rounds; round++)
            read_once(argv[i]);
        seconds += now_s() - start;
        stat(argv[i], &st);
        bytes += (double)st.st_size * rounds;
    }
    bt_cleanup();
    printf("%.1f %lu\n", bytes / seconds / 1e6, entries);
    return 0;
}
