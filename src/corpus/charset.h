/* charset.h -- which encoding a file is in, and its text as UTF-8.
 *
 * A file has one encoding, known by its byte order mark or by all of its bytes: a stray byte in
 * a file of UTF-8 is repaired alone and counted, and never turns the whole file into something
 * else. What cannot be repaired becomes U+FFFD. The result is always valid UTF-8 without a byte
 * order mark. */
#ifndef CORPUS_CHARSET_H
#define CORPUS_CHARSET_H

#include "base/str.h"

enum charset {
    CHARSET_UTF8, /* plain ASCII too */
    CHARSET_UTF16LE,
    CHARSET_UTF16BE,
    CHARSET_GB18030, /* and its subsets GBK and GB2312 */
    CHARSET_1252,    /* and its subset Latin-1 */
};

struct charset_text {
    struct str utf8;      /* borrowed from the bytes when nothing had to change */
    enum charset charset; /* what the bytes were taken for */
    bool bom;
    size_t repaired;       /* places that are not valid in that encoding */
    size_t first_repaired; /* byte offset of the first of them */
};

/* 0, or ERR_UNAVAILABLE when the C library lacks the converter; then only out->charset is set. */
MUST_CHECK int charset_to_utf8(struct arena *a, struct str bytes, struct charset_text *out);

const char *charset_name(enum charset c); /* "UTF-8", "GB18030", … */

/* The code point of a byte in Windows-1252; U+FFFD for the five bytes it leaves open. */
uint32_t charset_1252(unsigned char c);
#endif
