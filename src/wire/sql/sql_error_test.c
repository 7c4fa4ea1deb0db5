#include "wire/sql/sql_error.h"

#include "tests/tap.h"

static struct arena a;

static void kinds(void)
{
    static const unsigned int read_only[] = {1290, 1792, 1836, 1036, 1874, 3100};
    is_int(sql_error_kind(1062), ERR_EXISTS, "duplicate entry");
    is_int(sql_error_kind(1061), ERR_EXISTS, "an index of that name");
    is_int(sql_error_kind(1060), ERR_EXISTS, "a column of that name");
    is_int(sql_error_kind(1205), ERR_CONFLICT, "lock wait");
    is_int(sql_error_kind(1213), ERR_CONFLICT, "deadlock");
    is_int(sql_error_kind(3101), ERR_CONFLICT, "another server of the group was first");
    ok(sql_error_rolled_back(1213) && sql_error_rolled_back(3101) && !sql_error_rolled_back(1205),
       "what is rolled back may be run again at once, which a lock wait is not");
    is_int(sql_error_kind(1047), ERR_UNAVAILABLE, "a Galera node without its group");
    is_int(sql_error_kind(1180), ERR_UNCERTAIN, "one that loses it at the COMMIT");
    is_int(sql_error_kind(1969), ERR_TIMEOUT, "statement timeout of MariaDB");
    is_int(sql_error_kind(3024), ERR_TIMEOUT, "and of MySQL");
    is_int(sql_error_kind(1146), ERR_REFUSED, "no such table");
    is_int(sql_error_kind(2006), ERR_UNAVAILABLE, "could not be sent");
    is_int(sql_error_kind(2013), ERR_UNCERTAIN, "lost after it was sent");
    is_int(sql_error_kind(5013), ERR_UNCERTAIN, "what the library says of itself");
    is_int(sql_error_kind(1114), ERR_UNAVAILABLE, "a table that cannot grow");
    is_int(sql_error_kind(1021), ERR_UNAVAILABLE, "a full disk");
    ok(!sql_error_breaks(1114) && !sql_error_breaks(1021), "which is no reason to hang up");
    for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
        ok(sql_error_kind(read_only[i]) == ERR_UNAVAILABLE && sql_error_read_only(read_only[i]) &&
               !sql_error_breaks(read_only[i]),
           "a server that takes no changes: %u", read_only[i]);
    ok(!sql_error_read_only(1021) && !sql_error_read_only(1213), "which others do not say");
    ok(!sql_error_breaks(1062) && !sql_error_breaks(1213) && !sql_error_breaks(1064),
       "a refused statement leaves the connection usable");
    ok(sql_error_breaks(2013) && sql_error_breaks(1053) && sql_error_breaks(2014) &&
           sql_error_breaks(1153),
       "a lost one does not");
}

static void text(const char *from, const char *to)
{
    is_str(str_of(sql_error_text(&a, from)), str_of(to), "%s", from);
}

static void texts(void)
{
    text("Duplicate entry 'bob' for key 'username'", "Duplicate entry '…' for key 'username'");
    text("Duplicate entry 'it's' for key 'user_info.username'",
         "Duplicate entry '…' for key 'user_info.username'");
    text("Duplicate entry 'x' for key 'secret' for key 'PRIMARY'",
         "Duplicate entry '…' for key 'PRIMARY'");
    text("Incorrect integer value: 'pass'word' for column `db`.`t`.`c` at row 1",
         "Incorrect integer value: '…' for column `db`.`t`.`c` at row 1");
    text("Truncated incorrect DOUBLE value: 'a' for column 'x' b'",
         "Truncated incorrect DOUBLE value: '…'");
    text("Invalid utf8mb4 character string: '\\xFF\\xFE'", "Invalid utf8mb4 character string: '…'");
    text("Incorrect string value: 'cut off", "Incorrect string value: '…'");
    text("Column 'a' cannot be null", "Column 'a' cannot be null");
    text("Data too long for column 'name' at row 1", "Data too long for column 'name' at row 1");
    text("Table 'test.nope' doesn't exist", "Table 'test.nope' doesn't exist");
    text("Cannot add: a foreign key constraint fails (`t`.`c`, CONSTRAINT `k` FOREIGN KEY)",
         "Cannot add: a foreign key constraint fails (`t`.`c`, CONSTRAINT `k` FOREIGN KEY)");
    text("", "");
    text("'", "'…'");
}

static void reading(void)
{
    ok(sql_reads_only("SELECT 1") && sql_reads_only(" \n select a FROM b") &&
           sql_reads_only("(SELECT 1) UNION (SELECT 2)") && sql_reads_only("SHOW TABLES"),
       "these only read");
    ok(!sql_reads_only("INSERT INTO t SELECT 1") && !sql_reads_only("UPDATE t SET a = 1") &&
           !sql_reads_only("") && !sql_reads_only("COMMIT"),
       "these do not");
    ok(sql_changes_rows("INSERT INTO t SELECT 1") && sql_changes_rows(" update t SET a = 1") &&
           sql_changes_rows("DELETE FROM t") && sql_changes_rows("REPLACE INTO t VALUES (1)"),
       "these change rows");
    ok(!sql_changes_rows("SELECT 1") && !sql_changes_rows("COMMIT") && !sql_changes_rows(""),
       "and these do not");
}

int main(void)
{
    arena_init(&a);
    kinds();
    texts();
    reading();
    arena_release(&a);
    return tap_done();
}
