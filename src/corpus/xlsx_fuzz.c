/* Any bytes as the text of a cell and as the name of a sheet: what is written is XML that a program
 * can read. */
#include "base/buf.h"
#include "corpus/xlsx.h"
#include "corpus/xlsx_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_xml(struct str s)
{
    check(str_utf8_valid(s));
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        check(c >= ' ' || c == '\t' || c == '\n' || c == '\r');
        check(c != '<' && c != '>' && c != '"');
    }
    check(str_find(s, STR("\xef\xbf\xbe")) < 0 && str_find(s, STR("\xef\xbf\xbf")) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_from(size ? (const char *)data : "", size);
    struct arena a;
    struct buf b;
    arena_init(&a);
    buf_init(&b);
    xlsx_put_cell_text(&b, text);
    check_xml(buf_str(&b));
    struct str name = xlsx_sheet_name(&a, text), other = xlsx_numbered_name(&a, name, 12);
    check(name.n > 0 && xlsx_units(name) <= 31 && xlsx_units(other) <= 31);
    check(xlsx_same_name(name, name));
    check(!xlsx_same_name(other, xlsx_numbered_name(&a, name, 13)));
    for (size_t i = 0; i < name.n; i++)
        check(!memchr("[]:*?/\\", name.p[i], 7) && (unsigned char)name.p[i] >= ' ');
    buf_clear(&b);
    xlsx_put_attribute(&b, name);
    check_xml(buf_str(&b));
    buf_release(&b);
    arena_release(&a);
    return 0;
}
