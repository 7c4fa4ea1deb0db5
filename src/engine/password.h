/* password.h -- bcrypt, on helper threads: 250 ms each at cost 12, and never on the loop.
 *
 * At most PASSWORD_WAITING_MAX may wait in a node: more are refused with ERR_BUSY. The threads that
 * hash run at a lower priority than the loop, so that a flood of log-ins does not slow down others. */
#ifndef ENGINE_PASSWORD_H
#define ENGINE_PASSWORD_H

#include "base/str.h"
#include "loop/task.h"

#define PASSWORD_COST        12
#define PASSWORD_WAITING_MAX 256

struct passwords; /* one per node */
struct passwords *passwords_new(void);
void passwords_free(struct passwords *p);

/* "$2b$12$…" in the task's arena. The password has been checked (user_password_problem). */
MUST_CHECK int password_hash(struct task *t, struct passwords *p, struct str password,
                             struct str *hash);
/* Takes hashes of other programs, too ($2a$, $2b$, $2y$). hash.p == NULL takes as long as any other and
 * is never right: whether a user exists cannot be told from the time. */
MUST_CHECK int password_verify(struct task *t, struct passwords *p, struct str password,
                               struct str hash, bool *right);
#endif
