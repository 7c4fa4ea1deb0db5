/* password.h -- bcrypt, on a helper thread: 250 ms each at cost 12, and never on the loop.
 *
 * One at a time in a node, in the order they came, so that other work finds a helper thread free.
 * The queue is bounded; what does not fit is refused with ERR_BUSY. Registrations have
 * PASSWORD_NEW_WAITING_MAX places, all others PASSWORD_WAITING_MAX: neither can take the other's.
 * Helper threads run at a lower priority than the loop, so that a flood of log-ins does not slow
 * down others. */
#ifndef ENGINE_PEOPLE_PASSWORD_H
#define ENGINE_PEOPLE_PASSWORD_H

#include "base/str.h"
#include "loop/task.h"

#define PASSWORD_COST     12
#define PASSWORD_COST_MAX 16 /* 4 s: a hash in the table does not decide how long the node works */
/* Together 25 s of work: a request that waits is answered before its time is up. */
#define PASSWORD_WAITING_MAX     90
#define PASSWORD_NEW_WAITING_MAX 10
#define PASSWORD_BYTES_MAX       72 /* bcrypt looks at no more */

struct passwords; /* one per node */
struct passwords *passwords_new(void);
void passwords_free(struct passwords *p);             /* no task may be waiting */
uint64_t passwords_hashed(const struct passwords *p); /* how often bcrypt has run */

/* "$2b$12$…" in the task's arena. The password has been checked (user_password_problem): with a
 * NUL, or with more bytes than bcrypt looks at, it is ERR_INVALID. */
MUST_CHECK int password_hash(struct task *t, struct passwords *p, struct str password,
                             struct str *hash);
/* The same for a registration, which has places of its own in the queue. */
MUST_CHECK int password_hash_new(struct task *t, struct passwords *p, struct str password,
                                 struct str *hash);
/* Takes hashes of other programs, too ($2a$, $2b$, $2y$). A password with a NUL is never right, nor
 * one with more bytes than bcrypt looks at, nor is anything for what is no hash. hash.p == NULL is
 * never right either, but takes as long as any other: whether a user exists cannot be told from the
 * time. */
MUST_CHECK int password_verify(struct task *t, struct passwords *p, struct str password,
                               struct str hash, bool *right);
#endif
