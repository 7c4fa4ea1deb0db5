/* sim_words.h -- words and tokens of a text, as the simulated AI counts them.
 *
 * A word is a longest run of letters and digits; two neighbouring Han characters
 * are a word of their own, for every such pair. A word counts for relevance when
 * it has four letters or more, or is a Han pair. Words are compared without
 * regard to case (ASCII and Latin-1 letters). Bytes that are not UTF-8 are gaps. */
#ifndef TOOL_SIM_WORDS_H
#define TOOL_SIM_WORDS_H

#include "base/str.h"

struct sim_words { /* visits the words of a text: `while (sim_words_next(&w, &word))` */
    const unsigned char *at, *end;
};

struct sim_word {
    struct str text;
    bool counts;
    bool han; /* a pair of Han characters, or one that no other follows */
};

void sim_words_init(struct sim_words *w, struct str text); /* borrows text */
bool sim_words_next(struct sim_words *w, struct sim_word *out);

/* The words of a question that count, but for those that say nothing of a topic ("about", "which",
 * "results", 是否). Borrows the question. */
struct sim_word_set {
    struct str *slots; /* open addressing; n == 0 is free */
    size_t mask;
    bool wide;          /* some word has more than ASCII in it */
    uint64_t filter[8]; /* a bit per word's beginning: rejects most words of a paper */
};

/* More of a question than this is not read, so that a set stays small. */
#define SIM_QUESTION_BYTES_MAX 8192

void sim_word_set_init(struct arena *a, struct sim_word_set *set, struct str question);
/* Whether a word says nothing of a topic: one of those that a set leaves out. */
bool sim_word_is_stop(struct str word);
/* The first word of text that is in the set. False leaves *word alone. */
bool sim_word_set_match(const struct sim_word_set *set, struct str text, struct str *word);

/* 64-bit hash of a word that is the same in both cases. */
uint64_t sim_word_hash(struct str word, uint64_t seed);

/* The longest beginning of s within n bytes that does not split a character. */
struct str sim_clip(struct str s, size_t n);
/* Without blanks, tabs and line ends around it. */
struct str sim_trim(struct str s);

/* Estimated tokens: a quarter per ASCII character, a whole one per character from U+3000 on
 * (Chinese, Japanese, Korean), a half per other character; rounded up. */
int64_t sim_tokens(struct str text);
#endif
