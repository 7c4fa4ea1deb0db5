#include "corpus/quote.h"

#include <unictype.h>
#include <unistr.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "corpus/quote_fold.h"

#define MARK_BYTES   32   /* of folded text between two marks; no less than a block */
#define SHORT_BYTES  16   /* a quote below this must not begin or end inside a word */
#define LETTERS_MIN  3    /* and digits of a quote */
#define PIECES_MAX   16   /* of a quote with ellipses */
#define CHAINS_MAX   1000 /* places of its first piece that are tried */
#define TRIES_SPARED 100

/* Where a piece of folded text begins, and where in the text folding may begin for it. There is one
 * for each MARK_BYTES of folded text: the last one that was known at that place, or up to a block
 * before. Folding from it on tells the source of the rest. */
struct mark {
    uint32_t folded, source;
};

_Static_assert(MARK_BYTES >= QUOTE_FOLD_BLOCK, "a step passes one mark at most");

struct quote_text {
    struct str document;
    char *folded;
    size_t n;
    struct mark *marks;
    size_t mark_count;
};

/* --- folding --- */

struct quote_text *quote_text_new(struct arena *a, struct str document)
{
    check(document.n <= QUOTE_DOCUMENT_BYTES_MAX);
    struct quote_text *d = ARENA_NEW(a, struct quote_text);
    d->document = document;
    d->folded = arena_alloc(a, document.n + 1);
    d->marks = arena_alloc(a, (document.n / MARK_BYTES + 1) * sizeof *d->marks);
    struct quote_fold f = {.text = document};
    for (;;) {
        struct mark here = {(uint32_t)d->n, (uint32_t)f.at};
        struct quote_piece piece;
        d->n += quote_fold_block(&f, d->folded + d->n);
        if (f.at == here.source) {
            if (!quote_fold_next(&f, &piece))
                break;
            memcpy(d->folded + d->n, piece.p, piece.n);
            d->n += piece.n;
            here.source = (uint32_t)piece.begin;
        }
        if (d->n > d->mark_count * MARK_BYTES)
            d->marks[d->mark_count++] = here;
    }
    check(d->n <= document.n && d->mark_count <= document.n / MARK_BYTES + 1);
    return d;
}

static struct str fold_quote(struct buf *b, struct str quote)
{
    char *p = buf_reserve(b, quote.n + 1);
    size_t n = 0;
    struct quote_fold f = {.text = quote};
    struct quote_piece piece;
    for (;;) {
        n += quote_fold_ascii(&f, p + n, quote.n - n);
        if (!quote_fold_next(&f, &piece))
            break;
        memcpy(p + n, piece.p, piece.n);
        n += piece.n;
    }
    buf_added(b, n);
    return buf_str(b);
}

/* --- where folded text comes from --- */

/* The piece that has the folded byte at `at`. */
static struct quote_piece source_of(const struct quote_text *d, size_t at)
{
    const struct mark *m = &d->marks[at / MARK_BYTES];
    struct quote_fold f = {.text = d->document, .at = m->source};
    struct quote_piece piece = {.n = 0};
    char passed[2 * MARK_BYTES];
    for (size_t folded = m->folded; folded <= at; folded += piece.n) {
        folded += quote_fold_ascii(&f, passed, at - folded);
        bool more = quote_fold_next(&f, &piece);
        check(more);
    }
    return piece;
}

static ucs4_t char_at(struct str s, size_t i)
{
    ucs4_t c = 0xFFFD;
    size_t n = str_utf8_step(str_skip(s, i));
    if (n)
        u8_mbtouc_unsafe(&c, (const uint8_t *)s.p + i, n);
    return c;
}

static struct quote_place place_of(const struct quote_text *d, size_t begin, size_t end)
{
    struct quote_place p = {source_of(d, begin).begin, source_of(d, end - 1).end};
    while (p.end < d->document.n && quote_is_mark(char_at(d->document, p.end)))
        p.end += 2; /* all of them have two bytes */
    return p;
}

/* --- the edges of a place --- */

enum class {
    OTHER,
    LETTER, /* of an alphabet: those have spaces between words */
    DIGIT,
};

static bool is_east_asian(ucs4_t c)
{
    return (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) || (c >> 16) == 2;
}

static enum class class_of(ucs4_t c) {
    if (c < 0x80) return ascii_is_digit((char)c) ? DIGIT
    : ascii_is_letter((char)c)                   ? LETTER
                                                 : OTHER;
    if (c >= 0xFF10 && c <= 0xFF19) return DIGIT;
    return !is_east_asian(c) && uc_is_property_alphabetic(c) ? LETTER : OTHER;
}

/* The character that ends before i, and where it begins. */
static ucs4_t char_before(struct str s, size_t i, size_t *begin)
{
    size_t n = str_utf8_back(str_from(s.p, i));
    *begin = i - (n ? n : i > 0);
    return n ? char_at(s, *begin) : 0xFFFD;
}

static bool is_point(ucs4_t c)
{
    return c == '.' || c == ',' || c == 0xB7 || c == 0xFF0E;
}

static bool is_minus(ucs4_t c)
{
    return c == '-' || c == 0x2212 || c == 0x2013 || c == 0xFF0D;
}

/* Whether a dash behind this character, U+FFFD at the start of a text, is a sign of a number. */
static bool begins_number(ucs4_t c)
{
    return c == 0xFFFD || uc_is_property_white_space(c) ||
           (c < 0x80 && strchr("([{=<>,:;~|", (int)c));
}

static bool begins_inside(struct str document, size_t begin, struct str folded)
{
    size_t at, further;
    ucs4_t c = char_before(document, begin, &at), c2 = char_before(document, at, &further);
    enum class was = class_of(c), before = class_of(c2), first = class_of(char_at(folded, 0));
    if (first == LETTER)
        return folded.n < SHORT_BYTES && was == LETTER;
    if (first == DIGIT)
        return was == DIGIT || (is_point(c) && before == DIGIT) ||
               (is_minus(c) && begins_number(c2));
    bool numeric = folded.p[0] == '.' || folded.p[0] == '-';
    return numeric && was == DIGIT;
}

static bool ends_inside(struct str document, size_t end, struct str folded)
{
    if (end == document.n)
        return false;
    size_t last;
    ucs4_t c = char_at(document, end);
    size_t next = end + str_utf8_step(str_skip(document, end));
    enum class was = class_of(char_before(folded, folded.n, &last));
    if (was == LETTER)
        return folded.n < SHORT_BYTES && class_of(c) == LETTER;
    return was == DIGIT &&
           (class_of(c) == DIGIT || (is_point(c) && class_of(char_at(document, next)) == DIGIT));
}

/* --- searching --- */

struct hit {
    size_t end; /* in the folded text */
    struct quote_place place;
};

/* The first place in folded bytes from..to. Overlapping ones are many only in texts that repeat
 * themselves: the tries are limited so that the work stays linear. */
static bool search(const struct quote_text *d, struct str quote, size_t from, size_t to,
                   struct hit *out)
{
    size_t tries = (to - from) / quote.n + TRIES_SPARED;
    while (tries-- && to - from >= quote.n) {
        const char *found = memmem(d->folded + from, to - from, quote.p, quote.n);
        if (!found)
            return false;
        size_t at = (size_t)(found - d->folded);
        struct hit hit = {at + quote.n, place_of(d, at, at + quote.n)};
        if (!begins_inside(d->document, hit.place.begin, quote) &&
            !ends_inside(d->document, hit.place.end, quote)) {
            *out = hit;
            return true;
        }
        from = at + 1;
    }
    return false;
}

static size_t points_at(struct str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] == '.')
        n++;
    return n;
}

/* Bytes of the punctuation that s begins with; 0: none. A single point before a digit is none. */
static size_t punctuation_at(struct str s)
{
    size_t dots = points_at(s);
    if (dots)
        return dots == 1 && s.n > 1 && ascii_is_digit(s.p[1]) ? 0 : dots;
    if (s.n && memchr(",;:!?()[]{}|/\\#&", s.p[0], 16))
        return 1;
    ucs4_t c = s.n ? char_at(s, 0) : 0;
    bool bracket = (c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301B);
    return bracket ? 3 : c == 0xB7 ? 2 : 0;
}

static struct str trimmed(struct str s)
{
    size_t n, begin;
    while ((n = punctuation_at(s)))
        s = str_skip(s, n);
    while (s.n) {
        char_before(s, s.n, &begin);
        if (!punctuation_at(str_skip(s, begin)))
            break;
        s.n = begin;
    }
    return s;
}

static bool says_enough(struct str folded)
{
    int letters = 0;
    for (size_t i = 0; i < folded.n && letters < LETTERS_MIN;) {
        ucs4_t c = char_at(folded, i);
        size_t n = str_utf8_step(str_skip(folded, i));
        letters += is_east_asian(c) ? 2 : class_of(c) != OTHER;
        i += n ? n : 1;
    }
    return letters >= LETTERS_MIN;
}

/* --- ellipses --- */

struct pieces {
    struct str of[PIECES_MAX];
    size_t count;
};

/* Cuts a folded quote where three or more points are; brackets around them are punctuation. False:
 * one is too short, or there are too many or too few of them. */
static bool cut(struct str quote, struct pieces *out)
{
    out->count = 0;
    while (quote.n) {
        ptrdiff_t at = str_find(quote, STR("..."));
        size_t n = at < 0 ? quote.n : (size_t)at;
        struct str piece = trimmed(str_from(quote.p, n));
        quote = str_skip(quote, n);
        quote = str_skip(quote, points_at(quote));
        if (piece.n == 0)
            continue;
        if (piece.n < QUOTE_PIECE_BYTES_MIN || out->count == PIECES_MAX)
            return false;
        out->of[out->count++] = piece;
    }
    return out->count > 1;
}

/* The pieces behind the first, each near the one before it. */
static bool follow(const struct quote_text *d, const struct pieces *p, struct hit *hit)
{
    for (size_t i = 1; i < p->count; i++) {
        struct str piece = p->of[i];
        size_t to = hit->end + QUOTE_GAP_BYTES_MAX + piece.n, end = hit->place.end;
        if (!search(d, piece, hit->end, to < d->n ? to : d->n, hit) ||
            hit->place.begin > end + QUOTE_GAP_BYTES_MAX)
            return false;
    }
    return true;
}

static bool find_pieces(const struct quote_text *d, const struct pieces *p, struct quote_place *out)
{
    size_t from = 0;
    struct hit first;
    for (int i = 0; i < CHAINS_MAX && search(d, p->of[0], from, d->n, &first); i++) {
        struct hit last = first;
        if (follow(d, p, &last)) {
            *out = (struct quote_place){first.place.begin, last.place.end};
            return true;
        }
        from = first.end;
    }
    return false;
}

bool quote_find(const struct quote_text *d, struct str quote, struct quote_place *out)
{
    struct buf space;
    struct pieces pieces;
    struct hit hit;
    bool found = false;
    buf_init(&space);
    struct str folded = trimmed(fold_quote(&space, quote));
    if (says_enough(folded)) {
        found = search(d, folded, 0, d->n, &hit);
        if (found)
            *out = hit.place;
        else if (cut(folded, &pieces))
            found = find_pieces(d, &pieces, out);
    }
    buf_release(&space);
    return found;
}
