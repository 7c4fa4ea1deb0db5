/* scripts.h -- the scripts of engine/lua: steps that Redis does as one. Each says at its top what
 * its keys and arguments are and what it returns. All are safe to repeat. */
#ifndef ENGINE_SCRIPTS_H
#define ENGINE_SCRIPTS_H

#include "wire/redis.h"

extern const struct redis_script script_block_commit;
extern const struct redis_script script_catalog_replace;
extern const struct redis_script script_lock_drop;
extern const struct redis_script script_lock_keep;
#endif
