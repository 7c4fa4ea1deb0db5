/* Where entries begin and end. Braces alone decide, for BibTeX requires balance even in quotes;
 * only in a parenthesised entry quotes count too, for they may hide a ')'.
 *
 *            "@type{"              closed
 *   BETWEEN ----------> FRAMING ----------> BETWEEN   the entry is parsed, or a comment skipped
 *      ^                   | too long, too deep, or the input ends
 *      | "@type{" at the   v
 *      +-- line's start RECOVERING
 *
 * An entry at the beginning of a line while FRAMING means that a brace is missing: back to BETWEEN
 * at that place. */
#include "corpus/bibtex.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "corpus/bibtex_private.h"

#define TYPE_MAX   64  /* letters of a type, spaces behind it, spaces before a head: no more */
#define KEY_MAX    256 /* looked at when deciding whether something is a head */
#define LOOK_BACK  (TYPE_MAX + 1)
#define FIRST_LINE 1

enum verdict { NO, YES, UNSURE };

struct head {
    struct str type;
    size_t bytes; /* from '@' to behind the brace */
    char open;
};

struct bibtex *bibtex_new(bibtex_report *report, void *arg)
{
    struct bibtex *b = check_memory(calloc(1, sizeof(*b)));
    b->report = report;
    b->report_arg = arg;
    b->line = FIRST_LINE;
    b->macros = map_new();
    arena_init(&b->arena);
    arena_init(&b->macro_arena);
    return b;
}

void bibtex_free(struct bibtex *b)
{
    if (!b)
        return;
    map_free(b->macros);
    arena_release(&b->macro_arena);
    arena_release(&b->arena);
    free(b);
}

static void forget_values(struct bibtex *b)
{
    static const struct arena_mark all;
    arena_reset(&b->arena, all);
    b->used = NULL;
    b->used_count = b->used_cap = 0;
    b->field_count = 0;
    b->serial++;
}

static void forget_macros(struct bibtex *b)
{
    if (b->macro_count == 0)
        return;
    map_free(b->macros);
    b->macros = map_new();
    static const struct arena_mark all;
    arena_reset(&b->macro_arena, all);
    b->macro_count = b->macro_bytes = 0;
}

void bibtex_reset(struct bibtex *b)
{
    b->mode = BETWEEN;
    b->at = b->start = b->body = b->head_at = b->line_at = 0;
    b->line = FIRST_LINE;
    b->after_entry = false;
    forget_values(b);
    forget_macros(b);
}

void bibtex_report_at(struct bibtex *b, const struct cursor *c, const char *at, const char *reason,
                      struct str about, bool dropped)
{
    if (!b->report)
        return;
    uint64_t line = c->line + scan_count_newlines(c->begin, at);
    struct bibtex_problem problem = {line, reason, about, dropped};
    b->report(b->report_arg, &problem);
}

static bool is_type_char(char c)
{
    return ascii_is_word(c) || c == '_' || c == '-';
}

/* Is the '@' at p the head of an entry? */
static enum verdict read_head(const char *p, const char *end, bool last, struct head *h)
{
    const char *type = p + 1, *q = type;
    while (q < end && q - type < TYPE_MAX && is_type_char(*q))
        q++;
    const char *type_end = q;
    while (q < end && q - type_end < TYPE_MAX && scan_is_space(*q))
        q++;
    if (q == end)
        return last ? NO : UNSURE;
    if (type_end == type || (*q != '{' && *q != '('))
        return NO;
    *h = (struct head){str_from(type, (size_t)(type_end - type)), (size_t)(q + 1 - p), *q};
    return YES;
}

/* Does a key with its comma follow? Prose and style sheets have words behind an '@' too. */
static enum verdict read_key(const char *p, const char *end, bool last)
{
    const char *q = p;
    while (q < end && q - p < KEY_MAX && scan_is_space(*q))
        q++;
    while (q < end && q - p < KEY_MAX && bibtex_is_name(*q))
        q++;
    if (q == end)
        return last ? NO : UNSURE;
    return *q == ',' ? YES : NO;
}

/* Is the '@' at p the head of an entry at the beginning of a line? Nothing before floor counts. */
static enum verdict read_line_head(const char *floor, const char *p, const char *end, bool last)
{
    const char *q = p;
    while (q > floor && p - q < TYPE_MAX && (q[-1] == ' ' || q[-1] == '\t'))
        q--;
    if (q == floor || (q[-1] != '\n' && q[-1] != '\r'))
        return NO;
    struct head h;
    enum verdict v = read_head(p, end, last, &h);
    if (v != YES || (q == p && h.open == '{'))
        return v;
    return read_key(p + h.bytes, end, last);
}

static uint64_t line_of(struct bibtex *b, struct str w, size_t at)
{
    if (at > b->line_at) {
        b->line += scan_count_newlines(w.p + b->line_at, w.p + at);
        b->line_at = at;
    }
    return b->line;
}

static bool is_comment(const struct bibtex *b)
{
    return str_ieq(b->type, STR("comment"));
}

/* Each of the three below goes as far as it can: YES means that something changed and reading goes
 * on, UNSURE that the window must grow first. */

/* Fields right behind an entry belong to it: a closing brace too many cut them off. The entry has
 * been returned by now, so they are only reported. */
static enum verdict look_for_strays(struct bibtex *b, struct str w, bool last)
{
    const char *begin = w.p + b->at, *p = begin, *end = w.p + w.n;
    if (end - begin > KEY_MAX)
        end = begin + KEY_MAX;
    while (p < end && (scan_is_space(*p) || *p == ','))
        p++;
    const char *name = p;
    while (p < end && bibtex_is_name(*p) && *p != '@')
        p++;
    struct str field = str_from(name, (size_t)(p - name));
    p = scan_skip_space(p, end);
    if (p == end && end - begin < KEY_MAX && !last)
        return UNSURE;
    b->after_entry = false;
    struct cursor c = {.begin = begin, .line = line_of(b, w, b->at)};
    if (field.n && p < end && *p == '=')
        bibtex_report_at(b, &c, name, "field behind the end of its entry", field, false);
    return YES;
}

static enum verdict look_for_head(struct bibtex *b, struct str w, bool last)
{
    if (b->after_entry && look_for_strays(b, w, last) == UNSURE)
        return UNSURE;
    const char *end = w.p + w.n, *p = w.p + b->at;
    while ((p = memchr(p, '@', (size_t)(end - p)))) {
        struct head h;
        enum verdict v = read_head(p, end, last, &h);
        if (v == NO) {
            p++;
            continue;
        }
        b->at = b->start = (size_t)(p - w.p);
        if (v == UNSURE)
            return UNSURE;
        b->mode = FRAMING;
        b->at = b->body = b->start + h.bytes;
        b->open = h.open;
        b->depth = 0;
        b->quoted = false;
        b->head_at = 0;
        return YES;
    }
    b->at = w.n;
    return UNSURE;
}

static enum verdict recover(struct bibtex *b, struct str w, bool last)
{
    const char *end = w.p + w.n, *p = w.p + b->at;
    while ((p = memchr(p, '@', (size_t)(end - p)))) {
        enum verdict v = read_line_head(w.p + b->start, p, end, last);
        b->at = (size_t)(p - w.p);
        if (v == YES)
            b->mode = BETWEEN;
        if (v != NO)
            return v;
        p++;
    }
    b->at = w.n;
    return UNSURE;
}

/* The entry cannot be read; goes on at the first head found inside, or looks for one. */
static enum verdict give_up(struct bibtex *b, struct str w, const char *reason)
{
    struct cursor c = {.begin = w.p + b->start, .line = line_of(b, w, b->start)};
    const char *key = scan_skip_space(w.p + b->body, w.p + b->at), *key_end = key;
    while (key_end < w.p + b->at && key_end - key < KEY_MAX && bibtex_is_name(*key_end))
        key_end++;
    bibtex_report_at(b, &c, c.begin, reason, str_from(key, (size_t)(key_end - key)),
                     !is_comment(b));
    b->mode = b->head_at ? BETWEEN : RECOVERING;
    if (b->head_at) {
        b->at = b->head_at;
    } else if (b->at - b->start > LOOK_BACK) { /* the next head may stand right here */
        b->start = b->at - LOOK_BACK;
    }
    return YES;
}

static const char *next_mark(const struct bibtex *b, const char *p, const char *end)
{
    if (b->open == '{')
        return scan_any3(p, end, '{', '}', '@');
    while (p < end && *p != '{' && *p != '}' && *p != '@' && *p != '"' && *p != ')')
        p++;
    return p;
}

/* What the mark at b->at means for the frame. NO: nothing special. *closed: it ends the entry. */
static enum verdict take_mark(struct bibtex *b, struct str w, bool last, bool *closed)
{
    const char *p = w.p + b->at;
    switch (*p) {
    case '{':
        return ++b->depth > BIBTEX_DEPTH_MAX ? give_up(b, w, "braces nested too deeply") : NO;
    case '}':
        *closed = b->depth == 0 && b->open == '{';
        if (b->depth == 0)
            return *closed ? NO : give_up(b, w, "closing brace without an opening one");
        b->depth--;
        return NO;
    case ')':
        *closed = b->depth == 0 && !b->quoted;
        return NO;
    case '"':
        if (b->depth == 0)
            b->quoted = !b->quoted;
        return NO;
    }
    if (b->head_at)
        return NO;
    enum verdict v = read_line_head(w.p + b->start, p, w.p + w.n, last);
    if (v != YES)
        return v;
    b->head_at = b->at;
    /* A comment that begins with an entry hides it and those behind it, provided that it ends. One
     * with other text counts as not closed, so that no entry is lost; so does one in parentheses,
     * which that of the next entry might end. */
    const char *text = scan_skip_space(w.p + b->body, p);
    if (is_comment(b) && b->open == '{' && text == p)
        return NO;
    return give_up(b, w, "not closed before the next entry");
}

static enum verdict look_for_end(struct bibtex *b, struct str w, bool last, bool *closed)
{
    size_t limit = b->start + BIBTEX_ENTRY_BYTES_MAX;
    const char *end = w.p + (limit < w.n ? limit : w.n);
    check(w.p[b->start] == '@' && b->start < b->body && b->body <= b->at);
    b->type = str_from(w.p + b->start + 1, 0);
    while (is_type_char(b->type.p[b->type.n]))
        b->type.n++;
    while (w.p + b->at < end) {
        b->at = (size_t)(next_mark(b, w.p + b->at, end) - w.p);
        if (w.p + b->at >= end)
            break;
        enum verdict v = take_mark(b, w, last, closed);
        if (v != NO)
            return v;
        b->at++;
        if (*closed)
            return YES;
    }
    if (w.n >= limit)
        return give_up(b, w, "longer than an entry may be");
    return last ? give_up(b, w, "not closed before the end of the file") : UNSURE;
}

static struct cursor cursor_in(struct str raw, const char *body, uint64_t line)
{
    return (struct cursor){
        .p = body,
        .end = raw.p + raw.n - 1,
        .begin = raw.p,
        .line = line,
        .about = str_from(raw.p, 0),
    };
}

/* The entry from start to at is whole. True when the caller gets it. */
static bool take_entry(struct bibtex *b, struct str w, struct bibtex_entry *e)
{
    struct str raw = str_from(w.p + b->start, b->at - b->start);
    b->mode = BETWEEN;
    if (is_comment(b) || str_ieq(b->type, STR("preamble")))
        return false;
    struct cursor c = cursor_in(raw, w.p + b->body, line_of(b, w, b->start));
    forget_values(b);
    if (str_ieq(b->type, STR("string"))) {
        (void)bibtex_parse_macro(b, &c, raw);
        return false;
    }
    b->after_entry = true;
    *e = (struct bibtex_entry){.raw = raw, .line = c.line, .type = b->type};
    return bibtex_parse_entry(b, &c, e);
}

bool bibtex_take(struct bibtex *b, struct str raw)
{
    static const struct str others[] = {STR("string"), STR("comment"), STR("preamble")};
    struct head h;
    struct str key;
    bibtex_reset(b);
    if (raw.n == 0 || raw.n > BIBTEX_ENTRY_BYTES_MAX || raw.p[0] != '@' ||
        read_head(raw.p, raw.p + raw.n, true, &h) != YES || h.open != '{' || h.bytes == raw.n ||
        raw.p[raw.n - 1] != '}')
        return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (str_ieq(h.type, others[i]))
            return false;
    struct cursor c = cursor_in(raw, raw.p + h.bytes, FIRST_LINE);
    /* A brace in its key would have ended the entry; in a field it makes parsing fail. */
    return bibtex_parse_fields(b, &c, &key) && !memchr(key.p, '}', key.n);
}

/* Marks the first n bytes as used; offsets count from behind them. */
static size_t use_up(struct bibtex *b, struct str w, size_t n)
{
    check(n <= b->at && b->at <= w.n);
    (void)line_of(b, w, n);
    b->at -= n;
    b->line_at -= n;
    b->start = b->start > n ? b->start - n : 0;
    b->body = b->body > n ? b->body - n : 0;
    b->head_at = b->head_at > n ? b->head_at - n : 0;
    return n;
}

static size_t spent(const struct bibtex *b)
{
    if (b->mode == FRAMING)
        return b->start;
    if (b->mode == BETWEEN)
        return b->at;
    size_t back = b->at > LOOK_BACK ? b->at - LOOK_BACK : 0;
    return back > b->start ? back : b->start;
}

enum bibtex_step bibtex_next(struct bibtex *b, struct str w, bool last, struct bibtex_entry *e,
                             size_t *used)
{
    check(b->at <= w.n); /* the window holds all that was not used up */
    b->field_count = 0;
    for (;;) {
        enum verdict v;
        bool closed = false;
        if (b->mode == BETWEEN)
            v = look_for_head(b, w, last);
        else if (b->mode == RECOVERING)
            v = recover(b, w, last);
        else
            v = look_for_end(b, w, last, &closed);
        if (closed && take_entry(b, w, e)) {
            *used = use_up(b, w, b->at);
            return BIBTEX_ENTRY;
        }
        if (v == UNSURE) {
            *used = use_up(b, w, last ? w.n : spent(b));
            return last ? BIBTEX_END : BIBTEX_MORE;
        }
    }
}

bool bibtex_only(struct bibtex *b, struct str text, struct bibtex_entry *e)
{
    size_t used;
    bibtex_reset(b);
    return bibtex_next(b, text, true, e, &used) == BIBTEX_ENTRY;
}
