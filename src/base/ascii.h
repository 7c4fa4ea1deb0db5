/* ascii.h -- classes of ASCII characters, independent of the locale. */
#ifndef BASE_ASCII_H
#define BASE_ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool ascii_is_letter(char c)
{
    return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

static inline bool ascii_is_word(char c) /* a letter or a digit */
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static inline int ascii_hex(char c) /* the value of a hexadecimal digit; -1 when it is none */
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
#endif
