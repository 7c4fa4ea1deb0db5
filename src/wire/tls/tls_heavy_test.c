/* Which handshakes pause, and what runs on a helper thread then. */
#include <openssl/err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop/watch.h"
#include "tests/tap.h"
#include "wire/tls/tls_private.h"
#include "wire/tls/tls_test_certs.h"

#define STEPS_MAX 20
#define HELPER_MS 60

static char dir[] = "/tmp/tls_heavy_test.XXXXXX";

static const char *in_dir(struct task *t, const char *file)
{
    return arena_printf(task_arena(t), "%s/%s", dir, file);
}

/* A certificate of this kind, its key and that of its authority, as leaf.crt, leaf.key, ca.crt. */
static void make_files(struct task *t, const struct test_cert_spec *leaf, const char *ca_curve)
{
    struct test_cert ca = test_cert_make(
        &(struct test_cert_spec){.name = "ca", .authority = true, .curve = ca_curve});
    struct test_cert_spec spec = *leaf;
    spec.name = "leaf";
    spec.san = "DNS:api.test";
    spec.issuer = &ca;
    struct test_cert cert = test_cert_make(&spec);
    test_cert_save(&ca, in_dir(t, "ca.crt"));
    test_cert_save(&cert, in_dir(t, "leaf.crt"));
    test_key_save(&cert, in_dir(t, "leaf.key"));
    test_cert_free(&cert);
    test_cert_free(&ca);
}

/* --- both sides, step by step --- */

struct pair {
    int fd[2];
    struct tls_context *context;
    struct tls_server *server;
    struct tls_resume resume;
    struct tls *end[2];    /* client, server */
    enum tls_step step[2]; /* what each has come to */
    int heavy[2];          /* how often each has paused */
};

static void pair_open(struct task *t, struct pair *p)
{
    char problem[TLS_PROBLEM_BYTES];
    *p = (struct pair){.heavy = {0}};
    p->context = tls_context_new(&(struct tls_options){.ca_file = in_dir(t, "ca.crt")});
    check(tls_context_ready(t, p->context) == 0);
    p->server = tls_server_new(&(struct tls_server_options){.cert_file = in_dir(t, "leaf.crt"),
                                                            .key_file = in_dir(t, "leaf.key")},
                               problem);
    check(p->server);
}

static void pair_close(struct pair *p)
{
    tls_resume_release(&p->resume);
    tls_context_free(p->context);
    tls_server_free(p->server);
}

static void meet(struct pair *p, const char *host)
{
    char byte;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fd) == 0);
    p->end[0] = tls_new(p->context, p->fd[0], &(struct tls_peer){host, false, &p->resume});
    p->end[1] = tls_accept(p->server, p->fd[1]);
    p->heavy[0] = p->heavy[1] = 0;
    for (int i = 0; i < STEPS_MAX; i++) {
        p->step[i % 2] = tls_handshake(p->end[i % 2]);
        if (p->step[i % 2] != TLS_HEAVY)
            continue;
        p->heavy[i % 2]++;
        p->step[i % 2] = tls_handshake(p->end[i % 2]);
    }
    (void)tls_recv(p->end[0], &byte, 1); /* the session */
}

static void part(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        tls_end(p->end[i]);
        close(p->fd[i]);
    }
}

static const struct {
    struct test_cert_spec leaf;
    const char *ca_curve, *what;
    int verify, sign; /* pauses of the client, of the server */
} kinds[] = {
    {{.curve = "P-256"}, "P-256", "P-256 issued by P-256", 0, 0},
    {{.curve = "P-384"}, "P-256", "P-384 issued by P-256", 1, 1},
    {{.curve = "P-521"}, "P-256", "P-521 issued by P-256", 1, 1},
    {{.curve = "P-256"}, "P-384", "P-256 issued by P-384, which is not sent", 1, 0},
    {{.rsa_bits = 2048}, "P-256", "RSA-2048", 0, 0},
    {{.rsa_bits = 3072}, "P-256", "RSA-3072, which is cheap to verify", 0, 1},
};

static void test_kinds(struct task *t, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair p;
        make_files(t, &kinds[i].leaf, kinds[i].ca_curve);
        pair_open(t, &p);
        meet(&p, "api.test");
        ok(p.step[0] == TLS_DONE && p.step[1] == TLS_DONE, "%s: it ends %s %s", kinds[i].what,
           tls_problem(p.end[0]), tls_problem(p.end[1]));
        is_int(p.heavy[0], kinds[i].verify, "the client's pauses");
        is_int(p.heavy[1], kinds[i].sign, "the server's pauses");
        part(&p);
        meet(&p, "api.test");
        ok(p.step[0] == TLS_DONE && tls_resumed(p.end[0]), "the next one is resumed");
        is_int(p.heavy[0] + p.heavy[1], 0, "and pauses nowhere");
        part(&p);
        tls_resume_release(&p.resume);
        meet(&p, "other.test");
        ok(p.step[0] == TLS_FAILED && strstr(tls_problem(p.end[0]), "not for other.test"),
           "another name is refused: %s", tls_problem(p.end[0]));
        part(&p);
        pair_close(&p);
    }
}

/* --- a client's certificate --- */

static void test_client_cert(struct task *t, void *arg)
{
    (void)arg;
    make_files(t, &(struct test_cert_spec){.curve = "P-384"}, "P-256");
    struct test_cert own = test_cert_make(
        &(struct test_cert_spec){.name = "server", .san = "DNS:api.test", .authority = true});
    test_cert_save(&own, in_dir(t, "server.crt"));
    SSL_CTX *server = test_server_new(&own, NULL, NULL);
    SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    check(SSL_CTX_load_verify_file(server, in_dir(t, "ca.crt")) == 1);
    struct tls_context *c =
        tls_context_new(&(struct tls_options){.ca_file = in_dir(t, "server.crt"),
                                              .cert_file = in_dir(t, "leaf.crt"),
                                              .key_file = in_dir(t, "leaf.key")});
    check(tls_context_ready(t, c) == 0);
    int fd[2], heavy = 0;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
    struct tls *client = tls_new(c, fd[0], &(struct tls_peer){.host = "api.test"});
    SSL *far = SSL_new(server);
    check(far && SSL_set_fd(far, fd[1]) == 1);
    SSL_set_accept_state(far);
    int served = 0;
    for (int i = 0; i < STEPS_MAX && served != 1; i++) {
        heavy += tls_handshake(client) == TLS_HEAVY;
        served = SSL_do_handshake(far);
    }
    ok(served == 1, "a server that asks gets the client's certificate");
    is_int(heavy, 1, "which is signed for after a pause");
    SSL_free(far);
    ERR_clear_error();
    tls_end(client);
    close(fd[0]);
    close(fd[1]);
    tls_context_free(c);
    SSL_CTX_free(server);
    test_cert_free(&own);
}

/* --- tasks --- */

static pthread_t loop_thread;
static atomic_int entered, left; /* what a helper thread has done */

static void on_info(const SSL *ssl, int where, int ret)
{
    (void)ssl, (void)where, (void)ret;
    if (pthread_equal(pthread_self(), loop_thread) || atomic_exchange(&entered, 1))
        return;
    usleep(HELPER_MS * 1000);
    atomic_store(&left, 1);
}

struct side {
    struct pair *pair;
    int err;
    bool hasty; /* the task went on while the thread was at it */
};

static void run_server(struct task *t, void *arg)
{
    struct side *s = arg;
    struct watch w;
    watch_init(&w, task_loop(t), s->pair->fd[1]);
    s->err = tls_task_accept(t, s->pair->server, &w, &s->pair->end[1]);
    watch_release(&w);
}

static void run_client(struct task *t, void *arg)
{
    struct side *s = arg;
    struct tls_peer peer = {.host = "api.test", .resume = &s->pair->resume};
    struct watch w;
    watch_init(&w, task_loop(t), s->pair->fd[0]);
    s->err = tls_task_connect(t, s->pair->context, &peer, &w, &s->pair->end[0]);
    s->hasty = atomic_load(&entered) && !atomic_load(&left);
    if (s->err && s->pair->end[0]) {
        tls_task_end(t, s->pair->end[0]);
        s->pair->end[0] = NULL;
    }
    watch_release(&w);
}

static void test_helper(struct task *t, void *arg)
{
    const bool cancel = arg != NULL;
    struct pair p;
    struct group g;
    make_files(t, &(struct test_cert_spec){.curve = "P-384"}, "P-256");
    pair_open(t, &p);
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p.fd) == 0);
    loop_thread = pthread_self();
    atomic_store(&entered, 0);
    atomic_store(&left, 0);
    SSL_CTX_set_info_callback(tls_context_ssl(p.context), on_info);
    struct side client = {.pair = &p}, server = {.pair = &p};
    group_init(&g, task_loop(t));
    check(task_go(&g, "server", run_server, &server) == 0);
    check(task_go(&g, "client", run_client, &client) == 0);
    int turns = 0;
    for (int i = 0; i < 5000 && !atomic_load(&left); i++) {
        check(task_sleep(t, 1) == 0);
        turns += atomic_load(&entered);
        if (cancel && turns == 1)
            group_cancel(&g);
    }
    ok(atomic_load(&entered), "the certificate is verified on a helper thread");
    ok(turns > 5, "the loop goes on meanwhile: %d turns", turns);
    is_int(group_join(t, &g), 0, "join");
    is_int(client.err, 0, cancel ? "cancelled meanwhile, the step ends all the same" : "done");
    ok(!client.hasty, "the task has waited for the thread");
    is_int(p.context ? (int64_t)tls_context_helper(p.context)->free : 0, TLS_HELPERS,
           "the helper is free again");
    for (int i = 0; i < 2; i++) {
        if (p.end[i])
            tls_end(p.end[i]);
        close(p.fd[i]);
    }
    pair_close(&p);
}

/* --- many at once --- */

#define CROWD 60

static int64_t cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct rhythm {
    const struct group *crowd;
    int64_t most_us; /* between two of its turns */
};

static void keep_time(struct task *t, void *arg)
{
    struct rhythm *r = arg;
    int64_t before = cpu_us();
    while (r->crowd->count > 0) {
        check(task_yield(t) == 0);
        int64_t now = cpu_us();
        if (now - before > r->most_us)
            r->most_us = now - before;
        before = now;
    }
}

static void test_crowd(struct task *t, void *arg)
{
    (void)arg;
    static struct pair pairs[CROWD];
    static struct side clients[CROWD], servers[CROWD];
    struct group g, other;
    struct pair shared;
    make_files(t, &(struct test_cert_spec){.curve = "P-256"}, "P-256");
    pair_open(t, &shared);
    group_init(&g, task_loop(t));
    group_init(&other, task_loop(t));
    int64_t start = cpu_us();
    for (int i = 0; i < CROWD; i++) {
        pairs[i] = (struct pair){.context = shared.context, .server = shared.server};
        clients[i].pair = servers[i].pair = &pairs[i];
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i].fd) == 0);
        check(task_go(&g, "server", run_server, &servers[i]) == 0);
        check(task_go(&g, "client", run_client, &clients[i]) == 0);
    }
    struct rhythm r = {.crowd = &g};
    check(task_go(&other, "keep time", keep_time, &r) == 0);
    check(group_join(t, &g) == 0 && group_join(t, &other) == 0);
    int64_t all_us = cpu_us() - start;
    int failed = 0;
    for (int i = 0; i < CROWD; i++) {
        failed += clients[i].err || servers[i].err;
        tls_resume_release(&pairs[i].resume);
        for (int side = 0; side < 2; side++) {
            tls_end(pairs[i].end[side]);
            close(pairs[i].fd[side]);
        }
    }
    is_int(failed, 0, "%d handshakes at once", CROWD);
    ok(r.most_us < all_us / 4, "other tasks run between them: after %lld of %lld µs at most",
       (long long)r.most_us, (long long)all_us);
    pair_close(&shared);
}

int main(void)
{
    check(mkdtemp(dir));
    tap_task(test_kinds, NULL, true);
    tap_task(test_client_cert, NULL, true);
    tap_task(test_crowd, NULL, true);
    tap_task(test_helper, NULL, true);
    tap_task(test_helper, "cancel", true);
    char *command;
    check(asprintf(&command, "rm -r %s", dir) > 0);
    (void)!system(command);
    free(command);
    return tap_done();
}
