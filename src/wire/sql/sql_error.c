#include "wire/sql/sql_error.h"

#include <errmsg.h>

#include "base/ascii.h"

/* The numbers are the server's; the header that names them is not installed everywhere. */
static const struct meaning {
    unsigned int code;
    int kind;
    bool breaks; /* the connection must not be used again */
} meanings[] = {
    /* No room: the statement has been rolled back; it works once there is some. */
    {3, ERR_UNAVAILABLE, false},    /* write failed, in the server's library */
    {20, ERR_UNAVAILABLE, false},   /* device full, in the same */
    {1021, ERR_UNAVAILABLE, false}, /* disk full */
    {1026, ERR_UNAVAILABLE, false}, /* error on write */
    {1114, ERR_UNAVAILABLE, false}, /* table full; InnoDB: its file cannot grow */
    {1878, ERR_UNAVAILABLE, false}, /* temporary file full */
    /* Read-only: nothing was done; it works on the primary, or when the option is off. */
    {1036, ERR_UNAVAILABLE, false}, /* InnoDB was started so */
    {1290, ERR_UNAVAILABLE, false}, /* --read-only, super_read_only */
    {1792, ERR_UNAVAILABLE, false}, /* the transaction is */
    {1836, ERR_UNAVAILABLE, false}, /* the mode is */
    {1874, ERR_UNAVAILABLE, false}, /* InnoDB is */
    {3100, ERR_UNAVAILABLE, false}, /* group replication: the server has lost its group */
    {1060, ERR_EXISTS, false},      /* duplicate column */
    {1061, ERR_EXISTS, false},      /* duplicate key name */
    {1062, ERR_EXISTS, false},      /* duplicate entry */
    {1169, ERR_EXISTS, false},      /* duplicate unique */
    {1586, ERR_EXISTS, false},      /* duplicate entry, with the key's name */
    {1859, ERR_EXISTS, false},      /* duplicate in an index */
    {1020, ERR_CONFLICT, false},    /* MariaDB: changed since the snapshot */
    {1205, ERR_CONFLICT, false},    /* lock wait */
    {1213, ERR_CONFLICT, false},    /* deadlock */
    {3101, ERR_CONFLICT, false},    /* group replication: another server was first */
    {3572, ERR_CONFLICT, false},    /* MySQL: locked, NOWAIT */
    {1969, ERR_TIMEOUT, false},     /* MariaDB: statement */
    {3024, ERR_TIMEOUT, false},     /* MySQL: execution */
    {1153, ERR_LIMIT, true},        /* packet too large */
    {CR_NET_PACKET_TOO_LARGE, ERR_LIMIT, true},
    {1040, ERR_UNAVAILABLE, true}, /* too many connections */
    {1203, ERR_UNAVAILABLE, true}, /* too many of this user */
    {1047, ERR_UNAVAILABLE, true}, /* a Galera node that has not joined */
    {1180, ERR_UNCERTAIN, true},   /* the COMMIT failed; Galera: it lost the others meanwhile */
    {1053, ERR_UNAVAILABLE, true}, /* shutdown; what was under way is rolled back */
    {1927, ERR_UNAVAILABLE, true}, /* MariaDB: connection killed */
    {4031, ERR_UNAVAILABLE, true}, /* MySQL: idle for too long */
    {CR_SERVER_GONE_ERROR, ERR_UNAVAILABLE, true}, /* the command was not written in full */
};

static struct meaning meaning_of(unsigned int code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == code)
            return meanings[i];
    /* Errors of the client library: connection lost, out of sync, malformed. */
    bool of_library = (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) ||
                      (code >= CER_MIN_ERROR && code <= CER_MAX_ERROR);
    return (struct meaning){code, of_library ? ERR_UNCERTAIN : ERR_REFUSED, of_library};
}

bool sql_error_read_only(unsigned int code)
{
    return code == 1036 || code == 1290 || code == 1792 || code == 1836 || code == 1874 ||
           code == 3100;
}

bool sql_error_rolled_back(unsigned int code)
{
    return code == 1213 || code == 3101;
}

int sql_error_kind(unsigned int code)
{
    return meaning_of(code).kind;
}

bool sql_error_breaks(unsigned int code)
{
    return meaning_of(code).breaks;
}

/* Whether the text before a quotation mark announces a name. */
static bool announces_name(struct str before)
{
    static const char *const words[] = {"column ", "key ",   "table ",     "field ",
                                        "index ",  "check ", "constraint "};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct str w = str_of(words[i]);
        if (before.n >= w.n && str_ieq(str_from(before.p + before.n - w.n, w.n), w))
            return true;
    }
    return false;
}

static bool in_name(char c)
{
    return ascii_is_word(c) || c == '_' || c == '.' || c == '$' || c == '`';
}

/* Whether s can follow a value: " for key 'name'", " for column `a`.`b` at row 1". */
static bool is_tail(struct str s)
{
    struct str key = STR(" for key '"), column = STR(" for column "), row = STR(" at row ");
    bool quoted = str_starts(s, key);
    if (!quoted && !str_starts(s, column))
        return false;
    s = str_skip(s, quoted ? key.n : column.n);
    if (!quoted && s.n && s.p[0] == '\'') {
        quoted = true;
        s = str_skip(s, 1);
    }
    while (s.n && in_name(s.p[0]))
        s = str_skip(s, 1);
    if (quoted) {
        if (s.n == 0 || s.p[0] != '\'')
            return false;
        s = str_skip(s, 1);
    }
    int64_t ignored;
    return s.n == 0 || (str_starts(s, row) && str_to_i64(str_skip(s, row.n), &ignored));
}

/* Where a value that begins at the quotation mark ends. A value may hold quotation marks itself:
 * the last one before a valid tail counts. */
static size_t value_end(struct str text, size_t from)
{
    size_t last = text.n - 1;
    for (size_t i = from + 1; i < text.n; i++) {
        if (text.p[i] != '\'')
            continue;
        last = i;
        if (is_tail(str_skip(text, i + 1)))
            break;
    }
    return last;
}

/* As in "doesn't". */
static bool is_apostrophe(struct str s, size_t i)
{
    return i > 0 && ascii_is_letter(s.p[i - 1]) && i + 1 < s.n && ascii_is_letter(s.p[i + 1]);
}

const char *sql_error_text(struct arena *a, const char *z)
{
    struct str text = str_of(z);
    /* Each quotation mark may grow into a quoted ellipsis. */
    char *out = arena_alloc(a, 5 * text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\'' || is_apostrophe(text, i)) {
            out[n++] = text.p[i];
            continue;
        }
        size_t end = i;
        if (announces_name(str_from(text.p, i))) {
            do
                out[n++] = text.p[end++];
            while (end < text.n && text.p[end] != '\'');
            if (end < text.n)
                out[n++] = '\'';
        } else {
            end = value_end(text, i);
            memcpy(out + n, "'…'", 5);
            n += 5;
        }
        i = end;
    }
    out[n] = '\0';
    return out;
}

static bool begins(const char *statement, struct str word)
{
    struct str s = str_of(statement);
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t' || s.p[0] == '('))
        s = str_skip(s, 1);
    return s.n > word.n && str_ieq(str_from(s.p, word.n), word);
}

bool sql_reads_only(const char *statement)
{
    return begins(statement, STR("SELECT")) || begins(statement, STR("SHOW"));
}

bool sql_changes_rows(const char *statement)
{
    return begins(statement, STR("INSERT")) || begins(statement, STR("UPDATE")) ||
           begins(statement, STR("DELETE")) || begins(statement, STR("REPLACE"));
}
