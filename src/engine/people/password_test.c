#include "engine/people/password.h"

#include <unistd.h>

#include "loop/offload.h"
#include "tests/tap.h"

static bool right(struct task *t, struct passwords *p, struct str password, struct str hash)
{
    bool yes = false;
    check(password_verify(t, p, password, hash, &yes) == 0);
    return yes;
}

static void test_hash(struct task *t, void *arg)
{
    (void)arg;
    struct passwords *p = passwords_new();
    struct str one, two;
    is_int(password_hash(t, p, STR("correct horse"), &one), 0, "a password is hashed");
    ok(one.n == 60 && str_starts(one, STR("$2b$12$")), "as others do: %.*s", STR_ARG(one));
    check(password_hash(t, p, STR("correct horse"), &two) == 0);
    ok(!str_eq(one, two), "never twice alike");
    ok(right(t, p, STR("correct horse"), one), "it is right");
    ok(!right(t, p, STR("correct horsf"), one), "another is not");
    passwords_free(p);
}

/* Of crypt_blowfish's and jBCrypt's own tests, of Apache's htpasswd, of Python. */
static void test_others(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        const char *password, *hash;
    } known[] = {
        {"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"},
        {"", "$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s."},
        {"correct horse", "$2y$05$6BG848y/OeqLhlCmhDwMo.TvBaFmORUrkP9YxoZwP//S1X9AwOvJ."},
        {"correct horse", "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"},
        {"Z\xc3\xbcrich\xc3\xbf", "$2y$05$abcdefghijklmnopqrstuupkITqgumk60hz4Ssj7WHrlGt3cAGYn2"},
    };
    struct passwords *p = passwords_new();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        ok(right(t, p, str_of(known[i].password), str_of(known[i].hash)), "%s", known[i].hash);
        ok(!right(t, p, STR("wrong"), str_of(known[i].hash)), "and with a wrong password");
    }
    passwords_free(p);
}

static void test_malformed(struct task *t, void *arg)
{
    (void)arg;
    static const struct str bad[] = {
        {"", 0},
        {"*", 1},
        {"plain text", 10},
        {"$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy", 59},
        {"$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2 ", 61},
        {"$2x$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", 60},
        {"$2b$5$0abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", 60},
        {"$2b$17$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", 60},
        {"$2b$31$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", 60},
        {"$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3l$y2", 60},
        {"$2\0$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", 60},
        {"$1$abcdefgh$irWbblnpmw.5z7wgBnprh0", 34},
    };
    struct passwords *p = passwords_new();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(!right(t, p, STR("correct horse"), bad[i]), "no hash: %.*s", STR_ARG(bad[i]));
    is_int((int64_t)passwords_hashed(p), sizeof bad / sizeof bad[0], "each took its time");
    passwords_free(p);
}

static void test_limits(struct task *t, void *arg)
{
    (void)arg;
    struct passwords *p = passwords_new();
    struct str hash = STR("$2b$05$abcdefghijklmnopqrstuujf8SX2ahXLwp9w/B.Y5XdysS6yR576q");
    char xs[600];
    memset(xs, 'x', sizeof xs);
    ok(right(t, p, str_from(xs, 72), hash), "72 bytes");
    ok(!right(t, p, str_from(xs, 71), hash), "are not 71");
    ok(!right(t, p, str_from(xs, 73), hash), "but not one byte more");
    ok(!right(t, p, str_from(xs, 600), hash), "nor many");
    struct str none = STR("untouched");
    is_int(password_hash(t, p, str_from(xs, 73), &none), ERR_INVALID, "but none is made of them");
    is_int(password_hash(t, p, STR("abc\0def"), &none), ERR_INVALID, "nor of one with a NUL");
    is_str(none, STR("untouched"), "*hash is left alone");
    struct str empty = STR("$2b$05$abcdefghijklmnopqrstuu0oImNDIy4flhldV9YqunRgBAePKmw7m");
    ok(right(t, p, STR(""), empty), "an empty password is one");
    ok(!right(t, p, STR("\0secret"), empty), "one that begins with a NUL is another");
    struct str horse = STR("$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e");
    ok(!right(t, p, STR("correct horse\0"), horse), "and one that ends with a NUL");
    passwords_free(p);
}

static int64_t time_of(struct task *t, struct passwords *p, struct str password, struct str hash)
{
    int64_t began = loop_now_us(task_loop(t));
    ok(!right(t, p, password, hash), "not right");
    return loop_now_us(task_loop(t)) - began;
}

static void test_unknown_user(struct task *t, void *arg)
{
    (void)arg;
    struct passwords *p = passwords_new();
    struct str hash = STR("$2b$12$abcdefghijklmnopqrstuuFDJRuYeKkCzo3Wy7h8SxhBSHBAHiPK2");
    int64_t wrong = time_of(t, p, STR("wrong"), hash);
    is_int((int64_t)passwords_hashed(p), 1, "a wrong password is hashed");
    int64_t unknown = time_of(t, p, STR("wrong"), STR_NULL);
    is_int((int64_t)passwords_hashed(p), 2, "so is that of an unknown user");
    int64_t nul = time_of(t, p, STR("wr\0ng"), hash);
    is_int((int64_t)passwords_hashed(p), 3, "and one that cannot be right");
    ok(unknown > wrong / 4 && unknown < wrong * 4 && nul > wrong / 4,
       "all take about as long: %lld, %lld, %lld us", (long long)wrong, (long long)unknown,
       (long long)nul);
    passwords_free(p);
}

/* --- many at once --- */

struct crowd {
    struct passwords *passwords;
    size_t busy, canceled, done;
    size_t order[8]; /* in which they were done */
};
struct one {
    struct crowd *crowd;
    size_t number;
};

static void try_one(struct task *t, void *arg)
{
    struct one *o = arg;
    struct crowd *c = o->crowd;
    bool yes;
    int err = password_verify(t, c->passwords, STR("x"), STR_NULL, &yes);
    c->busy += err == ERR_BUSY;
    c->canceled += err == ERR_CANCELED;
    if (err == 0 && c->done < 8)
        c->order[c->done] = o->number;
    c->done += err == 0;
}

static void test_queue(struct task *t, void *arg)
{
    (void)arg;
    struct crowd c = {.passwords = passwords_new()};
    struct group g;
    group_init(&g, task_loop(t));
    size_t count = PASSWORD_WAITING_MAX + 1 + 5;
    struct one *ones = ARENA_ARRAY(task_arena(t), struct one, count);
    for (size_t i = 0; i < count; i++) {
        ones[i] = (struct one){.crowd = &c, .number = i};
        check(task_go(&g, "try", try_one, &ones[i]) == 0);
    }
    while (c.done < 2)
        check(task_sleep(t, 10) == 0);
    is_int((int64_t)c.busy, 5, "what does not fit into the queue is refused at once");
    ok(c.order[0] == 0 && c.order[1] == 1, "first come, first served");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    is_int((int64_t)(c.canceled + c.done + c.busy), (int64_t)count, "the others can be cancelled");
    ok(c.done <= 4, "at once");
    bool yes = true;
    is_int(password_verify(t, c.passwords, STR("x"), STR_NULL, &yes), 0,
           "then there is room again");
    passwords_free(c.passwords);
}

static void register_one(struct task *t, void *arg)
{
    struct crowd *c = arg;
    struct str hash;
    int err = password_hash_new(t, c->passwords, STR("correct horse"), &hash);
    c->busy += err == ERR_BUSY;
    c->canceled += err == ERR_CANCELED;
    c->done += err == 0;
}

static void test_lanes(struct task *t, void *arg)
{
    (void)arg;
    struct passwords *p = passwords_new();
    struct crowd strangers = {.passwords = p}, users = {.passwords = p};
    struct group g;
    group_init(&g, task_loop(t));
    for (size_t i = 0; i < 1 + PASSWORD_NEW_WAITING_MAX + 30; i++)
        check(task_go(&g, "register", register_one, &strangers) == 0);
    struct one ones[PASSWORD_WAITING_MAX + 5];
    for (size_t i = 0; i < PASSWORD_WAITING_MAX + 5; i++) {
        ones[i] = (struct one){.crowd = &users, .number = i};
        check(task_go(&g, "try", try_one, &ones[i]) == 0);
    }
    check(task_sleep(t, 1) == 0);
    is_int((int64_t)strangers.busy, 30, "registrations fill their own places");
    is_int((int64_t)users.busy, 5, "and leave all others to log-ins");
    while (strangers.done < 2)
        check(task_sleep(t, 10) == 0);
    strangers.busy = 0;
    check(task_go(&g, "register", register_one, &strangers) == 0);
    check(task_sleep(t, 1) == 0);
    is_int((int64_t)strangers.busy, 0, "a queue full of log-ins has room for a registration");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    passwords_free(p);
}

static void note_thread(void *arg)
{
    *(int *)arg = nice(0);
}

static void test_responsive(struct task *t, void *arg)
{
    (void)arg;
    struct crowd c = {.passwords = passwords_new()};
    struct group g;
    group_init(&g, task_loop(t));
    struct one ones[4];
    for (size_t i = 0; i < 4; i++) {
        ones[i] = (struct one){.crowd = &c, .number = i};
        check(task_go(&g, "try", try_one, &ones[i]) == 0);
    }
    int64_t ticks = 0, jobs = 0, its_nice = 0;
    while (c.done < 4) {
        check(task_sleep(t, 5) == 0);
        ticks++;
        int n = 0;
        if (c.done < 3) {
            check(offload(t, note_thread, &n) == 0);
            jobs++;
            its_nice = n;
        }
    }
    ok(ticks >= 40, "the loop turns while passwords are hashed: %lld times", (long long)ticks);
    ok(jobs >= 20, "a helper thread is free for others: %lld times", (long long)jobs);
    int64_t back = nice(0) + 5;
    is_int(its_nice, back < 19 ? back : 19, "helper threads step back");
    check(group_join(t, &g) == 0);
    passwords_free(c.passwords);
}

int main(void)
{
    tap_task(test_hash, NULL, true);
    tap_task(test_others, NULL, true);
    tap_task(test_malformed, NULL, true);
    tap_task(test_limits, NULL, true);
    tap_task(test_unknown_user, NULL, true);
    tap_task(test_queue, NULL, true);
    tap_task(test_lanes, NULL, true);
    tap_task(test_responsive, NULL, true);
    return tap_done();
}
