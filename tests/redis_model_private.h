/* redis_model_private.h -- what the files of the model share: commands, replies, Lua. */
#ifndef TESTS_REDIS_MODEL_PRIVATE_H
#define TESTS_REDIS_MODEL_PRIVATE_H

#include "base/map.h"
#include "tests/redis_model.h"

struct lua_State;

struct redis_model {
    struct map *keys;  /* name -> struct value, owned */
    struct map *saved; /* likewise; NULL: nothing was saved */
    char run_id[REDIS_MODEL_RUN_ID_CHARS + 1];
    int64_t wall_ms, stream_ms, stream_seq;
    struct lua_State *lua;
    struct map *scripts;            /* name -> reference of the compiled chunk in Lua, plus one */
    const char *mutant, *from, *to; /* NULL: none */
    struct arena scratch;           /* replies on their way into Lua */
};

/* redis_model_lua.c */
void redis_model_lua_open(struct redis_model *m);
void redis_model_lua_close(struct redis_model *m);

/* redis_model_reply.c: in a. */
const struct redis_reply *reply_str(struct arena *a, struct str s);
const struct redis_reply *reply_int(struct arena *a, int64_t v);
const struct redis_reply *reply_nil(void);
const struct redis_reply *reply_status(struct arena *a, const char *text);
const struct redis_reply *reply_error(struct arena *a, const char *text);
const struct redis_reply *reply_array(struct arena *a, size_t count,
                                      const struct redis_reply *const *items);
#endif
