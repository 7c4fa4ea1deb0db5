/* The client against a real server, when all goes well. */
#include "wire/redis.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/tap.h"
#include "wire/redis/redis_harness.h"

static int64_t counted(struct fixture *f, const char *name)
{
    return *metric(f->metrics, METRIC_COUNTER, name, "name=\"hot\"", "");
}

static struct str number(struct task *t, int n)
{
    return str_printf(task_arena(t), "%d", n);
}

static void types(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    struct redis *r = f->redis;
    const struct redis_reply *reply;
    struct str k = STR("k"), binary = str_from("a\0\r\nz", 5);
    ok(!redis_up(r), "down at first");
    is_str(redis_run_id(r), STR(""), "without a run id");
    is_int(redis_call(t, r, k, &reply, STR("SET"), k, binary), 0, "the first call waits for it");
    ok(redis_up(r) && redis_epoch(r) == 1, "up");
    is_int((int64_t)redis_run_id(r).n, 40, "with a run id");
    ok(reply->type == REDIS_STATUS && str_eq(reply->str, STR("OK")), "a status");
    is_int(redis_call(t, r, k, &reply, STR("GET"), k), 0, "GET");
    ok(reply->type == REDIS_STRING && str_eq(reply->str, binary), "a binary string");
    is_int(redis_call(t, r, k, NULL, STR("SET"), k, STR("")), 0, "an empty argument");
    is_int(redis_call(t, r, k, &reply, STR("GET"), k), 0, "GET");
    is_str(reply->str, STR(""), "an empty string");
    is_int(redis_call(t, r, k, &reply, STR("GET"), STR("nothing")), 0, "GET");
    is_int(reply->type, REDIS_NIL, "nil");
    is_int(redis_call(t, r, k, &reply, STR("RPUSH"), STR("l"), STR("a"), STR("b")), 0, "RPUSH");
    ok(reply->type == REDIS_INT && reply->integer == 2, "an integer");
    is_int(redis_call(t, r, k, &reply, STR("LRANGE"), STR("l"), STR("0"), STR("-1")), 0, "LRANGE");
    ok(reply->type == REDIS_ARRAY && reply->count == 2, "an array");
    is_str(reply->items[1]->str, STR("b"), "its second item");

    const struct redis_reply *before = reply;
    is_int(redis_call(t, r, k, &reply, STR("INCR"), STR("l")), ERR_REFUSED, "an error reply");
    ok(str_starts(str_of(task_error(t)), STR("WRONGTYPE ")), "with the server's words");
    ok(reply == before, "and *out as it was");
    close_redis(t, f);
}

static void long_values(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    size_t n = 20 * 1024 * 1024;
    char *big = malloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 7919 >> 8);
    const struct redis_reply *reply;
    struct str k = STR("big"), v = str_from(big, n);
    is_int(redis_call(t, f->redis, k, &reply, STR("SET"), k, v), 0, "SET of 20 MB");
    is_int(redis_call(t, f->redis, k, &reply, STR("GET"), k), 0, "GET of 20 MB");
    ok(str_eq(reply->str, v), "came back whole");
    is_int(redis_call(t, f->redis, k, NULL, STR("DEL"), k), 0, "DEL");
    free(big);

    big = calloc(1, REDIS_COMMAND_BYTES_MAX);
    v = str_from(big, REDIS_COMMAND_BYTES_MAX);
    is_int(redis_call(t, f->redis, k, NULL, STR("SET"), k, v), ERR_LIMIT, "a command too large");
    struct redis_batch b;
    const struct redis_reply *const *replies;
    redis_batch_init(&b, t, f->redis);
    redis_batch_add(&b, k, STR("SET"), k, v);
    is_int(redis_batch_run(&b, &replies), ERR_LIMIT, "a batch too large");
    free(big);
    close_redis(t, f);
}

static void replies_stay(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    const struct redis_reply *replies[500], *ignored;
    struct str k = STR("stay");
    for (int i = 0; i < 500; i++) {
        check(redis_call(t, f->redis, k, NULL, STR("SET"), k, number(t, i)) == 0);
        check(redis_call(t, f->redis, k, &replies[i], STR("GET"), k) == 0);
    }
    struct task_scope scope = task_scope(t);
    check(redis_call(t, f->redis, k, &ignored, STR("GET"), k) == 0);
    task_scope_end(t, scope);
    bool same = true;
    for (int i = 0; i < 500; i++)
        same &= str_eq(replies[i]->str, number(t, i));
    ok(same, "500 replies are still what they were");
    close_redis(t, f);
}

struct caller {
    struct fixture *f;
    int n;
    int64_t *sum;
};

static void incr_once(struct task *t, void *arg)
{
    struct caller *c = arg;
    const struct redis_reply *reply;
    struct str k = STR("pipelined");
    if (redis_call(t, c->f->redis, k, &reply, STR("INCR"), k) == 0)
        *c->sum += reply->integer;
}

static void start_many(struct task *t, struct group *g, task_fn *fn, struct caller *callers, int n)
{
    group_init(g, task_loop(t));
    for (int i = 0; i < n; i++)
        check(task_go(g, "caller", fn, &callers[i]) == 0);
}

static void run_many(struct task *t, task_fn *fn, struct caller *callers, int n)
{
    struct group g;
    start_many(t, &g, fn, callers, n);
    check(group_join(t, &g) == 0);
}

static void pipelining(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    int64_t sum = 0;
    struct caller callers[1000];
    for (int i = 0; i < 1000; i++)
        callers[i] = (struct caller){f, i, &sum};
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0);
    int64_t writes = counted(f, "millrace_redis_writes_total");
    int64_t commands = counted(f, "millrace_redis_commands_total");
    run_many(t, incr_once, callers, 1000);
    is_int(sum, 1000 * 1001 / 2, "1,000 tasks got 1,000 different replies");
    is_int(counted(f, "millrace_redis_commands_total") - commands, 1000, "1,000 commands");
    is_int(counted(f, "millrace_redis_writes_total") - writes, 1, "left in one write");
    close_redis(t, f);
}

static const struct redis_script add_script = {
    .name = "add",
    .text = STR("return redis.call('INCRBY', KEYS[1], ARGV[1])"),
};

static void add_once(struct task *t, void *arg)
{
    struct caller *c = arg;
    const struct redis_reply *reply;
    const struct str argv[] = {STR("added"), STR("3")};
    if (redis_script_run(t, c->f->redis, &add_script, argv[0], 1, 2, argv, &reply) == 0 &&
        reply->type == REDIS_INT)
        *c->sum += 1;
}

static int64_t calls_of(struct task *t, struct redis *r, struct str command)
{
    const struct redis_reply *info;
    check(redis_call(t, r, STR_NULL, &info, STR("INFO"), STR("commandstats")) == 0);
    struct str want = str_printf(task_arena(t), "cmdstat_%.*s:calls=", STR_ARG(command));
    ptrdiff_t at = str_find(info->str, want);
    return at < 0 ? 0 : atoll(info->str.p + at + (ptrdiff_t)want.n);
}

static int64_t value_of(struct task *t, struct redis *r, struct str key)
{
    const struct redis_reply *reply;
    check(redis_call(t, r, key, &reply, STR("GET"), key) == 0);
    return reply->type == REDIS_STRING ? atoll(reply->str.p) : 0;
}

static void scripts(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    int64_t done = 0;
    struct caller callers[200];
    for (int i = 0; i < 200; i++)
        callers[i] = (struct caller){f, i, &done};
    run_many(t, add_once, callers, 200);
    is_int(done, 200, "200 tasks ran a script");
    is_int(calls_of(t, f->redis, STR("script|load")), 1, "which was sent whole once");
    is_int(calls_of(t, f->redis, STR("evalsha")), 200, "and by its hash 200 times");

    struct group g;
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("SCRIPT"), STR("FLUSH")) == 0);
    start_many(t, &g, add_once, callers, 200);
    check(group_join(t, &g) == 0);
    is_int(done, 400, "the server forgot it and no call failed");
    is_int(calls_of(t, f->redis, STR("script|load")), 2, "it was told once more, not 200 times");
    is_int(value_of(t, f->redis, STR("added")), 1200, "each call ran exactly once");

    uint64_t epoch = redis_epoch(f->redis);
    store_redis_kill(&f->store);
    store_redis_spawn(&f->store, NULL);
    store_redis_await(&f->store);
    while (redis_epoch(f->redis) == epoch || !redis_up(f->redis))
        check(task_sleep(t, 10) == 0);
    run_many(t, add_once, callers, 200);
    is_int(done, 600, "a new server was told too");
    is_int(value_of(t, f->redis, STR("added")), 600, "each call ran exactly once there");
    close_redis(t, f);
}

static void script_errors(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    static const struct redis_script broken = {"broken", STR("return nonsense("), false};
    static const struct redis_script refusing = {
        "refusing", STR("return redis.error_reply('NOFUNDS too little')"), false};
    static const struct redis_script words = {"words", STR("return {KEYS[2], ARGV[1], #ARGV}"),
                                              false};
    const struct redis_reply *reply;
    is_int(redis_script_run(t, f->redis, &broken, STR_NULL, 0, 0, NULL, &reply), ERR_REFUSED,
           "a script that does not compile");
    ok(strstr(task_error(t), "Error compiling script"), "with the server's words");
    is_int(redis_script_run(t, f->redis, &refusing, STR_NULL, 0, 0, NULL, &reply), ERR_REFUSED,
           "a script's own error");
    is_str(str_of(task_error(t)), STR("NOFUNDS too little"), "with its words");
    const struct str argv[] = {STR("k1"), STR("k2"), STR("arg")};
    is_int(redis_script_run(t, f->redis, &words, argv[0], 2, 3, argv, &reply), 0,
           "keys, arguments");
    is_str(reply->items[0]->str, STR("k2"), "the second key");
    is_str(reply->items[1]->str, STR("arg"), "the first argument");
    is_int(reply->items[2]->integer, 1, "of one");
    close_redis(t, f);
}

static void script_run_id(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    static const struct redis_script named = {
        "named",
        STR("local info = redis.call('INFO', 'server')"
            " return {ARGV[#ARGV], string.match(info, 'run_id:(%x+)'), #ARGV}"),
        true};
    const struct redis_reply *reply;
    const struct str argv[] = {STR("k"), STR("arg")};
    is_int(redis_script_run(t, f->redis, &named, argv[0], 1, 2, argv, &reply), 0,
           "a script that is sent the run id");
    is_int(reply->items[2]->integer, 2, "behind its arguments");
    is_str(reply->items[0]->str, reply->items[1]->str, "which is that of the server");
    close_redis(t, f);
}

static void batches(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    struct redis_batch b;
    const struct redis_reply *const *replies = NULL;
    struct str k = STR("batch");
    check(redis_call(t, f->redis, k, NULL, STR("PING")) == 0);
    int64_t writes = counted(f, "millrace_redis_writes_total");
    redis_batch_init(&b, t, f->redis);
    is_int(redis_batch_run(&b, &replies), 0, "an empty batch");
    redis_batch_add(&b, k, STR("SET"), k, STR("x"));
    redis_batch_add(&b, k, STR("INCR"), k);
    for (int i = 0; i < 300; i++)
        redis_batch_add(&b, k, STR("ECHO"), number(t, i));
    is_int(redis_batch_run(&b, &replies), 0, "a batch of 302");
    is_int(counted(f, "millrace_redis_writes_total") - writes, 1, "in one write");
    is_str(replies[0]->str, STR("OK"), "its first reply");
    ok(replies[1]->type == REDIS_ERROR, "an error stays in its place");
    bool same = true;
    for (int i = 0; i < 300; i++)
        same &= str_eq(replies[2 + i]->str, number(t, i));
    ok(same, "the others are in order");
    redis_batch_add(&b, k, STR("GET"), k);
    is_int(redis_batch_run(&b, &replies), 0, "the batch can be used again");
    is_str(replies[0]->str, STR("x"), "and begins empty");

    redis_batch_add(&b, k, STR("SET"), k, STR("never"));
    redis_batch_init(&b, t, f->redis);
    is_int(redis_call(t, f->redis, k, NULL, STR("PING")), 0, "a batch that was not run");
    redis_batch_add(&b, k, STR("GET"), k);
    is_int(redis_batch_run(&b, &replies), 0, "leaves no trace");
    is_str(replies[0]->str, STR("x"), "in the store");
    close_redis(t, f);
}

/* The only socket of this process that is connected to the port. */
static int find_socket(int port)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in addr;
        socklen_t n = sizeof(addr);
        if (getpeername(fd, (struct sockaddr *)&addr, &n) == 0 && addr.sin_family == AF_INET &&
            ntohs(addr.sin_port) == port)
            return fd;
    }
    return -1;
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t n = sizeof(value);
    getsockopt(fd, level, name, &value, &n);
    return value;
}

static void over_tcp(struct task *t, void *arg)
{
    struct fixture *f = arg;
    char *url = arena_printf(task_arena(t), "%s/5", f->store.url_tcp);
    open_with(t, f, (struct redis_options){.url = url});
    const struct redis_reply *reply;
    struct str k = STR("over_tcp");
    is_int(redis_call(t, f->redis, k, NULL, STR("SET"), k, STR("1")), 0, "SET over TCP");
    int fd = find_socket(f->store.port);
    ok(fd >= 0, "found the socket");
    is_int(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1, "nodelay");
    is_int(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1, "keepalive");
    is_int(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60, "after a minute");
    close_redis(t, f);

    open_with(t, f, (struct redis_options){0});
    is_int(redis_call(t, f->redis, k, &reply, STR("GET"), k), 0, "GET from database 0");
    is_int(reply->type, REDIS_NIL, "it is not there");
    is_int(redis_call(t, f->redis, k, &reply, STR("INFO"), STR("keyspace")), 0, "INFO keyspace");
    ok(str_find(reply->str, STR("db5:keys=1")) >= 0, "it is in database 5");
    is_int(redis_call(t, f->redis, k, NULL, STR("SWAPDB"), STR("0"), STR("5")), 0, "swap them");
    close_redis(t, f);
}

static void logins(struct task *t, void *arg)
{
    struct fixture *f = arg;
    struct arena *a = task_arena(t);
    char *by_password = arena_printf(a, "redis://:s%%40cret@127.0.0.1:%d", f->store.port);
    char *by_user = arena_printf(a, "redis://ann:her%%2Fs@127.0.0.1:%d/2", f->store.port);
    const struct redis_reply *reply;
    open_with(t, f, (struct redis_options){.url = by_password});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("ACL"), STR("SETUSER"), STR("ann"),
                      STR("on"), STR(">her/s"), STR("~*"), STR("+@all")),
           0, "with a password in the URL");
    close_redis(t, f);
    open_with(t, f, (struct redis_options){.url = by_user});
    is_int(redis_call(t, f->redis, STR_NULL, &reply, STR("ACL"), STR("WHOAMI")), 0, "with a user");
    is_str(reply->str, STR("ann"), "which it is");
    close_redis(t, f);
    open_with(t, f, (struct redis_options){.url = f->store.url_unix, .password = "s@cret"});
    is_int(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")), 0, "over the socket");
    close_redis(t, f);
}

static void measured(struct task *t, void *arg)
{
    struct fixture *f = arg;
    open_with(t, f, (struct redis_options){0});
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0);
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("NONSENSE")) == ERR_REFUSED);
    struct buf out;
    buf_init(&out);
    metrics_render(f->metrics, &out);
    buf_add_char(&out, '\0');
    ok(strstr(out.p, "millrace_redis_up{"), "up");
    ok(strstr(out.p, "millrace_redis_waiting{"), "waiting");
    ok(strstr(out.p, "millrace_redis_reconnects_total{"), "reconnects");
    is_int(*metric(f->metrics, METRIC_GAUGE, "millrace_redis_up", "name=\"hot\"", ""), 1, "is up");
    is_int(*metric(f->metrics, METRIC_COUNTER, "millrace_redis_errors_total",
                   "name=\"hot\",code=\"refused\"", ""),
           1, "one error");
    is_int(counted(f, "millrace_redis_commands_total"), 2, "two commands");
    buf_release(&out);
    close_redis(t, f);
    is_int(*metric(f->metrics, METRIC_GAUGE, "millrace_redis_up", "name=\"hot\"", ""), 0, "down");
}

int main(void)
{
    with_server(types, NULL);
    with_server(long_values, NULL);
    with_server(replies_stay, NULL);
    with_server(pipelining, NULL);
    with_server(scripts, NULL);
    with_server(script_errors, NULL);
    with_server(script_run_id, NULL);
    with_server(batches, NULL);
    with_server(over_tcp, NULL);
    with_server(logins, (const char *const[]){"--requirepass", "s@cret", NULL});
    with_server(measured, NULL);
    return tap_done();
}
