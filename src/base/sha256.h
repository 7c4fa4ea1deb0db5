/* sha256.h -- SHA-256 (FIPS 180-4): for names that must not reveal what they are made from, and for
 * files that must come back as they were written. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/str.h"

#define SHA256_BYTES     32
#define SHA256_HEX_BYTES 65 /* 64 digits and NUL */

void sha256(struct str s, uint8_t out[SHA256_BYTES]);
void sha256_hex(struct str s, char out[SHA256_HEX_BYTES]); /* in lower case */

/* The same of bytes that come one part after the other. */
struct sha256 {
    uint32_t state[8];
    uint8_t rest[64]; /* of the last block that is not whole */
    uint64_t bytes;
};
void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, struct str s);
void sha256_end(struct sha256 *h, uint8_t out[SHA256_BYTES]); /* wipes h */

/* HMAC-SHA-256 (RFC 2104). */
void hmac_sha256(struct str key, struct str s, uint8_t out[SHA256_BYTES]);

/* Two digits per byte, in lower case, and a NUL: 2 * n + 1 bytes at out. */
void hex_write(const uint8_t *bytes, size_t n, char *out);
bool hex_is(struct str s, size_t digits); /* so many such digits */
#endif
