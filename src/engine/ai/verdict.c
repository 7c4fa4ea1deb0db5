#include "base/bytes16.h"
#include "base/json.h"
#include "engine/ai/ai_private.h"

#define OBJECTS_TRIED_MAX 32 /* braces in prose that may begin one */

/* What was found in a part of the text. */
struct finding {
    enum ai_word word;
    struct str reason; /* as it was written */
};

static struct str skip(struct str s, size_t n)
{
    return str_from(s.p + n, s.n - n);
}

static struct str skip_space(struct str s)
{
    while (s.n && strchr(" \t\r\n", s.p[0]) && s.p[0])
        s = skip(s, 1);
    return s;
}

static struct str trim(struct str s)
{
    s = skip_space(s);
    while (s.n && s.p[s.n - 1] && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    return s;
}

static void add(struct finding *f, struct finding more)
{
    if (f->word == AI_WORD_NONE)
        f->reason = more.reason;
    f->word = ai_word_and(f->word, more.word);
}

/* --- one line for people --- */

/* Bytes of a control character, or of one that breaks lines, that s begins with; 0: none. */
static size_t control_at(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    if (c < 0x20 || c == 0x7F)
        return 1;
    if (c == 0xC2 && s.n >= 2 && (unsigned char)s.p[1] < 0xA0)
        return 2;
    return str_starts(s, STR("\u2028")) || str_starts(s, STR("\u2029")) ? 3 : 0;
}

/* Bytes that s begins with and that become a space. */
static size_t blank_at(struct str s)
{
    size_t control = control_at(s);
    return control ? control : s.p[0] == ' ' || str_utf8_step(s) == 0;
}

/* Bytes of ASCII without control characters that s begins with; most are enough. */
static size_t ascii_at(struct str s, size_t most)
{
    size_t end = s.n < most ? s.n : most, n = 0;
    for (; end - n >= 16; n += 16) {
        bytes16 v = bytes16_load(s.p + n);
        uint32_t marks = bytes16_bits(bytes16_within(v, INT8_MIN, 0x1F) | (v == 0x7F));
        if (marks)
            return n + (size_t)__builtin_ctz(marks);
    }
    while (n < end && s.p[n] >= 0x20 && s.p[n] < 0x7F)
        n++;
    return n;
}

struct str ai_line(struct arena *a, struct str s)
{
    while (s.n && blank_at(s))
        s = skip(s, blank_at(s));
    char *line = arena_alloc(a, s.n + 1), *end = line;
    for (size_t chars = 0, step; s.n && chars < AI_REASON_CHARS_MAX; s = skip(s, step)) {
        size_t ascii = ascii_at(s, AI_REASON_CHARS_MAX - chars);
        if (!ascii && (step = blank_at(s)) > 0) {
            *end++ = ' ';
        } else {
            step = ascii ? ascii : str_utf8_step(s);
            end = mempcpy(end, s.p, step);
        }
        chars += ascii ? ascii : 1;
    }
    while (end > line && end[-1] == ' ')
        end--;
    *end = '\0';
    return str_from(line, (size_t)(end - line));
}

/* --- objects --- */

/* A value that is there and says nothing is no verdict, and nothing else is looked for. */
static enum ai_word word_of_text(struct str s)
{
    struct str reason;
    enum ai_word word = ai_words_read(s, &reason);
    return word == AI_WORD_NONE ? AI_WORD_CONTRADICTION : word;
}

static enum ai_word word_of(const struct json *j)
{
    int64_t number;
    bool truth;
    if (json_bool(j, &truth))
        return truth ? AI_WORD_YES : AI_WORD_NO;
    if (json_int(j, &number))
        return number == 1 ? AI_WORD_YES : number == 0 ? AI_WORD_NO : AI_WORD_CONTRADICTION;
    return j->type == JSON_STRING ? word_of_text(j->s) : AI_WORD_CONTRADICTION;
}

/* An object that has no "relevant" is none of ours. */
static struct finding finding_of(const struct json *object)
{
    struct finding f = {AI_WORD_NONE, STR("")};
    json_each (j, object) {
        if (str_ieq(j->key, STR("relevant")))
            f.word = ai_word_and(f.word, word_of(j));
        else if (str_ieq(j->key, STR("reason")) && j->type == JSON_STRING)
            f.reason = j->s;
    }
    return f;
}

static struct finding read_object(struct arena *a, struct str text)
{
    const struct json *j;
    if (json_parse(a, text, &j, NULL) || j->type != JSON_OBJECT)
        return (struct finding){AI_WORD_NONE, STR("")};
    return finding_of(j);
}

/* ```json … ```, any number of them. */
static struct finding read_fences(struct arena *a, struct str text)
{
    struct finding f = {AI_WORD_NONE, STR("")};
    for (int tried = 0; tried < OBJECTS_TRIED_MAX; tried++) {
        ptrdiff_t at = str_find(text, STR("```"));
        if (at < 0)
            break;
        text = skip(text, (size_t)at + 3);
        ptrdiff_t end = str_find(text, STR("```"));
        struct str inside = end < 0 ? text : str_from(text.p, (size_t)end);
        const char *brace = inside.n ? memchr(inside.p, '{', inside.n) : NULL;
        if (brace)
            add(&f, read_object(a, trim(skip(inside, (size_t)(brace - inside.p)))));
        if (end < 0)
            break;
        text = skip(text, (size_t)end + 3);
    }
    return f;
}

/* Bytes up to the brace that closes the one s begins with, braces in strings aside; 0: none does. */
static size_t object_bytes(struct str s)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        if (quoted && s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            quoted = !quoted;
        else if (!quoted && s.p[i] == '{')
            depth++;
        else if (!quoted && s.p[i] == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

static struct finding read_prose(struct arena *a, struct str text)
{
    struct finding f = {AI_WORD_NONE, STR("")};
    for (int tried = 0; tried < OBJECTS_TRIED_MAX && text.n; tried++) {
        const char *brace = memchr(text.p, '{', text.n);
        if (!brace)
            break;
        text = skip(text, (size_t)(brace - text.p));
        size_t n = object_bytes(text);
        struct finding found = n ? read_object(a, str_from(text.p, n)) : (struct finding){0};
        add(&f, found);
        text = skip(text, found.word == AI_WORD_NONE ? 1 : n);
    }
    return f;
}

/* --- what was meant to be an object: cut short, curly quotes, quotes and words of Python --- */

static const struct str quotes[] = {STR("\""), STR("'"), STR("“"), STR("”"), STR("‘"), STR("’")};
#define QUOTES (sizeof quotes / sizeof *quotes)

static size_t quote_at(struct str s)
{
    for (size_t i = 0; i < QUOTES; i++)
        if (str_starts(s, quotes[i]))
            return quotes[i].n;
    return 0;
}

static bool ends_with_quote(struct str s)
{
    for (size_t i = 0; i < QUOTES; i++)
        if (str_ends(s, quotes[i]))
            return true;
    return false;
}

/* Past `": ` behind a name, to the value. p == NULL: this is no name. */
static struct str value_after(struct str s)
{
    size_t quote = quote_at(s);
    if (!quote)
        return STR_NULL;
    s = skip_space(skip(s, quote));
    size_t colon = str_starts(s, STR(":")) ? 1 : str_starts(s, STR("：")) ? strlen("：") : 0;
    return colon ? skip_space(skip(s, colon)) : STR_NULL;
}

/* The place of `"name":` in s after from, and its value. False: no more. */
static bool find_name(struct str s, struct str name, size_t *from, struct str *value)
{
    for (size_t i = *from; i + name.n < s.n; i++) {
        if (!str_ieq(str_from(s.p + i, name.n), name) || !ends_with_quote(str_from(s.p, i)))
            continue;
        *value = value_after(skip(s, i + name.n));
        if (value->p) {
            *from = i + name.n;
            return true;
        }
    }
    return false;
}

/* The value's end must be there: what is cut could have gone on. */
static enum ai_word loose_word(struct str value)
{
    size_t quote = quote_at(value), n = 0;
    value = skip(value, quote);
    while (n < value.n && !quote_at(skip(value, n)) && !strchr(",}\n", value.p[n]))
        n++;
    if (n == value.n || (quote && !quote_at(skip(value, n))))
        return AI_WORD_CONTRADICTION;
    struct str text = trim(str_from(value.p, n));
    if (!quote && str_eq(text, STR("1")))
        return AI_WORD_YES;
    if (!quote && str_eq(text, STR("0")))
        return AI_WORD_NO;
    return word_of_text(text);
}

/* Up to the quote that a comma, a brace or the end follows; all of it if there is none. */
static struct str loose_string(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        size_t quote = quote_at(skip(s, i));
        struct str after = quote ? skip_space(skip(s, i + quote)) : s;
        if (quote && (after.n == 0 || after.p[0] == ',' || after.p[0] == '}'))
            return str_from(s.p, i);
        i += s.p[i] == '\\';
    }
    return s;
}

static struct str loose_reason(struct arena *a, struct str text)
{
    size_t from = 0;
    struct str value;
    if (!find_name(text, STR("reason"), &from, &value) || !quote_at(value))
        return STR("");
    value = loose_string(skip(value, quote_at(value)));
    const struct json *j;
    struct str quoted = str_printf(a, "\"%.*s\"", STR_ARG(value));
    return json_parse(a, quoted, &j, NULL) == 0 ? json_str(j) : value;
}

static struct finding read_loose(struct arena *a, struct str text)
{
    struct finding f = {AI_WORD_NONE, STR("")};
    size_t from = 0;
    struct str value;
    while (find_name(text, STR("relevant"), &from, &value))
        f.word = ai_word_and(f.word, loose_word(value));
    if (f.word == AI_WORD_YES || f.word == AI_WORD_NO)
        f.reason = loose_reason(a, text);
    return f;
}

/* --- the reply --- */

/* What a model thinks aloud is not its answer. */
static struct str skip_thoughts(struct str text)
{
    if (!str_starts(text, STR("<think>")))
        return text;
    ptrdiff_t end = str_find(text, STR("</think>"));
    return end < 0 ? STR("") : trim(skip(text, (size_t)end + strlen("</think>")));
}

static struct finding read_content(struct arena *a, struct str content)
{
    struct str text = skip_thoughts(trim(content));
    struct finding f = read_object(a, text);
    if (f.word == AI_WORD_NONE)
        f = read_fences(a, text);
    if (f.word == AI_WORD_NONE)
        f = read_prose(a, text);
    if (f.word == AI_WORD_NONE)
        f = read_loose(a, text);
    if (f.word == AI_WORD_NONE)
        f.word = ai_words_read(text, &f.reason);
    return f;
}

/* A string, or a list of parts of which one is text. */
static struct str content_of(const struct json *reply)
{
    const struct json *message = json_get(json_first(json_get(reply, "choices")), "message");
    const struct json *content = json_get(message, "content");
    if (content && content->type == JSON_ARRAY)
        content = json_get(json_first(content), "text");
    return json_str(content);
}

static int64_t tokens_of(const struct json *reply)
{
    int64_t tokens;
    bool said = json_int(json_get(json_get(reply, "usage"), "total_tokens"), &tokens);
    return said && tokens > 0 && tokens <= AI_TOKENS_MAX ? tokens : -1;
}

void ai_verdict_read(struct arena *a, struct str body, struct ai_reply *out)
{
    *out = (struct ai_reply){.reason = STR(""), .tokens = -1};
    const struct json *reply;
    if (body.n > AI_REPLY_BYTES_MAX || json_parse(a, trim(body), &reply, NULL))
        return;
    out->tokens = tokens_of(reply);
    struct str content = content_of(reply);
    if (content.n == 0 || content.n > AI_CONTENT_BYTES_MAX)
        return;
    struct finding f = read_content(a, content);
    out->readable = f.word == AI_WORD_YES || f.word == AI_WORD_NO;
    out->relevant = f.word == AI_WORD_YES;
    if (out->readable)
        out->reason = ai_line(a, f.reason);
}

struct str ai_complaint(struct arena *a, struct str body)
{
    const struct json *reply;
    if (body.n > AI_REPLY_BYTES_MAX || json_parse(a, trim(body), &reply, NULL))
        return STR("");
    const struct json *error = json_get(reply, "error");
    struct str text = json_str(json_get(error, "message"));
    if (!text.p)
        text = json_str(error);
    if (!text.p)
        text = json_str(json_get(reply, "message"));
    return text.p ? ai_line(a, text) : STR("");
}
