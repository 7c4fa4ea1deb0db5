#include "corpus/prose/markdown_line.h"

#include "base/ascii.h"

#define LEVELS      6
#define DIGITS_MAX  9
#define TAB_COLUMNS 4

static struct str trim(struct str s)
{
    return str_trim_if(s, line_is_blank_char);
}

size_t line_indent(struct str *line)
{
    size_t columns = 0;
    for (; line->n && line_is_blank_char(line->p[0]); *line = str_skip(*line, 1))
        columns += line->p[0] == '\t' ? TAB_COLUMNS - columns % TAB_COLUMNS : 1;
    return columns;
}

int line_heading(struct str line, struct str *title)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == '#')
        n++;
    if (n == 0 || n > LEVELS || (n < line.n && !line_is_blank_char(line.p[n])))
        return 0;
    struct str s = trim(str_skip(line, n));
    size_t end = s.n;
    while (end > 0 && s.p[end - 1] == '#')
        end--;
    if (end == 0 || line_is_blank_char(s.p[end - 1]))
        s.n = end;
    *title = trim(s);
    return (int)n;
}

int line_underline(struct str line)
{
    line = trim(line);
    if (line.n == 0 || (line.p[0] != '=' && line.p[0] != '-'))
        return 0;
    for (size_t i = 1; i < line.n; i++)
        if (line.p[i] != line.p[0])
            return 0;
    return line.p[0] == '=' ? 1 : 2;
}

bool line_is_rule(struct str line)
{
    size_t n = 0;
    if (line.n == 0 || !strchr("*-_", line.p[0]))
        return false;
    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] != line.p[0] && !line_is_blank_char(line.p[i]))
            return false;
        n += line.p[i] == line.p[0];
    }
    return n >= 3;
}

/* --- code --- */

struct line_fence line_fence(struct str line)
{
    struct line_fence f = {0};
    if (line.n < 3 || (line.p[0] != '`' && line.p[0] != '~'))
        return f;
    size_t n = 0;
    while (n < line.n && line.p[n] == line.p[0])
        n++;
    if (n < 3 || (line.p[0] == '`' && memchr(line.p + n, '`', line.n - n)))
        return f;
    return (struct line_fence){line.p[0], n};
}

bool line_closes(struct str line, struct line_fence f)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == f.c)
        n++;
    return n >= f.n && trim(str_skip(line, n)).n == 0;
}

/* --- lists --- */

bool line_item(struct str line, struct line_item *out)
{
    size_t digits = 0;
    while (digits < line.n && digits <= DIGITS_MAX && ascii_is_digit(line.p[digits]))
        digits++;
    if (digits == line.n || digits > DIGITS_MAX)
        return false;
    char mark = line.p[digits];
    if (digits ? mark != '.' && mark != ')' : mark != '-' && mark != '*' && mark != '+')
        return false;
    size_t n = digits + 1;
    if (n < line.n && !line_is_blank_char(line.p[n]))
        return false;
    struct str rest = str_skip(line, n);
    size_t blanks = line_indent(&rest);
    *out = (struct line_item){.number = str_from(line.p, digits), .n = line.n - rest.n};
    out->columns = n + blanks;
    if (blanks > TAB_COLUMNS || rest.n == 0) { /* code, or nothing yet */
        out->n = n < line.n ? n + 1 : n;
        out->columns = n + 1;
    }
    return true;
}

/* --- tables --- */

struct str line_row(struct str line)
{
    line = trim(line);
    if (line.n && line.p[0] == '|')
        line = str_skip(line, 1);
    if (line.n && line.p[line.n - 1] == '|' && !(line.n > 1 && line.p[line.n - 2] == '\\'))
        line.n--;
    return line;
}

bool line_cell(struct str *row, struct str *cell)
{
    size_t n = 0;
    if (!row->p)
        return false;
    while (n < row->n && row->p[n] != '|')
        n += row->p[n] == '\\' && n + 1 < row->n ? 2 : 1;
    *cell = trim(str_from(row->p, n));
    *row = n < row->n ? str_skip(*row, n + 1) : STR_NULL;
    return true;
}

size_t line_cells(struct str line)
{
    struct str row = line_row(line), cell;
    size_t n = 0;
    while (line_cell(&row, &cell))
        n++;
    return n;
}

static bool is_delimiter(struct str cell)
{
    if (cell.n && cell.p[0] == ':')
        cell = str_skip(cell, 1);
    if (cell.n && cell.p[cell.n - 1] == ':')
        cell.n--;
    for (size_t i = 0; i < cell.n; i++)
        if (cell.p[i] != '-')
            return false;
    return cell.n > 0;
}

size_t line_delimiters(struct str line)
{
    struct str row = line_row(line), cell;
    size_t n = 0;
    if (line.n == 0 || !strchr("|:-", line.p[0]) || !memchr(line.p, '|', line.n))
        return 0;
    for (; line_cell(&row, &cell); n++)
        if (!is_delimiter(cell))
            return 0;
    return n;
}

/* --- definitions --- */

size_t line_label(struct str label, char out[MARKDOWN_LABEL_BYTES_MAX])
{
    size_t n = 0;
    label = trim(label);
    if (label.n > MARKDOWN_LABEL_BYTES_MAX)
        return 0;
    for (size_t i = 0; i < label.n; i++) {
        if (!line_is_blank_char(label.p[i]))
            out[n++] = ascii_lower(label.p[i]);
        else if (out[n - 1] != ' ')
            out[n++] = ' ';
    }
    return n;
}

/* An address, and perhaps a title, and nothing more. */
static bool is_target(struct str s)
{
    s = trim(s);
    size_t n = 0;
    if (s.n && s.p[0] == '<') {
        const char *end = memchr(s.p, '>', s.n);
        if (!end)
            return false;
        n = (size_t)(end - s.p) + 1;
    }
    while (n < s.n && !line_is_blank_char(s.p[n]))
        n++;
    struct str title = trim(str_skip(s, n));
    if (n == 0 || title.n == 0)
        return n > 0;
    char last = title.p[title.n - 1];
    return title.n > 1 &&
           (title.p[0] == '(' ? last == ')' : last == title.p[0] && strchr("\"'", last));
}

bool line_definition(struct str line, struct str *label, struct str *rest)
{
    if (line.n < 4 || line.p[0] != '[')
        return false;
    size_t n = 1;
    for (; n < line.n && n <= MARKDOWN_LABEL_BYTES_MAX && line.p[n] != ']'; n++) {
        n += line.p[n] == '\\';
        if (n < line.n && line.p[n] == '[' && line.p[n - 1] != '\\')
            return false;
    }
    if (n + 1 >= line.n || line.p[n] != ']' || line.p[n + 1] != ':')
        return false;
    *label = trim(str_from(line.p + 1, n - 1));
    *rest = trim(str_skip(line, n + 2));
    if (label->n == 0)
        return false;
    return label->p[0] == '^' ? label->n > 1 : is_target(*rest);
}
