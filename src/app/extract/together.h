/* together.h -- many items by one call, and one that cannot be helped alone. */
#ifndef APP_EXTRACT_TOGETHER_H
#define APP_EXTRACT_TOGETHER_H

#include "loop/gather.h"

/* For a gather_fn: calls fn with all of the items, and where that fails by what one of them may be
 * the cause of, once more with each of them alone. fn can be repeated. */
MUST_CHECK int together(struct task *t, void *arg, struct gather_item **items, size_t count,
                        gather_fn *fn);
#endif
