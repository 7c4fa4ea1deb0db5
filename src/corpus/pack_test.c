#include "corpus/pack.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "tests/tap.h"

#define SAMPLES 2000

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* An entry that looks like the others, but is not the same. */
static void add_entry(struct buf *b, const char *kind)
{
    static const char *const words[] = {"stability", "cells",  "under",    "humid",  "measured",
                                        "over",      "hours",  "additive", "halves", "loss",
                                        "mechanism", "limits", "method",   "found",  "samples"};
    buf_printf(b, "@%s{key%u,\n  title = {A study of %s %u},\n  journal = {Journal of %s},\n", kind,
               draw(100000), words[draw(15)], draw(1000), kind);
    buf_printf(b, "  year = {20%02u},\n  doi = {10.5555/%u.%u},\n  abstract = {", draw(25),
               draw(9999), draw(999999));
    for (int i = 0; i < 120; i++)
        buf_printf(b, "%s ", words[draw(15)]);
    buf_add_lit(b, "}\n}\n");
}

static struct str train(struct arena *a, const char *kind)
{
    struct buf b;
    buf_init(&b);
    size_t *sizes = ARENA_ARRAY(a, size_t, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        size_t before = b.len;
        add_entry(&b, kind);
        sizes[i] = b.len - before;
    }
    struct str dictionary = STR_NULL;
    is_int(pack_train(a, buf_str(&b), sizes, SAMPLES, &dictionary), 0, "trained on %s", kind);
    buf_release(&b);
    return dictionary;
}

static void round_trips(struct pack *p, struct arena *a)
{
    const struct str entries[] = {STR(""), STR("x"), STR("@article{a, title = {中文 \0 NUL}}")};
    bool same = true;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct str packed, back;
        same = same && pack_put(p, a, entries[i], &packed) == 0 &&
               pack_get(p, a, packed, &back, NULL) == 0 && str_eq(back, entries[i]);
    }
    ok(same, "odd entries come back as they were");
}

static void damage(struct pack *p, struct arena *a, struct str packed)
{
    bool fine = true;
    for (size_t cut = 0; cut < packed.n; cut++) {
        struct str back;
        fine = fine && pack_get(p, a, str_from(packed.p, cut), &back, NULL) != 0;
    }
    ok(fine, "a value that was cut short is an error");
    int errors = 0;
    for (size_t i = 0; i < packed.n; i++) {
        struct arena_mark m = arena_mark(a);
        char *bad = str_z(a, packed);
        bad[i] = (char)(bad[i] ^ 0x10);
        struct str back;
        errors += pack_get(p, a, str_from(bad, packed.n), &back, NULL) != 0;
        arena_reset(a, m);
    }
    ok(errors > 0, "flipped bits do no harm (%d of %zu are noticed)", errors, packed.n);
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    struct pack *p = pack_new();
    struct str first = train(&a, "article"), second = train(&a, "inproceedings");
    ok(pack_number(first) && pack_number(first) != pack_number(second), "they have numbers");
    is_int(pack_choose(p, pack_number(first), 3), ERR_NOT_FOUND,
           "a dictionary must be learnt first");
    is_int(pack_learn(p, STR("no dictionary at all")), ERR_INVALID, "what is none is refused");
    is_int(pack_learn(p, first), 0, "learn the first");
    is_int(pack_learn(p, first), 0, "twice does no harm");

    struct buf b;
    buf_init(&b);
    add_entry(&b, "article");
    struct str entry = buf_str(&b), plain, small, back;
    is_int(pack_put(p, &a, entry, &plain), 0, "without a dictionary");
    is_int(pack_choose(p, pack_number(first), 3), 0, "choose the first");
    is_int(pack_put(p, &a, entry, &small), 0, "with it");
    ok(small.n * 10 < plain.n * 9, "it is smaller: %zu, %zu, %zu bytes", entry.n, plain.n, small.n);
    is_int(pack_learn(p, second), 0, "learn another");
    is_int(pack_choose(p, pack_number(second), 9), 0, "and choose it");
    uint32_t number = 0;
    ok(pack_get(p, &a, small, &back, &number) == 0 && str_eq(back, entry),
       "old values stay readable");
    ok(number == pack_number(first), "and name their dictionary");
    ok(pack_get(p, &a, plain, &back, &number) == 0 && str_eq(back, entry) && number == 0,
       "so do those without one");
    round_trips(p, &a);
    damage(p, &a, small);

    struct pack *stranger = pack_new();
    is_int(pack_get(stranger, &a, small, &back, &number), ERR_NOT_FOUND, "an unknown dictionary");
    ok(number == pack_number(first), "is named");
    is_int(pack_get(stranger, &a, STR("garbage"), &back, NULL), ERR_PROTO, "garbage");
    pack_free(stranger);
    pack_free(p);
    buf_release(&b);
    arena_release(&a);
    return tap_done();
}
