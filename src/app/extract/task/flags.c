#include "app/extract/task/flags.h"

#include "base/sha256.h"

_Static_assert(EXTRACT_FIELDS_MAX < 63, "a bit for each field");

/* The order of doubles as that of unsigned numbers: the sign bit is turned over, and all other bits
 * with it below zero. */
static void add_number(struct buf *out, double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v; /* -0 is 0 */
    memcpy(&bits, &v, sizeof bits);
    bits = bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    uint8_t bytes[sizeof bits];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(bits >> (56 - 8 * i));
    hex_write(bytes, sizeof bytes, buf_reserve(out, 2 * sizeof bytes + 1));
    buf_added(out, 2 * sizeof bytes);
}

struct str extract_first_chars(struct str s, size_t most)
{
    size_t at = 0;
    for (size_t n = 0; n < most && at < s.n; n++) {
        size_t step = str_utf8_step(str_skip(s, at));
        at += step ? step : 1;
    }
    return str_from(s.p, at);
}

/* On one line. */
static void add_text(struct buf *out, struct str s)
{
    s = extract_first_chars(str_trim(s), EXTRACT_KEY_CHARS);
    for (size_t i = 0; i < s.n; i++)
        buf_add_char(out, (unsigned char)s.p[i] < 0x20 ? ' ' : s.p[i]);
}

static void add_key(struct buf *out, const struct extract_field *f, const struct extract_value *v)
{
    switch (f->of) {
    case EXTRACT_NUMBER:
        add_number(out, v->number);
        break;
    case EXTRACT_INTEGER:
        add_number(out, (double)v->integer);
        break;
    case EXTRACT_BOOLEAN:
        buf_add_char(out, v->boolean ? '1' : '0');
        break;
    default:
        add_text(out, v->text);
    }
}

static bool is_verified(const struct extract_found *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (!v->items[i].verified)
            return false;
    return true;
}

void extract_flags_of(struct arena *a, const struct extract_template *x,
                      const struct extract_values *v, struct extract_flags *out)
{
    struct buf keys;
    buf_init(&keys);
    *out = (struct extract_flags){.missing = 0};
    for (size_t i = 0; i < x->count; i++) {
        const struct extract_found *f = &v->fields[i];
        int64_t bit = INT64_C(1) << i;
        out->missing |= f->count == 0 ? bit : 0;
        out->unverified |= !f->edited && !is_verified(f) ? bit : 0;
        out->differs |= !f->edited && f->differ_count > 0 ? bit : 0;
        out->edited |= f->edited ? bit : 0;
        if (f->count)
            add_key(&keys, &x->fields[i], &f->items[0]);
        buf_add_char(&keys, '\n');
    }
    out->sort_keys = str_dup(a, buf_str(&keys));
    buf_release(&keys);
}
