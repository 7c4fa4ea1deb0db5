/* tokens.h -- API tokens (people/api_token.h) as users see their own, and admins those of users. */
#ifndef ENGINE_API_TOKENS_H
#define ENGINE_API_TOKENS_H

#include "engine/api/api.h"
#include "engine/api/scope.h"
#include "engine/people/api_token.h"

#define API_TOKEN_AT(member) API_AT(struct api_token, member)
/* Rows of a table of fields: what api_put_token writes. */
#define API_TOKEN_FIELDS                                                                           \
    {"id",       API_INT,           API_TOKEN_AT(id),                                              \
     .least = 1, .most = INT64_MAX, .about = "names it; no secret"},                               \
        {"name", API_TEXT, API_TOKEN_AT(name), .most = API_TOKEN_NAME_CHARS_MAX,                   \
         .about = "what it is for"},                                                               \
        {"prefix", API_TEXT, API_TOKEN_AT(prefix), .most = API_TOKEN_SHOWN,                        \
         .about = "how the token begins"},                                                         \
        {"scopes", API_TEXTS, .most = API_SCOPES_MAX, .item_most = API_SCOPE_CHARS_MAX,            \
         .about = "what it may do"},                                                               \
        {"state", API_TEXT, .choices = "active|expired|revoked",                                   \
         .about = "the last two are refused"},                                                     \
        {"created", API_TIME, API_TOKEN_AT(created_ms), .about = "when it was made"},              \
        {"last_used", API_TIME, API_TOKEN_AT(used_ms), .optional = true,                           \
         .about = "to the minute; null: not yet"},                                                 \
        {"last_address",                                                                           \
         API_TEXT,                                                                                 \
         API_TOKEN_AT(address),                                                                    \
         .optional = true,                                                                         \
         .most = SESSION_ADDRESS_BYTES_MAX,                                                        \
         .about = "where that was"},                                                               \
        {"expires", API_TIME, API_TOKEN_AT(expires_ms), .optional = true, .about = "null: never"}, \
    {                                                                                              \
        "revoked", API_TIME, API_TOKEN_AT(revoked_ms), .optional = true,                           \
                                                       .about = "null: it is not"                  \
    }

/* A row: the list that api_put_tokens writes. */
extern const struct api_field api_token_fields[];
#define API_TOKENS_FIELD "tokens", API_OBJECTS, .about = "newest first", .fields = api_token_fields

/* Member "tokens"; all: with those that were revoked. */
MUST_CHECK int api_put_tokens(struct task *t, struct api_call *c, struct json_writer *w,
                              int64_t uid, bool all);
struct str api_token_state(struct task *t, const struct api_token *token);
void api_put_token(struct task *t, struct json_writer *w, const struct api_token *token);
/* Revokes the one that ":token_id" of the path names; noted where the route has a name for it. */
MUST_CHECK int api_revoke_token(struct task *t, struct api_call *c, int64_t uid);
#endif
