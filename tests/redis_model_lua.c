/* Scripts of the model: Lua 5.1, as Redis embeds it, and what goes in and comes out. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis_model_private.h"

#define ARGS_MAX 4096 /* of one redis.call */

/* --- from Redis to Lua --- */

static void push_reply(lua_State *lua, const struct redis_reply *r)
{
    luaL_checkstack(lua, 4, "replies within replies");
    switch (r->type) {
    case REDIS_NIL:
        lua_pushboolean(lua, 0);
        break;
    case REDIS_INT:
        lua_pushnumber(lua, (lua_Number)r->integer);
        break;
    case REDIS_STRING:
        lua_pushlstring(lua, r->str.p, r->str.n);
        break;
    case REDIS_STATUS:
    case REDIS_ERROR:
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, r->str.p, r->str.n);
        lua_setfield(lua, -2, r->type == REDIS_STATUS ? "ok" : "err");
        break;
    case REDIS_ARRAY:
        lua_createtable(lua, (int)r->count, 0);
        for (size_t i = 0; i < r->count; i++) {
            push_reply(lua, r->items[i]);
            lua_rawseti(lua, -2, (int)i + 1);
        }
        break;
    }
}

#define WHOLE_MAX 9007199254740992.0 /* up to here a number of Lua holds every integer */

/* As Redis writes it, "%.17g"; that of an integer is made without printf. */
static struct str number_text(struct arena *a, lua_Number n)
{
    if (n >= -WHOLE_MAX && n <= WHOLE_MAX && n == (lua_Number)(int64_t)n)
        return str_int(a, (int64_t)n);
    return str_printf(a, "%.17g", n);
}

/* redis.call(...) */
static int redis_call_lua(lua_State *lua)
{
    struct redis_model *m = lua_touserdata(lua, lua_upvalueindex(1));
    struct arena_mark mark = arena_mark(&m->scratch);
    size_t argc = (size_t)lua_gettop(lua);
    check(argc >= 1 && argc <= ARGS_MAX);
    struct str *argv = arena_alloc(&m->scratch, argc * sizeof *argv);
    for (size_t i = 0; i < argc; i++) {
        int at = (int)i + 1;
        if (lua_type(lua, at) == LUA_TNUMBER)
            argv[i] = number_text(&m->scratch, lua_tonumber(lua, at));
        else if (lua_type(lua, at) == LUA_TSTRING)
            argv[i].p = lua_tolstring(lua, at, &argv[i].n);
        else
            return luaL_error(lua, "arguments of redis.call must be strings or numbers");
    }
    const struct redis_reply *r = redis_model_argv(m, &m->scratch, argc, argv);
    push_reply(lua, r);
    arena_reset(&m->scratch, mark);
    return 1;
}

/* --- from Lua to Redis --- */

static const struct redis_reply *take_reply(struct arena *a, lua_State *lua, int at);

static const struct redis_reply *take_table(struct arena *a, lua_State *lua, int at)
{
    size_t count = 0, most = lua_objlen(lua, at);
    const struct redis_reply **items = ARENA_ARRAY(a, const struct redis_reply *, most + 1);
    for (; count < most; count++) { /* up to the first nil */
        lua_rawgeti(lua, at, (int)count + 1);
        if (lua_isnil(lua, -1)) {
            lua_pop(lua, 1);
            break;
        }
        items[count] = take_reply(a, lua, lua_gettop(lua));
        lua_pop(lua, 1);
    }
    return reply_array(a, count, items);
}

static const struct redis_reply *take_reply(struct arena *a, lua_State *lua, int at)
{
    struct str s;
    switch (lua_type(lua, at)) {
    case LUA_TNUMBER:
        return reply_int(a, (int64_t)lua_tonumber(lua, at));
    case LUA_TSTRING:
        s.p = lua_tolstring(lua, at, &s.n);
        return reply_str(a, s);
    case LUA_TBOOLEAN:
        return lua_toboolean(lua, at) ? reply_int(a, 1) : reply_nil();
    case LUA_TTABLE:
        return take_table(a, lua, at);
    default:
        return reply_nil();
    }
}

/* --- scripts --- */

/* The text as it shall be: of the mutant, another one. */
static struct str text_of(struct redis_model *m, const struct redis_script *s)
{
    if (!m->mutant || strcmp(m->mutant, s->name))
        return s->text;
    struct str from = str_of(m->from);
    ptrdiff_t at = str_find(s->text, from);
    check(at >= 0); /* else the mutation must be written anew for the script as it is now */
    struct str head = str_from(s->text.p, (size_t)at);
    struct str tail = str_from(s->text.p + at + from.n, s->text.n - head.n - from.n);
    check(str_find(tail, from) < 0);
    return STR_JOIN(&m->scratch, head, str_of(m->to), tail);
}

/* Once; its place among Lua's references. */
static int compiled(struct redis_model *m, const struct redis_script *s)
{
    intptr_t known = (intptr_t)map_get(m->scripts, str_of(s->name));
    if (known)
        return (int)(known - 1);
    struct arena_mark mark = arena_mark(&m->scratch);
    struct str text = text_of(m, s);
    int err = luaL_loadbuffer(m->lua, text.p, text.n, s->name);
    if (err)
        fprintf(stderr, "script %s: %s\n", s->name, lua_tostring(m->lua, -1));
    check(err == 0);
    arena_reset(&m->scratch, mark);
    int ref = luaL_ref(m->lua, LUA_REGISTRYINDEX);
    map_set(m->scripts, str_of(s->name), (void *)(intptr_t)(ref + 1));
    return ref;
}

static void forget(struct redis_model *m, const char *script)
{
    void *known = script ? map_del(m->scripts, str_of(script)) : NULL;
    if (known)
        luaL_unref(m->lua, LUA_REGISTRYINDEX, (int)((intptr_t)known - 1));
}

void redis_model_mutate(struct redis_model *m, const char *script, const char *from, const char *to)
{
    forget(m, m->mutant);
    forget(m, script);
    m->mutant = from ? script : NULL;
    m->from = from;
    m->to = to;
}

static void set_words(lua_State *lua, const char *name, size_t count, const struct str *words)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].p, words[i].n);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

/* As the client does, behind the others. */
static void add_run_id(struct redis_model *m, size_t arg_count)
{
    lua_getglobal(m->lua, "ARGV");
    lua_pushstring(m->lua, m->run_id);
    lua_rawseti(m->lua, -2, (int)arg_count + 1);
    lua_pop(m->lua, 1);
}

const struct redis_reply *redis_model_script(struct redis_model *m, struct arena *a,
                                             const struct redis_script *s, size_t key_count,
                                             size_t argc, const struct str *argv)
{
    lua_State *lua = m->lua;
    int ref = compiled(m, s);
    set_words(lua, "KEYS", key_count, argv);
    set_words(lua, "ARGV", argc - key_count, argv + key_count);
    if (s->run_id)
        add_run_id(m, argc - key_count);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, ref);
    int err = lua_pcall(lua, 0, 1, 0);
    const struct redis_reply *r =
        err ? reply_error(a, lua_tostring(lua, -1)) : take_reply(a, lua, lua_gettop(lua));
    if (err)
        fprintf(stderr, "script %s: %.*s\n", s->name, STR_ARG(r->str));
    lua_settop(lua, 0);
    return r;
}

/* --- the libraries of Redis, as far as scripts use them --- */

static int bit_bxor(lua_State *lua)
{
    uint32_t x = (uint32_t)(int64_t)luaL_checknumber(lua, 1);
    lua_pushnumber(lua, (int32_t)(x ^ (uint32_t)(int64_t)luaL_checknumber(lua, 2)));
    return 1;
}

static int bit_tohex(lua_State *lua)
{
    char hex[9];
    snprintf(hex, sizeof hex, "%08" PRIx32, (uint32_t)(int64_t)luaL_checknumber(lua, 1));
    lua_pushstring(lua, hex);
    return 1;
}

/* Of the format ">I4" only. */
static int struct_unpack(lua_State *lua)
{
    struct str s;
    size_t at = (size_t)luaL_checkinteger(lua, 3);
    uint32_t v;
    s.p = luaL_checklstring(lua, 2, &s.n);
    if (strcmp(luaL_checkstring(lua, 1), ">I4") != 0 || at < 1 || at + 3 > s.n)
        return luaL_error(lua, "struct.unpack of another format, or of too little");
    memcpy(&v, s.p + at - 1, sizeof v);
    lua_pushnumber(lua, ntohl(v));
    lua_pushinteger(lua, (lua_Integer)at + 4);
    return 2;
}

static void open_libraries(lua_State *lua)
{
    static const luaL_Reg bits[] = {{"bxor", bit_bxor}, {"tohex", bit_tohex}, {NULL, NULL}};
    static const luaL_Reg structs[] = {{"unpack", struct_unpack}, {NULL, NULL}};
    luaL_register(lua, "bit", bits);
    luaL_register(lua, "struct", structs);
    lua_settop(lua, 0);
}

void redis_model_lua_open(struct redis_model *m)
{
    m->lua = check_memory(luaL_newstate());
    m->scripts = map_new();
    arena_init(&m->scratch);
    luaL_openlibs(m->lua);
    lua_gc(m->lua, LUA_GCSETPAUSE, 400); /* collects half as often as by default: time for memory */
    lua_createtable(m->lua, 0, 1);
    lua_pushlightuserdata(m->lua, m);
    lua_pushcclosure(m->lua, redis_call_lua, 1);
    lua_setfield(m->lua, -2, "call");
    lua_setglobal(m->lua, "redis");
    open_libraries(m->lua);
}

void redis_model_lua_close(struct redis_model *m)
{
    lua_close(m->lua);
    map_free(m->scripts);
    arena_release(&m->scratch);
}
