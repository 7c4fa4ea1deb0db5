/* redis_encode.h -- a command as Redis reads it: an array of strings with their lengths. */
#ifndef WIRE_REDIS_ENCODE_H
#define WIRE_REDIS_ENCODE_H

#include "base/str.h"

/* The words of head, then those of argv, then those of tail: what comes before and after argv, such
 * as EVALSHA, needs no copy of it. */
struct redis_command {
    struct str encoded; /* all of it as it is sent, instead of the rest; STR_NULL: none */
    size_t head_count;
    const struct str *head;
    size_t argc;
    const struct str *argv;
    size_t tail_count;
    const struct str *tail;
};

size_t redis_encoded_bytes(const struct redis_command *c);
/* Writes exactly redis_encoded_bytes() at p. */
void redis_encode(const struct redis_command *c, char *p);
#endif
