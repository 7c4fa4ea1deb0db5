/* The client against a real server that stops, dies, loads, becomes a replica or refuses logins. */
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "loop/timer.h"
#include "tests/tap.h"
#include "wire/redis/redis_harness.h"

static void open_and_ping(struct task *t, struct fixture *f, struct redis_options o)
{
    open_with(t, f, o);
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0);
}

static bool comes_up(struct task *t, struct redis *r, int64_t within_ms)
{
    int64_t until = loop_now_ms(task_loop(t)) + within_ms;
    while (!redis_up(r) && loop_now_ms(task_loop(t)) < until)
        check(task_sleep(t, 5) == 0);
    return redis_up(r);
}

static bool goes_down(struct task *t, struct redis *r, int64_t within_ms)
{
    int64_t until = loop_now_ms(task_loop(t)) + within_ms;
    while (redis_up(r) && loop_now_ms(task_loop(t)) < until)
        check(task_sleep(t, 5) == 0);
    return !redis_up(r);
}

/* One call on a task of its own. */
struct call {
    struct redis *redis;
    struct str command, word;
    int64_t deadline_ms; /* 0: none */
    int err;
    int64_t took_ms;
    bool ended;
    struct str reply; /* the caller frees it */
};

static struct call call_of(struct redis *r, struct str command, struct str word)
{
    return (struct call){.redis = r, .command = command, .word = word};
}

static void make_call(struct task *t, void *arg)
{
    struct call *c = arg;
    const struct redis_reply *reply;
    int64_t start = loop_now_ms(task_loop(t));
    if (c->deadline_ms)
        task_deadline(t, c->deadline_ms);
    c->err = redis_call(t, c->redis, STR_NULL, &reply, c->command, c->word);
    c->took_ms = loop_now_ms(task_loop(t)) - start;
    if (c->err == 0 && reply->str.p)
        c->reply = str_from(memcpy(malloc(reply->str.n), reply->str.p, reply->str.n), reply->str.n);
    c->ended = true;
}

struct script_call {
    struct redis *redis;
    const struct redis_script *script;
    int err;
};

static void run_script(struct task *t, void *arg)
{
    struct script_call *c = arg;
    c->err = redis_script_run(t, c->redis, c->script, STR_NULL, 0, 0, NULL, NULL);
}

static void go(struct group *g, struct call *c)
{
    check(task_go(g, "call", make_call, c) == 0);
}

static bool answered(struct call *c, struct str with)
{
    bool same = c->err == 0 && str_eq(c->reply, with);
    free((char *)(uintptr_t)c->reply.p);
    c->reply = STR_NULL;
    return same;
}

static bool between(int64_t v, int64_t low, int64_t high)
{
    return v >= low && v <= high;
}

static void stopped_server(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){0});
    struct group g;
    group_init(&g, task_loop(t));
    kill(f->store.pid, SIGSTOP);
    struct call hasty = call_of(f->redis, STR("ECHO"), STR("hasty"));
    hasty.deadline_ms = 150;
    struct call patient = call_of(f->redis, STR("ECHO"), STR("patient"));
    struct call canceled = call_of(f->redis, STR("ECHO"), STR("canceled"));
    struct group g2;
    group_init(&g2, task_loop(t));
    go(&g, &hasty);
    go(&g2, &canceled);
    go(&g, &patient);
    check(task_sleep(t, 50) == 0);
    group_cancel(&g2);
    check(group_join(t, &g2) == 0);
    is_int(canceled.err, ERR_CANCELED, "a cancelled task stops waiting");
    ok(canceled.took_ms < 150, "at once");
    check(task_sleep(t, 300) == 0);
    ok(hasty.ended && hasty.err == ERR_TIMEOUT, "a deadline ends the wait");
    ok(between(hasty.took_ms, 140, 340), "in time (%lld ms)", (long long)hasty.took_ms);
    ok(!patient.ended, "a call with time left waits on");
    kill(f->store.pid, SIGCONT);
    check(group_join(t, &g) == 0);
    ok(answered(&patient, STR("patient")), "and gets its own reply, not those given up");
    struct call later = call_of(f->redis, STR("ECHO"), STR("later"));
    go(&g, &later);
    check(group_join(t, &g) == 0);
    ok(answered(&later, STR("later")), "so do those that come later");
    is_int((int64_t)redis_epoch(f->redis), 1, "over the same connection");
    close_redis(t, f);
}

static void sends_nothing_late(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){0});
    struct group g;
    group_init(&g, task_loop(t));
    group_cancel(&g);
    struct call canceled = call_of(f->redis, STR("INCR"), STR("late"));
    go(&g, &canceled);
    check(group_join(t, &g) == 0);
    is_int(canceled.err, ERR_CANCELED, "a task cancelled before");
    int64_t old = task_deadline(t, 0);
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("INCR"), STR("late")), ERR_TIMEOUT,
           "and one out of time");
    task_deadline_restore(t, old);
    const struct redis_reply *reply;
    check(redis_call(t, f->redis, STR_NULL, &reply, STR("EXISTS"), STR("late")) == 0);
    is_int(reply->integer, 0, "send nothing");
    close_redis(t, f);
}

static void dead_connection(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){.command_ms = 600, .connect_ms = 500});
    struct group g;
    group_init(&g, task_loop(t));
    kill(f->store.pid, SIGSTOP);
    struct call first = call_of(f->redis, STR("ECHO"), STR("first"));
    struct call second = call_of(f->redis, STR("ECHO"), STR("second"));
    go(&g, &first);
    check(task_sleep(t, 500) == 0);
    go(&g, &second);
    check(group_join(t, &g) == 0);
    is_int(first.err, ERR_TIMEOUT, "no answer within command_ms");
    ok(between(first.took_ms, 590, 900), "in time (%lld ms)", (long long)first.took_ms);
    is_int(second.err, ERR_UNCERTAIN, "then the connection is given up");
    ok(between(second.took_ms, 100, 550), "soon (%lld ms)", (long long)second.took_ms);
    ok(!redis_up(f->redis), "it is down");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE,
           "and calls fail at once");
    check(task_sleep(t, 600) == 0);
    ok(!redis_up(f->redis), "a server that accepts but does not speak is not up");
    kill(f->store.pid, SIGCONT);
    ok(comes_up(t, f->redis, 5000), "reconnected");
    is_int((int64_t)redis_epoch(f->redis), 2, "a new epoch");

    kill(f->store.pid, SIGSTOP);
    struct call hasty = call_of(f->redis, STR("ECHO"), STR("hasty"));
    hasty.deadline_ms = 20;
    go(&g, &hasty);
    check(group_join(t, &g) == 0);
    ok(goes_down(t, f->redis, 2000), "also when all calls for the replies due have given up");
    kill(f->store.pid, SIGCONT);
    close_redis(t, f);
}

/* The error says whether a command can have run. */
static void sent_or_not(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){0});
    struct group g;
    group_init(&g, task_loop(t));
    kill(f->store.pid, SIGSTOP);
    size_t n = 4 * 1024 * 1024; /* more than a socket takes */
    char *big = calloc(1, n);
    struct call small = call_of(f->redis, STR("ECHO"), STR("small"));
    struct call large[5];
    go(&g, &small);
    for (int i = 0; i < 5; i++) {
        large[i] = call_of(f->redis, STR("ECHO"), str_from(big, n));
        go(&g, &large[i]);
    }
    check(task_sleep(t, 50) == 0);
    store_redis_kill(&f->store);
    check(group_join(t, &g) == 0);
    is_int(small.err, ERR_UNCERTAIN, "sent, so uncertain");
    bool sure = true;
    for (int i = 0; i < 5; i++)
        sure &= large[i].err == ERR_UNAVAILABLE;
    ok(sure, "not sent whole, so surely not run");

    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, f->redis);
    redis_batch_add(&b, STR_NULL, STR("PING"));
    is_int(redis_batch_run(&b, &replies), ERR_UNAVAILABLE, "a batch while it is down");
    store_redis_spawn(&f->store, NULL);
    ok(comes_up(t, f->redis, 5000), "up again");
    kill(f->store.pid, SIGSTOP);
    struct timer killer;
    timer_init(&killer, task_loop(t), (void (*)(void *))store_redis_kill, &f->store);
    timer_set(&killer, loop_now_ms(task_loop(t)) + 200);
    redis_batch_add(&b, STR_NULL, STR("PING"));
    redis_batch_add(&b, STR_NULL, STR("ECHO"), str_from(big, n));
    is_int(redis_batch_run(&b, &replies), ERR_UNCERTAIN, "a batch sent in part may have run");
    free(big);
    close_redis(t, f);
}

struct load {
    struct redis *redis;
    int n;
    bool *stop;
    int64_t done, unavailable, uncertain, other;
};

static void count_up(struct task *t, void *arg)
{
    struct load *l = arg;
    while (!*l->stop) {
        struct task_scope scope = task_scope(t);
        struct str key = str_printf(task_arena(t), "count:%d", l->n);
        int err = redis_call(t, l->redis, key, NULL, STR("INCR"), key);
        task_scope_end(t, scope);
        l->done += err == 0;
        l->unavailable += err == ERR_UNAVAILABLE;
        l->uncertain += err == ERR_UNCERTAIN;
        l->other += err && err != ERR_UNAVAILABLE && err != ERR_UNCERTAIN;
        if (err)
            check(task_sleep(t, 3) == 0);
    }
}

static void check_counts(struct task *t, struct redis *r, const struct load *loads, int n)
{
    bool exact = true;
    int64_t done = 0, unavailable = 0, uncertain = 0, other = 0;
    for (int i = 0; i < n; i++) {
        const struct redis_reply *reply;
        struct str key = str_printf(task_arena(t), "count:%d", i);
        check(redis_call(t, r, key, &reply, STR("GET"), key) == 0);
        int64_t v = atoll(reply->str.p);
        exact &= between(v, loads[i].done, loads[i].done + loads[i].uncertain);
        done += loads[i].done;
        unavailable += loads[i].unavailable;
        uncertain += loads[i].uncertain;
        other += loads[i].other;
    }
    ok(exact, "what was confirmed is there; the rest was called uncertain");
    ok(done > 1000 && unavailable > 0 && uncertain > 0,
       "%lld done, %lld unavailable, %lld uncertain", (long long)done, (long long)unavailable,
       (long long)uncertain);
    is_int(other, 0, "no other errors");
}

/* Not everysec: that puts off writing, but not replying, while the disk is slow. */
static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};

static void killed_under_load(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){0});
    struct load loads[256];
    struct group g;
    bool stop = false;
    group_init(&g, task_loop(t));
    for (int i = 0; i < 256; i++) {
        loads[i] = (struct load){f->redis, i, &stop, 0, 0, 0, 0};
        check(task_go(&g, "load", count_up, &loads[i]) == 0);
    }
    for (int round = 0; round < 3; round++) {
        check(task_sleep(t, 300) == 0);
        char run_id[41];
        memcpy(run_id, redis_run_id(f->redis).p, 40);
        uint64_t epoch = redis_epoch(f->redis);
        if (round == 1) { /* with commands sent that it will not answer */
            kill(f->store.pid, SIGSTOP);
            check(task_sleep(t, 20) == 0);
        }
        store_redis_kill(&f->store);
        check(task_sleep(t, 100) == 0);
        ok(!redis_up(f->redis) && redis_run_id(f->redis).n == 0, "killed: down, no run id");
        store_redis_spawn(&f->store, durable);
        ok(comes_up(t, f->redis, 5000), "restarted: up by itself");
        is_int((int64_t)redis_epoch(f->redis), (int64_t)epoch + 1, "in a new epoch");
        ok(redis_run_id(f->redis).n == 40 && memcmp(redis_run_id(f->redis).p, run_id, 40) != 0,
           "with a new run id");
    }
    check(task_sleep(t, 300) == 0);
    stop = true;
    int64_t old = task_deadline(t, 10000);
    is_int(group_join(t, &g), 0, "no task hangs");
    task_deadline_restore(t, old);
    check_counts(t, f->redis, loads, 256);
    is_int(
        *metric(f->metrics, METRIC_COUNTER, "millrace_redis_reconnects_total", "name=\"hot\"", ""),
        3, "three reconnects");
    close_redis(t, f);
}

static void full_pipeline(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){.waiting_max = 10});
    struct group g;
    group_init(&g, task_loop(t));
    kill(f->store.pid, SIGSTOP);
    struct call calls[10];
    for (int i = 0; i < 10; i++) {
        calls[i] = call_of(f->redis, STR("ECHO"), STR("one of ten"));
        go(&g, &calls[i]);
    }
    check(task_sleep(t, 20) == 0);
    int64_t *waiting =
        metric(f->metrics, METRIC_GAUGE, "millrace_redis_waiting", "name=\"hot\"", "");
    is_int(*waiting, 10, "ten commands wait");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_BUSY,
           "the eleventh is refused");
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, f->redis);
    redis_batch_add(&b, STR_NULL, STR("PING"));
    is_int(redis_batch_run(&b, &replies), ERR_BUSY, "a batch too");
    kill(f->store.pid, SIGCONT);
    check(group_join(t, &g) == 0);
    bool all = true;
    for (int i = 0; i < 10; i++)
        all &= answered(&calls[i], STR("one of ten"));
    ok(all, "the ten are answered");
    is_int(*waiting, 0, "none waits any more");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), 0, "and there is room again");
    close_redis(t, f);
}

/* A server that does not read must not fill the memory of the client. */
static void full_buffer(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){.command_ms = 60000});
    struct group g;
    group_init(&g, task_loop(t));
    kill(f->store.pid, SIGSTOP);
    size_t n = REDIS_COMMAND_BYTES_MAX - 1024;
    char *big = calloc(1, n);
    struct call calls[3];
    for (int i = 0; i < 3; i++) {
        calls[i] = call_of(f->redis, STR("ECHO"), str_from(big, n));
        go(&g, &calls[i]);
    }
    check(task_sleep(t, 20) == 0);
    ok(!calls[0].ended && !calls[1].ended, "two commands of 64 MB wait");
    is_int(calls[2].err, ERR_BUSY, "the third is refused");
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    free(big);
    close_redis(t, f);
}

static void two_handles(struct task *t, void *arg)
{
    struct fixture *f = arg, other = {.metrics = f->metrics};
    store_redis_start(&other.store, NULL);
    open_and_ping(t, f, (struct redis_options){0});
    open_and_ping(t, &other, (struct redis_options){.waiting_max = 5});
    struct group g;
    group_init(&g, task_loop(t));
    kill(other.store.pid, SIGSTOP);
    struct call slow = call_of(other.redis, STR("ECHO"), STR("slow"));
    go(&g, &slow);
    bool fine = true;
    for (int i = 0; i < 100; i++)
        fine &= redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0;
    ok(fine && !slow.ended, "one handle works while the other hangs");
    store_redis_kill(&other.store);
    check(group_join(t, &g) == 0);
    is_int(slow.err, ERR_UNCERTAIN, "one is lost");
    ok(redis_up(f->redis) && redis_epoch(f->redis) == 1, "the other does not notice");
    close_redis(t, &other);
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), 0, "nor that it is closed");
    close_redis(t, f);
    store_redis_stop(&other.store);
}

static void loading_server(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){.connect_ms = 200});
    check(store_redis_say(&f->store, "DEBUG POPULATE 2000", NULL, 0));
    check(store_redis_say(&f->store, "SAVE", NULL, 0));
    store_redis_kill(&f->store);
    ok(goes_down(t, f->redis, 1000), "killed");
    const char *const slowly[] = {"--key-load-delay", "500",
                                  "--loading-process-events-interval-bytes", "1024", NULL};
    store_redis_spawn(&f->store, slowly);
    store_redis_await(&f->store);
    char answer[64];
    int seen = 0;
    while (!store_redis_say(&f->store, "PING", answer, sizeof(answer))) {
        check(strncmp(answer, "-LOADING", 8) == 0);
        seen += redis_up(f->redis);
        seen += redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) != ERR_UNAVAILABLE;
        check(task_sleep(t, 20) == 0);
    }
    is_int(seen, 0, "not up while the server loads");
    ok(comes_up(t, f->redis, 5000), "up when it has loaded");
    close_redis(t, f);
}

static void becomes_replica(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_and_ping(t, f, (struct redis_options){0});
    check(store_redis_say(&f->store, "REPLICAOF 127.0.0.1 1", NULL, 0));
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("SET"), STR("k"), STR("v")), ERR_UNAVAILABLE,
           "a replica does not write");
    ok(str_starts(str_of(task_error(t)), STR("READONLY ")), "and says why");
    ok(goes_down(t, f->redis, 1000), "so the connection is closed");
    check(task_sleep(t, 300) == 0);
    ok(!redis_up(f->redis), "as long as it is one");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE, "calls fail");
    ok(strstr(task_error(t), "it is a read-only replica"), "with the reason: %s", task_error(t));
    check(store_redis_say(&f->store, "REPLICAOF NO ONE", NULL, 0));
    ok(comes_up(t, f->redis, 5000), "up when it is the master again");

    check(store_redis_say(&f->store, "CONFIG SET replica-serve-stale-data no", NULL, 0));
    check(store_redis_say(&f->store, "REPLICAOF 127.0.0.1 1", NULL, 0));
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("GET"), STR("k")), ERR_UNAVAILABLE,
           "a replica without its master does not read either");
    ok(goes_down(t, f->redis, 1000), "down");
    close_redis(t, f);
}

/* While a script hangs the server answers nothing but BUSY. */
static void hung_script(struct task *t, void *arg)
{
    struct fixture *f = arg, other = {.store = f->store, .metrics = f->metrics};
    open_and_ping(t, f, (struct redis_options){0});
    open_and_ping(t, &other, (struct redis_options){0});
    struct group g;
    group_init(&g, task_loop(t));
    check(store_redis_say(&f->store, "CONFIG SET busy-reply-threshold 50", NULL, 0));
    static const struct redis_script endless = {"endless", STR("while true do end"), false};
    struct script_call c = {.redis = other.redis, .script = &endless};
    check(task_go(&g, "endless", run_script, &c) == 0);
    check(task_sleep(t, 200) == 0);
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("GET"), STR("k")), ERR_UNAVAILABLE,
           "nothing is done now");
    ok(str_starts(str_of(task_error(t)), STR("BUSY ")), "and the server says why");
    ok(redis_up(f->redis), "the connection stays");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("SCRIPT"), STR("KILL")), 0, "SCRIPT KILL");
    check(group_join(t, &g) == 0);
    is_int(c.err, ERR_REFUSED, "the script was ended");
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("GET"), STR("k")), 0, "all is well again");
    close_redis(t, &other);
    close_redis(t, f);
}

static void locked_out(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct buf lines;
    buf_init(&lines);
    log_capture(&lines);
    open_with(t, f, (struct redis_options){.password = "wrong", .connect_ms = 300});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE, "wrong password");
    ok(strstr(task_error(t), "it refused AUTH: WRONGPASS"), "says so: %s", task_error(t));
    close_redis(t, f);
    open_with(t, f, (struct redis_options){.connect_ms = 300});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE, "no password");
    ok(strstr(task_error(t), "it refused INFO: NOAUTH"), "says so: %s", task_error(t));
    close_redis(t, f);
    char *url = arena_printf(task_arena(t), "redis://:secret@127.0.0.1:%d/99", f->store.port);
    open_with(t, f, (struct redis_options){.url = url, .connect_ms = 300});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), ERR_UNAVAILABLE,
           "no such database");
    ok(strstr(task_error(t), "it refused SELECT: ERR DB index"), "says so: %s", task_error(t));
    close_redis(t, f);
    log_capture(NULL);
    ok(str_find(buf_str(&lines), STR("secret")) < 0 && str_find(buf_str(&lines), STR("wrong")) < 0,
       "passwords are not logged");
    buf_release(&lines);
}

int main(void)
{
    with_server(stopped_server, NULL);
    with_server(sends_nothing_late, NULL);
    with_server(dead_connection, NULL);
    with_server(sent_or_not, NULL);
    with_server(killed_under_load, durable);
    with_server(full_pipeline, NULL);
    with_server(full_buffer, NULL);
    with_server(two_handles, NULL);
    with_server(loading_server, NULL);
    with_server(becomes_replica, NULL);
    with_server(hung_script, NULL);
    with_server(locked_out, (const char *const[]){"--requirepass", "secret", NULL});
    return tap_done();
}
