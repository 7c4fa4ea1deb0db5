#include "engine/ai/embedding_reply.h"

#include <math.h>
#include <zlib.h>

#include "base/buf.h"
#include "tests/tap.h"

static struct arena arena;

static struct embedding_reply parsed(struct str body, size_t count)
{
    struct embedding_reply r = {.tokens = 0};
    const char *problem = "";
    int err = embedding_reply_read(&arena, body, count, &r, &problem);
    ok(err == 0, "read: %.60s %s", body.p[0] == '{' ? body.p : "something else", problem);
    return r;
}

#define HEAD "{\"model\": \"m\", \"usage\": {\"total_tokens\": 7}, \"data\": ["
#define ONE  "{\"index\": 0, \"embedding\": [3, 4]}"
#define TWO  "{\"index\": 1, \"embedding\": \"AACAPwAAAAA=\"}" /* 1, 0 */

static void test_right(void)
{
    struct embedding_reply r = parsed(STR(HEAD ONE "," TWO "]}"), 2);
    is_str(r.model, STR("m"), "the model");
    is_int(r.tokens, 7, "its tokens");
    ok(r.dimensions == 2 && r.wrong == 0, "two dimensions");
    ok(r.vectors[0].v[1] == 4.0f && r.vectors[0].scale == 0.2, "numbers");
    ok(r.vectors[1].v[0] == 1.0f && r.vectors[1].v[1] == 0.0f && r.vectors[1].scale == 1, "base64");
    r = parsed(STR("\uFEFF{\"data\": [" TWO "," ONE "]}"), 2);
    ok(r.vectors[0].v[1] == 4.0f && r.vectors[1].v[0] == 1.0f,
       "in another order, behind a byte order mark");
    ok(r.model.n == 0 && r.tokens == -1, "without model and usage");
}

static struct str zipped(struct str s)
{
    size_t most = compressBound(s.n) + 64;
    char *out = arena_alloc(&arena, most);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)s.p, .avail_in = (uInt)s.n};
    check(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)most;
    check(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
    return str_from(out, most - z.avail_out);
}

/* As long as the longest that services send, and then one that is too long. */
static void test_long(void)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, HEAD);
    for (int i = 0; i < 200; i++) {
        buf_printf(&b, "%s{\"index\": %d, \"embedding\": [1", i ? "," : "", i);
        for (int n = 1; n < 4096; n++)
            buf_add_lit(&b, ",\n      0.0123456789012345678");
        buf_add_lit(&b, "]}");
    }
    buf_add_lit(&b, "]}");
    struct embedding_reply r = parsed(buf_str(&b), 200);
    ok(r.dimensions == 4096 && r.vectors[199].scale > 0.7, "%zu MB of numbers", b.len >> 20);
    r = parsed(zipped(buf_str(&b)), 200);
    ok(r.dimensions == 4096 && r.vectors[199].scale > 0.7, "the same by gzip");
    size_t before = b.len;
    memset(buf_reserve(&b, EMBEDDING_REPLY_BYTES_MAX), ' ', EMBEDDING_REPLY_BYTES_MAX);
    buf_added(&b, EMBEDDING_REPLY_BYTES_MAX);
    const char *problem = NULL;
    is_int(embedding_reply_read(&arena, zipped(buf_str(&b)), 200, &r, &problem), ERR_PROTO,
           "what becomes larger than a reply may be is not unpacked");
    check(b.len > before);
    buf_release(&b);
}

static void test_bad_vectors(void)
{
    static const struct {
        const char *vector, *why;
    } bad[] = {{"[1, null]", "not finite"},
               {"[null, null]", "not finite"},
               {"[1e39, 0]", "not finite"},
               {"\"AADAfwAAgD8=\"", "not finite"}, /* NaN, 1 */
               {"\"AACAfwAAgD8=\"", "not finite"}, /* infinite */
               {"[0, 0.0]", "zeros"},
               {"\"AAAAAAAAAAA=\"", "zeros"},
               {"null", "null"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct str body = str_printf(
            &arena, "{\"data\": [{\"index\": 1, \"embedding\": %s}," ONE "]}", bad[i].vector);
        struct embedding_reply r = parsed(body, 2);
        ok(r.wrong == 1 && r.vectors[1].scale == 0 && r.vectors[1].why &&
               strstr(r.vectors[1].why, bad[i].why),
           "marked: %s", r.vectors[1].why);
        ok(!r.vectors[0].why && r.vectors[0].scale == 0.2 && r.dimensions == 2,
           "and the other one is taken");
    }
    struct embedding_reply r = parsed(
        STR("{\"data\": [{\"index\": 0, \"embedding\": [1e-45, 0]}, {\"index\": 1, \"embedding\": "
            "[3e38, 3e38]}]}"),
        2);
    ok(r.wrong == 0 && fabs(r.vectors[1].scale * 3e38 - sqrt(0.5)) < 1e-6,
       "tiny and huge ones have a length");
}

static void test_wrong(void)
{
    static const struct {
        const char *body, *problem;
    } wrong[] = {
        {"", "no JSON"},
        {"<html>", "no JSON"},
        {HEAD ONE "," TWO, "no JSON"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": [1, NaN]}]}", "no JSON"},
        {"[]", "without vectors"},
        {"{\"data\": {}}", "without vectors"},
        {"{\"error\": {\"message\": \"no such model\"}}", "an error: no such model"},
        {HEAD ONE "]}", "1 vectors for 2 texts"},
        {HEAD ONE "," ONE "," TWO "]}", "3 vectors for 2 texts"},
        {HEAD ONE "," ONE "]}", "two vectors of one text"},
        {HEAD ONE ", {\"index\": 2, \"embedding\": [1, 2]}]}", "not sent"},
        {HEAD ONE ", {\"index\": -1, \"embedding\": [1, 2]}]}", "not sent"},
        {HEAD ONE ", {\"index\": \"1\", \"embedding\": [1, 2]}]}", "without an index"},
        {HEAD ONE ", {\"embedding\": [1, 2]}]}", "without an index"},
        {HEAD ONE ", 7]}", "without an index"},
        {HEAD ONE ", {\"index\": 1}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": []}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": [1, \"2\"]}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": 5}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": \"\"}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": \"AACAPw=\"}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": \"AACA\"}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": \"AAC!PwAAAAA=\"}]}", "neither"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": [1, 2, 3]}]}", "of 2 and of 3"},
        {HEAD ONE ", {\"index\": 1, \"embedding\": \"AACAPw==\"}]}", "of 2 and of 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct embedding_reply r;
        const char *problem = "";
        int err = embedding_reply_read(&arena, str_of(wrong[i].body), 2, &r, &problem);
        ok(err == ERR_PROTO && strstr(problem, wrong[i].problem), "the service sent %s", problem);
    }
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "{\"data\": [{\"index\": 0, \"embedding\": [1");
    for (int i = 0; i < EMBEDDING_DIMENSIONS_MAX; i++)
        buf_add_lit(&b, ",1");
    buf_add_lit(&b, "]}]}");
    struct embedding_reply r;
    const char *problem = "";
    ok(embedding_reply_read(&arena, buf_str(&b), 1, &r, &problem) == ERR_PROTO &&
           strstr(problem, "8193 numbers"),
       "the service sent %s", problem);
    buf_release(&b);
}

int main(void)
{
    arena_init(&arena);
    test_right();
    test_long();
    test_bad_vectors();
    test_wrong();
    arena_release(&arena);
    return tap_done();
}
