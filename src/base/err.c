#include "base/err.h"

const char *err_name(int err)
{
    static const char *const names[] = {
        [0] = "ok",
        [-ERR_CANCELED] = "canceled",
        [-ERR_TIMEOUT] = "timeout",
        [-ERR_IO] = "io",
        [-ERR_CLOSED] = "closed",
        [-ERR_PROTO] = "proto",
        [-ERR_LIMIT] = "limit",
        [-ERR_BUSY] = "busy",
        [-ERR_UNAVAILABLE] = "unavailable",
        [-ERR_UNCERTAIN] = "uncertain",
        [-ERR_INVALID] = "invalid",
        [-ERR_NOT_FOUND] = "not_found",
        [-ERR_EXISTS] = "exists",
        [-ERR_CONFLICT] = "conflict",
        [-ERR_UNAUTHENTICATED] = "unauthenticated",
        [-ERR_FORBIDDEN] = "forbidden",
        [-ERR_FUNDS] = "funds",
        [-ERR_RATE] = "rate",
        [-ERR_REFUSED] = "refused",
        [-ERR_INTERNAL] = "internal",
        [-ERR_SCOPE] = "token_scope",
    };
    _Static_assert(sizeof(names) / sizeof(names[0]) == -ERR_LAST + 1, "every code has a name");
    return err > 0 || err < ERR_LAST ? "internal" : names[-err];
}
