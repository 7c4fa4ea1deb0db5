#include "app/embed/error.h"

#include "base/arena.h"
#include "loop/task.h"

const char *embed_reason(int err)
{
    return err == ERR_UNAVAILABLE || err == ERR_BUSY ? EMBED_SERVICE_DOWN
           : err == ERR_REFUSED                      ? EMBED_REFUSED
           : err == ERR_TIMEOUT                      ? EMBED_TOO_SLOW
           : err == ERR_PROTO                        ? EMBED_BAD_ANSWER
           : err == ERR_LIMIT || err == ERR_INVALID  ? EMBED_TOO_LONG
                                                     : JOB_OTHER;
}

int embed_job_error(struct task *t, int err)
{
    const char *why = arena_strdup(task_arena(t), task_error(t));
    bool again = err == ERR_PROTO || err == ERR_UNCERTAIN || err == ERR_CONFLICT;
    return again ? task_fail(t, ERR_BUSY, "%s", why) : err;
}
