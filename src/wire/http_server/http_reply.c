#include <inttypes.h>
#include <strings.h>

#include "base/json.h"
#include "base/log.h"
#include "wire/http_server/http2_conn.h"
#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_field.h"

/* Pages may load their own files only. The component library writes style attributes. */
#define PAGE_POLICY                                                                                \
    "default-src 'self'; script-src 'self'; "                                                      \
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "                 \
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"

/* What the pages do not use is closed to every script that gets into them. They write to the
 * clipboard. */
#define PAGE_PERMISSIONS                                                                           \
    "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), "                                \
    "display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), "          \
    "gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), "    \
    "midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), "                   \
    "screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()"

#define OURS_MAX 12 /* fields of a reply */

/* Set by the server: from a handler they would break the framing or be sent twice. */
static const char *const reserved[] = {
    "content-length",
    "transfer-encoding",
    "connection",
    "date",
    "content-type",
    "x-content-type-options",
    "referrer-policy",
    "permissions-policy",
    "cross-origin-opener-policy",
};

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    return false;
}

/* The line that sets name, with its end; p == NULL if none does. */
static struct str find_line(const struct http_exchange *x, struct str name)
{
    struct str rest = buf_str(&x->conn->kit->fields);
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        if (line.n > name.n && line.p[name.n] == ':' && str_ieq(str_from(line.p, name.n), name))
            return str_from(line.p, line.n + 1);
    }
    return STR_NULL;
}

bool http_is_set(const struct http_exchange *x, const char *name)
{
    return find_line(x, str_of(name)).p;
}

void http_set_header(struct http_exchange *x, const char *name, struct str value)
{
    check(x->state == HTTP_UNANSWERED);
    check(!is_reserved(name) && http_one_line(value));
    struct buf *b = &x->conn->kit->fields;
    struct str old = find_line(x, str_of(name));
    if (old.p && strcasecmp(name, "set-cookie") != 0) {
        char *at = b->p + (old.p - b->p);
        memmove(at, at + old.n, (size_t)(b->p + b->head + b->len - (at + old.n)));
        b->len -= old.n;
    }
    buf_add_str(b, str_of(name));
    buf_add_lit(b, ": ");
    buf_add_str(b, value);
    buf_add_lit(b, "\r\n");
}

/* The fields of a reply that the server sets. */
struct ours {
    struct http_field fields[OURS_MAX];
    size_t count;
    char digits[STR_INT_BYTES]; /* of the length */
};

static void add(struct ours *o, struct str name, struct str value)
{
    check(o->count < OURS_MAX);
    o->fields[o->count++] = (struct http_field){name, value};
}

static void add_defaults(struct http_server *s, struct ours *o)
{
    add(o, STR("Date"), http_date(s));
    add(o, STR("X-Content-Type-Options"), STR("nosniff"));
    add(o, STR("Referrer-Policy"), STR("no-referrer"));
    if (s->options.behind_tls)
        add(o, STR("Strict-Transport-Security"), STR("max-age=31536000"));
}

static void add_type(struct http_exchange *x, struct ours *o, struct str type)
{
    add(o, STR("Content-Type"), type);
    /* API replies hold for this caller and moment only. */
    bool api = str_eq(type, STR("application/json"));
    if (api && !http_is_set(x, "cache-control"))
        add(o, STR("Cache-Control"), STR("no-store"));
    bool page = str_starts(type, STR("text/html"));
    if (page && !http_is_set(x, "content-security-policy"))
        add(o, STR("Content-Security-Policy"), STR(PAGE_POLICY));
    if (page) {
        add(o, STR("Permissions-Policy"), STR(PAGE_PERMISSIONS));
        add(o, STR("Cross-Origin-Opener-Policy"), STR("same-origin"));
    }
}

static void write_head(struct http_exchange *x, const struct ours *o)
{
    struct buf *out = &x->conn->kit->out;
    buf_add_str(out, http_status_line(x->status));
    for (size_t i = 0; i < o->count; i++) {
        buf_add_str(out, o->fields[i].name);
        buf_add_lit(out, ": ");
        buf_add_str(out, o->fields[i].value);
        buf_add_lit(out, "\r\n");
    }
    buf_add_str(out, buf_str(&x->conn->kit->fields));
    buf_add_lit(out, "\r\n");
}

void http_add_head(struct http_exchange *x, int status, const char *type, bool has_length,
                   uint64_t length)
{
    check(x->state == HTTP_UNANSWERED); /* one reply for one request */
    struct http_conn *c = x->conn;
    x->state = HTTP_ANSWERED;
    x->status = status;
    if (x->head->close || c->server->draining || !http_body_skippable(x))
        x->close = true;

    struct ours o;
    o.count = 0;
    add_defaults(c->server, &o);
    if (type)
        add_type(x, &o, str_of(type));
    if (has_length)
        add(&o, STR("Content-Length"), str_digits(o.digits, (int64_t)length));
    else if (x->chunked)
        add(&o, STR("Transfer-Encoding"), STR("chunked"));
    if (x->close && !c->stream)
        add(&o, STR("Connection"), STR("close"));
    if (c->stream)
        http2_stream_submit(c->stream, o.fields, o.count, has_length && length == 0);
    else
        write_head(x, &o);
}

int http_reply(struct task *t, struct http_exchange *x, int status, const char *type,
               struct str body)
{
    bool bodiless = status == 204 || status == 304;
    check(!bodiless || body.n == 0);
    http_gzip_body(t, x, &body);
    http_add_head(x, status, type, !bodiless, body.n);
    struct http_conn *c = x->conn;
    if (x->headless)
        body = STR("");
    if (body.n > HTTP_COPY_BYTES_MAX)
        return http_send(t, c, body);
    buf_add_str(&c->kit->out, body);
    return c->kit->out.len > HTTP_OUT_BYTES_MAX ? http_send(t, c, STR("")) : 0;
}

void http_json(struct http_exchange *x, struct json_writer *w)
{
    buf_clear(&x->conn->kit->json);
    jw_init(w, &x->conn->kit->json);
}

int http_reply_json(struct task *t, struct http_exchange *x, int status)
{
    return http_reply(t, x, status, "application/json", buf_str(&x->conn->kit->json));
}

static int reply_failure(struct task *t, struct http_exchange *x, int status, const char *code,
                         const char *message)
{
    struct json_writer w;
    http_json(x, &w);
    jw_object(&w);
    jw_put_bool(&w, "success", false);
    jw_key(&w, STR("error"));
    jw_object(&w);
    jw_put_str(&w, "code", str_of(code));
    jw_put_str(&w, "message", str_of(message));
    jw_end_object(&w);
    jw_end_object(&w);
    return http_reply_json(t, x, status);
}

static enum log_level level_of(int err)
{
    if (err == ERR_BUSY || err == ERR_CANCELED)
        return LOG_DEBUG; /* these come in floods, under overload */
    return http_failure_of(err)->retry_later || err == ERR_TIMEOUT ? LOG_WARN : LOG_ERROR;
}

/* The client gets the request id only; the log has both. */
static const char *log_failure(struct http_exchange *x, int err, const char *message)
{
    uint64_t id = loop_random(x->conn->server->loop);
    log_line(level_of(err), "http", "request %016" PRIx64 ": %.*s %.*s: %s: %s", id,
             STR_ARG(x->head->method), STR_ARG(x->path), err_name(err), message ? message : "");
    return arena_printf(task_arena(x->task), "%s (request %016" PRIx64 ")",
                        x->excuse ? x->excuse : http_failure_of(err)->public_message, id);
}

void http_excuse(struct http_exchange *x, const char *words)
{
    x->excuse = words;
}

int http_reply_error(struct task *t, struct http_exchange *x, int err, const char *message)
{
    if (x->problem.message) /* the body was bad: the client's fault, whatever err says */
        return http_reply_problem(t, x, x->problem);
    const struct http_failure *f = http_failure_of(err);
    if (f->public_message)
        message = log_failure(x, err, message);
    else if (!message || !message[0])
        message = f->default_message;
    if (f->retry_later && !http_is_set(x, "retry-after"))
        http_set_header(x, "Retry-After", STR("1"));
    if (err == ERR_UNAUTHENTICATED)
        http_set_header(x, "WWW-Authenticate", STR("Bearer"));
    return reply_failure(t, x, f->status, err_name(err), message);
}

int http_reply_problem(struct task *t, struct http_exchange *x, struct http_problem p)
{
    metric_add(x->conn->server->counts.refused[p.why], 1);
    if (p.why == HTTP_METHOD_NOT_ALLOWED) {
        struct buf allow;
        buf_init(&allow);
        http_match_allow(&x->match, &allow);
        http_set_header(x, "Allow", buf_str(&allow));
        buf_release(&allow);
    } else if (p.why == HTTP_UNSUPPORTED_CODING) {
        http_set_header(x, "Accept-Encoding", STR("identity")); /* RFC 9110, 15.5.16 */
    } else if (p.why != HTTP_NOT_FOUND) {
        x->close = true; /* where the next request begins is no longer certain */
    }
    if (p.why == HTTP_TOO_MANY_CONNECTIONS)
        http_set_header(x, "Retry-After", STR("1"));
    return reply_failure(t, x, http_refused[p.why].status, http_refused[p.why].code, p.message);
}
