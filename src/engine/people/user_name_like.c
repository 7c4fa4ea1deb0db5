/* Names that look like another one. A letter of another script may look like a Latin letter in
 * lower case, in capitals, or both: a name is compared as it looks in each. */
#include <unistr.h>

#include "base/buf.h"
#include "engine/people/user.h"

enum { SMALL, CAPITAL, LOOKS };

/* Folded letters, and what they look like; NULL: like no Latin letter. */
static const struct lookalike {
    const char *letter, *as[LOOKS];
} lookalikes[] = {
    /* Cyrillic */
    {"\u0430", {"a", "a"}},
    {"\u0432", {NULL, "b"}},
    {"\u0433", {"r", NULL}},
    {"\u0435", {"e", "e"}},
    {"\u043a", {"k", "k"}},
    {"\u043c", {NULL, "m"}},
    {"\u043d", {NULL, "h"}},
    {"\u043e", {"o", "o"}},
    {"\u043f", {"n", NULL}},
    {"\u0440", {"p", "p"}},
    {"\u0441", {"c", "c"}},
    {"\u0442", {NULL, "t"}},
    {"\u0443", {"y", "y"}},
    {"\u0445", {"x", "x"}},
    {"\u044c", {"b", NULL}},
    {"\u0455", {"s", "s"}},
    {"\u0456", {"i", "i"}},
    {"\u0458", {"j", "j"}},
    {"\u0475", {"v", "v"}},
    {"\u04af", {"y", "y"}},
    {"\u04bb", {"h", NULL}},
    {"\u04cf", {"l", "i"}},
    {"\u0501", {"d", NULL}},
    {"\u051b", {"q", "q"}},
    {"\u051d", {"w", "w"}},
    /* Greek */
    {"\u03b1", {"a", "a"}},
    {"\u03b2", {"b", "b"}},
    {"\u03b3", {"y", NULL}},
    {"\u03b5", {NULL, "e"}},
    {"\u03b6", {NULL, "z"}},
    {"\u03b7", {"n", "h"}},
    {"\u03b9", {"i", "i"}},
    {"\u03ba", {"k", "k"}},
    {"\u03bc", {"u", "m"}},
    {"\u03bd", {"v", "n"}},
    {"\u03bf", {"o", "o"}},
    {"\u03c1", {"p", "p"}},
    {"\u03c4", {"t", "t"}},
    {"\u03c5", {"u", "y"}},
    {"\u03c7", {"x", "x"}},
    {"\u03c9", {"w", NULL}},
    /* Latin letters that are hard to tell, Armenian */
    {"\u0131", {"i", "i"}},
    {"\u0251", {"a", NULL}},
    {"\u0261", {"g", NULL}},
    {"\u0570", {"h", NULL}},
    {"\u0578", {"n", NULL}},
    {"\u057d", {"u", NULL}},
    {"\u0585", {"o", NULL}},
};
#define LOOKALIKES (sizeof lookalikes / sizeof *lookalikes)

static struct str seen_as(struct str letter, int look)
{
    for (size_t i = 0; i < LOOKALIKES; i++)
        if (str_eq(letter, str_of(lookalikes[i].letter)))
            return lookalikes[i].as[look] ? str_of(lookalikes[i].as[look]) : letter;
    return letter;
}

/* Has as many characters as the name. */
static struct str look_of(struct arena *a, struct str folded, int look)
{
    struct buf b;
    buf_init(&b);
    for (size_t at = 0; at < folded.n;) {
        ucs4_t c;
        int bytes = u8_mbtouc(&c, (const uint8_t *)folded.p + at, folded.n - at);
        size_t n = bytes > 0 ? (size_t)bytes : 1;
        struct str seen = seen_as(str_from(folded.p + at, n), look);
        buf_add(&b, seen.p, seen.n);
        at += n;
    }
    struct str out = str_dup(a, buf_str(&b));
    buf_release(&b);
    return out;
}

/* The same in SQL. */
static struct str look_in_sql(struct arena *a, int look)
{
    struct str s = STR("username_folded");
    for (size_t i = 0; i < LOOKALIKES; i++)
        if (lookalikes[i].as[look])
            s = str_printf(a, "REPLACE(%.*s, '%s', '%s')", STR_ARG(s), lookalikes[i].letter,
                           lookalikes[i].as[look]);
    return s;
}

/* Names that have Latin letters only are found by their index. The others are compared one by one:
 * those with as many characters. Two that are registered at the same moment are not compared. */
static int taken_in(struct task *t, struct sql_pool *sql, const char *table, struct str folded,
                    bool *taken)
{
    struct arena *a = task_arena(t);
    struct str small = look_of(a, folded, SMALL), capital = look_of(a, folded, CAPITAL);
    struct sql_rows r;
    int err = sql_call(
        t, sql, &r,
        arena_printf(a,
                     "(SELECT 1 FROM %s WHERE username_folded IN (?, ?, ?) LIMIT 1) UNION ALL"
                     " (SELECT 1 FROM %s WHERE CHAR_LENGTH(username_folded) = CHAR_LENGTH(?)"
                     " AND LENGTH(username_folded) > CHAR_LENGTH(username_folded)"
                     " AND (%s = ? OR %s = ?) LIMIT 1)",
                     table, table, look_in_sql(a, SMALL).p, look_in_sql(a, CAPITAL).p),
        sql_text(folded), sql_text(small), sql_text(capital), sql_text(folded), sql_text(small),
        sql_text(capital));
    if (!err)
        *taken = r.count > 0;
    return err;
}

int user_name_taken(struct task *t, struct sql_pool *sql, struct str name, bool *taken)
{
    struct str folded = user_name_folded(task_arena(t), name);
    int err = taken_in(t, sql, "user_info", folded, taken);
    return err || *taken ? err : taken_in(t, sql, "admin_info", folded, taken);
}
