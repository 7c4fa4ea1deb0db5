/* Looking up names, with a fake getaddrinfo. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_client.h"
#include "wire/http_client/http_client_test_front.h"
#include "wire/http_client/http_client_test_h2.h"

#define SLOW_MS 400

static atomic_int lookups;
static _Atomic in_addr_t address_of_api; /* what "api.test" has now */
static _Atomic in_addr_t second_of_api;  /* and besides; 0: no other */

static struct addrinfo *address(in_addr_t address, int port)
{
    struct addrinfo *a = calloc(1, sizeof *a + sizeof(struct sockaddr_in));
    check(a);
    struct sockaddr_in *in = (struct sockaddr_in *)(a + 1);
    *in = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = address};
    a->ai_family = AF_INET;
    a->ai_socktype = SOCK_STREAM;
    a->ai_addr = (struct sockaddr *)in;
    a->ai_addrlen = sizeof *in;
    return a;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    (void)hints;
    lookups++;
    if (strcmp(name, "gone.test") == 0)
        return EAI_NONAME;
    if (strcmp(name, "slow.test") == 0)
        usleep(SLOW_MS * 1000);
    *found = address(address_of_api, service ? atoi(service) : 0);
    if (second_of_api)
        (*found)->ai_next = address(second_of_api, service ? atoi(service) : 0);
    return 0;
}

void freeaddrinfo(struct addrinfo *a)
{
    while (a) {
        struct addrinfo *next = a->ai_next;
        free(a);
        a = next;
    }
}

struct fixture {
    struct peer peer;
    struct http_client *client;
};

static void fixture_open(struct fixture *f, struct task *t)
{
    lookups = 0;
    address_of_api = htonl(INADDR_LOOPBACK);
    peer_open(&f->peer, task_loop(t));
    f->client = http_client_new(task_loop(t), &(struct http_client_options){.connect_ms = 0});
}

static void fixture_close(struct fixture *f, struct task *t)
{
    http_client_free(f->client);
    peer_close(t, &f->peer);
}

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f = {.client = NULL};
    fixture_open(&f, t);
    test->fn(t, &f);
    fixture_close(&f, t);
}

#define RUN(fn, real_time) tap_task(with_fixture, &(struct test){fn}, real_time)

static int call_name(struct task *t, struct fixture *f, const char *name, const char *path)
{
    struct http_call call = {
        .url = arena_printf(task_arena(t), "http://%s:%d%s", name, f->peer.port, path)};
    struct http_response r;
    int err = http_call(t, f->client, &call, &r);
    return !err && r.status != 200 ? r.status : err;
}

static size_t count_threads(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    check(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

struct burst {
    struct fixture *f;
    const char *name;
    size_t good, threads;
};

static void burst_call(struct task *t, void *arg)
{
    struct burst *b = arg;
    if (call_name(t, b->f, b->name, "/slow") == 0)
        b->good++;
    size_t threads = count_threads();
    if (threads > b->threads)
        b->threads = threads;
}

static void test_one_lookup(struct task *t, struct fixture *f)
{
    struct burst b = {.f = f, .name = "api.test"};
    crowd(t, 200, burst_call, &b);
    is_int((int64_t)b.good, 200, "200 first calls to a name");
    is_int(lookups, 1, "take one lookup");
    ok(b.threads <= 3, "and no threads but the loop's: %zu", b.threads);
    ok(str_find(buf_str(&f->peer.last), STR("\r\nHost: api.test:")) >= 0, "the name is sent");
    is_int(call_name(t, f, "API.test", "/ok"), 0, "another spelling");
    is_int(lookups, 1, "is the same name");
}

static void test_no_lookup(struct task *t, struct fixture *f)
{
    is_int(call_name(t, f, "127.0.0.1", "/ok"), 0, "an address");
    is_int(call_name(t, f, "localhost", "/ok"), 0, "localhost");
    is_int(call_name(t, f, "LOCALHOST", "/ok"), 0, "LOCALHOST");
    is_int(call_name(t, f, "api.localhost", "/ok"), 0, "api.localhost");
    is_int(call_name(t, f, "[::1]", "/ok"), ERR_UNAVAILABLE, "an IPv6 address without a server");
    is_int(lookups, 0, "need no lookup");
}

static void test_gone(struct task *t, struct fixture *f)
{
    is_int(call_name(t, f, "gone.test", "/ok"), ERR_UNAVAILABLE, "a name that is not known");
    ok(strstr(task_error(t), "gone.test"), "the message names it: %s", task_error(t));
    for (int i = 0; i < 10; i++)
        is_int(call_name(t, f, "gone.test", "/ok"), ERR_UNAVAILABLE, "and again");
    is_int(lookups, 1, "is looked up once a second");
    check(task_sleep(t, 1100) == 0);
    is_int(call_name(t, f, "gone.test", "/ok"), ERR_UNAVAILABLE, "a second later");
    is_int(lookups, 2, "it is looked up again");
}

static void test_slow(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    fixture_open(&f, t);
    int64_t start_us = loop_now_us(task_loop(t)), old = task_deadline(t, 50);
    is_int(call_name(t, &f, "slow.test", "/ok"), ERR_TIMEOUT, "a deadline during a lookup");
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    ok(ms < SLOW_MS / 2, "ends the call at once: %lld ms", (long long)ms);
    task_deadline_restore(t, old);
    is_int(call_name(t, &f, "slow.test", "/ok"), 0, "the next call");
    is_int(lookups, 1, "uses the same lookup");

    old = task_deadline(t, 50);
    is_int(call_name(t, &f, "slow.test:1", "/ok"), ERR_INVALID, "two ports");
    struct http_call call = {.url = "http://slow.test:1/"};
    struct http_response r;
    is_int(http_call(t, f.client, &call, &r), ERR_TIMEOUT, "a lookup is under way");
    task_deadline_restore(t, old);
    fixture_close(&f, t);
    ok(true, "while the client goes");
    check(task_sleep(t, SLOW_MS) == 0); /* the lookup ends on its own */
}

/* On virtual time. */
static void test_refresh(struct task *t, struct fixture *f)
{
    is_int(call_name(t, f, "api.test", "/ok"), 0, "a call");
    check(task_sleep(t, 59000) == 0);
    is_int(call_name(t, f, "api.test", "/ok"), 0, "59 seconds later");
    is_int(lookups, 1, "the address is still good");
    check(task_sleep(t, 2000) == 0);
    is_int(call_name(t, f, "api.test", "/ok"), 0, "61 seconds later");
    check(task_sleep(t, 100) == 0);
    is_int(lookups, 2, "it is looked up again");
}

/* The service moves: after a failed connection the name is looked up again. */
static void test_moved(struct task *t, struct fixture *f)
{
    address_of_api = inet_addr("255.255.255.255"); /* no connection is possible */
    is_int(call_name(t, f, "api.test", "/ok"), ERR_UNAVAILABLE, "no connection: %s", task_error(t));
    address_of_api = htonl(INADDR_LOOPBACK);
    is_int(call_name(t, f, "api.test", "/ok"), ERR_UNAVAILABLE, "at once: the same address");
    check(task_sleep(t, 1100) == 0);
    is_int(call_name(t, f, "api.test", "/ok"), 0, "a second later: the new one");
    is_int(lookups, 2, "two lookups");
}

struct moving {
    struct http_client *client;
    const char *url;
    size_t answered;
    int64_t slowest_ms;
};

static void call_slowly(struct task *t, void *arg)
{
    struct moving *m = arg;
    struct http_response r;
    int64_t start_ms = loop_now_ms(task_loop(t));
    if (http_call(t, m->client, &(struct http_call){.url = m->url}, &r) == 0 && r.status == 200)
        m->answered++;
    int64_t ms = loop_now_ms(task_loop(t)) - start_ms;
    m->slowest_ms = ms > m->slowest_ms ? ms : m->slowest_ms;
}

/* The service moves while a connection of HTTP/2 always has calls on it, so that it never idles.
 * The old server answers what it has, and is left; on virtual time. */
static void test_moved_at_work(struct task *t, struct fixture *f)
{
    struct h2_server before = {.port = 0}, after = {.address = inet_addr("127.0.0.2")};
    h2_server_open(&before, task_loop(t));
    after.port = before.port;
    h2_server_open(&after, task_loop(t));
    struct moving m = {
        .client = http_client_new(
            task_loop(t), &(struct http_client_options){.plain_h2 = true, .h2_connections_max = 1}),
        .url = arena_printf(task_arena(t), "http://api.test:%d/slow", before.port)};
    struct group g;
    group_init(&g, task_loop(t));
    (void)f;
    size_t calls = 0;
    for (; calls < 70 * 40; calls++) { /* 50 ms each, one each 25 ms: 70 s */
        if (calls == 5 * 40)
            address_of_api = inet_addr("127.0.0.2");
        check(task_go(&g, "call", call_slowly, &m) == 0 && task_sleep(t, 25) == 0);
    }
    check(group_join(t, &g) == 0);
    is_int((int64_t)m.answered, (int64_t)calls, "every call is answered");
    ok(m.slowest_ms < 200, "and soon, though only one connection is allowed: in %lld ms",
       (long long)m.slowest_ms);
    is_int(lookups, 2, "the name was looked up again after a minute");
    ok(before.requests > 2300 && before.requests < 2500, "until then by the old server: %zu",
       before.requests);
    is_int((int64_t)(before.requests + after.requests), (int64_t)calls, "then by the new one");
    check(task_sleep(t, 1000) == 0);
    ok(list_empty(&before.conns), "the old connection is closed when its calls have ended");
    http_client_free(m.client);
    h2_server_close(t, &before);
    h2_server_close(t, &after);
}

/* So are connections of HTTP/1.1 that are kept alive. */
static void test_moved_idle(struct task *t, struct fixture *f)
{
    for (int i = 0; i < 61; i++) {
        is_int(call_name(t, f, "api.test", "/ok"), 0, "a call each second");
        check(task_sleep(t, 1000) == 0);
        address_of_api = inet_addr("255.255.255.255"); /* no connection is possible */
    }
    is_int(call_name(t, f, "api.test", "/ok"), ERR_UNAVAILABLE,
           "the kept connection is to an address that the name does not have any more");
}

/* A listener that never answers, at another address and the same port. */
static int silent_listener(int port, int fill[], int count)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = inet_addr("127.0.0.2"),
                            .sin_port = htons((uint16_t)port)};
    check(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 0) == 0);
    for (int i = 0; i < count; i++) { /* the backlog is full */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&a, sizeof a);
    }
    return fd;
}

static int call_front(struct task *t, struct http_client *c, const struct front *front, int64_t *ms)
{
    struct http_response r;
    struct http_call call = {
        .url = arena_printf(task_arena(t), "https://api.test:%d/ok", front->port)};
    int64_t start_us = loop_now_us(task_loop(t));
    int err = http_call(t, c, &call, &r);
    *ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    return err;
}

static void test_race(struct task *t, struct fixture *f)
{
    struct front front;
    int fill[4];
    int64_t ms;
    front_open(&front, task_loop(t), f->peer.port, "http/1.1");
    int fd = silent_listener(front.port, fill, 4);
    check(task_sleep(t, 1) == 0);
    struct http_client_options o = {.ca_file = front.ca_file};
    struct http_client *c = http_client_new(task_loop(t), &o);
    address_of_api = inet_addr("127.0.0.2");
    second_of_api = htonl(INADDR_LOOPBACK);
    is_int(call_front(t, c, &front, &ms), 0, "one of two addresses answers: %s", task_error(t));
    ok(ms >= 240 && ms < 2000, "and is asked soon: %lld ms", (long long)ms);
    is_int((int64_t)front.accepted, 1, "over one connection");
    http_client_free(c);

    c = http_client_new(task_loop(t), &o);
    close(fd); /* refuses from now on */
    is_int(call_front(t, c, &front, &ms), 0, "one of two refuses: the other is asked");
    ok(ms < 240, "at once: %lld ms", (long long)ms);
    second_of_api = inet_addr("127.0.0.3");
    check(task_sleep(t, 10) == 0);
    http_client_free(c);
    c = http_client_new(task_loop(t), &o);
    is_int(call_front(t, c, &front, &ms), ERR_UNAVAILABLE, "both refuse");
    ok(strstr(task_error(t), "no connection: Connection refused"), "says why: %s", task_error(t));
    http_client_free(c);
    second_of_api = 0;
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    front_close(t, &front);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(test_one_lookup, true);
    RUN(test_no_lookup, true);
    RUN(test_gone, true);
    tap_task(test_slow, NULL, true);
    RUN(test_refresh, false);
    RUN(test_moved, true);
    RUN(test_moved_at_work, false);
    RUN(test_moved_idle, false);
    RUN(test_race, true);
    return tap_done();
}
