#include "engine/api/file_name.h"

#include "tests/tap.h"

int main(void)
{
    static const struct {
        const char *about, *name, *disposition;
    } cases[] = {
        {"Is it wet?", "millrace-Is-it-wet-2026-01-31-relevant.csv",
         "attachment; filename=\"millrace-Is-it-wet-2026-01-31-relevant.csv\""},
        {"", "millrace-2026-01-31-relevant.csv",
         "attachment; filename=\"millrace-2026-01-31-relevant.csv\""},
        {"../../etc/passwd\r\nX: \"y\"", "millrace-etc-passwd-X-y-2026-01-31-relevant.csv",
         "attachment; filename=\"millrace-etc-passwd-X-y-2026-01-31-relevant.csv\""},
        {"二氧化碳，吗？", "millrace-二氧化碳-吗-2026-01-31-relevant.csv",
         "attachment; filename=\"millrace-2026-01-31-relevant.csv\"; filename*=UTF-8''"
         "millrace-%E4%BA%8C%E6%B0%A7%E5%8C%96%E7%A2%B3-%E5%90%97-2026-01-31-relevant.csv"},
        {"a\xe2\x80\xae"
         "b \xff c",
         "millrace-a-b-c-2026-01-31-relevant.csv",
         "attachment; filename=\"millrace-a-b-c-2026-01-31-relevant.csv\""},
        {"Does this paper report on the effect of temperature on enzymes?",
         "millrace-Does-this-paper-report-on-the-effect-of-2026-01-31-relevant.csv", NULL},
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str name =
            file_name(&a, str_of(cases[i].about), 1769860000000, STR("-relevant.csv"));
        is_str(name, str_of(cases[i].name), "the name of a file");
        if (cases[i].disposition)
            is_str(file_disposition(&a, name), str_of(cases[i].disposition), "as a header");
    }
    arena_release(&a);
    return tap_done();
}
