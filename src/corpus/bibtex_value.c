/* Values: value = piece ('#' piece)*, a piece being {text}, "text", a number or the name of an
 * @string. A value is skipped once to find its end; only requested values are put together, and
 * copied only if they differ from the text. */
#include "base/ascii.h"
#include "corpus/bibtex_private.h"

enum piece_kind { BRACED, QUOTED, WORD };

struct piece {
    enum piece_kind kind;
    struct str text;
    bool inner_quotes;
};

static const struct {
    char name[4];
    struct str value;
} months[] = {
    {"jan", {"January", 7}}, {"feb", {"February", 8}}, {"mar", {"March", 5}},
    {"apr", {"April", 5}},   {"may", {"May", 3}},      {"jun", {"June", 4}},
    {"jul", {"July", 4}},    {"aug", {"August", 6}},   {"sep", {"September", 9}},
    {"oct", {"October", 7}}, {"nov", {"November", 8}}, {"dec", {"December", 8}},
};

static const char *skip_braced(struct cursor *c, struct piece *piece)
{
    const char *p = c->p + 1;
    unsigned depth = 1;
    for (;; p++) {
        p = scan_any3(p, c->end, '{', '}', '}');
        if (p == c->end)
            return "brace not closed";
        depth = *p == '{' ? depth + 1 : depth - 1;
        if (depth == 0)
            break;
    }
    *piece = (struct piece){BRACED, str_from(c->p + 1, (size_t)(p - c->p - 1)), false};
    c->p = p + 1;
    return NULL;
}

/* Does the quote at p end its value? What follows decides: exports write quotes inside quotes,
 * which BibTeX forbids, and \" too. */
static bool quote_ends(const struct cursor *c, const char *p)
{
    p = scan_skip_space(p + 1, c->end);
    if (p == c->end || *p == ',' || *p == '#')
        return true;
    const char *name = p;
    p = bibtex_skip_name(p, c->end);
    if (p == name)
        return false;
    p = scan_skip_space(p, c->end);
    return p < c->end && *p == '=';
}

/* Does the quote at p begin the value of a field on a line of its own? Then one before is open. */
static bool quote_begins(const struct cursor *c, const char *p)
{
    const char *floor = c->p + 1;
    while (p > floor && scan_is_space(p[-1]))
        p--;
    if (p == floor || *--p != '=')
        return false;
    while (p > floor && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    while (p > floor && bibtex_is_name(p[-1]))
        p--;
    while (p > floor && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    return p > floor && p[-1] == '\n';
}

static const char *skip_quoted(struct cursor *c, struct piece *piece)
{
    const char *p = c->p + 1;
    unsigned depth = 0;
    bool inner = false;
    for (;; p++) {
        p = scan_any3(p, c->end, '"', '{', '}');
        if (p == c->end)
            return "quote not closed";
        if (*p == '{')
            depth++;
        else if (*p == '}' && depth-- == 0)
            return "closing brace in quotes without an opening one";
        if (*p != '"' || depth > 0)
            continue;
        if (quote_ends(c, p))
            break;
        if (quote_begins(c, p))
            return "quote not closed";
        inner = true;
    }
    *piece = (struct piece){QUOTED, str_from(c->p + 1, (size_t)(p - c->p - 1)), inner};
    c->p = p + 1;
    return NULL;
}

/* The piece at c; an empty word where there is none. */
static const char *skip_piece(struct cursor *c, struct piece *piece)
{
    c->p = scan_skip_space(c->p, c->end);
    if (c->p < c->end && *c->p == '{')
        return skip_braced(c, piece);
    if (c->p < c->end && *c->p == '"')
        return skip_quoted(c, piece);
    const char *word = c->p;
    c->p = bibtex_skip_name(c->p, c->end);
    *piece = (struct piece){WORD, str_from(word, (size_t)(c->p - word)), false};
    return NULL;
}

static bool skip_hash(struct cursor *c)
{
    const char *p = scan_skip_space(c->p, c->end);
    if (p == c->end || *p != '#')
        return false;
    c->p = p + 1;
    return true;
}

static struct str lower_name(struct str name, char space[BIBTEX_MACRO_NAME_MAX])
{
    check(name.n <= BIBTEX_MACRO_NAME_MAX);
    for (size_t i = 0; i < name.n; i++)
        space[i] = ascii_lower(name.p[i]);
    return str_from(space, name.n);
}

static struct bibtex_macro *find_macro(const struct bibtex *b, struct str name)
{
    char space[BIBTEX_MACRO_NAME_MAX];
    if (b->macro_count == 0 || name.n == 0 || name.n > sizeof(space) || ascii_is_digit(name.p[0]))
        return NULL;
    return map_get(b->macros, lower_name(name, space));
}

static struct str word_value(const struct bibtex *b, struct str word)
{
    const struct bibtex_macro *m = find_macro(b, word);
    if (m)
        return m->value;
    for (size_t i = 0; word.n == 3 && i < sizeof(months) / sizeof(months[0]); i++)
        if (str_ieq(word, str_from(months[i].name, 3)))
            return months[i].value;
    return word;
}

static void use_one(struct bibtex *b, const struct bibtex_macro *m)
{
    if (m->seen == b->serial)
        return;
    ((struct bibtex_macro *)(uintptr_t)m)->seen = b->serial;
    if (b->used_count == b->used_cap) {
        size_t cap = b->used_cap ? b->used_cap * 2 : 8;
        b->used = arena_grow(&b->arena, b->used, b->used_cap * sizeof(struct bibtex_macro *),
                             cap * sizeof(struct bibtex_macro *));
        b->used_cap = cap;
    }
    b->used[b->used_count++] = m;
}

static void use_macro(struct bibtex *b, struct str name)
{
    const struct bibtex_macro *m = find_macro(b, name);
    if (!m)
        return;
    for (size_t i = 0; i < m->use_count; i++)
        use_one(b, m->uses[i]);
    use_one(b, m);
}

const char *bibtex_skip_value(struct bibtex *b, struct cursor *c, struct field *f)
{
    const char *begin = scan_skip_space(c->p, c->end);
    struct piece piece;
    size_t pieces = 0;
    do {
        const char *reason = skip_piece(c, &piece);
        if (reason)
            return reason;
        if (piece.kind == WORD)
            use_macro(b, piece.text);
        if (piece.inner_quotes)
            bibtex_report_at(b, c, piece.text.p, "quotes inside quotes", c->about, false);
        pieces++;
    } while (skip_hash(c));
    f->simple = pieces == 1 && piece.kind != WORD;
    f->text = f->simple ? piece.text : str_from(begin, (size_t)(c->p - begin));
    return NULL;
}

/* Copies s to out with each run of white space made one space; returns the end of it. */
static char *collapse(char *out, struct str s)
{
    const char *p = s.p, *end = s.p + s.n;
    check(s.n > 0 && !scan_is_space(s.p[0])); /* so that out[-1] is there */
    while (p < end) {
        const char *q = scan_blank(p, end);
        memcpy(out, p, (size_t)(q - p));
        out += q - p;
        if (q == end)
            break;
        p = scan_skip_space(q, end);
        if (p == q)
            *out++ = *p++; /* some other control character */
        else if (out[-1] != ' ')
            *out++ = ' ';
    }
    return out;
}

static struct str collapsed(struct arena *a, struct str s)
{
    s = str_trim_if(s, scan_is_space);
    const char *end = s.p + s.n;
    if (scan_blank(s.p, end) == end)
        return s;
    char *out = arena_alloc(a, s.n);
    return str_from(out, (size_t)(collapse(out, s) - out));
}

/* Steps through the pieces of f: their bytes are counted, and copied to out unless it is NULL. */
static size_t join(struct bibtex *b, const struct field *f, char *out)
{
    struct cursor c = {.p = f->text.p, .end = f->text.p + f->text.n};
    size_t n = 0;
    do {
        struct piece piece;
        check(!skip_piece(&c, &piece)); /* it was stepped over before */
        struct str s = piece.kind == WORD ? word_value(b, piece.text) : piece.text;
        if (out && s.n)
            memcpy(out + n, s.p, s.n);
        n += s.n;
    } while (skip_hash(&c));
    return n;
}

struct str bibtex_expand(struct bibtex *b, struct arena *a, const struct field *f, size_t max)
{
    if (f->simple)
        return f->text.n > max ? STR_NULL : collapsed(a, f->text);
    size_t n = join(b, f, NULL);
    if (n > max)
        return STR_NULL;
    char *whole = arena_alloc(a, n + 1);
    check(join(b, f, whole) == n);
    return collapsed(a, str_from(whole, n));
}

/* Why a definition cannot be kept; NULL when it can. */
static const char *macro_refused(const struct bibtex *b, struct str name, struct str raw)
{
    if (name.n == 0 || name.n > BIBTEX_MACRO_NAME_MAX)
        return "@string without a usable name";
    if (b->macro_count >= BIBTEX_MACROS_MAX || raw.n > BIBTEX_MACROS_BYTES_MAX - b->macro_bytes)
        return "too many @strings";
    if (b->used_count > BIBTEX_MACRO_USES_MAX)
        return "@string built from too many others";
    return NULL;
}

static void define(struct bibtex *b, struct str name, struct str value, struct str raw)
{
    struct arena *a = &b->macro_arena;
    struct bibtex_macro *m = ARENA_NEW(a, struct bibtex_macro);
    const struct bibtex_macro **uses = ARENA_ARRAY(a, const struct bibtex_macro *, b->used_count);
    for (size_t i = 0; i < b->used_count; i++)
        uses[i] = b->used[i];
    *m = (struct bibtex_macro){
        str_dup(a, name), str_dup(a, value), str_dup(a, raw), uses, b->used_count, 0,
        b->macro_count};
    b->macro_count++;
    b->macro_bytes += raw.n + value.n;
    check(b->macro_bytes <= BIBTEX_MACROS_BYTES_MAX);
    char space[BIBTEX_MACRO_NAME_MAX];
    map_set(b->macros, lower_name(name, space), m);
}

bool bibtex_parse_macro(struct bibtex *b, struct cursor *c, struct str raw)
{
    c->p = scan_skip_space(c->p, c->end);
    struct str name = str_from(c->p, (size_t)(bibtex_skip_name(c->p, c->end) - c->p));
    c->p = scan_skip_space(c->p + name.n, c->end);
    const char *reason = c->p < c->end && *c->p == '=' ? NULL : "@string without '='";
    struct field f;
    struct str value = STR_NULL;
    if (!reason) {
        c->p++;
        c->about = name;
        reason = bibtex_skip_value(b, c, &f);
    }
    if (!reason)
        reason = macro_refused(b, name, raw);
    if (!reason) {
        size_t left = BIBTEX_MACROS_BYTES_MAX - b->macro_bytes - raw.n;
        value = bibtex_expand(b, &b->arena, &f,
                              left < BIBTEX_MACRO_BYTES_MAX ? left : BIBTEX_MACRO_BYTES_MAX);
        reason = value.p ? NULL : "@string too long";
    }
    if (reason)
        bibtex_report_at(b, c, c->begin, reason, name, true);
    else
        define(b, name, value, raw);
    return !reason;
}
