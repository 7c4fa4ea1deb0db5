/* take.h -- writes the files of a backup, in the order of backup.h. */
#ifndef TOOL_BACKUP_TAKE_H
#define TOOL_BACKUP_TAKE_H

#include "tool/backup/backup.h"
#include "tool/db/db.h"

/* Into dir, an empty folder. *out as in the manifest; user errors in task_error. */
MUST_CHECK int backup_take(struct task *t, struct db *d, const char *dir, struct backup *out);

/* redis.json: what it says, in the task's arena; and the counters back into Redis. */
MUST_CHECK int backup_redis_text(struct task *t, struct db *d, struct str *out);
struct backup_kept {
    int64_t counters;     /* of AI keys */
    int64_t aside, users; /* records that cannot be read, and how many users have some */
};
MUST_CHECK int backup_redis_put(struct task *t, struct redis *r, struct str text,
                                struct backup_kept *out);
#endif
