#include "tool/sim/sim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "engine/setup/config.h"
#include "serve/listener.h"
#include "serve/machine.h"
#include "tool/opt.h"
#include "tool/sim/sim_embeddings.h"
#include "tool/sim/sim_labels.h"
#include "tool/tool.h"
#include "wire/http_server.h"
#include "wire/tls.h"

#define CONNECTIONS_MAX   30000 /* a stack each, with two mappings; the kernel allows 65,530 */
#define IDLE_MS           600000
#define HANDLER_MARGIN_MS 60000
#define FILE_BYTES_MAX    (256 * 1024 * 1024)

static const char about[] =
    "Simulates an AI service: chat completions and embeddings in OpenAI's format, with\n"
    "verdicts, plans and fields of documents that depend on the prompt only, and with\n"
    "configurable latency, limits and failures. A stream is spread over the latency.\n"
    "\n"
    "  POST /v1/chat/completions   also as a stream       GET  /stats        counters\n"
    "  POST /v1/embeddings         256 or 768 dimensions  POST /stats/reset  resets them\n"
    "  GET  /v1/models                                    GET  /healthz\n"
    "\n"
    "Speaks HTTP/1.1, and HTTP/2 with prior knowledge (curl --http2-prior-knowledge). With a\n"
    "certificate it speaks both over TLS, as the client chooses (ALPN), and nothing else.\n"
    "\n"
    "Examples:\n"
    "  millrace sim --listen 127.0.0.1:9100\n"
    "  millrace sim --listen 127.0.0.1:0 --latency-ms 800 --jitter-ms 400 --fail 0.05 --seed 7\n"
    "  millrace sim --listen [::1]:9100 --rate-limit 600 --tokens-limit 200000 --keys keys.txt\n"
    "  millrace sim --listen 127.0.0.1:9100 --fail 1 --fail-kinds timeout,cut --stall-ms 5000\n"
    "  millrace sim --listen 127.0.0.1:9100 --embed-fault 0.1 --embed-fault-kinds length,nan\n"
    "  millrace sim --listen 127.0.0.1:9443 --tls-cert sim.crt --tls-key sim.key";

struct setup { /* the command line */
    struct sim_options options;
    const char *fail_kinds, *extract_kinds, *embed_kinds, *labels_file, *keys_file;
    int64_t seed;
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "millrace sim: %s: %s\n", what, why);
    return ERR_INVALID;
}

/* -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct setup *u)
{
    struct sim_options *o = &u->options;
    const struct opt opts[] = {
        {"listen", "ADDR:PORT", "where to listen; port 0 takes a free one", .text = &o->listen,
         .needed = true},
        {"latency-ms", "N", "time to answer (default 0)", .number = &o->latency_ms,
         .most = 3600000},
        {"jitter-ms", "N", "up to this much more (default 0)", .number = &o->jitter_ms,
         .most = 3600000},
        {"fail", "RATE", "share of requests that fail, 0 to 1 (default 0)", .real = &o->faults.rate,
         .most = 1},
        {"fail-kinds", "LIST",
         "how they fail: all (default) or some of "
         "429,500,503,timeout,cut,garbage,trickle,fenced,unreadable,thinking,clipped,wrapped",
         .text = &u->fail_kinds},
        {"plan-fault", "RATE",
         "share of plans that lack a day, do not add up or are no plan, until a complaint; by "
         "their "
         "prompts (default 0)",
         .real = &o->plan_faults.rate, .most = 1},
        {"plan-fault-stays", NULL, "such plans stay wrong after complaints",
         .flag = &o->plan_faults.stays},
        {"extract-fault", "RATE",
         "share of extractions that are wrong, by fields and document; types and missing ones "
         "until a complaint (default 0)",
         .real = &o->extract_faults.rate, .most = 1},
        {"extract-fault-kinds", "LIST",
         "how they are wrong: some of types (of values), missing (required fields), quotes "
         "(invented), prose (around the JSON); default all",
         .text = &u->extract_kinds},
        {"extract-fault-stays", NULL, "they stay wrong after complaints",
         .flag = &o->extract_faults.stays},
        {"embed-fault", "RATE", "share of replies with vectors that are wrong (default 0)",
         .real = &o->embed_faults.rate, .most = 1},
        {"embed-fault-kinds", "LIST",
         "how they are wrong: all (default) or some of length (a vector lacks a number), missing "
         "(a vector), twice (an index), null, nan, zero (of a vector), order (another one: right)",
         .text = &u->embed_kinds},
        {"stall-ms", "N", "how long a timeout takes (default 300000)", .number = &o->stall_ms,
         .most = 86400000},
        {"retry-after", "N", "seconds that a failing 429 asks for (default 1)",
         .number = &o->retry_after_s, .most = 86400},
        {"rate-limit", "RPM", "requests per key in any 60 s (default 0: no limit)",
         .number = &o->limit.requests_max, .most = INT64_MAX},
        {"tokens-limit", "TPM", "tokens per key in any 60 s (default 0: no limit)",
         .number = &o->limit.tokens_max, .most = INT64_MAX},
        {"labels", "FILE", "CSV lines doi,0 or doi,1: verdicts that outrank the rule",
         .text = &u->labels_file},
        {"keys", "FILE", "one key per line; all others get 401", .text = &u->keys_file},
        {"http1", NULL, "do not speak HTTP/2", .flag = &o->http1},
        {"tls-cert", "FILE", "speak TLS with this certificate: PEM, with its chain",
         .text = &o->tls_cert},
        {"tls-key", "FILE", "the certificate's key: PEM, without a password", .text = &o->tls_key},
        {"tls-handshake-ms", "N", "how much longer each TLS handshake takes (default 0)",
         .number = &o->tls_handshake_ms, .most = 3600000},
        {"seed", "N", "for failures and jitter (default 0: a new one each time)",
         .number = &u->seed, .most = INT64_MAX},
    };
    struct command c = {"sim", NULL, about, opts, sizeof(opts) / sizeof(opts[0])};
    return opt_parse(&c, argc, argv);
}

static bool no_such_kind(const char *option, struct str bad)
{
    fprintf(stderr, "millrace sim: %s: there is no \"%.*s\"\n", option, STR_ARG(bad));
    return true;
}

/* True: some list names a kind of fault that there is not. */
static bool check_kinds(struct setup *u)
{
    struct sim_options *o = &u->options;
    struct str bad;
    if (u->extract_kinds &&
        !sim_extract_kinds(str_of(u->extract_kinds), &o->extract_faults.kinds, &bad))
        return no_such_kind("--extract-fault-kinds", bad);
    if (u->embed_kinds &&
        !sim_embed_fault_kinds(str_of(u->embed_kinds), &o->embed_faults.kinds, &bad))
        return no_such_kind("--embed-fault-kinds", bad);
    return u->fail_kinds && !sim_fault_kinds(str_of(u->fail_kinds), &o->faults.kinds, &bad) &&
           no_such_kind("--fail-kinds", bad);
}

/* What the table of options cannot check. */
static int check_options(struct setup *u)
{
    const char *address = u->options.listen;
    struct sockaddr_storage at;
    socklen_t n;
    if (!config_address(str_of(address), &at, &n) || config_unix_path(address))
        return complain(address, "expected is an address and a port, like 127.0.0.1:9100");
    if (!u->options.tls_cert != !u->options.tls_key)
        return complain(u->options.tls_cert ? "--tls-cert" : "--tls-key",
                        "--tls-cert and --tls-key belong together");
    if (u->options.plan_faults.stays && u->options.plan_faults.rate == 0)
        return complain("--plan-fault-stays", "no plan is wrong without --plan-fault");
    if ((u->options.extract_faults.stays || u->extract_kinds) &&
        u->options.extract_faults.rate == 0)
        return complain(u->extract_kinds ? "--extract-fault-kinds" : "--extract-fault-stays",
                        "no extraction is wrong without --extract-fault");
    if (u->options.tls_handshake_ms && !u->options.tls_cert)
        return complain("--tls-handshake-ms", "there is no handshake without --tls-cert");
    if (u->embed_kinds && u->options.embed_faults.rate == 0)
        return complain("--embed-fault-kinds", "no vector is wrong without --embed-fault");
    return check_kinds(u) ? ERR_INVALID : 0;
}

/* --- files --- */

static int read_file(struct arena *a, const char *path, struct str *out)
{
    int err = file_read(a, path, FILE_BYTES_MAX, out);
    return err ? complain(path, err == ERR_LIMIT ? "is too large" : strerror(errno)) : 0;
}

static int load_labels(struct arena *a, const char *path, struct map **out)
{
    struct str text;
    int err = read_file(a, path, &text);
    if (err)
        return err;
    const char *why;
    *out = sim_labels_read(a, text, &why);
    return *out ? 0 : complain(path, why);
}

static int load_keys(struct arena *a, const char *path, struct map **out)
{
    struct str text;
    int err = read_file(a, path, &text);
    if (err)
        return err;
    *out = map_new();
    while (text.p) {
        struct str line = sim_trim(str_cut(&text, '\n'));
        if (line.n)
            map_add(*out, line);
    }
    return map_count(*out) ? 0 : complain(path, "holds no key");
}

static int load_files(const struct setup *u, struct sim *s)
{
    struct arena a;
    arena_init(&a);
    int err = 0;
    if (u->labels_file)
        err = load_labels(&a, u->labels_file, &s->labels);
    if (!err && u->keys_file)
        err = load_keys(&a, u->keys_file, &s->keys);
    arena_release(&a);
    return err;
}

/* --- running --- */

struct run {
    struct sim *sim;
    struct http_server *server;
    struct group group;
    bool draining;
    int err;
};

static void serve(struct task *t, void *arg)
{
    struct run *r = arg;
    int fd;
    r->err = listener_open(t, r->sim->options.listen, 0, &fd);
    if (r->err) {
        complain("--listen", task_error(t));
        return;
    }
    /* A supervisor reads the port from this line. */
    const char *host = strchr(listener_url(task_arena(t), fd), ':'); /* "://…" */
    printf("millrace sim listens at %s%s\n", r->sim->options.tls_cert ? "https" : "http", host);
    fflush(stdout);
    int err = http_server_run(t, r->server, fd);
    close(fd);
    r->err = r->draining ? 0 : err;
}

/* The first signal drains, the second cancels all requests. */
static void on_signal(void *arg)
{
    struct run *r = arg;
    if (r->draining) {
        group_cancel(&r->group);
        return;
    }
    r->draining = true;
    http_server_drain(r->server);
    waitq_wake_all(&r->sim->quit);
}

static struct http_options server_options(const struct sim_options *o, struct tls_server *tls)
{
    struct http_options h = {.limits = http_limits_default,
                             .http2 = !o->http1,
                             .tls = tls,
                             .tls_delay_ms = o->tls_handshake_ms};
    h.limits.connections_max = CONNECTIONS_MAX;
    h.limits.idle_ms = IDLE_MS;
    h.limits.handler_ms = o->latency_ms + o->jitter_ms + o->stall_ms + HANDLER_MARGIN_MS;
    return h;
}

static int run(struct sim *s, struct loop *l, struct tls_server *tls)
{
    struct http_options h = server_options(&s->options, tls);
    struct run r = {.sim = s, .server = http_server_new(l, &h)};
    sim_routes(r.server, s);
    group_init(&r.group, l);
    loop_on_signal(l, SIGTERM, on_signal, &r);
    loop_on_signal(l, SIGINT, on_signal, &r);
    check(task_go(&r.group, "serve", serve, &r) == 0);
    loop_run(l);
    http_server_free(r.server);
    return r.err;
}

static void sim_init(struct sim *s)
{
    *s = (struct sim){.count = 0};
    sim_stats_init(&s->stats);
    waitq_init(&s->quit);
    buf_init(&s->content);
}

static void sim_release(struct sim *s)
{
    map_free(s->labels);
    map_free(s->keys);
    sim_stats_release(&s->stats);
    sim_brief_release(&s->brief);
    buf_release(&s->content);
}

static int load_tls(const struct sim_options *o, struct tls_server **out)
{
    char problem[TLS_PROBLEM_BYTES];
    *out = NULL;
    if (!o->tls_cert)
        return 0;
    *out =
        tls_server_new(&(struct tls_server_options){o->tls_cert, o->tls_key, !o->http1}, problem);
    return *out ? 0 : complain("--tls-cert", problem);
}

static int start(const struct setup *u)
{
    struct sim s;
    struct tls_server *tls = NULL;
    sim_init(&s);
    int err = load_files(u, &s);
    if (!err)
        err = load_tls(&u->options, &tls);
    if (!err) {
        machine_raise_file_limit();
        struct loop *l = loop_new(&(struct loop_options){.seed = (uint64_t)u->seed});
        s.options = u->options;
        s.options.faults.seed = loop_random(l);
        s.options.embed_faults.seed = loop_random(l);
        err = run(&s, l, tls);
        loop_free(l);
    }
    tls_server_free(tls);
    sim_release(&s);
    return err;
}

int sim_main(int argc, char **argv)
{
    struct setup u = {.options = {.stall_ms = 300000, .retry_after_s = 1}};
    u.options.faults.kinds = SIM_FAULTS_ALL;
    u.options.embed_faults.kinds = SIM_EMBED_FAULTS_ALL;
    int status = read_options(argc, argv, &u);
    if (status >= 0)
        return status;
    if (check_options(&u))
        return 2;
    signal(SIGPIPE, SIG_IGN);
    return start(&u) ? 1 : 0;
}
