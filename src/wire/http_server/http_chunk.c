#include "wire/http_server/http_chunk.h"

#include "base/ascii.h"
#include "wire/http_server/http_field.h"

/* Four gigabytes in one chunk are enough, and cannot overflow. */
#define SIZE_DIGITS_MAX 8

/* "5;name=value CR LF hello CR LF 0 CR LF Name: value CR LF CR LF", one state per step. */
enum {
    SIZE,
    SIZE_BLANK, /* between the size and its extensions */
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    LAST, /* the start of a trailer, or of the empty line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    END,
    BAD
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* A byte of an extension or a trailer. */
static int extra(struct http_chunks *c, int next)
{
    if (c->extra_max == 0)
        return BAD;
    c->extra_max--;
    return next;
}

/* The text of an extension or a trailer, up to its end of line. */
static int text_step(struct http_chunks *c, char byte, int feed)
{
    if (byte == '\r')
        return feed;
    return http_value_valid(str_from(&byte, 1)) ? extra(c, c->state) : BAD;
}

static int blank_step(struct http_chunks *c, char byte)
{
    return is_blank(byte) ? extra(c, SIZE_BLANK) : byte == ';' ? extra(c, EXTENSION) : BAD;
}

static int name_step(struct http_chunks *c, char byte)
{
    if (http_token_valid(str_from(&byte, 1)))
        return extra(c, TRAILER_NAME);
    return byte == ':' && c->state == TRAILER_NAME ? extra(c, TRAILER_VALUE) : BAD;
}

static int size_step(struct http_chunks *c, char byte)
{
    if (c->digits > 0 && byte == '\r')
        return SIZE_LF;
    if (c->digits > 0 && (is_blank(byte) || byte == ';'))
        return blank_step(c, byte);
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
    case SIZE_BLANK:
        return blank_step(c, byte);
    case EXTENSION:
        return text_step(c, byte, SIZE_LF);
    case SIZE_LF:
        c->digits = 0;
        return expect(byte, '\n', c->left ? DATA : LAST);
    case DATA_CR:
        return expect(byte, '\r', DATA_LF);
    case DATA_LF:
        return expect(byte, '\n', SIZE);
    case LAST:
        return byte == '\r' ? LAST_LF : name_step(c, byte);
    case TRAILER_NAME:
        return name_step(c, byte);
    case TRAILER_VALUE:
        return text_step(c, byte, TRAILER_LF);
    case TRAILER_LF:
        return expect(byte, '\n', LAST);
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
