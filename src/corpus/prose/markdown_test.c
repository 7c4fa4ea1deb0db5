/* Markdown and its plain text, case by case; then made-up documents, and those that might take
 * long. */
#include "corpus/prose/markdown.h"

#include <time.h>

#include "base/buf.h"
#include "tests/tap.h"

#define SEEDS 3000

static struct arena arena;

static const struct {
    const char *markdown, *want;
} cases[] = {
    /* paragraphs and lines */
    {"", ""},
    {" \n\n\t\n", ""},
    {"One line.", "One line."},
    {"One\ntwo\n   three.\n", "One two three."},
    {"One.\n\nTwo.\n\n\n\nThree.", "One.\n\nTwo.\n\nThree."},
    {"One.\r\nTwo.\r\n\r\nThree.\r\n", "One. Two.\n\nThree."},
    {"\xEF\xBB\xBFText", "Text"},
    {"a  \nhard break", "a\nhard break"},
    {"a\\\nhard break", "a\nhard break"},
    {"a  \r\nhard\\\r\nbreak", "a\nhard\nbreak"},
    {"a \nsoft break", "a soft break"},
    {"many    blanks\tand\ttabs", "many blanks and tabs"},
    {"a\x01\x02"
     "b",
     "a b"},
    {"中文的一行\n接着一行。", "中文的一行接着一行。"},
    {"**中文**\n接着，\n*一行*。", "中文接着，一行。"},
    {"中文\nEnglish 中\n文", "中文 English 中文"},
    {"한국어\n텍스트", "한국어 텍스트"},
    /* headings */
    {"# One", "# One"},
    {"###### Six ######", "###### Six"},
    {"####### seven", "####### seven"},
    {"#hashtag", "#hashtag"},
    {"# C# \nText", "# C#\n\nText"},
    {"# Closed #\n", "# Closed"},
    {"#\nText", "Text"},
    {"Text\n## Two\nText", "Text\n\n## Two\n\nText"},
    {"   ## Three blanks", "## Three blanks"},
    {"# A *title* with `code` and [link](http://x.org)", "# A title with code and link"},
    {"One\n===\nText", "# One\n\nText"},
    {"Two\n---\nText", "## Two\n\nText"},
    {"Two\nlines\n-----", "## Two lines"},
    {"第一章\n====\n正文。", "# 第一章\n\n正文。"},
    {"\\# no heading", " # no heading"},
    {"a  \n\\# no heading", "a\n # no heading"},
    {"a  \n**#** no heading", "a\n # no heading"},
    {"a<br>####### seven<br>*#*#word", "a\n####### seven\n##word"},
    {"*# no* heading", " # no heading"},
    {"#&#32;no heading", " # no heading"},
    /* emphasis */
    {"*a* **b** ***c*** _d_ __e__", "a b c d e"},
    {"snake_case_name and 2 * 3 * 4, 5*6", "snake_case_name and 2 * 3 * 4, 5*6"},
    {"**bold *and* more**", "bold and more"},
    {"*open and **closed**", "*open and closed"},
    {"~~gone~~ H~2~O ~", "gone H~2~O ~"},
    {"这是**重点：**内容", "这是重点：内容"},
    {"这是**“重点”**内容", "这是“重点”内容"},
    {"中文**(重点)**中文", "中文(重点)中文"},
    {"foo*bar*baz", "foobarbaz"},
    {"* not* emphasis at 5 * 3", "- not* emphasis at 5 * 3"},
    {"**a\nb**", "a b"},
    /* escapes and entities */
    {"\\*a\\* \\_b\\_ \\[c\\](d) \\`e\\` \\\\", "*a* _b_ [c](d) `e` \\"},
    {"C:\\dir \\a", "C:\\dir \\a"},
    {"&lt;b&gt; &amp; &copy; &#65;&#x42; &nbsp;x &unknown;", "<b> & © AB x &unknown;"},
    {"AT&T", "AT&T"},
    {"a&nbsp; b &nbsp; c &#9;&#10;d", "a b c d"},
    {"a *&nbsp;* `b ` c` d  `  e", "a b cd e"},
    {"a <b> b </b> c", "a b c"},
    /* code */
    {"Use `*a*` and ``b`c`` now", "Use *a* and b`c now"},
    {"a `code\nspan` b", "a code span b"},
    {"not `closed, *but* this", "not `closed, but this"},
    {"``` not a fence ``` here", "not a fence here"},
    {"Text\n```python\n# comment\nx = *a\n\n\n\n  y = [1]\n```\nMore",
     "Text\n\n # comment\nx = *a\n\n  y = [1]\n\nMore"},
    {"~~~\n```\n~~~~\nText", "```\n\nText"},
    {"```\nnever *closed*", "never *closed*"},
    {"> ```\n> code\nText", "code\n\nText"},
    {"- item\n\n  ```sh\n  ls\n    -l\n  ```\n- next", "- item\n\nls\n  -l\n\n- next"},
    {"Text\n\n    indented *code*\n\n    more\n\nText", "Text\n\nindented *code*\n\nmore\n\nText"},
    {"Text\n    no code", "Text no code"},
    {"\tcode", "code"},
    {"```\na\n```\n```\nb\n```", "a\n\nb"},
    /* links and images */
    {"[text](http://x.org) and [b](<a b> \"title\")", "text and b"},
    {"[a](x(y)z) [b](c 'd') [e](f (g))", "a b e"},
    {"[a] (no) [b](no no) [c", "[a] (no) [b](no no) [c"},
    {"![alt *text*](i.png) and ![](data:image/png;base64,AAAA)end", "alt text and end"},
    {"[![logo](l.png)](http://x.org) here", "logo here"},
    {"wow![a](b) \\![a](b)", "wowa !a"},
    {"<https://x.org/a_b_c> <jane@x.org>", "https://x.org/a_b_c jane@x.org"},
    {"https://x.org/a_b_c and *this*", "https://x.org/a_b_c and this"},
    {"[a][1] [b][] [c] [d][2]\n\n[1]: http://x.org \"t\"\n[B]: <y>\n[c]: z", "a b c [d][2]"},
    {"[1][2] and [3]", "[1][2] and [3]"},
    {"[note]: this is no definition", "[note]: this is no definition"},
    {"a [b\nc](d\n\"e\") f", "a b c f"},
    {"[a](b[c](d)", "[a](bc"},
    /* footnotes */
    {"Text[^1] more[^n].\n\n[^1]: The *note*.\n    goes on\n\n    Second.\n[^n]: Other.",
     "Text more.\n\nThe note. goes on\n\nSecond.\n\nOther."},
    {"[^x] without one", "[^x] without one"},
    /* lists */
    {"- a\n* b\n+ c", "- a\n- b\n- c"},
    {"1. a\n2) b\n10. c", "1. a\n2. b\n10. c"},
    {"Intro:\n- a\n- b\n\nText", "Intro:\n- a\n- b\n\nText"},
    {"Intro:\n\n- a\n\n- b", "Intro:\n\n- a\n- b"},
    {"- a\n  - b\n    - c\n- d", "- a\n- b\n- c\n- d"},
    {"- a\n  goes on\nlazily\n- b", "- a goes on lazily\n- b"},
    {"- a\n\n  second\n\ntext", "- a\n\nsecond\n\ntext"},
    {"- [ ] todo\n- [x] done\n- [y] other", "- todo\n- done\n- [y] other"},
    {"- # Title\n- - nested", "# Title\n\n- nested"},
    {"-\n- a\n-", "- a"},
    {"-one\n1.one", "-one 1.one"},
    {"In the year\n1984. It was", "In the year 1984. It was"},
    {"- a\n---\nb", "- a\n\nb"},
    {"- a\n\n      code", "- a\n\ncode"},
    {"-      a\n\n      *code*", "- a\n\n*code*"},
    {"- a\n\ntext\n\n    no *list*", "- a\n\ntext\n\nno *list*"},
    /* rules */
    {"a\n\n---\n\n***\n_ _ _\nb", "a\n\nb"},
    {"* * *\n- - -", ""},
    /* quotes */
    {"> a\n> b\n>\n> c", "a b\n\nc"},
    {"> a\nlazy\n\nb", "a lazy\n\nb"},
    {"> a\n> > b\n>> c\n> # d", "a\n\nb c\n\n# d"},
    {"> - a\n> - b", "- a\n- b"},
    {"- > a\n  > b", "- a b"},
    {"a\n> b", "a\n\nb"},
    /* tables */
    {"| a | *b* |\n|---|:-:|\n| 1 | `2` |\n| 3 |\n\nText", "a\tb\n1\t2\n3\n\nText"},
    {"a | b\n--|--\n1 | 2\\|3\n# T", "a\tb\n1\t2|3\n\n# T"},
    {"Text\na | b\n--|--\n# x | 1", "Text\n\na\tb\n\n# x | 1"},
    {"a | b\n---\nText", "## a | b\n\nText"},
    {"| a |\n|-|-|", "| a | |-|-|"},
    {"| a |  | c |\n|--|--|--|\n|  |  |  |\n| | | x |", "a\tc\nx"},
    /* HTML */
    {"<p>One <b>bold</b><br>two</p><p>Three</p>", "One bold\ntwo\n\nThree"},
    {"<div class=\"a>b\">\nText\n</div>\n\n<img\nsrc='x'>", "Text"},
    {"a <!-- *hidden* --> b", "a b"},
    {"<!-- one\n\n# two\n-->\nText", "Text"},
    {"Text\n<!-- c -->\nmore", "Text more"},
    {"<!-- never closed", "<!-- never closed"},
    {"<script>\nlet a = 1;\n\nlet b\n</script>\nText", "Text"},
    {"a <style>p {}</style>b <STYLE x>q</Style >c", "a b c"},
    {"p < 0.05 and a<b, vector<int>, <T>", "p < 0.05 and a<b, vector<int>, <T>"},
    {"<h2>Title</h2>Text<ul><li>a<li>b</ul>", "Title\n\nText\n\na\nb"},
    {"<table><tr><td>a</td><td>b</td></tr><tr><td>c</table>", "a b\nc"},
    {"<details><summary>More</summary>\n\n*Text*\n\n</details>", "More\n\nText"},
    {"<?php x ?>a<!DOCTYPE html>b", "ab"},
    {"<b>#</b> no heading", " # no heading"},
    {"<a href=x", "<a href=x"},
    /* front matter */
    {"---\ntitle: X\ntags: [a]\n---\n# Text", "# Text"},
    {"+++\ntitle = 'X'\n+++\nText", "Text"},
    {"---\ntitle: X\n...\nText", "Text"},
    {"---\n\nText\n\n---\nMore", "Text\n\nMore"},
    {"---\ntitle: X\nnever closed", "title: X never closed"},
    {"Text\n\n---\na: b\n---\n", "Text\n\n## a: b"},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str markdown = str_of(cases[i].markdown);
        is_str(markdown_plain(&arena, markdown), str_of(cases[i].want), "%zu: %s", i,
               cases[i].markdown);
    }
    is_str(markdown_plain(&arena, STR_NULL), STR(""), "no text");
    is_str(markdown_plain(&arena, STR("a\0b")), STR("a b"), "a zero is a blank");
}

/* --- made-up documents --- */

static uint64_t next(uint64_t *state) /* xorshift: the same texts at every run */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *const pieces[] = {
    "word ", "词",        "\n",    "\n\n",  "# ",     "> ",         "- ",     "1. ",
    "*",     "**",        "_",     "~~",    "`",      "```\n",      "[",      "]",
    "](a)",  "![",        "](",    "[^1]",  "[1]: x", "\n[^1]: y ", "|",      "\n|-|-|\n",
    "<b>",   "</p>",      "<!--",  "-->",   "<br>",   "<script>",   "    ",   "\t",
    "\\",    "&amp;",     "&#35;", "---\n", "===\n",  "  \n",       "\r\n",   "\x01\x02",
    "\xE6",  "</script>", "#",     "\"",    "(",      ")",          "<a b='", "<http://x>",
};
#define PIECES (sizeof pieces / sizeof *pieces)

/* What the header promises of any text. */
static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool control = (unsigned char)s.p[i] < ' ' && s.p[i] != '\n' && s.p[i] != '\t';
        bool empty = i > 1 && s.p[i] == '\n' && s.p[i - 1] == '\n' && s.p[i - 2] == '\n';
        bool blank = s.p[i] == ' ' && (i + 1 == s.n || s.p[i + 1] == '\n');
        if (control || empty || blank)
            return false;
    }
    return s.n == 0 || (s.p[0] != '\n' && s.p[s.n - 1] != '\n');
}

static void test_made_up(void)
{
    size_t wrong = 0, bytes = 0, again = 0;
    struct buf b;
    buf_init(&b);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t state = seed * 0x9E3779B97F4A7C15u;
        buf_clear(&b);
        for (size_t i = next(&state) % 200; i > 0; i--)
            buf_add_str(&b, str_of(pieces[next(&state) % PIECES]));
        struct arena_mark m = arena_mark(&arena);
        struct str plain = markdown_plain(&arena, buf_str(&b));
        bool good = is_plain(plain) && (!str_utf8_valid(buf_str(&b)) || str_utf8_valid(plain));
        if (!good && wrong++ < 3)
            ok(false, "seed %llu: %.*s", (unsigned long long)seed, STR_ARG(plain));
        again += !str_eq(plain, markdown_plain(&arena, buf_str(&b)));
        bytes += plain.n;
        arena_reset(&arena, m);
    }
    buf_release(&b);
    is_int((int64_t)wrong, 0, "no text of %d became something else than plain text", SEEDS);
    is_int((int64_t)again, 0, "and each became the same twice");
    ok(bytes > 20 * SEEDS, "and they were not empty: %zu bytes", bytes);
}

/* --- time --- */

static int64_t time_of(struct buf *b, const char *unit, size_t bytes)
{
    buf_clear(b);
    while (b->len < bytes)
        buf_add_str(b, str_of(unit));
    buf_add_lit(b, "x"); /* else a line of "- - -" is a rule, at once */
    struct arena_mark m = arena_mark(&arena);
    clock_t began = clock(); /* of this process: others may be at work */
    struct str plain = markdown_plain(&arena, buf_str(b));
    int64_t took = (int64_t)(clock() - began) * 1000000 / CLOCKS_PER_SEC;
    ok(plain.n <= 2 * b->len, "it does not grow");
    arena_reset(&arena, m);
    return took;
}

/* Texts that might make it look at the same bytes again and again. */
static void test_time(void)
{
    static const char *const units[] = {
        "x",        " ",         "\n",       "# x\n",       "x\n\n",   "- ",       "- a ",
        "> ",       "1. ",       "*",        "**a ",        "*a_",     "_a*",      "a**b",
        "`",        "`a``b```c", "[",        "]",           "][",      "[a](",     "[a](b ",
        "[a](b \"", "[a](b (",   "[a](<b",   "![",          "[^",      "[^a]",     "]:",
        "[a]: b\n", "[a]:",      "<",        "<a ",         "<a b='",  "<!--",     "<!",
        "<?",       "<script>",  "</script", "<a@",         "<b>",     "&",        "&amp;",
        "\\",       "\\\n",      "|",        "|a",          "a|b\n",   "-|-\n",    "---\n",
        "===\n",    "a\n-\n",    "```\n",    "~~~ ",        "    x\n", "  \n\\# ", "\t",
        "中\n",     "<br>\\# ",  "~~a",      "```a\n# b\n", ">\n",     "[a]\n",    "&#35; ",
        "\x01",
    };
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        int64_t small = time_of(&b, units[i], 100000), large = time_of(&b, units[i], 800000);
        ok(large < 24 * small + 100000, "eight times unit %zu: %lld and %lld us", i,
           (long long)small, (long long)large);
    }
    buf_release(&b);
}

int main(void)
{
    test_cases();
    test_made_up();
    test_time();
    arena_release(&arena);
    return tap_done();
}
