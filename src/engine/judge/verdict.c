#include "engine/ai/reply.h"
#include "engine/judge/verdict.h"

#define OBJECTS_TRIED_MAX 32 /* braces in prose that may begin one */

/* What was found in a part of the text. */
struct finding {
    enum word word;
    struct str reason; /* as it was written */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct str skip_space(struct str s)
{
    while (s.n && is_space(s.p[0]))
        s = str_skip(s, 1);
    return s;
}

static void add(struct finding *f, struct finding more)
{
    if (f->word == WORD_NONE)
        f->reason = more.reason;
    f->word = word_and(f->word, more.word);
}

/* --- objects --- */

/* A value without a verdict contradicts any other: no further one is looked for. */
static enum word word_of_text(struct str s)
{
    struct str reason;
    enum word word = words_read(s, &reason);
    return word == WORD_NONE ? WORD_CONTRADICTION : word;
}

static enum word word_of(const struct json *j)
{
    int64_t number;
    bool truth;
    if (json_bool(j, &truth))
        return truth ? WORD_YES : WORD_NO;
    if (json_int(j, &number))
        return number == 1 ? WORD_YES : number == 0 ? WORD_NO : WORD_CONTRADICTION;
    return j->type == JSON_STRING ? word_of_text(j->s) : WORD_CONTRADICTION;
}

/* An object without "relevant" is not the answer. */
static struct finding finding_of(const struct json *object)
{
    struct finding f = {WORD_NONE, STR("")};
    json_each (j, object) {
        if (str_ieq(j->key, STR("relevant")))
            f.word = word_and(f.word, word_of(j));
        else if (str_ieq(j->key, STR("reason")) && j->type == JSON_STRING)
            f.reason = j->s;
    }
    return f;
}

static struct finding read_object(struct arena *a, struct str text)
{
    const struct json *j;
    if (json_parse(a, text, &j, NULL) || j->type != JSON_OBJECT)
        return (struct finding){WORD_NONE, STR("")};
    return finding_of(j);
}

/* ```json … ```, any number of them. */
static struct finding read_fences(struct arena *a, struct str text)
{
    struct finding f = {WORD_NONE, STR("")};
    for (int tried = 0; tried < OBJECTS_TRIED_MAX; tried++) {
        ptrdiff_t at = str_find(text, STR("```"));
        if (at < 0)
            break;
        text = str_skip(text, (size_t)at + 3);
        ptrdiff_t end = str_find(text, STR("```"));
        struct str inside = end < 0 ? text : str_from(text.p, (size_t)end);
        const char *brace = inside.n ? memchr(inside.p, '{', inside.n) : NULL;
        if (brace)
            add(&f, read_object(
                        a, str_trim_if(str_skip(inside, (size_t)(brace - inside.p)), is_space)));
        if (end < 0)
            break;
        text = str_skip(text, (size_t)end + 3);
    }
    return f;
}

static struct finding read_prose(struct arena *a, struct str text)
{
    struct finding f = {WORD_NONE, STR("")};
    for (int tried = 0; tried < OBJECTS_TRIED_MAX && text.n; tried++) {
        const char *brace = memchr(text.p, '{', text.n);
        if (!brace)
            break;
        text = str_skip(text, (size_t)(brace - text.p));
        size_t n = ai_object_bytes(text);
        struct finding found = n ? read_object(a, str_from(text.p, n)) : (struct finding){0};
        add(&f, found);
        text = str_skip(text, found.word == WORD_NONE ? 1 : n);
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
    s = skip_space(str_skip(s, quote));
    size_t colon = str_starts(s, STR(":")) ? 1 : str_starts(s, STR("：")) ? strlen("：") : 0;
    return colon ? skip_space(str_skip(s, colon)) : STR_NULL;
}

/* The place of `"name":` in s after from, and its value. False: no more. */
static bool find_name(struct str s, struct str name, size_t *from, struct str *value)
{
    for (size_t i = *from; i + name.n < s.n; i++) {
        if (!str_ieq(str_from(s.p + i, name.n), name) || !ends_with_quote(str_from(s.p, i)))
            continue;
        *value = value_after(str_skip(s, i + name.n));
        if (value->p) {
            *from = i + name.n;
            return true;
        }
    }
    return false;
}

/* The value's end must be there: what is cut could have gone on. */
static enum word loose_word(struct str value)
{
    size_t quote = quote_at(value), n = 0;
    value = str_skip(value, quote);
    while (n < value.n && !quote_at(str_skip(value, n)) && !strchr(",}\n", value.p[n]))
        n++;
    if (n == value.n || (quote && !quote_at(str_skip(value, n))))
        return WORD_CONTRADICTION;
    struct str text = str_trim_if(str_from(value.p, n), is_space);
    if (!quote && str_eq(text, STR("1")))
        return WORD_YES;
    if (!quote && str_eq(text, STR("0")))
        return WORD_NO;
    return word_of_text(text);
}

/* Up to the quote that a comma, a brace or the end follows; all of it if there is none. */
static struct str loose_string(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        size_t quote = quote_at(str_skip(s, i));
        struct str after = quote ? skip_space(str_skip(s, i + quote)) : s;
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
    value = loose_string(str_skip(value, quote_at(value)));
    const struct json *j;
    struct str quoted = str_printf(a, "\"%.*s\"", STR_ARG(value));
    return json_parse(a, quoted, &j, NULL) == 0 ? json_str(j) : value;
}

static struct finding read_loose(struct arena *a, struct str text)
{
    struct finding f = {WORD_NONE, STR("")};
    size_t from = 0;
    struct str value;
    while (find_name(text, STR("relevant"), &from, &value))
        f.word = word_and(f.word, loose_word(value));
    if (f.word == WORD_YES || f.word == WORD_NO)
        f.reason = loose_reason(a, text);
    return f;
}

/* --- the reply --- */

/* The text of a model, without its thoughts. */
static struct finding read_answer(struct arena *a, struct str text)
{
    struct finding f = read_object(a, text);
    if (f.word == WORD_NONE)
        f = read_fences(a, text);
    if (f.word == WORD_NONE)
        f = read_prose(a, text);
    if (f.word == WORD_NONE)
        f = read_loose(a, text);
    if (f.word == WORD_NONE)
        f.word = words_read(text, &f.reason);
    return f;
}

/* An object and nothing else is the answer, whatever its strings look like. */
static struct finding read_content(struct arena *a, struct str content)
{
    struct finding f = read_object(a, content);
    if (f.word != WORD_NONE)
        return f;
    struct str text = ai_skip_thoughts(content);
    return text.n <= VERDICT_CONTENT_BYTES_MAX ? read_answer(a, text) : f;
}

/* Servers that take every text for a thought put the whole answer there. */
static struct finding read_message(struct arena *a, const struct json *message)
{
    struct str content = ai_message_text(a, message);
    return content.n ? read_content(a, content) : read_object(a, ai_message_thoughts(message));
}

void verdict_read(struct arena *a, struct str body, struct verdict_reply *out)
{
    *out = (struct verdict_reply){.reason = STR("")};
    const struct json *reply = ai_reply_parse(a, body, &out->tokens);
    struct str fingerprint = json_str(json_get(reply, "system_fingerprint"));
    out->simulated = str_eq(fingerprint, STR(VERDICT_SIMULATED));
    struct finding f = read_message(a, json_get(json_first(json_get(reply, "choices")), "message"));
    out->readable = f.word == WORD_YES || f.word == WORD_NO;
    out->relevant = f.word == WORD_YES;
    if (out->readable)
        out->reason = ai_line(a, f.reason);
    else
        out->problem = ai_reply_problem(a, reply);
    if (!out->readable && !out->problem)
        out->problem = "a reply that has no verdict in it";
}
