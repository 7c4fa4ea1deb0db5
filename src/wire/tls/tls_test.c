/* Both sides of TLS in one thread, step by step, with certificates made here. */
#include "wire/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/sync.h"
#include "loop/watch.h"
#include "tests/tap.h"
#include "wire/tls/tls_test_certs.h"

#define STEPS_MAX 20

static struct test_cert root, middle, other_root;
static char dir[] = "/tmp/tls_test.XXXXXX";

static const char *in_dir(struct task *t, const char *file)
{
    return arena_printf(task_arena(t), "%s/%s", dir, file);
}

static struct test_cert leaf(const char *san)
{
    return test_cert_make(&(struct test_cert_spec){.name = "leaf", .san = san, .issuer = &root});
}

static struct tls_context *context(struct task *t, const char *ca_file)
{
    struct tls_context *c = tls_context_new(&(struct tls_options){.ca_file = in_dir(t, ca_file)});
    is_int(tls_context_ready(t, c), 0, "%s is read", ca_file);
    return c;
}

/* --- both sides --- */

struct pair {
    int fd[2];
    struct tls *client;
    SSL *server;
    enum tls_step step;
    bool served;
};

static void pair_open(struct pair *p, struct tls_context *c, SSL_CTX *server,
                      const struct tls_peer *peer)
{
    *p = (struct pair){.step = TLS_WAITS};
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fd) == 0);
    p->client = tls_new(c, p->fd[0], peer);
    if (!server)
        return;
    p->server = SSL_new(server);
    check(p->server && SSL_set_fd(p->server, p->fd[1]) == 1);
    SSL_set_accept_state(p->server);
}

static void pair_close(struct pair *p)
{
    if (p->client)
        tls_end(p->client);
    SSL_free(p->server);
    ERR_clear_error();
    close(p->fd[0]);
    close(p->fd[1]);
}

static void shake_hands(struct pair *p)
{
    for (int i = 0; i < STEPS_MAX && (p->step == TLS_WAITS || !p->served); i++) {
        if (p->step == TLS_WAITS)
            p->step = tls_handshake(p->client);
        if (p->server && !p->served)
            p->served = SSL_do_handshake(p->server) == 1;
    }
}

/* The client reads what the server says; TLS 1.3 sends sessions before it. */
static bool hears(struct pair *p, const char *text)
{
    char in[100];
    ERR_clear_error();
    check(SSL_write(p->server, text, (int)strlen(text)) == (int)strlen(text));
    ssize_t n = tls_recv(p->client, in, sizeof in);
    return n == (ssize_t)strlen(text) && memcmp(in, text, (size_t)n) == 0;
}

static bool says(struct pair *p, const char *text)
{
    char in[100];
    size_t n = strlen(text);
    check(tls_send(p->client, text, n) == (ssize_t)n);
    ERR_clear_error();
    return SSL_read(p->server, in, sizeof in) == (int)n && memcmp(in, text, n) == 0;
}

/* --- what is accepted --- */

struct meeting {
    const char *host, *san;
    const char *problem; /* NULL: it is accepted */
};

static const struct meeting meetings[] = {
    {"api.test", "DNS:api.test", NULL},
    {"API.test", "DNS:api.test", NULL},
    {"api.test.", "DNS:api.test", NULL},
    {"api.test", "DNS:*.test", "not for api.test; its names: *.test"}, /* a whole domain */
    {"a.api.test", "DNS:*.api.test", NULL},
    {"a.b.api.test", "DNS:*.api.test", "its names: *.api.test"},
    {"api.test", "DNS:*.api.test", "its names: *.api.test"},
    {"xa.api.test", "DNS:x*.api.test", "its names: x*.api.test"},
    {"127.0.0.1", "IP:127.0.0.1", NULL},
    {"127.0.0.1", "DNS:127.0.0.1", "not for 127.0.0.1"},
    {"127.0.0.1", "DNS:a.test,IP:127.0.0.2", "its names: a.test, 127.0.0.2"},
    {"::1", "IP:::1", NULL},
    {"[::1]", "IP:::1", NULL},
    {"[::1]", "IP:::2", "not for ::1; its names: ::2"},
    {"api.test", "DNS:other.test", "not for api.test; its names: other.test"},
    {"leaf", NULL, "its names: none"}, /* a common name does not count */
};

static void test_names(struct task *t, void *arg)
{
    (void)arg;
    struct tls_context *c = context(t, "root.crt");
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++) {
        const struct meeting *m = &meetings[i];
        struct test_cert cert = leaf(m->san);
        SSL_CTX *server = test_server_new(&cert, NULL, NULL);
        struct pair p;
        pair_open(&p, c, server, &(struct tls_peer){.host = m->host});
        shake_hands(&p);
        if (m->problem)
            ok(p.step == TLS_FAILED && strstr(tls_problem(p.client), m->problem),
               "%s is refused: %s", m->host, tls_problem(p.client));
        else
            ok(p.step == TLS_DONE && p.served && hears(&p, "hi") && says(&p, "ho"),
               "%s is accepted with %s %s", m->host, m->san, tls_problem(p.client));
        const char *sni = SSL_get_servername(p.server, TLSEXT_NAMETYPE_host_name);
        bool address = m->san && strstr(m->san, "IP:");
        if (!m->problem)
            ok(address ? !sni : sni != NULL, "SNI is for names: %s", sni ? sni : "none");
        pair_close(&p);
        SSL_CTX_free(server);
        test_cert_free(&cert);
    }
    tls_context_free(c);
}

/* --- what is not --- */

static void expect(struct task *t, const char *ca_file, const struct test_cert_spec *spec,
                   const struct test_cert *above, const char *problem)
{
    struct tls_context *c = context(t, ca_file);
    struct test_cert cert = test_cert_make(spec);
    SSL_CTX *server = test_server_new(&cert, above, NULL);
    struct pair p;
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    if (problem)
        ok(p.step == TLS_FAILED && strstr(tls_problem(p.client), problem), "%s: %s", problem,
           tls_problem(p.client));
    else
        is_int(p.step, TLS_DONE, "accepted: %s", tls_problem(p.client));
    pair_close(&p);
    SSL_CTX_free(server);
    test_cert_free(&cert);
    tls_context_free(c);
}

static void test_chains(struct task *t, void *arg)
{
    (void)arg;
    struct test_cert_spec s = {.name = "leaf", .san = "DNS:api.test", .issuer = &root};
    expect(t, "root.crt", &s, NULL, NULL);
    s.from_s = -7200, s.to_s = -3600;
    expect(t, "root.crt", &s, NULL, "its certificate has expired: 20");
    s.from_s = 3600, s.to_s = 7200;
    expect(t, "root.crt", &s, NULL, "is not valid yet");
    s.from_s = s.to_s = 0;
    expect(t, "other_root.crt", &s, NULL, "was issued by \"Test Root\", which is not among");
    expect(t, "other_root.crt", &s, &root, "the authority \"Test Root\", which is not trusted");
    s.issuer = &middle;
    expect(t, "root.crt", &s, &middle, NULL);
    expect(t, "root.crt", &s, NULL, "does not send the intermediate certificate");
    expect(t, "root.crt", &s, NULL, "was issued by \"Test ?Middle?\"");
    expect(t, "middle.crt", &s, NULL, NULL);
    expect(t, "other_root.crt", &s, &middle,
           "the certificate of its authority \"Test ?Middle?\" was issued by \"Test Root\"");
    s.issuer = NULL;
    expect(t, "root.crt", &s, NULL, "its certificate is self-signed");
}

static void test_versions(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        int from, to;
        const char *problem;
    } servers[] = {{TLS1_VERSION, TLS1_1_VERSION, "TLS"},
                   {TLS1_2_VERSION, TLS1_2_VERSION, NULL},
                   {TLS1_3_VERSION, TLS1_3_VERSION, NULL}};
    struct tls_context *c = context(t, "root.crt");
    struct test_cert cert = leaf("DNS:api.test");
    for (size_t i = 0; i < 3; i++) {
        SSL_CTX *server = test_server_new(&cert, NULL, NULL);
        SSL_CTX_set_security_level(server, 0);
        SSL_CTX_set_min_proto_version(server, servers[i].from);
        SSL_CTX_set_max_proto_version(server, servers[i].to);
        struct pair p;
        pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
        shake_hands(&p);
        if (servers[i].problem)
            ok(p.step == TLS_FAILED && strstr(tls_problem(p.client), "1.2"), "TLS 1.1: %s",
               tls_problem(p.client));
        else
            ok(p.step == TLS_DONE && hears(&p, "hi"), "TLS 1.%zu", i + 1);
        pair_close(&p);
        SSL_CTX_free(server);
    }
    test_cert_free(&cert);
    tls_context_free(c);
}

/* --- servers that are none --- */

static void test_no_tls(struct task *t, void *arg)
{
    (void)arg;
    static const char *const replies[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-x\r\n",
                                          "220 mail.test ESMTP\r\n"};
    struct tls_context *c = context(t, "root.crt");
    struct pair p;
    for (size_t i = 0; i < 3; i++) {
        pair_open(&p, c, NULL, &(struct tls_peer){.host = "api.test"});
        check(write(p.fd[1], replies[i], strlen(replies[i])) > 0);
        shake_hands(&p);
        ok(p.step == TLS_FAILED && strstr(tls_problem(p.client), "speaks no TLS"), "%.8s: %s",
           replies[i], tls_problem(p.client));
        pair_close(&p);
    }
    pair_open(&p, c, NULL, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    ok(p.step == TLS_WAITS && tls_wants(p.client) == WATCH_READ, "silence: it waits for input");
    check(shutdown(p.fd[1], SHUT_RDWR) == 0);
    shake_hands(&p);
    ok(p.step == TLS_FAILED && strstr(tls_problem(p.client), "was closed during the handshake"),
       "closed: %s", tls_problem(p.client));
    is_int(tls_handshake(p.client), TLS_FAILED, "and so it stays");
    pair_close(&p);
    tls_context_free(c);
}

/* --- ALPN, sessions --- */

static void test_alpn(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        const char *chosen;
        bool offered, is_h2;
    } cases[] = {{"h2", true, true},
                 {"http/1.1", true, false},
                 {NULL, true, false},
                 {"h2", false, false},
                 {"http/1.1", false, false}};
    struct tls_context *c = context(t, "root.crt");
    struct test_cert cert = leaf("DNS:api.test");
    for (size_t i = 0; i < 5; i++) {
        SSL_CTX *server = test_server_new(&cert, NULL, cases[i].chosen);
        struct pair p;
        pair_open(&p, c, server, &(struct tls_peer){.host = "api.test", .h2 = cases[i].offered});
        shake_hands(&p);
        ok(p.step == TLS_DONE && tls_is_h2(p.client) == cases[i].is_h2,
           "h2 %soffered, the server chooses %s", cases[i].offered ? "" : "not ",
           cases[i].chosen ? cases[i].chosen : "nothing");
        pair_close(&p);
        SSL_CTX_free(server);
    }
    test_cert_free(&cert);
    tls_context_free(c);
}

static void test_resumption(struct task *t, void *arg)
{
    (void)arg;
    struct tls_context *c = context(t, "root.crt");
    struct test_cert cert = leaf("DNS:api.test");
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_CTX *server = test_server_new(&cert, NULL, NULL);
        SSL_CTX_set_max_proto_version(server, version);
        struct tls_resume resume = {NULL};
        for (int i = 0; i < 4; i++) {
            struct pair p;
            pair_open(&p, c, server, &(struct tls_peer){.host = "api.test", .resume = &resume});
            shake_hands(&p);
            ok(p.step == TLS_DONE && hears(&p, "hi"), "handshake %d: %s", i, tls_problem(p.client));
            ok(tls_resumed(p.client) == (i > 0), "%s", i > 0 ? "resumes" : "is a full one");
            if (i == 2) { /* a connection that is cut does not spoil it */
                char byte;
                check(shutdown(p.fd[1], SHUT_RDWR) == 0);
                is_int(tls_recv(p.client, &byte, 1), -1, "cut");
            }
            pair_close(&p);
        }
        tls_resume_release(&resume);
        SSL_CTX_free(server);
    }
    test_cert_free(&cert);
    tls_context_free(c);
}

/* --- data --- */

static void test_ends(struct task *t, void *arg)
{
    (void)arg;
    struct tls_context *c = context(t, "root.crt");
    struct test_cert cert = leaf("DNS:api.test");
    SSL_CTX *server = test_server_new(&cert, NULL, NULL);
    struct pair p;
    char in[10];
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    ok(tls_recv(p.client, in, sizeof in) < 0 && errno == EAGAIN, "nothing to read yet");
    check(SSL_write(p.server, "hello", 5) == 5 && SSL_shutdown(p.server) == 0);
    is_int(tls_recv(p.client, in, 3), 3, "a part");
    is_int(tls_recv(p.client, in, 3), 2, "the rest");
    is_int(tls_recv(p.client, in, 3), 0, "the end");
    pair_close(&p);

    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    check(SSL_write(p.server, "hello", 5) == 5);
    check(shutdown(p.fd[1], SHUT_WR) == 0);
    is_int(tls_recv(p.client, in, sizeof in), 5, "all of it");
    ok(tls_recv(p.client, in, sizeof in) < 0 && errno == ECONNRESET, "then it was cut: %s",
       tls_problem(p.client));
    check(shutdown(p.fd[1], SHUT_RDWR) == 0);
    ok(tls_send(p.client, "x", 1) < 0 && errno != EAGAIN, "a send fails");
    pair_close(&p);

    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    close(p.fd[1]); /* SIGPIPE would end this program */
    p.fd[1] = -1;
    ok(tls_send(p.client, "x", 1) < 0 && errno == EPIPE, "a send to a closed socket: %s",
       tls_problem(p.client));
    pair_close(&p);
    SSL_CTX_free(server);
    test_cert_free(&cert);
    tls_context_free(c);
}

/* More than the sockets hold, from a buffer that moves. */
static void test_large(struct task *t, void *arg)
{
    (void)arg;
    enum { BYTES = 3 << 20 };
    struct tls_context *c = context(t, "root.crt");
    struct test_cert cert = leaf("DNS:api.test");
    SSL_CTX *server = test_server_new(&cert, NULL, NULL);
    struct pair p;
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    char *out = malloc(BYTES), *in = malloc(BYTES);
    check(out && in);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = (char)(i * 2654435761u >> 20);
    size_t sent = 0, got = 0, waits = 0;
    while (got < BYTES) {
        char *moved = malloc(BYTES - sent + 1);
        check(moved);
        memcpy(moved, out + sent, BYTES - sent);
        ssize_t n = sent < BYTES ? tls_send(p.client, moved, BYTES - sent) : 0;
        free(moved);
        sent += n > 0 ? (size_t)n : 0;
        if (n > 0)
            continue;
        check(sent == BYTES || (errno == EAGAIN && tls_wants(p.client) == WATCH_WRITE));
        waits += sent < BYTES;
        int r;
        while (ERR_clear_error(), (r = SSL_read(p.server, in + got, (int)(BYTES - got))) > 0)
            got += (size_t)r;
    }
    ok(memcmp(in, out, BYTES) == 0 && waits > 0, "3 MB come whole, after %zu waits", waits);
    free(out);
    free(in);
    pair_close(&p);
    SSL_CTX_free(server);
    test_cert_free(&cert);
    tls_context_free(c);
}

/* --- files --- */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void expect_unready(struct task *t, const struct tls_options *o, const char *problem)
{
    struct tls_context *c = tls_context_new(o);
    is_int(tls_context_ready(t, c), ERR_UNAVAILABLE, "refused");
    ok(strstr(task_error(t), problem), "%s: %s", problem, task_error(t));
    tls_context_free(c);
}

static void test_files(struct task *t, void *arg)
{
    (void)arg;
    write_file(in_dir(t, "empty.crt"), "");
    write_file(in_dir(t, "junk.crt"), "no certificate\n");
    struct tls_options o = {.ca_file = in_dir(t, "missing.crt")};
    expect_unready(t, &o, "missing.crt cannot be read: No such file");
    o.ca_file = dir;
    expect_unready(t, &o, "cannot be read: Is a directory");
    o.ca_file = in_dir(t, "empty.crt");
    expect_unready(t, &o, "empty.crt is empty");
    o.ca_file = in_dir(t, "junk.crt");
    expect_unready(t, &o, "junk.crt has no usable certificate");
    o = (struct tls_options){in_dir(t, "root.crt"), in_dir(t, "client.crt"),
                             in_dir(t, "missing.key")};
    expect_unready(t, &o, "missing.key cannot be read");
    o.key_file = in_dir(t, "root.key");
    expect_unready(t, &o, "root.key cannot be used");
    o.ca_file = NULL;
    setenv("SSL_CERT_FILE", in_dir(t, "missing.crt"), 1);
    o.cert_file = NULL;
    expect_unready(t, &o, "missing.crt cannot be read");
    unsetenv("SSL_CERT_FILE");

    struct tls_context *c =
        tls_context_new(&(struct tls_options){.ca_file = in_dir(t, "late.crt")});
    is_int(tls_context_ready(t, c), ERR_UNAVAILABLE, "a file that is missing");
    test_cert_save(&root, in_dir(t, "late.crt"));
    is_int(tls_context_ready(t, c), 0, "is read when it has come");
    tls_context_free(c);
}

static void test_system(struct task *t, void *arg)
{
    (void)arg;
    setenv("SSL_CERT_FILE", in_dir(t, "root.crt"), 1);
    struct tls_context *c = tls_context_new(&(struct tls_options){.ca_file = NULL});
    is_int(tls_context_ready(t, c), 0, "SSL_CERT_FILE is read: %s", task_error(t));
    unsetenv("SSL_CERT_FILE");
    struct test_cert cert = leaf("DNS:api.test");
    SSL_CTX *server = test_server_new(&cert, NULL, NULL);
    struct pair p;
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    is_int(p.step, TLS_DONE, "and trusted");
    pair_close(&p);
    tls_context_free(c);
    c = tls_context_new(&(struct tls_options){.ca_file = NULL});
    is_int(tls_context_ready(t, c), 0, "the system's store");
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    is_int(p.step, TLS_FAILED, "does not know the test's authority");
    pair_close(&p);
    tls_context_free(c);
    SSL_CTX_free(server);
    test_cert_free(&cert);
}

struct crowd {
    struct tls_context *context;
    int ready, failed;
};

static void get_ready(struct task *t, void *arg)
{
    struct crowd *k = arg;
    int err = tls_context_ready(t, k->context);
    k->ready += err == 0;
    k->failed += err == ERR_UNAVAILABLE && strstr(task_error(t), "missing.crt");
}

static void run_crowd(struct task *t, struct crowd *k, const char *ca_file)
{
    struct group g;
    group_init(&g, task_loop(t));
    k->context = tls_context_new(&(struct tls_options){.ca_file = ca_file});
    for (int i = 0; i < 50; i++)
        check(task_go(&g, "ready", get_ready, k) == 0);
    check(group_join(t, &g) == 0);
    tls_context_free(k->context);
}

static void test_many_wait(struct task *t, void *arg)
{
    (void)arg;
    struct crowd k = {.ready = 0};
    run_crowd(t, &k, NULL);
    is_int(k.ready, 50, "fifty tasks wait for one reading");
    run_crowd(t, &k, in_dir(t, "missing.crt"));
    is_int(k.failed, 50, "and share its failure");
}

static void test_client_cert(struct task *t, void *arg)
{
    (void)arg;
    struct test_cert cert = leaf("DNS:api.test");
    SSL_CTX *server = test_server_new(&cert, NULL, NULL);
    SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    check(X509_STORE_add_cert(SSL_CTX_get_cert_store(server), root.cert) == 1);
    struct tls_context *c = tls_context_new(&(struct tls_options){
        in_dir(t, "root.crt"), in_dir(t, "client.crt"), in_dir(t, "client.key")});
    is_int(tls_context_ready(t, c), 0, "certificate and key are read: %s", task_error(t));
    struct pair p;
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    ok(p.step == TLS_DONE && p.served && hears(&p, "hi"), "the server has accepted it");
    pair_close(&p);
    tls_context_free(c);
    c = context(t, "root.crt");
    pair_open(&p, c, server, &(struct tls_peer){.host = "api.test"});
    shake_hands(&p);
    char in[10];
    ok(!p.served && tls_recv(p.client, in, sizeof in) < 0 &&
           strstr(tls_problem(p.client), "wants a client certificate"),
       "without one: %s", tls_problem(p.client));
    pair_close(&p);
    tls_context_free(c);
    SSL_CTX_free(server);
    test_cert_free(&cert);
}

static void make_files(void)
{
    char path[100];
    check(mkdtemp(dir));
    root = test_cert_make(&(struct test_cert_spec){.name = "Test Root", .authority = true});
    other_root = test_cert_make(&(struct test_cert_spec){.name = "Other Root", .authority = true});
    middle = test_cert_make(
        &(struct test_cert_spec){.name = "Test \"Middle\n", .authority = true, .issuer = &root});
    struct test_cert client =
        test_cert_make(&(struct test_cert_spec){.name = "client", .issuer = &root});
    const struct {
        const char *name;
        const struct test_cert *cert;
    } files[] = {
        {"root", &root}, {"other_root", &other_root}, {"middle", &middle}, {"client", &client}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s.crt", dir, files[i].name);
        test_cert_save(files[i].cert, path);
        snprintf(path, sizeof path, "%s/%s.key", dir, files[i].name);
        test_key_save(files[i].cert, path);
    }
    test_cert_free(&client);
}

int main(void)
{
    make_files();
    tap_task(test_names, NULL, true);
    tap_task(test_chains, NULL, true);
    tap_task(test_versions, NULL, true);
    tap_task(test_no_tls, NULL, true);
    tap_task(test_alpn, NULL, true);
    tap_task(test_resumption, NULL, true);
    tap_task(test_ends, NULL, true);
    tap_task(test_large, NULL, true);
    tap_task(test_files, NULL, true);
    tap_task(test_system, NULL, true);
    tap_task(test_many_wait, NULL, true);
    tap_task(test_client_cert, NULL, true);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    check(system(command) == 0);
    test_cert_free(&root);
    test_cert_free(&middle);
    test_cert_free(&other_root);
    return tap_done();
}
