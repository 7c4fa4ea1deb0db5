/* own_id.h -- ids of what belongs to a user: "<uid>-<32 hexadecimal digits>".
 *
 * An id tells its owner, so that another user's is refused without a look at any table; the row is
 * compared with the user all the same. The random part cannot be guessed. */
#ifndef ENGINE_PEOPLE_OWN_ID_H
#define ENGINE_PEOPLE_OWN_ID_H

#include "base/str.h"

struct task;

#define OWN_ID_RANDOM_CHARS 32
#define OWN_ID_CHARS        (OWN_ID_RANDOM_CHARS + 12)

struct str own_id_new(struct task *t, int64_t uid); /* in the task's arena; does not wait */
bool own_id_is(struct str id, int64_t uid);         /* false: another user's, or no id */
/* What follows "<uid>-"; p == NULL: another user's, or no id. */
struct str own_id_rest(struct str id, int64_t uid);
#endif
