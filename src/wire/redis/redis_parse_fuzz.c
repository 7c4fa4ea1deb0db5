/* A stream of replies read whole and read in pieces must give the same replies and end in the
 * same way. The first byte chooses the size of the pieces. */
#include "wire/redis/redis_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct result {
    size_t count;
    uint64_t hash;
    int end;
};

static void mix(struct result *r, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++)
        r->hash = (r->hash ^ bytes[i]) * 0x100000001b3u;
}

static void mix_reply(struct result *r, const struct redis_reply *reply)
{
    mix(r, &reply->type, sizeof(reply->type));
    mix(r, &reply->integer, sizeof(reply->integer));
    mix(r, &reply->count, sizeof(reply->count));
    if (reply->str.p) {
        mix(r, reply->str.p, reply->str.n);
        check(reply->str.p[reply->str.n] == '\0');
    }
    for (size_t i = 0; i < reply->count; i++)
        mix_reply(r, reply->items[i]);
}

static struct result read_in_pieces(struct str in, size_t piece)
{
    struct result r = {0};
    struct arena a;
    struct redis_scan s;
    arena_init(&a);
    redis_scan_init(&s);
    for (size_t have = 0; r.end == 0 && have < in.n;) {
        have = in.n - have > piece ? have + piece : in.n;
        size_t before = s.pos;
        while ((r.end = redis_scan(&s, str_from(in.p, have))) == 1) {
            mix_reply(&r, redis_build(&a, &s, in.p));
            r.count++;
            in = str_from(in.p + s.pos, in.n - s.pos);
            have -= s.pos;
            before = 0;
            redis_scan_init(&s);
        }
        check(s.pos >= before && s.pos <= have);
    }
    arena_release(&a);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    struct str in = str_from((const char *)data + 1, n - 1);
    struct result whole = read_in_pieces(in, in.n + 1);
    struct result split = read_in_pieces(in, data[0] % 64 + 1u);
    check(whole.count == split.count);
    check(whole.hash == split.hash);
    check(whole.end == split.end);
    return 0;
}
