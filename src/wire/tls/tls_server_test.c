/* The server's side, with our own client on the other end of a pair of sockets. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "loop/watch.h"
#include "tests/tap.h"
#include "wire/tls.h"
#include "wire/tls/tls_test_certs.h"

#define STEPS_MAX 20

static char dir[] = "/tmp/tls_server_test.XXXXXX";

static const char *in_dir(struct task *t, const char *file)
{
    return arena_printf(task_arena(t), "%s/%s", dir, file);
}

static struct tls_server *server(struct task *t, const char *cert, const char *key, bool h2)
{
    char problem[TLS_PROBLEM_BYTES] = "";
    struct tls_server *s =
        tls_server_new(&(struct tls_server_options){in_dir(t, cert), in_dir(t, key), h2}, problem);
    ok(s != NULL, "%s is read %s", cert, problem);
    check(s);
    return s;
}

static struct tls_context *client(struct task *t)
{
    struct tls_context *c =
        tls_context_new(&(struct tls_options){.ca_file = in_dir(t, "root.crt")});
    check(tls_context_ready(t, c) == 0);
    return c;
}

struct pair {
    int fd[2];
    struct tls *client, *server;
    enum tls_step says, hears; /* what each side has come to */
};

static void meet(struct pair *p, struct tls_context *c, struct tls_server *s,
                 const struct tls_peer *peer)
{
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fd) == 0);
    p->client = tls_new(c, p->fd[0], peer);
    p->server = tls_accept(s, p->fd[1]);
    p->says = p->hears = TLS_WAITS;
    for (int i = 0; i < STEPS_MAX && (p->says == TLS_WAITS || p->hears == TLS_WAITS); i++) {
        if (p->says == TLS_WAITS)
            p->says = tls_handshake(p->client);
        if (p->hears == TLS_WAITS)
            p->hears = tls_handshake(p->server);
    }
}

static void part(struct pair *p)
{
    tls_end(p->client);
    tls_end(p->server);
    close(p->fd[0]);
    close(p->fd[1]);
}

/* --- */

static void test_talk(struct task *t, void *arg)
{
    (void)arg;
    struct tls_server *s = server(t, "leaf.crt", "leaf.key", true);
    struct tls_context *c = client(t);
    struct pair p;
    char in[10];
    meet(&p, c, s, &(struct tls_peer){.host = "api.test"});
    ok(p.says == TLS_DONE && p.hears == TLS_DONE, "client and server agree %s%s",
       tls_problem(p.client), tls_problem(p.server));
    ok(tls_recv(p.server, in, sizeof in) < 0 && errno == EAGAIN &&
           tls_wants(p.server) == WATCH_READ,
       "nothing to read yet");
    is_int(tls_send(p.client, "hello", 5), 5, "the client sends");
    ok(tls_recv(p.server, in, 3) == 3 && tls_recv(p.server, in + 3, 3) == 2 &&
           memcmp(in, "hello", 5) == 0,
       "the server reads it in two parts");
    is_int(tls_send(p.server, "hi", 2), 2, "the server sends");
    is_int(tls_recv(p.client, in, sizeof in), 2, "the client reads");
    tls_end(p.server);
    is_int(tls_recv(p.client, in, sizeof in), 0, "and sees the end");
    p.server = tls_accept(s, p.fd[1]);
    part(&p);
    tls_context_free(c);
    tls_server_free(s);
}

static void test_alpn(struct task *t, void *arg)
{
    (void)arg;
    struct tls_context *c = client(t);
    for (int i = 0; i < 4; i++) {
        bool offered = i & 1, spoken = i & 2;
        struct tls_server *s = server(t, "leaf.crt", "leaf.key", spoken);
        struct pair p;
        meet(&p, c, s, &(struct tls_peer){.host = "api.test", .h2 = offered});
        ok(p.says == TLS_DONE && tls_is_h2(p.client) == (offered && spoken) &&
               tls_is_h2(p.server) == (offered && spoken),
           "h2 %s offered, %s spoken", offered ? "is" : "is not", spoken ? "is" : "is not");
        part(&p);
        tls_server_free(s);
    }
    tls_context_free(c);
}

/* A client of another making: what it offers is its own affair. */
static SSL *stranger(SSL_CTX *c, int fd)
{
    SSL *ssl = SSL_new(c);
    check(ssl && SSL_set_fd(ssl, fd) == 1);
    SSL_set_connect_state(ssl);
    return ssl;
}

static void refuse(struct tls_server *s, SSL_CTX *c, const char *problem)
{
    int fd[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
    SSL *ssl = stranger(c, fd[0]);
    struct tls *tls = tls_accept(s, fd[1]);
    enum tls_step step = TLS_WAITS;
    for (int i = 0; i < STEPS_MAX && step == TLS_WAITS; i++) {
        (void)SSL_do_handshake(ssl);
        step = tls_handshake(tls);
    }
    ok(step == TLS_FAILED && strstr(tls_problem(tls), problem), "%s: %s", problem,
       tls_problem(tls));
    is_int(tls_handshake(tls), TLS_FAILED, "and stays so");
    tls_end(tls);
    SSL_free(ssl);
    close(fd[0]);
    close(fd[1]);
}

static void test_refused(struct task *t, void *arg)
{
    (void)arg;
    struct tls_server *s = server(t, "leaf.crt", "leaf.key", true);
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());
    check(c && SSL_CTX_set_alpn_protos(c, (const unsigned char *)"\3foo", 4) == 0);
    refuse(s, c, "no protocol that this server speaks");
    SSL_CTX_set_security_level(c, 0);
    SSL_CTX_set_min_proto_version(c, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(c, TLS1_1_VERSION);
    refuse(s, c, "TLS below 1.2");
    SSL_CTX_free(c);

    int fd[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
    struct tls *tls = tls_accept(s, fd[1]);
    check(write(fd[0], "GET / HTTP/1.1\r\n\r\n", 18) == 18);
    is_int(tls_handshake(tls), TLS_FAILED, "plain HTTP: %s", tls_problem(tls));
    tls_end(tls);
    tls = tls_accept(s, fd[1]);
    is_int(tls_handshake(tls), TLS_WAITS, "a client that says nothing");
    close(fd[0]);
    is_int(tls_handshake(tls), TLS_FAILED, "and leaves: %s", tls_problem(tls));
    tls_end(tls);
    close(fd[1]);
    tls_server_free(s);
}

static void test_resumption(struct task *t, void *arg)
{
    (void)arg;
    struct tls_server *s = server(t, "leaf.crt", "leaf.key", true);
    struct tls_context *c = client(t);
    struct tls_resume resume = {NULL};
    for (int i = 0; i < 3; i++) {
        struct pair p;
        char in[10];
        meet(&p, c, s, &(struct tls_peer){.host = "api.test", .resume = &resume});
        check(tls_send(p.server, "hi", 2) == 2);
        is_int(tls_recv(p.client, in, sizeof in), 2, "a ticket comes with the first bytes");
        ok(tls_resumed(p.server) == (i > 0), "%s", i > 0 ? "resumes" : "is a full handshake");
        part(&p);
    }
    tls_server_free(s);
    s = server(t, "leaf.crt", "leaf.key", true);
    struct pair p;
    meet(&p, c, s, &(struct tls_peer){.host = "api.test", .resume = &resume});
    ok(p.says == TLS_DONE && !tls_resumed(p.client), "another process's ticket is no help");
    part(&p);
    tls_resume_release(&resume);
    tls_context_free(c);
    tls_server_free(s);
}

static void test_chain(struct task *t, void *arg)
{
    (void)arg;
    struct tls_server *s = server(t, "chain.crt", "under.key", false);
    struct tls_context *c = client(t);
    struct pair p;
    meet(&p, c, s, &(struct tls_peer){.host = "api.test"});
    is_int(p.says, TLS_DONE, "the chain is sent %s", tls_problem(p.client));
    part(&p);
    tls_context_free(c);
    tls_server_free(s);
}

/* --- files --- */

static void expect(struct task *t, const char *cert, const char *key, const char *words)
{
    char problem[TLS_PROBLEM_BYTES] = "";
    struct tls_server *s = tls_server_new(
        &(struct tls_server_options){in_dir(t, cert), in_dir(t, key), false}, problem);
    ok(!s && strstr(problem, words), "%s", problem);
    tls_server_free(s);
}

static void test_files(struct task *t, void *arg)
{
    (void)arg;
    expect(t, "missing.crt", "leaf.key", "missing.crt cannot be read: No such file");
    expect(t, "leaf.crt", "missing.key", "missing.key cannot be read: No such file");
    expect(t, ".", "leaf.key", "cannot be read: Is a directory");
    expect(t, "empty", "leaf.key", "empty is empty");
    expect(t, "leaf.crt", "empty", "empty is empty");
    expect(t, "junk", "leaf.key", "junk cannot be used");
    expect(t, "leaf.key", "leaf.key", "the certificate");
    expect(t, "leaf.crt", "junk", "junk cannot be used: it must hold a private key");
    expect(t, "leaf.crt", "locked.key", "locked.key cannot be used: it must hold");
    expect(t, "leaf.crt", "root.key", "root.key cannot be used: its key is not that of");
    expect(t, "leaf.crt", "rsa.key", "rsa.key cannot be used: its key is not that of");

    struct buf said;
    buf_init(&said);
    log_capture(&said);
    tls_server_free(server(t, "leaf.crt", "leaf.key", false));
    ok(said.len == 0, "a good one is no reason for words");
    tls_server_free(server(t, "old.crt", "old.key", false));
    ok(str_find(buf_str(&said), STR("old.crt has expired")) >= 0, "expired: a warning");
    tls_server_free(server(t, "early.crt", "early.key", false));
    ok(str_find(buf_str(&said), STR("early.crt is not valid yet")) >= 0, "not yet valid, too");
    log_capture(NULL);
    buf_release(&said);
}

static void save(const char *name, const struct test_cert *c)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s.crt", dir, name);
    test_cert_save(c, path);
    snprintf(path, sizeof path, "%s/%s.key", dir, name);
    test_key_save(c, path);
}

static FILE *create(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    check(f);
    return f;
}

static void make_keys(const struct test_cert *leaf)
{
    FILE *f = create("locked.key");
    check(PEM_write_PrivateKey(f, leaf->key, EVP_aes_128_cbc(), (const unsigned char *)"pw", 2,
                               NULL, NULL) &&
          fclose(f) == 0);
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    f = create("rsa.key");
    check(rsa && PEM_write_PrivateKey(f, rsa, NULL, NULL, 0, NULL, NULL) && fclose(f) == 0);
    EVP_PKEY_free(rsa);
    check(fclose(create("empty")) == 0);
    f = create("junk");
    check(fputs("no certificate\n", f) >= 0 && fclose(f) == 0);
}

static void make_files(void)
{
    check(mkdtemp(dir));
    struct test_cert root =
        test_cert_make(&(struct test_cert_spec){.name = "Test Root", .authority = true});
    struct test_cert middle = test_cert_make(
        &(struct test_cert_spec){.name = "Middle", .authority = true, .issuer = &root});
    struct test_cert_spec spec = {.name = "leaf", .san = "DNS:api.test", .issuer = &root};
    struct test_cert leaf = test_cert_make(&spec);
    spec.from_s = -7200, spec.to_s = -3600;
    struct test_cert old = test_cert_make(&spec);
    spec.from_s = 3600, spec.to_s = 7200;
    struct test_cert early = test_cert_make(&spec);
    spec = (struct test_cert_spec){.name = "under", .san = "DNS:api.test", .issuer = &middle};
    struct test_cert under = test_cert_make(&spec);
    save("root", &root);
    save("leaf", &leaf);
    save("old", &old);
    save("early", &early);
    save("under", &under);
    make_keys(&leaf);
    FILE *f = create("chain.crt");
    check(PEM_write_X509(f, under.cert) && PEM_write_X509(f, middle.cert) && fclose(f) == 0);
    struct test_cert *all[] = {&root, &middle, &leaf, &old, &early, &under};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_cert_free(all[i]);
}

int main(void)
{
    make_files();
    tap_task(test_talk, NULL, true);
    tap_task(test_alpn, NULL, true);
    tap_task(test_refused, NULL, true);
    tap_task(test_resumption, NULL, true);
    tap_task(test_chain, NULL, true);
    tap_task(test_files, NULL, true);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    check(system(command) == 0);
    return tap_done();
}
