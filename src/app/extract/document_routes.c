/* What users do with their documents. */
#include "app/extract/document.h"
#include "app/extract/pdf.h"
#include "app/extract/routes_private.h"
#include "engine/setup/config.h"

#define MB          (INT64_C(1024) * 1024)
#define PAGE        100
#define NAME_TAKEN  1000 /* characters that a client may send; cleaned, then cut */
#define ERROR_CHARS 1000

#define AT(member) API_AT(struct document, member)
static const struct api_field document_fields[] = {
    {"document_id", API_TEXT, AT(id), .most = DOCUMENT_ID_CHARS, .about = "of the document"},
    {"name", API_TEXT, AT(name), .most = DOCUMENT_NAME_CHARS, .about = "of the file"},
    {"media", API_TEXT, AT(media), .choices = DOCUMENT_MEDIA, .about = "what it is"},
    {"bytes", API_INT, AT(bytes), .about = "of the file"},
    {"text_bytes", API_INT, AT(text_bytes), .optional = true, .least = 1, .most = INT64_MAX,
     .about = "of its text in UTF-8; null: not known yet, or there is none"},
    {"text_error", API_TEXT, AT(text_error), .optional = true, .most = ERROR_CHARS,
     .about = "why it has no text; null: it has, or it is not known yet"},
    {"reason_code", API_TEXT, AT(text_code), .optional = true, .choices = PDF_REASONS,
     .about = "text_error by a word"},
    {"pages", API_INT, AT(pages), .optional = true, .least = 1, .most = INT64_MAX,
     .about = "of a PDF whose text is known; else null"},
    {"created_at", API_TIME, AT(created_ms), .about = "when it was uploaded"},
    API_END,
};
const struct api_field document_post_reply[] = {
    {"document_id", API_TEXT, AT(id), .most = DOCUMENT_ID_CHARS, .about = "of the document"},
    {"name", API_TEXT, AT(name), .most = DOCUMENT_NAME_CHARS, .about = "of the file"},
    {"media", API_TEXT, AT(media), .choices = DOCUMENT_MEDIA, .about = "what it is"},
    {"bytes", API_INT, AT(bytes), .about = "of the file"},
    {"again", API_BOOL, .about = "you had this file before: it is the same document"},
    API_END,
};

int document_post(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct document d;
    bool again = false;
    int err = document_upload(t, c->node, c->session.uid, api_text(c, "name"), c->x, &d, &again);
    if (err)
        return err;
    api_put_fields(t, w, document_post_reply, &d);
    jw_put_bool(w, "again", again);
    return 0;
}

int documents_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str cursor = api_text(c, "cursor");
    int64_t below = 0, limit = PAGE;
    struct document_list page;
    if (cursor.p && (!str_to_i64(cursor, &below) || below < 1))
        return api_refuse(t, c, "cursor", "is no cursor of this list");
    (void)api_int(c, "limit", &limit);
    int err = document_page(t, c->node, c->session.uid, below, limit, &page);
    if (err)
        return err;
    api_put_list(t, w, "documents", document_fields, page.list, page.count);
    jw_key(w, STR("next"));
    jw_str(w, page.next ? str_int(task_arena(t), page.next) : STR_NULL);
    jw_put_int(w, "bytes_used", page.bytes_used);
    jw_put_int(w, "bytes_max", c->node->config->extract_user_mb * MB);
    jw_put_int(w, "file_bytes_max", c->node->config->extract_document_mb * MB);
    return 0;
}

int document_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct document d;
    int err = document_get(t, c->node, c->session.uid, http_param(c->x, "document_id"), &d);
    if (err)
        return err;
    jw_put_object(w, "document");
    api_put_fields(t, w, document_fields, &d);
    jw_end_object(w);
    return 0;
}

static int write_piece(struct task *t, struct str piece, void *arg)
{
    struct api_call *c = arg;
    int err = 0;
    if (!c->replied) {
        c->replied = true;
        err = http_stream_begin(t, c->x, 200, "text/plain; charset=utf-8");
    }
    return err ? err : http_stream_write(t, c->x, piece);
}

/* A deleted one has a text, for its tasks, but not here. */
int document_text_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct document d;
    struct str id = http_param(c->x, "document_id");
    int err = document_get(t, c->node, c->session.uid, id, &d);
    if (!err)
        err = document_text_each(t, c->node, c->session.uid, id, write_piece, c);
    return err ? err : http_stream_end(t, c->x);
}

int document_remove(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    return document_delete(t, c->node, c->session.uid, http_param(c->x, "document_id"));
}

/* --- the tables --- */

const struct api_field document_post_query[] = {
    {"name", API_TEXT, .least = 1, .most = NAME_TAKEN,
     .about = "of the file; its last part is kept"},
    API_END,
};
const struct api_field document_reply[] = {
    {"document", API_OBJECT, .about = "the document", .fields = document_fields},
    API_END,
};
const struct api_field documents_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = DOCUMENT_PAGE_MAX,
     .about = "documents of a page; 100 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 20,
     .about = "next of the page before"},
    API_END,
};
const struct api_field documents_reply[] = {
    {"documents", API_OBJECTS, .most = DOCUMENT_PAGE_MAX, .about = "the newest first",
     .fields = document_fields},
    {"next", API_TEXT, .optional = true, .most = 20,
     .about = "cursor of the next page; null: none"},
    {"bytes_used", API_INT, .about = "of all of your documents"},
    {"bytes_max", API_INT, .about = "that they may have"},
    {"file_bytes_max", API_INT, .about = "that one may have"},
    API_END,
};
