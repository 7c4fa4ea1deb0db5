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
/* The same as a tree. *tokens is usage.total_tokens; -1: absent or absurd. NULL: no JSON. Borrows
 * body, the rest is in a. */
const struct json *ai_reply_parse(struct arena *a, struct str body, int64_t *tokens);
/* One line of at most AI_LINE_CHARS_MAX characters, in a: trimmed, without control characters. */
struct str ai_line(struct arena *a, struct str s);
/* The message of an error reply, as such a line; "": there is none. */
struct str ai_complaint(struct arena *a, struct str body);
#endif
