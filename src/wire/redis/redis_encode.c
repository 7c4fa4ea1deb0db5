#include "wire/redis/redis_encode.h"

static size_t digits(size_t n)
{
    size_t count = 1;
    for (; n >= 10; n /= 10)
        count++;
    return count;
}

static size_t words_bytes(size_t count, const struct str *words)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += 5 + digits(words[i].n) + words[i].n;
    return sum;
}

static size_t words_of(const struct redis_command *c)
{
    return c->head_count + c->argc + c->tail_count;
}

size_t redis_encoded_bytes(const struct redis_command *c)
{
    if (c->encoded.p)
        return c->encoded.n;
    return 3 + digits(words_of(c)) + words_bytes(c->head_count, c->head) +
           words_bytes(c->argc, c->argv) + words_bytes(c->tail_count, c->tail);
}

static char *put_header(char *p, char type, size_t n)
{
    *p++ = type;
    char *end = p + digits(n);
    for (char *at = end; at > p; n /= 10)
        *--at = (char)('0' + n % 10);
    *end++ = '\r';
    *end++ = '\n';
    return end;
}

static char *put_words(char *p, size_t count, const struct str *words)
{
    for (size_t i = 0; i < count; i++) {
        p = put_header(p, '$', words[i].n);
        if (words[i].n)
            memcpy(p, words[i].p, words[i].n);
        p += words[i].n;
        *p++ = '\r';
        *p++ = '\n';
    }
    return p;
}

void redis_encode(const struct redis_command *c, char *p)
{
    if (c->encoded.p) {
        memcpy(p, c->encoded.p, c->encoded.n);
        return;
    }
    p = put_header(p, '*', words_of(c));
    p = put_words(p, c->head_count, c->head);
    p = put_words(p, c->argc, c->argv);
    put_words(p, c->tail_count, c->tail);
}
