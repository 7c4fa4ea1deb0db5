/* reply.h -- what replies of all OpenAI-compatible services have in common. */
#ifndef ENGINE_AI_REPLY_H
#define ENGINE_AI_REPLY_H

#include "base/json.h"

#define AI_REPLY_BYTES_MAX (1024 * 1024)
#define AI_TOKENS_MAX      1000000 /* of one call; services that claim more are not believed */
#define AI_LINE_CHARS_MAX  200

/* The JSON in a reply's body: what was compressed with gzip, follows a byte order mark, or comes as
 * server-sent events although they were not asked for. A part of body, or in a; body itself if it
 * is none of these, or damaged. */
struct str ai_reply_body(struct arena *a, struct str body);
/* The same of a reply with at most so many bytes, if it is no stream: decompressed, without the
 * mark. */
struct str ai_reply_plain(struct arena *a, struct str body, size_t bytes_max);
/* What usage.total_tokens of a reply's tree says; -1: absent or absurd. */
int64_t ai_reply_tokens(const struct json *reply);
/* The same as a tree. *tokens is usage.total_tokens; -1: absent or absurd. NULL: no JSON. Borrows
 * body, the rest is in a. */
const struct json *ai_reply_parse(struct arena *a, struct str body, int64_t *tokens);
/* One line of at most AI_LINE_CHARS_MAX characters, in a: trimmed, without control characters. */
struct str ai_line(struct arena *a, struct str s);
/* The message of an error reply, as such a line; "": there is none. */
struct str ai_complaint(struct arena *a, struct str body);
struct str ai_complaint_in(struct arena *a, const struct json *reply); /* of its tree, or NULL */

/* --- reply_text.c --- */

/* What the model says: the content of a message, a string or a list of parts, trimmed; "" or p ==
 * NULL: nothing. And what it thinks, in members of their own. */
struct str ai_message_text(struct arena *a, const struct json *message);
struct str ai_message_thoughts(const struct json *message);
/* The text without thoughts in tags, trimmed; "": nothing but a thought that does not end. A text
 * that is one JSON object or one fence stays as it is, whatever its strings say. */
struct str ai_skip_thoughts(struct str text);
/* Bytes up to the brace that closes the one s begins with, braces in strings aside; 0: none
 * does. */
size_t ai_object_bytes(struct str s);
/* Visits the JSON objects of a text, with prose or fences between them: begin with {.rest = text}.
 * NULL: no more; at most AI_OBJECTS_TRIED_MAX braces are looked at. Borrows the text. */
#define AI_OBJECTS_TRIED_MAX 32
struct ai_objects {
    struct str rest;
    int tried, found;
    bool broken;             /* before the first object a brace began none; how is this: */
    struct json_error error; /* counted from that brace */
};
const struct json *ai_object_next(struct arena *a, struct ai_objects *o);
/* A value as complaints quote it, in one line: of a text its beginning; NULL is "nothing". In a. */
const char *ai_shown(struct arena *a, const struct json *j);
/* Why there is no text, or not all of it, in a reply; completes "the service sent …". One line.
 * NULL: there is a text. reply is the body's tree, or NULL. */
const char *ai_reply_problem(struct arena *a, const struct json *reply);
/* The text of a reply with status 200 to 299, as ai_skip_thoughts leaves it, where there is no
 * problem with it; else p == NULL, and *problem says which. */
struct str ai_reply_text(struct arena *a, struct str body, int64_t *tokens, const char **problem);
/* The same of a body that was parsed: reply is its tree, or NULL. */
struct str ai_reply_text_in(struct arena *a, const struct json *reply, const char **problem);
#endif
