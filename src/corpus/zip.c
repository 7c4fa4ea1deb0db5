#include "corpus/zip.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/buf.h"

/* Cells of prose shrink to less than a third; level 6 gains an eighth more, and the whole takes
 * two and a half times as long. */
#define LEVEL         1
#define RAW_WINDOW    (-15) /* of zlib: the largest, without head and checksum */
#define STEP_BYTES    (16 * 1024)
#define PENDING_BYTES (256 * 1024) /* most that deflate holds back */
#define VERSION       20           /* the first that has deflate */
#define FLAGS         0x0808       /* sizes stand behind the entry; names are UTF-8 */
#define DEFLATED      8
#define DATE_1980     0x0021 /* the first day that there is: files do not depend on the clock */
#define SIZES_BYTES   16

struct zip {
    struct buf *out;
    z_stream deflate;
    uint64_t at; /* bytes written so far */
    struct buf directory;
    unsigned entries;
    /* the entry that is open */
    bool open;
    struct buf name;
    uint64_t begin, packed, raw;
    uint32_t crc;
};

struct zip *zip_new(struct buf *out)
{
    struct zip *z = check_memory(calloc(1, sizeof *z));
    z->out = out;
    buf_init(&z->directory);
    buf_init(&z->name);
    check(deflateInit2(&z->deflate, LEVEL, Z_DEFLATED, RAW_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    return z;
}

void zip_free(struct zip *z)
{
    if (!z)
        return;
    deflateEnd(&z->deflate);
    buf_release(&z->directory);
    buf_release(&z->name);
    free(z);
}

/* Numbers are little-endian. */
static void put(struct buf *b, int bytes, uint64_t v)
{
    for (int i = 0; i < bytes; i++)
        buf_add_char(b, (char)(v >> 8 * i));
}

static uint64_t packed_most(uint64_t bytes) /* what cannot be compressed is stored in blocks */
{
    return bytes + bytes / 1000 + PENDING_BYTES;
}

bool zip_fits(const struct zip *z, uint64_t bytes, uint64_t most)
{
    if (most > ZIP_BYTES_MAX)
        most = ZIP_BYTES_MAX;
    uint64_t raw = z->raw + bytes, all = z->at + packed_most(bytes) + z->directory.len;
    return raw + ZIP_SLACK <= ZIP_BYTES_MAX && all + ZIP_SLACK <= most;
}

/* The part that an entry's head and its line in the directory have in common. */
static void put_entry(const struct zip *z, struct buf *b, bool sizes)
{
    put(b, 2, VERSION);
    put(b, 2, FLAGS);
    put(b, 2, DEFLATED);
    put(b, 2, 0); /* the time of day */
    put(b, 2, DATE_1980);
    put(b, 4, sizes ? z->crc : 0);
    put(b, 4, sizes ? z->packed : 0);
    put(b, 4, sizes ? z->raw : 0);
    put(b, 2, z->name.len);
    put(b, 2, 0); /* extra fields */
}

void zip_begin(struct zip *z, struct str name)
{
    check(!z->open && z->entries < UINT16_MAX && name.n > 0 && name.n <= UINT16_MAX);
    size_t before = z->out->len;
    z->open = true;
    z->begin = z->at;
    z->packed = z->raw = 0;
    z->crc = (uint32_t)crc32(0, NULL, 0);
    buf_clear(&z->name);
    buf_add_str(&z->name, name);
    check(deflateReset(&z->deflate) == Z_OK);
    buf_add_lit(z->out, "PK\3\4");
    put_entry(z, z->out, false);
    buf_add_str(z->out, name);
    z->at += z->out->len - before;
}

static void squeeze(struct zip *z, struct str bytes, int flush)
{
    z->deflate.next_in = (Bytef *)(uintptr_t)bytes.p;
    z->deflate.avail_in = (uInt)bytes.n;
    do {
        z->deflate.next_out = (Bytef *)buf_reserve(z->out, STEP_BYTES);
        size_t room = buf_room(z->out) < UINT32_MAX ? buf_room(z->out) : UINT32_MAX;
        z->deflate.avail_out = (uInt)room;
        int got = deflate(&z->deflate, flush);
        check(got == Z_OK || got == Z_STREAM_END || got == Z_BUF_ERROR);
        size_t made = room - z->deflate.avail_out;
        buf_added(z->out, made);
        z->packed += made;
        z->at += made;
    } while (z->deflate.avail_out == 0);
}

void zip_add(struct zip *z, struct str bytes)
{
    check(z->open && bytes.n <= UINT32_MAX - z->raw);
    z->crc = (uint32_t)crc32_z(z->crc, (const Bytef *)bytes.p, bytes.n);
    z->raw += bytes.n;
    squeeze(z, bytes, Z_NO_FLUSH);
}

void zip_end_entry(struct zip *z)
{
    check(z->open);
    squeeze(z, STR(""), Z_FINISH);
    check(z->packed <= ZIP_BYTES_MAX);
    buf_add_lit(z->out, "PK\7\10");
    put(z->out, 4, z->crc);
    put(z->out, 4, z->packed);
    put(z->out, 4, z->raw);
    z->at += SIZES_BYTES;

    struct buf *d = &z->directory;
    buf_add_lit(d, "PK\1\2");
    put(d, 2, VERSION); /* made by */
    put_entry(z, d, true);
    put(d, 2, 0); /* comment */
    put(d, 2, 0); /* disk */
    put(d, 2, 0); /* attributes */
    put(d, 4, 0);
    put(d, 4, z->begin);
    buf_add_str(d, buf_str(&z->name));
    z->entries++;
    z->raw = 0;
    z->open = false;
}

void zip_end(struct zip *z)
{
    check(!z->open && z->at + z->directory.len <= ZIP_BYTES_MAX);
    buf_add_str(z->out, buf_str(&z->directory));
    buf_add_lit(z->out, "PK\5\6");
    put(z->out, 4, 0); /* disks */
    put(z->out, 2, z->entries);
    put(z->out, 2, z->entries);
    put(z->out, 4, z->directory.len);
    put(z->out, 4, z->at);
    put(z->out, 2, 0); /* comment */
}
