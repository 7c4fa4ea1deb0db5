#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Not through log.c: the heap, or the log itself, may be what broke. */
_Noreturn void check_failed(const char *file, int line, const char *func, const char *what)
{
    dprintf(STDERR_FILENO, "%s:%d: %s: check failed: %s\n", file, line, func, what);
    abort();
}

_Noreturn void check_no_memory(void)
{
    static const char text[] = "out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    abort();
}
