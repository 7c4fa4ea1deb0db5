#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/tap.h"

static void hash(void)
{
    /* The vectors of the SipHash paper: key 00 01 …, message 00 01 …, by length. */
    static const struct {
        size_t n;
        uint64_t want;
    } cases[] = {
        {0, 0x726fdb47dd0e0e31u},
        {1, 0x74f839c593dc67fdu},
        {8, 0x93f5f5799a932462u},
        {15, 0xa129ca6149be45e5u},
    };
    uint8_t key[16];
    char message[16];
    for (int i = 0; i < 16; i++) {
        key[i] = (uint8_t)i;
        message[i] = (char)i;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok(siphash(key, str_from(message, cases[i].n)) == cases[i].want, "siphash of %zu bytes",
           cases[i].n);
}

static void pairs(void)
{
    int one = 1, two = 2;
    struct map *m = map_new();
    ok(!map_get(m, STR("a")) && !map_del(m, STR("a")), "an empty map has nothing");
    char key[] = "a";
    ok(!map_set(m, str_of(key), &one), "setting a new key gives NULL");
    key[0] = 'x';
    ok(map_get(m, STR("a")) == &one && !map_get(m, STR("x")), "keys are copied");
    ok(map_set(m, STR("a"), &two) == &one, "setting again gives the former value");
    ok(map_get(m, STR("a")) == &two && map_count(m) == 1, "and replaces it");
    map_set(m, STR(""), &one);
    map_set(m, STR("a\0b"), &one);
    ok(map_get(m, STR("")) == &one && map_get(m, STR("a\0b")) == &one &&
           map_get(m, STR("a")) == &two,
       "keys may be empty and hold NUL");
    ok(map_del(m, STR("a")) == &two && !map_get(m, STR("a")), "deleting gives the value");
    is_int((int64_t)map_count(m), 2, "count");
    map_free(m);
    map_free(NULL);
}

static void numbers(void)
{
    int64_t v = 7;
    struct map *m = map_new();
    ok(!map_get_int(m, STR("a"), &v) && v == 7, "an absent number leaves the old one");
    map_set_int(m, STR("a"), 0);
    ok(map_get_int(m, STR("a"), &v) && v == 0, "zero is a number like others");
    map_set_int(m, STR("a"), INT64_MIN);
    map_set_int(m, STR("b"), -1);
    ok(map_get_int(m, STR("a"), &v) && v == INT64_MIN, "setting again replaces it");
    ok(map_get_int(m, STR("b"), &v) && v == -1 && map_count(m) == 2, "each key has its own");
    map_del(m, STR("a"));
    ok(!map_get_int(m, STR("a"), &v) && map_get_int(m, STR("b"), &v), "numbers are deleted");
    map_free(m);
}

static void sets(void)
{
    struct map *m = map_new();
    ok(map_add(m, STR("a")) && map_add(m, STR("b")), "new members");
    ok(!map_add(m, STR("a")) && map_count(m) == 2, "a member is added once");
    ok(map_get(m, STR("b")) && !map_get(m, STR("c")), "map_get tells members from others");
    map_free(m);
}

static struct str name_of(char text[16], int i)
{
    snprintf(text, 16, "key-%d", i);
    return str_of(text);
}

/* Random sets and deletes, compared with a plain array. */
static void many(void)
{
    enum { KEYS = 3000 };
    static int values[KEYS];
    bool present[KEYS] = {0};
    char text[16];
    size_t count = 0;
    bool agrees = true;
    unsigned seed = 1;
    struct map *m = map_new();
    for (int step = 0; step < 60000; step++) {
        int i = rand_r(&seed) % KEYS;
        bool set = rand_r(&seed) % 2;
        void *former =
            set ? map_set(m, name_of(text, i), &values[i]) : map_del(m, name_of(text, i));
        agrees &= former == (present[i] ? &values[i] : NULL);
        count += (size_t)set - (size_t)present[i];
        present[i] = set;
        agrees &= map_count(m) == count;
    }
    for (int i = 0; i < KEYS; i++)
        agrees &= map_get(m, name_of(text, i)) == (present[i] ? &values[i] : NULL);
    ok(agrees, "60000 random steps agree with an array");

    size_t at = 0, seen = 0;
    struct str key;
    void *value;
    while (map_next(m, &at, &key, &value)) {
        int i = (int)((int *)value - values);
        agrees &= present[i] && str_eq(key, name_of(text, i));
        present[i] = false; /* so that a second visit is noticed */
        seen++;
    }
    ok(agrees && seen == count, "map_next visits every pair once");
    map_free(m);
}

static void order(void)
{
    char text[16];
    int value;
    bool same = true;
    struct map *m = map_new();
    for (int i = 0; i < 100; i++)
        map_set(m, name_of(text, i), &value);
    size_t at = 0;
    struct str key;
    void *v;
    for (int i = 0; map_next(m, &at, &key, &v); i++)
        same &= str_eq(key, name_of(text, i));
    ok(same, "pairs are visited as they came");
    map_free(m);
}

int main(void)
{
    hash();
    pairs();
    numbers();
    sets();
    many();
    order();
    return tap_done();
}
