#include "base/sha256.h"

#define BLOCK_BYTES  64
#define LENGTH_BYTES 8 /* at the end of the last block: how many bits there were */

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v >> n | v << (32 - n);
}

static uint32_t load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The names are those of the standard, section 6.2.2. */
static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (size_t i = 0; i < 16; i++)
        w[i] = load(block + 4 * i);
    for (size_t i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 64; i++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++)
        state[i] += sum[i];
}

/* What is left after the whole blocks, a one bit, zeros, and the length: one block or two. */
static void add_end(uint32_t state[8], struct str rest, uint64_t bytes)
{
    uint8_t end[2 * BLOCK_BYTES] = {0};
    if (rest.n)
        memcpy(end, rest.p, rest.n);
    end[rest.n] = 0x80;
    size_t n = rest.n + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        end[n - 1 - i] = (uint8_t)(bytes * 8 >> 8 * i);
    for (size_t at = 0; at < n; at += BLOCK_BYTES)
        add_block(state, end + at);
    explicit_bzero(end, sizeof end); /* what is hashed here may be a secret */
}

void sha256_begin(struct sha256 *h)
{
    *h = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *h, struct str s)
{
    size_t held = h->bytes % BLOCK_BYTES;
    h->bytes += s.n;
    if (held && s.n) {
        size_t n = BLOCK_BYTES - held < s.n ? BLOCK_BYTES - held : s.n;
        memcpy(h->rest + held, s.p, n);
        s = str_skip(s, n);
        if (held + n < BLOCK_BYTES)
            return;
        add_block(h->state, h->rest);
    }
    for (; s.n >= BLOCK_BYTES; s = str_skip(s, BLOCK_BYTES))
        add_block(h->state, (const uint8_t *)s.p);
    if (s.n)
        memcpy(h->rest, s.p, s.n);
}

void sha256_end(struct sha256 *h, uint8_t out[SHA256_BYTES])
{
    add_end(h->state, str_from((const char *)h->rest, h->bytes % BLOCK_BYTES), h->bytes);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
    explicit_bzero(h, sizeof *h);
}

void sha256(struct str s, uint8_t out[SHA256_BYTES])
{
    struct sha256 h;
    sha256_begin(&h);
    sha256_add(&h, s);
    sha256_end(&h, out);
}

void hmac_sha256(struct str key, struct str s, uint8_t out[SHA256_BYTES])
{
    struct sha256 h;
    uint8_t inner[BLOCK_BYTES] = {0}, outer[BLOCK_BYTES];
    if (key.n > BLOCK_BYTES)
        sha256(key, inner);
    else if (key.n)
        memcpy(inner, key.p, key.n);
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256_begin(&h);
    sha256_add(&h, str_from((const char *)inner, BLOCK_BYTES));
    sha256_add(&h, s);
    sha256_end(&h, out);
    sha256_begin(&h);
    sha256_add(&h, str_from((const char *)outer, BLOCK_BYTES));
    sha256_add(&h, str_from((const char *)out, SHA256_BYTES));
    sha256_end(&h, out);
    explicit_bzero(inner, sizeof inner);
    explicit_bzero(outer, sizeof outer);
}

void hex_write(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

bool hex_is(struct str s, size_t digits)
{
    bool hex = s.n == digits;
    for (size_t i = 0; hex && i < s.n; i++)
        hex = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');
    return hex;
}

void sha256_hex(struct str s, char out[SHA256_HEX_BYTES])
{
    uint8_t sum[SHA256_BYTES];
    sha256(s, sum);
    hex_write(sum, sizeof sum, out);
}
