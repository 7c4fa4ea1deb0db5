/* sample_words.h -- what the papers of the sample are about: constant tables, made up throughout,
 * generated from words/ by words.py.
 *
 * A field of research has topics; a topic has things to study (subjects), what acts on them
 * (factors) and what is measured (outcomes). A paper draws from one topic only, so that a question
 * such as "perovskite stability" finds some papers and not others. Texts go into BibTeX as they
 * stand: LaTeX is escaped already. Lists end with NULL. */
#ifndef TOOL_SAMPLE_WORDS_H
#define TOOL_SAMPLE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum sample_language { SAMPLE_ENGLISH, SAMPLE_CHINESE };

struct sample_topic {
    const char *tag; /* second level, Chinese */
    const char *const *subjects;
    const char *const *factors;
    const char *const *outcomes;
};

struct sample_field {
    const char *tag; /* first level, Chinese */
    enum sample_language language;
    const struct sample_topic *topics;
    int topic_count;
    const char *const *methods;
    const char *const *materials; /* where the data come from */
};

struct sample_journal {
    const char *name; /* as in the catalog, and of its folder */
    const char *full_name;
    const char *code; /* in its DOIs */
    const struct sample_field *field;
    unsigned topics; /* bit i: topic i of the field */
    int price;       /* points per paper */
    int weight;      /* its share of the papers */
    int first_year;
};

#define SAMPLE_LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

extern const struct sample_journal sample_journals[];
extern const int sample_journal_count;

extern const char *const sample_family_names[]; /* some with LaTeX accents */
extern const char *const sample_given_names[];
extern const char *const sample_family_names_zh[];
extern const char *const sample_given_names_zh[];

/* Sentences; @ and a letter is a place for a word, see sample_text.c. */
struct sample_sentences {
    const char *const *titles, *const *openings, *const *aims, *const *methods, *const *results,
                                                                                    *const *endings;
};
extern const struct sample_sentences sample_english, sample_chinese;
#endif
