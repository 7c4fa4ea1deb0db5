/* check.h -- for our own mistakes. A failed check stops the process: work is
 * leased, so what was in hand comes back by itself. Always compiled in. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#define MUST_CHECK         __attribute__((warn_unused_result))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define check(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, __func__, #cond))

_Noreturn void check_failed(const char *file, int line, const char *func, const char *what);

/* Stops the process because memory is exhausted. */
_Noreturn void check_no_memory(void);

/* Around malloc and its kin: gives p back, or stops the process if it is NULL. */
static inline void *check_memory(void *p)
{
    if (!p)
        check_no_memory();
    return p;
}
#endif
