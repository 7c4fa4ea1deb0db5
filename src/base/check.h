/* check.h -- assertions for programming errors, always compiled in. A failed check aborts the
 * process: work is leased, so unfinished units are taken up again. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#define MUST_CHECK         __attribute__((warn_unused_result))
#define NOINLINE           __attribute__((noinline))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define check(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, __func__, #cond))

_Noreturn void check_failed(const char *file, int line, const char *func, const char *what);

/* Aborts because memory is exhausted. */
_Noreturn void check_no_memory(void);

/* Wraps malloc and the like: returns p, or aborts when it is NULL. */
static inline void *check_memory(void *p)
{
    if (!p)
        check_no_memory();
    return p;
}
#endif
