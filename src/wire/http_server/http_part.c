/* Parts of a body: Range, If-Range, and the tag by which they belong together. */
#include <inttypes.h>

#include "wire/http_server/http_exchange.h"
#include "wire/http_server/http_field.h"

/* If-Range: a part is wanted only if the body is still the one the client has parts of. */
static bool range_holds(const struct http_exchange *x, struct str etag, struct str modified)
{
    struct str condition = http_header(x, "if-range");
    return !condition.p || str_eq(condition, etag) || (modified.p && str_eq(condition, modified));
}

struct http_part http_part_range(const struct http_exchange *x, struct str etag,
                                 struct str modified, uint64_t size)
{
    struct http_part p = {200, 0, size, size, etag};
    struct str range = http_header(x, "range");
    bool get = str_eq(x->head->method, STR("GET")); /* no other method has ranges */
    if (!get || !range.p || !range_holds(x, etag, modified))
        return p;
    switch (http_range_parse(range, size, &p.first, &p.count)) {
    case HTTP_RANGE_OK:
        p.status = 206;
        break;
    case HTTP_RANGE_UNSATISFIABLE:
        p.status = 416;
        p.count = 0;
        break;
    case HTTP_RANGE_NONE:
        break;
    }
    return p;
}

struct http_part http_part_choose(const struct http_exchange *x, struct str tag, uint64_t size)
{
    struct arena *a = task_arena(x->task);
    struct str etag = str_printf(a, "\"%.*s\"", STR_ARG(tag));
    struct http_part p = http_part_range(x, etag, STR_NULL, size);
    /* Other bytes have another tag: a part of the body is never added to its compressed form. */
    if (p.status == 200 && http_gzip_applies(x, size))
        p.etag = str_printf(a, "\"%.*s-gzip\"", STR_ARG(tag));
    bool read = str_eq(x->head->method, STR("GET")) || x->headless;
    if (read && http_etag_matches(http_header_list(x, "if-none-match"), p.etag)) {
        p.status = 304;
        p.count = 0;
    }
    return p;
}

void http_part_announce(struct http_exchange *x, const struct http_part *p)
{
    struct arena *a = task_arena(x->task);
    http_set_header(x, "ETag", p->etag);
    if (x->gzip_allowed)
        http_set_header(x, "Vary", STR("Accept-Encoding"));
    if (p->status == 206)
        http_set_header(x, "Content-Range",
                        str_printf(a, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, p->first,
                                   p->first + p->count - 1, p->size));
    else if (p->status == 416)
        http_set_header(x, "Content-Range", str_printf(a, "bytes */%" PRIu64, p->size));
    if (p->status != 304 && !http_gzip_applies(x, p->size))
        http_set_header(x, "Accept-Ranges", STR("bytes"));
}
