/* session.h -- log-ins of users and admins.
 *
 * A token is 256 random bits, known to its owner alone. All else uses its sid: SHA-256 of the token
 * in 64 hexadecimal digits. Owns session:<sid> (hash, TTL 7 days, renewed), user:<uid>:session (set
 * of sids) and table session; admins have the same with keys of their own, for 12 hours.
 *
 * Always true:
 *   - a session that was ended is dead on every node at once. Its row goes from MySQL first; in
 *     Redis it leaves a tombstone, so that a slow loader cannot revive it; and if Redis does not
 *     answer, the user is marked stale (cache.h), so that a session that Redis still has is not
 *     used when it is back. (Nodes that still reach a Redis that this one cannot reach learn it
 *     from that mark, within a second or two);
 *   - a session that is in Redis is in its owner's set, where cache.c finds it, and a user's
 *     session has a deadline like all that the user has there. So before the set is removed the
 *     sessions are dropped. */
#ifndef ENGINE_PEOPLE_SESSION_H
#define ENGINE_PEOPLE_SESSION_H

#include "engine/store/cache.h"

#define SESSION_TTL_MS            (7LL * 24 * 3600 * 1000)
#define SESSION_ADMIN_TTL_MS      (12LL * 3600 * 1000)
#define SESSION_TOKEN_BYTES       65 /* 64 hexadecimal digits and NUL */
#define SESSION_AGENT_BYTES_MAX   512
#define SESSION_ADDRESS_BYTES_MAX 45
#define SESSIONS_PER_USER_MAX     100 /* one more ends the one that was used longest ago */

enum session_kind { SESSION_USER, SESSION_ADMIN };

struct session {
    struct str sid;
    int64_t uid;
    struct str username;
    int64_t login_ms, active_ms; /* since 1970; as of the last time this was noted */
    struct str ip_address, user_agent;
    bool degraded; /* from MySQL, because Redis does not answer */
    /* Of a call with an API token (api_token.h), which has none of the times and texts above: */
    struct str scopes;  /* p == NULL: it is a session */
    int64_t expires_ms; /* 0: never */
    int64_t version;    /* of its owner's row, as read with it from MySQL */
};

struct session_start {
    enum session_kind kind;
    int64_t uid;
    struct str username, ip_address, user_agent; /* cut to what is stored */
};
MUST_CHECK int session_begin(struct task *t, struct cache *c, const struct session_start *s,
                             char token[SESSION_TOKEN_BYTES]);
/* ERR_UNAUTHENTICATED: no such session, or it has ended. Renews it, now and then: in Redis once a
 * minute, in MySQL once an hour. */
MUST_CHECK int session_get(struct task *t, struct cache *c, enum session_kind kind,
                           struct str token, struct session *out);
/* Newest first, in the task's arena. */
MUST_CHECK int session_list(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                            struct session **out, size_t *count);
/* ERR_NOT_FOUND: the user has no such session. After ERR_UNCERTAIN it may have ended; repeating it
 * makes sure, whether that finds it or not. by: noted in the same transaction; NULL: not noted. */
struct admin_deed;
MUST_CHECK int session_end(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                           struct str sid, const struct admin_deed *by);
/* All of a user's, but for one (p == NULL: none is kept). */
MUST_CHECK int session_end_all(struct task *t, struct cache *c, enum session_kind kind, int64_t uid,
                               struct str but_sid);
/* Ends sessions that have expired. arg: a struct cache. */
role_fn session_role;
/* Why a user's session has ended, as far as that is known (an hour): the account is banned. False
 * while Redis does not answer. */
MUST_CHECK int session_banned(struct task *t, struct cache *c, struct str token, bool *banned);
#endif
