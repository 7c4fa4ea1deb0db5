/* The record of any entry is lines "XX  - value", begins with TY, and ends with ER once. */
#include "corpus/ris.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(struct str text)
{
    check(str_utf8_valid(text) && str_starts(text, STR("TY  - ")));
    check(str_ends(text, STR("\r\nER  - \r\n\r\n")));
    struct str rest = str_from(text.p, text.n - 4);
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        check(line.n >= 6 && memcmp(line.p + 2, "  - ", 4) == 0);
        check(!rest.p == str_eq(line, STR("ER  - ")));
        check(!rest.p || memchr(line.p, '\r', line.n) == line.p + line.n - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct buf out;
    arena_init(&a);
    buf_init(&out);
    struct bibtex *b = bibtex_new(NULL, NULL);
    struct str raw = str_from(size ? (const char *)data : "", size);
    struct ris_paper p = {.doi = STR("10.1000/x"), .year = 2024, .journal = STR("J")};
    int err = ris_write(&a, b, raw, &p, &out);
    check(err == ERR_PROTO ? out.len == 0 : err == 0);
    if (!err)
        check_record(buf_str(&out));
    bibtex_free(b);
    buf_release(&out);
    arena_release(&a);
    return 0;
}
