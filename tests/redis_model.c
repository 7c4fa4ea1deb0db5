#include "tests/redis_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/redis_model_private.h"

enum kind { STRING, HASH, LIST, SET, ZSET, STREAM };

/* STRING: a. HASH: field a, value b. LIST, SET: a. ZSET: a, in the order of scores. STREAM: id a,
 * one field b with the value c. The bytes are the item's own. */
struct item {
    struct str a, b, c;
    int64_t score;
};

struct value {
    enum kind kind;
    int64_t expires_ms; /* 0: never */
    struct item *items;
    size_t count, cap;
};

/* What a command is given. */
struct call {
    struct redis_model *m;
    struct arena *a;
    size_t argc;
    const struct str *argv;
    enum kind kind; /* of the value that the command is for */
};

typedef const struct redis_reply *command_fn(const struct call *c);

/* --- values --- */

static const struct redis_reply **reply_items(struct arena *a, size_t count)
{
    return ARENA_ARRAY(a, const struct redis_reply *, count + 1);
}

static void item_free(struct item *i)
{
    free((char *)i->a.p);
}

static void value_free(struct value *v)
{
    for (size_t i = 0; i < v->count; i++)
        item_free(&v->items[i]);
    free(v->items);
    free(v);
}

static char *put(char *at, struct str s, struct str *out)
{
    if (s.n)
        memcpy(at, s.p, s.n);
    *out = str_from(at, s.n);
    return at + s.n;
}

/* One piece of memory for all three. */
static struct item item_new(struct str a, struct str b, struct str c)
{
    struct item i = {.score = 0};
    char *at = check_memory(malloc(a.n + b.n + c.n + 1));
    at = put(at, a, &i.a);
    at = put(at, b, &i.b);
    put(at, c, &i.c);
    return i;
}

static void insert(struct value *v, size_t at, struct item i)
{
    if (v->count == v->cap) {
        v->cap = v->cap ? 2 * v->cap : 4;
        v->items = check_memory(realloc(v->items, v->cap * sizeof *v->items));
    }
    memmove(v->items + at + 1, v->items + at, (v->count - at) * sizeof *v->items);
    v->items[at] = i;
    v->count++;
}

static void erase(struct value *v, size_t at)
{
    item_free(&v->items[at]);
    v->count--;
    memmove(v->items + at, v->items + at + 1, (v->count - at) * sizeof *v->items);
}

static struct item *find(struct value *v, struct str name)
{
    for (size_t i = 0; v && i < v->count; i++)
        if (str_eq(v->items[i].a, name))
            return &v->items[i];
    return NULL;
}

static bool remove_key(struct redis_model *m, struct str key)
{
    struct value *v = map_del(m->keys, key);
    if (v)
        value_free(v);
    return v != NULL;
}

/* NULL: there is none. A value of another kind is a mistake of whoever wrote the script. */
static struct value *get(struct redis_model *m, struct str key)
{
    struct value *v = map_get(m->keys, key);
    if (v && v->expires_ms && v->expires_ms <= m->wall_ms) {
        remove_key(m, key);
        v = NULL;
    }
    return v;
}

static struct value *get_own(const struct call *c)
{
    struct value *v = get(c->m, c->argv[1]);
    check(!v || v->kind == c->kind);
    return v;
}

static struct value *make(const struct call *c)
{
    struct value *v = get_own(c);
    if (v)
        return v;
    v = check_memory(calloc(1, sizeof *v));
    v->kind = c->kind;
    map_set(c->m->keys, c->argv[1], v);
    return v;
}

static void drop_if_empty(const struct call *c, const struct value *v)
{
    if (v && v->count == 0)
        remove_key(c->m, c->argv[1]);
}

static int64_t number(struct str s)
{
    int64_t v = 0;
    check(str_to_i64(s, &v));
    return v;
}

static bool is(struct str s, const char *word)
{
    return str_eq(s, str_of(word));
}

/* --- strings and keys --- */

static const struct redis_reply *cmd_get(const struct call *c)
{
    struct value *v = get_own(c);
    return v ? reply_str(c->a, v->items->a) : reply_nil();
}

static void set_string(const struct call *c, struct str s)
{
    remove_key(c->m, c->argv[1]);
    insert(make(c), 0, item_new(s, STR(""), STR("")));
}

static const struct redis_reply *cmd_set(const struct call *c)
{
    bool absent_only = false;
    int64_t ms = 0;
    for (size_t i = 3; i < c->argc; i++) {
        bool nx = is(c->argv[i], "NX"), px = is(c->argv[i], "PX") && i + 1 < c->argc;
        check(nx || px);
        absent_only = absent_only || nx;
        if (px)
            ms = number(c->argv[++i]);
    }
    if (absent_only && get(c->m, c->argv[1]))
        return reply_nil();
    set_string(c, c->argv[2]);
    if (ms)
        get(c->m, c->argv[1])->expires_ms = c->m->wall_ms + ms;
    return reply_status(c->a, "OK");
}

static const struct redis_reply *add_to_string(const struct call *c, int64_t n)
{
    char digits[STR_INT_BYTES];
    struct value *v = get_own(c);
    int64_t sum = (v ? number(v->items->a) : 0) + n, expires_ms = v ? v->expires_ms : 0;
    set_string(c, str_digits(digits, sum));
    get(c->m, c->argv[1])->expires_ms = expires_ms;
    return reply_int(c->a, sum);
}

static const struct redis_reply *cmd_incrby(const struct call *c)
{
    return add_to_string(c, number(c->argv[2]));
}

static const struct redis_reply *cmd_decrby(const struct call *c)
{
    return add_to_string(c, -number(c->argv[2]));
}

static const struct redis_reply *cmd_del(const struct call *c)
{
    int64_t count = 0;
    for (size_t i = 1; i < c->argc; i++)
        count += get(c->m, c->argv[i]) && remove_key(c->m, c->argv[i]);
    return reply_int(c->a, count);
}

static const struct redis_reply *cmd_exists(const struct call *c)
{
    return reply_int(c->a, get(c->m, c->argv[1]) != NULL);
}

static const struct redis_reply *cmd_pexpire(const struct call *c)
{
    struct value *v = get(c->m, c->argv[1]);
    check(c->argc == 3 || (c->argc == 4 && is(c->argv[3], "NX")));
    if (!v || (c->argc == 4 && v->expires_ms))
        return reply_int(c->a, 0);
    v->expires_ms = c->m->wall_ms + number(c->argv[2]);
    return reply_int(c->a, 1);
}

static const struct redis_reply *cmd_persist(const struct call *c)
{
    struct value *v = get(c->m, c->argv[1]);
    bool had = v && v->expires_ms;
    if (had)
        v->expires_ms = 0;
    return reply_int(c->a, had);
}

/* --- hashes --- */

static bool set_field(struct value *v, struct str field, struct str value)
{
    struct item *old = find(v, field), fresh = item_new(field, value, STR(""));
    if (!old) {
        insert(v, v->count, fresh);
        return true;
    }
    item_free(old);
    *old = fresh;
    return false;
}

static const struct redis_reply *field_reply(const struct call *c, struct value *v,
                                             struct str field)
{
    struct item *i = find(v, field);
    return i ? reply_str(c->a, i->b) : reply_nil();
}

static const struct redis_reply *cmd_hget(const struct call *c)
{
    return field_reply(c, get_own(c), c->argv[2]);
}

static const struct redis_reply *cmd_hmget(const struct call *c)
{
    struct value *v = get_own(c);
    const struct redis_reply **items = reply_items(c->a, c->argc);
    for (size_t i = 2; i < c->argc; i++)
        items[i - 2] = field_reply(c, v, c->argv[i]);
    return reply_array(c->a, c->argc - 2, items);
}

static const struct redis_reply *cmd_hset(const struct call *c)
{
    check(c->argc >= 4 && c->argc % 2 == 0);
    struct value *v = make(c);
    int64_t added = 0;
    for (size_t i = 2; i < c->argc; i += 2)
        added += set_field(v, c->argv[i], c->argv[i + 1]);
    return reply_int(c->a, added);
}

static const struct redis_reply *cmd_hincrby(const struct call *c)
{
    char digits[STR_INT_BYTES];
    struct value *v = make(c);
    struct item *i = find(v, c->argv[2]);
    int64_t sum = (i ? number(i->b) : 0) + number(c->argv[3]);
    set_field(v, c->argv[2], str_digits(digits, sum));
    return reply_int(c->a, sum);
}

static const struct redis_reply *cmd_hgetall(const struct call *c)
{
    struct value *v = get_own(c);
    size_t count = v ? v->count : 0;
    const struct redis_reply **items = reply_items(c->a, 2 * count);
    for (size_t i = 0; i < count; i++) {
        items[2 * i] = reply_str(c->a, v->items[i].a);
        items[2 * i + 1] = reply_str(c->a, v->items[i].b);
    }
    return reply_array(c->a, 2 * count, items);
}

/* Members of any kind that are named, away with them. */
static const struct redis_reply *remove_members(const struct call *c)
{
    struct value *v = get_own(c);
    int64_t count = 0;
    for (size_t i = 2; v && i < c->argc; i++) {
        struct item *old = find(v, c->argv[i]);
        if (!old)
            continue;
        erase(v, (size_t)(old - v->items));
        count++;
    }
    drop_if_empty(c, v);
    return reply_int(c->a, count);
}

static const struct redis_reply *cmd_hexists(const struct call *c)
{
    return reply_int(c->a, find(get_own(c), c->argv[2]) != NULL);
}

static const struct redis_reply *count_of(const struct call *c)
{
    struct value *v = get_own(c);
    return reply_int(c->a, v ? (int64_t)v->count : 0);
}

/* --- lists --- */

static const struct redis_reply *cmd_lpush(const struct call *c)
{
    struct value *v = make(c);
    for (size_t i = 2; i < c->argc; i++)
        insert(v, 0, item_new(c->argv[i], STR(""), STR("")));
    return reply_int(c->a, (int64_t)v->count);
}

static const struct redis_reply *cmd_rpush(const struct call *c)
{
    struct value *v = make(c);
    for (size_t i = 2; i < c->argc; i++)
        insert(v, v->count, item_new(c->argv[i], STR(""), STR("")));
    return reply_int(c->a, (int64_t)v->count);
}

static const struct redis_reply *cmd_lpop(const struct call *c)
{
    struct value *v = get_own(c);
    check(c->argc == 2);
    if (!v)
        return reply_nil();
    const struct redis_reply *r = reply_str(c->a, v->items->a);
    erase(v, 0);
    drop_if_empty(c, v);
    return r;
}

/* Where a range of items begins and ends, as Redis counts: negative from the end. */
static void clamp(const struct call *c, size_t count, size_t *from, size_t *to)
{
    int64_t n = (int64_t)count, first = number(c->argv[2]), last = number(c->argv[3]);
    first = first < 0 ? first + n : first;
    last = last < 0 ? last + n : last;
    first = first < 0 ? 0 : first;
    last = last >= n ? n - 1 : last;
    *from = (size_t)first;
    *to = last < first ? (size_t)first : (size_t)last + 1;
}

static const struct redis_reply *range_of(const struct call *c)
{
    struct value *v = get_own(c);
    size_t from, to, n = 0;
    bool scores = c->argc == 5 && is(c->argv[4], "WITHSCORES");
    check(c->argc == 4 || scores);
    clamp(c, v ? v->count : 0, &from, &to);
    const struct redis_reply **items = reply_items(c->a, 2 * (to - from));
    for (size_t i = from; i < to; i++) {
        items[n++] = reply_str(c->a, v->items[i].a);
        if (scores)
            items[n++] = reply_str(c->a, str_int(c->a, v->items[i].score));
    }
    return reply_array(c->a, n, items);
}

/* --- sets --- */

static const struct redis_reply *cmd_sadd(const struct call *c)
{
    struct value *v = make(c);
    int64_t added = 0;
    for (size_t i = 2; i < c->argc; i++)
        if (!find(v, c->argv[i])) {
            insert(v, v->count, item_new(c->argv[i], STR(""), STR("")));
            added++;
        }
    return reply_int(c->a, added);
}

static const struct redis_reply *cmd_sismember(const struct call *c)
{
    return reply_int(c->a, find(get_own(c), c->argv[2]) != NULL);
}

static const struct redis_reply *cmd_smismember(const struct call *c)
{
    struct value *v = get_own(c);
    const struct redis_reply **items = reply_items(c->a, c->argc);
    for (size_t i = 2; i < c->argc; i++)
        items[i - 2] = reply_int(c->a, find(v, c->argv[i]) != NULL);
    return reply_array(c->a, c->argc - 2, items);
}

/* --- sorted sets; scores are integers here --- */

static void place(struct value *v, struct str member, int64_t score)
{
    size_t at = 0;
    struct item i = item_new(member, STR(""), STR(""));
    i.score = score;
    while (at < v->count &&
           (v->items[at].score < score ||
            (v->items[at].score == score &&
             memcmp(v->items[at].a.p, member.p,
                    v->items[at].a.n < member.n ? v->items[at].a.n : member.n) < 0)))
        at++;
    insert(v, at, i);
}

/* One member; NX: only if it is new; GT: only to a higher score. */
static const struct redis_reply *cmd_zadd(const struct call *c)
{
    bool option = c->argc == 5, nx = option && is(c->argv[2], "NX");
    bool gt = option && is(c->argv[2], "GT");
    check(c->argc == 4 || nx || gt);
    int64_t score = number(c->argv[c->argc - 2]);
    struct str member = c->argv[c->argc - 1];
    struct value *v = make(c);
    struct item *old = find(v, member);
    if (old && (nx || (gt && old->score >= score)))
        return reply_int(c->a, 0);
    if (old)
        erase(v, (size_t)(old - v->items));
    place(v, member, score);
    return reply_int(c->a, !old);
}

static const struct redis_reply *cmd_zscore(const struct call *c)
{
    struct item *i = find(get_own(c), c->argv[2]);
    return i ? reply_str(c->a, str_int(c->a, i->score)) : reply_nil();
}

/* From '-inf' only: that is how silence is looked for. */
static const struct redis_reply *cmd_zrangebyscore(const struct call *c)
{
    struct value *v = get_own(c);
    check(c->argc == 4 && is(c->argv[2], "-inf"));
    int64_t most = number(c->argv[3]);
    size_t count = 0;
    const struct redis_reply **items = reply_items(c->a, v ? v->count : 0);
    while (v && count < v->count && v->items[count].score <= most) {
        items[count] = reply_str(c->a, v->items[count].a);
        count++;
    }
    return reply_array(c->a, count, items);
}

/* --- streams --- */

/* XADD key MAXLEN ~ n * field value. The stream is cut where Redis may leave a few more. */
static const struct redis_reply *cmd_xadd(const struct call *c)
{
    struct redis_model *m = c->m;
    check(c->argc == 8 && is(c->argv[2], "MAXLEN") && is(c->argv[3], "~") && is(c->argv[5], "*"));
    struct value *v = make(c);
    m->stream_seq = m->wall_ms > m->stream_ms ? 0 : m->stream_seq + 1;
    m->stream_ms = m->wall_ms > m->stream_ms ? m->wall_ms : m->stream_ms;
    struct str id = str_printf(c->a, "%" PRId64 "-%" PRId64, m->stream_ms, m->stream_seq);
    insert(v, v->count, item_new(id, c->argv[6], c->argv[7]));
    while ((int64_t)v->count > number(c->argv[4]))
        erase(v, 0);
    return reply_str(c->a, id);
}

static bool id_after(struct str id, struct str than)
{
    struct str a = id, b = than, a_ms = str_cut(&a, '-'), b_ms = str_cut(&b, '-');
    int64_t x = number(a_ms), y = number(b_ms);
    return x != y ? x > y : number(a) > number(b);
}

/* XRANGE key -|(id + COUNT n. */
static const struct redis_reply *cmd_xrange(const struct call *c)
{
    struct value *v = get_own(c);
    check(c->argc == 6 && is(c->argv[3], "+") && is(c->argv[4], "COUNT"));
    struct str after = c->argv[2];
    bool all = is(after, "-");
    check(all || after.p[0] == '(');
    size_t first = v ? v->count : 0;
    while (first > 0 &&
           (all || id_after(v->items[first - 1].a, str_from(after.p + 1, after.n - 1))))
        first--;
    size_t count = v ? v->count - first : 0, most = (size_t)number(c->argv[5]);
    count = count < most ? count : most;
    const struct redis_reply **items = reply_items(c->a, count);
    for (size_t i = 0; i < count; i++) {
        const struct redis_reply **pair = reply_items(c->a, 2), **fields = reply_items(c->a, 2);
        fields[0] = reply_str(c->a, v->items[first + i].b);
        fields[1] = reply_str(c->a, v->items[first + i].c);
        pair[0] = reply_str(c->a, v->items[first + i].a);
        pair[1] = reply_array(c->a, 2, fields);
        items[i] = reply_array(c->a, 2, pair);
    }
    return reply_array(c->a, count, items);
}

/* --- the server --- */

static const struct redis_reply *cmd_info(const struct call *c)
{
    return reply_str(c->a,
                     STR_JOIN(c->a, STR("# Server\r\nrun_id:"), str_of(c->m->run_id), STR("\r\n")));
}

static const struct redis_reply *cmd_time(const struct call *c)
{
    const struct redis_reply **items = reply_items(c->a, 2);
    items[0] = reply_str(c->a, str_int(c->a, c->m->wall_ms / 1000));
    items[1] = reply_str(c->a, str_int(c->a, c->m->wall_ms % 1000 * 1000));
    return reply_array(c->a, 2, items);
}

#define NAME(word)                                                                                 \
    {                                                                                              \
        word, sizeof(word) - 1                                                                     \
    }

static const struct {
    struct str name;
    command_fn *fn;
    size_t argc_min;
    enum kind kind;
} commands[] = {
    {NAME("HGET"), cmd_hget, 3, HASH},
    {NAME("XRANGE"), cmd_xrange, 6, STREAM},
    {NAME("HSET"), cmd_hset, 4, HASH},
    {NAME("HMGET"), cmd_hmget, 3, HASH},
    {NAME("INFO"), cmd_info, 1, STRING},
    {NAME("GET"), cmd_get, 2, STRING},
    {NAME("HGETALL"), cmd_hgetall, 2, HASH},
    {NAME("TIME"), cmd_time, 1, STRING},
    {NAME("DECRBY"), cmd_decrby, 3, STRING},
    {NAME("DEL"), cmd_del, 2, STRING},
    {NAME("EXISTS"), cmd_exists, 2, STRING},
    {NAME("HDEL"), remove_members, 3, HASH},
    {NAME("HEXISTS"), cmd_hexists, 3, HASH},
    {NAME("HINCRBY"), cmd_hincrby, 4, HASH},
    {NAME("HLEN"), count_of, 2, HASH},
    {NAME("INCRBY"), cmd_incrby, 3, STRING},
    {NAME("LLEN"), count_of, 2, LIST},
    {NAME("LPOP"), cmd_lpop, 2, LIST},
    {NAME("LPUSH"), cmd_lpush, 3, LIST},
    {NAME("LRANGE"), range_of, 4, LIST},
    {NAME("PERSIST"), cmd_persist, 2, STRING},
    {NAME("PEXPIRE"), cmd_pexpire, 3, STRING},
    {NAME("RPUSH"), cmd_rpush, 3, LIST},
    {NAME("SADD"), cmd_sadd, 3, SET},
    {NAME("SET"), cmd_set, 3, STRING},
    {NAME("SISMEMBER"), cmd_sismember, 3, SET},
    {NAME("SMISMEMBER"), cmd_smismember, 3, SET},
    {NAME("SREM"), remove_members, 3, SET},
    {NAME("UNLINK"), cmd_del, 2, STRING},
    {NAME("XADD"), cmd_xadd, 8, STREAM},
    {NAME("ZADD"), cmd_zadd, 4, ZSET},
    {NAME("ZRANGE"), range_of, 4, ZSET},
    {NAME("ZRANGEBYSCORE"), cmd_zrangebyscore, 4, ZSET},
    {NAME("ZREM"), remove_members, 3, ZSET},
    {NAME("ZSCORE"), cmd_zscore, 3, ZSET},
};

const struct redis_reply *redis_model_argv(struct redis_model *m, struct arena *a, size_t argc,
                                           const struct str *argv)
{
    struct call c = {.m = m, .a = a, .argc = argc, .argv = argv};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (str_eq(argv[0], commands[i].name)) {
            check(argc >= commands[i].argc_min);
            c.kind = commands[i].kind;
            return commands[i].fn(&c);
        }
    fprintf(stderr, "the model of Redis does not know %.*s\n", STR_ARG(argv[0]));
    check(!"a command that the model of Redis knows");
    return NULL;
}

/* --- life --- */

struct redis_model *redis_model_new(void)
{
    struct redis_model *m = check_memory(calloc(1, sizeof *m));
    m->keys = map_new();
    redis_model_lua_open(m);
    redis_model_restart(m, 1);
    return m;
}

static void free_keys(struct map *keys)
{
    struct str name;
    void *v;
    for (size_t at = 0; keys && map_next(keys, &at, &name, &v);)
        value_free(v);
    if (keys)
        map_free(keys);
}

static struct map *copy_keys(const struct map *keys)
{
    struct map *copy = map_new();
    struct str name;
    void *each;
    for (size_t at = 0; map_next(keys, &at, &name, &each);) {
        const struct value *v = each;
        struct value *c = check_memory(calloc(1, sizeof *c));
        *c = (struct value){.kind = v->kind, .expires_ms = v->expires_ms};
        for (size_t i = 0; i < v->count; i++) {
            insert(c, i, item_new(v->items[i].a, v->items[i].b, v->items[i].c));
            c->items[i].score = v->items[i].score;
        }
        map_set(copy, name, c);
    }
    return copy;
}

void redis_model_save(struct redis_model *m)
{
    free_keys(m->saved);
    m->saved = copy_keys(m->keys);
}

bool redis_model_restore(struct redis_model *m, uint64_t run)
{
    if (!m->saved)
        return false;
    free_keys(m->keys);
    m->keys = m->saved;
    m->saved = NULL;
    redis_model_restart(m, run);
    return true;
}

void redis_model_clear(struct redis_model *m, uint64_t run)
{
    free_keys(m->keys);
    free_keys(m->saved);
    m->keys = map_new();
    m->saved = NULL;
    m->stream_ms = m->stream_seq = 0;
    redis_model_restart(m, run);
}

void redis_model_free(struct redis_model *m)
{
    redis_model_clear(m, 1);
    map_free(m->keys);
    redis_model_lua_close(m);
    free(m);
}

void redis_model_restart(struct redis_model *m, uint64_t run)
{
    snprintf(m->run_id, sizeof m->run_id, "%040" PRIx64, run);
}

void redis_model_clock(struct redis_model *m, int64_t wall_ms)
{
    m->wall_ms = wall_ms;
}

struct str redis_model_run_id(const struct redis_model *m)
{
    return str_of(m->run_id);
}
