#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

#define ELLIPSIS       "\xE2\x80\xA6"
#define ELLIPSIS_BYTES (sizeof(ELLIPSIS) - 1)
/* Shorter secrets would be half given away by their ends. */
#define SECRET_SHOWN_BYTES_MIN 20

static const struct {
    const char *name, *colour;
} levels[] = {
    [LOG_DEBUG] = {"debug", "\x1b[2m"},
    [LOG_INFO] = {"info", "\x1b[32m"},
    [LOG_WARN] = {"warn", "\x1b[33m"},
    [LOG_ERROR] = {"error", "\x1b[31m"},
};

/* The only global state: any code may log. */
static struct {
    enum log_level least;
    enum log_format format;
    char process[32];
    bool coloured;
    struct buf *capture;
} setup = {.least = LOG_INFO, .process = "millrace"};

void log_setup(enum log_level least, enum log_format format, const char *process)
{
    const char *no_colour = getenv("NO_COLOR");
    setup.least = least;
    setup.format = format;
    setup.coloured = isatty(STDERR_FILENO) && !(no_colour && *no_colour);
    snprintf(setup.process, sizeof(setup.process), "%s", process);
}

void log_capture(struct buf *into)
{
    setup.capture = into;
}

bool log_level_parse(struct str s, enum log_level *out)
{
    for (enum log_level l = LOG_DEBUG; l <= LOG_ERROR; l++) {
        if (str_eq(s, str_of(levels[l].name))) {
            *out = l;
            return true;
        }
    }
    return false;
}

bool log_format_parse(struct str s, enum log_format *out)
{
    bool text = str_eq(s, STR("text"));
    if (!text && !str_eq(s, STR("json")))
        return false;
    *out = text ? LOG_TEXT : LOG_JSON;
    return true;
}

/* Adds one character, escaped unless printable. Terminals interpret U+0080 to U+009F as control
 * characters too, and bytes that are not UTF-8 may be anything. */
static void add_visible(struct buf *line, struct str c)
{
    const unsigned char *p = (const unsigned char *)c.p;
    bool ascii = c.n == 1 && p[0] >= 0x20 && p[0] < 0x7F;
    bool beyond = c.n > 1 && !(p[0] == 0xC2 && p[1] < 0xA0);
    if (ascii || beyond)
        buf_add_str(line, c);
    else if (p[0] == '\n')
        buf_add_lit(line, "\\n");
    else if (p[0] == '\t')
        buf_add_lit(line, "\\t");
    else
        for (size_t i = 0; i < c.n; i++)
            buf_printf(line, "\\x%02x", p[i]);
}

/* Adds the message character by character and stops with an ellipsis where the line, with the
 * tail still to come, would pass the limit. */
static void add_message(struct buf *line, struct str message, size_t tail_bytes,
                        void (*add)(struct buf *, struct str))
{
    size_t limit = LOG_LINE_BYTES_MAX - tail_bytes - ELLIPSIS_BYTES;
    while (message.n) {
        size_t step = str_utf8_step(message), before = line->len;
        if (step == 0)
            step = 1;
        add(line, str_from(message.p, step));
        if (line->len > limit) {
            line->len = before;
            buf_add_lit(line, ELLIPSIS);
            return;
        }
        message = str_skip(message, step);
    }
}

static void text_line(struct buf *line, enum log_level level, const char *room, struct str message)
{
    char time[TIME_ISO_BYTES];
    time_iso(time_wall_us(), time);
    bool coloured = setup.coloured && !setup.capture;
    buf_printf(line, "%s %s%-5s%s %s %s: ", time, coloured ? levels[level].colour : "",
               levels[level].name, coloured ? "\x1b[0m" : "", setup.process, room);
    add_message(line, message, 1, add_visible);
    buf_add_char(line, '\n');
}

/* Not with the writer of json.h: the message must be cut inside the line. */
static void json_line(struct buf *line, enum log_level level, const char *room, struct str message)
{
    char time[TIME_ISO_BYTES];
    time_iso(time_wall_us(), time);
    buf_printf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"", time, levels[level].name);
    json_escape(line, str_of(setup.process));
    buf_add_lit(line, "\",\"room\":\"");
    json_escape(line, str_of(room));
    buf_add_lit(line, "\",\"message\":\"");
    add_message(line, message, 3, json_escape);
    buf_add_lit(line, "\"}\n");
}

static void emit(struct str line)
{
    if (setup.capture) {
        buf_add_str(setup.capture, line);
        return;
    }
    ssize_t n;
    do
        n = write(STDERR_FILENO, line.p, line.n);
    while (n < 0 && errno == EINTR);
}

void log_line(enum log_level level, const char *room, const char *fmt, ...)
{
    if (level < setup.least)
        return;
    int saved_errno = errno; /* callers log first and look at errno afterwards */
    struct buf message, line;
    buf_init(&message);
    buf_init(&line);

    /* Cut to one line: a longer message ends in an ellipsis anyway. */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf_reserve(&message, LOG_LINE_BYTES_MAX), LOG_LINE_BYTES_MAX, fmt, ap);
    va_end(ap);
    check(n >= 0);
    buf_added(&message, n < LOG_LINE_BYTES_MAX ? (size_t)n : LOG_LINE_BYTES_MAX - 1);

    (setup.format == LOG_JSON ? json_line : text_line)(&line, level, room, buf_str(&message));
    emit(buf_str(&line));
    buf_release(&line);
    buf_release(&message);
    errno = saved_errno;
}

const char *log_secret(struct arena *a, struct str secret)
{
    if (secret.n < SECRET_SHOWN_BYTES_MIN)
        return ELLIPSIS;
    return arena_printf(a, "%.4s" ELLIPSIS "%.2s", secret.p, secret.p + secret.n - 2);
}
