/* tokens.h -- a user's API tokens: listed, made, revoked. */
#ifndef APP_ACCOUNT_TOKENS_H
#define APP_ACCOUNT_TOKENS_H

#include "engine/api/api.h"

extern const struct api_field account_tokens_reply[], account_token_body[], account_token_reply[];
api_handler account_tokens, account_token_add, account_token_revoke;
#endif
