#include "tool/sim/sim_extract.h"

#include "app/extract/fields/values.h"
#include "base/ascii.h"
#include "tool/sim/sim_verdict.h"
#include "tool/sim/sim_words.h"

#define VALUE_BYTES_MAX 300 /* a longer rest of a sentence is no value */
#define ITEMS_MAX       50

/* --- the prompt --- */

/* The text between two borders; p == NULL: they are not there. *rest is what follows. */
static struct str between(struct str s, struct str open, struct str close, struct str *rest)
{
    ptrdiff_t at = str_find(s, open);
    if (at < 0)
        return STR_NULL;
    s = str_skip(s, (size_t)at + open.n);
    at = str_find(s, close);
    if (at < 0)
        return STR_NULL;
    *rest = str_skip(s, (size_t)at + close.n);
    return str_from(s.p, (size_t)at);
}

/* The lines that begin with a brace, up to an empty line behind them, as a JSON array. */
static struct str field_lines(struct arena *a, struct str system)
{
    struct buf b;
    bool any = false;
    buf_init(&b);
    while (system.p) {
        struct str line = str_cut(&system, '\n');
        bool field = str_starts(line, STR("{\"name\""));
        if (any && !field)
            break;
        if (!field)
            continue;
        buf_add_char(&b, any ? ',' : '[');
        buf_add_str(&b, line);
        any = true;
    }
    buf_add_char(&b, ']');
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

static bool has_complaint(struct str rest)
{
    while (rest.p)
        if (sim_label_bytes(str_cut(&rest, '\n'), STR("complaint")))
            return true;
    return false;
}

bool sim_extract_read(struct arena *a, struct str system, struct str user, struct sim_extract *out)
{
    struct sim_extract x = {.typed = false};
    struct str rest = STR("");
    const char *complaint;
    if (!sim_label_bytes(system, STR("extract")))
        return false;
    x.document = between(user, STR("<<<DOCUMENT\n"), STR("\nDOCUMENT<<<"), &rest);
    struct str lines = field_lines(a, system);
    if (!x.document.p || extract_template_parse(a, lines, &x.fields, &complaint))
        return false;
    x.hash = sim_word_hash(x.document, sim_word_hash(lines, 0));
    x.complained = has_complaint(rest);
    *out = x;
    return true;
}

/* --- faults --- */

static const struct str kind_names[] = {[EXTRACT_TYPES] = STR("types"),
                                        [EXTRACT_MISSING] = STR("missing"),
                                        [EXTRACT_QUOTES] = STR("quotes"),
                                        [EXTRACT_PROSE] = STR("prose")};

bool sim_extract_kinds(struct str list, unsigned *kinds, struct str *bad)
{
    unsigned found = 0;
    while (list.p) {
        unsigned kind = EXTRACT_TYPES;
        *bad = sim_trim(str_cut(&list, ','));
        while (kind < EXTRACT_FAULTS && !str_eq(*bad, kind_names[kind]))
            kind++;
        if (kind == EXTRACT_FAULTS)
            return false;
        found |= 1u << kind;
    }
    *kinds = found;
    return true;
}

enum sim_extract_fault sim_extract_fault(const struct sim_extract *x,
                                         const struct sim_extract_faults *f)
{
    double chance = (double)(x->hash >> 11) * 0x1p-53; /* 0 to 1, 1 excluded */
    if (chance >= f->rate || (x->complained && !f->stays))
        return EXTRACT_RIGHT;
    unsigned kind = EXTRACT_TYPES + (unsigned)(x->hash % (EXTRACT_FAULTS - 1));
    while (f->kinds && !(f->kinds >> kind & 1))
        kind = kind % (EXTRACT_FAULTS - 1) + 1;
    return (enum sim_extract_fault)kind;
}

/* --- sentences with a value --- */

struct finding {
    struct str value, quote; /* of the document */
};

/* Bytes of the mark that ends a sentence, if s begins with one: a line end, a full stop before a
 * blank or the end. */
static size_t stop_bytes(struct str s)
{
    static const struct str stops[] = {STR("。"), STR("；"), STR("！"), STR("？")};
    if (s.p[0] == '\n' || s.p[0] == '\f' || s.p[0] == ';')
        return 1;
    if (strchr(".!?", s.p[0]) && s.p[0])
        return s.n == 1 || s.p[1] == ' ' || s.p[1] == '\n' || s.p[1] == '\r';
    for (size_t i = 0; i < 4 && (s.p[0] & 0x80); i++)
        if (str_starts(s, stops[i]))
            return stops[i].n;
    return 0;
}

static size_t sentence_begin(struct str text, size_t at)
{
    for (size_t i = at; i > 0; i--) {
        struct str s = str_skip(text, i - 1);
        size_t n = stop_bytes(s);
        if (n && i - 1 + n <= at)
            return i - 1 + n;
    }
    return 0;
}

static size_t sentence_end(struct str text, size_t at)
{
    while (at < text.n && !stop_bytes(str_skip(text, at)))
        at++;
    return at;
}

/* Bytes between the name of a field and its value: ": ", " is " and the like; 0: this is no
 * value. */
static size_t link_bytes(struct str s)
{
    static const struct str links[] = {STR(":"),    STR("："),    STR("is "), STR("was "),
                                       STR("are "), STR("were "), STR("为"),  STR("是")};
    size_t blanks = 0;
    while (blanks < s.n && s.p[blanks] == ' ')
        blanks++;
    s = str_skip(s, blanks);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (str_starts(s, links[i]) && (blanks || !ascii_is_letter(links[i].p[0])))
            return blanks + links[i].n;
    return 0;
}

/* The first sentence with a value for the name, from a place on, which moves behind it. */
static bool next_finding(struct str text, struct str name, size_t *from, struct finding *out)
{
    for (size_t i = *from; i + name.n < text.n; i++) {
        if (ascii_lower(text.p[i]) != ascii_lower(name.p[0]) ||
            !str_ieq(str_from(text.p + i, name.n), name))
            continue;
        bool inside = i > 0 && ascii_is_word(text.p[i - 1]) && ascii_is_word(text.p[i]);
        size_t link = inside ? 0 : link_bytes(str_skip(text, i + name.n));
        if (!link)
            continue;
        size_t begin = i + name.n + link, end = sentence_end(text, begin),
               sentence = sentence_begin(text, i);
        out->value = sim_trim(str_from(text.p + begin, end - begin));
        out->quote = sim_trim(str_from(text.p + sentence, end - sentence));
        *from = end;
        if (out->value.n && out->value.n <= VALUE_BYTES_MAX)
            return true;
        i = end > i ? end - 1 : i;
    }
    return false;
}

/* --- values --- */

/* Whether the server takes a text for a value of the field. */
static bool is_value(struct arena *a, const struct extract_field *f, struct str text,
                     struct extract_value *v)
{
    const char *problem;
    struct json j = {.type = JSON_STRING, .s = text};
    return str_utf8_valid(text) && !extract_value_is_none(f, &j) &&
           extract_value_read(a, f, &j, v, &problem) == 0;
}

static struct str cut_item(struct str *rest)
{
    static const struct str commas[] = {STR(","), STR("，"), STR("、"), STR(" and ")};
    for (size_t i = 0; i < rest->n; i++)
        for (size_t k = 0; k < 4; k++)
            if (str_starts(str_skip(*rest, i), commas[k])) {
                struct str item = str_from(rest->p, i);
                *rest = str_skip(*rest, i + commas[k].n);
                return sim_trim(item);
            }
    struct str item = sim_trim(*rest);
    *rest = STR_NULL;
    return item;
}

static void put_wrong(struct json_writer *w, const struct extract_field *f)
{
    jw_key(w, STR("value"));
    if (f->of == EXTRACT_TEXT) {
        jw_object(w);
        jw_put_str(w, "unexpected", STR("object"));
        jw_end_object(w);
    } else if (f->of == EXTRACT_INTEGER) {
        jw_real(w, 1.5);
    } else {
        jw_str(w, STR("none of what was asked for"));
    }
}

static void put_quote(struct json_writer *w, struct str quote, enum sim_extract_fault fault)
{
    if (fault == EXTRACT_QUOTES)
        quote = STR("As everyone who works in this field has always known, it is so.");
    jw_put_str(w, "quote", quote);
}

/* {"value", "quote"} of a text that is_value. */
static void put_item(struct json_writer *w, const struct sim_extract *x,
                     const struct extract_field *f, const struct extract_value *v, struct str text,
                     struct str quote, enum sim_extract_fault fault)
{
    jw_object(w);
    jw_key(w, STR("value"));
    if (x->typed)
        extract_value_put(w, f, v);
    else
        jw_str(w, text);
    put_quote(w, quote, fault);
    jw_end_object(w);
}

static void put_list(struct arena *a, struct json_writer *w, const struct sim_extract *x,
                     const struct extract_field *f, enum sim_extract_fault fault)
{
    struct finding found;
    size_t from = 0;
    jw_array(w);
    if (next_finding(x->document, f->name, &from, &found) && str_utf8_valid(found.quote)) {
        struct str rest = found.value;
        for (int i = 0; rest.p && i < ITEMS_MAX; i++) {
            struct str item = cut_item(&rest);
            struct extract_value v;
            if (is_value(a, f, item, &v))
                put_item(w, x, f, &v, item, found.quote, fault);
        }
    }
    jw_end_array(w);
}

static void put_single(struct arena *a, struct json_writer *w, const struct sim_extract *x,
                       const struct extract_field *f, enum sim_extract_fault fault)
{
    struct finding found;
    struct extract_value v;
    size_t from = 0;
    while (next_finding(x->document, f->name, &from, &found))
        if (is_value(a, f, found.value, &v) && str_utf8_valid(found.quote)) {
            put_item(w, x, f, &v, found.value, found.quote, fault);
            return;
        }
    jw_object(w);
    jw_key(w, STR("value"));
    jw_null(w);
    jw_put_str(w, "quote", STR_NULL);
    jw_end_object(w);
}

static bool any_required(const struct sim_extract *x)
{
    for (size_t i = 0; i < x->fields.count; i++)
        if (x->fields.fields[i].required)
            return true;
    return false;
}

static void put_fields(struct arena *a, struct json_writer *w, const struct sim_extract *x,
                       enum sim_extract_fault fault)
{
    bool all = !any_required(x);
    for (size_t i = 0; i < x->fields.count; i++) {
        const struct extract_field *f = &x->fields.fields[i];
        if (fault == EXTRACT_MISSING && (all || f->required))
            continue;
        jw_key(w, f->name);
        if (fault == EXTRACT_TYPES) {
            jw_object(w);
            put_wrong(w, f);
            jw_end_object(w);
        } else if (f->type == EXTRACT_LIST) {
            put_list(a, w, x, f, fault);
        } else {
            put_single(a, w, x, f, fault);
        }
    }
}

void sim_extract_write(struct arena *a, const struct sim_extract *x, enum sim_extract_fault fault,
                       struct buf *out)
{
    struct json_writer w;
    if (fault == EXTRACT_PROSE)
        buf_add_lit(out, "Here is what I found {with care} in the document:\n\n```json\n");
    jw_init(&w, out);
    jw_object(&w);
    if (fault == EXTRACT_MISSING)
        jw_put_str(&w, "note", STR("Some of it could not be found."));
    put_fields(a, &w, x, fault);
    jw_end_object(&w);
    if (fault == EXTRACT_PROSE)
        buf_add_lit(out, "\n```\n\nTell me if you need anything else.");
}
