/* The text is copied in runs of plain bytes; between the runs stands something special, and each
 * kind has its function. Braces are dropped as they come. Only a command that must know where its
 * argument ends (an accent, a script, a fraction) renders it by recursion into the same output
 * and then edits what it finds there. */
#include "corpus/text.h"

#include "base/ascii.h"
#include "base/bytes16.h"
#include "corpus/text_html.h"
#include "corpus/text_out.h"
#include "corpus/text_table.h"

#define DEPTH_MAX      32   /* arguments within arguments; deeper ones are passed through */
#define LOOK_BYTES_MAX 512  /* how far a closing bracket is looked for, so that time is linear */
#define MATH_BYTES_MAX 1000 /* a second $ farther away is no end of a formula */

struct plain {
    const char *p, *end; /* not yet read */
    struct text_out out;
    int depth;            /* arguments being rendered */
    bool math;            /* inside a formula */
    const char *math_end; /* its closing $ or $$; NULL when it was not opened by one */
    size_t math_end_n;
    bool in_script; /* after <sup> or <sub>, whose content begins at script_at */
    size_t script_at;
};

/* A byte is special when here[byte] & behind[next byte]: most special bytes match any next byte,
 * spaces, hyphens and quotes only their like. */
enum { ALWAYS = 1, BLANK = 2, HYPHEN = 4, OPENING = 8, CLOSING = 16 };

static const uint8_t here[256] = {
    [0 ... 31] = ALWAYS, [' '] = BLANK,  ['-'] = HYPHEN, ['`'] = OPENING, ['\''] = CLOSING,
    ['\\'] = ALWAYS,     ['{'] = ALWAYS, ['}'] = ALWAYS, ['$'] = ALWAYS,  ['&'] = ALWAYS,
    ['<'] = ALWAYS,      ['~'] = ALWAYS, ['^'] = ALWAYS, ['_'] = ALWAYS,  [127] = ALWAYS,
};
static const uint8_t behind[256] = {
    [0 ... 31] = ALWAYS,       [' '] = ALWAYS | BLANK,   [33 ... 38] = ALWAYS,
    ['\''] = ALWAYS | CLOSING, [40 ... 44] = ALWAYS,     ['-'] = ALWAYS | HYPHEN,
    [46 ... 95] = ALWAYS,      ['`'] = ALWAYS | OPENING, [97 ... 255] = ALWAYS,
};

/* A bit for each of the 16 bytes at p that may be special, and for some others. Reads p[16] too. */
static uint32_t suspects(const char *p)
{
    bytes16 v = bytes16_load(p), next = bytes16_load(p + 1);
    bytes16 control = bytes16_within(v, 0, 0x1F), twice = (v == next) & bytes16_within(v, ' ', '-');
    bytes16 signs = ((v | 2) == '&') | ((v | 0x20) > 'z') | (v == '`') | (v == '<');
    return bytes16_bits(control | twice | signs);
}

static const char *skip_plain(const char *p, const char *end)
{
    for (; end - p > 16; p += 16)
        for (uint32_t marks = suspects(p); marks; marks &= marks - 1) {
            const char *q = p + __builtin_ctz(marks);
            if (here[(uint8_t)q[0]] & behind[(uint8_t)q[1]])
                return q;
        }
    for (; p + 1 < end; p++)
        if (here[(uint8_t)p[0]] & behind[(uint8_t)p[1]])
            return p;
    return p < end && here[(uint8_t)*p] & ALWAYS ? p : end;
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 127; /* other control characters count as blanks */
}

static struct str rest(const struct plain *t)
{
    return str_from(t->p, (size_t)(t->end - t->p));
}

static bool next_is(const struct plain *t, char c)
{
    return t->p < t->end && *t->p == c;
}

static void skip_blanks(struct plain *t)
{
    while (t->p < t->end && is_blank(*t->p))
        t->p++;
}

static void put_run(struct plain *t, const char *to)
{
    if (t->p < to && *t->p == ' ') {
        text_put_space(&t->out);
        t->p++;
    }
    text_put(&t->out, t->p, (size_t)(to - t->p));
    t->p = to;
}

/* Arguments. */

static void body(struct plain *t);
static void command(struct plain *t);

/* Renders the next argument: a group, a command or a character. At the depth limit, and where
 * there is none, nothing is read. */
static void argument(struct plain *t)
{
    skip_blanks(t);
    if (t->p == t->end || t->depth == DEPTH_MAX || strchr("}$&<~^_", *t->p))
        return;
    t->depth++;
    if (*t->p == '{') {
        t->p++;
        body(t);
        if (next_is(t, '}'))
            t->p++;
    } else if (*t->p == '\\') {
        command(t);
    } else {
        size_t n = str_utf8_step(rest(t));
        check(n > 0); /* text_plain has repaired the text */
        text_put(&t->out, t->p, n);
        t->p += n;
    }
    t->depth--;
}

/* The bracket that closes the one at p; NULL when it is not near. */
static const char *closing(const char *p, const char *end, char open, char close)
{
    int depth = 0;
    if (end - p > LOOK_BYTES_MAX)
        end = p + LOOK_BYTES_MAX;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (*p == open)
            depth++;
        else if (*p == close && --depth == 0)
            return p;
    }
    return NULL;
}

static void skip_option(struct plain *t) /* [12pt], when an argument stands behind it */
{
    const char *close = next_is(t, '[') ? closing(t->p, t->end, '[', ']') : NULL;
    if (close && close + 1 < t->end && close[1] == '{')
        t->p = close + 1;
}

static void skip_argument(struct plain *t)
{
    skip_blanks(t);
    skip_option(t);
    const char *close = next_is(t, '{') ? closing(t->p, t->end, '{', '}') : NULL;
    if (close)
        t->p = close + 1;
}

static void verbatim(struct plain *t)
{
    const char *close = next_is(t, '{') ? closing(t->p, t->end, '{', '}') : NULL;
    if (!close)
        return;
    for (t->p++; t->p < close; t->p++) {
        bool escape = *t->p == '\\' && !ascii_is_letter(t->p[1]);
        if (is_blank(*t->p))
            text_put_space(&t->out);
        else if (!escape && *t->p != '{' && *t->p != '}')
            text_put(&t->out, t->p, 1);
    }
    t->p = close + 1;
}

/* Accents. */

static void put_accent(struct plain *t, char name)
{
    size_t at = t->out.len;
    argument(t);
    if (!text_out_accent(&t->out, at, name) && strchr("^~\"'`", name))
        text_put(&t->out, &name, 1); /* \~{} is how a tilde is written */
}

/* Scripts. */

static void put_script(struct plain *t, bool raised)
{
    size_t at = t->out.len;
    const char *from = t->p;
    text_put(&t->out, raised ? "^" : "_", 1);
    argument(t);
    if (t->p != from)
        text_out_script(&t->out, at, raised);
}

/* At ^ or _. Outside formulas a number is raised (10^-15), all else is literal (file_2). */
static void caret_or_underscore(struct plain *t)
{
    bool raised = *t->p++ == '^';
    if (t->math || next_is(t, '{')) {
        put_script(t, raised);
        return;
    }
    size_t at = t->out.len;
    text_put(&t->out, raised ? "^" : "_", 1);
    const char *q = t->p;
    if (q < t->end && (*q == '-' || *q == '+'))
        q++;
    const char *digits = q;
    while (q < t->end && ascii_is_digit(*q))
        q++;
    if (raised && q > digits) {
        put_run(t, q);
        text_out_shift(&t->out, at, 1, true);
    }
}

/* Formulas. */

/* "$5 to the US$" is money; "$O(n)$", "$59k$" and "$\alpha + 1$" are formulas. */
static bool is_formula(const char *from, const char *to, const char *end)
{
    bool spaces = is_blank(*from) || is_blank(to[-1]), inner = false, signs = false;
    for (const char *p = from; p < to; p++) {
        signs = signs || *p == '^' || *p == '_' || (*p == '\\' && ascii_is_letter(p[1]));
        inner = inner || is_blank(*p);
    }
    bool digit_behind = to + 1 < end && ascii_is_digit(to[1]);
    return signs || (!spaces && !digit_behind && !(inner && ascii_is_digit(*from)));
}

/* Looks no farther than the next $ that is not escaped, so all looking together is linear. */
static const char *formula_end(const char *from, const char *end, bool display)
{
    const char *p = from;
    while ((p = memchr(p, '$', (size_t)(end - p))) && p > from && p[-1] == '\\')
        p++;
    if (!p || p == from || p - from > MATH_BYTES_MAX)
        return NULL;
    if (display)
        return p + 1 < end && p[1] == '$' ? p : NULL;
    return is_formula(from, p, end) ? p : NULL;
}

static void dollar(struct plain *t)
{
    bool display = t->p + 1 < t->end && t->p[1] == '$';
    const char *from = t->p + 1 + display;
    const char *close = t->math ? NULL : formula_end(from, t->end, display);
    if (close) {
        t->math = true;
        t->math_end = close;
        t->math_end_n = display ? 2 : 1;
        t->p = from;
        return;
    }
    text_put(&t->out, t->p, 1);
    t->p++;
}

static void end_formula(struct plain *t)
{
    check(t->math && t->math_end);
    const char *after = t->math_end + t->math_end_n;
    if (t->p < after)
        t->p = after;
    t->math = false;
    t->math_end = NULL;
}

static void put_fraction(struct plain *t)
{
    size_t at = t->out.len;
    argument(t);
    text_out_enclose(&t->out, at);
    text_put(&t->out, "/", 1);
    at = t->out.len;
    argument(t);
    text_out_enclose(&t->out, at);
}

/* Names such as log must not merge with their neighbours. */
static void put_symbol(struct plain *t, const char *out)
{
    bool name = ascii_is_letter(out[0]);
    if (name && t->out.len && ascii_is_word(t->out.p[t->out.len - 1]))
        text_put_space(&t->out);
    text_put_z(&t->out, out);
    if (name && t->p < t->end && (ascii_is_word(*t->p) || strchr("\\{", *t->p)))
        text_put_space(&t->out);
}

/* Commands. */

static void put_known(struct plain *t, const struct text_command *c)
{
    size_t at;
    switch (c->kind) {
    case TEXT_LETTER:
        text_put_z(&t->out, c->out);
        if (!t->math)
            skip_blanks(t);
        return;
    case TEXT_SYMBOL:
        put_symbol(t, c->out);
        return;
    case TEXT_SPACE:
        text_put_space(&t->out);
        return;
    case TEXT_ACCENT:
        put_accent(t, c->out[0]);
        return;
    case TEXT_WRAP:
        text_put_z(&t->out, c->out);
        at = t->out.len;
        skip_option(t);
        argument(t);
        text_out_enclose(&t->out, at);
        return;
    case TEXT_DROP_TWO:
        skip_argument(t);
        skip_argument(t);
        return;
    case TEXT_DROP:
    case TEXT_SECOND: /* the braces of the second one are dropped like any others */
        skip_argument(t);
        return;
    case TEXT_FRACTION:
        put_fraction(t);
        return;
    case TEXT_RAISED:
    case TEXT_LOWERED:
        at = t->out.len;
        argument(t);
        text_out_shift(&t->out, at, 0, c->kind == TEXT_RAISED);
        return;
    case TEXT_VERBATIM:
        verbatim(t);
        return;
    }
}

static void word_command(struct plain *t)
{
    const char *from = t->p;
    while (t->p < t->end && ascii_is_letter(*t->p))
        t->p++;
    const struct text_command *c = text_command_find(str_from(from, (size_t)(t->p - from)));
    if (c) {
        put_known(t, c);
        return;
    }
    if (next_is(t, '*'))
        t->p++;
    skip_option(t);
    if (!t->math)
        skip_blanks(t);
}

static void entity(struct plain *t);

/* Behind a backslash: a sign. An unknown one is left for the caller to read. */
static void sign_command(struct plain *t)
{
    char c = *t->p;
    if (c == '&') { /* \&amp; is common */
        entity(t);
    } else if (is_blank(c) || strchr("\\,;:>", c)) {
        t->p++;
        text_put_space(&t->out);
    } else if (strchr("%$#_{}", c)) {
        text_put(&t->out, t->p++, 1);
    } else if (strchr("`'^\"~=.", c)) {
        t->p++;
        put_accent(t, c);
    } else if (strchr("()[]", c)) {
        t->p++;
        t->math = c == '(' || c == '[';
        t->math_end = NULL;
    } else if (strchr("!-/@*", c)) {
        t->p++;
    } else if (c == '|') {
        t->p++;
        text_put_z(&t->out, "‖");
    }
}

/* At a backslash. */
static void command(struct plain *t)
{
    if (++t->p == t->end)
        return;
    if (ascii_is_letter(*t->p))
        word_command(t);
    else
        sign_command(t);
}

/* Markup. */

/* A tag behind < or &lt;, of which opening_n bytes are at t->p. False when there is none. */
static bool tag(struct plain *t, size_t opening_n)
{
    struct html_tag tag;
    struct str s = str_from(t->p + opening_n, (size_t)(t->end - t->p) - opening_n);
    size_t n = html_tag(s, opening_n == 1 ? STR(">") : STR("&gt;"), &tag);
    if (n == 0)
        return false;
    t->p += opening_n + n;
    if (tag.kind == TAG_BLOCK)
        text_put_space(&t->out);
    if (tag.kind != TAG_SUP && tag.kind != TAG_SUB)
        return true;
    if (tag.closes && t->in_script && t->script_at <= t->out.len)
        text_out_shift(&t->out, t->script_at, 0, tag.kind == TAG_SUP);
    t->in_script = !tag.closes;
    t->script_at = t->out.len;
    return true;
}

/* At an ampersand, which stands for itself when no entity follows. */
static void entity(struct plain *t)
{
    if (str_starts(rest(t), STR("&lt;")) && tag(t, strlen("&lt;")))
        return;
    char out[HTML_ENTITY_BYTES_MAX];
    size_t out_n;
    size_t n = html_entity(rest(t), out, &out_n);
    if (n == 0)
        text_put(&t->out, "&", 1);
    else if (out_n == 1 && is_blank(out[0]))
        text_put_space(&t->out);
    else
        text_put(&t->out, out, out_n);
    t->p += n ? n : 1;
}

static void dashes(struct plain *t)
{
    bool three = t->end - t->p >= 3 && t->p[2] == '-';
    text_put_z(&t->out, three ? "—" : "–");
    t->p += three ? 3 : 2;
}

static void special(struct plain *t)
{
    char c = *t->p;
    if (c == '\\') {
        command(t);
    } else if (c == '$') {
        dollar(t);
    } else if (c == '&') {
        entity(t);
    } else if (c == '^' || c == '_') {
        caret_or_underscore(t);
    } else if (c == '~' || is_blank(c)) {
        t->p++;
        text_put_space(&t->out);
    } else if (c == '-' && !t->math) {
        dashes(t);
    } else if ((c == '`' || c == '\'') && !t->math) {
        t->p += 2;
        text_put_z(&t->out, c == '`' ? "“" : "”");
    } else if (c != '<' || !tag(t, 1)) {
        text_put(&t->out, t->p++, 1);
    }
}

/* Renders up to the end, or to the brace that closes the argument being rendered. */
static void body(struct plain *t)
{
    size_t open = 0;
    for (;;) {
        put_run(t, skip_plain(t->p, t->end));
        if (t->p == t->end)
            return;
        if (t->math_end && t->p >= t->math_end) {
            end_formula(t);
        } else if (*t->p == '{') {
            open++;
            t->p++;
        } else if (*t->p == '}') {
            if (open == 0 && t->depth)
                return;
            open -= open > 0;
            t->p++;
        } else {
            special(t);
        }
    }
}

static struct str repair_utf8(struct arena *a, struct str s)
{
    if (str_utf8_valid(s))
        return s;
    char *out = arena_alloc(a, 3 * s.n);
    size_t len = 0;
    while (s.n) {
        size_t n = str_utf8_step(s);
        struct str c = n ? str_from(s.p, n) : STR("\uFFFD");
        memcpy(out + len, c.p, c.n);
        len += c.n;
        n += n == 0;
        s = str_skip(s, n);
    }
    return str_from(out, len);
}

struct str text_plain(struct arena *a, struct str latex)
{
    if (!latex.p)
        return latex;
    struct str s = repair_utf8(a, str_trim_if(latex, is_blank));
    const char *end = s.p + s.n;
    const char *first = skip_plain(s.p, end);
    if (first == end)
        return s;
    struct plain t = {.p = s.p, .end = end};
    text_out_init(&t.out, a, s.n + s.n / 8 + 16);
    put_run(&t, first);
    body(&t);
    return str_trim_if(text_out_from(&t.out, 0), is_blank);
}
