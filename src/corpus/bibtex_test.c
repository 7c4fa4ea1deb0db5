#include "corpus/bibtex.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "tests/tap.h"

/* What came out of a text: "key: title; year" a line, and "line reason[about]" a line. */
struct result {
    struct buf entries, problems;
    size_t count, dropped;
};

static void note(void *arg, const struct bibtex_problem *p)
{
    struct result *r = arg;
    buf_printf(&r->problems, "%d %s[%.*s]%s\n", (int)p->line, p->reason, STR_ARG(p->about),
               p->dropped ? " dropped" : "");
    r->dropped += p->dropped;
}

static void add_entry(struct result *r, const struct bibtex_entry *e)
{
    buf_printf(&r->entries, "%d %.*s: %.*s; %.*s\n", (int)e->line, STR_ARG(e->key),
               STR_ARG(e->title), STR_ARG(e->year));
    r->count++;
}

static void result_release(struct result *r)
{
    buf_release(&r->entries);
    buf_release(&r->problems);
}

static void read_text(struct result *r, struct str s)
{
    *r = (struct result){0};
    struct bibtex *b = bibtex_new(note, r);
    struct bibtex_entry e;
    size_t used;
    while (bibtex_next(b, s, true, &e, &used) == BIBTEX_ENTRY) {
        add_entry(r, &e);
        s = str_from(s.p + used, s.n - used);
    }
    bibtex_free(b);
}

static const struct {
    const char *what, *text, *entries, *problems;
} cases[] = {
    {"nothing", "", "", ""},
    {"garbage", "\x01\xff{{{\"\"@@@ a@b.org } @ {", "", ""},
    {"nested braces", "@a{k, title = {A {B {C}} d}, year={2001}}", "1 k: A {B {C}} d; 2001\n", ""},
    {"quotes with braces inside", "@a{k, title = \"G{\\\"o}del's {\"}x{\"}\"}",
     "1 k: G{\\\"o}del's {\"}x{\"}; \n", ""},
    {"numbers and names without quotes", "@a{k, YEAR = 1999, Title = word}", "1 k: word; 1999\n",
     ""},
    {"the year of a date", "@a{k, date = {c. 2020-05-01}}", "1 k: ; 2020\n", ""},
    {"a date behind an empty year", "@a{k, year = {}, date = {2020}}", "1 k: ; 2020\n", ""},
    {"white space", "@a{k, title = { a\r\n\t b  c \n}}", "1 k: a b c; \n", ""},
    {"white space far inside", "@a{k, title = {0123456789  abcdef 0123456789 \n\tABCDEF\x01.}}",
     "1 k: 0123456789 abcdef 0123456789 ABCDEF\x01.; \n", ""},
    {"joined pieces", "@a{k, title = \"a \" # {b} # \" c\" # 7}", "1 k: a b c7; \n", ""},
    {"months", "@a{k, title = jan # \", \" # DEC}", "1 k: January, December; \n", ""},
    {"strings", "@STRING{Abc = \"x y\"}@string(d = ABC # {!})\n@a{k, title = abc # d}",
     "2 k: x yx y!; \n", ""},
    {"a string used before it is defined", "@a{k, title = later}\n@string{later = {x}}",
     "1 k: later; \n", ""},
    {"a string defined anew", "@string{s={1}}@a{k,title=s}@string{S={2}}@a{l,title=s}",
     "1 k: 1; \n1 l: 2; \n", ""},
    {"a string without value", "@string{x}@a{k,title={t}}", "1 k: t; \n",
     "1 @string without '='[x] dropped\n"},
    {"comment, preamble and text between", "Hello.\n@comment{a {b} c}@preamble{\"x\"}\n@a{k}@b{l}",
     "3 k: ; \n3 l: ; \n", ""},
    {"entries that are commented out", "@comment{\n@a{k,title={x}}\n}\n@a{l}", "4 l: ; \n", ""},
    {"a comment without end", "@comment{ oh\n@a{k}\n@a{l}\n", "2 k: ; \n3 l: ; \n",
     "1 not closed before the next entry[oh]\n"},
    {"a comment with text does not hide entries", "@comment{ oh\n@a{k}\n}\n@a{l}\n",
     "2 k: ; \n4 l: ; \n", "1 not closed before the next entry[oh]\n"},
    {"parentheses", "@a(k, title = {a) b}, note = \"c)\", year = 2000)\n@a{l}",
     "1 k: a) b; 2000\n2 l: ; \n", ""},
    {"a brace too many in parentheses", "@a(k, title = {x}})\n@a{l}", "2 l: ; \n",
     "1 closing brace without an opening one[k] dropped\n"},
    {"CRLF and byte order mark", "\xef\xbb\xbf@a{k,\r\n title={x},\r\n year=2000\r\n}\r\n@a{l}",
     "1 k: x; 2000\n5 l: ; \n", ""},
    {"a missing comma", "@a{k,\n title={x}\n year=2000 note = {n}}", "1 k: x; 2000\n",
     "3 no comma after a field[title]\n3 no comma after a field[year]\n"},
    {"a missing comma after the key", "@a{k\n title={x}}", "1 k: x; \n",
     "2 no comma after the key[k]\n"},
    {"too many commas", "@a{k,, title={x},,\n,}", "1 k: x; \n", ""},
    {"no key", "@a{title={x}}@a{,title={y}}@a{}", "1 : x; \n1 : y; \n1 : ; \n", "1 no key[]\n"},
    {"odd keys", "@a{10.1/(SI)<1::A>3.0;2-O, title={x}}@a{a b}@a{Zmv==,title={y}}@a{\xe4'}",
     "1 10.1/(SI)<1::A>3.0;2-O: x; \n1 a b: ; \n1 Zmv==: y; \n1 \xe4': ; \n", ""},
    {"a field twice", "@a{k, title={x},\nTITLE={y}}", "1 k: x; \n",
     "2 field given twice; the first counts[TITLE]\n"},
    {"fields without value", "@a{k, title = , note, year = 2000, doi =}", "1 k: ; 2000\n",
     "1 field without a value[title]\n1 field without a value[note]\n"
     "1 field without a value[doi]\n"},
    {"a missing brace in a value", "@a{k,\n title={x,\n year=2000\n}\n\n@a{l,title={y}}",
     "6 l: y; \n", "1 not closed before the next entry[k] dropped\n"},
    {"a missing brace at the end", "@a{k, title={x}\n@string{s={z}}\n@a{l,title=s}", "3 l: z; \n",
     "1 not closed before the next entry[k] dropped\n"},
    {"a missing brace before an indented entry", "@a{k, title={x\n\t @a{l,title={y}}", "2 l: y; \n",
     "1 not closed before the next entry[k] dropped\n"},
    {"a missing brace in the last entry", "@a{k}\n@a{l, title={x}", "1 k: ; \n",
     "2 not closed before the end of the file[l] dropped\n"},
    {"lines that only resemble an entry", "@a{k, title={x\n @media (a b)\n@home\n @b{c d}}}",
     "1 k: x @media (a b) @home @b{c d}; \n", ""},
    {"a brace too many", "@a{k, title={x}}, year={2000}}\n@a{l}", "1 k: x; \n2 l: ; \n",
     "1 field behind the end of its entry[year]\n"},
    {"an open quote", "@a{k, title = \"x,\n year = 2000}\n@a{l}", "3 l: ; \n",
     "1 quote not closed[k] dropped\n"},
    {"an open quote before other quotes", "@a{k, title = \"x,\n year = \"2000\"\n}\n@a{l}",
     "4 l: ; \n", "1 quote not closed[k] dropped\n"},
    {"quotes in quotes", "@a{k, title = \"x \"y\" \\\"z\", year = \"2000\"}",
     "1 k: x \"y\" \\\"z; 2000\n", "1 quotes inside quotes[k]\n"},
    {"a field without =", "@a{k, title {x}}@a{l}", "1 l: ; \n",
     "1 no '=' after the name of a field[k] dropped\n"},
    {"a value without name", "@a{k,\n {x}}@a{l}", "2 l: ; \n",
     "2 no name where a field should begin[k] dropped\n"},
    {"text behind a value", "@a{k, title = {x} y}@a{l}", "1 l: ; \n",
     "1 no comma after a field[k] dropped\n"},
    {"prose that looks like an entry", "see @a {b {c}} or\n@a{l}", "2 l: ; \n",
     "1 no comma after the key[b] dropped\n"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result r;
        read_text(&r, str_of(cases[i].text));
        is_str(buf_str(&r.entries), str_of(cases[i].entries), "%s: entries", cases[i].what);
        is_str(buf_str(&r.problems), str_of(cases[i].problems), "%s: problems", cases[i].what);
        result_release(&r);
    }
}

static void test_fields(void)
{
    struct str text =
        STR("x @InProceedings{ k1 ,\n AUTHOR = {A and\n B}, doi = \"10.1/X\",\n"
            " journaltitle = {J. T.}, journal = {J}, booktitle = {Proc.}, abstract = {S  t},"
            " pages = {1--2} # \" f.\" } y");
    struct bibtex *b = bibtex_new(NULL, NULL);
    struct bibtex_entry e;
    size_t used;
    is_int(bibtex_next(b, text, true, &e, &used), BIBTEX_ENTRY, "an entry");
    is_str(e.raw, str_from(text.p + 2, text.n - 4), "raw");
    ok(e.raw.p == text.p + 2 && used == text.n - 2, "raw is not copied");
    ok(e.doi.p > text.p && e.doi.p < text.p + text.n, "nor a value that is right as it stands");
    is_str(e.type, STR("InProceedings"), "type");
    is_str(e.key, STR("k1"), "key");
    is_str(e.authors, STR("A and B"), "authors");
    is_str(e.doi, STR("10.1/X"), "doi");
    is_str(e.journal, STR("J"), "journal");
    is_str(e.booktitle, STR("Proc."), "booktitle");
    is_str(e.abstract, STR("S t"), "abstract");
    ok(!e.title.p && !e.year.p, "what is absent");
    is_str(bibtex_field(b, STR("Pages")), STR("1--2 f."), "another field");
    ok(!bibtex_field(b, STR("volume")).p, "a field that is not there");
    bibtex_free(b);
}

static void is_macros(const struct bibtex_entry *e, struct str want, const char *what)
{
    struct buf all;
    buf_init(&all);
    for (size_t i = 0; i < e->macro_count; i++)
        buf_add_str(&all, e->macros[i]->raw);
    is_str(buf_str(&all), want, "%s", what);
    buf_release(&all);
}

static void test_macros(void)
{
    struct str text = STR("@string{a={A}}@string{b=a # {B}}@string{c={C}}@string{d=b # c # b}\n"
                          "@x{k, note = d, title = D # a, month = jan}");
    struct bibtex *b = bibtex_new(NULL, NULL);
    struct bibtex_entry e;
    size_t used;
    is_int(bibtex_next(b, text, true, &e, &used), BIBTEX_ENTRY, "an entry that uses strings");
    is_str(e.title, STR("ABCABA"), "expanded");
    is_macros(&e, STR("@string{a={A}}@string{b=a # {B}}@string{c={C}}@string{d=b # c # b}"),
              "each string once, behind those it needs");
    bibtex_reset(b);
    text = STR("@string{a={1}}@string{b=a}@string{a={2}}@x{k, title = a # b}");
    is_int(bibtex_next(b, text, true, &e, &used), BIBTEX_ENTRY, "a string defined anew");
    is_macros(&e, STR("@string{a={1}}@string{b=a}@string{a={2}}"), "behind those of its old value");
    bibtex_free(b);
}

/* A reader that is reset in the middle of an entry is as good as new. */
static void test_reset(void)
{
    struct str text = STR("\n@string{s={z}}\n@a{k, title=s}@b{l, title={x");
    struct result r = {0};
    struct bibtex *b = bibtex_new(note, &r);
    struct bibtex_entry e;
    size_t used;
    is_int(bibtex_next(b, text, true, &e, &used), BIBTEX_ENTRY, "an entry");
    is_str(e.title, STR("z"), "with a string");
    is_int(bibtex_next(b, str_from(text.p + used, text.n - used), false, &e, &used), BIBTEX_MORE,
           "half an entry");
    bibtex_reset(b);
    is_int(bibtex_next(b, STR("@c{m, title=s}"), true, &e, &used), BIBTEX_ENTRY, "another text");
    ok(e.line == 1 && str_eq(e.key, STR("m")) && str_eq(e.type, STR("c")), "from its beginning");
    is_str(e.title, STR("s"), "without the strings of the last");
    ok(e.macro_count == 0 && r.problems.len == 0, "and without its problems");
    for (int i = 0; i < 3; i++) {
        bibtex_reset(b);
        ok(!bibtex_field(b, STR("title")).p, "no fields of the last");
        check(bibtex_next(b, STR("@string{s={y}}@c{m, title=s}"), true, &e, &used) == BIBTEX_ENTRY);
        is_str(e.title, STR("y"), "strings are defined again");
    }
    bibtex_free(b);
    result_release(&r);
}

static void repeat(struct buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_str(b, str_of(s));
}

/* What head, many times middle, and tail give; a good entry follows. */
static void limit(const char *what, const char *head, const char *middle, size_t n,
                  const char *tail, const char *reason)
{
    struct buf b;
    struct result r;
    buf_init(&b);
    repeat(&b, head, 1);
    repeat(&b, middle, n);
    repeat(&b, tail, 1);
    repeat(&b, "\n@a{next, title={ok}}\n", 1);
    read_text(&r, buf_str(&b));
    bool named = reason && str_find(buf_str(&r.problems), str_of(reason)) >= 0;
    ok(reason ? named && r.dropped > 0 : r.problems.len == 0, "%s: %s", what,
       reason ? reason : "no problem");
    ok(str_find(buf_str(&r.entries), STR("next: ok")) >= 0, "%s: the next entry is read", what);
    result_release(&r);
    buf_release(&b);
}

static void test_limits(void)
{
    size_t mb = BIBTEX_ENTRY_BYTES_MAX / 16;
    limit("bytes", "@a{k, title={", "0123456789abcde\n", mb - 2, "}}", NULL);
    limit("bytes", "@a{k, title={", "0123456789abcde\n", mb, "}}", "longer than");
    limit("bytes and no end", "@a{k, title={", "0123456789abcde\n", 3 * mb, "", "longer than");
    limit("depth", "@a{k, title=", "{", BIBTEX_DEPTH_MAX, "", "not closed");
    limit("depth", "@a{k, title=", "{", BIBTEX_DEPTH_MAX + 1, "", "too deeply");
    limit("strings", "", "@string{a={x}}", BIBTEX_MACROS_MAX, "", NULL);
    limit("strings", "", "@string{a={x}}", BIBTEX_MACROS_MAX + 1, "", "too many @strings");
    limit("doubled strings", "@string{a={x}}", "@string{a=a#a}", 16, "", NULL);
    limit("doubled strings", "@string{a={x}}", "@string{a=a#a}", 17, "", "@string too long");
    limit("a chain of strings", "@string{a={x}}", "@string{a=a}", BIBTEX_MACRO_USES_MAX + 1, "",
          "too many others");
    limit("an expanded field", "@string{a={0123456789abcdef0123456789abcdef}}@a{k,title=a", "#a",
          1u << 18, "}", "too long with its @strings");

    struct buf fields;
    buf_init(&fields);
    for (int i = 0; i < BIBTEX_FIELDS_MAX; i++)
        buf_printf(&fields, ",f%d={x}", i);
    buf_add_char(&fields, '\0');
    limit("fields", "@a{k", fields.p, 1, "}", NULL);
    limit("fields", "@a{k", fields.p, 1, ",g=1}", "too many fields");
    buf_release(&fields);
}

/* Every window is a byte longer than the last; what is used is taken away. */
static void test_bytewise(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str s = str_of(cases[i].text);
        struct result r = {0};
        struct bibtex *b = bibtex_new(note, &r);
        struct bibtex_entry e;
        size_t at = 0, end = 0, used;
        for (;;) {
            enum bibtex_step step =
                bibtex_next(b, str_from(s.p + at, end - at), end == s.n, &e, &used);
            at += used;
            if (step == BIBTEX_ENTRY)
                add_entry(&r, &e);
            if (step == BIBTEX_END)
                break;
            end += step == BIBTEX_MORE;
        }
        ok(str_eq(buf_str(&r.entries), str_of(cases[i].entries)) &&
               str_eq(buf_str(&r.problems), str_of(cases[i].problems)),
           "%s: the same byte by byte", cases[i].what);
        bibtex_free(b);
        result_release(&r);
    }
}

/* One byte lost or put in anywhere in the middle entry must not touch its neighbours. */
static bool neighbours_survive(struct str before, struct str broken, struct str after)
{
    struct buf b;
    struct result r;
    buf_init(&b);
    buf_add_str(&b, before);
    buf_add_str(&b, broken);
    buf_add_str(&b, after);
    read_text(&r, buf_str(&b));
    struct str got = buf_str(&r.entries);
    bool both =
        str_starts(got, STR("1 one: A {B}; 2001\n")) && str_ends(got, STR(" three: C; 2003\n"));
    if (!both)
        printf("# %.*s# %.*s\n", STR_ARG(buf_str(&b)), STR_ARG(got));
    result_release(&r);
    buf_release(&b);
    return both;
}

static void test_damage(const char *what, struct str middle)
{
    struct str before = STR("@a{one, title = {A {B}}, year = \"2001\"}\n");
    struct str after = STR("\n@a(three, title = \"C\", year = {2003})\n");
    static const char junk[] = "{}\"(),=#@\\\n";
    size_t bad = 0;
    for (size_t i = 0; i < middle.n; i++) {
        for (size_t j = 0; j < sizeof(junk); j++) { /* the NUL at its end stands for a lost byte */
            struct buf b;
            buf_init(&b);
            buf_add(&b, middle.p, i);
            if (junk[j])
                buf_add_char(&b, junk[j]);
            buf_add(&b, middle.p + i + !junk[j], middle.n - i - !junk[j]);
            bad += !neighbours_survive(before, buf_str(&b), after);
            buf_release(&b);
        }
    }
    is_int((int64_t)bad, 0, "%s: damage stays where it is", what);
}

static void test_take(void)
{
    static const char *const none[] = {
        "",
        "@",
        "@a",
        "@a{",
        "x",
        " @a{k, title = {T}}",
        "@a{k, title = {T}",
        "@a{k, title = {T}} ",
        "@a{k, title = {T}} x}",
        "@a{k, title = {T}}, note = {x}}",
        "@a{k}, title = {T}}",
        "@a{k, title = \"T} x\"}",
        "@a(k, title = {T})",
        "@string{k = {T}}",
        "@Comment{k, title = {T}}",
        "@preamble{k, title = {T}}",
        "@string{s = {T}}\n@a{k, title = s}",
    };
    struct bibtex *b = bibtex_new(NULL, NULL);
    struct bibtex_entry e;
    size_t used;
    struct str macro = STR("@string{s = {T}} @a{k, title = s}");
    check(bibtex_next(b, macro, true, &e, &used) == BIBTEX_ENTRY);
    ok(bibtex_take(b, STR("@a{k, Title = {A {B}  c}, note = s # \"x\", Month = jan}")),
       "an entry is taken");
    is_str(bibtex_field(b, STR("title")), STR("A {B} c"), "its fields are there");
    is_str(bibtex_field(b, STR("note")), STR("sx"), "what was read before is forgotten");
    ok(!bibtex_field(b, STR("abstract")).p, "others are not");
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ok(!bibtex_take(b, str_of(none[i])), "not taken: %s", none[i]);
    bibtex_free(b);
}

static void test_file(void)
{
    enum { COUNT = 20000 };
    char path[] = "/tmp/bibtex_test.XXXXXX";
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    check(out);
    for (int i = 0; i < COUNT; i++)
        fprintf(out, "@article{k%d,\n  title = {%0*d}\n}\n\n", i, i % 300, i);
    fclose(out);

    struct bibtex_file *f;
    struct bibtex_entry e;
    int count = 0, right = 0, more = bibtex_open(&f, path, NULL, NULL);
    is_int(more, 0, "the file opens");
    while ((more = bibtex_read(f, &e)) == 1) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", count);
        right += str_eq(e.key, str_of(key)) && e.line == 4u * (unsigned)count + 1;
        count++;
    }
    is_int(more, 0, "the end of the file");
    is_int(count, COUNT, "all entries of a file");
    is_int(right, COUNT, "with the right key and line");
    bibtex_close(f);
    unlink(path);
    is_int(bibtex_open(&f, path, NULL, NULL), ERR_IO, "no such file");
    is_int(bibtex_open(&f, "/", NULL, NULL), 0, "a directory opens");
    is_int(bibtex_read(f, &e), ERR_IO, "and cannot be read");
    bibtex_close(f);
}

int main(void)
{
    test_cases();
    test_fields();
    test_macros();
    test_reset();
    test_limits();
    test_bytewise();
    test_take();
    test_damage("braces", STR("@a{two,\n title = {B {c} d},\n note = {x@y.org},\n year = 2002\n}"));
    test_damage("quotes", STR("@a{two,\n title = \"B {c} \" # jan,\n year = \"2002\",\n}"));
    test_damage("parentheses", STR("@a(two,\n title = \"B) {c}\",\n note = {x)}, year = 2002)"));
    test_damage("a string", STR("@string{two = \"x {y}\" # jan}"));
    test_damage("a comment", STR("@comment{two {x}}"));
    test_file();
    return tap_done();
}
