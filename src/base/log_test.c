#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"
#include "tests/tap.h"

/* What was captured since the last call, without the time in front. */
static struct str line_after_time(struct buf *out)
{
    struct str s = buf_str(out);
    if (s.n < TIME_ISO_BYTES)
        return s;
    return str_from(s.p + TIME_ISO_BYTES, s.n - TIME_ISO_BYTES);
}

static void text_lines(struct buf *out)
{
    log_setup(LOG_INFO, LOG_TEXT, "node-0");
    log_info("redis", "connected to %s", "cache");
    is_str(line_after_time(out), STR("info  node-0 redis: connected to cache\n"), "a text line");
    struct str s = buf_str(out);
    ok(s.n > 25 && s.p[4] == '-' && s.p[10] == 'T' && s.p[19] == '.' && s.p[23] == 'Z', "its time");

    buf_clear(out);
    log_debug("redis", "not wanted");
    is_int((int64_t)out->len, 0, "lines below the level are dropped");
    log_error("sql", "wanted");
    is_str(line_after_time(out), STR("error node-0 sql: wanted\n"), "lines above it are not");

    buf_clear(out);
    log_warn("http", "%s", "a\nb\tc\r\x1b[31m\x7f \xC2\x9B \xE4\xB8\xAD \xFF\xC3");
    is_str(
        line_after_time(out),
        STR("warn  node-0 http: a\\nb\\tc\\x0d\\x1b[31m\\x7f \\xc2\\x9b \xE4\xB8\xAD \\xff\\xc3\n"),
        "control characters and broken UTF-8 are made visible");
    buf_clear(out);
}

static void json_lines(struct buf *out)
{
    struct arena a;
    arena_init(&a);
    log_setup(LOG_DEBUG, LOG_JSON, "node \"1\"");
    log_debug("http", "%s", "a\n\"b\"\x01 \xE4\xB8\xAD \xFF");
    const struct json *j;
    struct str line = buf_str(out);
    ok(line.n && line.p[line.n - 1] == '\n' && str_find(line, STR("\n")) == (ptrdiff_t)line.n - 1,
       "one line");
    if (is_int(json_parse(&a, line, &j, NULL), 0, "it is JSON")) {
        is_int(j->count, 5, "five members");
        is_int((int64_t)json_str(json_get(j, "time")).n, TIME_ISO_BYTES - 1, "time");
        is_str(json_str(json_get(j, "level")), STR("debug"), "level");
        is_str(json_str(json_get(j, "process")), STR("node \"1\""), "process");
        is_str(json_str(json_get(j, "room")), STR("http"), "room");
        is_str(json_str(json_get(j, "message")), STR("a\n\"b\"\x01 \xE4\xB8\xAD \xEF\xBF\xBD"),
               "message");
    }
    buf_clear(out);
    arena_release(&a);
}

static void long_lines(struct buf *out)
{
    struct arena a;
    arena_init(&a);
    struct buf text;
    buf_init(&text);
    while (text.len < 20000)
        buf_add_lit(&text, "\xE4\xB8\xAD\n");
    buf_add_char(&text, '\0');

    log_setup(LOG_INFO, LOG_TEXT, "node-0");
    log_info("http", "%s", buf_str(&text).p);
    struct str line = buf_str(out);
    ok(line.n <= LOG_LINE_BYTES_MAX && line.n > LOG_LINE_BYTES_MAX - 10, "text lines are cut");
    ok(str_ends(line, STR("\xE2\x80\xA6\n")), "with an ellipsis");
    ok(str_utf8_valid(line), "between characters");

    buf_clear(out);
    log_setup(LOG_INFO, LOG_JSON, "node-0");
    log_info("http", "%s", buf_str(&text).p);
    line = buf_str(out);
    const struct json *j;
    ok(line.n <= LOG_LINE_BYTES_MAX && line.n > LOG_LINE_BYTES_MAX - 10, "JSON lines are cut");
    if (is_int(json_parse(&a, line, &j, NULL), 0, "and stay JSON"))
        ok(str_ends(json_str(json_get(j, "message")), STR("\xE2\x80\xA6")), "with an ellipsis");
    buf_clear(out);
    buf_release(&text);
    arena_release(&a);
}

static void standard_error(struct buf *out)
{
    int ends[2], saved = dup(STDERR_FILENO);
    check(saved >= 0 && pipe(ends) == 0);
    log_setup(LOG_INFO, LOG_TEXT, "node-0");
    log_capture(NULL);
    dup2(ends[1], STDERR_FILENO);
    errno = ENOENT;
    log_info("file", "missing: %m");
    close(STDERR_FILENO);
    log_info("file", "this goes nowhere");
    int after = errno;
    dup2(saved, STDERR_FILENO);
    log_capture(out);

    char text[256];
    ssize_t n = read(ends[0], text, sizeof(text));
    check(n > TIME_ISO_BYTES);
    is_str(str_from(text + TIME_ISO_BYTES, (size_t)n - TIME_ISO_BYTES),
           STR("info  node-0 file: missing: No such file or directory\n"),
           "lines go to standard error, without colour unless it is a terminal");
    is_int(after, ENOENT, "errno survives, even a failed write");
    close(ends[0]);
    close(ends[1]);
    close(saved);
}

/* Runs with a pseudo terminal as standard error and gives the line written. */
static struct str line_on_terminal(struct arena *a, struct buf *out)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    check(master >= 0 && saved >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    check(terminal >= 0);
    dup2(terminal, STDERR_FILENO);
    log_setup(LOG_INFO, LOG_TEXT, "node-0");
    log_capture(NULL);
    log_warn("a", "b");
    log_capture(out);
    dup2(saved, STDERR_FILENO);
    char text[256];
    ssize_t n = read(master, text, sizeof(text));
    check(n > 0);
    close(terminal);
    close(saved);
    close(master);
    return str_dup(a, str_from(text, (size_t)n));
}

static void colours(struct buf *out)
{
    struct arena a;
    arena_init(&a);
    unsetenv("NO_COLOR");
    struct str line = line_on_terminal(&a, out);
    ok(str_find(line, STR("\x1b[33mwarn \x1b[0m node-0 a: b")) > 0,
       "on a terminal the level is coloured");
    setenv("NO_COLOR", "1", 1);
    line = line_on_terminal(&a, out);
    ok(line.n > 0 && str_find(line, STR("\x1b")) < 0, "unless NO_COLOR is set");
    arena_release(&a);
}

static void names(void)
{
    enum log_level level = LOG_ERROR;
    enum log_format format = LOG_TEXT;
    ok(log_level_parse(STR("debug"), &level) && level == LOG_DEBUG, "debug is a level");
    ok(log_level_parse(STR("error"), &level) && level == LOG_ERROR, "error is a level");
    ok(!log_level_parse(STR("Info"), &level) && level == LOG_ERROR, "Info is none");
    ok(log_format_parse(STR("json"), &format) && format == LOG_JSON, "json is a format");
    ok(log_format_parse(STR("text"), &format) && format == LOG_TEXT, "text is a format");
    ok(!log_format_parse(STR("xml"), &format) && format == LOG_TEXT, "xml is none");
}

static void secrets(void)
{
    struct arena a;
    arena_init(&a);
    is_str(str_of(log_secret(&a, STR("sk-abcdefghijklmnop9f"))),
           STR("sk-a\xE2\x80\xA6"
               "9f"),
           "long secrets show their ends");
    is_str(str_of(log_secret(&a, STR("password123"))), STR("\xE2\x80\xA6"), "short ones nothing");
    is_str(str_of(log_secret(&a, STR_NULL)), STR("\xE2\x80\xA6"), "absent ones neither");
    arena_release(&a);
}

int main(void)
{
    struct buf out;
    buf_init(&out);
    log_capture(&out);
    text_lines(&out);
    json_lines(&out);
    long_lines(&out);
    standard_error(&out);
    colours(&out);
    names();
    secrets();
    log_capture(NULL);
    buf_release(&out);
    return tap_done();
}
