/* base64.h -- bytes out of base64 (RFC 4648, section 4): with padding, without blanks. buf.h has
 * the other way. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/str.h"

/* How many bytes the text stands for, if it is base64. */
size_t base64_bytes(struct str text);
/* Fills out with so many bytes. False: the text is no base64; out is then undefined. */
bool base64_decode(struct str text, void *out);
#endif
