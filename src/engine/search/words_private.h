/* words_private.h -- what the files of the words share. */
#ifndef ENGINE_SEARCH_WORDS_PRIVATE_H
#define ENGINE_SEARCH_WORDS_PRIVATE_H

#include "engine/search/words.h"

/* What a sample of a table's rows says. */
struct words_sample {
    struct map *counts; /* of a word: rows that have it; NULL: none was taken */
    size_t rows;        /* of the sample */
    double total;       /* of the table */
    int64_t due_ms;     /* the next one */
    bool taking;        /* a task does it now */
};

struct words {
    struct sql_pool *sql;
    struct words_sample samples[COLLECTION_COUNT];
};

const char *words_table(enum collection which);

/* Takes a sample if it is time. No error: what was known before stays. */
void words_sample_take(struct task *t, struct words *w, enum collection which);
/* How many texts have a word, about. */
double words_sample_texts(const struct words_sample *s, struct str word);
#endif
