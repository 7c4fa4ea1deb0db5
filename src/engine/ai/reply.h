/* reply.h -- what replies of all OpenAI-compatible services have in common. */
#ifndef ENGINE_AI_REPLY_H
#define ENGINE_AI_REPLY_H

#include "base/json.h"

#define AI_REPLY_BYTES_MAX (1024 * 1024)
#define AI_TOKENS_MAX      1000000 /* of one call; services that claim more are not believed */
#define AI_LINE_CHARS_MAX  200

/* The body of a reply. *tokens is usage.total_tokens; -1: absent or absurd. NULL: no JSON. Borrows
 * body, the rest is in a. */
const struct json *ai_reply_parse(struct arena *a, struct str body, int64_t *tokens);
/* One line of at most AI_LINE_CHARS_MAX characters, in a: trimmed, without control characters. */
struct str ai_line(struct arena *a, struct str s);
/* The message of an error reply, as such a line; "": there is none. */
struct str ai_complaint(struct arena *a, struct str body);
#endif
