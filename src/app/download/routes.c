#include "app/download/routes.h"

#include <inttypes.h>

#include "app/download/downloads.h"
#include "engine/api/file_name.h"

static struct download_wish wish_of(const struct api_call *c, enum export_format f)
{
    return (struct download_wish){
        .run = {c->session.uid, api_text(c, "query_id")},
        .format = f,
        .all = str_eq(api_text(c, "scope"), STR("all")),
    };
}

static int create(struct task *t, struct api_call *c, struct json_writer *w)
{
    enum export_format f;
    char id[DOWNLOAD_ID_BYTES];
    check(export_parse(api_text(c, "type"), &f)); /* as the table says */
    struct download_wish wish = wish_of(c, f);
    int err = download_create(t, c->node->downloads, &wish, id);
    if (err)
        return err;
    jw_put_str(w, "task_id", str_of(id));
    return 0;
}

#define AT(member) API_AT(struct download, member)
static const struct api_field status_reply[] = {
    {"state", API_TEXT, .choices = DOWNLOAD_STATES, .about = "READY: the file can be fetched"},
    {"progress", API_INT, AT(progress), .most = 100, .about = "per cent"},
    {"query_id", API_TEXT, AT(wish.run.qid), .most = 64, .about = "the run"},
    {"type", API_TEXT, .choices = EXPORT_FORMATS, .about = "of the file"},
    {"scope", API_TEXT, .choices = "relevant|all", .about = "which papers"},
    {"file_name", API_TEXT, AT(name), .most = DOWNLOAD_NAME_BYTES_MAX, .about = "name of the file"},
    {"streamed", API_BOOL, AT(streamed),
     .about = "it is large, and will be built while it is sent"},
    {"error", API_TEXT, AT(error), .optional = true, .most = 255, .about = "why it FAILED"},
    {"bytes", API_INT, .optional = true, .most = DOWNLOAD_HELD_BYTES_MAX, .about = "of the file"},
    {"expires_at", API_TIME, AT(expires_ms), .optional = true,
     .about = "when the held file expires"},
    API_END,
};

static int show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct download d;
    int err = download_look(t, c->node->downloads, c->session.uid, api_text(c, "task_id"), &d);
    if (err)
        return err;
    api_put_fields(t, w, status_reply, &d);
    jw_put_str(w, "state", str_of(download_state_name(d.state)));
    jw_put_str(w, "type", str_of(export_name(d.wish.format)));
    jw_put_str(w, "scope", d.wish.all ? STR("all") : STR("relevant"));
    if (d.expires_ms)
        jw_put_int(w, "bytes", d.bytes);
    return 0;
}

/* --- the file --- */

struct sending {
    struct api_call *call;
    const struct download *file;
    const struct http_part *part; /* NULL: all of it, by a request that builds its own file */
};

static int begin(struct task *t, void *arg)
{
    const struct sending *s = arg;
    struct http_exchange *x = s->call->x;
    const char *media = export_media(s->file->wish.format);
    http_set_header(x, "Content-Disposition", file_disposition(task_arena(t), s->file->name));
    s->call->replied = true;
    if (s->file->streamed)
        return http_stream_begin(t, x, 200, media);
    if (!s->part)
        return http_stream_begin_sized(t, x, 200, media, (uint64_t)s->file->bytes);
    http_part_announce(x, s->part);
    return http_stream_begin_sized(t, x, s->part->status, media, s->part->count);
}

static int write_piece(struct task *t, struct str piece, void *arg)
{
    const struct sending *s = arg;
    return http_stream_write(t, s->call->x, piece);
}

static int send_file(struct task *t, struct api_call *c, const struct download *d,
                     const struct http_part *part)
{
    struct sending s = {c, d, part};
    struct downloads *from = c->node->downloads;
    bool head = str_eq(http_method(c->x), STR("HEAD"));
    int err;
    if (head && d->state == DOWNLOAD_READY)
        err = begin(t, &s);
    else if (part)
        err = download_send_part(t, from, d, (int64_t)part->first, (int64_t)part->count, begin,
                                 write_piece, &s);
    else
        err = download_send(t, from, d, begin, write_piece, &s);
    return err ? err : http_stream_end(t, c->x);
}

/* The end of its life tells a file from one that a Redis which came back older had built again. */
static struct str tag_of(struct task *t, const struct download *d)
{
    return str_printf(task_arena(t), "%.*s-%" PRIx64, STR_ARG(d->id), d->expires_ms);
}

static int send_held(struct task *t, struct api_call *c, const struct download *d)
{
    struct http_part p = http_part_choose(c->x, tag_of(t, d), (uint64_t)d->bytes);
    if (p.status != 304 && p.status != 416)
        return send_file(t, c, d, &p);
    http_part_announce(c->x, &p);
    c->replied = true;
    return http_reply(t, c->x, p.status, NULL, STR(""));
}

static int get_file(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct download d;
    int err = download_look(t, c->node->downloads, c->session.uid, api_text(c, "task_id"), &d);
    if (err)
        return err;
    bool held = d.state == DOWNLOAD_READY && !d.streamed;
    return held ? send_held(t, c, &d) : send_file(t, c, &d, NULL);
}

/* The old way: one request that asks, waits and answers. */
static int get_at_once(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct download_wish wish = wish_of(c, (enum export_format)c->route->option);
    struct download d;
    char id[DOWNLOAD_ID_BYTES];
    int err = download_create(t, c->node->downloads, &wish, id);
    if (!err)
        err = download_await(t, c->node->downloads, c->session.uid, str_of(id), &d);
    if (!err && d.state == DOWNLOAD_FAILED)
        err = task_fail(t, ERR_UNAVAILABLE, "download %s: %.*s", id, STR_ARG(d.error));
    return err ? err : send_file(t, c, &d, NULL);
}

/* --- the tables --- */

#define QUERY_ID "query_id", API_TEXT, .least = 1, .most = 64, .about = "the run"
#define SCOPE                                                                                      \
    "scope", API_TEXT, .optional = true, .choices = "relevant|all",                                \
                       .about = "which papers; the relevant ones if absent"

static const struct api_field create_body[] = {
    {QUERY_ID},
    {"type", API_TEXT, .choices = EXPORT_FORMATS, .about = "of the file"},
    {SCOPE},
    API_END,
};
static const struct api_field create_reply[] = {
    {"task_id", API_TEXT, .least = 32, .most = 32,
     .about = "id of the download, valid for an hour"},
    API_END,
};
static const struct api_field task_query[] = {
    {"task_id", API_TEXT, .least = 1, .most = 64, .about = "of the download"},
    API_END,
};
static const struct api_field at_once_fields[] = {
    {QUERY_ID},
    {SCOPE},
    API_END,
};

const struct api_route download_routes[] = {
    {"POST", "/api/download/create", API_USER, create, "Ask for the results of a run as a file",
     .body = create_body, .reply = create_reply},
    {"GET", "/api/download/status", API_USER, show, "How far a download is", .query = task_query,
     .reply = status_reply},
    {"GET", "/api/download/file", API_USER, get_file, "The file of a download that is READY",
     .query = task_query, .media = "*/*"},
    {"GET", "/api/download_csv", API_USER, get_at_once, "Results as CSV, in one request",
     .query = at_once_fields, .media = "text/csv", .option = EXPORT_CSV},
    {"POST", "/api/download_csv", API_USER, get_at_once, "Results as CSV, in one request",
     .body = at_once_fields, .media = "text/csv", .option = EXPORT_CSV},
    {"GET", "/api/download_bib", API_USER, get_at_once, "Results as BibTeX, in one request",
     .query = at_once_fields, .media = "application/x-bibtex", .option = EXPORT_BIB},
    {"POST", "/api/download_bib", API_USER, get_at_once, "Results as BibTeX, in one request",
     .body = at_once_fields, .media = "application/x-bibtex", .option = EXPORT_BIB},
    {.method = NULL},
};
