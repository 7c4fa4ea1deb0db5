/* Any document, and any field: the server takes the answer, with quotes that are in the document,
 * unless it has a fault. */
#include "tool/sim/sim_extract.h"

#include "app/extract/fields/reply.h"
#include "corpus/quote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int read_back(struct arena *a, const struct sim_extract *x, enum sim_extract_fault fault,
                     struct extract_values *v)
{
    struct extract_reading r = {&x->fields, quote_text_new(a, x->document), 0, false};
    struct buf out;
    const char *complaint;
    buf_init(&out);
    sim_extract_write(a, x, fault, &out);
    struct str answer = str_dup(a, buf_str(&out));
    buf_release(&out);
    return extract_reply_read(a, &r, answer, v, &complaint);
}

/* Of thoughts: in prose it hides what is before it, although a quote or a field's name has it. */
static bool has_tag(struct str text)
{
    return str_find(text, STR("</")) >= 0 || str_find(text, STR("◁/")) >= 0 ||
           str_find(text, STR("<|channel|>")) >= 0;
}

static void check_answers(struct arena *a, struct sim_extract *x, bool tagged)
{
    struct extract_values v;
    for (int typed = 0; typed < 2; typed++) {
        x->typed = typed;
        check(read_back(a, x, EXTRACT_RIGHT, &v) == 0);
        check(read_back(a, x, EXTRACT_QUOTES, &v) == 0);
        check(read_back(a, x, EXTRACT_PROSE, &v) == 0 || tagged);
        check(read_back(a, x, EXTRACT_TYPES, &v) == ERR_INVALID);
    }
}

/* The text up to the first NUL is the system message, the rest is the user's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct sim_extract x;
    struct str user = str_from((const char *)data, n), system = str_cut(&user, '\0');
    arena_init(&a);
    if (sim_extract_read(&a, system, user.p ? user : STR(""), &x))
        check_answers(&a, &x, has_tag(str_from((const char *)data, n)));
    arena_release(&a);
    return 0;
}
