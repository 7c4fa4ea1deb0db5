/* A DOI that is found keeps its promises; a made-up key always has its form. */
#include "corpus/doi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_doi(struct str doi)
{
    check(doi.n <= DOI_BYTES_MAX && str_utf8_valid(doi) && str_starts(doi, STR("10.")));
    for (size_t i = 0; i < doi.n; i++) {
        unsigned char c = (unsigned char)doi.p[i];
        check(c > ' ' && c != 127 && !(c >= 'A' && c <= 'Z'));
    }
    check(!doi_is_made_up(doi));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str raw = str_from(size ? (const char *)data : "", size), doi;
    if (doi_normal(&a, raw, &doi))
        check_doi(doi);
    struct str rest = raw;
    struct doi_source source = {.journal = str_cut(&rest, '|'), .year = STR("2020"), .entry = raw};
    source.pages = str_cut(&rest, '|');
    source.title = rest;
    struct str key = doi_made_up(&a, &source);
    check(doi_is_made_up(key) && key.n == strlen(DOI_MADE_UP_MARK) + 32);
    arena_release(&a);
    return 0;
}
