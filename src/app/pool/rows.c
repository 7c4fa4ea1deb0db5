#include "app/pool/rows.h"

#include "base/err.h"
#include "base/json.h"

#define LINE_BYTES_MAX (1 << 20)

static int fail(struct pool_rows *r, const char *why)
{
    r->error = why;
    return ERR_INVALID;
}

/* --- texts --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int64_t characters(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static int check_text(struct pool_rows *r, struct arena *a, struct str text)
{
    if (!str_utf8_valid(text))
        return fail(r, "not UTF-8; save the file as UTF-8");
    if (str_trim_if(text, is_blank).n == 0)
        return fail(r, "no text");
    if (memchr(text.p, '\0', text.n))
        return fail(r, "a NUL character in the text");
    if ((int64_t)text.n > r->type->chars_max && characters(text) > r->type->chars_max)
        return fail(r,
                    arena_printf(a, "longer than %lld characters", (long long)r->type->chars_max));
    return 0;
}

/* --- CSV --- */

static int open_csv(struct pool_rows *r, struct arena *a)
{
    if (r->place.line) {
        csv_go_on(&r->csv, r->text, r->place.columns, r->place.line);
    } else {
        if (csv_open(&r->csv, a, r->text))
            return fail(r, r->csv.error);
        int column = csv_column(&r->csv, STR("text"));
        if (column < 0)
            column = csv_column(&r->csv, str_of(r->type->column));
        if (column < 0)
            return fail(r, arena_printf(a, "the first row names no column \"text\" or \"%s\"",
                                        r->type->column));
        r->place.column = (size_t)column;
        r->place.columns = r->csv.column_count;
    }
    r->csv.more = !r->last;
    return 0;
}

static int next_of_csv(struct pool_rows *r, struct arena *a, struct str *out, int64_t *line)
{
    struct csv_row row;
    int err = csv_next(&r->csv, a, &row);
    r->at = r->csv.at;
    r->place.line = r->csv.line;
    if (err == ERR_NOT_FOUND)
        return err;
    *line = err ? r->csv.error_line : row.line;
    if (err)
        return fail(r, r->csv.error);
    *out = row.cells[r->place.column];
    return 0;
}

/* --- JSON lines --- */

static int text_of(struct pool_rows *r, struct arena *a, struct str line, struct str *out)
{
    const struct json *j;
    struct json_error e;
    if (line.n > LINE_BYTES_MAX)
        return fail(r, "the line is too long");
    if (json_parse(a, line, &j, &e))
        return fail(r, arena_printf(a, "no JSON, column %zu: %s", e.column, e.message));
    const struct json *text = json_get(j, "text");
    if (!text)
        text = json_get(j, r->type->column);
    if (j->type == JSON_STRING)
        text = j;
    if (!text || text->type != JSON_STRING)
        return fail(r, arena_printf(a,
                                    "neither a string nor an object with a string \"text\" or "
                                    "\"%s\"",
                                    r->type->column));
    *out = text->s;
    return 0;
}

/* Stands behind the lines that were read. A last line without an end waits for the next piece,
 * unless it is too long already. */
static int next_of_jsonl(struct pool_rows *r, struct arena *a, struct str *out, int64_t *line)
{
    while (r->at < r->text.n) {
        struct str rest = str_skip(r->text, r->at);
        const char *end = memchr(rest.p, '\n', rest.n);
        if (!end && !r->last && rest.n <= LINE_BYTES_MAX)
            return ERR_NOT_FOUND;
        struct str whole = str_from(rest.p, end ? (size_t)(end - rest.p) : rest.n);
        r->at += whole.n + (end != NULL);
        *line = r->place.line;
        r->place.line += end != NULL;
        if (*line == 1 && str_starts(whole, STR("\xef\xbb\xbf")))
            whole = str_skip(whole, 3);
        whole = str_trim_if(whole, is_blank);
        if (whole.n)
            return text_of(r, a, whole, out);
    }
    return ERR_NOT_FOUND;
}

/* --- both --- */

int pool_rows_open(struct pool_rows *r, struct arena *a, const struct pool_type *type,
                   enum pool_format format, const struct pool_place *place, struct str text,
                   bool last)
{
    *r = (struct pool_rows){
        .type = type, .format = format, .text = text, .last = last, .place = *place};
    if (format == POOL_CSV)
        return open_csv(r, a);
    if (r->place.line == 0)
        r->place.line = 1;
    return 0;
}

int pool_rows_next(struct pool_rows *r, struct arena *a, struct str *out, int64_t *line)
{
    int err = r->format == POOL_CSV ? next_of_csv(r, a, out, line) : next_of_jsonl(r, a, out, line);
    return err ? err : check_text(r, a, *out);
}
