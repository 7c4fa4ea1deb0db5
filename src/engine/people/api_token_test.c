#include "engine/people/api_token.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/sha256.h"
#include "engine/people/admin_log.h"
#include "engine/people/user.h"
#include "engine/setup/schema.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"
#include "tests/mariadb.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

#define HERE STR("10.0.0.1")

static struct mariadb server;
static struct store_redis store;

struct node {
    struct group group;
    struct redis *redis;
    struct sql_pool *sql;
    struct cache *cache;
    struct api_tokens *tokens;
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
    n->cache = cache_new(&(struct cache_options){.redis = n->redis, .sql = n->sql});
    n->tokens = api_tokens_new(n->cache, &n->group);
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
    api_tokens_free(n->tokens);
    cache_free(n->cache);
    sql_pool_free(n->sql);
}

static void open_empty(struct task *t, struct node *n)
{
    open_node(t, n);
    check(redis_call(t, n->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    check(sql_call(t, n->sql, NULL, "DELETE FROM api_token") == 0);
    check(sql_call(t, n->sql, NULL, "DELETE FROM cache_stale") == 0);
    check(sql_call(t, n->sql, NULL, "UPDATE user_info SET banned = 0") == 0);
}

static int64_t number(struct task *t, struct node *n, const char *statement)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r, statement) == 0);
    check(r.count == 1 && r.cells[0].type == SQL_INT);
    return r.cells[0].i;
}
#define MARKS  "SELECT COUNT(*) FROM cache_stale"
#define TOKENS "SELECT COUNT(*) FROM api_token"

struct made {
    struct str token;
    int64_t id;
};

static int add(struct task *t, struct node *n, const struct api_token_new *new, struct made *out)
{
    char token[API_TOKEN_BYTES];
    struct api_token made;
    int err = api_token_add(t, n->cache, new, token, &made);
    if (!err)
        *out = (struct made){str_dup(task_arena(t), str_of(token)), made.id};
    return err;
}

static struct made make(struct task *t, struct node *n, const char *name)
{
    struct made m;
    struct api_token_new new = {.uid = 42, .name = str_of(name), .scopes = STR("read screen")};
    check(add(t, n, &new, &m) == 0);
    return m;
}

static int get(struct task *t, struct node *n, struct str token)
{
    struct session s;
    return api_token_get(t, n->tokens, token, HERE, &s);
}

static struct str sha256_of(struct task *t, struct str token)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex(token, hex);
    return str_dup(task_arena(t), str_of(hex));
}

static struct str key_of(struct task *t, struct str token)
{
    return key_session(task_arena(t), sha256_of(t, token));
}

static int64_t ask(struct task *t, struct node *n, const char *command, struct str key)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, key, &r, str_of(command), key) == 0);
    check(r->type == REDIS_INT);
    return r->integer;
}

static void ban(struct task *t, struct node *n, bool banned)
{
    struct user_change ch = {.uid = 42, .part = USER_BANNED, .number = banned};
    check(user_change(t, n->cache, &ch) == 0);
}

/* --- making, listing, using --- */

static void test_use(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "harvest");
    ok(m.token.n == 67 && str_starts(m.token, STR("mr_")) && hex_is(str_skip(m.token, 3), 64),
       "a token is mr_ and 64 digits");
    struct sql_rows r;
    check(sql_call(t, n.sql, &r,
                   TOKENS " WHERE INSTR(CONCAT_WS(' ', name, sha256, prefix, scopes), ?) > 0",
                   sql_text(str_skip(m.token, 11))) == 0);
    is_int(r.cells[0].i, 0, "it is not in MySQL");
    check(sql_call(t, n.sql, &r, "SELECT sha256, prefix FROM api_token") == 0);
    is_str(r.cells[0].s, sha256_of(t, m.token), "its hash is");
    is_str(r.cells[1].s, str_from(m.token.p, 11), "with how it begins");

    struct session s = {.uid = 0};
    is_int(api_token_get(t, n.tokens, m.token, HERE, &s), 0, "it is found");
    ok(s.uid == 42 && str_eq(s.username, STR("Alice")) && str_eq(s.scopes, STR("read screen")) &&
           str_eq(s.sid, sha256_of(t, m.token)) && !s.degraded && s.expires_ms == 0,
       "with all that a call needs");
    is_int(ask(t, &n, "EXISTS", key_of(t, m.token)), 1, "and is in Redis from now on");
    int64_t ttl = ask(t, &n, "PTTL", key_of(t, m.token));
    ok(ttl > CACHE_EXP_MS - 60000 && ttl <= CACHE_EXP_MS, "for eight hours");
    is_int(ask(t, &n, "SCARD", key_user_sessions(task_arena(t), 42)), 1, "in its owner's set");
    check(sql_call(t, n.sql, NULL, "UPDATE api_token SET scopes = 'changed by hand'") == 0);
    check(api_token_get(t, n.tokens, m.token, HERE, &s) == 0);
    is_str(s.scopes, STR("read screen"), "and is read from there");
    is_int(session_get(t, n.cache, SESSION_USER, m.token, &s), ERR_UNAUTHENTICATED,
           "it is no session");
    is_int(session_get(t, n.cache, SESSION_USER, str_skip(m.token, 3), &s), ERR_UNAUTHENTICATED,
           "nor are its digits");
    close_node(t, &n);
}

static void test_wrong(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "one");
    char upper[API_TOKEN_BYTES];
    snprintf(upper, sizeof upper, "MR_%s", m.token.p + 3);
    const struct str wrong[] = {
        STR(""),
        STR("mr_"),
        str_skip(m.token, 3),
        str_from(m.token.p, 66),
        str_of(upper),
        sha256_of(t, m.token),
        STR("mr_*"),
        STR("mr_0123456789012345678901234567890123456789012345678901234567890123"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_int(get(t, &n, wrong[i]), ERR_UNAUTHENTICATED, wrong[i].p);
    struct session s;
    struct session_start start = {SESSION_USER, 42, STR("Alice"), HERE, STR("Browser/1")};
    char token[SESSION_TOKEN_BYTES];
    check(session_begin(t, n.cache, &start, token) == 0);
    check(session_get(t, n.cache, SESSION_USER, str_of(token), &s) == 0);
    ok(!s.scopes.p, "a session has no scopes");
    is_int(get(t, &n, str_of(token)), ERR_UNAUTHENTICATED, "a session is no token");
    is_int(get(t, &n, STR_JOIN(task_arena(t), STR("mr_"), str_of(token))), ERR_UNAUTHENTICATED,
           "with mr_ before it neither");
    close_node(t, &n);
}

static void test_names(struct task *t, void *arg)
{
    (void)t, (void)arg;
    ok(!api_token_name_problem(STR("nightly import")), "a name");
    ok(!api_token_name_problem(STR("每晚导入")), "in Chinese");
    ok(api_token_name_problem(STR("")) != NULL, "empty");
    ok(api_token_name_problem(STR(" x")) && api_token_name_problem(STR("x ")), "blanks around");
    ok(api_token_name_problem(STR("a\nb")) != NULL, "a line break");
    ok(api_token_name_problem(STR("\xff")) != NULL, "not UTF-8");
    char longest[65 * 3 + 1] = "";
    for (int i = 0; i < 65; i++)
        memcpy(longest + 3 * i, "\xe6\xaf\x8f", 4);
    ok(api_token_name_problem(str_of(longest)) != NULL, "65 characters");
    ok(!api_token_name_problem(str_of(longest + 3)), "64 characters");
}

static void test_list(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made first = make(t, &n, "first"), m;
    struct api_token_new limited = {
        .uid = 42, .name = STR("limited"), .scopes = STR("catalog"), .days = 30};
    check(add(t, &n, &limited, &m) == 0);
    check(add(t, &n, &(struct api_token_new){.uid = 43, .name = STR("x"), .scopes = STR("read")},
              &m) == 0);
    struct api_token *all;
    size_t count;
    check(api_token_list(t, n.sql, 42, false, &all, &count) == 0);
    check(count == 2);
    ok(str_eq(all[0].name, STR("limited")) && str_eq(all[1].name, STR("first")), "newest first");
    ok(all[1].id == first.id && str_eq(all[1].prefix, str_from(first.token.p, 11)) &&
           str_eq(all[1].scopes, STR("read screen")) && all[1].used_ms == 0 && !all[1].address.p &&
           all[1].revoked_ms == 0,
       "with all there is to say");
    int64_t now = loop_wall_ms(task_loop(t)), month = 30LL * 86400 * 1000;
    ok(llabs(all[1].created_ms - now) < 60000 && all[1].expires_ms == 0, "and when it was made");
    ok(llabs(all[0].expires_ms - now - month) < 60000, "one that expires in a month");
    check(api_token_revoke(t, n.cache, 42, first.id, NULL) == 0);
    check(api_token_list(t, n.sql, 42, false, &all, &count) == 0);
    ok(count == 1 && str_eq(all[0].name, STR("limited")), "one that was revoked is not listed");
    check(api_token_list(t, n.sql, 42, true, &all, &count) == 0);
    ok(count == 2 && all[1].id == first.id && llabs(all[1].revoked_ms - now) < 60000,
       "but to those who want all of them");
    close_node(t, &n);
}

static void test_limits(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct made m;
    open_empty(t, &n);
    struct api_token_new new = {.uid = 42, .name = STR("twice"), .scopes = STR("read")};
    check(add(t, &n, &new, &m) == 0);
    is_int(add(t, &n, &new, &m), ERR_EXISTS, "a name is taken");
    new.uid = 43;
    is_int(add(t, &n, &new, &m), 0, "by its user only");
    new.uid = 4711;
    is_int(add(t, &n, &new, &m), ERR_NOT_FOUND, "a user that is not there has none");
    new.uid = 42;
    for (int i = 1; i < API_TOKENS_PER_USER_MAX; i++) {
        new.name = str_printf(task_arena(t), "number %d", i);
        check(add(t, &n, &new, &m) == 0);
    }
    new.name = STR("too many");
    is_int(add(t, &n, &new, &m), ERR_CONFLICT, "fifty are enough");
    check(api_token_revoke(t, n.cache, 42, m.id, NULL) == 0);
    is_int(add(t, &n, &new, &m), 0, "one was revoked, and there is room");
    check(sql_call(t, n.sql, NULL,
                   "UPDATE api_token SET expires = UTC_TIMESTAMP() WHERE name = 'twice'"
                   " AND uid = 42") == 0);
    new.name = STR("twice");
    is_int(add(t, &n, &new, &m), 0, "one has expired, and its name is free");
    for (int i = 0; i < API_TOKENS_KEPT + 20; i++) {
        check(api_token_revoke(t, n.cache, 42, m.id, NULL) == 0);
        check(add(t, &n, &new, &m) == 0);
    }
    is_int(number(t, &n, TOKENS " WHERE uid = 42"), API_TOKENS_PER_USER_MAX + API_TOKENS_KEPT,
           "of those that were revoked the oldest are gone");
    is_int(get(t, &n, m.token), 0, "the living are there");
    close_node(t, &n);
}

static void test_expired(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "short"), cold = make(t, &n, "short too");
#define EXPIRE "UPDATE api_token SET expires = FROM_UNIXTIME(UNIX_TIMESTAMP() + ?), revoked = NULL"
    check(sql_call(t, n.sql, NULL, EXPIRE, sql_int(2)) == 0);
    is_int(get(t, &n, m.token), 0, "it has a moment to live");
    check(task_sleep(t, 2100) == 0);
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "then it has expired, in Redis");
    is_int(get(t, &n, cold.token), ERR_UNAUTHENTICATED, "and in MySQL");
    close_node(t, &n);
}

/* --- revoking --- */

static void test_revoke(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_empty(t, &n);
    open_node(t, &other);
    struct made m = make(t, &n, "gone soon"), stays = make(t, &n, "stays");
    check(get(t, &n, m.token) == 0 && get(t, &other, m.token) == 0);
    is_int(api_token_revoke(t, n.cache, 43, m.id, NULL), ERR_NOT_FOUND, "not by another user");
    is_int(api_token_revoke(t, n.cache, 42, m.id + 100, NULL), ERR_NOT_FOUND,
           "nor one that is not");
    is_int(get(t, &other, m.token), 0, "so it lives");
    struct admin_deed by = {ADMIN_OPERATOR, .action = "user.revoke_token"};
    is_int(api_token_revoke(t, n.cache, 42, m.id, &by), 0, "revoked");
    is_int(get(t, &other, m.token), ERR_UNAUTHENTICATED, "it is dead on the other node at once");
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "and here");
    is_int(number(t, &n, MARKS), 0, "nothing is left to tell");
    is_int(api_token_revoke(t, n.cache, 42, m.id, &by), ERR_NOT_FOUND, "that is done once");
    is_int(number(t, &n,
                  "SELECT COUNT(*) FROM admin_audit WHERE action = 'user.revoke_token' AND"
                  " target_uid = 42 AND details LIKE '%gone soon%'"),
           1, "and noted once");
    is_int(get(t, &n, stays.token), 0, "another lives");
    close_node(t, &other);
    close_node(t, &n);
}

/* Redis comes back with what it had: the token, alive. */
static void test_revoked_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "one"), stays = make(t, &n, "two");
    struct session s;
    check(get(t, &n, m.token) == 0 && get(t, &n, stays.token) == 0);
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("SAVE")) == 0);
    store_redis_kill(&store);
    await_trust(t, &n, false);
    is_int(api_token_get(t, n.tokens, m.token, HERE, &s), 0, "without Redis a token works");
    ok(s.degraded && s.uid == 42 && str_eq(s.scopes, STR("read screen")), "marked degraded");
    is_int(api_token_revoke(t, n.cache, 42, m.id, NULL), 0, "and can be revoked");
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "so it is dead");
    is_int(number(t, &n, MARKS " WHERE uid = 42 AND kind = 'user'"), 1, "its owner is stale");
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
    bool dead = true;
    for (int i = 0; i < 2000 && !(cache_trusts_redis(n.cache) && i > 20); i++) {
        dead = dead && get(t, &n, m.token) == ERR_UNAUTHENTICATED;
        check(task_sleep(t, 2) == 0);
    }
    ok(dead, "it is dead all the time while Redis comes back");
    await_trust(t, &n, true);
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "and when Redis is trusted again");
    is_int(api_token_get(t, n.tokens, stays.token, HERE, &s), 0, "another lives");
    ok(!s.degraded, "in Redis");
    close_node(t, &n);
}

/* A node that has lost its way to Redis, while the others have not. */
static void test_revoked_by_a_lost_node(struct task *t, void *arg)
{
    (void)arg;
    struct node n, lost;
    open_empty(t, &n);
    struct made m = make(t, &n, "one");
    check(get(t, &n, m.token) == 0);
    open_stores(t, &lost, "unix:/nowhere/redis.sock");
    is_int(api_token_revoke(t, lost.cache, 42, m.id, NULL), 0, "it revokes a token");
    is_int(get(t, &lost, m.token), ERR_UNAUTHENTICATED, "for itself at once");
    int64_t began = loop_now_ms(task_loop(t));
    while (loop_now_ms(task_loop(t)) - began < 10000 && get(t, &n, m.token) == 0)
        check(task_sleep(t, 10) == 0);
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "and soon for all");
    close_node(t, &lost);
    close_node(t, &n);
}

/* --- bans --- */

static void test_ban(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    open_empty(t, &n);
    open_node(t, &other);
    struct made m = make(t, &n, "one"), cold = make(t, &n, "never used");
    check(get(t, &n, m.token) == 0 && get(t, &other, m.token) == 0);
    ban(t, &n, true);
    is_int(get(t, &other, m.token), ERR_UNAUTHENTICATED, "a ban holds on every node at once");
    is_int(get(t, &n, cold.token), ERR_UNAUTHENTICATED, "for tokens that Redis has not seen, too");
    ban(t, &n, false);
    is_int(get(t, &other, m.token), 0, "its end lets them in again");
    is_int(get(t, &n, cold.token), 0, "all of them");
    struct user_change ch = {.uid = 42, .part = USER_PASSWORD, .hash = STR("another")};
    check(user_change(t, n.cache, &ch) == 0);
    is_int(get(t, &n, m.token), 0, "a new password changes nothing for them");
    close_node(t, &other);
    close_node(t, &n);
}

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

static int64_t fill_by_hand(struct task *t, struct node *n, struct str token, int64_t version)
{
    const struct str fields[] = {STR("user_id"), STR("42"), STR("username"), STR("Alice"),
                                 STR("scopes"),  STR("x"),  STR("expires"),  STR("0")};
    int64_t done;
    struct arena *a = task_arena(t);
    check(SCRIPT_NUMBER(t, n->redis, session_fill, &done, .session = key_of(t, token),
                        .set = key_user_sessions(a, 42), .owner = key_user_info(a, 42),
                        .sid = sha256_of(t, token), .ms = STR("60000"), .row_time = STR("0"),
                        .version = str_int(a, version), .fields = {fields, 8}) == 0);
    return done;
}

/* A loader that has read the row before the ban, and fills Redis after it. */
static void test_slow_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "one");
    int64_t version = number(t, &n, "SELECT version FROM user_info WHERE uid = 42");
    ban(t, &n, true);
    is_int(fill_by_hand(t, &n, m.token, version), 2, "what was read before a ban is not filled");
    is_int(ask(t, &n, "EXISTS", key_of(t, m.token)), 0, "so it is not there");
    is_int(fill_by_hand(t, &n, m.token, version + 1), 1, "what was read after it is");
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("DEL"), key_of(t, m.token)) == 0);
    ban(t, &n, false);

    /* A change of another kind is no reason to refuse the token: it is read again, and Redis is not
     * filled until the row shows what Redis has heard of. */
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("HSET"), key_user_info(task_arena(t), 42),
                     STR("version"), str_int(task_arena(t), version + 3)) == 0);
    is_int(get(t, &n, m.token), 0, "a token whose user was changed meanwhile works");
    is_int(ask(t, &n, "EXISTS", key_of(t, m.token)), 0, "but is not filled with an old row");
    check(sql_call(t, n.sql, NULL, "UPDATE user_info SET version = version + 1 WHERE uid = 42") ==
          0);
    is_int(get(t, &n, m.token), 0, "the new row");
    is_int(ask(t, &n, "EXISTS", key_of(t, m.token)), 1, "is");
    close_node(t, &n);
}

/* Redis was not told, what was stale has been dropped, and then comes the loader: neither tombstone
 * nor version. The row is dead by the time that Redis has it, so it is looked for once more. */
static void test_slower_loader(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m = make(t, &n, "one");
    struct slow s = {.n = &n, .token = m.token};
    struct group g;
    group_init(&g, task_loop(t));
    check(redis_call(t, n.redis, STR_NULL, NULL, STR("CLIENT"), STR("PAUSE"), STR("700"),
                     STR("WRITE")) == 0);
    check(task_go(&g, "slow", get_slowly, &s) == 0);
    check(task_sleep(t, 300) == 0);
    check(!s.done);
    check(sql_call(t, n.sql, NULL, "UPDATE api_token SET revoked = UTC_TIMESTAMP(3)") == 0);
    check(group_join(t, &g) == 0);
    is_int(s.err, ERR_UNAUTHENTICATED, "the loader notices");
    is_int(ask(t, &n, "EXISTS", key_of(t, m.token)), 0, "and leaves nothing alive in Redis");
    is_int(get(t, &n, m.token), ERR_UNAUTHENTICATED, "the token stays dead");
    close_node(t, &n);
}

/* --- at once --- */

#define AT_ONCE 40

static int64_t calls_of_hgetall(struct task *t, struct node *n)
{
    const struct redis_reply *r;
    check(redis_call(t, n->redis, STR_NULL, &r, STR("INFO"), STR("commandstats")) == 0);
    const char *at = strstr(r->str.p, "cmdstat_hgetall:calls=");
    return at ? strtoll(at + strlen("cmdstat_hgetall:calls="), NULL, 10) : 0;
}

/* While one look waits for Redis, calls come that bring the same token, and one that does not. */
static void test_at_once(struct task *t, void *arg)
{
    (void)arg;
    struct node n, other;
    struct group g;
    struct slow all[AT_ONCE];
    int64_t good = 0;
    open_empty(t, &n);
    open_node(t, &other);
    struct made m = make(t, &n, "one"), second = make(t, &n, "two");
    check(get(t, &n, m.token) == 0 && get(t, &n, second.token) == 0);
    int64_t before = calls_of_hgetall(t, &other);
    check(redis_call(t, other.redis, STR_NULL, NULL, STR("CLIENT"), STR("PAUSE"), STR("300"),
                     STR("ALL")) == 0);
    group_init(&g, task_loop(t));
    for (int i = 0; i < AT_ONCE; i++) {
        all[i] = (struct slow){.n = &n, .token = i == 7 ? second.token : m.token};
        check(task_go(&g, "get", get_slowly, &all[i]) == 0);
        if (i == 0)
            check(task_sleep(t, 20) == 0);
    }
    check(group_join(t, &g) == 0);
    for (int i = 0; i < AT_ONCE; i++)
        good += all[i].err == 0;
    is_int(good, AT_ONCE, "calls that come at once are let in");
    is_int(calls_of_hgetall(t, &other) - before, 3,
           "by one look of the first, one of all that came after it, and one of another token");
    check(api_token_revoke(t, other.cache, 42, m.id, NULL) == 0);
    for (int i = 0; i < AT_ONCE; i++)
        check(task_go(&g, "get", get_slowly, &all[i]) == 0);
    check(group_join(t, &g) == 0);
    good = 0;
    for (int i = 0; i < AT_ONCE; i++)
        good += all[i].err == ERR_UNAUTHENTICATED;
    is_int(good, AT_ONCE - 1, "none of them once it is revoked");
    is_int(all[7].err, 0, "but the other one");
    close_node(t, &other);
    close_node(t, &n);
}

/* --- when it was last used --- */

#define USED                                                                                       \
    "SELECT COUNT(*) FROM api_token WHERE last_used > UTC_TIMESTAMP() - INTERVAL 1 MINUTE AND"     \
    " last_address = "

static void test_last_use(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    struct session s;
    open_empty(t, &n);
    struct made m = make(t, &n, "one"), idle = make(t, &n, "idle");
    (void)idle;
    check(get(t, &n, m.token) == 0);
    is_int(number(t, &n, TOKENS " WHERE last_used IS NOT NULL"), 0, "no call writes it");
    is_int(api_tokens_role(t, n.tokens, NULL), 0, "a role does");
    is_int(number(t, &n, USED "'10.0.0.1'"), 1, "when and from where");
    is_int(number(t, &n, TOKENS " WHERE last_used IS NOT NULL"), 1, "of one that was used");
    check(api_token_get(t, n.tokens, m.token, STR("10.0.0.2"), &s) == 0);
    check(api_tokens_role(t, n.tokens, NULL) == 0);
    is_int(number(t, &n, USED "'10.0.0.2'"), 0, "once a minute at most");
    char longest[200];
    memset(longest, 'f', sizeof longest);
    check(api_token_get(t, n.tokens, idle.token, str_from(longest, sizeof longest), &s) == 0);
    check(api_tokens_role(t, n.tokens, NULL) == 0);
    is_int(number(t, &n, TOKENS " WHERE LENGTH(last_address) = 45"), 1, "an address is cut");
    close_node(t, &n);
}

static void test_last_use_later(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_empty(t, &n);
    struct made m[3] = {make(t, &n, "a"), make(t, &n, "b"), make(t, &n, "c")};
    for (int i = 0; i < 3; i++)
        check(get(t, &n, m[i].token) == 0);
    check(sql_call(t, n.sql, NULL, "RENAME TABLE api_token TO api_token_away") == 0);
    ok(api_tokens_role(t, n.tokens, NULL) < 0, "a round can fail");
    check(sql_call(t, n.sql, NULL, "RENAME TABLE api_token_away TO api_token") == 0);
    is_int(api_tokens_role(t, n.tokens, NULL), 0, "the next one");
    is_int(number(t, &n, USED "'10.0.0.1'"), 3, "has all that the first could not note");
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
    sql_pool_free(p);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    mariadb_start(&server, NULL);
    tap_task(prepare, NULL, true);
    tap_task(test_use, NULL, true);
    tap_task(test_wrong, NULL, true);
    tap_task(test_names, NULL, true);
    tap_task(test_list, NULL, true);
    tap_task(test_limits, NULL, true);
    tap_task(test_expired, NULL, true);
    tap_task(test_revoke, NULL, true);
    tap_task(test_revoked_without_redis, NULL, true);
    tap_task(test_revoked_by_a_lost_node, NULL, true);
    tap_task(test_ban, NULL, true);
    tap_task(test_slow_loader, NULL, true);
    tap_task(test_slower_loader, NULL, true);
    tap_task(test_at_once, NULL, true);
    tap_task(test_last_use, NULL, true);
    tap_task(test_last_use_later, NULL, true);
    mariadb_release(&server);
    store_redis_stop(&store);
    return tap_done();
}
