/* journal.h -- journals by number, as tags of points and rows of papers that can be searched name
 * them. A number is given once and kept: table journal_number. */
#ifndef ENGINE_SEARCH_JOURNAL_H
#define ENGINE_SEARCH_JOURNAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct sql_pool;
struct task;

#define JOURNAL_NUMBERS_MAX 65535

/* The numbers of journals, in numbers[]; 0 for one that has none. */
MUST_CHECK int journal_numbers(struct task *t, struct sql_pool *sql, const struct str *names,
                               size_t count, uint16_t *numbers);
/* The same; what has none gets one. ERR_LIMIT: there are JOURNAL_NUMBERS_MAX. */
MUST_CHECK int journal_numbers_give(struct task *t, struct sql_pool *sql, const struct str *names,
                                    size_t count, uint16_t *numbers);
#endif
