#include "engine/setup/schema_split.h"

#include "base/buf.h"
#include "base/err.h"

/* Bytes up to and with `end`; 0 when it does not come. */
static size_t through(struct str s, size_t skip, const char *end)
{
    ptrdiff_t at = str_find(str_skip(s, skip), str_of(end));
    return at < 0 ? 0 : skip + (size_t)at + strlen(end);
}

/* A doubled quote ends one string and begins the next, which comes to the same here. */
static size_t quoted(struct str s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == s.p[0])
            return i + 1;
        if (s.p[i] == '\\' && s.p[0] != '`')
            i++;
    }
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_line_comment(struct str s)
{
    bool dashes = str_starts(s, STR("--")) && (s.n == 2 || is_space(s.p[2]));
    return dashes || str_starts(s, STR("#"));
}

/* Those that begin with ! are no comments: servers of a certain version execute them. */
static bool is_block_comment(struct str s)
{
    return str_starts(s, STR("/*")) && !str_starts(s, STR("/*!")) && !str_starts(s, STR("/*M!"));
}

/* Bytes of the comment that s begins with; 0 for none, SIZE_MAX for one without an end. */
static size_t comment(struct str s)
{
    size_t n = 0;
    if (is_line_comment(s)) {
        n = through(s, 0, "\n");
        return n ? n : s.n;
    }
    if (!is_block_comment(s))
        return 0;
    n = through(s, 2, "*/");
    return n ? n : SIZE_MAX;
}

static bool skip(struct str *s, size_t n)
{
    if (n > s->n)
        return false;
    *s = str_skip(*s, n);
    return true;
}

/* Space and comments in front of a statement. */
static bool skip_blank(struct str *s)
{
    while (s->n > 0) {
        size_t n = is_space(s->p[0]) ? 1 : comment(*s);
        if (n == 0)
            break;
        if (!skip(s, n))
            return false;
    }
    return true;
}

/* Bytes of the next thing that a semicolon cannot be inside of; 0 when it has no end. */
static size_t piece(struct str s)
{
    if (s.p[0] == '\'' || s.p[0] == '"' || s.p[0] == '`')
        return quoted(s);
    size_t n = comment(s);
    if (n == SIZE_MAX)
        return 0;
    return n ? n : 1;
}

int schema_split(struct str *rest, struct str *statement)
{
    struct str s = *rest;
    if (!skip_blank(&s))
        return ERR_INVALID;
    if (s.n == 0) {
        *rest = s;
        *statement = STR_NULL;
        return 0;
    }
    struct str begin = s;
    while (s.n > 0 && s.p[0] != ';') {
        size_t n = piece(s);
        if (n == 0)
            return ERR_INVALID;
        skip(&s, n);
    }
    if (s.n == 0)
        return ERR_INVALID;
    *statement = str_trim_if(str_from(begin.p, (size_t)(s.p - begin.p)), is_space);
    skip(&s, 1);
    *rest = s;
    return 0;
}

/* --- what a statement says --- */

static void replace(struct buf *b, struct str text, struct str what, const char *with)
{
    ptrdiff_t at;
    while ((at = str_find(text, what)) >= 0) {
        buf_add(b, text.p, (size_t)at);
        buf_add_str(b, str_of(with));
        skip(&text, (size_t)at + what.n);
    }
    buf_add_str(b, text);
}

char *schema_dialect(struct arena *a, const char *text, bool mariadb)
{
    struct buf half, whole;
    buf_init(&half);
    buf_init(&whole);
    replace(&half, str_of(text), STR("@TEXT@"),
            mariadb ? "utf8mb4_uca1400_nopad_ai_ci" : "utf8mb4_0900_ai_ci");
    replace(&whole, buf_str(&half), STR("@EXACT@"),
            mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin");
    char *out = str_z(a, buf_str(&whole));
    buf_release(&half);
    buf_release(&whole);
    return out;
}

struct str schema_created_table(struct str statement)
{
    static const struct str create = {"CREATE TABLE IF NOT EXISTS ", 27};
    if (!str_starts(statement, create))
        return STR_NULL;
    skip(&statement, create.n);
    return str_cut(&statement, ' ');
}
