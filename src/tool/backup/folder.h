/* folder.h -- where a backup goes: a folder of its own, or the next one below a parent. */
#ifndef TOOL_BACKUP_FOLDER_H
#define TOOL_BACKUP_FOLDER_H

#include "tool/backup/backup.h"

struct folder {
    const char *path;    /* of the backup */
    const char *partial; /* where it is written */
    const char *parent;  /* of this one and those before; NULL: not asked for */
    int lock_fd;         /* one backup at a time */
    bool made;           /* path was made here */
};

/* keep: path is the parent, and the backup is DIR/millrace-<time>. ERR_EXISTS: path is not empty.
 * ERR_BUSY: another backup is written there. ERR_IO. */
MUST_CHECK int folder_open(struct task *t, const char *path, bool keep, struct folder *out);
/* The files of partial become those of path, the manifest last. */
MUST_CHECK int folder_commit(struct task *t, struct folder *f, const struct backup *b);
/* Removes what was written. */
void folder_discard(struct task *t, struct folder *f, const struct backup *b);
/* Leaves the newest `keep` backups of the parent, and removes what an interrupted one has left.
 * *removed: backups. One of another user that cannot be removed is named on standard error. ERR_IO.
 */
MUST_CHECK int folder_prune(struct task *t, struct folder *f, int64_t keep, int64_t *removed);
void folder_close(struct folder *f);
/* The newest whole backup below parent, in a; NULL: there is none. */
const char *folder_newest(struct arena *a, const char *parent);
#endif
