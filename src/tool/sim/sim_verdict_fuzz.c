/* Any message may be judged: the verdict is JSON, and sharing a word is mutual. */
#include "base/json.h"
#include "tool/sim/sim_labels.h"
#include "tool/sim/sim_verdict.h"
#include "tool/sim/sim_words.h"

static bool share(struct arena *a, struct str one, struct str two)
{
    struct sim_word_set set;
    struct str word = STR_NULL;
    sim_word_set_init(a, &set, one);
    bool found = sim_word_set_match(&set, two, &word);
    check(!found || (word.p >= two.p && word.p + word.n <= two.p + two.n && word.n >= 4));
    return found;
}

static void judge(struct arena *a, struct str message, const struct map *labels)
{
    struct sim_prompt p;
    struct sim_verdict v;
    sim_prompt_read(&p, message);
    if (!sim_verdict(a, &p, labels, &v))
        return;
    struct buf out;
    buf_init(&out);
    sim_verdict_write(&v, &out);
    const struct json *j;
    bool relevant;
    check(json_parse(a, buf_str(&out), &j, NULL) == 0);
    check(json_bool(json_get(j, "relevant"), &relevant) && relevant == v.relevant);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str text = str_from((const char *)data, size), rest = text;
    struct str half = str_cut(&rest, '|');
    if (rest.p && size < SIM_QUESTION_BYTES_MAX)
        check(share(&a, half, rest) == share(&a, rest, half));
    check(sim_tokens(text) <= (int64_t)size);

    const char *why;
    struct map *labels = sim_labels_read(&a, half, &why);
    judge(&a, text, labels);
    map_free(labels);
    arena_release(&a);
    return 0;
}
