/* Any text may come from an AI, and any document: a complaint in one line, or values that are
 * stored and read back as the same, with places inside the document. */
#include "app/extract/fields/reply.h"

#include "corpus/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char fields[] =
    "[{\"name\":\"t\",\"type\":\"text\"},{\"name\":\"n\",\"type\":\"number\",\"required\":true},"
    "{\"name\":\"i\",\"type\":\"integer\"},{\"name\":\"b\",\"type\":\"boolean\"},"
    "{\"name\":\"d\",\"type\":\"date\"},{\"name\":\"c\",\"type\":\"choice\",\"choices\":[\"A\","
    "\"B\"]},{\"name\":\"lt\",\"type\":\"list\",\"of\":\"text\"},{\"name\":\"ln\",\"type\":"
    "\"list\",\"of\":\"number\"},{\"name\":\"ld\",\"type\":\"list\",\"of\":\"date\"}]";

static struct str stored(struct arena *a, const struct extract_template *x,
                         const struct extract_values *v)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_values_put(&w, x, v);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static void check_values(struct arena *a, const struct extract_template *x,
                         const struct extract_values *v, size_t document_n)
{
    struct extract_values again;
    struct str text = stored(a, x, v);
    check(extract_values_read(a, x, text, &again) == 0);
    check(str_eq(stored(a, x, &again), text));
    for (size_t i = 0; i < x->count; i++) {
        const struct extract_found *f = &v->fields[i];
        check(f->count <= (x->fields[i].type == EXTRACT_LIST ? EXTRACT_ITEMS_MAX : 1));
        for (size_t k = 0; k < f->count; k++) {
            const struct extract_value *one = &f->items[k];
            check(one->begin <= one->end && one->end <= document_n);
            check(!one->verified || (one->found && one->quote.n && one->end > one->begin));
        }
    }
}

/* What a part says, once more and after another: nothing is lost. */
static void check_merge(struct arena *a, const struct extract_template *x,
                        const struct extract_values *v, size_t document_n)
{
    struct extract_values both;
    extract_values_init(a, x, &both);
    extract_values_merge(a, x, &both, v);
    struct str once = stored(a, x, &both);
    extract_values_merge(a, x, &both, v);
    check(str_eq(stored(a, x, &both), once));
    check_values(a, x, &both, document_n);
}

/* Also as what was stored: it is read, or it is not. */
static void read_stored(struct arena *a, const struct extract_template *x, struct str text)
{
    struct extract_values v, again;
    if (extract_values_read(a, x, text, &v))
        return;
    struct str first = stored(a, x, &v);
    check(extract_values_read(a, x, first, &again) == 0);
    check(str_eq(stored(a, x, &again), first));
}

/* The text up to the first NUL is the answer, the rest is the document. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct extract_template x;
    struct extract_values v;
    const char *complaint = NULL;
    struct str document = str_from((const char *)data, n), answer = str_cut(&document, '\0');
    if (!document.p)
        document = STR("The dose was 5.2 mg in May 2019.");
    arena_init(&a);
    check(extract_template_parse(&a, str_of(fields), &x, &complaint) == 0);
    struct extract_reading r = {&x, quote_text_new(&a, document), 3, n % 2 == 0};
    int err = extract_reply_read(&a, &r, answer, &v, &complaint);
    check(err == 0 || err == ERR_INVALID);
    if (err) {
        check(complaint && *complaint && !strpbrk(complaint, "\r\n"));
        check(strlen(complaint) <= EXTRACT_COMPLAINT_BYTES_MAX);
        check(str_utf8_valid(str_of(complaint)));
    } else {
        check_values(&a, &x, &v, document.n);
        check_merge(&a, &x, &v, document.n);
    }
    read_stored(&a, &x, answer);
    arena_release(&a);
    return 0;
}
