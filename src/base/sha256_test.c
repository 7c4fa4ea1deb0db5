#include "base/sha256.h"

#include <stdlib.h>

#include "tests/tap.h"

static void is_sum(struct str s, const char *want, const char *what)
{
    char got[SHA256_HEX_BYTES];
    sha256_hex(s, got);
    is_str(str_of(got), str_of(want), "%s", what);
}

/* The examples of FIPS 180-4 and the NIST's list of test vectors. */
static void test_standard(void)
{
    is_sum(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "nothing");
    is_sum(STR_NULL, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "absent");
    is_sum(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
    is_sum(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "448 bits");
    is_sum(STR("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
               "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
           "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1", "896 bits");
}

static void test_long(void)
{
    size_t n = (1 << 24) - 1; /* its length in bits needs four bytes */
    char *p = check_memory(calloc(1, n));
    is_sum(str_from(p, n), "dd48399d7166dcfbfefc7cd21dc962d696af3742c0be1dd531d650a5796fecda",
           "16 million zeros");
    memset(p, 'a', 1000000);
    is_sum(str_from(p, 1000000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
           "a million times a");
    free(p);
}

/* Every length around the borders of blocks, at every alignment: the sum of all the sums is that of
 * another program. */
static void test_borders(void)
{
    char data[8 + 300];
    for (size_t shift = 0; shift < 8; shift++) {
        uint8_t sums[301][SHA256_BYTES];
        for (size_t i = 0; i < 300; i++)
            data[shift + i] = (char)(i * 7);
        for (size_t n = 0; n <= 300; n++)
            sha256(str_from(data + shift, n), sums[n]);
        is_sum(str_from((const char *)sums, sizeof sums),
               "3b05b530351f50663ba5ac734c246d169eafec6b57c70dc6dc94cad39d04aad8",
               "0 to 300 bytes");
    }
}

/* Any two cuts of 200 bytes give the same sum. */
static void test_parts(void)
{
    char data[200];
    uint8_t whole[SHA256_BYTES], sum[SHA256_BYTES];
    int wrong = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 11);
    sha256(str_from(data, sizeof data), whole);
    for (size_t a = 0; a <= sizeof data; a++)
        for (size_t b = a; b <= sizeof data; b++) {
            struct sha256 h;
            sha256_begin(&h);
            sha256_add(&h, str_from(data, a));
            sha256_add(&h, str_from(data + a, b - a));
            sha256_add(&h, str_from(data + b, sizeof data - b));
            sha256_end(&h, sum);
            wrong += memcmp(sum, whole, sizeof sum) != 0;
        }
    is_int(wrong, 0, "parts have the sum of the whole");
}

/* RFC 4231, cases 2 and 6; the long key is hashed. */
static void test_hmac(void)
{
    uint8_t sum[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES], key[131];
    hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), sum);
    hex_write(sum, sizeof sum, hex);
    is_str(str_of(hex), STR("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
           "a short key");
    memset(key, 0xaa, sizeof key);
    hmac_sha256(str_from(key, sizeof key),
                STR("Test Using Larger Than Block-Size Key - Hash Key First"), sum);
    hex_write(sum, sizeof sum, hex);
    is_str(str_of(hex), STR("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
           "a key longer than a block");
}

static void test_hex(void)
{
    char out[9] = "xxxxxxxx";
    hex_write((const uint8_t *)"\x00\x9f\xff", 3, out);
    is_str(str_of(out), STR("009fff"), "digits");
    hex_write(NULL, 0, out);
    is_str(str_of(out), STR(""), "none");
}

static void test_digits(void)
{
    ok(hex_is(STR("09af"), 4) && hex_is(STR(""), 0), "hexadecimal digits");
    ok(!hex_is(STR("09af"), 5) && !hex_is(STR("09aF"), 4) && !hex_is(STR("09ag"), 4) &&
           !hex_is(STR("09a\0"), 4),
       "others, or too few");
}

int main(void)
{
    test_standard();
    test_long();
    test_borders();
    test_parts();
    test_hmac();
    test_hex();
    test_digits();
    return tap_done();
}
