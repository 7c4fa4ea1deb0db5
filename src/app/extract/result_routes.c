#include "app/extract/result_routes.h"

#include "app/extract/task/files.h"
#include "app/extract/routes_private.h"
#include "app/extract/task/task_routes.h"
#include "app/extract/fields/values.h"
#include "engine/api/file_name.h"

#define LIMIT_DEFAULT 100
#define FIELD_PREFIX  "field:"
#define ERROR_CHARS   1000
#define TITLE_CHARS   1000
#define TEXT          "text/plain; charset=utf-8"

/* --- a page of rows --- */

static int read_field(struct task *t, struct api_call *c, const char *parameter, struct str name,
                      const struct extract_template *fields, ptrdiff_t *out)
{
    *out = extract_field_find(fields, name);
    return *out < 0 ? api_refuse(t, c, parameter, "the template of the task has no such field") : 0;
}

static int read_filter(struct task *t, struct api_call *c, const struct extract_template *fields,
                       struct extract_view *v)
{
    static const char *const words[] = {[EXTRACT_MISSING] = "missing",
                                        [EXTRACT_UNVERIFIED] = "unverified",
                                        [EXTRACT_DIFFERS] = "differs",
                                        [EXTRACT_EDITED] = "edited",
                                        [EXTRACT_ERRORS] = "error"};
    struct str filter = api_text(c, "filter"), field = api_text(c, "field");
    for (int i = EXTRACT_MISSING; filter.p && i <= EXTRACT_ERRORS; i++)
        if (str_eq(filter, str_of(words[i])))
            v->filter = (enum extract_filter)i;
    if (!field.p)
        return 0;
    if (v->filter == EXTRACT_ALL || v->filter == EXTRACT_ERRORS)
        return api_refuse(t, c, "field", "belongs to a filter of values");
    return read_field(t, c, "field", field, fields, &v->field);
}

static int read_sort(struct task *t, struct api_call *c, const struct extract_template *fields,
                     struct extract_view *v)
{
    struct str sort = api_text(c, "sort");
    ptrdiff_t by = 0;
    v->descending = sort.n && sort.p[0] == '-';
    sort = v->descending ? str_skip(sort, 1) : sort;
    if (!sort.p || str_eq(sort, STR("place")))
        return 0;
    v->order = EXTRACT_BY_TITLE;
    if (str_eq(sort, STR("title")))
        return 0;
    v->order = EXTRACT_BY_FIELD;
    if (!str_starts(sort, STR(FIELD_PREFIX)))
        return api_refuse(t, c, "sort", "must be place, title or field:<name>, or -place …");
    int err = read_field(t, c, "sort", str_skip(sort, sizeof(FIELD_PREFIX) - 1), fields, &by);
    v->by = (size_t)by;
    return err;
}

static void put_rows(struct json_writer *w, const struct extract_rows *page)
{
    jw_put_array(w, "rows");
    for (size_t i = 0; i < page->count; i++) {
        jw_object(w);
        extract_row_put(w, &page->list[i]);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_str(w, "next", page->next);
    jw_put_int(w, "total", page->total);
}

int extraction_row(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_task k;
    struct extract_row row;
    int err =
        extract_task_find(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"), &k);
    if (!err)
        err = extract_row_read(t, c->node->extract, &k, extraction_place(c), &row);
    if (!err)
        extract_row_put(w, &row);
    return err;
}

int extraction_show(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_view v = {.field = -1, .limit = LIMIT_DEFAULT, .cursor = api_text(c, "cursor")};
    struct extract_template fields;
    struct extract_task k;
    struct extract_rows page;
    (void)api_int(c, "limit", &v.limit);
    int err =
        extract_task_get(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"), &k);
    if (!err)
        err = extract_fields_read(t, &k, &fields);
    if (!err)
        err = read_filter(t, c, &fields, &v);
    if (!err)
        err = read_sort(t, c, &fields, &v);
    if (err)
        return err;
    err = extract_rows_read(t, c->node->extract, &k, &v, &page);
    if (err)
        return err == ERR_INVALID ? api_refuse(t, c, "cursor", "%s", task_error(t)) : err;
    jw_put_object(w, "task");
    extraction_put(t, w, &k);
    jw_end_object(w);
    jw_put_str(w, "model", k.model);
    jw_key(w, STR("fields"));
    jw_raw(w, k.fields);
    put_rows(w, &page);
    return 0;
}

/* --- the file and the text --- */

struct sending {
    struct api_call *call;
    const char *media;
};

static int write_piece(struct task *t, struct str piece, void *arg)
{
    struct sending *s = arg;
    int err = 0;
    if (!s->call->replied) {
        s->call->replied = true;
        err = http_stream_begin(t, s->call->x, 200, s->media);
    }
    return err ? err : http_stream_write(t, s->call->x, piece);
}

/* Nothing was written: a text may be empty. */
static int end_stream(struct task *t, struct sending *s)
{
    int err = s->call->replied ? 0 : write_piece(t, STR(""), s);
    return err ? err : http_stream_end(t, s->call->x);
}

int extraction_file(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    enum extract_format f;
    struct extract_task k;
    check(extract_format_read(api_text(c, "type"), &f)); /* as the table says */
    int err =
        extract_task_get(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"), &k);
    if (err)
        return err;
    struct str end = str_printf(task_arena(t), ".%s", extract_format_name(f));
    struct str name = file_name(task_arena(t), k.name.n ? k.name : k.template_name,
                                loop_wall_ms(task_loop(t)), end);
    http_set_header(c->x, "Content-Disposition", file_disposition(task_arena(t), name));
    struct sending s = {c, extract_format_media(f)};
    err = extract_file(t, c->node->extract, &k, f, write_piece, &s);
    return err ? err : end_stream(t, &s);
}

int extraction_text(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    struct sending s = {c, TEXT};
    int err = extract_row_text(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"),
                               extraction_place(c), write_piece, &s);
    return err ? err : end_stream(t, &s);
}

/* --- edits --- */

int extraction_edit(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct extract_change change = {
        .uid = c->session.uid,
        .by = c->session.username,
        .task_id = http_param(c->x, "task_id"),
        .place = extraction_place(c),
        .field = api_text(c, "field"),
        .value = json_get(c->body, "value"),
    };
    struct extract_changed done;
    (void)api_int(c, "version", &change.version);
    int err = extract_edit(t, c->node->extract, &change, &done);
    if (err)
        return err == ERR_INVALID ? api_refuse(t, c, done.wrong, "%s", task_error(t)) : err;
    jw_put_int(w, "version", done.version);
    jw_key(w, STR("value"));
    jw_raw(w, done.value);
    jw_key(w, STR("edit"));
    if (done.mark.by.p)
        extract_mark_put(w, &done.mark);
    else
        jw_null(w);
    return 0;
}

static void put_edit(struct json_writer *w, const struct extract_edit *e)
{
    jw_object(w);
    jw_put_str(w, "field", e->field);
    jw_put_str(w, "by", e->by);
    api_put_time(w, "at", e->at_ms);
    jw_put_int(w, "version", e->version);
    jw_key(w, STR("was"));
    jw_raw(w, e->was);
    jw_key(w, STR("now"));
    jw_raw(w, e->now);
    jw_end_object(w);
}

int extraction_edits(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str cursor = api_text(c, "cursor");
    int64_t below = INT64_MAX, limit = EXTRACT_EDITS_MAX;
    struct extract_edits page;
    if (cursor.p && (!str_to_i64(cursor, &below) || below < 1))
        return api_refuse(t, c, "cursor", "is no cursor of this list");
    (void)api_int(c, "limit", &limit);
    int err = extract_edits_read(t, c->node->extract, c->session.uid, http_param(c->x, "task_id"),
                                 extraction_place(c), below, limit, &page);
    if (err)
        return err;
    jw_put_array(w, "edits");
    for (size_t i = 0; i < page.count; i++)
        put_edit(w, &page.list[i]);
    jw_end_array(w);
    jw_put_str(w, "next", page.next ? str_int(task_arena(t), page.next) : STR_NULL);
    return 0;
}

/* --- the tables --- */

#define VALUE API_ANY, .most = EXTRACT_ITEMS_MAX, .item_most = EXTRACT_VALUE_BYTES_MAX
#define EVIDENCE                                                                                   \
    {"value", VALUE, .about = "as the template types it; null: it was not found"},                 \
        {"original", API_TEXT, .optional = true, .about = "as it was written"},                    \
        {"quote", API_TEXT, .optional = true, .about = "what the AI quoted"},                      \
        {"begin", API_INT, .optional = true,                                                       \
         .about = "where the quote is in the text, in bytes of UTF-8; absent: it is not there"},   \
        {"end", API_INT, .optional = true, .about = "the first byte behind it"},                   \
        {"part", API_INT, .optional = true, .about = "of the document, from 0"},                   \
    {                                                                                              \
        "verified", API_BOOL, .optional = true,                                                    \
                              .about = "the quote is in the text, and has the number"              \
    }
static const struct api_field evidence_fields[] = {EVIDENCE, API_END};
static const struct api_field value_fields[] = {
    EVIDENCE,
    {"unit", API_TEXT, .optional = true, .about = "of a number"},
    {"items", API_OBJECTS, .optional = true, .about = "of a list: each with its quote",
     .fields = evidence_fields},
    {"more", API_BOOL, .optional = true, .about = "of a list: not all were kept"},
    {"differs", API_OBJECTS, .optional = true,
     .about = "what other parts of the document say instead", .fields = evidence_fields},
    {"edited", API_BOOL, .optional = true, .about = "it was changed by hand"},
    API_END,
};
static const struct api_field mark_fields[] = {
    {"by", API_TEXT, .about = "who changed it last"},
    {"at", API_TIME, .about = "when"},
    {"was", API_OBJECT, .about = "what the AI had found", .fields = value_fields},
    API_END,
};
const struct api_field extraction_row_reply[] = {
    {"place", API_INT, .least = 1, .most = EXTRACT_DOCUMENTS_MAX, .about = "in the task"},
    {"document_id", API_TEXT, .optional = true, .most = 64, .about = "null: it is a paper"},
    {"doi", API_TEXT, .optional = true, .most = 255, .about = "of a paper"},
    {"title", API_TEXT, .optional = true, .most = TITLE_CHARS,
     .about = "of a paper, once it was read; name of a file"},
    {"state", API_TEXT, .choices = "pending|extracting|completed|error|cancelled",
     .about = "completed: the values are there"},
    {"error", API_TEXT, .optional = true, .most = ERROR_CHARS,
     .about = "why it failed, or waits for money or permission"},
    {"message", API_TEXT, .optional = true, .most = ERROR_CHARS, .about = "what it waits for"},
    {"reason_code", API_TEXT, .optional = true, .choices = EXTRACT_REASONS,
     .about = "error, or else message, by a word"},
    {"version", API_INT, .about = "an edit names this"},
    {"simulated", API_BOOL, .about = "the values were made up by the simulated AI"},
    {"values", API_MEMBERS, .optional = true, .about = "by the names of fields; null: none yet",
     .fields = value_fields},
    {"edits", API_MEMBERS, .about = "of values that were changed by hand, by the names of fields",
     .fields = mark_fields},
    API_END,
};
#define FIELD_NAME_MOST EXTRACT_NAME_CHARS_MAX
const struct api_field extraction_query[] = {
    {"filter", API_TEXT, .optional = true, .choices = "missing|unverified|differs|edited|error",
     .about = "only rows with a field that has no value, one without a right quote, several, or "
              "one that was changed by hand; or rows that failed"},
    {"field", API_TEXT, .optional = true, .least = 1, .most = FIELD_NAME_MOST,
     .about = "that the filter is about; any if absent"},
    {"sort", API_TEXT, .optional = true, .least = 1, .most = FIELD_NAME_MOST + 8,
     .about = "place, title or field:<name>, ascending; with a minus in front, descending. Rows "
              "without a value come last; place if absent"},
    {"limit", API_INT, .optional = true, .least = 1, .most = EXTRACT_ROWS_MAX,
     .about = "rows of a page; 100 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = EXTRACT_CURSOR_CHARS,
     .about = "next of the page before, asked for with the same filter and sort"},
    API_END,
};
const struct api_field extraction_reply[] = {
    {"task", API_OBJECT, .about = "the task", .fields = extraction_fields},
    {"model", API_TEXT, .most = 200, .about = "that is asked"},
    {"fields", API_OBJECTS, .most = EXTRACT_FIELDS_MAX, .about = "of its template, as it began",
     .fields = template_field_fields},
    {"rows", API_OBJECTS, .most = EXTRACT_ROWS_MAX, .about = "one for each document",
     .fields = extraction_row_reply},
    {"next", API_TEXT, .optional = true, .most = EXTRACT_CURSOR_CHARS,
     .about = "cursor of the next page; null: none"},
    {"total", API_INT, .most = EXTRACT_DOCUMENTS_MAX,
     .about = "rows that the filter lets through, on all pages; without one, all of the task"},
    API_END,
};
const struct api_field extraction_file_query[] = {
    {"type", API_TEXT, .choices = EXTRACT_FORMATS, .about = "of the file"},
    API_END,
};
const struct api_field extraction_edit_body[] = {
    {"version", API_INT, .least = 1, .most = INT64_MAX,
     .about = "of the row, as it was shown; another one is refused with 409"},
    {"field", API_TEXT, .least = 1, .most = FIELD_NAME_MOST, .about = "to change"},
    {"value", VALUE, .about = "of the field's type, or a text that can be read as it; null: none"},
    API_END,
};
const struct api_field extraction_edit_reply[] = {
    {"version", API_INT, .about = "of the row now"},
    {"value", API_OBJECT, .about = "as it is stored", .fields = value_fields},
    {"edit", API_OBJECT, .optional = true,
     .about = "who changed it, and what it was; null: it is what the AI had found",
     .fields = mark_fields},
    API_END,
};
const struct api_field extraction_edits_query[] = {
    {"limit", API_INT, .optional = true, .least = 1, .most = EXTRACT_EDITS_MAX,
     .about = "edits of a page; 100 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = 20,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field edit_fields[] = {
    {"field", API_TEXT, .most = FIELD_NAME_MOST, .about = "that was changed"},
    {"by", API_TEXT, .about = "who did"},
    {"at", API_TIME, .about = "when"},
    {"version", API_INT, .about = "of the row, after it"},
    {"was", API_OBJECT, .about = "the value before", .fields = value_fields},
    {"now", API_OBJECT, .about = "the value behind it", .fields = value_fields},
    API_END,
};
const struct api_field extraction_edits_reply[] = {
    {"edits", API_OBJECTS, .most = EXTRACT_EDITS_MAX, .about = "of the row, the newest first",
     .fields = edit_fields},
    {"next", API_TEXT, .optional = true, .most = 20,
     .about = "cursor of the next page; null: none"},
    API_END,
};
