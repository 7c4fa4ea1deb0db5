/* Any text may be given as the fields of a template: it is refused with a complaint, or what is
 * written of it is read as the same. */
#include "app/extract/fields/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct str written(struct arena *a, const struct extract_template *x)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_template_put(&w, x);
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct extract_template x, again;
    const char *complaint = NULL;
    arena_init(&a);
    int err = extract_template_parse(&a, str_from((const char *)data, n), &x, &complaint);
    check(err == 0 || err == ERR_INVALID);
    if (err) {
        check(complaint && *complaint && !strpbrk(complaint, "\r\n"));
    } else {
        struct str first = written(&a, &x);
        check(x.count >= 1 && x.count <= EXTRACT_FIELDS_MAX);
        check(extract_template_parse(&a, first, &again, &complaint) == 0);
        check(str_eq(written(&a, &again), first));
    }
    arena_release(&a);
    return 0;
}
