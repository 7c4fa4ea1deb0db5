#include "corpus/text.h"

#include <stdlib.h>

#include "corpus/text_table.h"
#include "tests/tap.h"

struct pair {
    const char *latex, *plain;
};

static void all(const struct pair *pairs, size_t n)
{
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < n; i++)
        is_str(text_plain(&a, str_of(pairs[i].latex)), str_of(pairs[i].plain), "%s",
               pairs[i].latex);
    arena_release(&a);
}
#define ALL(pairs) all(pairs, sizeof(pairs) / sizeof((pairs)[0]))

static void accents(void)
{
    static const struct pair pairs[] = {
        {"G{\\\"o}del", "Gödel"},
        {"G\\\"{o}del", "Gödel"},
        {"G\\\"odel", "Gödel"},
        {"Caf\\'e, voil\\`a, for\\^et, Espa\\~na", "Café, voilà, forêt, España"},
        {"\\=a \\.z \\u{g} \\v{S} \\H{o} \\c c \\c{C} \\k{a} \\r u", "ā ż ğ Š ő ç Ç ą ů"},
        {"\\d{h} \\b{d}", "ḥ ḏ"},
        {"na\\\"{\\i}ve, \\'\\i, \\v{\\j}, D{\\i}yarbak{\\i}r", "naïve, í, ǰ, Dıyarbakır"},
        {"\\t{oo}", "o\u0361o"},
        {"Nguy{\\~{\\^e}}n, \\'{\\\"u}, \\d{\\^o}", "Nguyễn, ǘ, ộ"},
        {"\\\"q \\v{m}", "q\u0308 m\u030C"},
        {"\\'{Zoe}", "Źoe"},
        {"\\' {e}", "é"},
        {"a\\~{}b \\^{} \\'5", "a~b ^ 5"},
        {"stra\\ss e {\\AA}ngstr{\\o}m \\O \\ae \\OE \\L\\'od\\'z \\aa",
         "straße Ångstrøm ØæŒŁódź å"},
        {"$\\hat{x}$ $\\bar a$ $\\vec{v}$", "x\u0302 ā v\u20D7"},
    };
    ALL(pairs);
}

static void commands(void)
{
    static const struct pair pairs[] = {
        {"R\\&D 5\\% \\$3 \\#1 a\\_b \\{x\\}", "R&D 5% $3 #1 a_b {x}"},
        {"\\textit{in vitro} and \\emph{E. coli} {\\bf bold}", "in vitro and E. coli bold"},
        {"{DNA} {{RNA}}-seq", "DNA RNA-seq"},
        {"\\url{http://x.org/~me/a\\_b--c}", "http://x.org/~me/a_b--c"},
        {"see \\href{http://x.org/{a}}{the page}.", "see the page."},
        {"\\unknown{kept} \\foo[opt]{bar} \\section*{One}", "kept bar One"},
        {"\\cite{key}a\\label{b}c \\begin{document}d\\end{document}", "ac d"},
        {"pages 1--9 --- no - yes", "pages 1–9 — no - yes"},
        {"``quoted'' and 'single' it's", "“quoted” and 'single' it's"},
        {"A.~B. a\\ b\\,c d\\\\e f\\-g h\\quad i", "A. B. a b c d e fg h i"},
        {"\\textasciitilde 5 {\\textbackslash}n \\textdegree C 5\\textpm2", "~5 \\n °C 5±2"},
        {"\\textexclamdown Hola! \\textquestiondown Qu\\'e?", "¡Hola! ¿Qué?"},
        {"H\\textsubscript{2}O 5\\textsuperscript{th} m\\textsuperscript{2}", "H₂O 5th m²"},
        {"a{b", "ab"},
        {"a}b\\", "ab"},
        {"\\cite{never closed", "never closed"},
    };
    ALL(pairs);
}

static void formulas(void)
{
    static const struct pair pairs[] = {
        {"$\\alpha$-helix, TNF-$\\beta$, \\Omega", "α-helix, TNF-β, Ω"},
        {"$5 \\times 10^{-3}$, $\\pm 2$, $a \\leq b \\geq c$", "5 × 10⁻³, ± 2, a ≤ b ≥ c"},
        {"$\\neg A \\rightarrow B$, $\\infty$", "¬ A → B, ∞"},
        {"CO$_2$, H$_{2}$O, $x_2$, km$^2$, $F_1$, 10^{6}, CO_{2}",
         "CO₂, H₂O, x₂, km², F₁, 10⁶, CO₂"},
        {"25 $^{\\circ}$C, 25$^\\circ$C", "25 °C, 25°C"},
        {"$x_i$ $x_{max}$ $e^{-kt}$ $x^n$ $5^{th}$ Na$^+$ $p^*$",
         "x_i x_max e^(-kt) xⁿ 5th Na⁺ p*"},
        {"$\\frac{a}{b+1}$ $\\sqrt{x}$ $\\sqrt[3]{x+1}$", "a/(b+1) √x √(x+1)"},
        {"$O(n\\log n)$ $\\max{x}$", "O(n log n) max x"},
        {"$10^15$ but 10^15 and 10^-3 and a^b", "10¹5 but 10¹⁵ and 10⁻³ and a^b"},
        {"file_name_2 stays", "file_name_2 stays"},
        {"from $5 to $10 or US$3", "from $5 to $10 or US$3"},
        {"$5 million in US$", "$5 million in US$"},
        {"$59k$, $70\\%$, $N > 1$", "59k, 70%, N > 1"},
        {"$$E=mc^2$$ and \\(x_1\\)", "E=mc² and x₁"},
        {"$x$$y$ $a--b''$", "xy a--b''"},
        {"a $ b", "a $ b"},
    };
    ALL(pairs);
}

static void markup(void)
{
    static const struct pair pairs[] = {
        {"A &amp; B &lt; C &gt; D", "A & B < C > D"},
        {"&#x3b1; &#945; &eacute; &ndash;&nbsp;x", "α α é – x"},
        {"soft&shy;ware &#146;s", "software ’s"},
        {"R\\&amp;D AT&T; &unknown; &#xD800; &;", "R&D AT&T; &unknown; \uFFFD &;"},
        {"twice &amp;lt; &amp;#945;", "twice < α"},
        {"<jats:p>One.</jats:p><jats:p>Two <i>in</i> <EM>out</EM></jats:p>", "One. Two in out"},
        {"p < 0.05, a<b and c>d, x<y>z, <60 years", "p < 0.05, a<b and c>d, x<y>z, <60 years"},
        {"R<sup>2</sup> CO<sub>2</sub> 1<sup>st</sup> 10<sup>\u22123</sup>", "R² CO₂ 1st 10⁻³"},
        {"<a href=\"x\">link</a> one<br/>two <a b>", "link one two <a b>"},
        {"m&lt;sup&gt;2&lt;/sup&gt; &lt;i&gt;x&lt;/i&gt;", "m² x"},
    };
    ALL(pairs);
}

static void white_space(void)
{
    struct arena a;
    arena_init(&a);
    is_str(text_plain(&a, STR("  a\r\n\t b {  } c \n")), STR("a b c"), "white space is collapsed");
    is_str(text_plain(&a, STR("{ } a \\quad ")), STR("a"), "and gone at the ends");
    is_str(text_plain(&a, STR("a\0b\x7F")), STR("a b"), "control characters are white space");
    is_str(text_plain(&a, STR("a\xFF{b}\xE4\xB8")), STR("a\uFFFDb\uFFFD\uFFFD"),
           "invalid bytes are replaced");
    is_str(text_plain(&a, STR(" {} ")), STR(""), "nothing is left");
    ok(text_plain(&a, STR_NULL).p == NULL, "absent stays absent");
    struct str same = STR(" Half-plain text, it's \"as is\" (50% 中文).\n");
    struct str got = text_plain(&a, same);
    ok(got.p == same.p + 1 && got.n == same.n - 2, "what needs no change is borrowed");
    arena_release(&a);
}

/* Recursion, growth and time are bounded for any input. */
static void floods(void)
{
    static const char *const pieces[] = {
        "{",  "\\\"{", "^{",     "$x",      "\\frac{",  "\\cite{", "<sup>", "&lt;i", "\\'",
        "^,", "\\[_",  "\\url{", "\\sqrt[", "&amp;amp", "$^{\\'",  "}",     "\xFF"};
    enum { BYTES = 1 << 20 };
    char *text = check_memory(malloc(BYTES));
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct arena a;
        arena_init(&a);
        size_t n = strlen(pieces[i]);
        for (size_t at = 0; at < BYTES; at++)
            text[at] = pieces[i][at % n];
        struct str got = text_plain(&a, str_from(text, BYTES));
        ok(got.n <= (size_t)BYTES * TEXT_GROWTH_MAX && str_utf8_valid(got), "1 MB of %s",
           i + 1 < sizeof(pieces) / sizeof(pieces[0]) ? pieces[i] : "invalid bytes");
        arena_release(&a);
    }
    free(text);
}

/* Runs of plain bytes are looked through many at a time. */
static void places(void)
{
    static const struct pair pairs[] = {
        {"{x}", "x"},      {"\\'e", "é"},    {"$x^2$", "x²"},          {"&amp;", "&"},
        {"<i>x</i>", "x"}, {"x~y", "x y"},   {"x^{2}", "x²"},          {"x_{2}", "x₂"},
        {"x  y", "x y"},   {"x--y", "x–y"},  {"``x''", "“x”"},         {"x\ty", "x y"},
        {"x\x7Fy", "x y"}, {"x \ny", "x y"}, {"'x-`y]%|", "'x-`y]%|"}, {"\xFF", "\uFFFD"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int wrong = 0;
        for (int before = 0; before < 40; before++)
            for (int after = 0; after < 40; after += 13) {
                struct arena a;
                arena_init(&a);
                struct str s =
                    str_printf(&a, "%0*d%s%0*d", before + 1, 1, pairs[i].latex, after + 1, 1);
                struct str wanted =
                    str_printf(&a, "%0*d%s%0*d", before + 1, 1, pairs[i].plain, after + 1, 1);
                wrong += !str_eq(text_plain(&a, s), wanted);
                arena_release(&a);
            }
        is_int(wrong, 0, "%s at all places of a text", pairs[i].latex);
    }
}

static void tables(void)
{
    /* bsearch finds every row only if the table is sorted and no name is repeated. */
    bool found = true;
    for (size_t i = 0; i < text_command_count; i++)
        found &= text_command_find(text_command_table[i].name) == &text_command_table[i];
    for (size_t i = 0; i < text_entity_count; i++)
        found &= text_entity_find(text_entity_table[i].name) == &text_entity_table[i];
    for (size_t i = 0; i < text_tag_count; i++)
        found &= text_tag_find(text_tag_table[i].name) == &text_tag_table[i];
    ok(found, "every row is found by its name");
    static const char *const names[] = {"AA", "Xi", "alpha", "leq", "omega", "zeta", "times", "ss"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok(text_command_find(str_of(names[i])), "command %s", names[i]);
    ok(text_entity_find(STR("Aacute")) && text_entity_find(STR("zeta")), "entities");
    ok(text_tag_find(STR("A")) && text_tag_find(STR("xref")), "tags");
    ok(!text_command_find(STR("alph")) && !text_tag_find(STR("greater")), "and no others");
    static const char marks[] = "`'^~\"=.uvHckrdbt>";
    for (const char *m = marks; *m; m++)
        ok(text_accent_find(*m) != NULL, "accent %c", *m);
}

int main(void)
{
    accents();
    commands();
    formulas();
    markup();
    white_space();
    floods();
    places();
    tables();
    return tap_done();
}
