#include "wire/sql/sql_error.h"

#include <errmsg.h>

/* The numbers of the server; the header that names them is not installed everywhere. */
enum {
    WRITE_FAILED = 3, /* of the server's library, as the next */
    DEVICE_FULL = 20,
    CHECKREAD = 1020, /* MariaDB: changed since the snapshot */
    DISK_FULL = 1021,
    ERROR_ON_WRITE = 1026,
    TABLE_READ_ONLY = 1036, /* InnoDB was started so */
    TOO_MANY_CONNECTIONS = 1040,
    NOT_READY = 1047, /* a Galera node that has not joined */
    SERVER_SHUTDOWN = 1053,
    DUPLICATE_COLUMN = 1060,
    DUPLICATE_KEY_NAME = 1061,
    DUPLICATE_ENTRY = 1062,
    TABLE_FULL = 1114, /* InnoDB: its file cannot grow */
    PACKET_TOO_LARGE = 1153,
    DUPLICATE_UNIQUE = 1169,
    TOO_MANY_USER_CONNECTIONS = 1203,
    LOCK_WAIT = 1205,
    DEADLOCK = 1213,
    OPTION_PREVENTS = 1290, /* --read-only, super_read_only */
    DUPLICATE_ENTRY_WITH_KEY = 1586,
    READ_ONLY_TRANSACTION = 1792,
    READ_ONLY_MODE = 1836,
    DUPLICATE_IN_INDEX = 1859,
    INNODB_READ_ONLY = 1874,
    TEMPORARY_FILE_FULL = 1878,
    CONNECTION_KILLED = 1927,  /* MariaDB */
    STATEMENT_TIMEOUT = 1969,  /* MariaDB */
    EXECUTION_TIMEOUT = 3024,  /* MySQL */
    LOCK_NOWAIT = 3572,        /* MySQL */
    CLIENT_IDLE_TIMEOUT = 4031 /* MySQL */
};

/* Errors of the client library: connection lost, out of sync, malformed. */
static bool of_library(unsigned int code)
{
    return (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) ||
           (code >= CER_MIN_ERROR && code <= CER_MAX_ERROR);
}

/* The statement has been rolled back; it works once there is room. */
static bool says_full(unsigned int code)
{
    return code == TABLE_FULL || code == DISK_FULL || code == ERROR_ON_WRITE ||
           code == TEMPORARY_FILE_FULL || code == WRITE_FAILED || code == DEVICE_FULL;
}

bool sql_error_read_only(unsigned int code)
{
    return code == OPTION_PREVENTS || code == READ_ONLY_TRANSACTION || code == READ_ONLY_MODE ||
           code == TABLE_READ_ONLY || code == INNODB_READ_ONLY;
}

int sql_error_kind(unsigned int code)
{
    if (says_full(code) || sql_error_read_only(code))
        return ERR_UNAVAILABLE;
    switch (code) {
    case DUPLICATE_COLUMN:
    case DUPLICATE_KEY_NAME:
    case DUPLICATE_ENTRY:
    case DUPLICATE_UNIQUE:
    case DUPLICATE_ENTRY_WITH_KEY:
    case DUPLICATE_IN_INDEX:
        return ERR_EXISTS;
    case LOCK_WAIT:
    case DEADLOCK:
    case CHECKREAD:
    case LOCK_NOWAIT:
        return ERR_CONFLICT;
    case STATEMENT_TIMEOUT:
    case EXECUTION_TIMEOUT:
        return ERR_TIMEOUT;
    case PACKET_TOO_LARGE:
    case CR_NET_PACKET_TOO_LARGE:
        return ERR_LIMIT;
    case TOO_MANY_CONNECTIONS:
    case TOO_MANY_USER_CONNECTIONS:
    case NOT_READY:
    case SERVER_SHUTDOWN: /* what was under way has been rolled back */
    case CONNECTION_KILLED:
    case CLIENT_IDLE_TIMEOUT:
    case CR_SERVER_GONE_ERROR: /* the command could not be written in full */
        return ERR_UNAVAILABLE;
    default:
        return of_library(code) ? ERR_UNCERTAIN : ERR_REFUSED;
    }
}

bool sql_error_breaks(unsigned int code)
{
    return of_library(code) || code == PACKET_TOO_LARGE ||
           (sql_error_kind(code) == ERR_UNAVAILABLE && !says_full(code) &&
            !sql_error_read_only(code));
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

static struct str skip(struct str s, size_t n)
{
    return str_from(s.p + n, s.n - n);
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || c == '`';
}

/* Whether s can follow a value: " for key 'name'", " for column `a`.`b` at row 1". */
static bool is_tail(struct str s)
{
    struct str key = STR(" for key '"), column = STR(" for column "), row = STR(" at row ");
    bool quoted = str_starts(s, key);
    if (!quoted && !str_starts(s, column))
        return false;
    s = skip(s, quoted ? key.n : column.n);
    if (!quoted && s.n && s.p[0] == '\'') {
        quoted = true;
        s = skip(s, 1);
    }
    while (s.n && in_name(s.p[0]))
        s = skip(s, 1);
    if (quoted) {
        if (s.n == 0 || s.p[0] != '\'')
            return false;
        s = skip(s, 1);
    }
    int64_t ignored;
    return s.n == 0 || (str_starts(s, row) && str_to_i64(skip(s, row.n), &ignored));
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
        if (is_tail(skip(text, i + 1)))
            break;
    }
    return last;
}

static bool is_letter(char c)
{
    char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'z';
}

/* As in "doesn't". */
static bool is_apostrophe(struct str s, size_t i)
{
    return i > 0 && is_letter(s.p[i - 1]) && i + 1 < s.n && is_letter(s.p[i + 1]);
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
        s = str_from(s.p + 1, s.n - 1);
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
