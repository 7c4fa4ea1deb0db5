/* log.h -- one line per event on standard error, readable or as JSON.
 *
 * A line is one write, so lines of several processes do not mix (through a pipe: up to
 * PIPE_BUF bytes). Control characters in the message are escaped: input cannot forge lines.
 * Secrets are never passed in here; log_secret() shows their ends only. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/check.h"
#include "base/str.h"

#define LOG_LINE_BYTES_MAX 8192 /* longer lines end in "…" */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(enum log_level least, enum log_format format, const char *process); /* "node-0" */
bool log_level_parse(struct str s, enum log_level *out);   /* "debug" … "error" */
bool log_format_parse(struct str s, enum log_format *out); /* "text", "json" */

void log_line(enum log_level level, const char *room, const char *fmt, ...) PRINTF(3, 4);

#define log_debug(room, ...) log_line(LOG_DEBUG, room, __VA_ARGS__)
#define log_info(room, ...)  log_line(LOG_INFO, room, __VA_ARGS__)
#define log_warn(room, ...)  log_line(LOG_WARN, room, __VA_ARGS__)
#define log_error(room, ...) log_line(LOG_ERROR, room, __VA_ARGS__)

/* "sk-a…9f" for long secrets, "…" for short ones. */
const char *log_secret(struct arena *a, struct str secret);

/* For tests: lines go to *into instead; NULL restores standard error. */
struct buf;
void log_capture(struct buf *into);
#endif
