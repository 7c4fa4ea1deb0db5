#include "corpus/charset.h"

#include <iconv.h>
#include <stdlib.h>

#include "tests/tap.h"

/* What the bytes are taken for and what becomes of them. */
static void is_text(struct str bytes, enum charset want, const char *utf8, size_t repaired,
                    const char *what)
{
    struct arena a;
    arena_init(&a);
    struct charset_text got;
    is_int(charset_to_utf8(&a, bytes, &got), 0, "%s: converts", what);
    is_str(str_of(charset_name(got.charset)), str_of(charset_name(want)), "%s: encoding", what);
    is_str(got.utf8, str_of(utf8), "%s: text", what);
    is_int((int64_t)got.repaired, (int64_t)repaired, "%s: repairs", what);
    arena_release(&a);
}

static void utf8(void)
{
    is_text(STR(""), CHARSET_UTF8, "", 0, "nothing");
    is_text(STR_NULL, CHARSET_UTF8, "", 0, "absent");
    is_text(STR("plain"), CHARSET_UTF8, "plain", 0, "ASCII");
    is_text(STR("Gödel 中文 😀"), CHARSET_UTF8, "Gödel 中文 😀", 0, "UTF-8");
    is_text(STR("\xEF\xBB\xBFGödel"), CHARSET_UTF8, "Gödel", 0, "UTF-8 with a mark");
    is_text(STR("\xEF\xBB\xBFG\xF6 del"), CHARSET_UTF8, "Gö del", 1, "a mark outweighs the bytes");
    is_text(STR("é it\x92s ö"), CHARSET_UTF8, "é it’s ö", 1, "a byte of Windows in UTF-8");
    is_text(STR("éö \xE4\xB8 x"), CHARSET_UTF8, "éö \uFFFD x", 1, "half a character");
    is_text(STR("éö\xE4\xB8"), CHARSET_UTF8, "éö\uFFFD", 1, "half a character at the end");
    is_text(STR("éö \x81 x"), CHARSET_UTF8, "éö \uFFFD x", 1, "a byte without meaning");

    struct arena a;
    arena_init(&a);
    struct str bytes = STR("\xEF\xBB\xBFGödel");
    struct charset_text got;
    ok(charset_to_utf8(&a, bytes, &got) == 0 && got.bom, "the mark is reported");
    ok(got.utf8.p == bytes.p + 3, "what needs no change is borrowed");
    ok(charset_to_utf8(&a,
                       STR("\xEF\xBB\xBF"
                           "é \xE9 ö \xE9"),
                       &got) == 0,
       "two strays");
    is_int((int64_t)got.repaired, 2, "both are counted");
    is_int((int64_t)got.first_repaired, 6, "the first one's place counts from the file's start");
    arena_release(&a);
}

static void latin1(void)
{
    is_text(STR("G\xF6"
                "del"),
            CHARSET_1252, "Gödel", 0, "Latin-1");
    is_text(STR("it\x92s \x93quoted\x94 \x96 \x80 5"), CHARSET_1252, "it’s “quoted” – € 5", 0,
            "Windows-1252");
    is_text(STR("A informa\xE7\xE3o e a educa\xE7\xE3o s\xE3o not\xE1veis"), CHARSET_1252,
            "A informação e a educação são notáveis", 0, "Portuguese");
    is_text(STR("INFORMA\xC7\xC3O E EDUCA\xC7\xC3O"), CHARSET_1252, "INFORMAÇÃO E EDUCAÇÃO", 0,
            "Portuguese in capitals");
    is_text(STR("\xC1\xD6 \xFE\xFD \xFE\xF3"), CHARSET_1252, "ÁÖ þý þó", 0,
            "pairs that would be rare characters");
    is_text(STR("M\xFCller, \xC5s, na\xEFve, caf\xE9 \xA9 Jos\xE9"), CHARSET_1252,
            "Müller, Ås, naïve, café © José", 0, "several languages");
    is_text(STR("G\xF6"
                "del, Sch\xF6n, h\xE4, Gödel"),
            CHARSET_1252, "Gödel, Schön, hä, Gödel", 0, "UTF-8 glued to it is read as such");
}

static struct str in_charset(struct arena *a, const char *name, const char *utf8_text)
{
    iconv_t cd = iconv_open(name, "UTF-8");
    check(cd != (iconv_t)-1);
    size_t left = strlen(utf8_text), cap = 4 * left + 4, room = cap;
    char *in = arena_strdup(a, utf8_text), *out = arena_alloc(a, cap), *to = out;
    check(iconv(cd, &in, &left, &to, &room) != (size_t)-1);
    iconv_close(cd);
    return str_from(out, cap - room);
}

static void chinese(void)
{
    static const char *const texts[] = {
        "中文",
        "title = {基于规则的双重否定识别——以“不得不”为例}, author = {Wang, Yu}",
        "@article{x, author = {王小明 and Smith, J.}, title = {A Study in English}}",
        "汉语学习者文本纠错（CCL2023），正确率为97.87％。",
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        is_text(in_charset(&a, "GBK", texts[i]), CHARSET_GB18030, texts[i], 0, "GBK");
    const char *text = "本文研究了语言模型的应用和评价方法㐀";
    static const char tags[] = "Name,Tag\nA,医学\nA,儿科学\nB,医学\nB,法学\nZ,医学\n";
    is_text(in_charset(&a, "GBK", tags), CHARSET_GB18030, tags, 0, "GBK that is mostly UTF-8, too");
    is_text(in_charset(&a, "GB18030", text), CHARSET_GB18030, text, 0, "four bytes of GB18030");
    is_text(STR("\xD6\xD0\xCE\xC4\xD6\xD0\xFF\xCE\xC4"), CHARSET_GB18030, "中文中\uFFFD文", 1,
            "a byte that GB18030 has not");
    is_text(STR("\xD6\xD0\xCE\xC4\xD6\xD0\xCE"), CHARSET_GB18030, "中文中\uFFFD", 1,
            "half a character at the end");
    arena_release(&a);
}

static void utf16(void)
{
    is_text(STR("\xFF\xFE\x2D\x4E\x61\x00\x3D\xD8\x00\xDE"), CHARSET_UTF16LE, "中a😀", 0, "UTF-16");
    is_text(STR("\xFE\xFF\x4E\x2D\x00\x61"), CHARSET_UTF16BE, "中a", 0, "UTF-16, the other way");
    is_text(STR("\xFF\xFE\x3D\xD8\x61\x00\x62"), CHARSET_UTF16LE, "\uFFFDa\uFFFD", 2,
            "half a pair and half a unit");
}

/* A stray byte in a large file costs that byte only. */
static void large_file(void)
{
    enum { BYTES = 8 << 20, STRAY = 5 << 20 };
    char *text = check_memory(malloc(BYTES));
    memset(text, 'x', BYTES);
    memcpy(text + 1000, "中文", 6);
    text[STRAY] = '\xE9';
    struct arena a;
    arena_init(&a);
    struct charset_text got;
    ok(charset_to_utf8(&a, str_from(text, BYTES), &got) == 0, "converts");
    ok(got.charset == CHARSET_UTF8 && got.repaired == 1, "stays UTF-8, with one repair");
    is_int((int64_t)got.first_repaired, STRAY, "at its place");
    is_str(str_from(got.utf8.p + 1000, 6), STR("中文"), "the rest is as it was");
    is_str(str_from(got.utf8.p + STRAY - 1, 4), STR("xéx"), "and the byte is what it meant");
    is_int((int64_t)got.utf8.n, BYTES + 1, "nothing is lost");
    arena_release(&a);
    free(text);
}

static void code_points(void)
{
    is_int(charset_1252('a'), 'a', "ASCII means itself");
    is_int(charset_1252(0x80), 0x20AC, "the euro sign");
    is_int(charset_1252(0x9F), 0x178, "the last of the odd ones");
    is_int(charset_1252(0xFF), 0xFF, "Latin-1 means itself");
}

int main(void)
{
    utf8();
    latin1();
    chinese();
    utf16();
    large_file();
    code_points();
    return tap_done();
}
