#include "app/extract/task/files.h"

#include "app/extract/document.h"
#include "app/extract/task/extract_private.h"
#include "app/extract/fields/values.h"
#include "base/time.h"
#include "corpus/csv.h"
#include "corpus/xlsx.h"
#include "engine/api/api.h"
#include "loop/offload.h"

#define PAGE_ROWS   100
#define PIECE_BYTES (256 * 1024)
#define SIMULATED   "made up by the simulated AI of millrace, not by a language model"

static const struct {
    const char *name, *media;
} formats[] = {
    [EXTRACT_CSV] = {"csv", "text/csv; charset=utf-8"},
    [EXTRACT_JSONL] = {"jsonl", "application/x-ndjson; charset=utf-8"},
    [EXTRACT_XLSX] = {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
};

const char *extract_format_name(enum extract_format f)
{
    return formats[f].name;
}

const char *extract_format_media(enum extract_format f)
{
    return formats[f].media;
}

bool extract_format_read(struct str name, enum extract_format *out)
{
    for (int f = EXTRACT_CSV; f <= EXTRACT_XLSX; f++)
        if (str_eq(name, str_of(formats[f].name))) {
            *out = (enum extract_format)f;
            return true;
        }
    return false;
}

/* Where the pages of a row's document end, as offsets in its text. */
struct page_ends {
    bool known;
    size_t first, count; /* in exporting.ends */
};

struct exporting;
typedef int add_fn(struct exporting *e, const struct extract_row *row,
                   const struct extract_values *v);

struct exporting {
    const struct extract_task *task;
    struct extract_template fields;
    enum extract_format format;
    struct buf out;
    struct xlsx *book;    /* of XLSX; else NULL */
    struct arena scratch; /* for one row; the helper thread's */
    int64_t simulated;    /* rows */
    int64_t quotes;       /* rows of the present sheet of quotes */
    extract_piece_fn *fn;
    void *arg;
    struct page_ends pages[PAGE_ROWS]; /* of the rows in hand, for quotes */
    struct buf ends;                   /* size_t; of all of them */
    /* What the helper thread does next. */
    add_fn *add;
    const struct extract_rows *page;
    int err;
};

/* --- cells --- */

#define SEPARATOR "; "

static struct str joined(struct exporting *e, const struct extract_field *f,
                         const struct extract_found *v)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < v->count; i++) {
        if (i)
            buf_add_lit(&b, SEPARATOR);
        buf_add_str(&b, extract_value_text(&e->scratch, f, &v->items[i]));
    }
    struct str s = str_dup(&e->scratch, buf_str(&b));
    buf_release(&b);
    return s;
}

static bool is_verified(const struct extract_found *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (!v->items[i].verified)
            return false;
    return true;
}

/* The names of fields that are so. */
static struct str names(struct exporting *e, const struct extract_values *v, bool edited)
{
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; v && i < e->fields.count; i++) {
        const struct extract_found *f = &v->fields[i];
        if (edited ? !f->edited : f->edited || is_verified(f))
            continue;
        if (b.len)
            buf_add_lit(&b, SEPARATOR);
        buf_add_str(&b, e->fields.fields[i].name);
    }
    struct str s = str_dup(&e->scratch, buf_str(&b));
    buf_release(&b);
    return s;
}

static struct str simulated(const struct extract_row *row)
{
    return !row->values.p ? STR("") : row->simulated ? STR("yes") : STR("no");
}

/* --- the table of CSV and XLSX --- */

static const char *const before[] = {"row", "document", "doi", "document_id", "state", "error"};
static const char *const behind[] = {"unverified", "edited", "simulated"};
#define BEFORE (sizeof before / sizeof *before)
#define BEHIND (sizeof behind / sizeof *behind)

static bool is_ours(struct str name)
{
    for (size_t i = 0; i < BEFORE + BEHIND; i++)
        if (str_ieq(name, str_of(i < BEFORE ? before[i] : behind[i - BEFORE])))
            return true;
    return false;
}

/* "dose (mg)"; a field that is called like a column of ours is "doi (field)". */
static struct str title_of(struct arena *a, const struct extract_field *f)
{
    if (f->unit.n)
        return STR_JOIN(a, f->name, STR(" ("), f->unit, STR(")"));
    return is_ours(f->name) ? STR_JOIN(a, f->name, STR(" (field)")) : f->name;
}

static size_t columns_of(struct arena *a, const struct extract_template *x, struct str **out)
{
    struct str *list = ARENA_ARRAY(a, struct str, BEFORE + x->count + BEHIND);
    size_t n = 0;
    for (size_t i = 0; i < BEFORE; i++)
        list[n++] = str_of(before[i]);
    for (size_t i = 0; i < x->count; i++)
        list[n++] = title_of(a, &x->fields[i]);
    for (size_t i = 0; i < BEHIND; i++)
        list[n++] = str_of(behind[i]);
    *out = list;
    return n;
}

/* --- CSV --- */

static void add_csv_header(struct exporting *e)
{
    struct csv_writer w = {.out = &e->out};
    struct str *columns;
    size_t count = columns_of(&e->scratch, &e->fields, &columns);
    buf_add_lit(&e->out, "\xef\xbb\xbf"); /* by this spreadsheets know that it is UTF-8 */
    for (size_t i = 0; i < count; i++)
        csv_add(&w, columns[i]);
    csv_end_row(&w);
}

static void add_csv_value(struct exporting *e, struct csv_writer *w, const struct extract_field *f,
                          const struct extract_found *v)
{
    bool number = f->type == EXTRACT_NUMBER || f->type == EXTRACT_INTEGER;
    if (number && v->count)
        csv_add_number(w, extract_value_text(&e->scratch, f, &v->items[0]));
    else
        csv_add(w, csv_fit(&e->scratch, joined(e, f, v)));
}

static int add_csv(struct exporting *e, const struct extract_row *row,
                   const struct extract_values *v)
{
    struct csv_writer w = {.out = &e->out};
    csv_add_int(&w, row->place);
    csv_add(&w, row->title);
    csv_add(&w, row->doi);
    csv_add(&w, row->document_id);
    csv_add(&w, row->state);
    csv_add(&w, row->error);
    for (size_t i = 0; i < e->fields.count; i++)
        if (v)
            add_csv_value(e, &w, &e->fields.fields[i], &v->fields[i]);
        else
            csv_add(&w, STR(""));
    csv_add(&w, names(e, v, false));
    csv_add(&w, names(e, v, true));
    csv_add(&w, simulated(row));
    csv_end_row(&w);
    return 0;
}

/* --- JSON lines --- */

void extract_mark_put(struct json_writer *w, const struct extract_mark *m)
{
    jw_object(w);
    jw_put_str(w, "by", m->by);
    api_put_time(w, "at", m->at_ms);
    jw_key(w, STR("was"));
    jw_raw(w, m->was);
    jw_end_object(w);
}

void extract_row_put(struct json_writer *w, const struct extract_row *row)
{
    jw_put_int(w, "place", row->place);
    jw_put_str(w, "document_id", row->document_id);
    jw_put_str(w, "doi", row->doi);
    jw_put_str(w, "title", row->title);
    jw_put_str(w, "state", row->state);
    jw_put_str(w, "error", row->error);
    jw_put_str(w, "message", row->waits);
    jw_put_str(w, "reason_code", row->reason);
    jw_put_int(w, "version", row->version);
    jw_put_bool(w, "simulated", row->simulated);
    jw_key(w, STR("values"));
    if (row->values.p)
        jw_raw(w, row->values);
    else
        jw_null(w);
    jw_put_object(w, "edits");
    for (size_t i = 0; i < row->mark_count; i++) {
        jw_key(w, row->marks[i].field);
        extract_mark_put(w, &row->marks[i]);
    }
    jw_end_object(w);
}

static int add_json(struct exporting *e, const struct extract_row *row,
                    const struct extract_values *v)
{
    (void)v;
    const struct extract_task *k = e->task;
    struct json_writer w;
    jw_init(&w, &e->out);
    jw_object(&w);
    jw_put_str(&w, "task_id", k->id);
    jw_put_str(&w, "template_name", k->template_name);
    jw_put_int(&w, "template_version", k->template_version);
    jw_put_str(&w, "model", k->model);
    extract_row_put(&w, row);
    jw_end_object(&w);
    buf_add_char(&e->out, '\n');
    return 0;
}

/* --- XLSX --- */

static void add_cell(struct exporting *e, const struct extract_field *f,
                     const struct extract_found *v)
{
    enum extract_type type = v->count ? f->type : EXTRACT_LIST;
    switch (type) {
    case EXTRACT_NUMBER:
        xlsx_add_real(e->book, v->items[0].number);
        break;
    case EXTRACT_INTEGER:
        xlsx_add_int(e->book, v->items[0].integer);
        break;
    case EXTRACT_BOOLEAN:
        xlsx_add_bool(e->book, v->items[0].boolean);
        break;
    case EXTRACT_DATE:
        xlsx_add_date(e->book, v->items[0].text);
        break;
    default:
        if (v->count)
            xlsx_add_text(e->book, joined(e, f, v));
        else
            xlsx_add_empty(e->book);
    }
}

static void add_text(struct exporting *e, struct str s)
{
    if (s.n)
        xlsx_add_text(e->book, s);
    else
        xlsx_add_empty(e->book);
}

static int add_xlsx(struct exporting *e, const struct extract_row *row,
                    const struct extract_values *v)
{
    xlsx_add_int(e->book, row->place);
    add_text(e, row->title);
    add_text(e, row->doi);
    add_text(e, row->document_id);
    add_text(e, row->state);
    add_text(e, row->error);
    for (size_t i = 0; i < e->fields.count; i++)
        if (v)
            add_cell(e, &e->fields.fields[i], &v->fields[i]);
        else
            xlsx_add_empty(e->book);
    add_text(e, names(e, v, false));
    add_text(e, names(e, v, true));
    add_text(e, simulated(row));
    return xlsx_end_row(e->book);
}

/* The page that a quote begins on; 0: not known. */
static int64_t page_of(const struct exporting *e, const struct extract_row *row,
                       const struct extract_value *v)
{
    const struct page_ends *p = &e->pages[row - e->page->list];
    const size_t *ends = (const size_t *)(const void *)buf_str(&e->ends).p;
    size_t n = 0;
    if (!p->known || !v->found)
        return 0;
    while (n < p->count && ends[p->first + n] < v->begin)
        n++;
    return (int64_t)n + 1;
}

static void add_number(struct exporting *e, int64_t v) /* 0: none */
{
    if (v)
        xlsx_add_int(e->book, v);
    else
        xlsx_add_empty(e->book);
}

static int begin_quotes(struct exporting *e)
{
    static const struct xlsx_column columns[] = {
        {STR("row"), 0},    {STR("document"), 48}, {STR("doi"), 0},         {STR("field"), 18},
        {STR("value"), 24}, {STR("unit"), 0},      {STR("as written"), 18}, {STR("quote"), 80},
        {STR("page"), 0},   {STR("verified"), 0},  {STR("kind"), 0},        {STR("simulated"), 0}};
    e->quotes = 0;
    return xlsx_begin_sheet(e->book, STR("Quotes"), columns, sizeof columns / sizeof *columns);
}

/* One value of the sheet of quotes. */
static int add_quote(struct exporting *e, const struct extract_row *row,
                     const struct extract_field *f, const struct extract_found *found,
                     const struct extract_value *v, struct str kind)
{
    struct extract_field item = *f;
    struct extract_found one = {.items = v, .count = 1};
    item.type = f->of;
    int err = e->quotes == XLSX_ROWS_MAX - 1 ? begin_quotes(e) : 0; /* it is full: one more */
    if (err)
        return err;
    e->quotes++;
    xlsx_add_int(e->book, row->place);
    add_text(e, row->title);
    add_text(e, row->doi);
    add_text(e, f->name);
    add_cell(e, &item, &one);
    add_text(e, f->unit);
    add_text(e, v->original);
    add_text(e, v->quote);
    add_number(e, page_of(e, row, v));
    add_text(e, found->edited ? STR("edited") : v->verified ? STR("yes") : STR("no"));
    add_text(e, kind);
    add_text(e, simulated(row));
    return xlsx_end_row(e->book);
}

static int add_quotes(struct exporting *e, const struct extract_row *row,
                      const struct extract_values *v)
{
    int err = 0;
    for (size_t i = 0; v && i < e->fields.count; i++) {
        const struct extract_field *f = &e->fields.fields[i];
        const struct extract_found *x = &v->fields[i];
        for (size_t k = 0; !err && k < x->count; k++)
            err = add_quote(e, row, f, x, &x->items[k], STR("shown"));
        for (size_t k = 0; !err && k < x->differ_count; k++)
            err = add_quote(e, row, f, x, &x->differs[k], STR("differs"));
    }
    return err;
}

static int begin_results(struct exporting *e)
{
    struct xlsx_column columns[BEFORE + EXTRACT_FIELDS_MAX + BEHIND];
    struct str *titles;
    size_t count = columns_of(&e->scratch, &e->fields, &titles);
    for (size_t i = 0; i < count; i++)
        columns[i] = (struct xlsx_column){titles[i], i == 1 ? 48 : i < BEFORE ? 0 : 18};
    return xlsx_begin_sheet(e->book, STR("Results"), columns, count);
}

/* --- about --- */

static int add_line(struct exporting *e, const char *name, struct str text)
{
    xlsx_add_text(e->book, str_of(name));
    add_text(e, text);
    return xlsx_end_row(e->book);
}

static int add_count(struct exporting *e, const char *name, int64_t n)
{
    xlsx_add_text(e->book, str_of(name));
    xlsx_add_int(e->book, n);
    return xlsx_end_row(e->book);
}

static int add_moment(struct exporting *e, const char *name, int64_t wall_ms)
{
    xlsx_add_text(e->book, str_of(name));
    if (wall_ms)
        xlsx_add_time(e->book, wall_ms * 1000);
    else
        xlsx_add_empty(e->book);
    return xlsx_end_row(e->book);
}

static int add_about(struct exporting *e, int64_t wall_ms)
{
    static const struct xlsx_column columns[] = {{STR("about"), 24}, {STR("value"), 80}};
    const struct extract_task *k = e->task;
    int err = xlsx_begin_sheet(e->book, STR("About"), columns, 2);
    err = err ? err : add_line(e, "task", k->name);
    err = err ? err : add_line(e, "task id", k->id);
    err = err ? err : add_line(e, "template", k->template_name);
    err = err ? err : add_count(e, "template version", k->template_version);
    err = err ? err : add_line(e, "model", k->model);
    err = err ? err : add_line(e, "run", k->query_id);
    err = err ? err : add_count(e, "documents", k->total);
    err = err ? err : add_count(e, "completed", k->counts.completed);
    err = err ? err : add_count(e, "errors", k->counts.errors);
    err = err ? err : add_moment(e, "submitted (UTC)", k->created_ms);
    err = err ? err : add_moment(e, "closed (UTC)", k->completed_ms);
    err = err ? err : add_moment(e, "this file (UTC)", wall_ms);
    err = err ? err
              : add_line(e, "verified",
                         STR("the quote is in the text of the document and has the number, if "
                             "the value is one"));
    if (!err && e->simulated)
        err = add_count(e, "simulated results", e->simulated);
    return err || !e->simulated ? err : add_line(e, "simulated", STR(SIMULATED));
}

/* --- any of them --- */

static int flush(struct task *t, struct exporting *e)
{
    int err = 0;
    while (!err && e->out.len) {
        struct str all = buf_str(&e->out);
        struct str piece = str_from(all.p, all.n < PIECE_BYTES ? all.n : PIECE_BYTES);
        err = e->fn(t, piece, e->arg);
        buf_consume(&e->out, piece.n);
    }
    return err;
}

/* The rows of a page; on a helper thread. */
static void render(void *arg)
{
    struct exporting *e = arg;
    for (size_t i = 0; !e->err && i < e->page->count; i++) {
        const struct extract_row *row = &e->page->list[i];
        struct arena_mark mark = arena_mark(&e->scratch);
        struct extract_values v;
        bool shown = row->values.p && e->format != EXTRACT_JSONL;
        if (shown)
            e->err = extract_values_read(&e->scratch, &e->fields, row->values, &v);
        if (!e->err)
            e->err = e->add(e, row, shown ? &v : NULL);
        e->simulated += row->values.p && row->simulated;
        arena_reset(&e->scratch, mark);
    }
}

/* --- pages of PDFs: a form feed ends each (pdf.h) --- */

struct finding {
    struct exporting *e;
    struct page_ends *pages;
    size_t at; /* bytes of the text before the piece */
};

static int find_ends(struct task *t, struct str piece, void *arg)
{
    (void)t;
    struct finding *f = arg;
    for (size_t i = 0; i < piece.n; i++)
        if (piece.p[i] == '\f') {
            size_t end = f->at + i;
            buf_add(&f->e->ends, &end, sizeof end);
            f->pages->count++;
        }
    f->at += piece.n;
    return 0;
}

/* A text that cannot be read any more has no pages, but that is no reason to give up the file. */
static int read_ends(struct task *t, struct extract *x, struct exporting *e,
                     const struct extract_row *row, int64_t pages)
{
    struct page_ends *p = &e->pages[row - e->page->list];
    struct finding f = {.e = e, .pages = p};
    *p = (struct page_ends){.known = true, .first = e->ends.len / sizeof(size_t)};
    if (pages == 1)
        return 0;
    int err = document_text_each(t, x->node, e->task->uid, row->document_id, find_ends, &f);
    p->known = !err;
    return err == ERR_INVALID || err == ERR_NOT_FOUND ? 0 : err;
}

static int find_pages(struct task *t, struct extract *x, struct exporting *e)
{
    const struct extract_rows *page = e->page;
    struct sql_rows r;
    buf_clear(&e->ends);
    memset(e->pages, 0, sizeof e->pages);
    if (page->count == 0)
        return 0;
    int err = sql_call(t, x->node->sql, &r,
                       "SELECT r.number, d.pages FROM extraction_result r"
                       " JOIN document d ON d.id = r.document_id"
                       " WHERE r.number BETWEEN ? AND ? AND d.pages > 0 ORDER BY r.number",
                       sql_int(page->list[0].number), sql_int(page->list[page->count - 1].number));
    for (size_t i = 0, k = 0; !err && i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        while (k < page->count && page->list[k].number < v[0].i)
            k++;
        if (k < page->count && page->list[k].number == v[0].i && page->list[k].values.p)
            err = read_ends(t, x, e, &page->list[k], v[1].i);
    }
    return err;
}

static int add_page(struct task *t, struct extract *x, struct exporting *e,
                    const struct extract_rows *page)
{
    e->page = page;
    int err = e->add == add_quotes ? find_pages(t, x, e) : 0;
    if (!err)
        err = offload(t, render, e);
    if (!err && e->err)
        err = task_fail(t, e->err == ERR_LIMIT ? ERR_LIMIT : ERR_INTERNAL,
                        e->err == ERR_LIMIT ? "the file is too large for a spreadsheet"
                                            : "values that were stored cannot be read");
    return err ? err : flush(t, e);
}

static int add_rows(struct task *t, struct extract *x, struct exporting *e, add_fn *add)
{
    struct extract_view v = {.field = -1, .limit = PAGE_ROWS};
    char cursor[EXTRACT_CURSOR_CHARS];
    int err = 0;
    e->add = add;
    e->simulated = 0;
    do {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct extract_rows page;
        err = extract_rows_read(t, x, e->task, &v, &page);
        if (!err)
            err = add_page(t, x, e, &page);
        v.cursor = STR_NULL;
        if (!err && page.next.p) {
            check(page.next.n <= sizeof cursor);
            memcpy(cursor, page.next.p, page.next.n);
            v.cursor = str_from(cursor, page.next.n);
        }
        arena_reset(task_arena(t), mark);
    } while (!err && v.cursor.p);
    return err;
}

static int write_book(struct task *t, struct extract *x, struct exporting *e)
{
    int err = begin_results(e);
    if (!err)
        err = add_rows(t, x, e, add_xlsx);
    if (!err)
        err = begin_quotes(e);
    if (!err)
        err = add_rows(t, x, e, add_quotes);
    if (!err)
        err = add_about(e, loop_wall_ms(task_loop(t)));
    if (err)
        return err;
    xlsx_end(e->book);
    return flush(t, e);
}

static int make_file(struct task *t, struct extract *x, const struct extract_task *k,
                     enum extract_format f, extract_piece_fn *fn, void *arg)
{
    struct exporting e = {.task = k, .format = f, .fn = fn, .arg = arg};
    buf_init(&e.out);
    buf_init(&e.ends);
    arena_init(&e.scratch);
    int err = extract_fields_read(t, k, &e.fields);
    if (!err && f == EXTRACT_XLSX) {
        e.book = xlsx_new(&e.out);
        err = write_book(t, x, &e);
    } else if (!err) {
        if (f == EXTRACT_CSV)
            add_csv_header(&e);
        err = add_rows(t, x, &e, f == EXTRACT_CSV ? add_csv : add_json);
        if (!err)
            err = flush(t, &e);
    }
    xlsx_free(e.book);
    arena_release(&e.scratch);
    buf_release(&e.ends);
    buf_release(&e.out);
    return err;
}

/* A free slot. NULL: there is none for this user. */
static int64_t *find_slot(struct extract *x, int64_t uid)
{
    int64_t *slot = NULL;
    int same = 0;
    for (size_t i = 0; i < EXTRACT_FILES_MAX; i++) {
        same += x->files[i] == uid;
        if (x->files[i] == 0)
            slot = &x->files[i];
    }
    return same < EXTRACT_FILES_OF_USER ? slot : NULL;
}

int extract_file(struct task *t, struct extract *x, const struct extract_task *k,
                 enum extract_format f, extract_piece_fn *fn, void *arg)
{
    int64_t *slot = find_slot(x, k->uid);
    if (!slot)
        return task_fail(t, ERR_BUSY, "too many files are being made");
    *slot = k->uid;
    int err = make_file(t, x, k, f, fn, arg);
    *slot = 0;
    return err;
}
