#include "engine/setup/schema_split.h"

#include "base/err.h"
#include "engine/setup/schema_migrations.h"
#include "tests/tap.h"

/* All statements of a file, joined by "|"; "!" at the end when it is refused. */
static struct str all(struct arena *a, const char *text)
{
    struct str rest = str_of(text), one, joined = STR("");
    for (;;) {
        if (schema_split(&rest, &one) != 0)
            return str_printf(a, "%.*s!", STR_ARG(joined));
        if (!one.p)
            return joined;
        joined = str_printf(a, "%.*s%.*s|", STR_ARG(joined), STR_ARG(one));
    }
}

struct sample {
    const char *text, *want, *about;
};

static const struct sample samples[] = {
    {"", "", "an empty file"},
    {" \t\r\n-- x;y\n# z;\n/* ; */", "", "nothing but comments"},
    {"a;b;", "a|b|", "two statements"},
    {" a\n ;\r\n b ; ", "a|b|", "space around them"},
    {";a;", "|a|", "an empty statement"},
    {"a 'x;y';", "a 'x;y'|", "a semicolon in a string"},
    {"a \"x;y\" `p;q`;", "a \"x;y\" `p;q`|", "in the other two kinds of quotes"},
    {"a 'it''s;' b;", "a 'it''s;' b|", "a doubled quote"},
    {"a 'it\\';s' b;", "a 'it\\';s' b|", "a quote behind a backslash"},
    {"a 'x\\\\';b;", "a 'x\\\\'|b|", "a backslash behind a backslash"},
    {"a `x\\`;b;", "a `x\\`|b|", "a backslash is nothing special in a name"},
    {"a '\"' ; b '`';", "a '\"'|b '`'|", "one kind of quote inside another"},
    {"a -- it's; \n b;", "a -- it's; \n b|", "a comment to the end of the line"},
    {"a --b;", "a --b|", "two dashes without a space are no comment"},
    {"a # it's;\n;", "a # it's;|", "a comment with #"},
    {"a /* it's; */ b;", "a /* it's; */ b|", "a comment with an end"},
    {"/* x */ a;", "a|", "a comment in front"},
    {"/*!80000 a */;", "/*!80000 a */|", "a version comment is a statement"},
    {"/*M!101000 a */;", "/*M!101000 a */|", "MariaDB's likewise"},
    {"a /*/;*/ b;", "a /*/;*/ b|", "a comment is not ended by its beginning"},
    {"a; 'b", "a|!", "a string without an end"},
    {"a; b", "a|!", "a statement without an end"},
    {"a; /* b;", "a|!", "a comment without an end"},
    {"a; b /* ;", "a|!", "the same inside a statement"},
    {"a 'b\\", "!", "a backslash at the end"},
    {"a; --", "a|", "a comment at the very end"},
};

static void test_split(struct arena *a)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        is_str(all(a, samples[i].text), str_of(samples[i].want), "%s", samples[i].about);
    struct str rest = STR("a; 'b"), one = STR_NULL;
    check(schema_split(&rest, &one) == 0);
    is_int(schema_split(&rest, &one), ERR_INVALID, "a refusal");
    ok(str_eq(rest, STR(" 'b")) && str_eq(one, STR("a")), "changes nothing");
}

static void test_words(struct arena *a)
{
    static const char text[] = "x @TEXT@, @EXACT@,@EXACT@ @OTHER@";
    is_str(str_of(schema_dialect(a, text, true)),
           STR("x utf8mb4_uca1400_nopad_ai_ci, utf8mb4_nopad_bin,utf8mb4_nopad_bin @OTHER@"),
           "MariaDB's collations");
    is_str(str_of(schema_dialect(a, text, false)),
           STR("x utf8mb4_0900_ai_ci, utf8mb4_0900_bin,utf8mb4_0900_bin @OTHER@"),
           "MySQL's collations");
    is_str(schema_created_table(STR("CREATE TABLE IF NOT EXISTS a_b (c INT)")), STR("a_b"),
           "the table of a statement");
    ok(!schema_created_table(STR("ALTER TABLE a_b ADD c INT")).p, "or none");
}

static struct str word_after(struct str s, struct str what)
{
    ptrdiff_t at = str_find(s, what);
    size_t n = 0;
    if (at < 0)
        return STR_NULL;
    s = str_skip(s, (size_t)at + what.n);
    while (n < s.n && s.p[n] != ' ' && s.p[n] != ',')
        n++;
    return str_from(s.p, n);
}

/* An index gives way to another one of its name, in one statement. */
static bool makes_index_again(struct str statement)
{
    struct str gone = word_after(statement, STR("DROP INDEX "));
    struct str made = word_after(statement, STR("ADD INDEX "));
    return gone.p && made.p && str_eq(gone, made);
}

/* A table is made anew so: a new one aside, filled, put into place, the old one dropped. Cut off
 * anywhere, these statements can begin again: they are idempotent. */
static bool is_repeatable(struct str statement)
{
    return schema_created_table(statement).p ||
           str_starts(statement, STR("DROP TABLE IF EXISTS ")) ||
           str_starts(statement, STR("INSERT IGNORE INTO ")) ||
           str_starts(statement, STR("REPLACE INTO ")) ||
           /* counts that are derived from other tables */
           str_starts(statement, STR("UPDATE query_log SET\n    judged_papers = (SELECT ")) ||
           str_starts(statement, STR("UPDATE query_log SET judged_papers = finished_papers - ")) ||
           /* rows that other tables do not have */
           str_starts(statement, STR("DELETE FROM contentlist_year_number\n    WHERE Name NOT IN ("
                                     "SELECT journal FROM corpus_block ")) ||
           str_starts(statement, STR("RENAME TABLE ")) ||
           /* schema.c passes over an index or a column that exists */
           str_starts(statement, STR("CREATE INDEX ")) ||
           (str_starts(statement, STR("ALTER TABLE ")) &&
            (str_find(statement, STR("ADD COLUMN ")) > 0 || makes_index_again(statement)));
}

/* What every migration of this program must keep to; the reasons are in schema/0001. */
static void test_migrations(struct arena *a)
{
    for (size_t i = 0; i < schema_migration_count; i++) {
        const struct schema_migration *m = &schema_migrations[i];
        is_int(m->number, (int64_t)i + 1, "migration %s has its number", m->name);
        struct str rest = str_of(schema_dialect(a, m->text, true)), one;
        ok(str_find(rest, STR("@")) < 0, "no placeholder is left");
        size_t count = 0, repeatable = 0;
        while (schema_split(&rest, &one) == 0 && one.p) {
            count++;
            repeatable += is_repeatable(one);
        }
        ok(count > 0 && rest.n == 0, "it is read to its end");
        is_int((int64_t)repeatable, (int64_t)count, "all its statements can be repeated");
    }
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    test_split(&a);
    test_words(&a);
    test_migrations(&a);
    arena_release(&a);
    return tap_done();
}
