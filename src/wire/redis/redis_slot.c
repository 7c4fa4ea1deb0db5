#include "wire/redis/redis_slot.h"

struct str redis_hash_tag(struct str key)
{
    struct str tag = key;
    (void)str_cut(&tag, '{');
    struct str rest = tag;
    tag = str_cut(&rest, '}');
    return rest.p && tag.n > 0 ? tag : key;
}

/* The CRC of four bits at a time, which needs a table of 16 numbers: keys are short. */
static const uint16_t crc_of[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

static unsigned add(unsigned crc, unsigned four_bits)
{
    return (crc << 4 ^ crc_of[(crc >> 12 ^ four_bits) & 15]) & 0xffff;
}

unsigned redis_slot(struct str key)
{
    struct str tag = redis_hash_tag(key);
    unsigned crc = 0;
    for (size_t i = 0; i < tag.n; i++) {
        unsigned byte = (unsigned char)tag.p[i];
        crc = add(add(crc, byte >> 4), byte & 15);
    }
    return crc % REDIS_SLOTS;
}
