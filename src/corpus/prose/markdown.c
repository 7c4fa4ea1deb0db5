/* Line by line. The lines of a paragraph are gathered, without what stands before them in quotes
 * and lists, and written when something else begins; only then is it known whether they were a
 * heading, or the head of a table. */
#include "corpus/prose/markdown.h"

#include "base/buf.h"
#include "base/bytes16.h"
#include "base/map.h"
#include "corpus/prose/markdown_inline.h"
#include "corpus/prose/markdown_line.h"
#include "corpus/prose/markdown_tag.h"

#define CODE_COLUMNS 4  /* so far indented, a line is code */
#define ITEMS_MAX    32 /* on one line, one within the other; more are text */

enum block { NOTHING, PARAGRAPH, ITEM, ROW, CODE, HEADING };

struct markdown {
    struct str rest; /* to be read */
    struct buf out;
    struct markdown_inline inline_;
    enum block last;         /* that was written */
    bool gap;                /* an empty line since */
    struct buf lines;        /* of the paragraph that is open */
    bool item;               /* it begins an item of a list, */
    struct str number;       /* with this number */
    bool table;              /* rows are read */
    bool list;               /* what is indented so far belongs to it */
    size_t list_columns;     /* */
    size_t depth;            /* of quotes */
    struct line_fence fence; /* n > 0: code is read */
    size_t fence_depth, fence_columns;
    unsigned endless; /* see markdown_hidden */
};

/* --- what is written --- */

static void separate(struct markdown *m, enum block block)
{
    bool same = block == m->last && (block == ITEM || ((block == ROW || block == CODE) && !m->gap));
    bool led = block == ITEM && m->last == PARAGRAPH && !m->gap;
    if (m->out.len)
        buf_add(&m->out, "\n\n", same || led ? 1 : 2);
}

static void put_mark(struct markdown *m, enum block block, int level)
{
    if (block == HEADING) {
        buf_add(&m->out, "######", (size_t)level);
        buf_add_char(&m->out, ' ');
    } else if (block == ITEM && m->number.n) {
        buf_add_str(&m->out, m->number);
        buf_add_lit(&m->out, ". ");
    } else if (block == ITEM) {
        buf_add_lit(&m->out, "- ");
    }
}

static struct str written(const struct markdown *m, size_t from)
{
    return str_skip(buf_str(&m->out), from);
}

/* Takes it back if it is empty, and keeps it from looking like a heading. */
static void finish(struct markdown *m, enum block block, size_t before, size_t from)
{
    if (m->out.len == from) {
        m->out.len = before;
        return;
    }
    if ((block == PARAGRAPH || block == ROW || block == CODE) &&
        markdown_is_like_heading(written(m, from))) {
        buf_add_char(&m->out, ' ');
        char *p = m->out.p + m->out.head + from;
        memmove(p + 1, p, m->out.len - from - 1);
        *p = ' ';
    }
    m->last = block;
    m->gap = false;
}

static void put_block(struct markdown *m, enum block block, int level, struct str text)
{
    size_t before = m->out.len;
    separate(m, block);
    put_mark(m, block, level);
    size_t from = m->out.len;
    markdown_inline_add(&m->inline_, text, block == HEADING, &m->out);
    finish(m, block, before, from);
}

static void put_row(struct markdown *m, struct str line)
{
    struct str row = line_row(line), cell;
    size_t before = m->out.len;
    separate(m, ROW);
    size_t from = m->out.len;
    while (line_cell(&row, &cell)) {
        size_t tab = m->out.len;
        if (tab > from)
            buf_add_char(&m->out, '\t');
        size_t at = m->out.len;
        markdown_inline_add(&m->inline_, cell, true, &m->out);
        if (m->out.len == at)
            m->out.len = tab;
    }
    finish(m, ROW, before, from);
}

static bool is_blank_at_end(const struct markdown *m)
{
    struct str out = buf_str(&m->out);
    return line_is_blank_char(out.p[out.n - 1]);
}

static void put_code(struct markdown *m, struct str line)
{
    size_t before = m->out.len;
    separate(m, CODE);
    size_t from = m->out.len;
    markdown_verbatim_add(line, &m->out);
    while (m->out.len > from && is_blank_at_end(m))
        m->out.len--;
    m->gap |= m->out.len == from; /* for the next one, too */
    finish(m, CODE, before, from);
}

/* Ends the paragraph or table that is open. */
static void close_block(struct markdown *m)
{
    if (m->lines.len)
        put_block(m, m->item ? ITEM : PARAGRAPH, 0, buf_str(&m->lines));
    buf_clear(&m->lines);
    m->item = m->table = false;
}

/* --- lines that continue, or end, what is open --- */

static struct str without_columns(struct str line, size_t columns)
{
    for (; columns && line.n && line_is_blank_char(line.p[0]); columns--) {
        if (line.p[0] == '\t' && columns < CODE_COLUMNS)
            break;
        columns -= line.p[0] == '\t' ? CODE_COLUMNS - 1 : 0;
        line = str_skip(line, 1);
    }
    return line;
}

/* Takes the marks of quotes off, at most so many, and returns how many there were. */
static size_t quotes(struct str *line, size_t most)
{
    size_t n = 0;
    for (; n < most; n++) {
        struct str s = *line;
        if (line_indent(&s) >= CODE_COLUMNS || s.n == 0 || s.p[0] != '>')
            break;
        s = str_skip(s, 1);
        *line = s.n && s.p[0] == ' ' ? str_skip(s, 1) : s;
    }
    return n;
}

/* Whether the line belongs to a piece of code between fences. */
static bool take_fenced(struct markdown *m, struct str line)
{
    struct str s = line;
    if (quotes(&s, m->fence_depth) < m->fence_depth) {
        m->fence.n = 0;
        return false;
    }
    struct str bare = s;
    size_t columns = line_indent(&bare);
    if (line_closes(bare, m->fence) && columns < m->fence_columns + CODE_COLUMNS)
        m->fence.n = 0;
    else
        put_code(m, without_columns(s, m->fence_columns));
    if (m->fence.n == 0)
        m->gap = true; /* other code is apart */
    return true;
}

/* "=====" under a paragraph, which is its title. */
static bool take_underline(struct markdown *m, struct str line, size_t columns)
{
    int level = m->lines.len && !(m->item && columns < m->list_columns) ? line_underline(line) : 0;
    if (level == 0)
        return false;
    put_block(m, HEADING, level, buf_str(&m->lines));
    buf_clear(&m->lines);
    m->item = false;
    return true;
}

/* "|---|---|" under a line with as many cells. */
static bool take_delimiters(struct markdown *m, struct str line)
{
    size_t columns = m->lines.len ? line_delimiters(line) : 0;
    if (columns == 0)
        return false;
    struct str lines = buf_str(&m->lines);
    const char *end = memrchr(lines.p, '\n', lines.n);
    struct str head = str_skip(lines, end ? (size_t)(end + 1 - lines.p) : 0);
    if (line_cells(head) != columns)
        return false;
    if (end)
        put_block(m, m->item ? ITEM : PARAGRAPH, 0, str_from(lines.p, (size_t)(end - lines.p)));
    m->gap = true; /* a table is apart from others */
    put_row(m, head);
    buf_clear(&m->lines);
    m->item = false;
    m->table = true;
    return true;
}

/* --- lines that begin something --- */

static void begin_fence(struct markdown *m, struct line_fence f, size_t columns)
{
    close_block(m);
    m->fence = f;
    m->fence_depth = m->depth;
    m->fence_columns = columns;
    m->gap = true;
}

static bool take_heading(struct markdown *m, struct str line)
{
    struct str title;
    int level = line_heading(line, &title);
    if (level == 0)
        return false;
    close_block(m);
    put_block(m, HEADING, level, title);
    return true;
}

/* Goes on behind a comment or a script that begins here, wherever it ends. */
static bool take_hidden(struct markdown *m, struct str line)
{
    if (line.n == 0 || line.p[0] != '<')
        return false;
    const char *end = m->rest.p ? m->rest.p + m->rest.n : line.p + line.n;
    struct str s = str_from(line.p + 1, (size_t)(end - line.p) - 1);
    size_t n = markdown_hidden(s, &m->endless);
    if (n == 0)
        return false;
    m->rest = str_skip(s, n);
    struct str more = m->rest;
    while (more.n && line_is_blank_char(more.p[0]) && more.p[0] != '\n')
        more = str_skip(more, 1);
    if (more.n && more.p[0] == '\n') /* that is no empty line */
        m->rest = str_skip(more, 1);
    return true;
}

static bool take_definition(struct markdown *m, struct str line)
{
    struct str label, rest;
    if (!line_definition(line, &label, &rest))
        return false;
    if (label.p[0] != '^')
        return m->lines.len == 0;
    close_block(m);
    buf_add_str(&m->lines, rest);
    m->list = true;
    m->list_columns = CODE_COLUMNS;
    return true;
}

/* Takes the mark of an item off. */
static bool take_item(struct markdown *m, struct str *line, size_t *columns)
{
    struct line_item item;
    if (!line_item(*line, &item))
        return false;
    struct str rest = str_skip(*line, item.n);
    if (str_starts(rest, STR("[ ] ")) || str_starts(rest, STR("[x] ")) ||
        str_starts(rest, STR("[X] "))) /* a task */
        rest = str_skip(rest, 4);
    bool first = item.number.n == 0 || str_eq(item.number, STR("1"));
    if (m->lines.len && !m->list && (!first || rest.n == 0)) /* a number in a text */
        return false;
    close_block(m);
    m->item = m->list = true;
    m->number = item.number;
    *columns += item.columns;
    m->list_columns = *columns;
    *line = rest;
    return true;
}

/* A line without what stands before it, which is so far indented. */
static void take_content(struct markdown *m, struct str line, size_t columns)
{
    struct line_fence f;
    for (size_t items = 0; line.n; items++) {
        f = line_fence(line);
        if (f.n) {
            begin_fence(m, f, columns);
            return;
        }
        if (take_heading(m, line) || take_underline(m, line, columns))
            return;
        if (line_is_rule(line)) {
            close_block(m);
            return;
        }
        if (items == ITEMS_MAX || !take_item(m, &line, &columns))
            break;
        m->depth += quotes(&line, SIZE_MAX);
        columns += line_indent(&line);
    }
    if (line.n == 0 || take_hidden(m, line) || take_definition(m, line) || take_delimiters(m, line))
        return;
    if (m->table) {
        put_row(m, line);
        return;
    }
    if (m->lines.len)
        buf_add_char(&m->lines, '\n');
    buf_add_str(&m->lines, line);
}

static void take_line(struct markdown *m, struct str line)
{
    if (m->fence.n && take_fenced(m, line))
        return;
    size_t depth = quotes(&line, SIZE_MAX), columns;
    struct str bare = line;
    columns = line_indent(&bare);
    if (bare.n == 0) {
        close_block(m);
        m->depth = depth;
        m->gap = true;
        return;
    }
    if (depth > m->depth)
        close_block(m);
    if (depth > m->depth || m->lines.len == 0)
        m->depth = depth;
    if (m->list && m->lines.len == 0 && columns < m->list_columns) {
        struct line_item item;
        m->list = line_item(bare, &item);
    }
    size_t code = CODE_COLUMNS + (m->list ? m->list_columns : 0);
    if (columns >= code && m->lines.len == 0 && !m->table)
        put_code(m, without_columns(line, code));
    else
        take_content(m, bare, columns);
}

/* --- the text --- */

static bool next_line(struct str *rest, struct str *line)
{
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *line = str_from(rest->p, n);
    *rest = str_skip(*rest, end ? n + 1 : n);
    if (line->n && line->p[line->n - 1] == '\r')
        line->n--;
    return true;
}

static bool is_line(struct str line, const char *what)
{
    return str_eq(str_trim(line), str_of(what));
}

/* What stands before the text between "---" and "---", or "+++" and "+++". */
static struct str without_front(struct str text)
{
    struct str rest = text, first, line;
    if (!next_line(&rest, &first) || !(is_line(first, "---") || is_line(first, "+++")))
        return text;
    char assigns = first.p[0] == '-' ? ':' : '=';
    if (!next_line(&rest, &line) || !memchr(line.p, assigns, line.n))
        return text;
    while (next_line(&rest, &line))
        if (str_eq(str_trim(line), str_trim(first)) || (assigns == ':' && is_line(line, "...")))
            return rest;
    return text;
}

/* Adds the label that the line with "]:" at a place defines, if it does, and returns where the line
 * ends. The first "]:" of a line is the only one that can. */
static const char *add_label(struct map **labels, struct str text, const char *p)
{
    const char *end = text.p + text.n, *from = text.p, *stop = memchr(p, '\n', (size_t)(end - p));
    if (p - text.p > MARKDOWN_LABEL_BYTES_MAX)
        from = p - MARKDOWN_LABEL_BYTES_MAX;
    const char *begin = memrchr(from, '\n', (size_t)(p - from));
    stop = stop ? stop : end;
    if (!begin && from > text.p)
        return stop;
    begin = begin ? begin + 1 : from;
    struct str line = str_from(begin, (size_t)(stop - begin)), label, rest;
    quotes(&line, SIZE_MAX);
    line_indent(&line);
    if (line_definition(line, &label, &rest)) {
        char as_compared[MARKDOWN_LABEL_BYTES_MAX];
        size_t n = line_label(label, as_compared);
        *labels = *labels ? *labels : map_new();
        map_add(*labels, str_from(as_compared, n));
    }
    return stop;
}

/* The next "]:"; NULL: there is none. */
static const char *next_label(const char *p, const char *end)
{
    for (; end - p > 16; p += 16) {
        uint32_t bits = bytes16_bits((bytes16_load(p) == ']') & (bytes16_load(p + 1) == ':'));
        if (bits)
            return p + __builtin_ctz(bits);
    }
    for (; end - p > 1; p++)
        if (p[0] == ']' && p[1] == ':')
            return p;
    return NULL;
}

/* The labels of all links and footnotes that are defined; NULL: none. */
static struct map *labels_of(struct str text)
{
    struct map *labels = NULL;
    const char *p = text.p, *end = text.p + text.n;
    while ((p = next_label(p, end)))
        p = add_label(&labels, text, p);
    return labels;
}

struct str markdown_plain(struct arena *a, struct str markdown)
{
    if (str_starts(markdown, STR("\xEF\xBB\xBF")))
        markdown = str_skip(markdown, 3);
    struct map *labels = labels_of(markdown);
    struct markdown m = {.rest = without_front(markdown)};
    struct str line;
    buf_init(&m.out);
    buf_init(&m.lines);
    markdown_inline_init(&m.inline_, labels);
    buf_reserve(&m.out, markdown.n + 64);
    while (next_line(&m.rest, &line))
        take_line(&m, line);
    close_block(&m);
    struct str plain = str_dup(a, buf_str(&m.out));
    buf_release(&m.out);
    buf_release(&m.lines);
    markdown_inline_release(&m.inline_);
    if (labels)
        map_free(labels);
    return plain;
}
