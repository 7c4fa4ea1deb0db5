/* TLS and HTTP/2 against Node's servers, with certificates made here. */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/tap.h"
#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_client_test_peer.h"

#define SERVERS_MAX 16

struct servers {
    pid_t pid;
    FILE *in, *out;
    char dir[32];
    struct {
        char name[32];
        int port;
    } list[SERVERS_MAX];
    size_t count;
};

/* --- the servers --- */

static char *peers_path(const char *file)
{
    char here[4096], *path;
    snprintf(here, sizeof here, "%s", __FILE__); /* dirname changes it */
    check(asprintf(&path, "%s/../../../tests/peers/%s", dirname(here), file) > 0);
    return path;
}

/* Runs a command that must succeed; its output only matters if it does not. */
static void must_run(const char *command)
{
    char *line;
    check(asprintf(&line, "{ %s; } >http_client_tls_test.log 2>&1", command) > 0);
    int status = system(line);
    if (!ok(status == 0, "%s", command)) {
        (void)!system("sed 's/^/# /' http_client_tls_test.log");
        exit(tap_done());
    }
    unlink("http_client_tls_test.log");
    free(line);
}

static void make_certs(struct servers *s)
{
    strcpy(s->dir, "/tmp/http_client_tls.XXXXXX");
    check(mkdtemp(s->dir));
    char *script = peers_path("make_certs.sh"), *command;
    check(asprintf(&command, "sh %s %s", script, s->dir) > 0);
    must_run(command);
    free(command);
    free(script);
}

static void start_node(struct servers *s)
{
    int in[2], out[2];
    check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    char *script = peers_path("h2_server.js");
    s->pid = fork();
    check(s->pid >= 0);
    if (s->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execlp("node", "node", script, s->dir, (char *)NULL);
        _exit(127);
    }
    free(script);
    close(in[0]);
    close(out[1]);
    s->in = fdopen(in[1], "w");
    s->out = fdopen(out[0], "r");
    check(s->in && s->out);
}

static void servers_open(struct servers *s)
{
    *s = (struct servers){.count = 0};
    must_run("openssl version && node --version");
    make_certs(s);
    start_node(s);
    char name[32];
    while (fscanf(s->out, "%31s", name) == 1 && strcmp(name, "ready") != 0) {
        check(s->count < SERVERS_MAX);
        strcpy(s->list[s->count].name, name);
        check(fscanf(s->out, "%d", &s->list[s->count++].port) == 1);
    }
    ok(s->count > 0, "node's servers have started");
}

static void servers_close(struct servers *s)
{
    fclose(s->in); /* ends the servers */
    fclose(s->out);
    int status;
    check(waitpid(s->pid, &status, 0) == s->pid);
    is_int(status, 0, "node's servers have ended");
    char *command;
    check(asprintf(&command, "rm -r %s", s->dir) > 0);
    must_run(command);
    free(command);
}

/* --- calls --- */

struct fixture {
    const struct servers *servers;
    struct http_client *client;
    const char *server; /* the one that is called */
};

static char *in_dir(struct task *t, const struct servers *s, const char *file)
{
    return arena_printf(task_arena(t), "%s/%s", s->dir, file);
}

static void fixture_open(struct fixture *f, struct task *t, const struct servers *s,
                         const char *server, struct http_client_options o)
{
    o.ca_file = in_dir(t, s, "ca.crt");
    *f = (struct fixture){s, http_client_new(task_loop(t), &o), server};
}

static const char *url_of(struct task *t, const struct fixture *f, const char *path)
{
    size_t i = 0;
    while (strcmp(f->servers->list[i].name, f->server) != 0)
        check(++i < f->servers->count);
    return arena_printf(task_arena(t), "https://127.0.0.1:%d%s", f->servers->list[i].port, path);
}

static int post(struct task *t, struct fixture *f, const char *path, struct str body,
                struct http_response *r)
{
    struct http_call call = {.url = url_of(t, f, path), .body = body};
    return http_call(t, f->client, &call, r);
}

/* A number of the server's statistics; -1: no answer. */
static int64_t seen(struct task *t, struct fixture *f, const char *what)
{
    struct http_call call = {.url = url_of(t, f, "/stats")};
    struct http_response r;
    const struct json *j;
    int64_t n = -1;
    if (http_call(t, f->client, &call, &r) == 0 && json_parse(task_arena(t), r.body, &j, NULL) == 0)
        (void)json_int(json_get(j, what), &n);
    return n;
}

static int64_t times_received(struct task *t, struct fixture *f, const char *body)
{
    struct http_call call = {.url = url_of(t, f, "/stats")};
    struct http_response r;
    const struct json *j;
    int64_t n = 0;
    check(http_call(t, f->client, &call, &r) == 0);
    check(json_parse(task_arena(t), r.body, &j, NULL) == 0);
    (void)json_int(json_get(json_get(j, "bodies"), body), &n);
    return n;
}

struct burst {
    struct fixture *f;
    const char *path;
    int version;
    size_t good, bad;
};

static void burst_call(struct task *t, void *arg)
{
    struct burst *b = arg;
    struct http_response r;
    task_deadline(t, 60000);
    if (post(t, b->f, b->path, STR("burst"), &r) == 0 && r.http_version == b->version)
        b->good++;
    else if (b->bad++ == 0)
        printf("# %s\n", task_error(t));
}

/* --- HTTP/2 --- */

static void test_h2(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.connect_ms = 0});
    struct burst b = {.f = &f, .path = "/?ms=100", .version = 20};
    crowd(t, 50, burst_call, &b);
    is_int((int64_t)b.good, 50, "50 first calls at once");
    is_int(seen(t, &f, "connections"), 1, "take one connection");
    is_int(seen(t, &f, "busiest"), 50, "at the same time");
    struct http_response r;
    is_int(post(t, &f, "/", STR("body"), &r), 0, "a call: %s", task_error(t));
    is_int(r.http_version, 20, "HTTP/2 is spoken");
    is_str(r.body, STR("2.0 body"), "so says the server");
    is_str(r.content_type, STR("text/plain"), "type");
    http_client_free(f.client);
}

static void test_h2_connection_limit(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.h2_connections_max = 4});
    int64_t before = seen(t, &f, "connections");
    struct burst b = {.f = &f, .path = "/?ms=200", .version = 20};
    crowd(t, 1000, burst_call, &b);
    is_int((int64_t)b.good, 1000, "1,000 calls, 4 connections allowed, 100 calls on each");
    int64_t more = seen(t, &f, "connections") - before;
    ok(more >= 1 && more <= 3, "took 4 connections: 1 and %lld", (long long)more);
    http_client_free(f.client);
}

/* From the first call on, before anything is known about the server. */
static void test_h2_cold(struct task *t, void *arg)
{
    struct fixture f, other;
    fixture_open(&other, t, arg, "h2", (struct http_client_options){.connect_ms = 0});
    int64_t before = seen(t, &other, "connections");
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.h2_connections_max = 12});
    struct burst b = {.f = &f, .path = "/?ms=50", .version = 20};
    crowd(t, 1500, burst_call, &b);
    is_int((int64_t)b.good, 1500, "1,500 first calls at once");
    int64_t more = seen(t, &other, "connections") - before;
    ok(more <= 12, "over at most 12 connections: %lld", (long long)more);
    http_client_free(f.client);
    http_client_free(other.client);
}

/* Calls may wait for a place for longer than connect_ms. The server's limit of streams is known
 * before the first call is sent: none is refused. */
static void test_narrow_server(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "narrow",
                 (struct http_client_options){.h2_connections_max = 1, .connect_ms = 1000});
    struct burst b = {.f = &f, .path = "/?ms=700", .version = 20};
    crowd(t, 16, burst_call, &b);
    is_int((int64_t)b.good, 16, "16 first calls of 700 ms to a server that takes 4 at once");
    is_int(times_received(t, &f, "burst"), 16, "none is sent twice");
    is_int(seen(t, &f, "busiest"), 4, "take turns");
    is_int(seen(t, &f, "connections"), 1, "on one connection");
    http_client_free(f.client);
}

static void test_h2_failures(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.connect_ms = 0});
    struct http_response r;
    is_int(post(t, &f, "/", STR("x"), &r), 0, "a connection to use again");
    is_int(post(t, &f, "/reset", STR("reset"), &r), ERR_UNCERTAIN, "a stream is reset");
    is_int(times_received(t, &f, "reset"), 1, "the call was not repeated");
    is_int(post(t, &f, "/refuse", STR("refuse"), &r), ERR_UNAVAILABLE, "a stream is refused");
    is_int(times_received(t, &f, "refuse"), 4, "the call was repeated, but not for ever");
    is_int(post(t, &f, "/cut", STR("cut"), &r), ERR_UNCERTAIN, "the connection is cut");
    is_int(times_received(t, &f, "cut"), 1, "the call was not repeated");
    is_int(post(t, &f, "/", STR("x"), &r), 0, "the next call works");
    http_client_free(f.client);
}

static void test_h2_cancel(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.connect_ms = 0});
    int64_t before = seen(t, &f, "connections");
    struct burst stays = {.f = &f, .path = "/?ms=300", .version = 20};
    struct burst goes = {.f = &f, .path = "/?ms=60000", .version = 20};
    struct group g, canceled;
    group_init(&g, task_loop(t));
    group_init(&canceled, task_loop(t));
    for (int i = 0; i < 10; i++) {
        check(task_go(&g, "stays", burst_call, &stays) == 0);
        check(task_go(&canceled, "goes", burst_call, &goes) == 0);
    }
    check(task_sleep(t, 100) == 0);
    group_cancel(&canceled);
    check(group_join(t, &canceled) == 0);
    is_int((int64_t)goes.bad, 10, "ten calls are cancelled");
    check(group_join(t, &g) == 0);
    is_int((int64_t)stays.good, 10, "ten others on the same connection are not");
    is_int(seen(t, &f, "connections"), before, "the connection stays");
    http_client_free(f.client);
}

static int post_within(struct task *t, struct fixture *f, const char *path, int64_t ms)
{
    struct http_response r;
    int64_t old = task_deadline(t, ms);
    int err = post(t, f, path, STR("x"), &r);
    task_deadline_restore(t, old);
    return err;
}

static void test_h2_silent(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h2", (struct http_client_options){.connect_ms = 0});
    int64_t before = seen(t, &f, "connections");
    struct burst b = {.f = &f, .path = "/?ms=60000", .version = 20};
    struct group g;
    group_init(&g, task_loop(t));
    check(task_go(&g, "stays", burst_call, &b) == 0);
    is_int(post_within(t, &f, "/?ms=60000", 200), ERR_TIMEOUT, "no reply in time");
    is_int(post_within(t, &f, "/?ms=60000", 200), ERR_TIMEOUT, "twice in a row");
    int64_t start_us = loop_now_us(task_loop(t));
    check(group_join(t, &g) == 0);
    ok(loop_now_us(task_loop(t)) - start_us < 10000000, "end the other calls");
    is_int(seen(t, &f, "connections"), before + 1, "the next has a new connection");
    http_client_free(f.client);
}

static void test_h2_goaway(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "leaving", (struct http_client_options){.connect_ms = 0});
    int64_t until_ms = loop_now_ms(task_loop(t)) + 3000;
    int err = ERR_UNAVAILABLE;
    while (loop_now_ms(task_loop(t)) < until_ms && err == ERR_UNAVAILABLE)
        err = post_within(t, &f, "/", 60000);
    is_int(err, ERR_UNAVAILABLE, "GOAWAY at once: surely not handled: %s", task_error(t));
    size_t fruitless = 0;
    list_each (it, &f.client->hosts)
        fruitless += list_entry(it, struct httpc_host, link)->h2_fruitless;
    ok(fruitless >= 4 && fruitless <= 12, "few connections in three seconds: %zu", fruitless);
    http_client_free(f.client);
}

/* --- HTTP/1.1 over TLS --- */

static void test_h1_only(struct task *t, void *arg)
{
    struct fixture f;
    fixture_open(&f, t, arg, "h1", (struct http_client_options){.connect_ms = 1000});
    struct burst b = {.f = &f, .path = "/?ms=600", .version = 11};
    int64_t start_us = loop_now_us(task_loop(t));
    crowd(t, 60, burst_call, &b);
    int64_t ms = (loop_now_us(task_loop(t)) - start_us) / 1000;
    is_int((int64_t)b.good, 60, "60 calls to a server without HTTP/2");
    ok(seen(t, &f, "busiest") > 10, "use more connections once that is known: %lld",
       (long long)seen(t, &f, "busiest"));
    ok(ms < 3000, "and do not wait for each other: %lld ms", (long long)ms);
    int64_t before = seen(t, &f, "connections");
    crowd(t, 60, burst_call, &b);
    is_int((int64_t)b.good, 120, "60 more");
    is_int(seen(t, &f, "busiest"), 60, "all at once");
    ok(seen(t, &f, "connections") - before <= 30, "with the connections there were");
    http_client_free(f.client);
}

/* --- certificates --- */

static void expect_refused(struct task *t, const struct servers *s, const char *server,
                           const char *ca_file, const char *what, const char *cause)
{
    struct http_client_options o = {.ca_file = ca_file};
    struct fixture f = {s, http_client_new(task_loop(t), &o), server};
    struct http_response r;
    is_int(post(t, &f, "/", STR("secret"), &r), ERR_UNAVAILABLE, "%s", what);
    ok(strstr(task_error(t), ": TLS: ") && strstr(task_error(t), cause), "because of that: %s",
       task_error(t));
    http_client_free(f.client);
}

static void test_trust(struct task *t, void *arg)
{
    struct servers *s = arg;
    const char *ca = in_dir(t, s, "ca.crt");
    expect_refused(t, s, "h2", NULL, "unknown to the system", "was issued by \"ca\"");
    expect_refused(t, s, "h2", in_dir(t, s, "other_ca.crt"), "signed by another authority",
                   "not among the trusted authorities");
    expect_refused(t, s, "wrong_host", ca, "for another host",
                   "not for 127.0.0.1; its names: elsewhere.test");
    expect_refused(t, s, "expired", ca, "expired", "its certificate has expired: 20");
    expect_refused(t, s, "self_signed", ca, "signed by itself", "self-signed");
    expect_refused(t, s, "old_tls", ca, "TLS 1.1", "1.2");
    expect_refused(t, s, "h2", in_dir(t, s, "missing.crt"), "no CA file",
                   "missing.crt cannot be read");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(100); /* node may hang */
    struct servers s;
    servers_open(&s);
    tap_task(test_h2, &s, true);
    tap_task(test_h2_connection_limit, &s, true);
    tap_task(test_h2_cold, &s, true);
    tap_task(test_narrow_server, &s, true);
    tap_task(test_h2_failures, &s, true);
    tap_task(test_h2_cancel, &s, true);
    tap_task(test_h2_silent, &s, true);
    tap_task(test_h2_goaway, &s, true);
    tap_task(test_h1_only, &s, true);
    tap_task(test_trust, &s, true);
    servers_close(&s);
    return tap_done();
}
