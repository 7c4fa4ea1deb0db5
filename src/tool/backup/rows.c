#include "tool/backup/rows.h"

static void put_text(struct buf *out, struct str s)
{
    size_t from = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        char escaped = c == '\\' ? '\\' : c == '\t' ? 't' : c == '\n' ? 'n' : c == '\0' ? '0' : 0;
        if (!escaped)
            continue;
        buf_add(out, s.p + from, i - from);
        buf_add_short(out, (char[]){'\\', escaped}, 2);
        from = i + 1;
    }
    buf_add(out, s.p + from, s.n - from);
}

static void put(struct buf *out, const struct sql_value *v)
{
    if (v->type == SQL_INT) {
        buf_add_int(out, v->i);
        return;
    }
    check(v->type != SQL_REAL);
    if (v->type == SQL_NULL || !v->s.p)
        buf_add_lit(out, "\\N");
    else
        put_text(out, v->s);
}

void rows_put(struct buf *out, const struct sql_value *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(out, '\t');
        put(out, &cells[i]);
    }
    buf_add_char(out, '\n');
}

static bool unescape(char c, char *out)
{
    static const char names[] = "\\tn0", bytes[] = "\\\t\n";
    const char *at = memchr(names, c, sizeof names - 1);
    if (at)
        *out = bytes[at - names];
    return at != NULL;
}

static bool read(struct arena *a, struct str text, struct sql_value *out)
{
    if (str_eq(text, STR("\\N"))) {
        *out = sql_null();
        return true;
    }
    char *p = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++, n++) {
        p[n] = text.p[i];
        if (text.p[i] == '\0' ||
            (text.p[i] == '\\' && (++i == text.n || !unescape(text.p[i], p + n))))
            return false;
    }
    p[n] = '\0';
    *out = sql_text(str_from(p, n));
    return true;
}

bool rows_read(struct arena *a, struct str line, size_t count, struct sql_value *cells)
{
    for (size_t i = 0; i < count; i++)
        if (!line.p || !read(a, str_cut(&line, '\t'), &cells[i]))
            return false;
    return !line.p;
}
