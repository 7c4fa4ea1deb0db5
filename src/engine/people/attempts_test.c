#include "engine/people/attempts.h"

#include "base/log.h"
#include "base/sha256.h"
#include "engine/store/keys.h"
#include "tests/role.h"
#include "tests/store.h"
#include "tests/tap.h"

static struct store_redis store;
static struct metrics *metrics;

struct fixture {
    struct group group;
    struct redis *redis;
    struct attempts *attempts, *registrations;
    struct attempt last; /* registration from 1.2.3.4 that was counted */
};

#define REGISTRATIONS_MAX 20
#define ADDRESS_MAX       30

static void open_node(struct task *t, struct fixture *f)
{
    group_init(&f->group, task_loop(t));
    f->redis = redis_open(&f->group, &(struct redis_options){.url = store.url_unix, .name = "hot"});
    check(f->redis);
    f->attempts = attempts_new(f->redis, metrics, ADDRESS_MAX);
    f->registrations = attempts_new_registrations(f->redis, metrics, REGISTRATIONS_MAX);
}

static void open_empty(struct task *t, struct fixture *f)
{
    open_node(t, f);
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
}

static void close_node(struct task *t, struct fixture *f)
{
    redis_close(f->redis);
    group_cancel(&f->group);
    check(group_join(t, &f->group) == 0);
    attempts_free(f->attempts);
    attempts_free(f->registrations);
}

static struct attempt who(const char *name, const char *address)
{
    return (struct attempt){.realm = "user", .name = str_of(name), .address = str_of(address)};
}

static int take(struct task *t, struct fixture *f, const char *name, const char *address)
{
    struct attempt w = who(name, address);
    int64_t unused;
    return attempts_take(t, f->attempts, &w, &unused);
}

/* An attempt that was right. */
static int log_in(struct task *t, struct fixture *f, const char *name, const char *address)
{
    struct attempt w = who(name, address);
    int64_t unused;
    int err = attempts_take(t, f->attempts, &w, &unused);
    if (!err)
        attempts_forgive(t, f->attempts, &w);
    return err;
}

/* How many are allowed until one is refused; at most 150. */
static int64_t allowed(struct task *t, struct fixture *f, const char *name, const char *address)
{
    int64_t n = 0;
    while (n < 150 && take(t, f, name, address) == 0)
        n++;
    return n;
}

/* The same, each time from elsewhere or with another name. */
static int64_t allowed_to_name(struct task *t, struct fixture *f, const char *name, int net)
{
    int64_t n = 0;
    while (n < 150 &&
           take(t, f, name, str_printf(task_arena(t), "10.%d.0.%lld", net, (long long)n).p) == 0)
        n++;
    return n;
}

static int64_t allowed_from(struct task *t, struct fixture *f, const char *address,
                            const char *prefix)
{
    int64_t n = 0;
    while (n < 150 &&
           take(t, f, str_printf(task_arena(t), "%s%lld", prefix, (long long)n).p, address) == 0)
        n++;
    return n;
}

static int64_t keys(struct task *t, struct fixture *f)
{
    const struct redis_reply *r;
    check(redis_call(t, f->redis, STR_NULL, &r, STR("DBSIZE")) == 0);
    return r->integer;
}

static struct str now_ms(struct task *t, struct fixture *f)
{
    const struct redis_reply *r;
    check(redis_call(t, f->redis, STR_NULL, &r, STR("TIME")) == 0);
    return str_printf(task_arena(t), "%.*s000", STR_ARG(r->items[0]->str));
}

static struct str name_key(struct task *t, const char *name)
{
    char digest[SHA256_HEX_BYTES];
    sha256_hex(str_of(name), digest);
    return str_dup(task_arena(t), str_of(digest));
}

static void test_limit(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f, other;
    open_empty(t, &f);
    open_node(t, &other);
    is_int(allowed(t, &f, "alice", "1.2.3.4"), ATTEMPTS_MAX, "ten are allowed");
    struct attempt w = who("alice", "1.2.3.4");
    int64_t wait_s = -1;
    is_int(attempts_take(t, f.attempts, &w, &wait_s), ERR_RATE, "the eleventh is refused");
    ok(wait_s >= 295 && wait_s <= 300, "for five minutes: %lld s", (long long)wait_s);
    ok(str_find(str_of(task_error(t)), STR("try again in")) >= 0, "and why: %s", task_error(t));
    is_int(take(t, &other, "alice", "1.2.3.4"), ERR_RATE, "by every node");
    is_int(take(t, &other, "alice", "5.6.7.8"), 0, "from elsewhere the user is not");
    is_int(take(t, &f, "bob", "1.2.3.4"), 0, "nor is another user at the address");
    w.realm = "admin";
    is_int(attempts_take(t, f.attempts, &w, &wait_s), 0, "admins are counted apart");
    close_node(t, &other);
    close_node(t, &f);
}

static void test_subjects(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    is_int(allowed_to_name(t, &f, "alice", 1), ATTEMPTS_NAME_MAX, "a user, from many addresses");
    is_int(allowed_from(t, &f, "1.2.3.4", "x"), ADDRESS_MAX, "many users, from an address");
    is_int(allowed_from(t, &f, "2001:db8::1", "y"), ADDRESS_MAX, "from one of IPv6");
    is_int(take(t, &f, "z", "2001:db8::2:0:0:1"), ERR_RATE, "and from its neighbour");
    is_int(take(t, &f, "z", "2001:db8:0:1::1"), 0, "but not from another network");
    is_int(take(t, &f, "1.2.3.5", "1.2.3.6"), 0, "a name is no address");
    const struct redis_reply *r;
    check(redis_call(t, f.redis, STR_NULL, &r, STR("KEYS"), STR("*alice*")) == 0);
    is_int((int64_t)r->count, 0, "names are not shown");
    check(redis_call(t, f.redis, STR_NULL, &r, STR("KEYS"), STR("*")) == 0);
    size_t mortal = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct redis_reply *ttl;
        struct str key = r->items[i]->str;
        check(redis_call(t, f.redis, key, &ttl, STR("TTL"), key) == 0);
        mortal += ttl->integer != -1;
    }
    ok(r->count > 10 && mortal == 0, "nothing of it can be evicted");
    close_node(t, &f);
}

static void test_forgive(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    for (int i = 0; i < 5; i++)
        check(take(t, &f, "alice", "1.1.1.1") == 0);
    is_int(log_in(t, &f, "alice", "1.1.1.1"), 0, "the right password, after five wrong ones");
    is_int(allowed(t, &f, "alice", "1.1.1.1"), ATTEMPTS_MAX, "forgives what was there");
    is_int(allowed_from(t, &f, "1.1.1.1", "x"), ADDRESS_MAX - 15, "not what the address did");
    is_int(allowed_to_name(t, &f, "alice", 2), ATTEMPTS_NAME_MAX - 15, "nor the name elsewhere");
    check(redis_call(t, f.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    struct attempt w = who("alice", "1.1.1.1");
    int64_t unused;
    check(take(t, &f, "alice", "1.1.1.1") == 0);
    int64_t before = keys(t, &f);
    check(attempts_take(t, f.attempts, &w, &unused) == 0);
    attempts_return(t, f.attempts, &w);
    attempts_return(t, f.attempts, &w);
    is_int(allowed(t, &f, "alice", "1.1.1.1"), ATTEMPTS_MAX - 1,
           "one that was not examined is taken back, once");
    ok(before == keys(t, &f), "and leaves nothing");
    close_node(t, &f);
}

/* A user who has logged in from an address before is let in there, whatever others guess. */
static void test_known(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    check(log_in(t, &f, "alice", "1.1.1.1") == 0);
    allowed_from(t, &f, "1.1.1.1", "x");
    is_int(take(t, &f, "bob", "1.1.1.1"), ERR_RATE, "the address is full");
    is_int(log_in(t, &f, "alice", "1.1.1.1"), 0, "not for the user who is known there");
    allowed_to_name(t, &f, "alice", 3);
    is_int(take(t, &f, "alice", "2.2.2.2"), ERR_RATE, "the name is slowed down");
    is_int(log_in(t, &f, "alice", "1.1.1.1"), 0, "not where it is known");
    is_int(allowed(t, &f, "alice", "1.1.1.1"), ATTEMPTS_MAX,
           "ten guesses are the limit there, too");
    close_node(t, &f);
}

/* A campus of a thousand behind one address. */
static void test_campus(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    attempts_free(f.attempts);
    f.attempts = attempts_new(f.redis, metrics, 2000);
    struct attempt *w = ARENA_ARRAY(task_arena(t), struct attempt, 1000);
    int64_t in = 0, refused = 0, unused;
    for (int i = 0; i < 1000; i++) { /* all at once: none is forgiven before the last is taken */
        w[i] = who(str_printf(task_arena(t), "student%d", i).p, "1.1.1.1");
        in += attempts_take(t, f.attempts, &w[i], &unused) == 0;
        if (i % 20 == 0)
            refused += take(t, &f, "guesser", "1.1.1.1") == ERR_RATE;
    }
    is_int(in, 1000, "a thousand users log in from one address");
    is_int(refused, 40, "while one user guesses fifty times, and is refused after ten");
    for (int i = 0; i < 1000; i++)
        attempts_forgive(t, f.attempts, &w[i]);
    is_int(log_in(t, &f, "late", "1.1.1.1"), 0, "a late one, too");
    is_int(log_in(t, &f, "guesser", "2.2.2.2"), 0, "and the guesser from home");
    close_node(t, &f);
}

/* Beyond a hundred, from anywhere: slower each time, and never shut. */
static void test_slower(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    check(allowed_to_name(t, &f, "alice", 1) == ATTEMPTS_NAME_MAX);
    struct attempt w = who("alice", "3.3.3.3");
    int64_t wait_s = 0;
    is_int(attempts_take(t, f.attempts, &w, &wait_s), ERR_RATE, "after a hundred there is a delay");
    is_int(wait_s, 1, "of a second");
    check(task_sleep(t, 1050) == 0);
    is_int(attempts_take(t, f.attempts, &w, &wait_s), 0, "then one is taken");
    is_int(attempts_take(t, f.attempts, &w, &wait_s), ERR_RATE, "and one only");
    is_int(wait_s, 2, "the next delay is twice as long");
    for (int i = 0; i < 20; i++) {
        struct str key = key_attempts_of(task_arena(t), "user", "name", name_key(t, "alice"));
        check(redis_call(t, f.redis, key, NULL, STR("ZADD"), key, now_ms(t, &f),
                         str_int(task_arena(t), i)) == 0);
    }
    is_int(attempts_take(t, f.attempts, &w, &wait_s), ERR_RATE, "after many more");
    is_int(wait_s, ATTEMPTS_SLOW_MOST_MS / 1000, "it is a minute, and no longer");
    struct attempt local = who("alice", "127.0.0.1");
    is_int(attempts_take(t, f.attempts, &local, &wait_s), 0, "loopback does not wait for others");
    close_node(t, &f);
}

static void test_loopback(struct task *t, void *arg)
{
    static const char *const here[] = {"127.0.0.1", "127.1.2.3", "::1", "unix"};
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    for (int i = 0; i < 4; i++)
        is_int(allowed(t, &f, "alice", here[i]), ATTEMPTS_MAX, "ten at %s", here[i]);
    is_int(allowed_to_name(t, &f, "alice", 1), ATTEMPTS_NAME_MAX,
           "those at the machine do not count elsewhere");
    close_node(t, &f);
}

static void test_unlock(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    allowed(t, &f, "alice", "127.0.0.1");
    allowed_to_name(t, &f, "alice", 1);
    allowed(t, &f, "bob", "127.0.0.1");
    check(take(t, &f, "alice", "2.2.2.2") == ERR_RATE);
    int64_t count;
    is_int(attempts_unlock(t, f.redis, "user", STR("alice"), &count), 0, "unlocked");
    is_int(count, 102, "the name, and its pairs with addresses");
    is_int(take(t, &f, "alice", "127.0.0.1"), 0, "it may try again here");
    is_int(take(t, &f, "alice", "2.2.2.2"), 0, "and there");
    is_int(take(t, &f, "bob", "127.0.0.1"), ERR_RATE, "another name may not");
    check(attempts_unlock(t, f.redis, "admin", STR("bob"), &count) == 0);
    is_int(count, 0, "an admin of that name is another account");
    is_int(take(t, &f, "bob", "127.0.0.1"), ERR_RATE, "so the user still waits");
    close_node(t, &f);
}

struct many {
    struct fixture *f;
    int64_t passed, refused;
};

static void try_one(struct task *t, void *arg)
{
    struct many *m = arg;
    int err = take(t, m->f, "alice", "1.2.3.4");
    m->passed += err == 0;
    m->refused += err == ERR_RATE;
}

static void go_many(struct task *t, struct many *m, int count)
{
    struct group g;
    group_init(&g, task_loop(t));
    for (int i = 0; i < count; i++)
        check(task_go(&g, "try", try_one, m) == 0);
    check(group_join(t, &g) == 0);
}

static void test_at_once(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    struct many m = {.f = &f};
    go_many(t, &m, 30);
    is_int(m.passed, ATTEMPTS_MAX, "of thirty at once ten pass");
    is_int(m.refused, 20, "and twenty do not");
    close_node(t, &f);
}

static void test_window(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    attempts_set_window(f.attempts, 3000);
    for (int i = 0; i < 4; i++)
        check(take(t, &f, "alice", "1.1.1.1") == 0);
    check(task_sleep(t, 1800) == 0);
    is_int(allowed(t, &f, "alice", "1.1.1.1"), ATTEMPTS_MAX - 4, "all that the window holds");
    struct attempt w = who("alice", "1.1.1.1");
    int64_t wait_s = 0;
    check(attempts_take(t, f.attempts, &w, &wait_s) == ERR_RATE);
    ok(wait_s == 1 || wait_s == 2, "there is room when the first have left");
    check(task_sleep(t, 1500) == 0);
    is_int(allowed(t, &f, "alice", "1.1.1.1"), 4, "for what has left it, not more");
    struct str key = key_attempts_of(task_arena(t), "user", "address", STR("1.1.1.1"));
    const struct redis_reply *r;
    check(redis_call(t, f.redis, key, &r, STR("ZCARD"), key) == 0);
    is_int(r->integer, ATTEMPTS_MAX, "and no more is kept");

    role_in(&f.group, attempts_role, f.attempts, 100);
    for (int i = 0; i < 250; i++)
        check(take(t, &f, "bob", str_printf(task_arena(t), "9.9.9.%d", i).p) == 0 || i >= 10);
    ok(keys(t, &f) > 10, "there is something to sweep");
    for (int i = 0; i < 800 && keys(t, &f) > 0; i++)
        check(task_sleep(t, 10) == 0);
    is_int(keys(t, &f), 0, "the sweeper leaves nothing behind");
    close_node(t, &f);
}

/* More subjects than one script takes, some of which have begun anew. */
static void test_sweep(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    attempts_set_window(f.attempts, 2500);
    for (int i = 0; i < 250; i++)
        check(take(t, &f, str_printf(task_arena(t), "n%d", i).p,
                   str_printf(task_arena(t), "9.9.9.%d", i).p) == 0);
    check(task_sleep(t, 2000) == 0);
    check(take(t, &f, "n7", "9.9.9.7") == 0);
    role_in(&f.group, attempts_role, f.attempts, 100);
    for (int i = 0; i < 150 && keys(t, &f) > 4; i++)
        check(task_sleep(t, 10) == 0);
    is_int(keys(t, &f), 4, "what is in use stays, with the index");
    const struct redis_reply *r;
    check(redis_call(t, f.redis, key_attempts, &r, STR("ZCARD"), key_attempts) == 0);
    is_int(r->integer, 3, "which has nothing else");
    close_node(t, &f);
}

static void test_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    attempts_set_window(f.attempts, 3000);
    store_redis_kill(&store);
    struct many m = {.f = &f};
    go_many(t, &m, 30);
    is_int(m.passed, ATTEMPTS_MAX, "without Redis a node counts by itself");
    is_int(m.refused, 20, "and refuses");
    is_int(take(t, &f, "alice", "2.2.2.2"), 0, "the user at that address only");
    is_int(log_in(t, &f, "bob", "1.2.3.4"), 0, "another user is let in there");
    is_int(allowed_from(t, &f, "1.2.3.4", "x"), ADDRESS_MAX - ATTEMPTS_MAX,
           "the address has its own limit");
    is_int(allowed_to_name(t, &f, "alice", 1), ATTEMPTS_NAME_MAX - ATTEMPTS_MAX - 1,
           "and so has the name");
    check(task_sleep(t, 3100) == 0);
    is_int(allowed(t, &f, "alice", "1.2.3.4"), ATTEMPTS_MAX, "its window moves on, too");

    int64_t told = 0;
    int err = 0;
    attempts_set_window(f.attempts, ATTEMPTS_WINDOW_MS);
    while (told < ATTEMPTS_LOCAL_MAX && !err) {
        struct task_scope s = task_scope(t);
        err = take(t, &f, str_printf(task_arena(t), "n%lld", (long long)told).p,
                   str_printf(task_arena(t), "10.%lld.%lld.1", (long long)(told / 250),
                              (long long)(told % 250))
                       .p);
        task_scope_end(t, s);
        told++;
    }
    is_int(err, ERR_BUSY, "it cannot tell everybody apart");
    ok(told > ATTEMPTS_LOCAL_MAX / 3 - 200, "but many: %lld", (long long)told);
    close_node(t, &f);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

/* --- registrations --- */

static int sign_up(struct task *t, struct fixture *f, const char *address)
{
    struct attempt w = {.realm = "registration", .address = str_of(address)};
    int64_t unused;
    int err = attempts_take(t, f->registrations, &w, &unused);
    if (!err && strcmp(address, "1.2.3.4") == 0)
        f->last = w;
    return err;
}

static int64_t signed_up(struct task *t, struct fixture *f, const char *address)
{
    int64_t n = 0;
    while (n < 150 && sign_up(t, f, address) == 0)
        n++;
    return n;
}

static void take_back(struct task *t, struct fixture *f)
{
    attempts_return(t, f->registrations, &f->last);
}

static void test_registrations(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f, other;
    open_empty(t, &f);
    open_node(t, &other);
    is_int(signed_up(t, &f, "1.2.3.4"), REGISTRATIONS_MAX, "twenty from an address");
    struct attempt w = {.realm = "registration", .address = STR("1.2.3.4")};
    int64_t wait_s = -1;
    is_int(attempts_take(t, other.registrations, &w, &wait_s), ERR_RATE, "not one more, anywhere");
    ok(wait_s > 3590 && wait_s <= 3600, "for an hour: %lld s", (long long)wait_s);
    ok(str_find(str_of(task_error(t)), STR("registrations")) >= 0, "and why: %s", task_error(t));
    is_int(sign_up(t, &f, "1.2.3.5"), 0, "another address may");
    is_int(allowed(t, &f, "alice", "1.2.3.4"), ATTEMPTS_MAX, "log-ins are counted apart");
    take_back(t, &f);
    is_int(signed_up(t, &other, "1.2.3.4"), 1, "one that was not hashed is taken back");

    attempts_set_window(f.attempts, 500);
    role_in(&f.group, attempts_role, f.attempts, 100);
    const struct redis_reply *r;
    for (int i = 0; i < 500; i++) {
        check(redis_call(t, f.redis, key_attempts, &r, STR("EXISTS"), key_attempts) == 0);
        if (r->integer == 0)
            break;
        check(task_sleep(t, 10) == 0);
    }
    is_int(r->integer, 0, "log-ins are swept after their window");
    is_int(sign_up(t, &f, "1.2.3.4"), ERR_RATE, "registrations have a longer one");
    attempts_set_window(f.registrations, 500);
    role_in(&f.group, attempts_role, f.registrations, 100);
    for (int i = 0; i < 500 && keys(t, &f) > 0; i++)
        check(task_sleep(t, 10) == 0);
    is_int(keys(t, &f), 0, "and are swept then");
    close_node(t, &other);
    close_node(t, &f);
}

static void test_registrations_without_redis(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    store_redis_kill(&store);
    is_int(signed_up(t, &f, "1.2.3.4"), REGISTRATIONS_MAX, "without Redis: twenty of a node");
    is_int(sign_up(t, &f, "1.2.3.5"), 0, "another address may");
    is_int(allowed(t, &f, "alice", "1.2.3.4"), ATTEMPTS_MAX, "log-ins are counted apart");
    take_back(t, &f);
    is_int(signed_up(t, &f, "1.2.3.4"), 1, "one that was not hashed is taken back");
    close_node(t, &f);
    store_redis_spawn(&store, NULL);
    store_redis_await(&store);
}

static void test_canceled(struct task *t, void *arg)
{
    struct many *m = arg;
    task_cancel(t);
    m->passed = take(t, m->f, "alice", "1.2.3.4");
}

static void test_cancel(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    open_empty(t, &f);
    struct many m = {.f = &f};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "canceled", test_canceled, &m) == 0);
    check(group_join(t, &g) == 0);
    is_int(m.passed, ERR_CANCELED, "who is cancelled does not try");
    close_node(t, &f);
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    store_redis_start(&store, NULL);
    metrics = metrics_open(-1, 1, 0);
    tap_task(test_limit, NULL, true);
    tap_task(test_subjects, NULL, true);
    tap_task(test_forgive, NULL, true);
    tap_task(test_known, NULL, true);
    tap_task(test_campus, NULL, true);
    tap_task(test_slower, NULL, true);
    tap_task(test_loopback, NULL, true);
    tap_task(test_unlock, NULL, true);
    tap_task(test_at_once, NULL, true);
    tap_task(test_window, NULL, true);
    tap_task(test_sweep, NULL, true);
    tap_task(test_without_redis, NULL, true);
    tap_task(test_registrations, NULL, true);
    tap_task(test_registrations_without_redis, NULL, true);
    tap_task(test_cancel, NULL, true);
    metrics_close(metrics);
    store_redis_stop(&store);
    return tap_done();
}
