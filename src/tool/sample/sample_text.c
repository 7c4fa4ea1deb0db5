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

/* A ratio and the interval around it, all in hundredths. */
static void add_interval(struct buf *b, struct sample_random *r)
{
    unsigned ratio = 60 + sample_random_below(r, 180);
    unsigned width = 8 + sample_random_below(r, 30);
    unsigned low = ratio - width, high = ratio + width + width / 5;
    buf_printf(b, "%u.%02u, 95\\%% CI %u.%02u--%u.%02u", ratio / 100, ratio % 100, low / 100,
               low % 100, high / 100, high % 100);
}

static void add_number(struct buf *b, struct sample_random *r, char slot)
{
    unsigned n;
    switch (slot) {
    case 'n':
        buf_add_int(b, 40 + sample_random_below(r, 9000));
        return;
    case 'p':
        n = 11 + sample_random_below(r, 600);
        buf_printf(b, "%u.%u\\%%", n / 10, n % 10);
        return;
    case 'r':
        n = 60 + sample_random_below(r, 180);
        buf_printf(b, "%u.%02u", n / 100, n % 100);
        return;
    case 'i':
        add_interval(b, r);
        return;
    case 't':
        buf_printf(b, "$p < 0.0%u$", 1 + sample_random_below(r, 5));
        return;
    default:
        check(slot == 'y');
        buf_add_int(b, 2 + sample_random_below(r, 8));
    }
}

/* NULL: the slot is for a number. */
static const char *word(const struct sample_theme *t, char slot)
{
    const char *const words[128] = {
        ['S'] = t->subject,     ['F'] = t->factors[0],  ['G'] = t->factors[1],
        ['O'] = t->outcomes[0], ['P'] = t->outcomes[1], ['M'] = t->methods[0],
        ['N'] = t->methods[1],  ['D'] = t->material,
    };
    return words[(unsigned char)slot % 128];
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
