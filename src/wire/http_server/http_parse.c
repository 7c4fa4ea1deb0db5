#include "wire/http_server/http_parse.h"

#include "base/ascii.h"
#include "wire/http_server/http_field.h"

#define METHOD_BYTES_MAX 20
/* Before the request line; old clients send one after a body (RFC 9112, 2.2). */
#define EMPTY_LINES_MAX 4

static const bool is_path[256] = {
    ['!'] = 1, ['$' ... ';'] = 1, ['='] = 1, ['@' ... 'Z'] = 1,
    ['_'] = 1, ['a' ... 'z'] = 1, ['~'] = 1,
};
/* Browsers leave more characters unencoded here than the grammar allows. */
static const bool is_query[256] = {
    ['!'] = 1,
    ['$' ... ';'] = 1,
    ['='] = 1,
    ['?' ... '~'] = 1,
};

static bool all(const bool table[256], struct str s)
{
    size_t n = 0;
    while (n < s.n && table[(unsigned char)s.p[n]])
        n++;
    return n == s.n;
}

static enum http_verdict bad(struct http_parser *p, enum http_refusal why, const char *message)
{
    p->problem = (struct http_problem){why, message};
    return HTTP_BAD;
}

static enum http_verdict bad_request(struct http_parser *p, const char *message)
{
    return bad(p, HTTP_BAD_REQUEST, message);
}

void http_parser_init(struct http_parser *p, struct http_parse_limits limits,
                      struct http_field *fields)
{
    *p = (struct http_parser){.limits = limits, .head = {.minor = 1, .fields = fields}};
}

static bool method_valid(struct str method)
{
    if (method.n == 0 || method.n > METHOD_BYTES_MAX)
        return false;
    for (size_t i = 0; i < method.n; i++)
        if ((method.p[i] < 'A' || method.p[i] > 'Z') && method.p[i] != '-')
            return false;
    return true;
}

static enum http_verdict take_version(struct http_parser *p, struct str version)
{
    if (version.n != 8 || memcmp(version.p, "HTTP/", 5) != 0 || !ascii_is_digit(version.p[5]) ||
        version.p[6] != '.' || !ascii_is_digit(version.p[7]))
        return bad_request(p, "the request line does not end in an HTTP version");
    if (version.p[5] == '0')
        return bad_request(p, "HTTP/0 is not spoken here");
    if (version.p[5] != '1' || version.p[7] > '1')
        return bad(p, HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    p->head.minor = version.p[7] - '0';
    return HTTP_MORE;
}

/* "http://host/path?query": the host counts, and what follows is the target proper. */
static enum http_verdict cut_authority(struct http_parser *p, struct str *target)
{
    struct str rest = *target, scheme = str_cut(&rest, ':');
    bool absolute = str_ieq(scheme, STR("http")) || str_ieq(scheme, STR("https"));
    if (!absolute || !rest.p || !str_starts(rest, STR("//")))
        return HTTP_MORE;
    rest = str_skip(rest, 2);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    p->authority = str_from(rest.p, n);
    *target = str_skip(rest, n);
    if (!http_host_valid(p->authority))
        return bad_request(p, "bad host in the request target");
    return HTTP_MORE;
}

static enum http_verdict take_target(struct http_parser *p, struct str target)
{
    struct http_head *h = &p->head;
    if (target.n > p->limits.target_bytes)
        return bad(p, HTTP_URI_TOO_LONG, "the request target is too long");
    h->target = h->query = target;
    h->path = str_cut(&h->query, '?');
    if (p->authority.p && h->path.n == 0)
        h->path = STR("/");
    if (str_eq(target, STR("*"))) {
        if (!str_eq(h->method, STR("OPTIONS")))
            return bad_request(p, "the target * is for OPTIONS only");
    } else if (h->path.n == 0 || h->path.p[0] != '/') {
        return bad_request(p, "the request target must begin with a slash");
    }
    if (!all(is_path, h->path) || (h->query.p && !all(is_query, h->query)))
        return bad_request(p, "the request target has a character that must be percent-encoded");
    return HTTP_MORE;
}

static enum http_verdict take_request_line(struct http_parser *p, struct str line)
{
    struct str version = line;
    p->head.method = str_cut(&version, ' ');
    if (!method_valid(p->head.method))
        return bad_request(p, "bad method");
    if (!version.p)
        return bad_request(p, "the request line has no target");
    struct str target = str_cut(&version, ' ');
    if (!version.p)
        return bad_request(p, "the request line has no HTTP version");
    enum http_verdict v = take_version(p, version);
    if (v == HTTP_MORE && target.n <= p->limits.target_bytes)
        v = cut_authority(p, &target);
    return v == HTTP_MORE ? take_target(p, target) : v;
}

static const char *take_host(struct http_head *h, struct str value)
{
    (void)h;
    return http_host_valid(value) ? NULL : "bad Host";
}

static const char *take_length(struct http_head *h, struct str value)
{
    uint64_t n;
    if (!http_length_parse(value, &n))
        return "bad Content-Length";
    if (h->framing == HTTP_CHUNKED)
        return "both Content-Length and Transfer-Encoding";
    h->framing = HTTP_SIZED;
    h->body_bytes = n;
    return NULL;
}

static const char *take_coding(struct http_head *h, struct str value)
{
    if (!str_ieq(value, STR("chunked")))
        return "the only Transfer-Encoding taken is chunked";
    if (h->framing == HTTP_SIZED)
        return "both Content-Length and Transfer-Encoding";
    if (h->minor == 0)
        return "HTTP/1.0 has no Transfer-Encoding";
    h->framing = HTTP_CHUNKED;
    return NULL;
}

static const char *take_connection(struct http_head *h, struct str value)
{
    if (http_list_has(value, STR("close")))
        h->close = true;
    return NULL;
}

/* Headers that the connection itself needs, and those of which a second one would be ambiguous. */
static const struct known {
    const char *name;
    size_t n;
    bool many;
    const char *(*take)(struct http_head *h, struct str value); /* returns what is wrong */
} known[] = {
    {"host", 4, false, take_host},
    {"content-length", 14, false, take_length},
    {"transfer-encoding", 17, false, take_coding},
    {"connection", 10, true, take_connection},
    {"expect", 6, false, NULL},
    {"authorization", 13, false, NULL},
    {"content-type", 12, false, NULL},
    {"cookie", 6, false, NULL},
};
#define SEEN_HOST 1u /* the bit of the first row */

static enum http_verdict take_known(struct http_parser *p, const struct http_field *f)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct known *k = &known[i];
        if (k->n != f->name.n || !str_ieq(f->name, str_from(k->name, k->n)))
            continue;
        if ((p->seen & (1u << i)) && !k->many)
            return bad_request(p, "a header that may come only once came twice");
        p->seen |= 1u << i;
        const char *wrong = k->take ? k->take(&p->head, f->value) : NULL;
        return wrong ? bad_request(p, wrong) : HTTP_MORE;
    }
    return HTTP_MORE;
}

static enum http_verdict add_field(struct http_parser *p, struct str name, struct str value)
{
    struct http_field *f = &p->head.fields[p->head.field_count++];
    *f = (struct http_field){name, value};
    return take_known(p, f);
}

static enum http_verdict take_field(struct http_parser *p, struct str line)
{
    if (p->head.field_count == p->limits.fields)
        return bad(p, HTTP_HEADERS_TOO_LARGE, "too many headers");
    size_t n = http_token_bytes(line);
    /* Folded lines end here, too: they begin with a blank, and no name does. */
    if (n == 0 || n == line.n || line.p[n] != ':')
        return bad_request(p, "bad header name");
    if (!http_value_valid(line)) /* a name has no such byte either, and long runs are faster */
        return bad_request(p, "a header has a control character in it");
    return add_field(p, str_from(line.p, n), str_trim(str_from(line.p + n + 1, line.n - n - 1)));
}

/* A host in the target counts instead of the header (RFC 9112, 3.2.2). */
static enum http_verdict settle_host(struct http_parser *p)
{
    struct http_head *h = &p->head;
    for (size_t i = 0; i < h->field_count; i++)
        if (str_ieq(h->fields[i].name, STR("host"))) {
            h->fields[i].value = p->authority;
            return HTTP_MORE;
        }
    if (h->field_count == p->limits.fields)
        return bad(p, HTTP_HEADERS_TOO_LARGE, "too many headers");
    return add_field(p, STR("host"), p->authority);
}

static enum http_verdict finish(struct http_parser *p)
{
    struct http_head *h = &p->head;
    if (h->minor == 0)
        h->close = true;
    else if (!(p->seen & SEEN_HOST))
        return bad_request(p, "no Host");
    if (p->authority.p && settle_host(p) == HTTP_BAD)
        return HTTP_BAD;
    struct str expect = http_head_field(h, STR("expect"));
    if (expect.p && h->minor > 0) { /* HTTP/1.0 does not know it: ignored */
        if (!str_ieq(expect, STR("100-continue")))
            return bad(p, HTTP_EXPECTATION_FAILED, "the only Expect met is 100-continue");
        h->expects_continue = true;
    }
    return HTTP_DONE;
}

static enum http_verdict skip_line(struct http_parser *p)
{
    return p->empty_lines++ < EMPTY_LINES_MAX ? HTTP_MORE : bad_request(p, "too many empty lines");
}

static enum http_verdict take_line(struct http_parser *p, struct str line)
{
    if (!p->head.method.p)
        return line.n == 0 ? skip_line(p) : take_request_line(p, line);
    return line.n == 0 ? finish(p) : take_field(p, line);
}

/* Bytes by which the present line must have ended. Checked before its content, so that the verdict
 * does not depend on how much of it has come. */
static size_t line_limit(const struct http_parser *p)
{
    size_t head = p->limits.head_bytes;
    size_t first =
        p->used + p->limits.target_bytes + METHOD_BYTES_MAX + sizeof("  HTTP/1.1\r\n") - 1;
    return p->head.method.p || first > head ? head : first;
}

static enum http_verdict too_long(struct http_parser *p)
{
    if (p->head.method.p)
        return bad(p, HTTP_HEADERS_TOO_LARGE, "the headers are too large");
    return bad(p, HTTP_URI_TOO_LONG, "the request line is too long");
}

/* What cannot be a method is often not HTTP (TLS, for one) and may never send a line feed. */
static bool begins_badly(const struct http_parser *p, struct str in)
{
    if (p->head.method.p || in.n == p->used)
        return false;
    char c = in.p[p->used];
    bool empty = c == '\r' && (in.n == p->used + 1 || in.p[p->used + 1] == '\n');
    return !empty && (c < 'A' || c > 'Z');
}

enum http_verdict http_parse(struct http_parser *p, struct str in)
{
    for (;;) {
        if (begins_badly(p, in))
            return bad_request(p, "bad method");
        size_t limit = line_limit(p), end = in.n < limit ? in.n : limit;
        const char *feed =
            end > p->scanned ? memchr(in.p + p->scanned, '\n', end - p->scanned) : NULL;
        if (!feed) {
            p->scanned = end;
            return in.n < limit ? HTTP_MORE : too_long(p);
        }
        struct str line = str_from(in.p + p->used, (size_t)(feed - in.p) - p->used);
        if (line.n == 0 || line.p[line.n - 1] != '\r')
            return bad_request(p, "a line feed without a carriage return");
        line.n--;
        enum http_verdict v = take_line(p, line);
        if (v == HTTP_BAD)
            return v;
        p->used = p->scanned = (size_t)(feed - in.p) + 1;
        if (v == HTTP_DONE)
            return v;
    }
}

enum http_verdict http_parse_field(struct http_parser *p, struct str name, struct str value)
{
    p->scanned += name.n + value.n + sizeof(": \r\n") - 1; /* as in HTTP/1.1 */
    if (p->scanned > p->limits.head_bytes)
        return bad(p, HTTP_HEADERS_TOO_LARGE, "the headers are too large");
    if (p->head.field_count == p->limits.fields)
        return bad(p, HTTP_HEADERS_TOO_LARGE, "too many headers");
    if (!http_token_valid(name))
        return bad_request(p, "bad header name");
    if (!http_value_valid(value))
        return bad_request(p, "a header has a control character in it");
    return add_field(p, name, str_trim(value));
}

enum http_verdict http_parse_end(struct http_parser *p, struct str method, struct str target)
{
    p->head.method = method;
    if (!method_valid(method))
        return bad_request(p, "bad method");
    enum http_verdict v = take_target(p, target);
    return v == HTTP_MORE ? finish(p) : v;
}

struct str http_head_field(const struct http_head *h, struct str name)
{
    for (size_t i = 0; i < h->field_count; i++)
        if (h->fields[i].name.n == name.n && str_ieq(h->fields[i].name, name))
            return h->fields[i].value;
    return STR_NULL;
}
