#include "app/extract/together.h"

int together(struct task *t, void *arg, struct gather_item **items, size_t count, gather_fn *fn)
{
    int err = fn(t, arg, items, count);
    if (!err || count == 1 || err_is_outage(err) || err == ERR_BUSY)
        return err;
    for (size_t i = 0; i < count; i++) {
        struct task_scope scope = task_scope(t);
        err = fn(t, arg, items + i, 1);
        if (err)
            gather_fail(items[i], err, task_error(t));
        task_scope_end(t, scope);
    }
    return 0;
}
