/* Tunnels through a proxy: CONNECT (RFC 9110, 9.3.6), for https:// and http:// alike.
 *
 * The proxy gets the host's name and looks it up itself. What it answers is read byte for byte up
 * to the end of the head: what follows is the host's. A refusal comes before anything was sent to
 * the host, and cannot be taken for a reply of the host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "wire/http_client/http_client_private.h"
#include "wire/http_client/http_plain_parse.h"
#include "wire/http_client/http_proxy.h"

#define ANSWER_BYTES_MAX 16384 /* of the head */
#define LINE_BYTES       100   /* of the status line, in messages */

/* --- which --- */

static struct str authorization(struct arena *a, struct str login)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "Basic ");
    buf_add_base64(&b, login.p, login.n);
    struct str value = str_dup(a, buf_str(&b));
    buf_release(&b);
    return value;
}

static struct httpc_proxy *proxy_new(struct http_client *c, const struct http_proxy_choice *choice)
{
    struct httpc_proxy *p = check_memory(calloc(1, sizeof *p));
    struct arena *a = &p->arena;
    struct http_proxy parts = {.name = "", .port = ""};
    arena_init(a);
    p->url = arena_strdup(a, choice->url);
    const char *problem = http_proxy_parse(a, choice, &parts);
    if (problem)
        p->problem = arena_printf(a, "the proxy of %s cannot be used: %s",
                                  choice->variable ? choice->variable : "the settings", problem);
    if (!problem && parts.login.p)
        p->login = authorization(a, parts.login);
    p->place = (struct httpc_place){
        .client = c,
        .label = arena_printf(a, "the proxy %s:%s", parts.name, parts.port),
        .name = arena_strdup(a, parts.name),
        .port = arena_strdup(a, parts.port),
    };
    httpc_names_init(&p->place.names, str_of(p->place.name));
    list_push(&c->proxies, &p->link);
    return p;
}

void httpc_proxy_free(struct httpc_proxy *p)
{
    list_del(&p->link);
    httpc_names_release(&p->place.names);
    arena_release(&p->arena);
    free(p);
}

struct httpc_proxy *httpc_proxy_for(struct http_client *c, bool tls, const char *name,
                                    const char *port)
{
    struct http_proxy_choice choice;
    if (!http_proxy_choose(c->proxy, tls, name, port, &choice))
        return NULL;
    list_each (it, &c->proxies) {
        struct httpc_proxy *p = list_entry(it, struct httpc_proxy, link);
        if (strcmp(p->url, choice.url) == 0)
            return p;
    }
    return proxy_new(c, &choice);
}

int httpc_way_failed(struct task *t, const struct httpc_host *h, int err)
{
    if (err != ERR_UNAVAILABLE || !h->proxy)
        return err;
    return task_fail(t, err, "%s: %s", h->origin, task_error(t));
}

int httpc_way_get(struct task *t, struct httpc_host *h)
{
    if (!h->proxy)
        return httpc_names_get(t, &h->place);
    if (h->proxy->problem)
        return task_fail(t, ERR_UNAVAILABLE, "%s: %s", h->origin, h->proxy->problem);
    return httpc_way_failed(t, h, httpc_names_get(t, &h->proxy->place));
}

/* --- CONNECT --- */

struct answer {
    struct http_plain head;
    char line[LINE_BYTES]; /* the beginning of its first line */
    size_t line_n;
    bool line_whole;
};

static int failed(struct task *t, const struct httpc_host *h, const char *why)
{
    return task_fail(t, ERR_UNAVAILABLE, "%s: %s %s", h->origin, h->proxy->place.label, why);
}

static int ask(struct task *t, struct httpc_conn *k)
{
    const struct httpc_host *h = k->host;
    const char *to = strstr(h->origin, "//") + 2; /* name and port */
    struct str login = h->proxy->login;
    struct str text =
        str_printf(task_arena(t), "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: millrace/%s\r\n",
                   to, to, MILLRACE_VERSION);
    if (login.p)
        text = STR_JOIN(task_arena(t), text, STR("Proxy-Authorization: "), login, STR("\r\n"));
    int err = httpc_conn_write(t, k, STR_JOIN(task_arena(t), text, STR("\r\n")));
    return err == ERR_CLOSED ? failed(t, h, "closed the connection before CONNECT") : err;
}

/* Waits for bytes, and leaves them where they are. *n == 0: the end. */
static int peek(struct task *t, struct httpc_conn *k, char *p, size_t *n)
{
    for (;;) {
        ssize_t r = recv(k->watch.fd, p, RECEIVE_BYTES, MSG_PEEK | MSG_DONTWAIT);
        if (r >= 0) {
            *n = (size_t)r;
            return 0;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return ERR_CLOSED;
        watch_drained(&k->watch, WATCH_READ);
        int err = watch_wait(t, &k->watch, WATCH_READ);
        if (err)
            return err;
    }
}

/* Text of the proxy's, without bytes that a terminal would obey. */
static void keep_line(struct answer *x, struct str in)
{
    for (size_t i = 0; i < in.n && !x->line_whole; i++) {
        char c = in.p[i];
        x->line_whole = c == '\r' || c == '\n' || x->line_n + 1 == LINE_BYTES;
        if (!x->line_whole)
            x->line[x->line_n++] = (char)(c < ' ' || c > '~' ? '?' : c);
    }
    x->line[x->line_n] = '\0';
}

/* Reads the head of the answer, and nothing behind it. */
static int read_answer(struct task *t, struct httpc_conn *k, struct answer *x)
{
    char *p = k->host->client->receive;
    enum http_plain_verdict v;
    do {
        size_t n, used;
        struct str none;
        int err = peek(t, k, p, &n);
        if (err == ERR_CLOSED || (!err && n == 0))
            return failed(t, k->host, "closed the connection instead of answering CONNECT");
        if (err)
            return err;
        keep_line(x, str_from(p, n));
        v = http_plain_next(&x->head, str_from(p, n), &used, &none);
        if (recv(k->watch.fd, p, used, MSG_DONTWAIT) != (ssize_t)used)
            return failed(t, k->host, "closed the connection instead of answering CONNECT");
    } while (v == HTTP_PLAIN_MORE);
    if (v == HTTP_PLAIN_LIMIT)
        return failed(t, k->host, "sent an answer to CONNECT that is too long");
    return v == HTTP_PLAIN_END ? 0 : failed(t, k->host, "did not answer CONNECT in HTTP");
}

/* "403 Forbidden" */
static const char *status_of(struct task *t, const struct answer *x)
{
    char number[8];
    snprintf(number, sizeof number, "%d", x->head.head.status);
    const char *said = x->line_n > strlen("HTTP/1.1 ") ? x->line + strlen("HTTP/1.1 ") : "";
    bool same = strncmp(said, number, strlen(number)) == 0; /* else it is of an interim reply */
    return arena_strdup(task_arena(t), same ? said : number);
}

static int refused(struct task *t, const struct httpc_host *h, const struct answer *x,
                   enum httpc_stage *stage)
{
    const char *status = status_of(t, x);
    if (x->head.head.status == 407 || x->head.head.status == 401) { /* tinyproxy's */
        *stage = HTTPC_LOGIN;
        return task_fail(t, ERR_UNAVAILABLE, "%s %s: %s", h->proxy->place.label,
                         h->proxy->login.p ? "refuses the user and the password"
                                           : "wants a user and a password",
                         status);
    }
    return failed(t, h, arena_printf(task_arena(t), "refuses CONNECT: %s", status));
}

int httpc_proxy_connect(struct task *t, struct httpc_conn *k, enum httpc_stage *stage)
{
    struct answer x = {.line_n = 0};
    struct http_plain_limits limits = {ANSWER_BYTES_MAX, 0};
    /* As that to a HEAD, the answer ends with its head: a body is not read. */
    http_plain_init(&x.head, task_arena(t), limits, true, loop_wall_ms(task_loop(t)));
    int err = ask(t, k);
    if (!err)
        err = read_answer(t, k, &x);
    if (!err && x.head.head.status / 100 != 2)
        err = refused(t, k->host, &x, stage);
    return err;
}
