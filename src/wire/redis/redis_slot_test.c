/* Slots of keys, as a real server computes them. */
#include "wire/redis/redis_slot.h"

#include <stdio.h>

#include "loop/loop.h"
#include "tests/tap.h"
#include "wire/redis/redis_harness.h"

/* What CLUSTER KEYSLOT of Redis 7.0 says. */
static const struct {
    struct str key;
    unsigned slot;
} known[] = {
    {{"", 0}, 0},
    {{"123456789", 9}, 12739},
    {{"foo", 3}, 12182},
    {{"42", 2}, 8000},
    {{"user:{42}:balance", 17}, 8000},
    {{"sys", 3}, 15725},
    {{"{sys}:queue", 11}, 15725},
    {{"meta:Nature:2024", 16}, 5619},
    {{"sys:lock:{meta:Nature:2024}", 27}, 5619},
    {{"a{}b", 4}, 13694},
    {{"a{{b}c", 6}, 6215},
    {{"{{b", 3}, 12478},
    {{"a{b", 3}, 13340},
    {{"a}b{c}d", 7}, 7365},
    {{"foo{bar}{zap}", 13}, 5061},
    {{"\xff\0x", 3}, 12540},
};

static void hash_tags(void)
{
    is_str(redis_hash_tag(STR("user:{42}:x")), STR("42"), "what is in braces");
    is_str(redis_hash_tag(STR("a{}b{c}")), STR("a{}b{c}"), "nothing in the first braces");
    is_str(redis_hash_tag(STR("a{b")), STR("a{b"), "no brace at the end");
    is_str(redis_hash_tag(STR("b{")), STR("b{"), "nor anything behind it");
    is_str(redis_hash_tag(STR("a{{b}c")), STR("{b"), "the first brace counts");
}

static void as_the_server_says(struct task *t, void *arg)
{
    static const char letters[] = "abcxyz{}{}:{}0123456789";
    struct fixture *f = arg;
    struct loop *l = task_loop(t);
    int same = 0;
    for (int i = 0; i < 500; i++) {
        char key[16], line[64], answer[64], want[32];
        size_t n = 1 + loop_random(l) % (sizeof(key) - 1);
        for (size_t k = 0; k < n; k++)
            key[k] = letters[loop_random(l) % (sizeof(letters) - 1)];
        snprintf(line, sizeof(line), "CLUSTER KEYSLOT %.*s", (int)n, key);
        check(store_redis_say(&f->store, line, answer, sizeof(answer)));
        snprintf(want, sizeof(want), ":%u\r\n", redis_slot(str_from(key, n)));
        same += strcmp(answer, want) == 0;
    }
    is_int(same, 500, "keys are in the slots that a server says");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        is_int(redis_slot(known[i].key), known[i].slot, "the slot of \"%.*s\"",
               STR_ARG(known[i].key));
    hash_tags();
    char bus[12];
    snprintf(bus, sizeof(bus), "%d", store_free_port());
    with_server(as_the_server_says,
                (const char *const[]){"--cluster-enabled", "yes", "--cluster-port", bus, NULL});
    return tap_done();
}
