#include "wire/http_server/http_chunk.h"

#include "base/ascii.h"

/* Four gigabytes in one chunk are enough, and cannot overflow. */
#define SIZE_DIGITS_MAX 8

/* "5 CR LF hello CR LF 0 CR LF CR LF", one state per step. */
enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, END, BAD };

static int size_step(struct http_chunks *c, char byte)
{
    if (byte == '\r' && c->digits > 0)
        return SIZE_LF;
    int v = ascii_hex(byte);
    if (v < 0 || c->digits == SIZE_DIGITS_MAX)
        return BAD;
    c->digits++;
    c->left = c->left * 16 + (uint64_t)v;
    return SIZE;
}

static int expect(char byte, char want, int next)
{
    return byte == want ? next : BAD;
}

static int step(struct http_chunks *c, char byte)
{
    switch (c->state) {
    case SIZE:
        return size_step(c, byte);
    case SIZE_LF:
        c->digits = 0;
        return expect(byte, '\n', c->left ? DATA : LAST_CR);
    case DATA_CR:
        return expect(byte, '\r', DATA_LF);
    case DATA_LF:
        return expect(byte, '\n', SIZE);
    case LAST_CR:
        return expect(byte, '\r', LAST_LF);
    case LAST_LF:
        return expect(byte, '\n', END);
    default:
        return BAD;
    }
}

static struct str take_data(struct http_chunks *c, struct str in)
{
    struct str data = str_from(in.p, in.n < c->left ? in.n : (size_t)c->left);
    c->left -= data.n;
    if (c->left == 0)
        c->state = DATA_CR;
    return data;
}

enum http_chunk_verdict http_chunk_next(struct http_chunks *c, struct str in, size_t *used,
                                        struct str *data)
{
    *used = 0;
    while (c->state != END && c->state != BAD) {
        if (*used == in.n)
            return HTTP_CHUNK_MORE;
        if (c->state == DATA) {
            *data = take_data(c, str_from(in.p + *used, in.n - *used));
            *used += data->n;
            return HTTP_CHUNK_DATA;
        }
        c->state = step(c, in.p[(*used)++]);
    }
    return c->state == END ? HTTP_CHUNK_END : HTTP_CHUNK_BAD;
}
