#include "wire/http_server/http_uri.h"

#include "base/ascii.h"

static bool needs_decoding(struct str raw, bool plus)
{
    return raw.n && (memchr(raw.p, '%', raw.n) || (plus && memchr(raw.p, '+', raw.n)));
}

int http_uri_byte(struct str raw, size_t *i, bool plus)
{
    char c = raw.p[(*i)++];
    if (c == '+' && plus)
        return ' ';
    if (c != '%')
        return (unsigned char)c;
    if (raw.n - *i < 2)
        return -1;
    int high = ascii_hex(raw.p[*i]), low = ascii_hex(raw.p[*i + 1]);
    *i += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool http_uri_decode(struct arena *a, struct str raw, bool plus, struct str *out)
{
    struct str decoded = raw;
    if (needs_decoding(raw, plus)) {
        char *p = arena_alloc(a, raw.n);
        size_t n = 0;
        for (size_t i = 0; i < raw.n;) {
            int c = http_uri_byte(raw, &i, plus);
            if (c < 0)
                return false;
            p[n++] = (char)c;
        }
        decoded = str_from(p, n);
    }
    if (decoded.n && (memchr(decoded.p, '\0', decoded.n) || !str_utf8_valid(decoded)))
        return false;
    *out = decoded;
    return true;
}

bool http_uri_host(struct str s, struct str *host, struct str *port)
{
    *port = s;
    if (!str_starts(s, STR("["))) {
        *host = str_cut(port, ':');
        return !port->p || !memchr(port->p, ':', port->n);
    }
    *port = str_skip(s, 1);
    *host = str_cut(port, ']');
    if (!port->p || (port->n > 0 && port->p[0] != ':'))
        return false;
    *port = port->n ? str_skip(*port, 1) : STR_NULL;
    return true;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F)
            return true;
    return false;
}

bool http_path_valid(struct str path)
{
    if (path.n == 0 || path.p[0] != '/' || has_control(path))
        return false;
    if (!memmem(path.p, path.n, "/.", 2))
        return true;
    struct str rest = path;
    while (rest.p) {
        struct str segment = str_cut(&rest, '/');
        if (str_eq(segment, STR(".")) || str_eq(segment, STR("..")))
            return false;
    }
    return true;
}

bool http_query_find(struct arena *a, struct str query, struct str name, size_t nth,
                     struct str *out)
{
    struct str rest = query;
    while (rest.p) {
        struct str value = str_cut(&rest, '&'), raw_name = str_cut(&value, '=');
        struct str decoded;
        if (!http_uri_decode(a, raw_name, true, &decoded) || !str_eq(decoded, name))
            continue;
        if (!value.p)
            value = STR("");
        if (!http_uri_decode(a, value, true, &decoded))
            continue;
        if (nth-- == 0) {
            *out = decoded;
            return true;
        }
    }
    return false;
}
