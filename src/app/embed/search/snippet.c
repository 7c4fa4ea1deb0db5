#include "app/embed/search/snippet.h"

#include "base/buf.h"
#include "corpus/prose/sentence.h"
#include "corpus/prose/words.h"

#define PLACES_MAX     4000 /* of one text: of later ones nothing is said */
#define LEAD_CHARS_MAX 160  /* before the first place: for the beginning of its sentence */
#define DOTS           "…"

/* --- the words --- */

struct asking {
    struct snippet_words *words;
    struct arena *arena;
};

static size_t find(const struct snippet_words *w, struct str word)
{
    size_t i = 0;
    while (i < w->count && !str_eq(w->words[i], word))
        i++;
    return i;
}

static bool take_word(void *arg, struct str word, size_t begin, size_t end)
{
    (void)begin, (void)end;
    const struct asking *a = arg;
    struct snippet_words *w = a->words;
    if (find(w, word) == w->count)
        w->words[w->count++] = str_dup(a->arena, word);
    return w->count < SNIPPET_WORDS_MAX;
}

void snippet_words(struct snippet_words *w, struct arena *a, struct str question)
{
    w->count = 0;
    words_each(question, take_word, &(struct asking){w, a});
}

struct looking {
    const struct snippet_words *words;
    bool found;
};

static bool look(void *arg, struct str word, size_t begin, size_t end)
{
    (void)begin, (void)end;
    struct looking *l = arg;
    l->found = find(l->words, word) < l->words->count;
    return !l->found;
}

bool snippet_has(const struct snippet_words *w, struct str text)
{
    struct looking l = {.words = w};
    words_each(text, look, &l);
    return l.found;
}

/* --- where they stand --- */

struct place {
    size_t begin, end;   /* bytes */
    int64_t first, last; /* the same in characters */
    size_t word;
};

struct places {
    const struct snippet_words *words;
    struct str text;
    struct place *list;
    size_t count, most;
    size_t counted; /* bytes, which are so many characters */
    int64_t chars;
};

static int64_t count_chars(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* Of places that only grow, but for the second of two pairs, which begins within the first. */
static int64_t chars_before(struct places *p, size_t at)
{
    struct str between = str_from(p->text.p + p->counted, at > p->counted ? at - p->counted : 0);
    if (at < p->counted)
        return p->chars - count_chars(str_from(p->text.p + at, p->counted - at));
    p->chars += count_chars(between);
    p->counted = at;
    return p->chars;
}

static bool take_place(void *arg, struct str word, size_t begin, size_t end)
{
    struct places *p = arg;
    size_t which = find(p->words, word);
    if (which == p->words->count)
        return true;
    struct place *x = &p->list[p->count++];
    *x = (struct place){.begin = begin, .end = end, .word = which};
    x->first = chars_before(p, begin);
    x->last = chars_before(p, end);
    return p->count < p->most;
}

static struct places places_of(struct arena *a, struct str text, const struct snippet_words *w,
                               size_t most)
{
    struct places p = {.words = w, .text = text, .most = most};
    size_t room = text.n / 2 + 1 < most ? text.n / 2 + 1 : most; /* two bytes make one at least */
    p.list = ARENA_ARRAY(a, struct place, room + 1);
    p.most = room;
    if (w->count)
        words_each(text, take_place, &p);
    return p;
}

/* --- the best of them --- */

struct window {
    size_t from, to; /* places: from … to - 1 */
    size_t kinds;    /* different words among them */
};

/* The one with most different words; of those the one with most places; the first. */
static struct window best_window(const struct places *p)
{
    size_t seen[SNIPPET_WORDS_MAX] = {0}, kinds = 0, to = 0;
    struct window best = {0, 0, 0};
    for (size_t from = 0; from < p->count; from++) {
        for (; to < p->count && p->list[to].last - p->list[from].first <= SNIPPET_CHARS_MAX - 2;
             to++)
            kinds += seen[p->list[to].word]++ == 0;
        if (kinds > best.kinds || (kinds == best.kinds && to - from > best.to - best.from))
            best = (struct window){from, to, kinds};
        if (to > from)
            kinds -= --seen[p->list[from].word] == 0;
        else
            to = from + 1; /* one that is longer than a snippet */
    }
    return best;
}

static bool is_border(struct str text, size_t at)
{
    return at == 0 || text.p[at - 1] == '\n' || sentence_begins(text, at);
}

static bool is_char(struct str text, size_t at)
{
    return at >= text.n || ((unsigned char)text.p[at] & 0xC0) != 0x80;
}

/* Chinese and the like: a line may break there. */
static bool is_wide(struct str text, size_t at)
{
    for (int i = 0; i < 3 && at > 0 && !is_char(text, at); i++)
        at--;
    return (unsigned char)text.p[at] >= 0xE3;
}

static bool is_between_words(struct str text, size_t at)
{
    return (unsigned char)text.p[at - 1] <= ' ' || is_wide(text, at - 1) || is_wide(text, at);
}

/* The beginning of the sentence that has this byte, if it is no more than so many characters
 * before; else of a word. */
static size_t begin_of(struct str text, size_t at, int64_t chars)
{
    size_t word = at;
    for (size_t i = at; chars >= 0; i--) {
        if (is_char(text, i)) {
            if (is_border(text, i))
                return i;
            if (is_between_words(text, i))
                word = i;
            chars--;
        }
    }
    return word;
}

/* At the end of a text: the first sentence of those that fit, too, before the byte at. */
static size_t begin_before(struct str text, size_t at, int64_t chars)
{
    size_t border = at;
    for (size_t i = at; chars >= 0; i--) {
        if (is_char(text, i)) {
            if (is_border(text, i))
                border = i;
            chars--;
        }
        if (i == 0)
            break;
    }
    return border;
}

/* Where to end, at `least` or behind it: with a sentence if that leaves more than half of the room,
 * else with a word. */
static size_t end_of(struct str text, size_t begin, size_t least, int64_t chars)
{
    size_t sentence = 0, word = 0, i = begin;
    int64_t n = 0;
    for (; i < text.n && (n < chars || !is_char(text, i)); i++) {
        n += is_char(text, i);
        if (i <= begin || i < least || !is_char(text, i))
            continue;
        if (n > chars / 2 && is_border(text, i))
            sentence = i;
        if (is_between_words(text, i))
            word = i;
    }
    return i >= text.n ? text.n : sentence ? sentence : word ? word : i;
}

/* --- as it is shown --- */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

static size_t heading_marks(struct str text, size_t at)
{
    size_t n = 0;
    if (at == 0 || text.p[at - 1] == '\n')
        while (n < 6 && at + n < text.n && text.p[at + n] == '#')
            n++;
    return n && at + n < text.n && text.p[at + n] == ' ' ? n : 0;
}

/* Bytes begin to end of the text, on one line. */
static struct str shown(struct arena *a, struct str text, size_t begin, size_t end)
{
    struct buf b;
    buf_init(&b);
    bool blank = false;
    if (begin > 0 && !is_border(text, begin))
        buf_add_lit(&b, DOTS);
    for (size_t i = begin; i < end;) {
        size_t marks = heading_marks(text, i), step = str_utf8_step(str_skip(text, i));
        if (marks || is_blank(text.p[i])) {
            blank = true;
            i += marks ? marks : 1;
            continue;
        }
        if (blank && b.len)
            buf_add_char(&b, ' ');
        blank = false;
        if (step)
            buf_add(&b, text.p + i, step);
        else
            buf_add_lit(&b, "\xef\xbf\xbd");
        i += step ? step : 1;
    }
    if (end < text.n && !is_border(text, end))
        buf_add_lit(&b, DOTS);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

/* Pairs that overlap are one mark. */
static void mark(struct arena *a, struct snippet *s, const struct snippet_words *w)
{
    struct places p = places_of(a, s->text, w, PLACES_MAX);
    for (size_t i = 0; i < p.count; i++) {
        struct snippet_mark *before = s->mark_count ? &s->marks[s->mark_count - 1] : NULL;
        if (before && p.list[i].first <= before->end && p.list[i].first > before->begin &&
            p.list[i].last > before->end && p.list[i].first < before->end)
            before->end = p.list[i].last;
        else if (s->mark_count < SNIPPET_MARKS_MAX)
            s->marks[s->mark_count++] = (struct snippet_mark){p.list[i].first, p.list[i].last};
    }
}

struct snippet snippet_of(struct arena *a, struct str text, const struct snippet_words *w)
{
    struct snippet s = {.text = STR("")};
    if (!text.n)
        return s;
    struct places p = places_of(a, text, w, PLACES_MAX);
    struct window best = best_window(&p);
    size_t begin = 0, least = 0;
    if (best.kinds) {
        const struct place *first = &p.list[best.from], *last = &p.list[best.to - 1];
        int64_t left = SNIPPET_CHARS_MAX - 2 - (last->last - first->first);
        begin = begin_of(text, first->begin, left < LEAD_CHARS_MAX ? left : LEAD_CHARS_MAX);
        least = last->end;
    }
    size_t end = end_of(text, begin, least, SNIPPET_CHARS_MAX - 2);
    int64_t used = count_chars(str_from(text.p + begin, end - begin));
    if (end == text.n)
        begin = begin_before(text, begin, SNIPPET_CHARS_MAX - 2 - used);
    s.text = shown(a, text, begin, end);
    mark(a, &s, w);
    return s;
}
