#include "engine/people/session.h"

#include <stdio.h>

#include "base/log.h"
#include "base/sha256.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct mariadb server;
static struct store_redis store;
static struct metrics *metrics;

struct node {
    struct group group;
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
};

static void await_trust(struct task *t, struct node *n, bool trust)
{
    for (int i = 0; i < 1500 && cache_trusts_redis(n->cache) != trust; i++)
        check(task_sleep(t, 10) == 0);
    check(cache_trusts_redis(n->cache) == trust);
}

static void open_stores(struct task *t, struct node *n, const char *redis_url)
{
    group_init(&n->group, task_loop(t));
    n->redis = redis_open(&n->group, &(struct redis_options){.url = redis_url, .name = "hot"});
    check(n->redis);
    n->sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    n->cache =
        cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql, .metrics = metrics});
    role_in(&n->group, cache_role, n->cache, CACHE_LOOK_EACH_MS);
}

static void open_node(struct task *t, struct node *n)
{
    open_stores(t, n, store.url_unix);
    await_trust(t, n, true);
}

static void close_node(struct task *t, struct node *n)
{
    redis_close(n->redis);
    group_cancel(&n->group);
    check(group_join(t, &n->group) == 0);
    cache_free(n->cache);
    sql_pool_free(n->sql);
}

static void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(sql_call(t, n->sql, NULL, "DELETE FROM session") == 0);
    check(sql_call(t, n->sql, NULL, "DELETE FROM cache_stale") == 0);
}

static struct str begin_as(struct task *t, struct node *n, enum session_kind kind, int64_t uid)
{
    char token[SESSION_TOKEN_BYTES];
    struct session_start s = {kind, uid, kind == SESSION_USER ? STR("Alice") : STR("Root"),
                              STR("1.2.3.4"), STR("Browser/1")};
    check(session_begin(t, n->cache, &s, token) == 0);
    return str_dup(task_arena(t), str_of(token));
}

static struct str begin(struct task *t, struct node *n)
{
    return begin_as(t, n, SESSION_USER, 42);
}

static int get(struct task *t, struct node *n, struct str token)
{
    struct session s;
    return session_get(t, n->cache, SESSION_USER, token, &s);
}

static struct str sid_of(struct task *t, struct str token)
{
    char sid[SHA256_HEX_BYTES];
    sha256_hex(token, sid);
    return str_dup(task_arena(t), str_of(sid));
}

static struct str key_of(struct task *t, struct str token)
{
    return key_session(task_arena(t), sid_of(t, token));
}

static int64_t ask(struct task *t, struct node *n, const char *word, struct str key)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, str_of(word), key) == 0);
    return r->integer;
}

static struct str field(struct task *t, struct node *n, struct str key, const char *name)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, STR("HGET"), key, str_of(name)) == 0);
    return r->type == REDIS_STRING ? r->str : STR("(none)");
}

static int64_t rows(struct task *t, struct node *n, const char *query)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, query) == 0);
    return sql_row(&r, 0)[0].i;
}

#define MARKS "SELECT COUNT(*) FROM cache_stale"
#define ROWS  "SELECT COUNT(*) FROM session"

static void test_begin(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n);
    is_int((int64_t)token.n, 64, "a token");
    ok(!str_eq(token, begin(t, &n)), "another time another one");
    struct session s;
    is_int(session_get(t, n.cache, SESSION_USER, token, &s), 0, "opens a session");
    is_str(s.sid, sid_of(t, token), "its sid");
    is_int(s.uid, 42, "its owner");
    is_str(s.username, STR("Alice"), "whose name is known");
    is_str(s.ip_address, STR("1.2.3.4"), "from where");
    is_str(s.user_agent, STR("Browser/1"), "by what");
    ok(!s.degraded, "from Redis");
    int64_t age_ms = loop_wall_ms(task_loop(t)) - s.login_ms;
    ok(age_ms >= 0 && age_ms < 60000 && s.active_ms >= s.login_ms - 1000, "just now");
    struct str key = key_of(t, token);
    int64_t ttl = ask(t, &n, "PTTL", key);
    ok(ttl > SESSION_TTL_MS - 60000 && ttl <= SESSION_TTL_MS, "for seven days");
    is_str(field(t, &n, key, "user_id"), STR("42"), "user_id");
    is_int((int64_t)field(t, &n, key, "login_time").n, 10, "login_time in seconds");
    is_int(ask(t, &n, "SCARD", key_user_sessions(task_arena(t), 42)), 2, "both are in the set");
    ok(ask(t, &n, "ZCARD", key_expiry) == 1, "and their owner has a deadline");

    const struct redis_reply *r;
    check(redis_call(t, n.redis, STR_NULL, &r, STR("KEYS"), STR("*")) == 0);
    bool shown = false;
    for (size_t i = 0; i < r->count; i++)
        shown = shown || str_find(r->items[i]->str, token) >= 0;
    ok(!shown && rows(t, &n, ROWS) == 2, "the token is nowhere");
    close_node(t, &n);
}

static void test_tokens(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), admin = begin_as(t, &n, SESSION_ADMIN, 42);
    struct session s = {.uid = 77};
    store_redis_kill(&store); /* no store is asked about what cannot be a token */
    await_trust(t, &n, false);
    mariadb_kill(&server);
    static const char *const bad[] = {
        "",
        "x",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeF",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde'",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        is_int(session_get(t, n.cache, SESSION_USER, str_of(bad[i]), &s), ERR_UNAUTHENTICATED,
               "no token: \"%s\"", bad[i]);
    is_int(session_get(t, n.cache, SESSION_USER, STR_NULL, &s), ERR_UNAUTHENTICATED, "none");
    is_int(s.uid, 77, "*out is left alone");
    mariadb_restart(&server);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    await_trust(t, &n, true);
    char other[SESSION_TOKEN_BYTES];
    memset(other, 'a', sizeof other);
    is_int(get(t, &n, str_from(other, 64)), ERR_UNAUTHENTICATED, "nobody's token");
    is_int(get(t, &n, sid_of(t, token)), ERR_UNAUTHENTICATED, "a sid opens nothing");
    is_int(session_get(t, n.cache, SESSION_ADMIN, token, &s), ERR_UNAUTHENTICATED,
           "a user is no admin");
    is_int(get(t, &n, admin), ERR_UNAUTHENTICATED, "nor the other way round");
    is_int(session_get(t, n.cache, SESSION_ADMIN, admin, &s), 0, "an admin is one");
    is_str(s.username, STR("Root"), "with an admin's name");
    int64_t ttl = ask(t, &n, "PTTL", key_admin_session(task_arena(t), s.sid));
    ok(ttl > SESSION_ADMIN_TTL_MS - 60000 && ttl <= SESSION_ADMIN_TTL_MS, "for twelve hours");
    close_node(t, &n);
}

static void test_miss(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), key = key_of(t, token);
    check(redis_call(t, n.redis, key, NULL, STR("DEL"), key) == 0);
    struct session s;
    is_int(session_get(t, n.cache, SESSION_USER, token, &s), 0, "what Redis lost comes from MySQL");
    ok(str_eq(s.username, STR("Alice")) && !s.degraded && s.uid == 42, "with its owner's name");
    is_str(field(t, &n, key, "username"), STR("Alice"), "and is in Redis again");
    check(redis_call(t, n.redis, key, NULL, STR("SET"), key, STR("junk")) == 0);
    is_int(get(t, &n, token), 0, "something else in its place does not matter");
    is_str(field(t, &n, key, "username"), STR("Alice"), "and is replaced");
    check(redis_call(t, n.redis, key, NULL, STR("HDEL"), key, STR("username")) == 0);
    is_int(get(t, &n, token), 0, "nor does half a hash");

    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 6 DAY") == 0);
    is_int(get(t, &n, token), 0, "six days later it lives");
    is_int(rows(t, &n, ROWS " WHERE last_activity > UTC_TIMESTAMP() - INTERVAL 1 MINUTE"), 1,
           "and its row knows that it was used");
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 169 HOUR") == 0);
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "after seven it does not");
    close_node(t, &n);
}

static void test_expired_in_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), key = key_of(t, token);
    struct str admin = begin_as(t, &n, SESSION_ADMIN, 7);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 13 HOUR") == 0);
    struct session s;
    is_int(get(t, &n, token), 0, "a user's lives for days");
    is_int(session_get(t, n.cache, SESSION_ADMIN, admin, &s), ERR_UNAUTHENTICATED,
           "an admin's for twelve hours");
    /* The task ends what has expired, in MySQL and in Redis. */
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 14 HOUR"
                   " - INTERVAL 1 SECOND") == 0);
    struct group g;
    group_init(&g, task_loop(t));
    role_in(&g, session_role, n.cache, 1000);
    for (int i = 0; i < 300 && rows(t, &n, ROWS) == 2; i++)
        check(task_sleep(t, 10) == 0);
    is_int(rows(t, &n, ROWS " WHERE kind = 'user'"), 1, "a user's row stays");
    is_int(rows(t, &n, ROWS " WHERE kind = 'admin'"), 0, "an admin's goes");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 8 DAY") == 0);
    group_init(&g, task_loop(t));
    role_in(&g, session_role, n.cache, 1000);
    for (int i = 0; i < 300 && ask(t, &n, "EXISTS", key_user_sessions(task_arena(t), 42)); i++)
        check(task_sleep(t, 10) == 0);
    is_int(rows(t, &n, ROWS), 0, "a week later a user's goes, too");
    is_int(ask(t, &n, "EXISTS", key_user_sessions(task_arena(t), 42)), 0, "with its set");
    is_str(field(t, &n, key, "ended"), STR("1"), "and is dead in Redis");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    close_node(t, &n);
}

static void test_renew(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), key = key_of(t, token),
               set = key_user_sessions(task_arena(t), 42);
    int64_t now_s = loop_wall_ms(task_loop(t)) / 1000;
    struct str before = str_printf(task_arena(t), "%lld", (long long)now_s - 30);
    check(redis_call(t, n.redis, key, NULL, STR("HSET"), key, STR("last_activity"), before) == 0);
    check(redis_call(t, n.redis, key, NULL, STR("PEXPIRE"), key, STR("100000")) == 0);
    check(get(t, &n, token) == 0);
    is_str(field(t, &n, key, "last_activity"), before, "within a minute nothing is renewed");
    before = str_printf(task_arena(t), "%lld", (long long)now_s - 61);
    check(redis_call(t, n.redis, key, NULL, STR("HSET"), key, STR("last_activity"), before) == 0);
    check(redis_call(t, n.redis, set, NULL, STR("DEL"), set) == 0);
    check(sql_call(t, n.sql, NULL, "UPDATE session SET last_activity = '2020-01-01'") == 0);
    check(get(t, &n, token) == 0);
    ok(!str_eq(field(t, &n, key, "last_activity"), before), "later it is");
    ok(ask(t, &n, "PTTL", key) > 1000000, "with its life");
    is_int(ask(t, &n, "SCARD", set), 1, "and its place in the set");
    is_int(rows(t, &n, ROWS " WHERE last_activity > '2021-01-01'"), 0, "the row is not");
    struct str hour = str_printf(task_arena(t), "%lld", (long long)now_s - 3601);
    check(redis_call(t, n.redis, key, NULL, STR("HSET"), key, STR("last_activity"), before,
                     STR("row_time"), hour) == 0);
    check(get(t, &n, token) == 0);
    is_int(rows(t, &n, ROWS " WHERE last_activity > '2021-01-01'"), 1, "but once an hour");

    /* Neither fails the request. */
    check(redis_call(t, n.redis, key, NULL, STR("HSET"), key, STR("last_activity"), before,
                     STR("row_time"), hour) == 0);
    mariadb_freeze(&server);
    int64_t began = loop_now_us(task_loop(t));
    is_int(get(t, &n, token), 0, "a row that cannot be renewed hinders nobody");
    ok(loop_now_us(task_loop(t)) - began < 3000000, "for long");
    mariadb_thaw(&server);
    close_node(t, &n);
}

static void test_end(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_empty(t, &n);
    open_node(t, &other);
    struct str token = begin(t, &n), stays = begin(t, &n), key = key_of(t, token);
    check(get(t, &other, token) == 0 && get(t, &other, stays) == 0);
    is_int(session_end(t, n.cache, SESSION_USER, 43, sid_of(t, token), NULL), ERR_NOT_FOUND,
           "it is not for others to end");
    is_int(session_end(t, n.cache, SESSION_ADMIN, 42, sid_of(t, token), NULL), ERR_NOT_FOUND,
           "nor for an admin of that number");
    is_int(get(t, &other, token), 0, "who changes nothing");
    is_int(session_end(t, n.cache, SESSION_USER, 42, sid_of(t, token), NULL), 0,
           "its owner ends it");
    is_int(get(t, &other, token), ERR_UNAUTHENTICATED, "it is dead elsewhere at once");
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "and here");
    is_str(field(t, &n, key, "ended"), STR("1"), "a mark stays behind");
    int64_t ttl = ask(t, &n, "PTTL", key);
    ok(ttl > 3500000 && ttl <= 3600000, "for an hour");
    is_int(rows(t, &n, MARKS " WHERE kind = 'user'"), 0, "nothing is stale");
    is_int(get(t, &other, stays), 0, "another session lives");
    is_int(session_end(t, n.cache, SESSION_USER, 42, sid_of(t, token), NULL), ERR_NOT_FOUND,
           "once only");
    is_int(session_end(t, n.cache, SESSION_USER, 42, STR("\xff' OR 1"), NULL), ERR_NOT_FOUND,
           "what is no sid is nobody's");
    is_int(get(t, &other, stays), 0, "and that one lives still");
    close_node(t, &other);
    close_node(t, &n);
}

static void test_end_all(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_empty(t, &n);
    open_node(t, &other);
    struct str one = begin(t, &n), two = begin(t, &n), three = begin(t, &other);
    struct str bob = begin_as(t, &n, SESSION_USER, 43), admin = begin_as(t, &n, SESSION_ADMIN, 42);
    is_int(session_end_all(t, n.cache, SESSION_USER, 42, sid_of(t, two)), 0, "all but one end");
    is_int(get(t, &other, one), ERR_UNAUTHENTICATED, "the first");
    is_int(get(t, &other, three), ERR_UNAUTHENTICATED, "and the third");
    is_int(get(t, &other, two), 0, "the second stays");
    is_int(session_end_all(t, other.cache, SESSION_USER, 42, STR_NULL), 0, "then all");
    is_int(get(t, &n, two), ERR_UNAUTHENTICATED, "it too");
    struct session s;
    is_int(get(t, &n, bob), 0, "others have theirs");
    is_int(session_get(t, n.cache, SESSION_ADMIN, admin, &s), 0, "admins, too");
    is_int(session_end_all(t, n.cache, SESSION_ADMIN, 42, STR_NULL), 0, "whose end as well");
    is_int(session_get(t, other.cache, SESSION_ADMIN, admin, &s), ERR_UNAUTHENTICATED, "at once");
    is_int(session_end_all(t, n.cache, SESSION_USER, 42, STR_NULL), 0, "none is no error");
    close_node(t, &other);
    close_node(t, &n);
}

static void test_list(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct session *all;
    size_t count = 7;
    is_int(session_list(t, n.cache, SESSION_USER, 42, &all, &count), 0, "an empty list");
    is_int((int64_t)count, 0, "is one");
    struct str tokens[3];
    for (int i = 0; i < 3; i++) {
        tokens[i] = begin(t, &n);
        check(task_sleep(t, 5) == 0);
    }
    (void)begin_as(t, &n, SESSION_USER, 43);
    (void)begin_as(t, &n, SESSION_ADMIN, 42);
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 8 DAY"
                   " WHERE sid = ?",
                   sql_text(sid_of(t, tokens[1]))) == 0);
    struct str key = key_of(t, tokens[2]);
    check(redis_call(t, n.redis, key, NULL, STR("HSET"), key, STR("last_activity"),
                     STR("4000000000")) == 0);
    check(session_list(t, n.cache, SESSION_USER, 42, &all, &count) == 0);
    is_int((int64_t)count, 2, "one's own that have not expired");
    is_str(all[0].sid, sid_of(t, tokens[2]), "the newest first");
    is_str(all[1].sid, sid_of(t, tokens[0]), "then the older one");
    is_str(all[1].ip_address, STR("1.2.3.4"), "with all there is to know");
    is_int(all[0].active_ms, 4000000000LL * 1000, "Redis knows when it was last used");
    close_node(t, &n);
}

static void test_maximum(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_empty(t, &n);
    open_node(t, &other);
    struct str tokens[SESSIONS_PER_USER_MAX + 1];
    for (size_t i = 0; i < SESSIONS_PER_USER_MAX; i++)
        tokens[i] = begin(t, &n);
    /* The first was used since, the fourth was not for longest. */
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 1 DAY"
                   " WHERE sid = ?",
                   sql_text(sid_of(t, tokens[3]))) == 0);
    check(get(t, &other, tokens[3]) == 0);
    tokens[SESSIONS_PER_USER_MAX] = begin(t, &n);
    is_int(rows(t, &n, ROWS), SESSIONS_PER_USER_MAX, "one has so many, and no more");
    is_int(get(t, &other, tokens[3]), ERR_UNAUTHENTICATED, "the one unused for longest ended");
    is_int(get(t, &other, tokens[0]), 0, "not the oldest");
    is_int(get(t, &other, tokens[SESSIONS_PER_USER_MAX]), 0, "nor the new one");
    (void)begin_as(t, &n, SESSION_USER, 43);
    is_int(rows(t, &n, ROWS), SESSIONS_PER_USER_MAX + 1, "others have their own maximum");
    close_node(t, &other);
    close_node(t, &n);
}

static void test_odd_texts(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    char agent[SESSION_AGENT_BYTES_MAX + 100], token[SESSION_TOKEN_BYTES];
    memset(agent, 'x', sizeof agent);
    memcpy(agent, "a\xff\x01\xc3\xbc", 5);
    memcpy(agent + SESSION_AGENT_BYTES_MAX - 1, "\xc3\xbc", 2); /* would be cut in half */
    struct session_start start = {SESSION_USER, 42, STR("Alice"),
                                  STR("1111:2222:3333:4444:5555:6666:7777:8888:99999999999"),
                                  str_from(agent, sizeof agent)};
    is_int(session_begin(t, n.cache, &start, token), 0, "whatever a client says it is");
    for (int i = 0; i < 2; i++) {
        struct session s;
        check(session_get(t, n.cache, SESSION_USER, str_of(token), &s) == 0);
        ok(str_starts(s.user_agent, STR("a??\xc3\xbcx")), "is made text");
        is_int((int64_t)s.user_agent.n, SESSION_AGENT_BYTES_MAX - 1, "and cut");
        is_int((int64_t)s.ip_address.n, SESSION_ADDRESS_BYTES_MAX, "the address as well");
        check(redis_call(t, n.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0); /* then from MySQL */
    }
    start.user_agent = start.ip_address = STR_NULL;
    is_int(session_begin(t, n.cache, &start, token), 0, "nothing is a text, too");
    close_node(t, &n);
}

/* --- when Redis is away --- */

static void test_degraded(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str early = begin(t, &n);
    store_redis_kill(&store);
    struct session s;
    is_int(session_get(t, n.cache, SESSION_USER, early, &s), 0, "without Redis a session lives");
    ok(s.degraded && s.uid == 42, "marked degraded");
    struct str late = begin(t, &n);
    is_int(session_get(t, n.cache, SESSION_USER, late, &s), 0, "and one can log in");
    struct session *all;
    size_t count;
    is_int(session_list(t, n.cache, SESSION_USER, 42, &all, &count), 0, "and look at the list");
    ok(count == 2 && all[0].degraded, "which is marked");
    check(sql_call(t, n.sql, NULL,
                   "UPDATE session SET last_activity = UTC_TIMESTAMP(3) - INTERVAL 2 HOUR") == 0);
    check(get(t, &n, early) == 0);
    is_int(rows(t, &n, ROWS " WHERE last_activity > UTC_TIMESTAMP() - INTERVAL 1 HOUR"), 1,
           "its row is renewed");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    await_trust(t, &n, true);
    is_int(session_get(t, n.cache, SESSION_USER, late, &s), 0, "both are there when it is back");
    ok(!s.degraded && get(t, &n, early) == 0, "in Redis");
    close_node(t, &n);
}

/* Redis comes back with what it had: the session, alive. */
static void test_ended_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), stays = begin(t, &n), key = key_of(t, token);
    char line[160];
    is_str(field(t, &n, key, "user_id"), STR("42"), "Redis knows a session");
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    store_redis_kill(&store);
    is_int(session_end(t, n.cache, SESSION_USER, 42, sid_of(t, token), NULL), 0,
           "it ends without it");
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "and is dead");
    is_int(rows(t, &n, MARKS " WHERE uid = 42 AND kind = 'user'"), 1, "its owner is stale");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    char answer[64];
    snprintf(line, sizeof line, "EXISTS %s", key.p);
    check(store_redis_say(&store, line, answer, sizeof answer));
    ok(answer[1] == '1', "Redis is back and remembers it");
    bool dead = true;
    for (int i = 0; i < 2000 && !(cache_trusts_redis(n.cache) && i > 20); i++) {
        dead = dead && get(t, &n, token) == ERR_UNAUTHENTICATED;
        check(task_sleep(t, 2) == 0);
    }
    ok(dead, "it is dead all the time");
    await_trust(t, &n, true);
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "and when Redis is trusted again");
    is_int(get(t, &n, stays), 0, "another lives");
    close_node(t, &n);
}

/* A node that has lost its way to Redis, while the others have not. */
static void test_ended_by_a_lost_node(struct task *t, void *arg)
{
    (void)arg;
    struct node n, lost;
    open_empty(t, &n);
    struct str token = begin(t, &n), stays = begin(t, &n);
    open_stores(t, &lost, "unix:/nowhere/redis.sock");
    is_int(session_end(t, lost.cache, SESSION_USER, 42, sid_of(t, token), NULL), 0,
           "it ends a session");
    is_int(get(t, &lost, token), ERR_UNAUTHENTICATED, "for itself at once");
    int64_t began = loop_now_ms(task_loop(t));
    while (loop_now_ms(task_loop(t)) - began < 10000 && get(t, &n, token) == 0)
        check(task_sleep(t, 10) == 0);
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "and soon for all");
    is_int(get(t, &n, stays), 0, "another lives");
    close_node(t, &lost);
    close_node(t, &n);
}

/* --- slow loaders --- */

struct slow {
    struct node *n;
    struct str token;
    int err;
    bool done;
};

static void get_slowly(struct task *t, void *arg)
{
    struct slow *s = arg;
    s->err = get(t, s->n, s->token);
    s->done = true;
}

/* A loader that has read the row, and fills it after the end: the script says no. */
static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), key = key_of(t, token);
    struct str set = key_user_sessions(task_arena(t), 42);
    check(session_end(t, n.cache, SESSION_USER, 42, sid_of(t, token), NULL) == 0);
    const struct str fields[] = {STR("user_id"), STR("42"), STR("username"), STR("Alice")};
    const struct redis_reply *r;
    check(SCRIPT(t, n.redis, session_fill, &r, .session = key, .set = set,
                 .owner = key_user_info(task_arena(t), 42), .sid = sid_of(t, token),
                 .ms = STR("60000"), .row_time = STR("0"), .version = STR("none"),
                 .fields = {fields, 4}) == 0);
    is_int(r->integer, 0, "what has ended cannot be filled");
    check(SCRIPT(t, n.redis, session_renew, &r, .session = key, .set = set, .sid = sid_of(t, token),
                 .ms = STR("60000"), .now = STR("4000000000"), .each = STR("60"),
                 .row_each = STR("3600")) == 0);
    is_int(r->integer, 0, "nor renewed");
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "it stays dead");

    /* The same for real: the loader waits for its row while the session ends. */
    struct str slow_token = begin(t, &n), slow_key = key_of(t, slow_token);
    check(redis_call(t, n.redis, slow_key, NULL, STR("DEL"), slow_key) == 0);
    struct slow s = {.n = &n, .token = slow_token};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "slow", get_slowly, &s) == 0);
    check(session_end(t, n.cache, SESSION_USER, 42, sid_of(t, slow_token), NULL) == 0);
    check(group_join(t, &g) == 0);
    is_int(get(t, &n, slow_token), ERR_UNAUTHENTICATED, "whatever the loader saw");
    is_int(ask(t, &n, "SCARD", set), 0, "and nothing is in the set");
    close_node(t, &n);
}

/* Redis was not told, what was stale has been dropped, and then comes the loader: there is no mark.
 * The row is gone by the time that Redis has it, so it is looked for once more. */
static void test_slower_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct str token = begin(t, &n), key = key_of(t, token);
    check(redis_call(t, n.redis, key, NULL, STR("DEL"), key) == 0);
    /* Redis stands still, so that the row goes between the loader's two looks. */
    struct slow s = {.n = &n, .token = token};
    struct group g;
    group_init(&g, task_loop(t));
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("CLIENT"), STR("PAUSE"), STR("700"),
                     STR("WRITE")) == 0);
    check(task_go(&g, "slow", get_slowly, &s) == 0);
    check(task_sleep(t, 300) == 0);
    check(!s.done);
    check(sql_call(t, n.sql, NULL, "DELETE FROM session") == 0);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_UNAUTHENTICATED, "the loader notices");
    is_str(field(t, &n, key, "user_id"), STR("(none)"), "and leaves nothing alive in Redis");
    is_int(get(t, &n, token), ERR_UNAUTHENTICATED, "the session stays dead");
    close_node(t, &n);
}

static void prepare(struct task *t, void *arg)
{
    (void)arg;
    struct sql_pool *p = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    struct schema_report r;
    check(schema_migrate(t, p, &r) == 0);
    check(sql_call(t, p, NULL,
                   "INSERT INTO user_info (uid, username, username_folded, password)"
                   " VALUES (42, 'Alice', 'alice', ''), (43, 'Bob', 'bob', '')") == 0);
    check(sql_call(t, p, NULL,
                   "INSERT INTO admin_info (uid, username, username_folded, password)"
                   " VALUES (42, 'Root', 'root', ''), (7, 'Toor', 'toor', '')") == 0);
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    mariadb_start(&server, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(prepare, NULL, true);
    tap_task(test_begin, NULL, true);
    tap_task(test_tokens, NULL, true);
    tap_task(test_miss, NULL, true);
    tap_task(test_expired_in_redis, NULL, true);
    tap_task(test_renew, NULL, true);
    tap_task(test_end, NULL, true);
    tap_task(test_end_all, NULL, true);
    tap_task(test_list, NULL, true);
    tap_task(test_maximum, NULL, true);
    tap_task(test_odd_texts, NULL, true);
    tap_task(test_degraded, NULL, true);
    tap_task(test_ended_without_redis, NULL, true);
    tap_task(test_ended_by_a_lost_node, NULL, true);
    tap_task(test_slow_loader, NULL, true);
    tap_task(test_slower_loader, NULL, true);
    metrics_close(metrics);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
