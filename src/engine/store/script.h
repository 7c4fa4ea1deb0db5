/* script.h -- running a script of Redis with its keys and arguments by name.
 *
 * Each .lua file declares what it takes; scripts.h is generated from that (scripts.py). A key or
 * argument that is forgotten stops the process. Scripts that say so are idempotent: after
 * ERR_UNCERTAIN, when the reply was lost, they may be run again. */
#ifndef ENGINE_STORE_SCRIPT_H
#define ENGINE_STORE_SCRIPT_H

#include "wire/redis.h"

struct script {
    struct redis_script redis;
    size_t keys, args;               /* with names of their own */
    bool further_keys, further_args; /* any number of them, after these */
};

struct script_list {
    const struct str *p;
    size_t n;
};

/* SCRIPT(t, redis, lock_keep, &reply, .lock = key, .token = token, .ms = ms)
 * Errors as redis_argv. */
#define SCRIPT(t, r, name, out, ...)                                                               \
    script_run((t), (r), &script_##name, &(const struct script_##name##_call){__VA_ARGS__}, (out))

/* call: the generated struct of the script. */
MUST_CHECK int script_run(struct task *t, struct redis *r, const struct script *s, const void *call,
                          const struct redis_reply **out);

/* The same for scripts that return numbers: a list of count of them; one may be alone. ERR_PROTO:
 * it returned something else. */
#define SCRIPT_NUMBERS(t, r, name, count, out, ...)                                                \
    script_numbers((t), (r), &script_##name, &(const struct script_##name##_call){__VA_ARGS__},    \
                   (count), (out))
#define SCRIPT_NUMBER(t, r, name, out, ...) SCRIPT_NUMBERS(t, r, name, 1, out, __VA_ARGS__)

MUST_CHECK int script_numbers(struct task *t, struct redis *r, const struct script *s,
                              const void *call, size_t count, int64_t *out);
#endif
