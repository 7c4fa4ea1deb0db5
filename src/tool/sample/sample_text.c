#include "base/check.h"
#include "tool/sample/sample_paper.h"

/* --- themes --- */

static unsigned length(const char *const *list)
{
    unsigned n = 0;
    while (list[n])
        n++;
    return n;
}

const char *sample_pick(struct sample_random *r, const char *const *list)
{
    return list[sample_random_below(r, length(list))];
}

static void pick_two(struct sample_random *r, const char *const *list, const char *out[2])
{
    unsigned n = length(list);
    unsigned first = sample_random_below(r, n);
    out[0] = list[first];
    out[1] = list[(first + 1 + sample_random_below(r, n - 1)) % n];
}

static const struct sample_topic *pick_topic(struct sample_random *r,
                                             const struct sample_journal *j)
{
    unsigned nth = sample_random_below(r, (unsigned)__builtin_popcount(j->topics));
    int i = 0;
    while (!(j->topics >> i & 1) || nth-- > 0)
        i++;
    check(i < j->field->topic_count);
    return &j->field->topics[i];
}

struct sample_theme sample_theme(struct sample_random *r, const struct sample_journal *j)
{
    const struct sample_topic *topic = pick_topic(r, j);
    bool chinese = j->field->language == SAMPLE_CHINESE;
    struct sample_theme t = {.random = r,
                             .chinese = chinese,
                             .sentences = chinese ? &sample_chinese : &sample_english,
                             .subject = sample_pick(r, topic->subjects),
                             .material = sample_pick(r, j->field->materials)};
    pick_two(r, topic->factors, t.factors);
    pick_two(r, topic->outcomes, t.outcomes);
    pick_two(r, j->field->methods, t.methods);
    return t;
}

/* --- slots --- */

static void add_decimal(struct buf *b, unsigned hundredths)
{
    char digits[] = {'.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10)};
    buf_add_int(b, hundredths / 100);
    buf_add(b, digits, sizeof digits);
}

static void add_percentage(struct buf *b, struct sample_random *r)
{
    unsigned tenths = 11 + sample_random_below(r, 600);
    buf_add_int(b, tenths / 10);
    buf_add_char(b, '.');
    buf_add_int(b, tenths % 10);
    buf_add_lit(b, "\\%");
}

/* A ratio and the interval around it. */
static void add_interval(struct buf *b, struct sample_random *r)
{
    unsigned ratio = 60 + sample_random_below(r, 180);
    unsigned width = 8 + sample_random_below(r, 30);
    add_decimal(b, ratio);
    buf_add_lit(b, ", 95\\% CI ");
    add_decimal(b, ratio - width);
    buf_add_lit(b, "--");
    add_decimal(b, ratio + width + width / 5);
}

static void add_number(struct buf *b, struct sample_random *r, char slot)
{
    switch (slot) {
    case 'n':
        buf_add_int(b, 40 + sample_random_below(r, 9000));
        return;
    case 'p':
        add_percentage(b, r);
        return;
    case 'r':
        add_decimal(b, 60 + sample_random_below(r, 180));
        return;
    case 'i':
        add_interval(b, r);
        return;
    case 't':
        buf_add_lit(b, "$p < 0.0");
        buf_add_int(b, 1 + sample_random_below(r, 5));
        buf_add_char(b, '$');
        return;
    default:
        check(slot == 'y');
        buf_add_int(b, 2 + sample_random_below(r, 8));
    }
}

static const char *word(const struct sample_theme *t, char slot)
{
    switch (slot) {
    case 'S':
        return t->subject;
    case 'F':
        return t->factors[0];
    case 'G':
        return t->factors[1];
    case 'O':
        return t->outcomes[0];
    case 'P':
        return t->outcomes[1];
    case 'M':
        return t->methods[0];
    case 'N':
        return t->methods[1];
    case 'D':
        return t->material;
    default:
        return NULL;
    }
}

static void add_word(struct buf *b, const char *w, bool capital)
{
    if (capital && *w >= 'a' && *w <= 'z')
        buf_add_char(b, (char)(*w++ - 'a' + 'A'));
    buf_add(b, w, strlen(w));
}

static void add_sentence(struct buf *b, const struct sample_theme *t, const char *sentence)
{
    const char *s = sentence, *slot;
    while ((slot = strchr(s, '@'))) {
        buf_add(b, s, (size_t)(slot - s));
        const char *w = word(t, slot[1]);
        if (w)
            add_word(b, w, slot == sentence);
        else
            add_number(b, t->random, slot[1]);
        s = slot + 2;
    }
    buf_add(b, s, strlen(s));
}

/* --- texts --- */

void sample_title(struct buf *b, const struct sample_theme *t)
{
    add_sentence(b, t, sample_pick(t->random, t->sentences->titles));
}

static unsigned words_since(const struct buf *b, size_t start)
{
    struct str s = buf_str(b);
    unsigned n = 1;
    for (size_t i = start; i < s.n; i++)
        n += s.p[i] == ' ';
    return n;
}

/* Sentence number nth of the list, modulo its length: consecutive calls do not repeat one. */
static void add_part(struct buf *b, const struct sample_theme *t, const char *const *list,
                     unsigned nth)
{
    if (!t->chinese)
        buf_add_char(b, ' ');
    add_sentence(b, t, list[nth % length(list)]);
}

static void add_parts(struct buf *b, const struct sample_theme *t, const char *const *list,
                      unsigned count)
{
    unsigned first = sample_random_below(t->random, length(list));
    for (unsigned i = 0; i < count; i++)
        add_part(b, t, list, first + i);
}

/* The longest sentences have 35 words, and two may follow the last check of the count. */
static unsigned words_wanted(const struct sample_theme *t)
{
    unsigned room = SAMPLE_ABSTRACT_WORDS_MAX - SAMPLE_ABSTRACT_WORDS_MIN - 2 * 35;
    return SAMPLE_ABSTRACT_WORDS_MIN + sample_random_below(t->random, room);
}

static void add_results(struct buf *b, const struct sample_theme *t, size_t start)
{
    const char *const *list = t->sentences->results;
    if (t->chinese) {
        add_parts(b, t, list, 3 + sample_random_below(t->random, 4));
        return;
    }
    unsigned wanted = words_wanted(t);
    unsigned nth = sample_random_below(t->random, length(list));
    /* With an odd step all sixteen come before one repeats. */
    unsigned step = 1 + 2 * sample_random_below(t->random, 4);
    do
        add_part(b, t, list, nth += step);
    while (words_since(b, start) < wanted);
}

void sample_abstract(struct buf *b, const struct sample_theme *t)
{
    const struct sample_sentences *s = t->sentences;
    size_t start = b->len;
    add_sentence(b, t, sample_pick(t->random, s->openings));
    add_parts(b, t, s->aims, 1);
    add_parts(b, t, s->methods, 1 + sample_random_below(t->random, 2));
    add_results(b, t, start);
    add_parts(b, t, s->endings, 1);
}
