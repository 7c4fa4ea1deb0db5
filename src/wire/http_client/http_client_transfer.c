/* One call in libcurl: its options, callbacks and outcome. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "wire/http_client/http_client_private.h"

#define SEND_BYTES 16384 /* the least curl takes; used over TLS and for large bodies */

#define set(easy, option, value) check(curl_easy_setopt((easy), (option), (value)) == CURLE_OK)

/* --- callbacks, on the loop's stack while the task waits --- */

static size_t stop(struct httpc_transfer *x, int err)
{
    x->stopped_by = err;
    return 0; /* fewer bytes than given: curl ends the transfer */
}

/* Curl is about to send. A second time means that it repeats the request after a kept connection
 * has died: allowed for idempotent methods only, as the server may have acted on the first. */
static int on_begin(void *arg, char *peer, char *self, int peer_port, int self_port)
{
    (void)peer, (void)self, (void)peer_port, (void)self_port;
    struct httpc_transfer *x = arg;
    bool again = x->begun;
    x->begun = true;
    x->begun_ms = loop_now_ms(x->client->loop);
    if (!again || httpc_method_repeatable(x->call->method))
        return CURL_PREREQFUNC_OK;
    stop(x, ERR_UNCERTAIN);
    return CURL_PREREQFUNC_ABORT;
}

static void heard(struct httpc_transfer *x)
{
    httpc_silence_end(&x->shard->silence, x->client->loop);
    httpc_host_replied(x->host);
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct httpc_transfer *x = arg;
    n *= size;
    heard(x);
    x->head_bytes += n;
    if (x->head_bytes > HEAD_BYTES_MAX)
        return stop(x, ERR_LIMIT);
    if (x->body_bytes > 0)
        return n; /* a trailer */
    http_reply_head_line(&x->head, task_arena(x->task), str_from(p, n),
                         loop_wall_ms(x->client->loop));
    if (x->host->tls && x->head.version < 20)
        x->host->h1_seen = true;
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct httpc_transfer *x = arg;
    n *= size;
    heard(x);
    if (n > x->call->reply_bytes_max - x->body_bytes)
        return stop(x, ERR_LIMIT);
    x->body_bytes += n;
    if (!x->call->on_piece || x->head.status / 100 != 2) {
        http_reply_body_add(&x->body, task_arena(x->task), str_from(p, n), UINT64_MAX);
        return n;
    }
    int err = x->call->on_piece(x->call->arg, str_from(p, n));
    return err ? stop(x, err) : n;
}

/* Curl's own sockets would survive an exec. And a vanished peer would hold every HTTP/2 call on its
 * connection, until the kernel gives up after a quarter of an hour. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)arg, (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    int ms = DEAD_PEER_MS;
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return fd;
}

/* --- options --- */

static void set_connection(const struct httpc_transfer *x, CURL *e)
{
    const struct http_client *c = x->client;
    bool h2 = httpc_host_multiplexes(x->host);
    set(e, CURLOPT_NOSIGNAL, 1L);
    set(e, CURLOPT_PROTOCOLS_STR, x->host->tls ? "https" : "http");
    set(e, CURLOPT_FOLLOWLOCATION, 0L);
    set(e, CURLOPT_PROXY, ""); /* not even the environment's */
    set(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    set(e, CURLOPT_HTTP_VERSION,
        x->host->tls ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    set(e, CURLOPT_PIPEWAIT, h2 ? 1L : 0L);
    set(e, CURLOPT_CONNECTTIMEOUT_MS, (long)c->options.connect_ms);
    set(e, CURLOPT_MAXAGE_CONN, (long)CONNECTION_AGE_S);
    set(e, CURLOPT_TCP_KEEPALIVE, 1L);
    set(e, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    set(e, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    set(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    if (x->resolve.data)
        set(e, CURLOPT_RESOLVE, &x->resolve);
    if (!x->host->tls)
        return;
    set(e, CURLOPT_SSL_VERIFYPEER, 1L);
    set(e, CURLOPT_SSL_VERIFYHOST, 2L);
    set(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set(e, CURLOPT_CAPATH, NULL); /* with a directory curl reads all of it for every connection */
    if (c->ca_file)
        set(e, CURLOPT_CAINFO, c->ca_file);
}

static void set_request(const struct httpc_transfer *x, CURL *e)
{
    const struct http_call *call = x->call;
    set(e, CURLOPT_URL, call->url);
    set(e, CURLOPT_USERAGENT, "millrace/" MILLRACE_VERSION);
    set(e, CURLOPT_HTTPHEADER, x->headers);
    bool post = strcmp(x->call->method, "POST") == 0;
    if (call->body.p || post) {
        set(e, CURLOPT_POSTFIELDS, call->body.p ? call->body.p : "");
        set(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.n);
    }
    if (strcmp(x->call->method, "HEAD") == 0)
        set(e, CURLOPT_NOBODY, 1L);
    else if (!post)
        set(e, CURLOPT_CUSTOMREQUEST, x->call->method);
}

static void set_reply(struct httpc_transfer *x, CURL *e)
{
    set(e, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    set(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_BYTES);
    set(e, CURLOPT_PREREQFUNCTION, on_begin);
    set(e, CURLOPT_PREREQDATA, x);
    set(e, CURLOPT_HEADERFUNCTION, on_header);
    set(e, CURLOPT_HEADERDATA, x);
    set(e, CURLOPT_WRITEFUNCTION, on_body);
    set(e, CURLOPT_WRITEDATA, x);
    if (strcmp(x->call->method, "HEAD") != 0)
        set(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)x->call->reply_bytes_max);
    set(e, CURLOPT_ERRORBUFFER, x->problem);
    set(e, CURLOPT_PRIVATE, x);
}

void httpc_transfer_set_up(struct httpc_transfer *x, CURL *easy)
{
    x->problem[0] = '\0';
    set_connection(x, easy);
    set_request(x, easy);
    set_reply(x, easy);
}

/* --- the outcome --- */

static bool is_tls(CURLcode code)
{
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return true;
    default:
        return false;
    }
}

/* curl's text for a failed connection has its number of milliseconds in it, but not the cause. */
void httpc_transfer_name_cause(struct httpc_transfer *x, CURLcode code)
{
    char text[CURL_ERROR_SIZE];
    long os_error = 0;
    if (x->begun || x->stopped_by || code == CURLE_OK)
        return;
    memcpy(text, x->problem, sizeof text);
    check(curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_error) == CURLE_OK);
    if (is_tls(code))
        snprintf(x->problem, sizeof x->problem, "TLS: %.240s",
                 text[0] ? text : curl_easy_strerror(code));
    else if (code == CURLE_OPERATION_TIMEDOUT)
        snprintf(x->problem, sizeof x->problem, "no connection: no answer in time");
    else if (code == CURLE_COULDNT_CONNECT)
        snprintf(x->problem, sizeof x->problem, "no connection: %s",
                 os_error ? strerror((int)os_error) : curl_easy_strerror(code));
}

int httpc_transfer_outcome(const struct httpc_transfer *x, CURLcode code)
{
    if (x->stopped_by)
        return x->stopped_by;
    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_FILESIZE_EXCEEDED:
        return ERR_LIMIT;
    case CURLE_URL_MALFORMAT:
        return ERR_INVALID;
    case CURLE_UNSUPPORTED_PROTOCOL: /* a reply without a status line, that is HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return x->begun ? ERR_PROTO : ERR_INVALID;
    default:
        /* Not by code, because many can mean either. Before on_begin nothing of the request was
         * sent; after it the outcome is uncertain. */
        return x->begun ? ERR_UNCERTAIN : ERR_UNAVAILABLE;
    }
}

void httpc_transfer_end(struct httpc_transfer *x, int err)
{
    x->done = true;
    x->err = err;
    task_wake(x->task);
}
