#include "tool/sim/sim_words.h"

#include <stdlib.h>

#include "base/bytes16.h"

#define LETTERS_MIN    4
#define PREFIX_BYTES   4  /* a word that counts has at least so many */
#define STOP_BYTES_MAX 12 /* no stop word is longer */

enum kind { GAP = 0, LETTER = 1, DIGIT = 2, WIDE = 4, HAN = 8 };

/* By first byte; WIDE ones are looked at as a whole character. */
static const unsigned char kinds[256] = {
    ['0' ... '9'] = DIGIT,
    ['A' ... 'Z'] = LETTER,
    ['a' ... 'z'] = LETTER,
    [0x80 ... 0xFF] = WIDE,
};

/* Everything above ASCII that is not listed is a letter. Sorted. */
static const struct {
    uint32_t first, last;
    enum kind kind;
} ranges[] = {
    {0x0080, 0x00A9, GAP}, {0x00AB, 0x00B4, GAP}, {0x00B6, 0x00B9, GAP},   {0x00BB, 0x00BF, GAP},
    {0x00D7, 0x00D7, GAP}, {0x00F7, 0x00F7, GAP}, {0x2000, 0x2BFF, GAP},   {0x3000, 0x303F, GAP},
    {0x3400, 0x4DBF, HAN}, {0x4E00, 0x9FFF, HAN}, {0xE000, 0xF8FF, GAP},   {0xF900, 0xFAFF, HAN},
    {0xFE30, 0xFE4F, GAP}, {0xFEFF, 0xFF0F, GAP}, {0xFF1A, 0xFF20, GAP},   {0xFF3B, 0xFF40, GAP},
    {0xFF5B, 0xFF65, GAP}, {0xFFF0, 0xFFFF, GAP}, {0x1F000, 0x1FAFF, GAP}, {0x20000, 0x3FFFF, HAN},
};

static uint32_t decode(const unsigned char *p, size_t n)
{
    if (n == 2)
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    if (n == 3)
        return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* The kind of the character above ASCII at p, and its bytes. */
static enum kind wide_kind(const unsigned char *p, const unsigned char *end, size_t *n)
{
    /* Most Han characters: U+5000 to U+9FFF, where every second and third byte is valid. */
    if (*p >= 0xE5 && *p <= 0xE9 && end - p >= 3 && (p[1] & 0xC0) == 0x80 &&
        (p[2] & 0xC0) == 0x80) {
        *n = 3;
        return HAN;
    }
    *n = str_utf8_step(str_from((const char *)p, (size_t)(end - p)));
    if (*n == 0) {
        *n = 1;
        return GAP;
    }
    uint32_t c = decode(p, *n);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && ranges[i].first <= c; i++)
        if (c <= ranges[i].last)
            return ranges[i].kind;
    return LETTER;
}

static bool at_wide(const unsigned char *p, const unsigned char *end, enum kind want, size_t *n)
{
    return p < end && *p >= 0x80 && wide_kind(p, end, n) == want;
}

void sim_words_init(struct sim_words *w, struct str text)
{
    w->at = (const unsigned char *)(text.p ? text.p : "");
    w->end = w->at + text.n;
}

static inline void take_run(struct sim_words *w, struct sim_word *out)
{
    const unsigned char *p = w->at;
    size_t letters = 0, n;
    for (;;) {
        while (p < w->end && kinds[*p] & (LETTER | DIGIT))
            letters += kinds[*p++] & LETTER;
        if (!at_wide(p, w->end, LETTER, &n))
            break;
        p += n;
        letters++;
    }
    out->text = str_from((const char *)w->at, (size_t)(p - w->at));
    out->counts = letters >= LETTERS_MIN;
    out->han = false;
    w->at = p;
}

/* The pair that begins here, or a character that stands alone; the next word begins with the
 * pair's second character. */
static void take_han(struct sim_words *w, size_t n, struct sim_word *out)
{
    const unsigned char *p = w->at;
    size_t next_n;
    out->counts = at_wide(p + n, w->end, HAN, &next_n);
    out->han = true;
    out->text = str_from((const char *)p, out->counts ? n + next_n : n);
    w->at = p + n;
}

static inline bool next_word(struct sim_words *w, struct sim_word *out)
{
    for (;;) {
        while (w->at < w->end && kinds[*w->at] == GAP)
            w->at++;
        if (w->at == w->end)
            return false;
        size_t n = 1;
        enum kind kind = kinds[*w->at] == WIDE ? wide_kind(w->at, w->end, &n) : LETTER;
        if (kind == LETTER) {
            take_run(w, out);
            return true;
        }
        if (kind == HAN) {
            take_han(w, n, out);
            return true;
        }
        w->at += n;
    }
}

bool sim_words_next(struct sim_words *w, struct sim_word *out)
{
    return next_word(w, out);
}

/* Lower case, byte by byte: the capitals of Latin-1 are C3 80 to C3 9E but for the sign C3 97. */
static unsigned char fold(const unsigned char *p, size_t i)
{
    unsigned char c = p[i];
    bool latin = i > 0 && p[i - 1] == 0xC3 && c >= 0x80 && c <= 0x9E && c != 0x97;
    return (c >= 'A' && c <= 'Z') || latin ? (unsigned char)(c | 0x20) : c;
}

static bool same_word(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    const unsigned char *p = (const unsigned char *)a.p, *q = (const unsigned char *)b.p;
    for (size_t i = 0; i < a.n; i++)
        if (p[i] != q[i] && fold(p, i) != fold(q, i))
            return false;
    return true;
}

/* --- words that say nothing of a topic ---
 *
 * English ones of four letters or more and Han pairs, sorted by bytes: what questions are put with,
 * and what scientific prose says of any topic. A paper must not be relevant because question and
 * abstract both say "about". */

static const char *const stop_words[] = {
    "about",       "above",        "abstract",     "according", "across",   "after",    "again",
    "against",     "also",         "although",     "among",     "amongst",  "analysis", "another",
    "approach",    "around",       "article",      "articles",  "author",   "authors",  "available",
    "based",       "because",      "been",         "before",    "being",    "below",    "between",
    "both",        "cannot",       "clear",        "could",     "data",     "describe", "described",
    "describes",   "discuss",      "discusses",    "does",      "doing",    "done",     "down",
    "during",      "each",         "effect",       "effects",   "either",   "else",     "ever",
    "every",       "evidence",     "examine",      "examined",  "examines", "explain",  "find",
    "finds",       "focus",        "focuses",      "following", "found",    "from",     "further",
    "give",        "given",        "gives",        "have",      "having",   "here",     "into",
    "investigate", "investigated", "investigates", "itself",    "just",     "kind",     "kinds",
    "least",       "less",         "like",         "made",      "make",     "many",     "measure",
    "measured",    "measures",     "mention",      "mentions",  "method",   "methods",  "might",
    "more",        "most",         "much",         "must",      "neither",  "none",     "only",
    "other",       "others",       "over",         "paper",     "papers",   "please",   "present",
    "presented",   "presents",     "question",     "regarding", "relevant", "report",   "reported",
    "reports",     "research",     "result",       "results",   "same",     "shall",    "should",
    "show",        "showed",       "shown",        "shows",     "since",    "some",     "studied",
    "studies",     "study",        "such",         "than",      "that",     "their",    "them",
    "then",        "there",        "these",        "they",      "this",     "those",    "through",
    "title",       "together",     "toward",       "towards",   "under",    "until",    "upon",
    "used",        "uses",         "using",        "very",      "visible",  "were",     "what",
    "when",        "where",        "whether",      "which",     "while",    "whom",     "whose",
    "will",        "with",         "within",       "without",   "work",     "works",    "would",
    "your",        "什么",         "以及",         "使用",      "关于",     "分析",     "包括",
    "哪些",        "影响",         "报告",         "文章",      "是否",     "有关",     "本文",
    "测量",        "研究",         "结果",         "论文",      "进行",     "通过",     "针对",
};

static int compare_stop(const void *key, const void *entry)
{
    const struct str *word = key;
    return str_compare(*word, str_of(*(const char *const *)entry));
}

bool sim_word_is_stop(struct str word)
{
    char low[STOP_BYTES_MAX];
    if (word.n > sizeof low)
        return false;
    for (size_t i = 0; i < word.n; i++)
        low[i] = (char)fold((const unsigned char *)word.p, i);
    struct str folded = str_from(low, word.n);
    return bsearch(&folded, stop_words, sizeof stop_words / sizeof *stop_words, sizeof *stop_words,
                   compare_stop);
}

/* --- the words of a question --- */

/* The beginning of a word that counts. Setting bit 5 everywhere folds more than case, so two words
 * that are the same always agree here; same_word decides. */
static inline uint32_t prefix_of(const char *word)
{
    uint32_t prefix;
    memcpy(&prefix, word, PREFIX_BYTES);
    return prefix | 0x20202020u;
}

static inline uint32_t filter_at(uint32_t prefix)
{
    return (prefix * 0x9E3779B1u) >> 23; /* 0 to 511 */
}

static inline bool may_have(const struct sim_word_set *set, const char *word)
{
    uint32_t at = filter_at(prefix_of(word));
    return set->filter[at / 64] >> at % 64 & 1;
}

/* Where the word is, or the free slot where it would be. */
static struct str *find_slot(const struct sim_word_set *set, struct str word)
{
    uint64_t key = prefix_of(word.p) ^ (uint64_t)word.n << 32;
    size_t i = (key * 0x9E3779B97F4A7C15u >> 32) & set->mask;
    while (set->slots[i].n && !same_word(set->slots[i], word))
        i = (i + 1) & set->mask;
    return &set->slots[i];
}

static void add_word(struct sim_word_set *set, struct str word)
{
    *find_slot(set, word) = word;
    uint32_t at = filter_at(prefix_of(word.p));
    set->filter[at / 64] |= (uint64_t)1 << at % 64;
    for (size_t i = 0; i < word.n; i++)
        set->wide |= (unsigned char)word.p[i] >= 0x80;
}

void sim_word_set_init(struct arena *a, struct sim_word_set *set, struct str question)
{
    if (question.n > SIM_QUESTION_BYTES_MAX)
        question.n = SIM_QUESTION_BYTES_MAX;
    /* A Han pair takes three bytes of its own, other words more: less than half gets full. */
    size_t slots = 16;
    while (slots < question.n)
        slots *= 2;
    *set = (struct sim_word_set){.slots = ARENA_ARRAY(a, struct str, slots), .mask = slots - 1};

    struct sim_words words;
    struct sim_word word;
    sim_words_init(&words, question);
    while (next_word(&words, &word))
        if (word.counts && !sim_word_is_stop(word.text))
            add_word(set, word.text);
}

/* --- matching ---
 *
 * A paper has some 250 words, nearly none of which is in the set, and the branches of next_word
 * cannot be predicted. So text is scanned in blocks of 64 bytes: a bit for each byte that belongs
 * to a word, from which shifts yield the starts of words of four bytes or more. Only those whose
 * beginning passes the filter are read as words. Characters beyond ASCII are gaps when the set has
 * none of them: a word beside one is read again if it passes the filter. Otherwise words with any
 * in or around them are read one by one. */

#define BLOCK_BYTES 64

struct block { /* a bit per byte: of words in ASCII, of anything beyond it */
    uint64_t words, wide;
};

typedef unsigned char moved16 __attribute__((vector_size(16))); /* these may wrap around */

/* The bytes from first to last, in one comparison: they are moved to the upper end of what a byte
 * can be, and what was above them becomes negative. */
static inline bytes16 in_range(bytes16 v, unsigned char first, unsigned char last)
{
    return (bytes16)((moved16)v + (unsigned char)(127 - last)) >
           (signed char)(126 - (last - first));
}

static inline struct block read_block(const unsigned char *p)
{
    struct block b = {0, 0};
    for (unsigned i = 0; i < BLOCK_BYTES; i += 16) {
        bytes16 v = bytes16_load(p + i);
        bytes16 word = in_range(v | 0x20, 'a', 'z') | in_range(v, '0', '9');
        b.words |= (uint64_t)bytes16_bits(word) << i;
        b.wide |= (uint64_t)bytes16_bits(v < 0) << i;
    }
    return b;
}

static inline struct block block_at(const struct sim_words *w)
{
    size_t left = (size_t)(w->end - w->at);
    if (left >= BLOCK_BYTES)
        return read_block(w->at);
    unsigned char padded[BLOCK_BYTES] = {0};
    memcpy(padded, w->at, left);
    return read_block(padded);
}

/* How much of the block is words that end in it, and the gaps after them, all ASCII. */
static inline unsigned whole_bytes(struct block b)
{
    uint64_t gaps = ~(b.words | b.wide);
    if (b.wide)
        gaps &= (b.wide & -b.wide) - 1; /* those before the first wide byte */
    return gaps ? BLOCK_BYTES - (unsigned)__builtin_clzll(gaps) : 0;
}

/* Whether what stands before p, in a text that begins at start, is a letter beyond ASCII. */
static bool after_wide_letter(const unsigned char *start, const unsigned char *p)
{
    const unsigned char *first = p;
    while (first > start && p - first < 3 && (first[-1] & 0xC0) == 0x80)
        first--;
    size_t n;
    return first > start && first[-1] >= 0xC0 && wide_kind(first - 1, p, &n) == LETTER &&
           first - 1 + n == p;
}

/* text is all that words visits. */
static bool match_next(const struct sim_word_set *set, struct str text, struct sim_words *words,
                       struct str *word)
{
    struct sim_word w;
    if (!next_word(words, &w) || !w.counts || !may_have(set, w.text.p) ||
        !find_slot(set, w.text)->n)
        return false;
    if (!set->wide &&
        after_wide_letter((const unsigned char *)text.p, (const unsigned char *)w.text.p))
        return false;
    *word = w.text;
    return true;
}

/* bits has the words of the block at hand that end in it. */
static inline bool match_bits(const struct sim_word_set *set, struct str text,
                              const struct sim_words *words, uint64_t bits, struct str *word)
{
    uint64_t starts = bits & ~(bits << 1) & bits >> 1 & bits >> 2 & bits >> 3;
    for (; starts; starts &= starts - 1) {
        const unsigned char *at = words->at + __builtin_ctzll(starts);
        if (may_have(set, (const char *)at) &&
            match_next(set, text, &(struct sim_words){at, words->end}, word))
            return true;
    }
    return false;
}

bool sim_word_set_match(const struct sim_word_set *set, struct str text, struct str *word)
{
    struct sim_words words;
    sim_words_init(&words, text);
    while (words.at < words.end) {
        struct block b = block_at(&words);
        if (!set->wide)
            b.wide = 0;
        unsigned whole = whole_bytes(b);
        if (whole) {
            if (match_bits(set, text, &words, b.words & UINT64_MAX >> (BLOCK_BYTES - whole), word))
                return true;
            size_t left = (size_t)(words.end - words.at);
            words.at += whole < left ? whole : left;
            continue;
        }
        do {
            if (match_next(set, text, &words, word))
                return true;
        } while (words.at < words.end && *words.at >= 0x80);
    }
    return false;
}

uint64_t sim_word_hash(struct str word, uint64_t seed)
{
    const unsigned char *p = (const unsigned char *)word.p;
    uint64_t h = seed ^ 0xCBF29CE484222325u;
    for (size_t i = 0; i < word.n; i++)
        h = (h ^ fold(p, i)) * 0x100000001B3u;
    /* FNV leaves the high bits of short words nearly alike. */
    h = (h ^ h >> 32) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* --- pieces of text --- */

struct str sim_clip(struct str s, size_t n)
{
    if (s.n <= n)
        return s;
    size_t back = 0; /* no character has more than four bytes */
    while (back < 3 && back < n && ((unsigned char)s.p[n - back] & 0xC0) == 0x80)
        back++;
    return str_from(s.p, n - back);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str sim_trim(struct str s)
{
    return str_trim_if(s, is_space);
}

/* --- tokens --- */

static bool is_ascii(const unsigned char *p) /* all of a block */
{
    bytes16 any =
        bytes16_load(p) | bytes16_load(p + 16) | bytes16_load(p + 32) | bytes16_load(p + 48);
    return bytes16_bits(any < 0) == 0;
}

/* Quarters of a token that the block stands for. A character counts where it begins: one in ASCII,
 * two for first bytes up to E2, four from E3 on. */
static int64_t quarters(const unsigned char *p)
{
    if (is_ascii(p))
        return BLOCK_BYTES;
    bytes16 sums = {0}; /* 16 at most */
    for (unsigned i = 0; i < BLOCK_BYTES; i += 16) {
        bytes16 v = bytes16_load(p + i), wide = v < 0;
        sums -= (v >= 0) + 2 * ((wide & (v >= -64)) + (wide & (v >= -29)));
    }
    return bytes16_sum(sums);
}

int64_t sim_tokens(struct str text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    int64_t sum = 0;
    size_t left = text.n;
    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES, p += BLOCK_BYTES)
        sum += quarters(p);
    if (left) {
        unsigned char padded[BLOCK_BYTES] = {0};
        memcpy(padded, p, left);
        sum += quarters(padded) - (int64_t)(BLOCK_BYTES - left); /* zeros are ASCII */
    }
    return (sum + 3) / 4;
}
