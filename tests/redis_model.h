/* redis_model.h -- the part of Redis that dispatcher, crew and their scripts use, in memory.
 *
 * For tests on virtual time: a command is executed at once, on the clock that the test sets, and
 * scripts are run by Lua 5.1, which is what Redis embeds. Numbers, booleans and tables change
 * between Lua and Redis as they do in Redis. A command that the model does not know, or options of
 * one that it does not know, stop the process: nothing is silently left out.
 *
 * Collections are arrays that are searched from the front: right for hundreds of items. */
#ifndef TESTS_REDIS_MODEL_H
#define TESTS_REDIS_MODEL_H

#include "wire/redis.h"

#define REDIS_MODEL_RUN_ID_CHARS 40

struct redis_model;

struct redis_model *redis_model_new(void);
void redis_model_free(struct redis_model *m);

/* All keys go, and the run id is made from the number. */
void redis_model_clear(struct redis_model *m, uint64_t run);
/* The same keys, another run id: the server was restarted and has lost nothing. */
void redis_model_restart(struct redis_model *m, uint64_t run);
/* Notes all keys as they are now. After redis_model_restore they are so again, under another run
 * id: the server was restarted and has lost what came since. False: nothing was saved. */
void redis_model_save(struct redis_model *m);
bool redis_model_restore(struct redis_model *m, uint64_t run);
void redis_model_clock(struct redis_model *m, int64_t wall_ms);
struct str redis_model_run_id(const struct redis_model *m);

/* argv[0] is the name of the command. The reply is in a. */
const struct redis_reply *redis_model_argv(struct redis_model *m, struct arena *a, size_t argc,
                                           const struct str *argv);
#define redis_model_call(m, a, ...)                                                                \
    redis_model_argv((m), (a), sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str),           \
                     (const struct str[]){__VA_ARGS__})

/* argv: the keys, then the arguments. */
const struct redis_reply *redis_model_script(struct redis_model *m, struct arena *a,
                                             const struct redis_script *s, size_t key_count,
                                             size_t argc, const struct str *argv);

/* Mutation: from now on the script of that name is another one, with one text in place of another
 * that it must contain once. Both NULL: it is itself again. One script at a time. */
void redis_model_mutate(struct redis_model *m, const char *script, const char *from,
                        const char *to);
#endif
