/* Calls through a proxy, with a fake getaddrinfo. */
#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_front.h"
#include "wire/http_client/http_client_test_h2.h"
#include "wire/http_client/http_client_test_proxy.h"

#define CONNECT_MS 60000 /* on a machine that does other work as well */
#define SECRET     "se:cret"
#define LOGIN      "us%65r:se%3Acret@"
#define BASIC      "Proxy-Authorization: Basic dXNlcjpzZTpjcmV0\r\n"

/* --- names --- */

static atomic_int lookups_of_proxy, lookups_of_others;
static const char *first_address = "127.0.0.1", *second_address; /* of proxy.test */

static struct addrinfo *address(const char *text)
{
    struct addrinfo *a = calloc(1, sizeof *a + sizeof(struct sockaddr_in));
    check(a);
    struct sockaddr_in *in = (struct sockaddr_in *)(a + 1);
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(text)};
    a->ai_family = AF_INET;
    a->ai_socktype = SOCK_STREAM;
    a->ai_addr = (struct sockaddr *)in;
    a->ai_addrlen = sizeof *in;
    return a;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    (void)hints, (void)service;
    if (strcmp(name, "gone.test") == 0)
        return EAI_NONAME;
    bool proxy = strcmp(name, "proxy.test") == 0;
    lookups_of_proxy += proxy;
    lookups_of_others += !proxy;
    *found = address(proxy ? first_address : "127.0.0.1");
    if (proxy && second_address)
        (*found)->ai_next = address(second_address);
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

/* --- the fixture: proxy, TLS, server --- */

enum server { PLAIN, TLS_H1, TLS_H2, PLAIN_H2 };

struct site {
    enum server kind;
    struct peer peer;
    struct h2_server h2;
    struct front front;
    struct proxy proxy;
    struct http_client *client;
    const char *host; /* that is called */
};

static bool has_tls(const struct site *s)
{
    return s->kind == TLS_H1 || s->kind == TLS_H2;
}

static bool has_h2(const struct site *s)
{
    return s->kind == TLS_H2 || s->kind == PLAIN_H2;
}

static void open_server(struct site *s, struct task *t)
{
    if (has_h2(s))
        h2_server_open(&s->h2, task_loop(t));
    else
        peer_open(&s->peer, task_loop(t));
    int port = has_h2(s) ? s->h2.port : s->peer.port;
    if (has_tls(s)) {
        front_open(&s->front, task_loop(t), port, has_h2(s) ? "h2" : "http/1.1");
        port = s->front.port;
    }
    proxy_open(&s->proxy, task_loop(t), port);
    check(task_sleep(t, 1) == 0); /* making certificates has taken time */
}

/* proxy is where it is; "" is the fixture's; a name gets its port. */
static void use_proxy(struct site *s, struct task *t, const char *login, const char *name,
                      int64_t connect_ms)
{
    if (s->client)
        http_client_free(s->client);
    struct http_client_options o = {
        .proxy = arena_printf(task_arena(t), "http://%s%s:%d", login, name, s->proxy.port),
        .ca_file = has_tls(s) ? s->front.ca_file : NULL,
        .plain_h2 = s->kind == PLAIN_H2,
        .connect_ms = connect_ms};
    s->client = http_client_new(task_loop(t), &o);
}

static void site_open(struct site *s, struct task *t, enum server kind, const char *login)
{
    *s = (struct site){.kind = kind, .host = "api.test"};
    lookups_of_proxy = lookups_of_others = 0;
    open_server(s, t);
    use_proxy(s, t, login, "127.0.0.1", CONNECT_MS);
}

static void site_close(struct site *s, struct task *t)
{
    http_client_free(s->client);
    proxy_close(t, &s->proxy);
    if (has_tls(s))
        front_close(t, &s->front);
    if (has_h2(s))
        h2_server_close(t, &s->h2);
    else
        peer_close(t, &s->peer);
}

static size_t requests(const struct site *s)
{
    return has_h2(s) ? s->h2.requests : s->peer.requests;
}

static const char *url_of(struct task *t, const struct site *s)
{
    return arena_printf(task_arena(t), "%s://%s:%d/ok", has_tls(s) ? "https" : "http", s->host,
                        has_tls(s) ? 443 : 80);
}

static int call(struct site *s, struct task *t, struct http_response *r)
{
    struct http_call c = {.url = url_of(t, s), .body = STR("x")};
    return http_call(t, s->client, &c, r);
}

static int call_it(struct site *s, struct task *t)
{
    struct http_response r;
    return call(s, t, &r);
}

/* --- tunnels --- */

static void one_of_many(struct task *t, void *arg)
{
    struct site *s = arg;
    is_int(call_it(s, t), 0, "a call at the same time as others: %s", task_error(t));
}

static void test_tunnel(struct task *t, void *arg)
{
    struct site s;
    struct http_response r = {.status = 0};
    site_open(&s, t, *(enum server *)arg, "");
    is_int(call(&s, t, &r), 0, "a call through a tunnel: %s", task_error(t));
    is_int(r.status, 200, "is answered");
    is_str(r.body, STR("hello"), "by the server");
    is_int(r.http_version, has_h2(&s) ? 20 : 11, "in its version of HTTP");
    ok(proxy_was_told(&s.proxy, has_tls(&s) ? "CONNECT api.test:443 HTTP/1.1\r\n"
                                            : "CONNECT api.test:80 HTTP/1.1\r\n"),
       "the proxy is told name and port");
    ok(proxy_was_told(&s.proxy, "\r\nHost: api.test:"), "as host, too");
    ok(!proxy_was_told(&s.proxy, "Authorization"), "without a login");
    is_int(lookups_of_others, 0, "the service's name is not looked up here");
    if (!has_h2(&s))
        ok(str_find(buf_str(&s.peer.last), STR("POST /ok HTTP/1.1\r\nHost: api.test\r\n")) == 0,
           "the server sees an ordinary request");
    is_int(call_it(&s, t), 0, "another call");
    is_int((int64_t)s.proxy.tunnels, 1, "goes through the same tunnel");
    crowd(t, 20, one_of_many, &s);
    ok(has_h2(&s) ? s.proxy.tunnels == 1 : s.proxy.tunnels <= 20, "20 at once: %zu tunnels",
       s.proxy.tunnels);
    is_int((int64_t)requests(&s), 22, "each request is sent once");
    site_close(&s, t);
}

static void test_login(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H2, LOGIN);
    s.proxy.login = BASIC;
    is_int(call_it(&s, t), 0, "a proxy with a login: %s", task_error(t));
    ok(proxy_was_told(&s.proxy, "\r\n" BASIC), "gets user and password, decoded");
    site_close(&s, t);
}

/* An answer that comes byte by byte, with headers that frame other replies, and with the server's
 * first bytes right behind it. */
static void test_answers(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    struct http_response r;
    site_open(&s, t, PLAIN, "");
    s.proxy.stays = true;
    s.proxy.answer = "HTTP/1.0 200 OK\r\nProxy-Agent: x\r\nContent-Length: 7\r\n\r\n"
                     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly";
    is_int(call(&s, t, &r), 0, "the server's bytes come with the answer: %s", task_error(t));
    is_str(r.body, STR("early"), "and are not lost");
    use_proxy(&s, t, "", "127.0.0.1", CONNECT_MS);
    s.proxy.step = 1;
    is_int(call(&s, t, &r), 0, "byte by byte: %s", task_error(t));
    is_str(r.body, STR("early"), "the same");
    s.proxy.step = 0;
    use_proxy(&s, t, "", "127.0.0.1", CONNECT_MS);
    s.proxy.answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n";
    is_int(call(&s, t, &r), ERR_UNAVAILABLE, "an interim answer");
    ok(strstr(task_error(t), "refuses CONNECT: 503"), "is not the answer: %s", task_error(t));
    site_close(&s, t);
}

/* The certificate is for 127.0.0.1, where the proxy is, and for api.test. */
static void test_verified(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H1, "");
    s.host = "other.test";
    is_int(call_it(&s, t), ERR_UNAVAILABLE, "a certificate of another name");
    ok(strstr(task_error(t), "https://other.test:443: TLS: ") &&
           strstr(task_error(t), "not for other.test"),
       "is refused: %s", task_error(t));
    s.host = "api.test";
    is_int(call_it(&s, t), 0, "the right one is not: %s", task_error(t));
    site_close(&s, t);
}

/* --- when the request is sent --- */

struct moment {
    struct site *site;
    int64_t start_us, made_us;
    size_t tunnels, requests;
};

static int make_body(struct task *t, void *arg, struct str *out)
{
    struct moment *m = arg;
    m->made_us = loop_now_us(task_loop(t));
    m->tunnels = m->site->proxy.tunnels;
    m->requests = requests(m->site);
    *out = STR("x");
    return 0;
}

static void test_moment(struct task *t, void *arg)
{
    struct site s;
    struct http_response r;
    site_open(&s, t, *(enum server *)arg, "");
    s.proxy.delay_ms = 150;
    s.front.delay_ms = 150;
    struct moment m = {.site = &s, .start_us = loop_now_us(task_loop(t))};
    struct http_call c = {.url = url_of(t, &s), .body_fn = make_body, .arg = &m};
    is_int(http_call(t, s.client, &c, &r), 0, "slow CONNECT, slow TLS: %s", task_error(t));
    int64_t ms = (m.made_us - m.start_us) / 1000, least = has_tls(&s) ? 300 : 150;
    ok(ms >= least, "the body is made after both: %lld ms", (long long)ms);
    is_int((int64_t)m.tunnels, 1, "in a tunnel that stands");
    is_int((int64_t)m.requests, 0, "and before anything of the request is sent");
    site_close(&s, t);
}

/* --- what goes wrong --- */

/* A call fails, nothing is sent, and the message has the words. */
static void expect(struct site *s, struct task *t, const char *words)
{
    char proxy[64];
    snprintf(proxy, sizeof proxy, ":%d", s->proxy.port);
    is_int(call_it(s, t), ERR_UNAVAILABLE, "a call fails");
    ok(strstr(task_error(t), words) && strstr(task_error(t), "https://api.test:443: the proxy ") &&
           strstr(task_error(t), proxy),
       "the message has service, proxy and cause: %s", task_error(t));
    ok(!strstr(task_error(t), "cret") && !strstr(task_error(t), "c2V0") &&
           !strstr(task_error(t), "dXNl"),
       "and no password");
    is_int((int64_t)s->front.accepted, 0, "nothing was sent to the service");
}

static const struct {
    const char *answer, *words;
    bool stays;
} answers[] = {
    {"HTTP/1.1 403 Forbidden by policy\r\nContent-Length: 9\r\n\r\nforbidden",
     "refuses CONNECT: 403 Forbidden by policy", true},
    {"HTTP/1.0 503 Service\033[31m Unavailable\r\n\r\n", "did not answer CONNECT in HTTP", false},
    {"HTTP/1.0 503 Service\303\251 Unavailable\r\n\r\n", "CONNECT: 503 Service?? Unavailable",
     true},
    {"HTTP/1.1 302 Found\r\nLocation: http://login/\r\n\r\n", "refuses CONNECT: 302 Found", false},
    {"SSH-2.0-OpenSSH_9.2\r\n", "did not answer CONNECT in HTTP", true},
    {"\x15\x03\x01\x00\x02\x02\x16", "did not answer CONNECT in HTTP", true}, /* TLS's own words */
    {"", "closed the connection instead of answering CONNECT", false},
    {"HTTP/1.1 200 OK\r\nX: y", "closed the connection instead of answering CONNECT", false},
};

static void test_refusals(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H2, LOGIN);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        s.proxy.answer = answers[i].answer;
        s.proxy.stays = answers[i].stays;
        use_proxy(&s, t, LOGIN, "127.0.0.1", CONNECT_MS);
        expect(&s, t, answers[i].words);
    }
    size_t n = 100000;
    char *text = memset(arena_zalloc(task_arena(t), n + 1), 'x', n);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    s.proxy.answer = text;
    use_proxy(&s, t, LOGIN, "127.0.0.1", CONNECT_MS);
    expect(&s, t, "too long");
    s.proxy.answer = NULL;
    s.proxy.silent = true;
    use_proxy(&s, t, LOGIN, "127.0.0.1", 200);
    int64_t start_us = loop_now_us(task_loop(t));
    expect(&s, t, "did not answer CONNECT in time");
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    ok(ms >= 190 && ms < 2000, "after the time for it: %lld ms", (long long)ms);
    site_close(&s, t);
}

/* connect_ms counts for all of it. */
static void test_time(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H1, "");
    use_proxy(&s, t, "", "127.0.0.1", 400);
    s.proxy.delay_ms = s.front.delay_ms = 300;
    is_int(call_it(&s, t), ERR_UNAVAILABLE, "300 ms of CONNECT, 300 ms of TLS, 400 ms allowed");
    ok(strstr(task_error(t), "no connection: the TLS handshake was not done in time"),
       "says which: %s", task_error(t));
    is_int((int64_t)s.peer.requests, 0, "nothing was sent");
    site_close(&s, t);
}

static void test_names(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H1, LOGIN);
    use_proxy(&s, t, LOGIN, "gone.test", CONNECT_MS);
    expect(&s, t, "gone.test: Name or service not known");
    use_proxy(&s, t, LOGIN, "proxy.test", CONNECT_MS);
    first_address = "127.0.0.2"; /* nothing listens there */
    second_address = "127.0.0.1";
    is_int(call_it(&s, t), 0, "one of the proxy's two addresses works: %s", task_error(t));
    is_int(lookups_of_proxy, 1, "the proxy's name was looked up");
    is_int(lookups_of_others, 0, "the service's was not");
    first_address = "127.0.0.1";
    second_address = NULL;
    site_close(&s, t);
}

/* Until told otherwise, nothing listens there. */
static int refusing(int *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    check(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
    check(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void test_unreachable(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H1, LOGIN);
    int real = s.proxy.port, fd = refusing(&s.proxy.port);
    use_proxy(&s, t, LOGIN, "127.0.0.1", CONNECT_MS);
    expect(&s, t, "no connection: Connection refused");
    check(listen(fd, 10) == 0);
    s.host = "b.test";
    is_int(call_it(&s, t), ERR_UNAVAILABLE, "at once, for another service: the same");
    ok(strstr(task_error(t), "https://b.test:443: the proxy 127.0.0.1:"), "with its name: %s",
       task_error(t));
    ok(accept(fd, NULL, NULL) < 0, "the proxy was not asked again");
    close(fd);
    s.proxy.port = real;
    site_close(&s, t);
}

static size_t tries(struct site *s, struct task *t, int count, int64_t pause_ms)
{
    size_t before = s->proxy.accepted;
    for (int i = 0; i < count; i++) {
        struct task_scope scope = task_scope(t);
        if (call_it(s, t) != ERR_UNAVAILABLE)
            ok(false, "not refused");
        check(task_sleep(t, pause_ms) == 0);
        task_scope_end(t, scope);
    }
    return s->proxy.accepted - before;
}

/* On virtual time. */
static void test_spacing(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H2, "");
    s.proxy.answer = "HTTP/1.1 502 Bad Gateway\r\n\r\n";
    size_t n = tries(&s, t, 200, 10);
    ok(n >= 8 && n <= 11, "200 calls in two seconds: %zu attempts", n);
    s.proxy.answer = NULL;
    check(task_sleep(t, 300) == 0);
    s.proxy.login = BASIC;
    n = tries(&s, t, 90, 100);
    is_int((int64_t)n, 2, "90 calls in nine seconds to a proxy that wants a login");
    ok(strstr(task_error(t), "the proxy 127.0.0.1:") &&
           strstr(task_error(t), " wants a user and a password: 407 Proxy Authentication Required"),
       "says so: %s", task_error(t));
    s.host = "b.test";
    is_int((int64_t)tries(&s, t, 1, 1), 0, "another service waits, too");
    use_proxy(&s, t, "user:wr%6Fng@", "127.0.0.1", CONNECT_MS);
    is_int((int64_t)tries(&s, t, 1, 0), 1, "with a wrong password");
    ok(strstr(task_error(t), " refuses the user and the password: 407 ") &&
           !strstr(task_error(t), "wrong"),
       "says so: %s", task_error(t));
    use_proxy(&s, t, "user:wr%6Fng@", "127.0.0.1", CONNECT_MS);
    s.proxy.answer = "HTTP/1.1 401 Unauthorized\r\n\r\n";
    is_int((int64_t)tries(&s, t, 40, 100), 1, "the same of a proxy that answers 401");
    ok(strstr(task_error(t), " refuses the user and the password: 401 "), "says so: %s",
       task_error(t));
    site_close(&s, t);
}

/* --- the environment --- */

static void use_environment(struct site *s, struct task *t, const char *setting)
{
    http_client_free(s->client);
    struct http_client_options o = {.proxy = setting, .ca_file = s->front.ca_file};
    s->client = http_client_new(task_loop(t), &o);
}

static void test_environment(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    site_open(&s, t, TLS_H1, "");
    setenv("HTTPS_PROXY", arena_printf(task_arena(t), "127.0.0.1:%d", s.proxy.port), 1);
    use_environment(&s, t, "");
    is_int(call_it(&s, t), 0, "the proxy of the environment: %s", task_error(t));
    is_int((int64_t)s.proxy.tunnels, 1, "is used");
    struct http_response r;
    struct http_call c = {.url =
                              arena_printf(task_arena(t), "https://127.0.0.1:%d/ok", s.front.port)};
    is_int(http_call(t, s.client, &c, &r), 0, "a loopback address");
    is_int((int64_t)s.proxy.tunnels, 1, "is called directly");
    use_environment(&s, t, "none");
    c.url = arena_printf(task_arena(t), "https://api.test:%d/ok", s.front.port);
    is_int(http_call(t, s.client, &c, &r), 0, "none");
    is_int((int64_t)s.proxy.tunnels, 1, "is none");
    is_int(lookups_of_others, 1, "and the name is looked up");
    setenv("NO_PROXY", ".test", 1);
    use_environment(&s, t, "");
    is_int(http_call(t, s.client, &c, &r), 0, "an exception");
    is_int((int64_t)s.proxy.tunnels, 1, "is called directly");
    unsetenv("NO_PROXY");
    setenv("HTTPS_PROXY", "socks5://user:" SECRET "@127.0.0.1:1", 1);
    use_environment(&s, t, NULL);
    is_int(call_it(&s, t), ERR_UNAVAILABLE, "a proxy that cannot be used is not left out");
    ok(strstr(task_error(t), "https://api.test:443: the proxy of HTTPS_PROXY cannot be used: only "
                             "HTTP proxies") &&
           !strstr(task_error(t), "cret"),
       "and named: %s", task_error(t));
    unsetenv("HTTPS_PROXY");
    site_close(&s, t);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (enum server kind = PLAIN; kind <= PLAIN_H2; kind++) {
        tap_task(test_tunnel, &kind, true);
        tap_task(test_moment, &kind, true);
    }
    tap_task(test_login, NULL, true);
    tap_task(test_answers, NULL, true);
    tap_task(test_verified, NULL, true);
    tap_task(test_refusals, NULL, true);
    tap_task(test_time, NULL, true);
    tap_task(test_names, NULL, true);
    tap_task(test_unreachable, NULL, true);
    tap_task(test_spacing, NULL, false);
    tap_task(test_environment, NULL, true);
    return tap_done();
}
