#include "tests/tap.h"
#include "wire/sql.h"

int main(void)
{
    struct arena a;
    arena_init(&a);
    ok(sql_padded(1) == 1 && sql_padded(2) == 2 && sql_padded(3) == 4 && sql_padded(256) == 256 &&
           sql_padded(257) == 512,
       "lists have powers of two");
    is_str(str_of(sql_marks(&a, "SELECT 1 FROM t WHERE a = ? AND b IN", 3, " LIMIT 1")),
           STR("SELECT 1 FROM t WHERE a = ? AND b IN (?,?,?,?) LIMIT 1"), "a mark for each value");
    is_str(str_of(sql_marks(&a, "IN", 1, "")), STR("IN (?)"), "one");
    arena_release(&a);
    return tap_done();
}
