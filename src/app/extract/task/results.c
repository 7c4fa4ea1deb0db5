#include "app/extract/task/results.h"

#include "app/extract/document.h"
#include "app/extract/task/extract_private.h"
#include "app/extract/task/flags.h"
#include "base/ascii.h"

#define MS(column)  "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"
#define TITLE_CHARS "100" /* by which rows are sorted */
#define KEY_BYTES   400   /* of the longest key */
#define ARGS_MAX    12

_Static_assert(EXTRACT_KEY_CHARS * 4 <= KEY_BYTES && EXTRACT_CURSOR_CHARS > 2 * KEY_BYTES + 24,
               "a cursor has room for every key");

/* --- the cursor: a letter for the order, the place, and the key in hex --- */

struct cursor {
    int64_t place;  /* 0: there is none */
    struct str key; /* n == 0: the row has no value */
};

static char letter_of(const struct extract_view *v)
{
    static const char letters[] = {
        [EXTRACT_BY_PLACE] = 'p', [EXTRACT_BY_TITLE] = 't', [EXTRACT_BY_FIELD] = 'f'};
    return (char)(letters[v->order] ^ (v->descending ? 0x20 : 0)); /* descending: in upper case */
}

static struct str write_cursor(struct arena *a, const struct extract_view *v, int64_t place,
                               struct str key)
{
    static const char digits[] = "0123456789abcdef";
    struct str head = str_printf(a, "%c%lld", letter_of(v), (long long)place);
    if (v->order == EXTRACT_BY_PLACE)
        return head;
    char *hex = arena_alloc(a, 2 * key.n + 1);
    for (size_t i = 0; i < key.n; i++) {
        hex[2 * i] = digits[(unsigned char)key.p[i] >> 4];
        hex[2 * i + 1] = digits[key.p[i] & 15];
    }
    return STR_JOIN(a, head, STR("."), str_from(hex, 2 * key.n));
}

static bool read_hex(struct arena *a, struct str hex, struct str *out)
{
    char *p = arena_alloc(a, hex.n / 2 + 1);
    if (hex.n % 2)
        return false;
    for (size_t i = 0; i < hex.n; i++) {
        int v = ascii_hex(hex.p[i]);
        if (v < 0)
            return false;
        p[i / 2] = (char)(i % 2 ? p[i / 2] | v : v << 4);
    }
    *out = str_from(p, hex.n / 2);
    return str_utf8_valid(*out);
}

static bool read_cursor(struct arena *a, const struct extract_view *v, struct cursor *out)
{
    struct str rest = v->cursor;
    *out = (struct cursor){.key = STR("")};
    if (!rest.p)
        return true;
    if (rest.n < 2 || rest.p[0] != letter_of(v))
        return false;
    rest = str_skip(rest, 1);
    struct str place = str_cut(&rest, '.');
    if (!str_to_i64(place, &out->place) || out->place < 1 || out->place >= EXTRACT_PLACES)
        return false;
    return v->order == EXTRACT_BY_PLACE ? !rest.p : rest.p && read_hex(a, rest, &out->key);
}

/* --- the statement of a page --- */

/* With its arguments, in the order of the text. */
struct statement {
    struct buf text;
    struct sql_value args[ARGS_MAX];
    size_t count;
};

static void bind(struct statement *s, struct sql_value v)
{
    check(s->count < ARGS_MAX);
    s->args[s->count++] = v;
}

static void add_filter(struct statement *s, const struct extract_view *v)
{
    static const char *const columns[] = {[EXTRACT_MISSING] = "missing",
                                          [EXTRACT_UNVERIFIED] = "unverified",
                                          [EXTRACT_DIFFERS] = "differs",
                                          [EXTRACT_EDITED] = "edited"};
    if (v->filter == EXTRACT_ERRORS)
        buf_add_lit(&s->text, " AND state = 'error'");
    if (v->filter == EXTRACT_ALL || v->filter == EXTRACT_ERRORS)
        return;
    buf_printf(&s->text, " AND state = 'completed' AND (%s & ?) <> 0", columns[v->filter]);
    bind(s, sql_int(v->field < 0 ? INT64_MAX : INT64_C(1) << v->field));
}

#define COLUMNS                                                                                    \
    "SELECT r.number, r.place, r.version, r.document_id, r.doi, r.title, r.state, r.error,"        \
    " r.waits, r.simulated, IF(r.state = 'completed', r.edited, 0),"                               \
    " IF(r.state = 'completed', r.result, NULL), COALESCE(r.error_code, r.waits_code), "
#define EDITED 10 /* columns */
#define KEY    13

/* First which rows, then what is in them: MySQL would fetch the JSON of every row that it looks at,
 * and sort it along. */
static void write_by_place(struct statement *s, const struct extract_task *k,
                           const struct extract_view *v, const struct cursor *c)
{
    int64_t first = EXTRACT_FIRST(k->number), last = EXTRACT_LAST(k->number);
    const char *down = v->descending ? " DESC" : "";
    buf_add_lit(&s->text, COLUMNS "NULL FROM (SELECT number FROM extraction_result"
                                  " WHERE number BETWEEN ? AND ?");
    if (c->place && v->descending)
        last = first + c->place - 1;
    else if (c->place)
        first = first + c->place + 1;
    bind(s, sql_int(first));
    bind(s, sql_int(last));
    add_filter(s, v);
    buf_printf(&s->text,
               " ORDER BY number%s LIMIT ?) s JOIN extraction_result r ON r.number = s.number"
               " ORDER BY s.number%s",
               down, down);
}

/* k: what the rows are sorted by; empty: no value. */
static void add_key(struct statement *s, const struct extract_view *v)
{
    if (v->order == EXTRACT_BY_TITLE) {
        buf_add_lit(&s->text, "COALESCE(LEFT(title, " TITLE_CHARS "), '') AS k");
        return;
    }
    buf_add_lit(&s->text, "COALESCE(IF(state = 'completed', SUBSTRING_INDEX("
                          "SUBSTRING_INDEX(sort_keys, '\n', ?), '\n', -1), ''), '') AS k");
    bind(s, sql_int((int64_t)v->by + 1));
}

static void add_after(struct statement *s, const struct extract_task *k,
                      const struct extract_view *v, const struct cursor *c)
{
    int64_t number = EXTRACT_FIRST(k->number) + c->place;
    if (!c->place)
        return;
    if (c->key.n == 0) {
        buf_add_lit(&s->text, " WHERE LENGTH(k) = 0 AND number > ?");
        bind(s, sql_int(number));
        return;
    }
    buf_printf(&s->text, " WHERE k %s ? OR (k = ? AND number > ?) OR LENGTH(k) = 0",
               v->descending ? "<" : ">");
    bind(s, sql_text(c->key));
    bind(s, sql_text(c->key));
    bind(s, sql_int(number));
}

static void write_by_key(struct statement *s, const struct extract_task *k,
                         const struct extract_view *v, const struct cursor *c)
{
    const char *down = v->descending ? " DESC" : "";
    buf_add_lit(&s->text, COLUMNS "s.k FROM (SELECT number, k FROM (SELECT number, ");
    add_key(s, v);
    buf_add_lit(&s->text, " FROM extraction_result WHERE number BETWEEN ? AND ?");
    bind(s, sql_int(EXTRACT_FIRST(k->number)));
    bind(s, sql_int(EXTRACT_LAST(k->number)));
    add_filter(s, v);
    buf_add_lit(&s->text, ") a");
    add_after(s, k, v, c);
    buf_printf(&s->text,
               " ORDER BY LENGTH(k) = 0, k%s, number LIMIT ?) s"
               " JOIN extraction_result r ON r.number = s.number"
               " ORDER BY LENGTH(s.k) = 0, s.k%s, s.number",
               down, down);
}

/* One row more than the limit tells whether there is a next page. */
static int ask(struct task *t, struct extract *x, struct statement *s, int64_t *limit,
               struct sql_rows *r)
{
    const char *text = str_z(task_arena(t), buf_str(&s->text));
    bind(s, sql_int(*limit + 1));
    for (;;) {
        int err = sql_argv(t, x->node->sql, text, s->count, s->args, r);
        if (err != ERR_LIMIT || *limit == 1) /* else: rows of more bytes than fit */
            return err;
        *limit = *limit > 8 ? *limit / 8 : 1;
        s->args[s->count - 1] = sql_int(*limit + 1);
    }
}

static void read_row(const struct sql_value *v, struct extract_row *out)
{
    *out = (struct extract_row){.number = v[0].i,
                                .place = v[1].i,
                                .version = v[2].i,
                                .document_id = v[3].s,
                                .doi = v[4].s,
                                .title = v[5].s,
                                .state = v[6].s,
                                .error = v[7].s,
                                .waits = v[8].s,
                                .simulated = v[9].i != 0,
                                .values = v[11].s,
                                .reason = v[12].s};
}

/* --- marks of edits --- */

/* Rows of the page with such, in the form of IN (?, ?, …). Few lengths of lists are few statements
 * to prepare; the last number repeats. */
static int ask_marks(struct task *t, struct extract *x, const int64_t *numbers, size_t count,
                     struct sql_rows *r)
{
    struct statement s = {.count = 0};
    size_t length = 4;
    while (length < count)
        length *= 4;
    struct sql_value *args = ARENA_ARRAY(task_arena(t), struct sql_value, length);
    buf_init(&s.text);
    buf_add_lit(&s.text, "SELECT l.result, l.field, l.by_name, " MS(
                             "l.at") ", f.was FROM (SELECT MIN(number) AS first, MAX(number) AS"
                                     " last FROM extraction_edit WHERE result IN (?");
    for (size_t i = 0; i < length; i++)
        args[i] = sql_int(numbers[i < count ? i : count - 1]);
    for (size_t i = 1; i < length; i++)
        buf_add_lit(&s.text, ",?");
    buf_add_lit(&s.text, ") GROUP BY result, field) g"
                         " JOIN extraction_edit f ON f.number = g.first"
                         " JOIN extraction_edit l ON l.number = g.last");
    const char *text = str_z(task_arena(t), buf_str(&s.text));
    buf_release(&s.text);
    return sql_argv(t, x->node->sql, text, length, args, r);
}

static void add_mark(struct arena *a, struct extract_row *row, const struct sql_value *v)
{
    size_t bytes = row->mark_count * sizeof *row->marks;
    row->marks = arena_grow(a, row->marks, bytes, bytes + sizeof *row->marks);
    row->marks[row->mark_count++] =
        (struct extract_mark){.field = v[1].s, .by = v[2].s, .at_ms = v[3].i, .was = v[4].s};
}

/* bits: of each row, which fields are edited: one that was edited back is not. */
static int read_marks(struct task *t, struct extract *x, const struct extract_template *fields,
                      struct extract_rows *page, const int64_t *bits)
{
    struct sql_rows r;
    int64_t numbers[EXTRACT_ROWS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < page->count; i++)
        if (bits[i])
            numbers[count++] = page->list[i].number;
    int err = count ? ask_marks(t, x, numbers, count, &r) : 0;
    for (size_t i = 0; !err && count && i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        ptrdiff_t field = extract_field_find(fields, v[1].s);
        for (size_t k = 0; field >= 0 && k < page->count; k++)
            if (page->list[k].number == v[0].i && bits[k] >> field & 1)
                add_mark(task_arena(t), &page->list[k], v);
    }
    return err;
}

int extract_fields_read(struct task *t, const struct extract_task *k, struct extract_template *out)
{
    const char *complaint;
    if (extract_template_parse(task_arena(t), k->fields, out, &complaint))
        return task_fail(t, ERR_INTERNAL, "the template of task %.*s cannot be read: %s",
                         STR_ARG(k->id), complaint);
    return 0;
}

/* --- a page --- */

/* Flags are counted from the key of_task alone, without a look at the rows. */
static int count_rows(struct task *t, struct extract *x, const struct extract_task *k,
                      const struct extract_view *v, int64_t *out)
{
    struct statement s = {.count = 0};
    struct sql_rows r;
    *out = v->filter == EXTRACT_ERRORS ? k->counts.errors : k->total;
    if (v->filter == EXTRACT_ALL || v->filter == EXTRACT_ERRORS)
        return 0;
    buf_init(&s.text);
    buf_add_lit(&s.text, "SELECT COUNT(*) FROM extraction_result WHERE task = ?");
    bind(&s, sql_int(k->number));
    add_filter(&s, v);
    const char *text = str_z(task_arena(t), buf_str(&s.text));
    buf_release(&s.text);
    int err = sql_argv(t, x->node->sql, text, s.count, s.args, &r);
    if (!err)
        *out = r.cells[0].i;
    return err;
}

static int read_rows(struct task *t, struct extract *x, const struct extract_task *k,
                     const struct extract_view *v, const struct cursor *c, int64_t *limit,
                     struct sql_rows *r)
{
    struct statement s = {.count = 0};
    buf_init(&s.text);
    if (v->order == EXTRACT_BY_PLACE)
        write_by_place(&s, k, v, c);
    else
        write_by_key(&s, k, v, c);
    int err = ask(t, x, &s, limit, r);
    buf_release(&s.text);
    return err;
}

int extract_rows_read(struct task *t, struct extract *x, const struct extract_task *k,
                      const struct extract_view *v, struct extract_rows *out)
{
    struct arena *a = task_arena(t);
    struct extract_template fields;
    struct cursor c;
    struct sql_rows r;
    int64_t limit = v->limit, bits[EXTRACT_ROWS_MAX];
    check(limit > 0 && limit <= EXTRACT_ROWS_MAX);
    if (!read_cursor(a, v, &c))
        return task_fail(t, ERR_INVALID, "is no cursor of this order");
    int err = extract_fields_read(t, k, &fields);
    if (!err)
        err = read_rows(t, x, k, v, &c, &limit, &r);
    if (err)
        return err;
    struct extract_rows page = {.count = r.count > (size_t)limit ? (size_t)limit : r.count};
    page.list = ARENA_ARRAY(a, struct extract_row, page.count);
    for (size_t i = 0; i < page.count; i++) {
        read_row(sql_row(&r, i), &page.list[i]);
        bits[i] = sql_row(&r, i)[EDITED].i;
    }
    if (r.count > page.count) {
        const struct sql_value *last = sql_row(&r, page.count - 1);
        page.next = write_cursor(a, v, last[1].i, last[KEY].s);
    }
    err = read_marks(t, x, &fields, &page, bits);
    if (!err)
        err = count_rows(t, x, k, v, &page.total);
    if (!err)
        *out = page;
    return err;
}

int extract_row_read(struct task *t, struct extract *x, const struct extract_task *k, int64_t place,
                     struct extract_row *out)
{
    struct extract_template fields;
    struct sql_rows r;
    int err = extract_fields_read(t, k, &fields);
    if (!err)
        err = sql_call(t, x->node->sql, &r,
                       COLUMNS "NULL FROM extraction_result r WHERE r.task = ? AND r.number = ?",
                       sql_int(k->number), sql_int(EXTRACT_FIRST(k->number) + place));
    if (!err && r.count == 0)
        err = extract_no_row(t);
    if (err)
        return err;
    struct extract_rows one = {.list = out, .count = 1};
    int64_t edited = r.cells[EDITED].i;
    read_row(r.cells, out);
    return read_marks(t, x, &fields, &one, &edited);
}

/* --- the text of a row --- */

/* Of a paper that was not asked about yet. */
static int source_text(struct task *t, struct extract *x, int64_t uid, const struct sql_value *v,
                       extract_text_fn *fn, void *arg)
{
    struct extract_source s = {.document_id = STR_NULL, .doi = v[1].s, .block_key = v[2].s};
    int err = extract_source_read(t, x, uid, &s);
    return err ? err : fn(t, s.text, arg);
}

int extract_row_text(struct task *t, struct extract *x, int64_t uid, struct str task_id,
                     int64_t place, extract_text_fn *fn, void *arg)
{
    struct extract_task k;
    struct sql_rows r;
    int err = extract_task_find(t, x, uid, task_id, &k);
    if (!err)
        err = sql_call(t, x->node->sql, &r,
                       "SELECT document_id, doi, block_key, text FROM extraction_result"
                       " WHERE task = ? AND number = ?",
                       sql_int(k.number), sql_int(EXTRACT_FIRST(k.number) + place));
    if (err)
        return err;
    if (r.count == 0)
        return extract_no_row(t);
    if (r.cells[0].s.p)
        return document_text_each(t, x->node, uid, r.cells[0].s, fn, arg);
    return r.cells[3].s.p ? fn(t, r.cells[3].s, arg) : source_text(t, x, uid, r.cells, fn, arg);
}
