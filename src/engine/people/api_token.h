/* api_token.h -- API tokens: what a program calls the API with, in the name of a user.
 *
 * A token is "mr_" and 256 random bits in hexadecimal, shown once, when it is made. All else uses
 * its SHA-256. Owns table api_token. What a token may do is its scopes (engine/api/scope.h), which
 * are text here.
 *
 * Always true:
 *   - In Redis a token is a record beside the sessions of its user (session.h): found by one
 *     HGETALL, read from MySQL while Redis does not answer, replaced by a tombstone when it is
 *     revoked, and dropped when its user is marked stale. So a token that was revoked is dead on
 *     every node at once, as a session that was ended is.
 *   - A ban suspends tokens and does not revoke them: the row is read only for users that are not
 *     banned, and the version of the user keeps a slow loader from filling Redis with one that was
 *     read before (cache.h). With the end of the ban they work again.
 *   - A change of the password leaves tokens as they are.
 *   - A user has at most API_TOKENS_PER_USER_MAX tokens that live, each with another name. */
#ifndef ENGINE_PEOPLE_API_TOKEN_H
#define ENGINE_PEOPLE_API_TOKEN_H

#include "engine/people/session.h"

#define API_TOKEN_PREFIX           "mr_"
#define API_TOKEN_BYTES            (sizeof(API_TOKEN_PREFIX) - 1 + 65) /* with NUL */
#define API_TOKEN_SHOWN            (sizeof(API_TOKEN_PREFIX) - 1 + 8)  /* characters, in lists */
#define API_TOKENS_PER_USER_MAX    50
#define API_TOKENS_KEPT            50 /* of a user, that were revoked or have expired */
#define API_TOKEN_NAME_CHARS_MAX   64
#define API_TOKEN_SCOPES_BYTES_MAX 2000
#define API_TOKEN_DAYS_MAX         3650

/* A token and no session: nothing else begins so. */
static inline bool api_token_is(struct str bearer)
{
    return str_starts(bearer, STR(API_TOKEN_PREFIX));
}

/* --- what users and admins do with them --- */

/* Times are ms since 1970, 0: none. */
struct api_token {
    int64_t id, uid;
    struct str name, prefix;
    struct str scopes; /* separated by blanks */
    int64_t created_ms, used_ms, expires_ms, revoked_ms;
    struct str address; /* of the last use; p == NULL: none */
};

struct api_token_new {
    int64_t uid;
    struct str name, scopes;
    int64_t days;                /* until it expires; 0: never */
    const struct admin_deed *by; /* noted in the same transaction; NULL: the user's own */
};
/* What is wrong with a name, as a text for the user; NULL: nothing. */
const char *api_token_name_problem(struct str name);
/* ERR_EXISTS: the user has one of this name. ERR_CONFLICT: the user has too many. ERR_NOT_FOUND:
 * there is no such user. */
MUST_CHECK int api_token_add(struct task *t, struct cache *c, const struct api_token_new *n,
                             char token[API_TOKEN_BYTES], struct api_token *out);
/* Those of a user that were not revoked, or all that there are; newest first, in the task's
 * arena. */
MUST_CHECK int api_token_list(struct task *t, struct sql_pool *sql, int64_t uid, bool all,
                              struct api_token **out, size_t *count);
/* ERR_NOT_FOUND: the user has no such token, or it was revoked before. by: noted in the same
 * transaction; NULL: not noted. */
MUST_CHECK int api_token_revoke(struct task *t, struct cache *c, int64_t uid, int64_t id,
                                const struct admin_deed *by);

/* --- calls that bring one --- */

/* Calls with the same token that come while it is being looked up share the next look: none is
 * answered by what Redis said before it came. */
struct api_tokens;
struct group;
struct api_tokens *api_tokens_new(struct cache *c, struct group *g); /* of clerks; borrows both */
void api_tokens_free(struct api_tokens *x);

/* Whose it is and what it may do. ERR_UNAUTHENTICATED: there is no such token, it was revoked or
 * has expired, or its user is banned. That it was used from the address is noted later, by
 * api_tokens_role. */
MUST_CHECK int api_token_get(struct task *t, struct api_tokens *x, struct str token,
                             struct str address, struct session *out);
/* Notes in MySQL when tokens were last used: of each token at most once a minute. arg: a struct
 * api_tokens. */
#define API_TOKENS_EACH_MS 5000
role_fn api_tokens_role;
#endif
