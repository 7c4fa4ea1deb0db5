#include "tool/backup/rows.h"

#include "tests/tap.h"

static struct arena arena;

static struct str line_of(const struct sql_value *cells, size_t count)
{
    struct buf out;
    buf_init(&out);
    rows_put(&out, cells, count);
    struct str line = str_dup(&arena, buf_str(&out));
    buf_release(&out);
    return line;
}

static void test_form(void)
{
    const struct sql_value cells[] = {sql_int(-7), sql_null(), sql_text(STR("a\tb\nc\\d\0e")),
                                      sql_text(STR("")), sql_text(STR("N"))};
    is_str(line_of(cells, 5), STR("-7\t\\N\ta\\tb\\nc\\\\d\\0e\t\tN\n"),
           "a row, as LOAD DATA wants it");
    is_str(line_of(&(struct sql_value){.type = SQL_TEXT, .s = STR_NULL}, 1), STR("\\N\n"),
           "a text that is NULL");
}

/* Every byte, and what looks like an escape. */
static void test_back(void)
{
    char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    const struct sql_value cells[] = {sql_blob(str_from(bytes, sizeof bytes)), sql_text(STR("\\N")),
                                      sql_null(), sql_text(STR("\\\\n"))};
    struct sql_value back[4];
    struct str line = line_of(cells, 4);
    ok(rows_read(&arena, str_from(line.p, line.n - 1), 4, back), "a row is read");
    is_str(back[0].s, cells[0].s, "every byte comes back");
    is_str(back[1].s, STR("\\N"), "a text like that of NULL");
    ok(back[2].type == SQL_NULL, "NULL");
    is_str(back[3].s, STR("\\\\n"), "backslashes");
}

static void test_refused(void)
{
    struct sql_value cells[3];
    static const struct str wrong[] = {
        {"a", 1},      {"a\tb\tc", 5}, {"a\\\tb", 4}, {"a\\x\tb", 5},
        {"a\tb\\", 4}, {"a\tb\0", 4},  {"", 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(!rows_read(&arena, wrong[i], 2, cells), "not a row of two values: %zu", i);
    ok(rows_read(&arena, STR("\t"), 2, cells) && cells[0].s.n == 0, "two empty ones");
}

int main(void)
{
    arena_init(&arena);
    test_form();
    test_back();
    test_refused();
    arena_release(&arena);
    return tap_done();
}
